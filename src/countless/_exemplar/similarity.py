"""Similarities of rows to exemplars: computed from rows, or given as a matrix, full or sparse."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.metrics import euclidean_distances

from countless._memory import state_memory
from countless._numbers import moved_to_zero
from countless._threads import Each, steps
from countless.kernels.edges import Edges, break_ties

# Entries of a similarity matrix that a thread computes at a time.
TILE_ENTRIES = 2**16
# Absolute part of the shift that breaks ties, in smallest normal numbers of the type.
LEAST_SHIFT = 100
SMALLER = "give float32, fewer rows, or sparse similarities of near rows alone"
# Empty arrays of a full matrix, of the types of a sparse one, so that kernels compile once.
SHORT, LONG = np.empty(0, dtype=np.int32), np.empty(0, dtype=np.int64)

Affinity = Callable[[Any, Any], np.ndarray]


def negative_squares(A: Any, B: Any) -> np.ndarray:
    """Return minus the squared distance of every row of A from every row of B."""
    return -euclidean_distances(*moved_to_zero(A, B), squared=True)


def log_normal(squares: np.ndarray, variance: float, n_features: int) -> np.ndarray:
    """Return the log density of a spherical normal distribution at squared distances.

    Examples
    --------
    >>> log_normal(np.array([0.0, 1.0]), 1.0, 1).round(3).tolist()
    [-0.919, -1.419]
    """
    return -squares / (2 * variance) - n_features / 2 * np.log(2 * np.pi * variance)


def gaussian_affinity(noise_variance: float) -> Affinity:
    """Return the similarity ``log p(x_i | x_j)``: row i is normal around its exemplar j."""

    def affinity(A: Any, B: Any) -> np.ndarray:
        return log_normal(-negative_squares(A, B), noise_variance, A.shape[1])

    return affinity


def similarities(affinity: Affinity, A: Any, B: Any) -> np.ndarray:
    """Return the similarity of every row of A to every row of B as its exemplar, validated."""
    found = np.asarray(affinity(A, B))
    shape = (A.shape[0], B.shape[0])
    if found.shape != shape or found.dtype.kind not in "fiub":
        raise ValueError(
            f"affinity must return one similarity for each pair, numbers of shape {shape}; "
            f"it returned {found.dtype} of shape {found.shape}"
        )
    return found


def similarity_matrix(X: Any, affinity: Affinity, each: Each) -> np.ndarray:
    """Return the similarity of every row, as column i, to every row as its exemplar, as row j."""
    n = X.shape[0]
    n_bytes = 2 * n * n * X.dtype.itemsize
    state_memory(f"similarities and messages of n={n:,} rows", n_bytes, SMALLER)
    values = np.empty((n, n), dtype=X.dtype)

    def fill(first: int, last: int) -> None:
        values[first:last] = similarities(affinity, X, X[first:last]).T

    # Some rows in each call, so that its overhead is negligible.
    each(fill, steps(n, max(16, TILE_ENTRIES // n)))
    return values


def full_edges(values: np.ndarray) -> Edges:
    """Return the edges of a full matrix whose row j has the similarities to exemplar j."""
    n = len(values)
    start = np.arange(n + 1, dtype=np.int64) * n
    own = start[:-1] + np.arange(n)
    return Edges(values.reshape(-1), start, SHORT, own, LONG, SHORT, LONG)


def sparse_edges(matrix: Any) -> Edges:
    """Return the edges of a sparse matrix; every row gets one to itself."""
    n = matrix.shape[0]
    matrix = sp.csc_array(matrix)
    matrix.sum_duplicates()
    rows = matrix.indices.astype(np.int32)
    columns = np.repeat(np.arange(n, dtype=np.int32), np.diff(matrix.indptr))
    other = rows != columns
    rows = np.concatenate([rows[other], np.arange(n, dtype=np.int32)])
    columns = np.concatenate([columns[other], np.arange(n, dtype=np.int32)])
    values = np.concatenate([matrix.data[other], np.zeros(n, dtype=matrix.dtype)])
    order = np.lexsort((rows, columns))
    rows, columns, values = rows[order], columns[order], values[order]
    own = np.flatnonzero(rows == columns)
    by_row = np.argsort(rows, kind="stable")
    return Edges(
        values,
        _starts(columns, n),
        rows,
        own,
        _starts(rows, n),
        columns[by_row],
        by_row,
    )


def _starts(sorted_or_not: np.ndarray, n: int) -> np.ndarray:
    counts = np.bincount(sorted_or_not, minlength=n)
    return np.concatenate([[0], np.cumsum(counts)])


def prepare(edges: Edges, preference: np.ndarray, seed: int, each: Each) -> None:
    """Store preferences on the self-edges of rows, and break ties by shifts of rounding size.

    Equal similarities make messages oscillate; a negligible shift prevents that.
    """
    edges.value[edges.own] = preference
    limits = np.finfo(edges.value.dtype)
    n = len(edges.own)

    def shift(first: int, last: int) -> None:
        break_ties(edges, first, last, limits.eps, LEAST_SHIFT * limits.tiny, seed)

    each(shift, steps(n, max(1, TILE_ENTRIES * n // len(edges.value))))
