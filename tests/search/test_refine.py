"""Refinement lowers the true objective by exact moves, and stops only where none helps."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_digits, load_iris, make_blobs
from sklearn.metrics import adjusted_rand_score

from countless import DPMeans, penalty_path
from countless._data.open import open_rows
from countless._search.assignment import Assignment
from countless._search.merge import PAIRS
from countless._search.nearest_centers import PRUNING, list_neighbors
from countless._search.refine import MANY, RowClusters
from countless.divergences import DIVERGENCES, get_divergence
from plain import all_partitions


def objective(X, labels, penalty, weight=None, name="sqeuclidean"):
    """The objective from scratch: row costs and energies of the clusters that labels name."""
    weight = np.ones(len(X)) if weight is None else weight
    divergence = get_divergence(name)
    X = divergence.prepare(X.astype(float))
    value = float(weight @ divergence.row_cost(X))
    for label in np.unique(labels):
        rows = labels == label
        total = (weight[rows] @ X[rows])[None]
        value += penalty + float(divergence.energy(weight[rows].sum()[None], total)[0])
    return value


def blobs(seed, n_rows, n_features):
    random = np.random.RandomState(seed)
    centers = 3 * random.standard_normal((4, n_features))
    return centers[random.randint(4, size=n_rows)] + random.standard_normal((n_rows, n_features))


@pytest.mark.slow
def test_reaches_the_enumerated_optimum_of_most_small_tables():
    every = np.array(all_partitions(6))
    assert len(every) == 203
    optimal = 0
    for seed in range(40):
        random = np.random.RandomState(seed)
        X, penalty = random.standard_normal((6, 2)), random.uniform(0.1, 3)
        best = min(objective(X, labels, penalty) for labels in every)
        found = DPMeans(penalty, random_state=0).fit(X).objective_
        assert best - 1e-9 <= found <= 1.1 * best
        optimal += found <= best + 1e-9
    assert optimal >= 38


@pytest.mark.slow
@given(
    seed=st.integers(0, 10**6),
    n_rows=st.integers(2, 60),
    n_features=st.integers(1, 4),
    penalty=st.floats(0.05, 60),
    weighted=st.booleans(),
)
def test_no_merge_and_no_move_of_a_row_helps(seed, n_rows, n_features, penalty, weighted):
    X = blobs(seed, n_rows, n_features)
    weight = np.random.RandomState(seed).uniform(0.2, 3, n_rows) if weighted else np.ones(n_rows)
    model = DPMeans(penalty).fit(X, sample_weight=weight)
    labels, value = model.labels_, objective(X, model.labels_, penalty, weight)
    assert model.objective_ == pytest.approx(value, rel=1e-9)
    assert (np.diff(model.objective_history_) <= 1e-9 * value).all()
    assert np.array_equal(model.predict(X), labels)
    least = value * (1 - 1e-9)
    for a in range(model.n_clusters_):
        for b in range(a):
            merged = np.where(labels == a, b, labels)
            assert objective(X, merged, penalty, weight) >= least
    for i in range(n_rows):
        for c in range(model.n_clusters_ + 1):
            moved = labels.copy()
            moved[i] = c
            assert objective(X, moved, penalty, weight) >= least


@pytest.mark.slow
@given(seed=st.integers(0, 10**6), penalty=st.floats(0.5, 100))
def test_ends_below_algorithm_1_from_any_order(seed, penalty):
    X = blobs(seed, 80, 2)
    refined = DPMeans(penalty).fit(X).objective_
    for order in ("given", "farthest"):
        assert refined <= DPMeans(penalty, refine=False, order=order).fit(X).objective_ * 1.02


@pytest.mark.parametrize("load", [load_iris, load_digits])
def test_ends_as_low_as_the_refined_path(load):
    X = load().data
    path = penalty_path(X)
    for plateau in path.plateaus[:5]:
        penalty = path.penalty_for(plateau.n_clusters)
        model = DPMeans(penalty).fit(X)
        assert model.objective_ < 1.002 * path.objective_at(penalty)
        assert model.objective_ == pytest.approx(objective(X, model.labels_, penalty), rel=1e-9)


@pytest.mark.parametrize("name", list(DIVERGENCES))
def test_every_divergence_is_lowered_below_algorithm_1(name):
    X = np.abs(blobs(2, 200, 3)) + 0.1
    X = X / (X.max() + 1) if name == "logistic" else X
    penalty = {"sqeuclidean": 8.0}.get(name, 1.0)
    plain = DPMeans(penalty, divergence=name, refine=False).fit(X)
    model = DPMeans(penalty, divergence=name).fit(X)
    assert model.n_clusters_ > 1
    assert model.objective_ < plain.objective_
    expected = objective(X, model.labels_, penalty, name=name)
    assert model.objective_ == pytest.approx(expected, rel=1e-8)
    assert (np.diff(model.objective_history_) <= 1e-9 * abs(expected)).all()
    sparse = DPMeans(penalty, divergence=name).fit(sp.csr_matrix(X))
    assert sparse.objective_ == pytest.approx(model.objective_, rel=0.01)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("name", ["kl", "logistic"])
def test_values_at_the_edge_of_the_domain(name, seed, sparse):
    random = np.random.RandomState(seed)
    X = (random.uniform(size=(60, 5)) < random.choice([0.1, 0.9], (60, 5))).astype(float)
    weight = random.uniform(0.1, 3, 60)
    rows = sp.csr_matrix(X) if sparse else X
    model = DPMeans(2.0, divergence=name).fit(rows, sample_weight=weight)
    assert (np.diff(model.objective_history_) <= 1e-9 * model.objective_).all()
    expected = objective(X, model.labels_, 2.0, weight, name)
    assert model.objective_ == pytest.approx(expected, rel=1e-8)
    sizes = np.bincount(model.labels_, weight)
    np.testing.assert_allclose(model.cluster_weights_, sizes)


@pytest.mark.parametrize("unit", [1e-10, 1e-14, 1e10])
def test_kl_has_no_unit_of_its_own(unit):
    X = np.random.RandomState(0).poisson([[20, 0.2, 2]] * 40 + [[2, 0.2, 20]] * 40)
    plain, scaled = DPMeans(30.0, divergence="kl"), DPMeans(30.0 * unit, divergence="kl")
    assert plain.fit(X).n_clusters_ > 1
    assert scaled.fit(X * unit).objective_ == pytest.approx(unit * plain.objective_, rel=1e-6)


@pytest.mark.parametrize("unit", [1e-60, 1e-42, 1e-20, 1e20, 1e37, 1e40, 1e100])
@pytest.mark.parametrize("refine", [False, True])
def test_extreme_units_change_nothing(unit, refine):
    X = blobs(0, 300, 2)
    plain = DPMeans(6.0, refine=refine).fit(X)
    scaled = DPMeans(6.0 * unit**2, refine=refine).fit(X * unit)
    if refine:  # where bounds fit float32 no more, splits start elsewhere and may end elsewhere
        assert scaled.objective_ / unit**2 == pytest.approx(plain.objective_, rel=0.05)
    else:
        assert np.array_equal(plain.labels_, scaled.labels_)
    one_by_one = [int(scaled.predict(row[None])[0]) for row in X[:20] * unit]
    assert one_by_one == scaled.predict(X[:20] * unit).tolist()


def test_centers_far_from_the_rows_asked_about():
    model = DPMeans(50.0).fit([[0.0, 0.0], [1e3, 1e3]])
    assert model.predict([[1e-25, 0.0], [2e-25, 0.0], [0.0, 1e-25]]).tolist() == [0, 0, 0]
    assert model.predict([[1e3, 1e3]]).tolist() == [1]


@pytest.mark.parametrize("way", ["plain", "projection", "merge"])
def test_ways_for_very_many_clusters_are_exact(monkeypatch, way):
    if way == "projection":
        few = replace(PRUNING, projected_centers=8)
        monkeypatch.setattr("countless._search.nearest_centers.PRUNING", few)
    elif way == "merge":
        monkeypatch.setattr("countless._search.merge.PAIRS", replace(PAIRS, many_clusters=8))
    random = np.random.RandomState(4)
    # Centers in a plane of twelve dimensions, so that few directions tell them apart.
    X = random.uniform(0, 9, (500, 2)) @ random.standard_normal((2, 12))
    X += random.normal(scale=0.05, size=X.shape)
    model = DPMeans(6.0).fit(X)
    assert model.n_clusters_ > 24
    assignment = np.square(X[:, None] - model.cluster_centers_).sum(axis=2).argmin(axis=1)
    assert np.array_equal(model.labels_, assignment)
    assert model.objective_ == pytest.approx(objective(X, model.labels_, 6.0), rel=1e-9)


def test_sums_follow_labels_after_over_splits_that_fail(monkeypatch):
    monkeypatch.setattr("countless._search.refine.MANY", replace(MANY, n_clusters=8))
    for seed in range(30):
        X = blobs(seed, 400, 2)
        model = DPMeans(4.0, tol=1e-2).fit(X)
        assert model.cluster_weights_.tolist() == np.bincount(model.labels_).tolist()
        assert model.objective_ == pytest.approx(-model.score(X))


def test_directions_far_from_each_other_are_split():
    # Rows of many columns that share little have a mean much shorter than they are.
    random = np.random.RandomState(0)
    X = sp.random(400, 300, density=0.05, random_state=random, format="csr")
    X = sp.vstack([X, sp.hstack([X[:, 150:], X[:, :150]])]).tocsr()
    whole = DPMeans(1e6, divergence="cosine").fit(X).objective_ - 1e6
    model = DPMeans(5.0, divergence="cosine").fit(X)
    assert model.n_clusters_ > 5
    assert model.objective_ < whole


@pytest.mark.slow
@given(seed=st.integers(0, 10**6), penalty=st.floats(1, 50))
@settings(max_examples=25)  # fits that are refined, several each
def test_whole_weights_are_repeats_and_zero_is_absence(seed, penalty):
    X = blobs(seed, 30, 2)
    weight = np.random.RandomState(seed).randint(0, 4, 30)
    weight[:3] = 1
    weighted = DPMeans(penalty).fit(X, sample_weight=weight)
    repeated = DPMeans(penalty).fit(np.repeat(X, weight, axis=0))
    # The two start apart (a heavy row opens a cluster earlier), so they may end in different
    # optima, but near.
    assert weighted.objective_ == pytest.approx(repeated.objective_, rel=0.03)
    absent = DPMeans(penalty).fit(X[weight > 0], sample_weight=weight[weight > 0])
    assert weighted.objective_ == absent.objective_
    assert np.array_equal(weighted.labels_[weight > 0], absent.labels_)
    assert np.array_equal(weighted.labels_, weighted.predict(X))


@pytest.mark.parametrize("seed", range(5))
def test_weights_equal_repeats_with_the_penalty_chosen(seed):
    X, _ = make_blobs(60, centers=4, cluster_std=0.6, random_state=seed)
    weight = np.random.RandomState(seed).randint(0, 4, 60)
    weighted = DPMeans(random_state=0).fit(X, sample_weight=weight)
    repeated = DPMeans(random_state=0).fit(np.repeat(X, weight, axis=0))
    assert adjusted_rand_score(weighted.predict(X), repeated.predict(X)) == 1
    assert weighted.penalty_ == pytest.approx(repeated.penalty_)


@pytest.mark.slow
@given(
    seed=st.integers(0, 10**6),
    shift=st.sampled_from([0.0, 1e6]),
    unit=st.sampled_from([1, 1e-4, 1e12]),
)
@settings(max_examples=25)  # fits that are refined, several each
def test_units_and_shifts_change_nothing(seed, shift, unit):
    X = blobs(seed, 60, 3)
    plain = DPMeans(12.0).fit(X)
    moved = DPMeans(12.0 * unit**2).fit((X + shift) * unit)
    assert moved.objective_ == pytest.approx(plain.objective_ * unit**2, rel=1e-3)


def test_restarts_keep_the_best_run():
    X = load_digits().data
    one, five = (DPMeans(20_000, n_init=n, random_state=0).fit(X) for n in (1, 5))
    assert five.objective_ <= one.objective_


@pytest.mark.parametrize(("kind", "shift"), [(np.float64, 0.0), (np.float32, 40.0)])
def test_local_search_of_many_clusters_ends_exact(kind, shift):
    random = np.random.RandomState(0)
    X = (random.uniform(size=(12_000, 2)) + shift).astype(kind)
    model = DPMeans(0.002, tol=1e-4, n_jobs=1).fit(X)
    assert model.n_clusters_ > 300
    assert model.cluster_centers_.dtype == np.float64
    assert np.array_equal(model.predict(X), model.labels_)
    assignment = np.square(X[:500, None] - model.cluster_centers_).sum(axis=2).argmin(axis=1)
    assert np.array_equal(model.labels_[:500], assignment)
    cost = np.square(X - model.cluster_centers_[model.labels_]).sum()
    assert model.objective_ == pytest.approx(cost + 0.002 * model.n_clusters_)
    assert (np.diff(model.objective_history_) <= 1e-9).all()
    threaded = DPMeans(0.002, tol=1e-4, n_jobs=2).fit(X)
    assert np.array_equal(threaded.cluster_centers_, model.cluster_centers_)


@pytest.mark.parametrize("passes", [1, 4])
def test_a_local_pass_gives_rows_the_nearest_of_the_centers_around_their_own(passes, monkeypatch):
    """Whatever bounds remember of passes, splits and merges before it."""
    listed = []

    def spy(*arguments, **options):
        listed.append(list_neighbors(*arguments, **options))
        return listed[-1]

    monkeypatch.setattr("countless._search.assignment.list_neighbors", spy)
    short = replace(PRUNING, passes_a_list=passes, local_neighbors=6)
    monkeypatch.setattr("countless._search.assignment.PRUNING", short)
    monkeypatch.setattr("countless._search.nearest_centers.PRUNING", short)
    X = np.random.RandomState(0).uniform(size=(3000, 2))
    with open_rows(X, None, get_divergence("sqeuclidean")) as rows:
        assignment = Assignment(rows)
        assignment.set_labels((X[:, 0] * 40).astype(np.int32))  # centers have a long way to go
        clusters = RowClusters(assignment, 0.5)
        for turn in range(12):
            if turn % 6 == 1:
                assert clusters.split(0.2) + clusters.merge() > 0
            own = assignment.labels.copy()
            assignment.lloyd_step(local=True)
            neighbours, gaps = listed[-1][:2]
            around = np.column_stack([np.arange(assignment.n_clusters), neighbours])[own]
            distance = np.linalg.norm(X[:, None] - assignment.centers[around], axis=2)
            distance[:, 1:][gaps[own, :-1] > 2 * distance[:, :1]] = np.inf  # known to be farther
            assert np.array_equal(
                assignment.labels, around[np.arange(3000), distance.argmin(axis=1)]
            )
            assignment.drop_empty()
