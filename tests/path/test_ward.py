"""The merge tree equals SciPy's on unit weights, and a plain search on any others."""

import numpy as np
import pytest
from scipy.cluster.hierarchy import fcluster, linkage
from sklearn.metrics import adjusted_rand_score

from countless._path.ward import WardTree, ward_tree
from countless.divergences import DIVERGENCES, get_divergence

SQUARED = get_divergence("sqeuclidean")


def plain_costs(weight, total, divergence):
    """Try all pairs at every step."""
    clusters = [(w, s) for w, s in zip(weight, total, strict=True)]

    def energy(cluster):
        return divergence.energy(np.array([cluster[0]]), cluster[1][None])[0]

    costs = []
    while len(clusters) > 1:
        pairs = []
        for i, a in enumerate(clusters):
            for j, b in enumerate(clusters[:i]):
                joint = (a[0] + b[0], a[1] + b[1])
                pairs.append((energy(joint) - energy(a) - energy(b), i, j, joint))
        cost, i, j, joint = min(pairs, key=lambda pair: pair[0])
        costs.append(cost)
        clusters = [c for at, c in enumerate(clusters) if at not in (i, j)] + [joint]
    return np.array(costs)


@pytest.mark.parametrize(("m", "d"), [(2, 1), (3, 4), (40, 1), (150, 2), (120, 30)])
def test_unit_weights_give_scipys_tree(m, d):
    points = np.random.default_rng(m).standard_normal((m, d))
    tree = ward_tree(np.ones(m), points, SQUARED)
    expected = linkage(points, "ward")
    np.testing.assert_allclose(tree.cost, expected[:, 2] ** 2 / 2, rtol=1e-9)
    np.testing.assert_array_equal(tree.children, np.sort(expected[:, :2], axis=1))


@pytest.mark.parametrize("name", sorted(DIVERGENCES))
def test_weighted_merges_are_the_cheapest(name):
    generator = np.random.default_rng(4)
    divergence = get_divergence(name)
    weight = generator.uniform(0.2, 5, 14)
    rows = divergence.prepare(generator.uniform(0.05, 0.95, (14, 3)))
    tree = ward_tree(weight, weight[:, None] * rows, divergence)
    expected = plain_costs(weight, weight[:, None] * rows, divergence)
    np.testing.assert_allclose(tree.cost, expected, rtol=1e-7, atol=1e-12)


def test_a_weight_stands_for_equal_rows():
    points = np.random.default_rng(0).standard_normal((12, 2))
    weight = np.arange(1, 13)
    merged = ward_tree(weight.astype(float), weight[:, None] * points, SQUARED)
    repeated = ward_tree(np.ones(weight.sum()), np.repeat(points, weight, axis=0), SQUARED)
    np.testing.assert_allclose(repeated.cost[-11:], merged.cost, rtol=1e-9)
    np.testing.assert_allclose(repeated.cost[:-11], 0, atol=1e-12)


@pytest.mark.parametrize("k", [1, 2, 7, 60])
def test_cut_gives_scipys_clusters(k):
    points = np.random.default_rng(1).standard_normal((60, 3))
    labels = ward_tree(np.ones(60), points, SQUARED).cut(60 - k)
    expected = fcluster(linkage(points, "ward"), k, "maxclust")
    assert adjusted_rand_score(labels, expected) == 1.0
    _, first = np.unique(labels, return_index=True)
    assert (np.diff(first) > 0).all(), "numbered by first appearance"


def test_heights_never_fall():
    tree = WardTree(np.array([[0, 1], [2, 3], [4, 5]]), np.array([1.0, 5.0, 4.0]))
    assert tree.height.tolist() == [1.0, 5.0, 5.0]


def test_one_item_is_a_tree():
    tree = ward_tree(np.ones(1), np.zeros((1, 2)), SQUARED)
    assert tree.n_items == 1
    assert tree.cut(0).tolist() == [0]
