"""DP-means in feature space: a linear kernel gives DPMeans' answer, any other its own loop's."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_iris, load_wine, make_blobs
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.preprocessing import StandardScaler

from countless import DPMeans, KernelDPMeans
from countless._search.kernel import clusters as kernel_clusters
from countless._search.kernel import matrix as kernel_matrix
from countless._search.kernel import refine as kernel_refine
from plain import all_partitions, by_first_appearance


def distances(K, weight, members):
    """Squared distances of all rows from the mean of some, as the paper expands them."""
    w = weight[members]
    within = w @ K[np.ix_(members, members)] @ w / w.sum() ** 2
    return np.diag(K) - 2 * K[:, members] @ w / w.sum() + within


def serial_loop(K, penalty, weight, max_iter=300):
    """Algorithm 1 as the paper prints it, with distances from the kernel."""
    n = len(K)
    labels = np.zeros(n, dtype=int)
    n_iter, settled = 0, False
    while n_iter < max_iter and not settled:
        n_iter += 1
        before, k = labels, labels.max() + 1
        to_means = [distances(K, weight, np.flatnonzero(before == c)) for c in range(k)]
        labels, opened = np.empty(n, dtype=int), []
        for i in range(n):
            away = [d[i] for d in to_means] + [K[i, i] + K[r, r] - 2 * K[i, r] for r in opened]
            if weight[i] * min(away) > penalty:
                opened.append(i)
                labels[i] = k + len(opened) - 1
            else:
                labels[i] = int(np.argmin(away))
        labels = np.unique(labels, return_inverse=True)[1]
        settled = np.array_equal(before, labels)
    return labels, n_iter


def objective(K, labels, penalty, weight=None):
    """The objective from scratch."""
    weight = np.ones(len(K)) if weight is None else weight
    value = 0.0
    for c in np.unique(labels[weight > 0]):
        members = np.flatnonzero((labels == c) & (weight > 0))
        value += penalty + weight[members] @ distances(K, weight, members)[members]
    return value


def table(seed, n_rows, n_features=2):
    random = np.random.RandomState(seed)
    return random.standard_normal((n_rows, n_features)) + 4 * random.randint(3, size=(n_rows, 1))


@given(
    seed=st.integers(0, 10**6),
    n_rows=st.integers(1, 60),
    kernel=st.sampled_from(["rbf", "linear", "poly", "laplacian"]),
    share=st.floats(0.001, 1.2),
    weighted=st.booleans(),
)
def test_algorithm_1_equals_the_serial_loop(seed, n_rows, kernel, share, weighted):
    X = table(seed, n_rows)
    weight = np.random.RandomState(seed).uniform(0.2, 3, n_rows) if weighted else np.ones(n_rows)
    K = pairwise_kernels(X, metric=kernel)
    K = (K + K.T) / 2
    farthest = distances(K, weight, np.arange(n_rows)).max()
    penalty = 1.0003 * share * max(farthest, 1e-3)
    labels, n_iter = serial_loop(K, penalty, weight)
    model = KernelDPMeans(penalty, kernel="precomputed", refine=False)
    model.fit(K, sample_weight=weight)
    assert np.array_equal(model.labels_, by_first_appearance(labels))
    assert model.n_iter_ == n_iter
    expected = objective(K, labels, penalty, weight)
    assert model.objective_ == pytest.approx(expected, rel=1e-8, abs=1e-9 * np.abs(K).max())


@given(seed=st.integers(0, 10**6), n_rows=st.integers(1, 100), penalty=st.floats(0.5, 60))
def test_a_linear_kernel_gives_algorithm_1_of_dp_means(seed, n_rows, penalty):
    X = table(seed, n_rows, 3)
    weight = np.random.RandomState(seed).uniform(0.2, 3, n_rows)
    plain = DPMeans(penalty, refine=False).fit(X, sample_weight=weight)
    model = KernelDPMeans(penalty, kernel="linear", refine=False).fit(X, sample_weight=weight)
    assert np.array_equal(model.labels_, plain.labels_)
    assert model.n_iter_ == plain.n_iter_
    np.testing.assert_allclose(model.objective_history_, plain.objective_history_, rtol=1e-8)


def test_a_linear_kernel_refines_to_the_answer_of_dp_means():
    same = 0
    for seed in range(40):
        X, penalty = table(seed, 40), np.random.RandomState(seed).uniform(0.5, 20)
        plain, model = DPMeans(penalty).fit(X), KernelDPMeans(penalty, kernel="linear").fit(X)
        assert model.objective_ == pytest.approx(plain.objective_, rel=0.02)
        same += np.array_equal(model.labels_, plain.labels_)
    # Moves are tried in another order, and so a few end in another optimum.
    assert same >= 38


@pytest.mark.parametrize("load", [load_iris, load_wine])
@pytest.mark.parametrize("penalty", ["auto", 50.0, 200.0])
def test_a_linear_kernel_gives_the_clusters_of_dp_means_on_real_tables(load, penalty):
    X = StandardScaler().fit_transform(load().data)
    plain = DPMeans(penalty, random_state=0).fit(X)
    model = KernelDPMeans(penalty, kernel="linear", random_state=0).fit(X)
    assert np.array_equal(model.labels_, plain.labels_)
    assert model.penalty_ == pytest.approx(plain.penalty_)


def test_reaches_the_enumerated_optimum_of_most_small_tables():
    every = np.array(all_partitions(6))
    assert len(every) == 203
    optimal = 0
    for seed in range(40):
        random = np.random.RandomState(seed)
        K = pairwise_kernels(random.standard_normal((6, 2)), metric="rbf")
        penalty = random.uniform(0.05, 0.8)
        best = min(objective(K, labels, penalty) for labels in every)
        found = KernelDPMeans(penalty, kernel="precomputed").fit(K).objective_
        assert best - 1e-9 <= found <= 1.1 * best
        optimal += found <= best + 1e-9
    assert optimal >= 38


@given(
    seed=st.integers(0, 10**6),
    n_rows=st.integers(2, 80),
    kernel=st.sampled_from(["rbf", "linear", "poly", "cosine"]),
    share=st.floats(0.001, 0.5),
    single=st.booleans(),
    weighted=st.booleans(),
)
def test_refining_lowers_the_true_objective(seed, n_rows, kernel, share, single, weighted):
    X = table(seed, n_rows).astype(np.float32 if single else np.float64)
    weight = np.random.RandomState(seed).uniform(0, 3, n_rows) if weighted else np.ones(n_rows)
    K = pairwise_kernels(X, metric=kernel)
    K = np.asarray((K + K.T) / 2, dtype=X.dtype)
    spread = float(weight @ np.maximum(distances(K, weight, np.arange(n_rows)), 0))
    penalty = share * max(spread, 1e-3)
    plain, model = (
        KernelDPMeans(penalty, kernel="precomputed", refine=refine).fit(K, sample_weight=weight)
        for refine in (False, True)
    )
    rounding = 1e-6 if single else 1e-9
    scale = rounding * float(weight @ np.abs(np.diag(K)))
    expected = objective(K.astype(float), model.labels_, penalty, weight)
    assert model.objective_ == pytest.approx(expected, abs=scale)
    assert (np.diff(model.objective_history_) <= scale).all()
    assert model.objective_ <= plain.objective_ + scale
    assert model.cluster_weights_ == pytest.approx(np.bincount(model.labels_, weight))
    assert np.array_equal(np.unique(model.labels_), np.arange(model.n_clusters_))


def test_rows_of_no_weight_are_as_good_as_absent():
    X = table(3, 90)
    weight = np.random.RandomState(0).randint(0, 3, 90).astype(float)
    present = weight > 0
    for refine in (False, True):
        model = KernelDPMeans(0.8, refine=refine).fit(X, sample_weight=weight)
        part = KernelDPMeans(0.8, refine=refine).fit(X[present], sample_weight=weight[present])
        assert np.array_equal(model.labels_[present], part.labels_)
        assert np.array_equal(model.labels_[~present], part.predict(X[~present]))
        assert model.objective_ == pytest.approx(part.objective_)
        assert model.n_iter_ == part.n_iter_


def test_whole_weights_are_repeats():
    X, _ = make_blobs(80, centers=4, cluster_std=0.6, random_state=1)
    weight = np.random.RandomState(1).randint(0, 4, 80)
    weighted = KernelDPMeans(random_state=0).fit(X, sample_weight=weight)
    repeated = KernelDPMeans(random_state=0).fit(np.repeat(X, weight, axis=0))
    assert weighted.n_clusters_ == 4
    assert adjusted_rand_score(weighted.predict(X), repeated.predict(X)) == 1
    assert weighted.penalty_ == pytest.approx(repeated.penalty_)


@pytest.mark.parametrize("kind", ["dense", "sparse", "float32", "precomputed", "callable"])
def test_new_rows_go_to_the_nearest_mean(kind):
    X, new = table(1, 70), table(2, 30)
    kernel = {
        "precomputed": "precomputed",
        "callable": lambda a, b: np.exp(-np.square(a - b).sum()),
    }
    model = KernelDPMeans(0.6, kernel=kernel.get(kind, "rbf"), gamma=1.0)
    K, across = (
        pairwise_kernels(X, metric="rbf", gamma=1.0),
        pairwise_kernels(new, X, "rbf", gamma=1.0),
    )
    rows, asked = {
        "dense": (X, new),
        "sparse": (sp.csr_matrix(X), sp.csr_matrix(new)),
        "float32": (X.astype(np.float32), new.astype(np.float32)),
        "precomputed": (K, across),
        "callable": (X, new),
    }[kind]
    model.fit(rows)
    assert model.n_clusters_ > 2
    members = [np.flatnonzero(model.labels_ == c) for c in range(model.n_clusters_)]
    to_means = [
        K[np.ix_(own, own)].mean() - 2 * across[:, own].mean(axis=1) for own in members
    ]  # fmt: skip
    assert np.array_equal(model.predict(asked), np.argmin(to_means, axis=0))
    assert np.array_equal(model.predict(rows), model.labels_)


@pytest.mark.parametrize("refine", [False, True])
def test_threads_do_not_change_a_bit(monkeypatch, refine):
    small = replace(kernel_matrix.TILES, side=50, columns=64, rows=16)
    for module in (kernel_matrix, kernel_clusters, kernel_refine):
        monkeypatch.setattr(module, "TILES", small)
    X = table(3, 400, 4)
    one, three = (KernelDPMeans(2.0, refine=refine, n_jobs=n).fit(X) for n in (1, 3))
    assert np.array_equal(one.labels_, three.labels_)
    assert np.array_equal(one.center_norms_, three.center_norms_)
    assert one.objective_history_.tolist() == three.objective_history_.tolist()


def test_restarts_keep_the_best_run():
    X = table(5, 200, 5)
    one, five = (KernelDPMeans(3.0, n_init=n, random_state=0).fit(X) for n in (1, 5))
    assert five.objective_ <= one.objective_


def test_a_kernel_with_negative_eigenvalues_never_raises_the_objective():
    random = np.random.RandomState(0)
    for _ in range(20):
        K = random.standard_normal((40, 40))
        K = K + K.T + 4 * np.eye(40)
        assert np.linalg.eigvalsh(K)[0] < -1
        for refine in (False, True):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                model = KernelDPMeans(3.0, kernel="precomputed", refine=refine).fit(K)
            assert (np.diff(model.objective_history_) <= 1e-9).all()
            assert model.objective_ == pytest.approx(objective(K, model.labels_, 3.0))


def test_stopping_early_warns():
    X = table(0, 200)
    with pytest.warns(ConvergenceWarning, match="KernelDPMeans stopped after 1 passes"):
        model = KernelDPMeans(0.1, refine=False, max_iter=1).fit(X)
    assert not model.converged_


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"penalty": -1.0}, "penalty must be 'auto' or a number of at least 0; got -1.0"),
        ({"penalty": "best"}, "penalty must be 'auto' or a number"),
        ({"kernel": "gauss"}, "kernel must be 'precomputed', a callable or one of"),
        ({"gamma": "auto"}, "gamma must be 'scale', None or a number of at least 0; got 'auto'"),
        ({"refine": 1}, "refine must be True or False; got 1"),
        ({"n_init": 0}, "n_init must be an integer of at least 1; got 0"),
        ({"max_iter": 0}, "max_iter must be an integer of at least 1; got 0"),
        ({"tol": -1}, "tol must be None or a number of at least 0; got -1"),
    ],
)
def test_bad_parameters_are_named(parameters, message):
    with pytest.raises(ValueError, match=message):
        KernelDPMeans(**parameters).fit(table(0, 10))
