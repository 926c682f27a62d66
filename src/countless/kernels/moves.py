"""Sums from which the gain of splits and of single-row moves follows, for all clusters at once."""

import numpy as np
from numba import njit

from countless.kernels.assign import round_up
from countless.kernels.rows import add_row, divergence, project


@njit(nogil=True, cache=True)
def add_side(
    rows, row_weight, labels, slot, normal, threshold, shrink, scale,
    side, weight, total,
):  # fmt: skip
    """Sum the rows on the far side of a hyperplane through their cluster.

    Cluster ``c`` has hyperplane ``slot[c]`` (-1: none): a row is on the far side when its product
    with ``normal`` exceeds the ``threshold``. With ``shrink`` above 0 all rows are summed instead,
    each times its excess and ``shrink``: a step of power iteration.

    side, weight, total are # OUT.
    """
    for i in range(labels.shape[0]):
        s = slot[labels[i]]
        if s < 0:
            continue
        side[i] = False
        excess = project(rows, i, scale.origin, normal, s) - threshold[s]
        if shrink > 0.0:
            add_row(rows, i, row_weight[i] * excess * shrink, scale, total, s)
        elif excess > 0.0:
            side[i] = True
            weight[s] += np.int64(np.rint(row_weight[i] * scale.per_weight_step))
            add_row(rows, i, row_weight[i], scale, total, s)


@njit(nogil=True, cache=True)
def spread_of_clusters(rows, row_weight, centers, labels, start, upper, farthest, reach, cost):
    """Find each cluster's row that is farthest from its center, and the cluster's cost.

    upper, farthest (-1: none), reach, cost are # OUT.
    """
    for i in range(labels.shape[0]):
        c = labels[i]
        value = divergence(rows, i, centers, c)
        upper[i] = round_up(np.sqrt(value))
        if row_weight[i] > 0.0:
            cost[c] += row_weight[i] * value
            if farthest[c] < 0 or value > reach[c]:
                farthest[c] = start + i
                reach[c] = value


@njit(nogil=True, cache=True)
def pick_moves(
    rows, ids, weight, cluster_weight, centers, labels, scores, norm, error, unit, price,
    target, gain,
):  # fmt: skip
    """Find each row's best move: to another cluster, or to a new one (-1).

    ``unit * (norm[r] + scores[r, c] - error[r])`` is a lower bound of the divergence of row
    ``ids[r]`` from center c. Joining b costs ``W_b w / (W_b + w)`` times the divergence, and
    leaving a saves ``W_a w / (W_a - w)`` times it (exact for squared Euclidean distance, the second
    order term for others).

    target, gain are # OUT.
    """
    for r in range(ids.shape[0]):
        i = ids[r]
        own = labels[i]
        w = weight[i]
        floor = norm[r] - error[r]
        least = np.inf
        target[r] = own
        # The best by the scores comes first, so that few others need an exact divergence.
        best, best_score = own, np.inf
        for c in range(scores.shape[1]):
            share = cluster_weight[c] / (cluster_weight[c] + w)
            if c != own and (floor + scores[r, c]) * share < best_score:
                best, best_score = c, (floor + scores[r, c]) * share
        for visit in range(-1, scores.shape[1]):
            c = best if visit < 0 else visit
            if c == own or visit == best:
                continue
            share = cluster_weight[c] / (cluster_weight[c] + w)
            if unit * (floor + scores[r, c]) * share <= least:
                cost = divergence(rows, i, centers, c) * share
                if cost < least or (cost == least and c < target[r]):
                    least, target[r] = cost, c
        given_back = divergence(rows, i, centers, own) * cluster_weight[own]
        given_back *= w / (cluster_weight[own] - w)
        gain[r] = given_back - w * least
        if given_back - price > gain[r]:
            gain[r], target[r] = given_back - price, -1
