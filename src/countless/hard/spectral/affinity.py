"""How alike rows are: a kernel, a graph of nearest neighbours, or a matrix that is given."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.spatial import KDTree
from sklearn.metrics.pairwise import PAIRWISE_KERNEL_FUNCTIONS
from sklearn.neighbors import NearestNeighbors

from countless._threads import count_threads
from countless.hard.kernel.matrix import (
    ASYMMETRY,
    SCALED,
    KernelFunction,
    check_precomputed,
    scale_of,
)

NEIGHBORS = "nearest_neighbors"
# In more columns than this, trees are seldom faster than looking at all rows.
TREE_COLUMNS = 10


class Affinity:
    """What is compared, and how: rows of a fit with each other, and new rows with them.

    Parameters
    ----------
    kernel : str or callable
        'nearest_neighbors', 'precomputed', or a kernel of `sklearn.metrics.pairwise`.
    n_neighbors : int
        Neighbours of a row, for 'nearest_neighbors'.
    parameters : dict
        Parameters of a kernel; a gamma of None follows the spread of the rows.
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
        """Return the symmetric matrix of all rows, dense or CSR."""
        if self.kernel == "precomputed":
            return _check_matrix(X, self._n_jobs)
        if self.kernel == NEIGHBORS:
            graph = self._linked(X)
            return ((graph + graph.T) / 2).tocsr()
        return self._scaled_to(X).matrix(X, self._n_jobs)

    def to_rows(self, X: Any, rows: Any) -> Any:
        """Return the matrix of new rows X with the rows of a fit."""
        if self.kernel == "precomputed":
            return X
        if self.kernel == NEIGHBORS:
            return self._linked(rows, X)
        return self._scaled_to(rows).between(X, rows)

    def _linked(self, rows: Any, new: Any = None) -> Any:
        """Return the graph that links new rows, or each of the rows, to the nearest (others)."""
        count = min(self._n_neighbors, rows.shape[0] - 1)
        if sp.issparse(rows) or sp.issparse(new) or rows.shape[1] > TREE_COLUMNS:
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
        nearest = tree.query(tree.data, count + 1, workers=threads)[1]
        # A row is among its own nearest, unless enough others are equal to it.
        others = nearest != np.arange(len(rows))[:, None]
        others[others.all(axis=1), -1] = False
        nearest = nearest[others]
    else:
        scaled = np.ldexp(new.astype(np.float64), exponent)
        nearest = tree.query(scaled, np.arange(1, count + 1), workers=threads)[1].ravel()
    starts = np.arange(0, len(nearest) + 1, count)
    return sp.csr_array((np.ones(len(nearest)), nearest, starts), (len(starts) - 1, len(rows)))


def _check_matrix(matrix: Any, n_jobs: int | None) -> Any:
    """Return a given matrix, which must be square and symmetric."""
    if not sp.issparse(matrix):
        check_precomputed(matrix, n_jobs)
        return matrix
    n_rows, n_columns = matrix.shape
    if n_rows != n_columns:
        raise ValueError(
            f"a precomputed kernel must be square; got {n_rows} rows and {n_columns} columns"
        )
    gap = abs(matrix - matrix.T).tocoo()
    if gap.nnz and gap.data.max() > ASYMMETRY * abs(matrix).max():
        row, column = sorted(int(at[gap.data.argmax()]) for at in gap.coords)
        raise ValueError(
            f"a precomputed kernel must be symmetric; row {row}, column {column} has "
            f"{matrix[row, column]:g} and row {column}, column {row} has {matrix[column, row]:g}"
        )
    return matrix
