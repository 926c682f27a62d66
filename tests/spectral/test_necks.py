"""Necks of neighbour graphs: cut profiles against plain sums, and the clusters that necks part."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import adjusted_rand_score

from countless import SpectralDPMeans
from countless._spectral.affinity import Affinity
from countless._spectral.necks import merge_pieces, null_depth
from countless.kernels.necks import cut_profile, screened_potential

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
def test_labels_at_every_depth_are_nested(seed):
    merges = merge_pieces(linked(np.random.default_rng(seed).normal(size=(300, 2))))
    assert (np.diff(merges.depths) >= 0).all()
    finer = merges.pieces
    for depth in merges.depths:
        labels = merges.labels_below(depth)
        assert len(np.unique(np.c_[finer, labels], axis=0)) == len(np.unique(finer))
        finer = labels
    assert set(finer) == {0}


@pytest.mark.parametrize("seed", range(3))
def test_necks_separate_squares(seed):
    X, truth = squares(seed)
    merges = merge_pieces(linked(X))
    two = merges.labels_below(merges.depths[-1] - 1e-9)
    assert adjusted_rand_score(truth, two) > 0.98
    assert merges.depths[-1] > null_depth(X, linked) > merges.depths[-2]
    model = SpectralDPMeans(random_state=0).fit(X)
    assert model.n_clusters_ == 2
    assert adjusted_rand_score(truth, model.labels_) > 0.95
    assert model.n_clusters_ == SpectralDPMeans(random_state=5).fit(X).n_clusters_
    assert 0 <= model.path_.confidence <= 1


@pytest.mark.parametrize("name", ["jain.csv", "fcps__wingnut"])
def test_public_sets_without_a_plateau(published, name):
    if name == "jain.csv":
        table = np.loadtxt(published("shapes2d", name), delimiter=",", skiprows=1)
    else:
        table = np.loadtxt(published("suite", f"{name}.csv.gz"), delimiter=",", skiprows=1)
    model = SpectralDPMeans(random_state=0).fit(table[:, :2])
    assert model.n_clusters_ == 2
    assert adjusted_rand_score(table[:, 2], model.labels_) > 0.98
    assert model.path_.necks.n_clusters == 2
    assert model.path_.confidence > 0
    assert (model.predict(table[:, :2]) == model.labels_).mean() > 0.98


def test_null_depth_is_deterministic():
    X = np.random.default_rng(1).normal(size=(200, 3))
    assert null_depth(X, linked) == null_depth(X, linked)


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
