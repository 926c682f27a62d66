"""Sums over the rows of a block: weights of clusters, and weighted totals of their rows.

Sums are fixed-point integers (`countless.kernels.rows.Scale`): independent of the order of rows.
"""

import numpy as np
from numba import njit

from countless.kernels.rows import add_row


@njit(nogil=True, cache=True)
def add_rows(rows, row_weight, labels, scale, weight, total):
    """Add rows to their clusters. weight, total are # OUT."""
    for i in range(labels.shape[0]):
        c = labels[i]
        weight[c] += np.int64(np.rint(row_weight[i] * scale.per_weight_step))
        add_row(rows, i, row_weight[i], scale, total, c)


@njit(nogil=True, cache=True)
def move_rows(rows, row_weight, old, new, scale, weight, total):
    """Move rows from their old clusters to their new ones; count them. weight, total are # OUT."""
    n_moved = 0
    for i in range(new.shape[0]):
        if old[i] != new[i]:
            n_moved += 1
            steps = np.int64(np.rint(row_weight[i] * scale.per_weight_step))
            weight[old[i]] -= steps
            weight[new[i]] += steps
            add_row(rows, i, -row_weight[i], scale, total, old[i])
            add_row(rows, i, row_weight[i], scale, total, new[i])
    return n_moved


@njit(nogil=True, cache=True)
def center_rows(values, ids, origin, scale, tile, norm):
    """Copy rows minus the origin, scaled, and their squared norms. tile, norm are # OUT."""
    for r in range(ids.shape[0]):
        length = 0.0
        for j in range(tile.shape[1]):
            difference = scale * (np.float64(values[ids[r], j]) - origin[j])
            tile[r, j] = difference
            length += difference * difference
        norm[r] = length


@njit(nogil=True, cache=True)
def add_squares(values, row_weight, origin, step):
    """Sum the rows' weighted squared distances from the origin, each in integer steps."""
    total = np.int64(0)
    for i in range(values.shape[0]):
        square = 0.0
        for j in range(values.shape[1]):
            difference = np.float64(values[i, j]) - origin[j]
            square += difference * difference
        total += np.int64(np.rint(row_weight[i] * square / step))
    return total


@njit(nogil=True, cache=True)
def first_rows(labels, row_weight, start, first):
    """Find the first row with weight of each cluster. first is # OUT."""
    for i in range(labels.shape[0]):
        if row_weight[i] > 0.0 and start + i < first[labels[i]]:
            first[labels[i]] = start + i
