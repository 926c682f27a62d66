"""Valleys of density between clusters, and clusters merged where there is none."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.neighbors import kneighbors_graph

from countless._auto.choice import LEAST_SIGNIFICANCE
from countless._auto.separation import Separation, separation, valley


def links_of(X):
    links = kneighbors_graph(X, 10)
    return links + links.T


def two_blobs(apart, n=400, d=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(2 * n, d))
    X[n:, 0] += apart
    return X, np.repeat([0, 1], n)


def significance(X, labels):
    return separation(X, labels, links_of(X)).strongest()


def test_more_significant_the_farther_apart():
    found = [significance(*two_blobs(apart)) for apart in (1.0, 3.5, 4.5)]
    assert found[0] < LEAST_SIGNIFICANCE < found[1] < found[2]


def test_more_significant_the_more_rows():
    found = [significance(*two_blobs(3.0, n)) for n in (100, 400, 1600)]
    assert found == sorted(found)


@pytest.mark.parametrize("kind", ["normal", "uniform", "exponential", "laplace", "lognormal"])
@pytest.mark.parametrize("d", [1, 2, 10])
def test_a_cloud_cut_in_many_has_no_valley(kind, d):
    X = getattr(np.random.default_rng(1), kind)(size=(1000, d))
    for n_cuts in (1, 3, 9):
        cuts = np.quantile(X[:, 0], np.linspace(0, 1, n_cuts + 2)[1:-1])
        assert significance(X, np.searchsorted(cuts, X[:, 0])) < LEAST_SIGNIFICANCE


def test_cells_of_a_box_have_no_valley():
    # Between the centers of two hexagons their union is narrow; the rows beside it count as well.
    X = np.random.default_rng(0).uniform(size=(3000, 2))
    row = np.floor(6 * X[:, 1]).astype(int)
    cells = row * 8 + np.floor(7 * (X[:, 0] + (row % 2) / 14)).astype(int)
    labels = np.unique(cells, return_inverse=True)[1]
    assert significance(X, labels) < LEAST_SIGNIFICANCE


def test_arcs_of_a_ring_have_no_valley():
    rng = np.random.default_rng(0)
    turn = rng.uniform(0, 2 * np.pi, 1000)
    X = np.c_[np.cos(turn), np.sin(turn)] + 0.02 * rng.normal(size=(1000, 2))
    assert significance(X, np.floor(turn).astype(int)) < LEAST_SIGNIFICANCE


def test_equal_rows():
    X = np.repeat([[0.0, 0.0], [1.0, 1.0]], 5, axis=0)
    found = valley(X, np.arange(5), np.arange(5, 10), np.array([0, 5]))
    assert found.depth == found.excess == 0.0


@given(
    shift=st.floats(-100, 100),
    scale=st.sampled_from([0.25, 2.0, 64.0]),
    seed=st.integers(0, 20),
)
@settings(max_examples=25, deadline=None)
def test_invariant_under_shift_scale_and_order(shift, scale, seed):
    X, labels = two_blobs(3.5, n=60, seed=seed)
    links = links_of(X)
    found = separation(X, labels, links)
    moved = separation(scale * X + shift, labels, links)
    assert moved.significance == pytest.approx(found.significance, abs=1e-6)
    assert moved.excess == pytest.approx(found.excess, abs=1e-6)
    other = separation(X, 1 - labels, links)
    assert other.significance == pytest.approx(found.significance, abs=1e-6)


def test_pieces_of_a_box_have_more_rows_at_their_border_than_normal_clusters():
    box = np.random.default_rng(0).uniform(size=(800, 2)) * [2, 1]
    halves = separation(box, (box[:, 0] > 1).astype(int), links_of(box))
    X, labels = two_blobs(3.5)
    blobs = separation(X, labels, links_of(X))
    assert halves.excess[0] > 0.3 > blobs.excess[0]


def test_clusters_without_a_link_are_no_pair():
    X, labels = two_blobs(50.0)
    found = separation(X, labels, links_of(X))
    assert len(found.pairs) == 0
    assert found.strongest() == 0.0
    assert found.merge(3.0).tolist() == [0, 1]


def with_levels(level, depth):
    """Return three clusters in a row: 0 beside 1 beside 2."""
    pairs, ones = np.array([[0, 1], [1, 2]]), np.ones(2)
    no_error = np.full(3, 1e-6)
    return Separation(
        pairs, 5 * ones, np.array(depth), 0.1 * ones, 0 * ones, np.array(level), no_error
    )


def test_merges_are_transitive():
    found = with_levels([1.0, 1.0, 1.0], [0.1, 0.2])
    assert found.merge(3.0).tolist() == [0, 0, 0]
    assert found.merge(1.5).tolist() == [0, 0, 1]
    assert found.merge(0.0).tolist() == [0, 1, 2]


def test_a_thin_cluster_between_two_dense_ones_joins_one_of_them():
    found = with_levels([5.0, 1.0, 4.0], [0.0, 0.0])
    assert found.merge(3.0).tolist() in ([0, 0, 1], [0, 1, 1])


def test_more_clusters_need_more_significant_valleys():
    X = np.random.default_rng(0).uniform(size=(2000, 2)) * [100, 1]
    labels = np.floor(X[:, 0]).astype(int)
    assert len(np.unique(separation(X, labels, links_of(X)).merge())) <= 3


def test_far_rows_do_not_overflow_in_units_of_nearly_equal_ones():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 12)) * 1e3
    X[1:3], X[4:6] = X[0] + 1e-9 * rng.normal(size=(2, 12)), X[3] + 1e-9 * rng.normal(size=(2, 12))
    found = valley(X, np.arange(3), np.arange(3, 6), np.arange(6))
    assert np.isfinite(found).all()
