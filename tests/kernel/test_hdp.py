"""The hard HDP in feature space equals a plain loop over rows, and refines its true objective."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from sklearn.metrics import adjusted_rand_score

from countless import HDPMeans, KernelDPMeans, KernelHDPMeans
from plain import by_first_appearance


def mean_of(X, rows):
    return X[rows].mean(axis=0)


def serial_loop(X, group, local_penalty, global_penalty, max_iter=100):
    """Algorithm 2 as the paper prints it, one row and one local cluster at a time."""
    n = len(X)
    n_groups = group.max() + 1
    means = [mean_of(X, np.arange(n))]
    of_group = list(range(n_groups))  # the group of each local cluster
    at = [0] * n_groups  # the global cluster of each
    z = group.copy()
    history = []
    while len(history) < max_iter:
        before = z.copy(), np.array(at)[z]
        for i in range(n):
            mine = [c for c in range(len(at)) if of_group[c] == group[i]]
            away = np.array([np.sum((X[i] - mean) ** 2) for mean in means])
            away[[p not in [at[c] for c in mine] for p in range(len(means))]] += local_penalty
            if away.min() > local_penalty + global_penalty:
                means.append(X[i])
                p = len(means) - 1
            else:
                p = int(away.argmin())
            first = [c for c in mine if at[c] == p]
            if not first:
                of_group.append(group[i])
                at.append(p)
            z[i] = first[0] if first else len(at) - 1
        used, z = np.unique(z, return_inverse=True)
        of_group, at = [of_group[c] for c in used], [at[c] for c in used]
        for c in sorted(range(len(at)), key=lambda c: of_group[c]):
            rows = np.flatnonzero(z == c)
            away = [np.sum((X[rows] - mean) ** 2) for mean in means]
            own = np.sum((X[rows] - mean_of(X, rows)) ** 2)
            if min(away) > global_penalty + own:
                means.append(mean_of(X, rows))
                at[c] = len(means) - 1
            else:
                at[c] = int(np.argmin(away))
        kept, at = np.unique(at, return_inverse=True)
        at = list(at)
        labels = np.array(at)[z]
        means = [mean_of(X, labels == p) for p in range(len(kept))]
        cost = sum(np.sum((X[labels == p] - mean) ** 2) for p, mean in enumerate(means))
        history.append(cost + local_penalty * len(at) + global_penalty * len(means))
        if np.array_equal(before[0], z) and np.array_equal(before[1], labels):
            break
    return labels, z, history


def objective(X, labels, group, local_penalty, global_penalty):
    """Objective (2) with one local cluster for each pair of a group and a cluster."""
    value = 0.0
    for p in np.unique(labels):
        rows = labels == p
        value += np.sum((X[rows] - mean_of(X, rows)) ** 2) + global_penalty
        value += local_penalty * len(np.unique(group[rows]))
    return value


def draw(seed, n_rows):
    random = np.random.RandomState(seed)
    X = random.standard_normal((n_rows, 2)) + 5 * random.randint(4, size=(n_rows, 1))
    return X, by_first_appearance(random.randint(random.randint(1, 7), size=n_rows))


@given(
    seed=st.integers(0, 10**6),
    n_rows=st.integers(1, 60),
    local_penalty=st.floats(0.3, 12),
    global_penalty=st.floats(0.3, 60),
)
def test_algorithm_2_equals_the_serial_loop(seed, n_rows, local_penalty, global_penalty):
    X, group = draw(seed, n_rows)
    labels, local, history = serial_loop(X, group, local_penalty, global_penalty)
    model = KernelHDPMeans(local_penalty, global_penalty, kernel="linear", refine=False)
    model.fit(X, groups=group)
    assert np.array_equal(model.labels_, by_first_appearance(labels))
    pairs = by_first_appearance(1000 * group + model.local_labels_)
    assert np.array_equal(pairs, by_first_appearance(local))
    np.testing.assert_allclose(model.objective_history_, history, rtol=1e-8, atol=1e-8)
    assert model.n_local_clusters_.sum() == len(np.unique(local))


@given(
    seed=st.integers(0, 10**6),
    n_rows=st.integers(2, 80),
    local_penalty=st.floats(0, 12),
    global_penalty=st.floats(0.3, 60),
)
@example(seed=4323, n_rows=80, local_penalty=2.0, global_penalty=22.0)  # Algorithm 2 is lucky
def test_refining_lowers_the_true_objective(seed, n_rows, local_penalty, global_penalty):
    X, group = draw(seed, n_rows)
    plain, model = (
        KernelHDPMeans(local_penalty, global_penalty, kernel="linear", refine=refine)
        for refine in (False, True)
    )
    plain.fit(X, groups=group)
    model.fit(X, groups=group)
    expected = objective(X, model.labels_, group, local_penalty, global_penalty)
    assert model.objective_ == pytest.approx(expected, rel=1e-8, abs=1e-8)
    assert model.objective_ <= plain.objective_ + 1e-8
    assert (np.diff(model.objective_history_) <= 1e-8).all()
    counts = [len(np.unique(model.labels_[group == g])) for g in range(group.max() + 1)]
    assert model.n_local_clusters_.tolist() == counts
    assert np.array_equal(model.predict(X, groups=group), model.labels_)


@pytest.mark.parametrize("seed", range(8))
def test_a_linear_kernel_gives_the_answers_of_hdp_means(seed):
    X, group = draw(seed, 90)
    for prices in ((1.0, 4.0), (4.0, 20.0)):
        plain = HDPMeans(*prices, refine=False).fit(X, groups=group)
        model = KernelHDPMeans(*prices, kernel="linear", refine=False).fit(X, groups=group)
        assert np.array_equal(model.labels_, plain.labels_)
        assert np.array_equal(model.local_labels_, plain.local_labels_)
        assert np.array_equal(model.group_clusters_, plain.group_clusters_)
        assert model.n_local_clusters_.tolist() == plain.n_local_clusters_.tolist()
        np.testing.assert_allclose(model.objective_history_, plain.objective_history_)
        # Refined, they search in their own ways.
        plain = HDPMeans(*prices).fit(X, groups=group)
        model = KernelHDPMeans(*prices, kernel="linear").fit(X, groups=group)
        assert model.objective_ == pytest.approx(plain.objective_, rel=0.03)
        new, of = draw(seed + 100, 40)
        if np.array_equal(model.labels_, plain.labels_):
            assert np.array_equal(model.predict(new, of), plain.predict(new, of))


def test_reaches_the_enumerated_optimum_of_most_small_tables():
    every = [[0]]
    for _ in range(5):
        every = [[*labels, c] for labels in every for c in range(max(labels) + 2)]
    optimal = 0
    for seed in range(40):
        random = np.random.RandomState(seed)
        X, group = random.standard_normal((6, 2)), np.array([0, 0, 0, 1, 1, 1])
        prices = random.uniform(0.05, 1), random.uniform(0.05, 2)
        best = min(objective(X, np.array(labels), group, *prices) for labels in every)
        found = KernelHDPMeans(*prices, kernel="linear").fit(X, groups=group).objective_
        assert best - 1e-9 <= found <= 1.15 * best
        optimal += found <= best + 1e-9
    assert optimal >= 36


def test_one_data_set_is_dp_means():
    X, _ = draw(3, 80)
    one = KernelHDPMeans(2.0, 5.0).fit(X)
    plain = KernelDPMeans(7.0).fit(X)
    assert np.array_equal(one.labels_, plain.labels_)
    assert one.objective_ == pytest.approx(plain.objective_)
    assert one.local_labels_.tolist() == one.labels_.tolist()
    auto, plain = KernelHDPMeans(random_state=0).fit(X), KernelDPMeans(random_state=0).fit(X)
    assert np.array_equal(auto.labels_, plain.labels_)
    assert auto.local_penalty_ + auto.global_penalty_ == pytest.approx(plain.penalty_)


def test_auto_finds_shared_clusters():
    random = np.random.RandomState(0)
    centers = 6 * random.standard_normal((6, 2))
    uses = [[0, 1, 2], [2, 3], [3, 4, 5, 0], [1, 5]]
    truth = np.concatenate([random.choice(use, 60) for use in uses])
    group = np.repeat(list("abcd"), 60)
    X = centers[truth] + 0.4 * random.standard_normal((240, 2))
    model = KernelHDPMeans(random_state=0).fit(X, groups=group)
    assert adjusted_rand_score(truth, model.labels_) > 0.98
    assert model.n_local_clusters_.tolist() == [3, 2, 4, 2]
    assert model.groups_.tolist() == list("abcd")


def test_new_rows_pay_for_clusters_that_their_group_does_not_use():
    X = np.array([[0.0], [0.2], [10.0], [10.2], [0.1], [0.3]])
    model = KernelHDPMeans(30.0, 1.0, kernel="linear").fit(X, groups=list("aaaabb"))
    assert model.labels_.tolist() == [0, 0, 1, 1, 0, 0]
    between = [[5.5]] * 3
    # Nearer to the second mean, which b does not use; 5.35^2 - 4.6^2 is less than the penalty.
    assert model.predict(between, groups=list("abc")).tolist() == [1, 0, 1]
    assert model.predict(between).tolist() == [1, 1, 1]
    # Five such rows pay it together, and a new data set pays for one cluster rather than two.
    assert model.predict([[5.5]] * 5, groups=list("bbbbb")).tolist() == [1] * 5
    assert model.predict([[5.0], [5.5]], groups=list("cc")).tolist() == [1, 1]


def test_rows_of_no_weight_are_as_good_as_absent():
    X, group = draw(4, 90)
    weight = np.random.RandomState(0).randint(0, 3, 90).astype(float)
    present = weight > 0
    for refine in (False, True):
        model = KernelHDPMeans(2.0, 8.0, kernel="linear", refine=refine)
        whole = model.fit(X, groups=group, sample_weight=weight).labels_
        counts = model.n_local_clusters_.tolist()
        part = model.fit(X[present], groups=group[present], sample_weight=weight[present])
        assert np.array_equal(whole[present], part.labels_)
        assert counts == part.n_local_clusters_.tolist()


def test_groups_are_checked():
    with pytest.raises(ValueError, match="groups must hold a label for each of 4 rows"):
        KernelHDPMeans().fit(np.eye(4), groups=[0, 1])
    with pytest.raises(ValueError, match="local_penalty must be 'auto' or a number"):
        KernelHDPMeans(local_penalty=-1).fit(np.eye(4))
    with pytest.raises(ValueError, match="must both be 'auto' or both be numbers"):
        KernelHDPMeans(local_penalty=1.0).fit(np.eye(4))
