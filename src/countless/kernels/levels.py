"""One pass of k-means over weighted points, from their divergences to the centers."""

from __future__ import annotations

import numpy as np
from numba import njit


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
