"""Necks of neighbour graphs: cut profiles against plain sums, and the clusters that necks part."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import adjusted_rand_score

from countless import SpectralDPMeans
from countless.hard.spectral.affinity import Affinity
from countless.hard.spectral.necks import (
    FALSE_SHARE,
    TAIL,
    Tail,
    accepted_depth,
    chance_tails,
    connected_parts,
    find_necks,
    local_dimension,
    merge_pieces,
    within,
)
from countless.kernels.necks import cut_profile, nodes_near, screened_potential

linked = Affinity("nearest_neighbors", n_neighbors=10, parameters={}, n_jobs=None).between_rows


def squares(seed):
    """Two squares, side by side, with a gap."""
    random = np.random.default_rng(seed)
    truth = np.repeat([0, 1], 200)
    return random.uniform(size=(400, 2)) + np.c_[1.2 * truth, np.zeros(400)], truth


@given(st.integers(0, 10_000))
def test_profile_and_potential_are_those_of_plain_linear_algebra(seed):
    random = np.random.default_rng(seed)
    n, n_first = 14, 6
    W = np.triu(random.uniform(size=(n, n)) * (random.uniform(size=(n, n)) < 0.5), 1)
    W[np.arange(n - 1), np.arange(1, n)] += 0.1  # connected
    W += W.T
    graph = sp.csr_array(W)
    rows = graph.indptr.astype(np.int64), graph.indices.astype(np.int64), graph.data
    order = random.permutation(n)
    plain = [W[np.ix_(order[: t + 1], order[t + 1 :])].sum() for t in range(n)]
    np.testing.assert_allclose(cut_profile(*rows, order), plain, atol=1e-12)
    degree = W.sum(axis=1)
    contrast = np.where(
        np.arange(n) < n_first, 1 / degree[:n_first].sum(), -1 / degree[n_first:].sum()
    )
    expected = np.linalg.solve(1.01 * np.diag(degree) - W, degree * contrast)
    found = screened_potential(*rows, n_first, 0.01, 400)
    np.testing.assert_allclose(found, expected, atol=1e-4 * np.ptp(expected))


@pytest.mark.parametrize("seed", range(3))
def test_every_deeper_neck_makes_one_more_cluster(seed):
    merges = merge_pieces(linked(np.random.default_rng(seed).normal(size=(300, 2))))
    for depth in [-1.0, *merges.depths]:
        n_deeper = np.count_nonzero(merges.depths > depth)
        assert len(np.unique(merges.labels_below(depth))) == 1 + n_deeper
    pieces, labels = merges.pieces, merges.labels_below(np.median(merges.depths))
    assert len(np.unique(np.c_[pieces, labels], axis=0)) == len(np.unique(pieces))


@pytest.mark.parametrize("seed", range(3))
def test_necks_part_squares(seed):
    X, truth = squares(seed)
    affinity = linked(X)
    necks = find_necks(affinity, np.zeros(len(X), dtype=int), X, linked)
    assert necks.depths[0] > necks.null_depth > necks.depths[1]
    assert adjusted_rand_score(truth, necks.labels) > 0.98
    model = SpectralDPMeans(random_state=0).fit(X)
    assert model.n_clusters_ == 2
    assert adjusted_rand_score(truth, model.labels_) > 0.95
    assert model.n_clusters_ == SpectralDPMeans(random_state=5).fit(X).n_clusters_
    assert 0 <= model.path_.confidence <= 1


def test_parts_that_are_known_are_cut_further():
    pair, truth = squares(0)
    far = np.random.default_rng(7).normal(loc=40.0, size=(150, 2))
    X, truth = np.vstack([pair, far]), np.append(truth, np.full(150, 2))
    necks = find_necks(linked(X), truth // 2, X, linked)
    assert (necks.n_accepted, necks.n_clusters) == (1, 3)
    assert adjusted_rand_score(truth, necks.labels) > 0.95


@given(
    st.lists(st.floats(0, 10), min_size=1, max_size=30),
    st.floats(0, 9),
    st.floats(0.1, 3),
)
def test_accepted_necks_are_those_of_benjamini_and_hochberg(depths, start, scale):
    depths, tail = np.sort(depths)[::-1], Tail(start, scale)
    null = accepted_depth(depths, [tail])
    shares = FALSE_SHARE * np.arange(1, len(depths) + 1) / len(depths)
    passed = np.flatnonzero(
        [d > tail.depth(share) for d, share in zip(depths, shares, strict=True)]
    )
    assert np.count_nonzero(depths > null) == passed.max(initial=-1) + 1


def test_a_tail_says_how_often_a_depth_is_exceeded():
    squares_of_depths = 9 + np.random.default_rng(0).exponential(2.0, size=100_000)
    tail = Tail(9 + 2 * np.log(1 / TAIL), 2.0)
    for share in (0.1, 0.01, 0.001):
        found = np.mean(squares_of_depths > tail.depth(share) ** 2)
        assert found == pytest.approx(share, rel=0.3)


def test_parts_are_connected():
    random = np.random.default_rng(0)
    affinity = linked(random.normal(size=(200, 2)))
    labels = random.integers(0, 4, size=200)
    parts = connected_parts(affinity, labels)
    assert set(parts) == set(range(parts.max() + 1))
    n_components = sp.csgraph.connected_components(within(affinity, parts))[0]
    assert n_components == parts.max() + 1
    assert np.bincount(parts).min() > 1


def test_nodes_near_a_group_come_layer_by_layer():
    path = sp.csr_array(np.diag(np.ones(9), 1) + np.diag(np.ones(9), -1))
    place = np.full(10, -1)
    rows = path.indptr.astype(np.int64), path.indices.astype(np.int64)
    near = nodes_near(*rows, np.array([0, 1]), np.array([9, 8, 2, 3, 4]), place, 2)
    assert near.tolist() == [2, 3]
    assert (place == -1).all()


@pytest.mark.parametrize("name", ["fcps__wingnut", "graves__parabolic"])
def test_public_sets_without_a_plateau(published, name):
    table = np.loadtxt(published("suite", f"{name}.csv.gz"), delimiter=",", skiprows=1)
    model = SpectralDPMeans(random_state=0).fit(table[:, :2])
    assert model.n_clusters_ == 2
    assert adjusted_rand_score(table[:, 2], model.labels_) > 0.95
    assert model.path_.necks.n_clusters == 2
    assert model.path_.confidence > 0
    assert (model.predict(table[:, :2]) == model.labels_).mean() > 0.98


def test_the_null_is_the_same_whenever_it_is_drawn():
    X = np.random.default_rng(1).normal(size=(200, 3))
    assert chance_tails(X, linked) == chance_tails(X, linked)


@pytest.mark.parametrize("seed", range(3))
def test_a_ring_and_a_grid_have_no_necks(seed):
    random = np.random.default_rng(seed)
    turn = random.uniform(0, 2 * np.pi, 500)
    ring = np.c_[np.cos(turn), np.sin(turn)] + random.normal(scale=0.04, size=(500, 2))
    grid = random.integers(0, 5, size=(400, 4)).astype(float)
    for X in (ring, grid):
        model = SpectralDPMeans(random_state=0).fit(X)
        assert model.n_clusters_ == 1
        assert 0 <= model.path_.confidence <= 1


def test_local_dimension_of_rows_that_repeat():
    assert local_dimension(np.zeros((20, 3))) == 3
