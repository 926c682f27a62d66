"""Where to cut any linkage."""

from importlib.util import find_spec

import numpy as np
import pytest
from scipy.cluster.hierarchy import cut_tree, fcluster, linkage
from sklearn.datasets import make_blobs

from countless import DivisiveClustering, LinkageClustering, cut_gap
from countless._labels import number_by_appearance
from countless._path.levels import REFINEMENT
from countless._tree.gap import TreeCut, measure_levels
from countless._tree.pairs import Pairs
from countless.kernels.path import weight_near_border

METHODS = ["single", "complete", "average", "weighted", "centroid", "median", "ward"]


@pytest.mark.parametrize("method", METHODS)
def test_every_linkage_of_blobs_is_cut_at_the_blobs(method):
    X, truth = make_blobs(150, centers=5, n_features=4, cluster_std=0.7, random_state=4)
    tree = linkage(X, method)
    for rows in (X, None):
        cut = cut_gap(tree, rows, method=method, random_state=0)
        assert cut.n_clusters == 5
        np.testing.assert_array_equal(cut.labels, number_by_appearance(truth)[1])
        assert 0 < cut.confidence <= 1


def test_labels_are_those_of_scipy_at_every_height():
    X = np.random.default_rng(0).normal(size=(50, 2))
    tree = linkage(X, "average")
    cut = cut_gap(tree, X, random_state=0)
    for height in np.quantile(tree[:, 2], [0.2, 0.5, 0.9]):
        expected = fcluster(tree, height, "distance")
        np.testing.assert_array_equal(cut.labels_at(height), number_by_appearance(expected)[1])
    for plateau in cut.plateaus[1:4]:
        expected = cut_tree(tree, plateau.n_clusters).ravel()
        middle = np.sqrt(plateau.low * plateau.high)
        np.testing.assert_array_equal(cut.labels_at(middle), number_by_appearance(expected)[1])


@pytest.mark.parametrize("d", [1, 2, 12])
def test_structureless_rows_stay_together(d):
    random = np.random.default_rng(d)
    for X in (random.normal(size=(150, d)), random.uniform(size=(150, d))):
        tree = linkage(X, "average")
        assert cut_gap(tree, X, random_state=0).n_clusters == 1
        assert cut_gap(tree, random_state=0).n_clusters == 1


def test_a_dissimilarity_matrix_gives_the_clusters_of_its_rows():
    X, _ = make_blobs(90, centers=3, cluster_std=0.5, random_state=0)
    distance = np.abs(X[:, None] - X).sum(axis=2)
    tree = linkage(distance[np.triu_indices(90, 1)], "complete")
    known = cut_gap(tree, distance, method="complete", metric="precomputed", random_state=0)
    rows = cut_gap(tree, X, method="complete", metric="cityblock", random_state=0)
    assert known.n_clusters == rows.n_clusters == 3


def test_equal_rows_and_few_rows():
    repeated = np.repeat([[0.0, 0.0], [5.0, 0.0], [0.0, 5.0]], 12, axis=0)
    assert cut_gap(linkage(repeated, "average"), repeated, random_state=0).n_clusters == 3
    same = np.ones((12, 2))
    assert cut_gap(linkage(same, "average"), same, random_state=0).n_clusters == 1
    pair = cut_gap(linkage([[0.0], [1.0]], "average"))
    assert (pair.n_clusters, pair.confidence) == (1, 0.0)
    assert isinstance(pair, TreeCut)
    assert "n_clusters=1" in repr(pair)


@pytest.mark.parametrize(
    "model", [LinkageClustering("average"), LinkageClustering("ward"), DivisiveClustering()]
)
def test_distant_points_of_many_copies_are_clusters(model):
    for points in (
        [[0.0, 0.0], [10.0, 0.0], [0.0, 10.0], [10.0, 10.0]],
        [[0.0, 0.0], [8.0, 1.0], [1.0, 9.0], [10.0, 11.0]],
    ):
        rows = np.repeat(points, 30, axis=0)
        np.testing.assert_array_equal(model.fit(rows).labels_, np.repeat(np.arange(4), 30))


@pytest.mark.parametrize("method", ["average", "single", "ward"])
def test_a_few_far_rows_are_no_second_cluster(method):
    random = np.random.default_rng(0)
    X = np.vstack([random.normal(size=(200, 3)), [[40.0, 0, 0], [0, -60.0, 0]]])
    assert cut_gap(linkage(X, method), X, method=method).n_clusters == 1


def test_the_answer_does_not_depend_on_the_seed():
    X, _ = make_blobs(150, centers=5, cluster_std=1.4, random_state=1)
    tree = linkage(X, "average")
    first, second = (cut_gap(tree, X, random_state=seed) for seed in (0, 1))
    assert first.plateaus == second.plateaus


@pytest.mark.parametrize("method", ["ward", "average"])
def test_levels_are_measured_by_dissimilarities_as_by_means(method):
    X, _ = make_blobs(60, centers=4, n_features=3, random_state=0)
    tree = linkage(X, method)
    levels = measure_levels(tree, method, Pairs.of_rows(X, "euclidean"), 6)
    cost = []
    for k in range(1, 7):
        labels = cut_tree(tree, k).ravel()
        parts = [X[labels == label] for label in range(k)]
        cost.append(sum(np.square(part - part.mean(axis=0)).sum() for part in parts))
    np.testing.assert_allclose(levels.cost, 60 * np.array(cost) / cost[0], rtol=1e-9)
    labels = cut_tree(tree, 4).ravel()
    means = np.array([X[labels == label].mean(axis=0) for label in range(4)])
    apart = np.square(means[:, None] - means).sum(axis=2)
    to_means = np.square(X[:, None] - means).sum(axis=2)
    near = weight_near_border(to_means, np.ones(60), apart, REFINEMENT.border_reach)
    assert levels.separation is not None
    assert levels.separation[2] == pytest.approx(-np.log((near + 0.5) / 61))


def test_fastcluster_gives_the_same_or_an_error_names_it():
    X, _ = make_blobs(60, centers=3, random_state=0)
    model = LinkageClustering("complete", engine="fastcluster", random_state=0)
    if find_spec("fastcluster") is None:
        with pytest.raises(ImportError, match=r"pip install .countless\[fastcluster\]"):
            model.fit(X)
        return
    expected = LinkageClustering("complete", random_state=0).fit(X)
    np.testing.assert_allclose(model.fit(X).linkage_matrix_, expected.linkage_matrix_)


def test_bad_trees_and_rows_are_refused():
    X = np.arange(12.0).reshape(6, 2)
    tree = linkage(X, "average")
    with pytest.raises(ValueError, match="the tree has 6 rows, and X has 5"):
        cut_gap(tree, X[:5])
    with pytest.raises(ValueError, match="linkage"):
        cut_gap(tree[:, :3], X)
