"""Levels: refined clusterings, never worse than the tree's, and the figures that describe them."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.cluster import KMeans
from sklearn.datasets import make_blobs

from countless._path.levels import (
    REFINEMENT,
    Points,
    Resolution,
    convex_gains,
    describe_levels,
    refine_levels,
    separation,
)
from countless._path.ward import ward_tree
from countless.divergences import DIVERGENCES, get_divergence

EUCLIDEAN = get_divergence("sqeuclidean")


def levels_of(X, weight=None, highest=8, divergence=EUCLIDEAN):
    weight = np.ones(len(X)) if weight is None else weight
    points = Points(X, weight, divergence)
    tree = ward_tree(weight, weight[:, None] * X, divergence)
    return points, tree, refine_levels(points, tree, highest)


def cost_of(X, weight, labels):
    cost = 0.0
    for label in np.unique(labels):
        rows, own = X[labels == label], weight[labels == label]
        cost += own @ ((rows - np.average(rows, axis=0, weights=own)) ** 2).sum(axis=1)
    return cost


@settings(max_examples=30, deadline=None)
@given(
    n=st.integers(9, 60),
    d=st.integers(1, 5),
    seed=st.integers(0, 10**6),
    weighted=st.booleans(),
)
def test_costs_are_those_of_the_labels_and_at_most_the_trees(n, d, seed, weighted):
    generator = np.random.default_rng(seed)
    X = generator.normal(size=(n, d))
    weight = generator.uniform(0.2, 3.0, n) if weighted else np.ones(n)
    _, tree, levels = levels_of(X, weight)
    for k, level in enumerate(levels, start=1):
        assert level.cost == pytest.approx(cost_of(X, weight, level.labels), abs=1e-9)
        assert level.cost <= cost_of(X, weight, tree.cut(n - k)) + 1e-9
        np.testing.assert_allclose(level.weight, np.bincount(level.labels, weight))


def test_k_means_hardly_improves_levels():
    X, _ = make_blobs(200, centers=6, random_state=1)
    _, _, levels = levels_of(X)
    for k in range(2, 9):
        level = levels[k - 1]
        centers = level.total / level.weight[:, None]
        again = KMeans(k, init=centers, n_init=1).fit(X)
        assert level.cost == pytest.approx(again.inertia_, rel=1e-3)


def test_six_points_reach_the_best_of_all_partitions():
    X = np.array([[0.0], [1.0], [2.1], [10.0], [11.0], [20.0]])
    _, _, levels = levels_of(X, highest=4)
    for k in range(1, 5):
        best = min(
            cost_of(X, np.ones(6), np.array(labels))
            for labels in itertools.product(range(k), repeat=6)
            if len(set(labels)) == k
        )
        assert levels[k - 1].cost == pytest.approx(best)


@pytest.mark.parametrize("name", sorted(DIVERGENCES))
def test_every_divergence_has_levels_that_cost_less_and_less(name):
    divergence = get_divergence(name)
    X = divergence.prepare(np.random.default_rng(0).uniform(0.05, 0.95, size=(60, 3)))
    points, _, levels = levels_of(X, divergence=divergence)
    cost = [level.cost for level in levels]
    assert cost == sorted(cost, reverse=True)
    energy = divergence.energy(levels[3].weight, levels[3].total).sum()
    own = divergence.energy(points.weight, X).sum()
    assert levels[3].cost == pytest.approx(energy - own)


def test_separation_counts_rows_near_the_border():
    # Two centers 4 apart: the border is at 2, and rows within the reach of the way count in part.
    X = np.array([[-1.0], [1.0], [1.5], [-1.5], [2.5], [3.0], [5.0], [5.5]])
    labels = np.array([0, 0, 0, 0, 1, 1, 1, 1])
    points, _, levels = levels_of(X, highest=2)
    level = levels[1]._replace(
        labels=labels, weight=np.array([4.0, 4.0]), total=np.array([[0.0], [16.0]])
    )
    margin = np.abs(X[:, 0] - 2.0) / 4.0
    near = np.maximum(0.0, 1.0 - margin / REFINEMENT.border_reach).sum()
    assert separation(points, level) == pytest.approx(-np.log((near + 0.5) / 9.0))


def test_separated_clusters_have_no_rows_between():
    X, _ = make_blobs(300, centers=[[0, 0], [20, 0], [0, 20]], random_state=0)
    points, _, levels = levels_of(X)
    apart = [separation(points, level) for level in levels[1:]]
    assert int(np.argmax(apart)) == 1  # three clusters


def test_gains_on_the_hull_never_rise_and_keep_their_sum():
    gain = np.random.default_rng(0).exponential(size=50)
    hull = convex_gains(gain)
    assert (np.diff(hull) <= 1e-12).all()
    assert hull.sum() == pytest.approx(gain.sum())
    assert (np.cumsum(hull) >= np.cumsum(gain) - 1e-9).all()  # the hull is below the costs


def test_figures_do_not_depend_on_the_unit():
    cost, gain = np.array([100.0, 40.0, 30.0]), np.array([60.0, 10.0, 5.0])
    apart = np.array([1.0, 2.0])
    one = describe_levels(cost, gain, apart, 50, Resolution())
    other = describe_levels(1e6 * cost, 1e6 * gain, apart, 50, Resolution())
    np.testing.assert_allclose(np.array(one), np.array(other))
    assert one.width.tolist() == pytest.approx([np.log(6), np.log(2)])
    assert one.compactness[0] == pytest.approx(np.log(100 / 49) - np.log(40 / 48))
