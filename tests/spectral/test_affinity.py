"""Graphs of nearest neighbours: scikit-learn's exhaustive search is the oracle."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.neighbors import NearestNeighbors

from countless._spectral import affinity as module
from countless._spectral.affinity import Affinity


def affinity(n_neighbors=7):
    return Affinity("nearest_neighbors", n_neighbors=n_neighbors, parameters={}, n_jobs=None)


@pytest.mark.parametrize(
    ("d", "dtype", "scale"),
    [
        (2, np.float64, 1.0),
        (2, np.float32, 1.0),
        (2, np.float64, 1e-200),
        (2, np.float64, 1e200),
        (20, np.float64, 1.0),  # by looking at all rows instead of by a tree
    ],
)
def test_rows_are_linked_to_the_nearest(d, dtype, scale):
    random = np.random.RandomState(d)
    X, new = random.standard_normal((150, d)).astype(dtype), random.standard_normal((20, d))
    search = NearestNeighbors(n_neighbors=7, algorithm="brute").fit(X)
    graph = search.kneighbors_graph().toarray()
    between, to = affinity().between_rows(scale * X), affinity().to_rows(scale * new, scale * X)
    np.testing.assert_array_equal(between.toarray(), (graph + graph.T) / 2)
    np.testing.assert_array_equal(to.toarray(), search.kneighbors_graph(new).toarray())


@pytest.mark.parametrize("n_neighbors", [1, 3, 60])
def test_equal_rows_are_linked_to_others_only(n_neighbors):
    X = np.repeat(np.arange(4.0), 10)[:, None]
    W = affinity(n_neighbors).between_rows(X).toarray()
    assert not W.diagonal().any()
    assert W.sum() == 40 * min(n_neighbors, 39)
    near = W.reshape(4, 10, 4, 10).sum(axis=(1, 3))
    assert n_neighbors == 60 or (near == np.diag(near.diagonal())).all()


def test_large_tables_are_searched_in_cells(monkeypatch):
    random = np.random.RandomState(0)
    centers = 6 * random.standard_normal((8, 12))
    X = centers[random.randint(8, size=3000)] + random.standard_normal((3000, 12))
    new = centers[random.randint(8, size=50)] + random.standard_normal((50, 12))
    exact, exact_to = affinity(10).between_rows(X), affinity(10).to_rows(new, X)
    in_cells = replace(module.NEIGHBOR_SEARCH, exact_rows=2000, rows_a_cell=30)
    monkeypatch.setattr(module, "NEIGHBOR_SEARCH", in_cells)
    near, near_to = affinity(10).between_rows(X), affinity(10).to_rows(new, X)
    assert not near.diagonal().any()
    assert near.sum() == exact.sum()
    assert near_to.sum() == exact_to.sum()
    assert near.minimum(exact).sum() > 0.95 * exact.sum()
    assert near_to.minimum(exact_to).sum() > 0.95 * exact_to.sum()
    for n_jobs in (1, 2):
        again = Affinity("nearest_neighbors", n_neighbors=10, parameters={}, n_jobs=n_jobs)
        assert (again.between_rows(X) != near).nnz == 0


@pytest.mark.parametrize("n_neighbors", [10, 300])
def test_cells_without_enough_rows_are_no_limit(monkeypatch, n_neighbors):
    small = replace(module.NEIGHBOR_SEARCH, exact_rows=300, rows_a_cell=5, cells_around=2)
    monkeypatch.setattr(module, "NEIGHBOR_SEARCH", small)
    X = np.repeat(np.random.RandomState(0).standard_normal((40, 12)), 10, axis=0)
    W = affinity(n_neighbors).between_rows(X)
    assert not W.diagonal().any()
    assert W.sum() == 400 * n_neighbors
