"""Valleys of density between clusters, and clusters merged where there is none."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.neighbors import kneighbors_graph

from countless.auto.separation import DEEPEST, Separation, separation, valley


def two_blobs(apart, n=400, d=2, seed=0):
    rng = np.random.default_rng(seed)
    shift = np.zeros(d)
    shift[0] = apart
    return rng.normal(size=(n, d)), rng.normal(size=(n, d)) + shift


def test_deeper_the_farther_apart():
    depths = [valley(*two_blobs(apart)) for apart in (1.0, 3.0, 4.0, 6.0)]
    assert depths[0] == 0.0
    assert depths == sorted(depths)
    assert depths[-1] > 1.5


@pytest.mark.parametrize("kind", ["normal", "uniform", "exponential"])
@pytest.mark.parametrize("d", [1, 2, 10])
def test_halves_of_one_cluster_have_no_valley(kind, d):
    X = getattr(np.random.default_rng(1), kind)(size=(1000, d))
    middle = np.median(X[:, 0])
    assert valley(X[X[:, 0] < middle], X[X[:, 0] >= middle]) < 0.2


def test_equal_rows_that_differ_between_clusters():
    assert valley(np.zeros((5, 2)), np.ones((5, 2))) == DEEPEST
    assert valley(np.zeros((5, 2)), np.zeros((5, 2))) == 0.0


@given(
    shift=st.floats(-100, 100),
    scale=st.sampled_from([0.25, 2.0, 64.0]),
    seed=st.integers(0, 20),
)
@settings(max_examples=25, deadline=None)
def test_invariant_under_shift_scale_and_order(shift, scale, seed):
    a, b = two_blobs(3.5, n=60, seed=seed)
    depth = valley(a, b)
    assert valley(b, a) == pytest.approx(depth, abs=1e-6)
    assert valley(scale * a + shift, scale * b + shift) == pytest.approx(depth, abs=1e-6)
    assert valley(a[::-1], b) == pytest.approx(depth, abs=1e-6)


def test_clusters_without_a_link_are_separated():
    X = np.vstack(two_blobs(50.0))
    labels = np.repeat([0, 1], 400)
    found = separation(X, labels, kneighbors_graph(X, 10))
    assert found.cut == 0.0
    assert found.weakest().tolist() == [DEEPEST, DEEPEST]


def test_merges_are_transitive():
    depth = np.array([[3.0, 0.1, 2.0], [0.1, 3.0, 0.2], [2.0, 0.2, 3.0]])
    assert Separation(depth, 0.1).merge(0.3).tolist() == [0, 0, 0]
    assert Separation(depth, 0.1).merge(0.15).tolist() == [0, 0, 1]
    assert Separation(depth, 0.1).merge(0.0).tolist() == [0, 1, 2]
