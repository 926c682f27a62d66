"""Trees from the top: R's answers, plain recursions, SciPy's trees, and where they are cut."""

import csv
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.cluster.hierarchy import is_monotonic, is_valid_linkage, linkage
from scipy.sparse.csgraph import minimum_spanning_tree
from sklearn.cluster import BisectingKMeans
from sklearn.datasets import load_iris, load_wine, make_blobs, make_circles
from sklearn.metrics import adjusted_rand_score

from countless import DivisiveClustering, LinkageClustering
from countless._tree import join
from countless._tree.divide import diana
from countless._tree.splits import linkage_of_splits
from countless._tree.stop import spread_of_merges
from countless.dissimilarity import dissimilarities

# order and height of cluster::diana 2.1.4; iris in whole millimetres, so that ties are exact.
R_DIANA = Path(__file__).with_name("r_diana.csv")
TABLES = {
    "iris_millimetres": lambda: np.round(10 * load_iris().data),
    "wine": lambda: load_wine().data,
}


def r_answers():
    with R_DIANA.open(newline="") as file:
        return [
            pytest.param(line, id=f"{line['set']}-{line['metric']}")
            for line in csv.DictReader(file)
        ]


@pytest.mark.parametrize("answer", r_answers())
def test_diana_equals_r(answer):
    splits = diana(dissimilarities(TABLES[answer["set"]](), metric=answer["metric"]))
    np.testing.assert_array_equal(splits.order, np.array(answer["order"].split(), dtype=int))
    height = np.empty(len(splits.height))  # R tells the height between neighbours of its order
    height[splits.middle - 1] = splits.height
    np.testing.assert_allclose(height, np.array(answer["height"].split(), dtype=float), rtol=1e-11)


def plain_diana(distance, rows):
    """Split as the book says, every average recomputed; return the clusters of the tree."""
    if len(rows) == 1:
        return set()
    rest, splinter = list(rows), []
    sums = [distance[i, rows].sum() for i in rest]
    best = int(np.argmax(sums))
    while best >= 0:
        splinter.append(rest.pop(best))
        if len(rest) == 1:
            break
        gains = [
            distance[i, rest].sum() / (len(rest) - 1) - distance[i, splinter].mean() for i in rest
        ]
        best = int(np.argmax(gains)) if max(gains) > 0 else -1
    return (
        {frozenset(rows)}
        | plain_diana(distance, sorted(rest))
        | plain_diana(distance, sorted(splinter))
    )


def clusters_of(tree):
    """Return the sets of rows that a linkage matrix makes, and their heights."""
    n = len(tree) + 1
    members = {i: frozenset([i]) for i in range(n)}
    for merge, (a, b, _, _) in enumerate(tree):
        members[n + merge] = members[int(a)] | members[int(b)]
    return {members[n + merge]: height for merge, height in enumerate(tree[:, 2])}


# Integers: sums are exact, so that ties are ties in both.
@settings(max_examples=25)
@given(st.data())
def test_diana_is_the_plain_recursion(data):
    n = data.draw(st.integers(1, 14))
    upper = data.draw(st.lists(st.integers(0, 9), min_size=n * n, max_size=n * n))
    distance = np.triu(np.array(upper, dtype=float).reshape(n, n), 1)
    distance += distance.T
    tree = linkage_of_splits(diana(distance))
    found = clusters_of(tree)
    assert set(found) == plain_diana(distance, list(range(n)))
    for rows, height in found.items():
        assert height == max(distance[i, j] for i, j in combinations(rows, 2))
    if n > 1:
        assert is_valid_linkage(tree)
        assert is_monotonic(tree)


def test_diana_keeps_its_digits_where_sums_shrink():
    # A tight group far inside a wide one: what is left of the sums is less than their rounding was.
    random = np.random.default_rng(0)
    X = np.concatenate([1e5 * random.normal(size=(40, 2)), 1e-8 * random.normal(size=(40, 2))])
    distance = dissimilarities(X, metric="euclidean")
    found = clusters_of(linkage_of_splits(diana(distance)))
    assert set(found) == plain_diana(distance, list(range(80)))


def test_spanning_tree_is_single_linkage():
    X = np.random.default_rng(1).normal(size=(60, 3))
    model = DivisiveClustering("mst", metric="cityblock", n_clusters=5).fit(X)
    distance = dissimilarities(X, metric="cityblock")
    expected = minimum_spanning_tree(distance).data
    np.testing.assert_allclose(model.linkage_matrix_[:, 2], np.sort(expected))
    single = linkage(X, "single", metric="cityblock")
    assert set(clusters_of(model.linkage_matrix_)) == set(clusters_of(single))
    known = DivisiveClustering("mst", metric="precomputed", n_clusters=5).fit(distance)
    np.testing.assert_array_equal(model.labels_, known.labels_)


def test_bisecting_splits_the_largest_inertia_with_kmeans():
    X, _ = make_blobs(120, centers=5, cluster_std=0.6, random_state=0)
    model = DivisiveClustering("bisecting", n_clusters=5, random_state=0).fit(X)
    tree = model.linkage_matrix_
    assert is_valid_linkage(tree)
    assert is_monotonic(tree)
    inertia = sum(
        np.square(X[model.labels_ == c] - X[model.labels_ == c].mean(0)).sum() for c in range(5)
    )
    peer = min(BisectingKMeans(5, random_state=seed).fit(X).inertia_ for seed in range(5))
    assert inertia < 1.3 * peer
    assert tree[-1, 2] == pytest.approx(np.square(X - X.mean(axis=0)).sum())
    equal = DivisiveClustering("bisecting", n_clusters=2).fit(np.repeat([[0.0], [1.0]], 5, axis=0))
    assert equal.labels_.tolist() == [0] * 5 + [1] * 5
    assert (equal.linkage_matrix_[:-1, 2] == 0).all()


@pytest.mark.parametrize("method", ["diana", "mst", "bisecting"])
def test_stopping_rules_bound_the_spread_or_number_of_clusters(method):
    X, _ = make_blobs(40, centers=4, random_state=0)
    distance = dissimilarities(X, metric="euclidean")

    def spreads(labels):
        for label in np.unique(labels):
            within = distance[np.ix_(labels == label, labels == label)]
            n = len(within)
            yield within.max(), within.sum() / max(1, n * (n - 1))

    model = DivisiveClustering(method, max_diameter=3.0, random_state=0).fit(X)
    assert max(widest for widest, _ in spreads(model.labels_)) <= 3
    wide = spread_of_merges(model.linkage_matrix_, distance)
    parents = clusters_of(model.linkage_matrix_)
    assert wide.diameter[-1] == distance.max()
    # No cluster could have been left whole: the smallest that holds it is too wide.
    for label in np.unique(model.labels_):
        rows = frozenset(np.flatnonzero(model.labels_ == label).tolist())
        above = min((c for c in parents if c > rows), key=len)
        assert distance[np.ix_(sorted(above), sorted(above))].max() > 3
    model = DivisiveClustering(method, max_dissimilarity=1.5, random_state=0).fit(X)
    assert max(mean for _, mean in spreads(model.labels_)) <= 1.5
    assert DivisiveClustering(method, n_clusters=40, random_state=0).fit(X).n_clusters_ == 40


@pytest.mark.parametrize(
    "model",
    [
        DivisiveClustering(),
        DivisiveClustering("mst"),
        DivisiveClustering("bisecting"),
        LinkageClustering(),
        LinkageClustering("complete"),
        LinkageClustering("ward"),
    ],
    ids=lambda model: model.method,
)
def test_the_gap_finds_clusters_and_no_structure(model):
    model.set_params(random_state=0)
    X, truth = make_blobs(200, centers=7, n_features=6, random_state=1)
    assert adjusted_rand_score(truth, model.fit_predict(X)) > 0.98
    assert model.path_.confidence > 0.3
    cloud = np.random.default_rng(0).normal(size=(200, 2)) @ [[1.0, 0.4], [0.0, 0.5]]
    assert model.fit(cloud).n_clusters_ == 1
    assert not hasattr(model.set_params(n_clusters=3).fit(cloud), "path_")


def test_rings_need_a_spanning_tree():
    X, ring = make_circles(300, noise=0.05, factor=0.4, random_state=0)
    assert adjusted_rand_score(ring, DivisiveClustering("mst", random_state=0).fit_predict(X)) == 1


@pytest.mark.parametrize("metric", ["euclidean", "precomputed"])
def test_rows_of_small_clusters_join_the_nearest_large_one(metric):
    X, y = make_circles(300, factor=0.4, noise=0.02, random_state=0)
    X = np.vstack([X, [[2.0, 0.0], [2.1, 0.0], [0.05, 0.0]]])
    rows = X if metric == "euclidean" else dissimilarities(X)
    as_cut = DivisiveClustering("mst", metric=metric).fit(rows)
    assert as_cut.n_clusters_ == as_cut.path_.n_clusters > 2
    model = DivisiveClustering("mst", metric=metric, min_cluster_size=10).fit(rows)
    assert adjusted_rand_score(y, model.labels_[:300]) == 1.0
    nearest = [np.linalg.norm(X[:300] - row, axis=1).argmin() for row in X[300:]]
    assert model.labels_[300:].tolist() == model.labels_[nearest].tolist()
    assert not hasattr(model, "path_")  # it would count the outliers
    assert adjusted_rand_score(model.predict(rows), model.labels_) == 1.0
    none = DivisiveClustering("mst", metric=metric, min_cluster_size=301).fit(rows)
    assert none.n_clusters_ == 1


def test_matrices_and_rows_give_the_same_tree():
    X, _ = make_blobs(80, centers=3, cluster_std=0.5, random_state=0)
    rows = DivisiveClustering(random_state=0).fit(X)
    known = DivisiveClustering(metric="precomputed", random_state=0).fit(
        dissimilarities(X, metric="euclidean")
    )
    np.testing.assert_array_equal(rows.linkage_matrix_, known.linkage_matrix_)
    np.testing.assert_array_equal(rows.labels_, known.labels_)


@pytest.mark.parametrize("value", [0.0, 7.0])
def test_equal_rows_are_one_cluster(value):
    methods = ("diana", "mst", "bisecting")
    for model in (*map(DivisiveClustering, methods), LinkageClustering()):
        assert model.fit(np.full((9, 2), value)).n_clusters_ == 1
        assert model.fit([[value]]).labels_.tolist() == [0]


@pytest.mark.parametrize("scale", [1e-150, 1e150])
@pytest.mark.parametrize("metric", ["euclidean", "sqeuclidean", "precomputed"])
def test_units_do_not_matter(metric, scale):
    X, truth = make_blobs(30, centers=3, cluster_std=0.5, random_state=3)
    X *= scale
    if metric == "precomputed":
        X = dissimilarities(X, metric="sqeuclidean")
    for method in ("diana", "mst") if metric != "euclidean" else ("diana", "mst", "bisecting"):
        model = DivisiveClustering(method, metric=metric, random_state=0).fit(X)
        assert adjusted_rand_score(truth, model.labels_) == 1, method


def test_rows_too_far_apart_are_named():
    X = np.array([[0.0], [1.0], [1e200]])
    for method in ("diana", "mst"):
        with pytest.raises(ValueError, match="row 0 and row 2 are too far apart for float64"):
            DivisiveClustering(method).fit(X)
    with pytest.raises(ValueError, match="too far apart"):
        DivisiveClustering("bisecting").fit(X)


@pytest.mark.parametrize("method", ["diana", "mst", "bisecting"])
def test_weights_of_columns_scale_them_and_can_be_named(method):
    X = np.random.default_rng(0).normal(size=(30, 3))
    weights = [4.0, 1.0, 0.0]
    scaled = DivisiveClustering(method, n_clusters=4, random_state=0).fit(X * np.sqrt(weights))
    model = DivisiveClustering(method, n_clusters=4, random_state=0)
    frame = pd.DataFrame(X, columns=[2, 0, 1])
    for table, weights_given in ((X, weights), (frame, {2: 4.0, 1: 0.0})):
        model.set_params(metric_params={"weights": weights_given}).fit(table)
        np.testing.assert_allclose(model.linkage_matrix_, scaled.linkage_matrix_, atol=1e-12)


NEAR = {
    "diana": np.mean,
    "mst": np.min,
    "average": np.mean,
    "weighted": np.mean,
    "single": np.min,
    "complete": np.max,
}


@pytest.mark.parametrize("metric", ["cityblock", "precomputed", "mixed"])
@pytest.mark.parametrize("method", NEAR)
def test_new_rows_join_the_nearest_cluster(method, metric, monkeypatch):
    monkeypatch.setattr(join, "BLOCK_VALUES", 100)  # several blocks
    random = np.random.default_rng(1)
    X, new = (pd.DataFrame(random.normal(size=(n, 3)), columns=[*"xyz"]) for n in (40, 9))
    for table in (X, new) if metric == "mixed" else ():
        table["kind"] = np.where(table["x"] > 0, "a", "b")
    made = DivisiveClustering if method in ("diana", "mst") else LinkageClustering
    model = made(method, metric=metric, n_clusters=5)
    known = metric if metric == "mixed" else "cityblock"
    between = dissimilarities(X, new, metric=known).T
    if metric == "precomputed":
        model.fit(dissimilarities(X, metric=known))
        found = model.predict(between)
    else:
        found = model.fit(X).predict(new)
    clusters = [np.flatnonzero(model.labels_ == cluster) for cluster in range(5)]
    near = np.array([NEAR[method](between[:, rows], axis=1) for rows in clusters])
    np.testing.assert_array_equal(found, near.argmin(axis=0))


@pytest.mark.parametrize("model", [DivisiveClustering("bisecting"), LinkageClustering("ward")])
def test_new_rows_join_the_nearest_mean(model):
    random = np.random.default_rng(1)
    X, new = random.normal(size=(40, 3)), random.normal(size=(9, 3))
    model.set_params(n_clusters=5, metric_params={"weights": [4.0, 1.0, 0.0]}).fit(X)
    means = np.array([X[model.labels_ == cluster].mean(axis=0) for cluster in range(5)])
    squares = (new[:, None] - means) ** 2 @ [4.0, 1.0, 0.0]
    np.testing.assert_array_equal(model.predict(new), squares.argmin(axis=1))


def test_new_rows_are_checked():
    model = LinkageClustering("ward", metric="precomputed", n_clusters=2).fit(1.0 - np.eye(4))
    with pytest.raises(ValueError, match="'ward' joins rows to means: predict needs rows"):
        model.predict(np.ones((1, 4)))
    model = DivisiveClustering(n_clusters=2).fit(np.eye(4))
    with pytest.raises(ValueError, match="has 3 features"):
        model.predict(np.ones((1, 3)))
    with pytest.raises(ValueError, match="row 1, column 0"):
        model.predict([[0.0, 0.0, 0.0, 0.0], [np.nan, 0.0, 0.0, 0.0]])


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"method": "agnes"}, "method must be one of 'diana', 'mst', 'bisecting'; got 'agnes'"),
        ({"metric": "taxi"}, "metric must be one of .*; got 'taxi'"),
        ({"n_clusters": 0}, "n_clusters must be an integer of at least 1; got 0"),
        ({"n_clusters": 9}, "n_clusters=9, and X has 4 rows"),
        ({"min_cluster_size": 0}, "min_cluster_size must be an integer of at least 1; got 0"),
        ({"max_diameter": -1}, "max_diameter must be None or a number of at least 0; got -1"),
        ({"n_clusters": 2, "max_diameter": 1}, "give n_clusters or max_diameter, not both"),
        ({"n_clusters": True}, "n_clusters must be an integer"),
        ({"metric_params": {"p": 3}}, "metric_params must be None or a mapping of weights, kinds"),
        ({"metric": "precomputed", "metric_params": {"dtype": float}}, "metric_params is for rows"),
        ({"method": "bisecting", "metric": "mixed"}, "bisecting k-means needs Euclidean rows"),
    ],
)
def test_parameters_are_checked(parameters, message):
    with pytest.raises(ValueError, match=message):
        DivisiveClustering(**parameters).fit(np.eye(4))


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ((0, 1, 5.0), "symmetric; row 1, column 0 is 1 and row 0, column 1 is 5"),
        ((2, 2, 1.0), "row 2 differs from itself"),
        ((1, 0, -1.0), "at least 0; row 1, column 0 is -1"),
        ((1, 2, np.nan), "row 1, column 2"),
    ],
)
def test_matrices_are_checked(entry, message):
    distance = np.ones((3, 3)) - np.eye(3)
    distance[entry[:2]] = entry[2]
    with pytest.raises(ValueError, match=message):
        DivisiveClustering(metric="precomputed").fit(distance)
