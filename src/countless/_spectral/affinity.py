"""The affinity matrix: a kernel, a nearest-neighbour graph, or a precomputed matrix."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.spatial import KDTree
from sklearn.metrics import pairwise_distances_argmin
from sklearn.metrics.pairwise import PAIRWISE_KERNEL_FUNCTIONS
from sklearn.neighbors import NearestNeighbors

from countless._search.kernel.matrix import (
    ASYMMETRY,
    SCALED,
    KernelFunction,
    check_precomputed,
    scale_of,
)
from countless._threads import count_threads

NEIGHBORS = "nearest_neighbors"


@dataclass(frozen=True)
class NeighborSearch:
    """How neighbours are sought; ``benchmarks/spectral.py`` has the time of either way."""

    # In more columns than this, k-d trees are seldom faster than brute force.
    tree_columns: int = 10
    # In more columns, up to this many rows neighbours are exact, by brute force.
    exact_rows: int = 20_000
    # Above, each row is compared with those of so many nearest cells of about so many rows.
    cells_around: int = 32
    rows_a_cell: int = 300


NEIGHBOR_SEARCH = NeighborSearch()


class Affinity:
    """The affinity between rows of a fit, and between new rows and those.

    Parameters
    ----------
    kernel : str or callable
        'nearest_neighbors', 'precomputed', or a kernel of `sklearn.metrics.pairwise`.
    n_neighbors : int
        Neighbours of a row, for 'nearest_neighbors'.
    parameters : dict
        Parameters of a kernel; a gamma of None is set from the variance of the rows.
    n_jobs : int, optional
        Threads.
    """

    def __init__(
        self, kernel: Any, *, n_neighbors: int, parameters: dict[str, Any], n_jobs: int | None
    ):
        self.kernel = kernel
        self._n_neighbors = n_neighbors
        self._n_jobs = n_jobs
        known = (NEIGHBORS, "precomputed", *sorted(PAIRWISE_KERNEL_FUNCTIONS))
        if not callable(kernel) and kernel not in known:
            listed = ", ".join(repr(name) for name in known)
            raise ValueError(f"kernel must be a function or one of {listed}; got {kernel!r}")
        self._parameters = parameters

    def between_rows(self, X: Any) -> Any:
        """Return the symmetric affinity matrix of all rows, dense or CSR."""
        if self.kernel == "precomputed":
            return _check_matrix(X, self._n_jobs)
        if self.kernel == NEIGHBORS:
            graph = self._linked(X)
            return ((graph + graph.T) / 2).tocsr()
        return self._scaled_to(X).matrix(X, self._n_jobs)

    def to_rows(self, X: Any, rows: Any) -> Any:
        """Return the affinity matrix of new rows X with the rows of a fit."""
        if self.kernel == "precomputed":
            return X
        if self.kernel == NEIGHBORS:
            return self._linked(rows, X)
        return self._scaled_to(rows).between(X, rows)

    def _linked(self, rows: Any, new: Any = None) -> Any:
        """Return the k-nearest-neighbour graph of new rows, or of the rows among themselves."""
        count = min(self._n_neighbors, rows.shape[0] - 1)
        dense = not (sp.issparse(rows) or sp.issparse(new))
        if (
            dense
            and rows.shape[1] > NEIGHBOR_SEARCH.tree_columns
            and rows.shape[0] > NEIGHBOR_SEARCH.exact_rows
        ):
            return _linked_by_cells(rows, new, count, self._n_jobs)
        if not dense or rows.shape[1] > NEIGHBOR_SEARCH.tree_columns:
            search = NearestNeighbors(n_neighbors=count, algorithm="brute", n_jobs=self._n_jobs)
            return search.fit(rows).kneighbors_graph(new)
        return _linked_by_tree(rows, new, count, count_threads(self._n_jobs))

    def _scaled_to(self, rows: Any) -> KernelFunction:
        parameters = dict(self._parameters)
        if self.kernel in SCALED and parameters.get("gamma") is None:
            parameters["gamma"] = scale_of(rows, np.ones(rows.shape[0]))
        return KernelFunction(self.kernel, parameters)


def _linked_by_tree(rows: np.ndarray, new: np.ndarray | None, count: int, threads: int) -> Any:
    # Scaled so that no squared distance overflows; by a power of 2, so that ties stay ties.
    size = max(np.abs(table).max(initial=0.0) for table in (rows, new) if table is not None)
    exponent = -np.frexp(float(size))[1]
    tree = KDTree(np.ldexp(rows.astype(np.float64), exponent))
    if new is None:
        nearest = _without_itself(tree.query(tree.data, count + 1, workers=threads)[1])
    else:
        scaled = np.ldexp(new.astype(np.float64), exponent)
        nearest = tree.query(scaled, np.arange(1, count + 1), workers=threads)[1]
    return _as_links(nearest, len(rows))


def _linked_by_cells(
    rows: np.ndarray, new: np.ndarray | None, count: int, n_jobs: int | None
) -> Any:
    """Return an approximate nearest-neighbour graph: neighbours are sought in nearby cells.

    Cells are the Voronoi cells of rows drawn with a fixed seed. Few neighbours are missed.
    """
    n = len(rows)
    drawn = np.random.RandomState(0).choice(n, n // NEIGHBOR_SEARCH.rows_a_cell, replace=False)
    centers = rows[np.sort(drawn)]
    cell = pairwise_distances_argmin(rows, centers)
    size = np.bincount(cell, minlength=len(centers))
    members = np.split(np.argsort(cell, kind="stable"), np.cumsum(size)[:-1])
    n_around = min(NEIGHBOR_SEARCH.cells_around, len(centers))
    around = _nearest(centers, centers, n_around, n_jobs)
    asking, asked = (cell, rows) if new is None else (pairwise_distances_argmin(new, centers), new)
    wanted = count + (new is None)
    nearest = np.empty((len(asked), wanted), dtype=np.int64)
    for own in np.unique(asking):
        here = np.flatnonzero(asking == own)
        candidates = np.sort(np.concatenate([members[near] for near in around[own]]))
        if len(candidates) < wanted:
            candidates = np.arange(n)
        found = _nearest(rows[candidates], asked[here], wanted, n_jobs)
        nearest[here] = candidates[found]
    return _as_links(_without_itself(nearest) if new is None else nearest, n)


def _nearest(rows: np.ndarray, new: np.ndarray, count: int, n_jobs: int | None) -> np.ndarray:
    search = NearestNeighbors(n_neighbors=count, algorithm="brute", n_jobs=n_jobs).fit(rows)
    return search.kneighbors(new, return_distance=False)


def _without_itself(nearest: np.ndarray) -> np.ndarray:
    """Remove each row from its own neighbours; among many duplicates it may not be listed."""
    others = nearest != np.arange(len(nearest))[:, None]
    others[others.all(axis=1), -1] = False
    return nearest[others].reshape(len(nearest), -1)


def _as_links(nearest: np.ndarray, n_rows: int) -> Any:
    starts = np.arange(0, nearest.size + 1, nearest.shape[1])
    links = (np.ones(nearest.size), nearest.ravel(), starts)
    return sp.csr_array(links, (len(nearest), n_rows))


def _check_matrix(matrix: Any, n_jobs: int | None) -> Any:
    """Validate a precomputed matrix, which must be square and symmetric."""
    if not sp.issparse(matrix):
        check_precomputed(matrix, n_jobs)
        return matrix
    n_rows, n_columns = matrix.shape
    if n_rows != n_columns:
        raise ValueError(
            f"a precomputed kernel must be square; got {n_rows} rows and {n_columns} columns"
        )
    difference = abs(matrix - matrix.T).tocoo()
    if difference.nnz and difference.data.max() > ASYMMETRY * abs(matrix).max():
        row, column = sorted(int(at[difference.data.argmax()]) for at in difference.coords)
        raise ValueError(
            f"a precomputed kernel must be symmetric; row {row}, column {column} has "
            f"{matrix[row, column]:g} and row {column}, column {row} has {matrix[column, row]:g}"
        )
    return matrix
