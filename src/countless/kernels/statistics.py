"""Sums over the rows of a block: what its clusters weigh, and their weighted totals, in float64."""

import numpy as np
from numba import njit

from countless.kernels.rows import add_row


@njit(nogil=True, cache=True)
def add_block(rows, start, stop, row_weight, labels, origin, weight, total):
    """Add rows ``start`` to ``stop`` to their clusters. weight, total are # OUT."""
    for i in range(start, stop):
        c = labels[i]
        weight[c] += row_weight[i]
        add_row(rows, i, row_weight[i], origin, total, c)


@njit(nogil=True, cache=True)
def move_rows(rows, ids, row_weight, old, new, origin, weight, total):
    """Take rows from their old clusters to their new ones. weight, total are # OUT."""
    for i in ids:
        weight[old[i]] -= row_weight[i]
        weight[new[i]] += row_weight[i]
        add_row(rows, i, -row_weight[i], origin, total, old[i])
        add_row(rows, i, row_weight[i], origin, total, new[i])


@njit(nogil=True, cache=True)
def gather(values, ids, origin, scale, tile, norm):
    """Copy rows, seen from the origin and scaled, with squared lengths. tile, norm are # OUT."""
    for r in range(ids.shape[0]):
        length = 0.0
        for j in range(tile.shape[1]):
            difference = scale * (np.float64(values[ids[r], j]) - origin[j])
            tile[r, j] = difference
            length += difference * difference
        norm[r] = length
