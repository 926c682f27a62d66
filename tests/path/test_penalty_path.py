"""The path: exact for its tree, the same for equal inputs, and sensible on the smallest tables."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.cluster.hierarchy import linkage
from sklearn.datasets import make_blobs

from countless._data import open_rows
from countless._path.micro import CORESET, micro_clusters, sample_positions
from countless._path.penalty import Fitted, penalty_path
from countless.divergences import DIVERGENCES, get_divergence


def objective(X, labels, penalty, weight=None):
    weight = np.ones(len(X)) if weight is None else weight
    cost = 0.0
    for label in np.unique(labels):
        rows, own = X[labels == label], weight[labels == label]
        cost += own @ ((rows - np.average(rows, axis=0, weights=own)) ** 2).sum(axis=1)
    return cost + penalty * len(np.unique(labels))


@pytest.fixture(scope="module")
def blobs():
    return make_blobs(240, centers=4, n_features=3, random_state=5)[0]


@pytest.fixture(scope="module")
def long_table():
    return make_blobs(4000, centers=7, n_features=4, cluster_std=0.6, random_state=2)[0]


def test_every_number_of_clusters_costs_at_most_what_the_tree_says(blobs):
    path = penalty_path(blobs)
    height = linkage(blobs, "ward")[:, 2] ** 2 / 2
    for penalty in path.breakpoints:
        k = path.n_clusters_at(penalty)
        cost = path.objective_at(penalty) - penalty * k
        assert cost <= height[: len(blobs) - k].sum() * (1 + 1e-9)
    assert path.breakpoints[-1] >= height[-1] * (1 - 1e-9)  # two clusters save more when refined


@pytest.mark.parametrize("table", ["blobs", "long_table"])
def test_labels_objective_and_k_agree_at_every_penalty(table, request):
    X = request.getfixturevalue(table)
    weight = np.random.default_rng(0).uniform(0.5, 2, len(X))
    path = penalty_path(X, sample_weight=weight, random_state=0)
    refined = path.breakpoints[-15:]
    for penalty in [*refined[-6:], *(refined * 1.0001), 1e12]:
        labels = path.labels_at(penalty)
        assert len(np.unique(labels)) == path.n_clusters_at(penalty)
        expected = objective(X, labels, penalty, weight)
        assert path.objective_at(penalty) == pytest.approx(expected, rel=1e-9)
        assert labels[0] == 0


def test_k_changes_at_breakpoints_only(blobs):
    path = penalty_path(blobs, random_state=0)
    after = path.n_clusters_at(0.0)
    assert after == len(blobs)
    for penalty in path.breakpoints:
        assert path.n_clusters_at(np.nextafter(penalty, 0)) == after
        assert path.n_clusters_at(penalty) < after
        after = path.n_clusters_at(penalty)
    assert after == 1


def test_penalty_for_is_the_middle_of_the_interval(blobs):
    path = penalty_path(blobs, random_state=0)
    for plateau in path.plateaus:
        k = plateau.n_clusters
        assert path.n_clusters_at(path.penalty_for(k)) == k
    plateau = next(plateau for plateau in path.plateaus if plateau.n_clusters == 4)
    assert path.penalty_for(4) == pytest.approx(np.sqrt(plateau.low * plateau.high))
    assert plateau.width == pytest.approx(np.log(plateau.high / plateau.low))


def test_no_partition_is_better_than_one_cluster_at_its_penalty():
    X = np.array([[0.0], [1.0], [3.0], [7.0]])
    path = penalty_path(X, random_state=0)
    one = path.penalty_for(1)
    assert path.n_clusters_at(one) == 1
    for pattern in range(1, 8):
        labels = np.array([pattern >> bit & 1 for bit in range(4)])
        assert objective(X, labels, one) > path.objective_at(one)


@pytest.mark.parametrize("k", [0, 241, -1])
def test_a_k_that_is_not_on_the_path_is_named(blobs, k):
    with pytest.raises(ValueError, match=f"n_clusters={k} is not on the path, which has 1 to 240"):
        penalty_path(blobs, random_state=0).penalty_for(k)


@pytest.mark.parametrize("penalty", [-1.0, np.nan])
def test_a_negative_penalty_is_refused(blobs, penalty):
    with pytest.raises(ValueError, match="penalty must be at least 0"):
        penalty_path(blobs, random_state=0).n_clusters_at(penalty)


def test_the_chosen_plateau_comes_first_and_scores_order_the_rest(blobs):
    path = penalty_path(blobs, random_state=0)
    assert path.n_clusters == path.plateaus[0].n_clusters == 4
    assert path.penalty == path.penalty_for(4)
    assert 0 < path.confidence < 1
    scores = [plateau.score for plateau in path.plateaus[1:]]
    assert scores == sorted(scores, reverse=True)
    assert "n_clusters=4" in repr(path)


def test_a_better_clustering_takes_others_off_the_path(blobs):
    path = penalty_path(blobs)
    lowest = path.objective_at(0.0)
    path = path.with_fit(Fitted(6, path.penalty_for(4), lowest, path.labels_at(0.0)))
    assert path.interval(5) is None
    assert path.plateaus[0].n_clusters == 6
    assert 5 not in {plateau.n_clusters for plateau in path.plateaus}
    assert 0 <= path.confidence <= 1


def test_units_and_shifts_change_nothing(blobs):
    path = penalty_path(blobs, random_state=0)
    moved = penalty_path(1000 * blobs + 5e4, random_state=0)
    assert moved.n_clusters == path.n_clusters
    assert moved.penalty == pytest.approx(1e6 * path.penalty, rel=1e-6)
    assert moved.confidence == pytest.approx(path.confidence, abs=1e-6)


@pytest.mark.parametrize("table", ["blobs", "long_table"])
def test_a_rotation_changes_little(table, request):
    X = request.getfixturevalue(table)
    turn = np.linalg.qr(np.random.default_rng(1).standard_normal((X.shape[1], X.shape[1])))[0]
    assert penalty_path(X @ turn, random_state=0).n_clusters == penalty_path(X).n_clusters


def test_the_order_of_rows_changes_nothing_in_a_short_table(blobs):
    order = np.random.default_rng(3).permutation(len(blobs))
    path, shuffled = (penalty_path(X, random_state=0) for X in (blobs, blobs[order]))
    np.testing.assert_allclose(shuffled.breakpoints, path.breakpoints, rtol=1e-9)
    assert shuffled.n_clusters == path.n_clusters
    assert shuffled.confidence == pytest.approx(path.confidence, abs=1e-6)


def test_the_order_of_rows_keeps_k_in_a_long_table(long_table):
    order = np.random.default_rng(3).permutation(len(long_table))
    assert penalty_path(long_table[order], random_state=0).n_clusters == 7


def test_weights_equal_repeats(blobs):
    weight = np.random.default_rng(1).integers(0, 4, len(blobs))
    weighted = penalty_path(blobs, sample_weight=weight, random_state=0)
    repeated = penalty_path(np.repeat(blobs, weight, axis=0), random_state=0)
    np.testing.assert_allclose(weighted.breakpoints, repeated.breakpoints, rtol=1e-9)
    assert weighted.n_clusters == repeated.n_clusters
    assert weighted.confidence == pytest.approx(repeated.confidence, abs=1e-6)


def test_a_row_without_weight_has_a_label_and_changes_no_breakpoint(blobs):
    X = np.vstack([blobs, [[1e3, 1e3, 1e3]]])
    weight = np.append(np.ones(len(blobs)), 0)
    path = penalty_path(X, sample_weight=weight, random_state=0)
    np.testing.assert_allclose(path.breakpoints, penalty_path(blobs, random_state=0).breakpoints)
    assert path.labels_at(path.penalty)[-1] in range(4)


def test_the_seed_decides_and_threads_do_not(long_table):
    first, again, threads = (
        penalty_path(long_table, random_state=7, n_jobs=n_jobs) for n_jobs in (1, 1, 2)
    )
    for other in (again, threads):
        np.testing.assert_array_equal(first.breakpoints, other.breakpoints)
        np.testing.assert_array_equal(first.labels_at(5.0), other.labels_at(5.0))
        assert first.plateaus == other.plateaus


def test_sparse_rows_give_the_dense_path(blobs):
    dense = penalty_path(blobs, random_state=0)
    sparse = penalty_path(sp.csr_matrix(blobs), random_state=0)
    np.testing.assert_allclose(sparse.breakpoints, dense.breakpoints, rtol=1e-6, atol=1e-9)
    assert sparse.n_clusters == dense.n_clusters


def test_float32_gives_the_same_k(long_table):
    assert penalty_path(long_table.astype(np.float32), random_state=0).n_clusters == 7


@pytest.mark.parametrize("n_rows", [300, CORESET.few_rows + 500])
@pytest.mark.parametrize("name", sorted(DIVERGENCES))
def test_every_divergence_has_a_path(name, n_rows):
    generator = np.random.default_rng(0)
    centers = np.array([[0.9, 0.1, 0.1], [0.1, 0.9, 0.1], [0.1, 0.1, 0.9]])
    X = np.clip(centers[np.arange(n_rows) % 3] + generator.normal(0, 0.02, (n_rows, 3)), 0.01, 0.99)
    path = penalty_path(X, divergence=name, random_state=0)
    assert path.n_clusters == 3
    labels = path.labels_at(path.penalty)
    np.testing.assert_array_equal(labels, np.arange(n_rows) % 3)
    divergence = get_divergence(name)
    rows = divergence.prepare(X)
    total = np.stack([rows[labels == label].sum(axis=0) for label in range(3)])
    energy = divergence.energy(np.bincount(labels).astype(float), total)
    expected = divergence.row_cost(rows).sum() + energy.sum() + 3 * path.penalty
    assert path.objective_at(path.penalty) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("n_rows", [1, 2, 3])
def test_too_few_rows_are_one_cluster(n_rows):
    path = penalty_path(np.arange(n_rows, dtype=float)[:, None], random_state=0)
    assert path.n_clusters == 1
    assert path.n_clusters_at(path.penalty) == 1
    assert path.penalty > 0
    assert path.confidence == (1.0 if n_rows == 1 else 0.0)


@pytest.mark.parametrize("n_rows", [5, 50, CORESET.few_rows + 200])
def test_equal_rows_are_one_cluster(n_rows):
    path = penalty_path(np.full((n_rows, 2), 3.7), random_state=0)
    assert path.n_clusters == 1
    assert path.breakpoints.size == 0
    assert path.penalty > 0
    assert path.confidence == 1.0


@pytest.mark.parametrize("n_rows", [20, 60, CORESET.few_rows + 200])
def test_two_values_are_two_clusters(n_rows):
    X = np.repeat([[0.0, 1.0], [4.0, 2.0]], n_rows // 2, axis=0)
    path = penalty_path(X, random_state=0)
    assert path.n_clusters == 2
    np.testing.assert_array_equal(path.labels_at(path.penalty), np.repeat([0, 1], n_rows // 2))


def test_counts_are_not_one_cluster_for_each_value():
    X = np.random.default_rng(0).poisson(12, (900, 1)).astype(float)
    assert penalty_path(X, random_state=0).n_clusters == 1


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_rows_that_are_no_numbers_are_refused(bad):
    with pytest.raises(ValueError, match=r"X contains (NaN|infinity): row 1, column 0"):
        penalty_path([[1.0], [bad]])


def test_an_unknown_divergence_is_named():
    with pytest.raises(ValueError, match="divergence must be one of"):
        penalty_path(np.eye(3), divergence="manhattan")


def test_a_path_can_be_pickled(blobs):
    path = penalty_path(blobs, random_state=0)
    assert pickle.loads(pickle.dumps(path)).plateaus == path.plateaus


def test_micro_clusters_count_every_row(long_table):
    weight = np.random.default_rng(0).integers(0, 3, len(long_table)).astype(float)
    with open_rows(long_table, weight, get_divergence("sqeuclidean")) as rows:
        items = micro_clusters(rows, seed=1)
    np.testing.assert_allclose(items.weight, np.bincount(items.labels, weights=weight))
    for column in range(long_table.shape[1]):
        sums = np.bincount(items.labels, weights=weight * long_table[:, column])
        np.testing.assert_allclose(
            items.total[:, column] + items.weight * items.origin[column], sums
        )
    assert (items.weight > 0).all()
    assert items.within > 0


def test_heavy_rows_are_sampled_more_often():
    weight = np.repeat([1.0, 9.0, 0.0], 1000)
    drawn = sample_positions(weight, 500, seed=3)
    assert len(np.unique(drawn)) == 500
    share = np.bincount(drawn // 1000, minlength=3) / 500
    assert share[1] == pytest.approx(0.88, abs=0.05)
    assert share[2] == 0
    assert not np.array_equal(drawn, sample_positions(weight, 500, seed=4))
