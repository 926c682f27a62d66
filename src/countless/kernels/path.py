"""Compiled loops of the penalty path: Ward merges, and k-means over weighted points."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(nogil=True, cache=True)
def find_partner(matrix, cluster, alive, partner, lowest):
    """Find the cheapest partner of one cluster among those left. partner, lowest are # OUT."""
    best = 0
    for other in range(1, alive):
        if matrix[cluster, other] < matrix[cluster, best]:
            best = other
    partner[cluster] = best
    lowest[cluster] = matrix[cluster, best]


@njit(nogil=True, cache=True)
def replace_pair(matrix, partner, lowest, a, b, row, alive):
    """Put the merge of a < b, whose costs are ``row``, at index a, and the last cluster at index b.

    So the remaining clusters keep the first indices, and late merges are cheap. matrix, partner,
    lowest are # OUT.
    """
    last = alive - 1
    for other in range(alive):
        matrix[a, other] = row[other]
        matrix[other, a] = row[other]
    matrix[a, a] = np.inf
    if b != last:
        for other in range(alive):
            matrix[b, other] = matrix[last, other]
            matrix[other, b] = matrix[other, last]
        matrix[b, b] = np.inf
        partner[b] = partner[last]
        lowest[b] = lowest[last]
    for cluster in range(last):
        chosen = partner[cluster]
        if cluster == a or chosen in (a, b):
            find_partner(matrix, cluster, last, partner, lowest)
            continue
        if chosen == last:
            partner[cluster] = b
        if matrix[cluster, a] < lowest[cluster]:
            partner[cluster] = a
            lowest[cluster] = matrix[cluster, a]


@njit(nogil=True, cache=True)
def sum_clusters(points, weight, labels, cluster_weight, cluster_total):
    """Add up the weights and the weighted points of each cluster."""
    cluster_weight[:] = 0.0  # OUT
    cluster_total[:] = 0.0  # OUT
    for i in range(len(points)):
        cluster_weight[labels[i]] += weight[i]
        for j in range(points.shape[1]):
            cluster_total[labels[i], j] += weight[i] * points[i, j]


@njit(nogil=True, cache=True)
def assign_points(divergence, labels):
    """Assign each point to its nearest center; return how many labels changed.

    ``divergence`` has a row for each point and a column for each center.
    """
    n_moved = 0
    for i in range(len(labels)):
        nearest = np.argmin(divergence[i])
        if nearest != labels[i]:
            n_moved += 1
            labels[i] = nearest  # OUT
    return n_moved


@njit(nogil=True, cache=True)
def weight_near_border(divergence, weight, apart, reach):
    """Return the weight of the points near the border of their cluster.

    The margin of a point is 0 at the border with the next cluster and 1/2 at its own center. A
    point at the border counts fully, and one with a margin of ``reach`` not at all.
    ``apart[a, b]`` is the divergence of center a from center b.
    """
    near = 0.0
    for i in range(len(weight)):
        lowest, second, nearest, next_nearest = np.inf, np.inf, 0, 0
        for c in range(divergence.shape[1]):
            value = divergence[i, c]
            if value < lowest:
                second, next_nearest = lowest, nearest
                lowest, nearest = value, c
            elif value < second:
                second, next_nearest = value, c
        farthest = 2.0 * reach * apart[nearest, next_nearest]
        if second - lowest < farthest:
            near += weight[i] * (1.0 - (second - lowest) / farthest)
    return near
