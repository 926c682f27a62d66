"""Similarities for compiled code: edges, column by column, of a full or a sparse matrix.

Column j has the similarity of every row to j as its exemplar. For a full matrix the row indices
are implied, so that ``row_of`` and the arrays by rows are empty.
"""

from typing import NamedTuple

import numpy as np
from numba import njit


class Edges(NamedTuple):
    """The entries of a similarity matrix, column by column: j's begin at ``start[j]``."""

    value: np.ndarray  # (n_edges,)
    start: np.ndarray  # (n + 1,)
    row_of: np.ndarray  # (n_edges,), ascending in every column; empty for a full matrix
    own: np.ndarray  # (n,), the index of each row's edge to itself
    row_start: np.ndarray  # (n + 1,), the same edges row by row; empty for a full matrix
    column_of: np.ndarray  # (n_edges,)
    edge_of: np.ndarray  # (n_edges,)


@njit(nogil=True, cache=True)
def spread(n, x, y):
    """Return a pseudorandom number from -1 to 1 that depends only on the position."""
    z = np.uint64(x) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(y) * np.uint64(0xD1B54A32D192ED03)
    z ^= np.uint64(n)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z ^= z >> np.uint64(31)
    return np.float64(z >> np.uint64(11)) * 2.0**-52 - 1.0


@njit(nogil=True, cache=True)
def break_ties(edges, first, last, relative, least, seed):
    """Perturb similarities by about a rounding error, by position, so that no two are equal.

    edges.value is # OUT, in columns from first to last.
    """
    value, start, row_of, _, _, _, _ = edges
    for j in range(first, last):
        for edge in range(start[j], start[j + 1]):
            row = row_of[edge] if row_of.shape[0] else edge - start[j]
            shift = relative * abs(value[edge]) + least
            value[edge] += shift * spread(seed, row, j)
