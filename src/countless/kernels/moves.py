"""Sums that tell what a split or a single row's move would gain, for all clusters at once."""

import numpy as np
from numba import njit

from countless.kernels.rows import add_row, project


@njit(nogil=True, cache=True)
def add_side(
    rows,
    start,
    stop,
    row_weight,
    labels,
    slot,
    origin,
    normal,
    threshold,
    spread,
    side,
    weight,
    total,
):
    """Add up the rows on the far side of a plane through their cluster.

    Cluster ``c`` has plane ``slot[c]`` (-1: none): a row is on the far side when its product with
    ``normal`` exceeds the ``threshold``. With ``spread`` all rows are added instead, each times its
    excess: a step of power iteration.

    side, weight, total are # OUT.
    """
    for i in range(start, stop):
        s = slot[labels[i]]
        side[i] = False
        if s < 0:
            continue
        excess = project(rows, i, origin, normal, s) - threshold[s]
        if spread:
            add_row(rows, i, row_weight[i] * excess, origin, total, s)
        elif excess > 0.0:
            side[i] = True
            weight[s] += row_weight[i]
            add_row(rows, i, row_weight[i], origin, total, s)


@njit(nogil=True, cache=True)
def spread_of_clusters(labels, row_weight, upper, n_clusters):
    """Return each cluster's row with the largest upper bound, and a bound on its cost."""
    row = np.full(n_clusters, -1, dtype=np.int64)
    cost = np.zeros(n_clusters)
    for i in range(labels.shape[0]):
        c = labels[i]
        cost[c] += row_weight[i] * upper[i] * upper[i]
        if row[c] < 0 or upper[i] > upper[row[c]]:
            row[c] = i
    return row, cost


@njit(nogil=True, cache=True)
def pick_moves(ids, weight, cluster_weight, labels, scores, norm, unit, target, gain):
    """Find for each row the other cluster that it would cost least to join.

    The divergence of row r from center c is ``unit * (norm[r] + scores[r, c])``. Joining b costs
    ``W_b w / (W_b + w)`` times the divergence, leaving a gives back ``W_a w / (W_a - w)`` times it
    (exact for squared Euclidean distance, the second order term for others).

    target, gain are # OUT.
    """
    for r in range(ids.shape[0]):
        i = ids[r]
        own = labels[i]
        w = weight[i]
        own_value = max(0.0, unit * (norm[r] + scores[r, own]))
        least = np.inf
        target[r] = own
        for c in range(scores.shape[1]):
            if c != own:
                cost = unit * (norm[r] + scores[r, c]) * cluster_weight[c] / (cluster_weight[c] + w)
                if cost < least:
                    least = cost
                    target[r] = c
        gain[r] = w * (own_value * cluster_weight[own] / (cluster_weight[own] - w) - least)
