"""Splitting clusters by 2-means in the feature space of a kernel, all at once."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from countless._search.kernel.clusters import KernelClusters
from countless._search.split import PASSES

# Least weight of a half, as a share of its cluster's: less may be rounding of a difference.
LEAST_SHARE = 1e-9


class Halves(NamedTuple):
    """The result of splitting some clusters."""

    cluster: np.ndarray  # (m,) the clusters
    gain: np.ndarray  # (m,) decrease of the within-cluster cost, without penalties
    far: np.ndarray  # (n_rows,) bool, True in the second half, which gets a new label


def halve(clusters: KernelClusters, least: float) -> Halves:
    """Split clusters that cost more than ``least``, by 2-means along the principal direction.

    A direction is a weighted sum of rows, and projections on it need the kernel within clusters
    only: for k clusters of equal size one k-th of the kernel is read.
    """
    table, labels = clusters.table, clusters.labels
    k, weight = clusters.n_clusters, clusters.table.weight
    distance = clusters.distances()
    tried = np.bincount(labels, weight * distance, minlength=k) > least
    inside = tried[labels] & (weight > 0)
    if not tried.any():
        return Halves(np.empty(0, dtype=np.intp), np.empty(0), inside)

    def within(coefficient: np.ndarray) -> np.ndarray:
        return table.within(labels, np.where(inside, coefficient, 0.0))

    def by_cluster(values: np.ndarray) -> np.ndarray:
        return np.bincount(labels[inside], values[inside], minlength=k)

    def about_mean(values: np.ndarray) -> np.ndarray:
        return values - (by_cluster(weight * values) / clusters.weight)[labels]

    # Start from the direction of the farthest row; a step of power iteration turns it towards the
    # first principal direction.
    everyone = np.arange(table.n_rows)
    own = clusters.sums[labels, everyone]
    farthest = _farthest(labels, inside, distance, k)
    along = table.kernel[farthest[labels], everyone] - own / clusters.weight[labels]
    far = inside & (about_mean(within(weight * about_mean(along))) > 0)
    shared = within(weight * far)  # each row's kernel sum with the second half of its cluster
    for last in (False,) * PASSES + (True,):
        far_weight, far_square = by_cluster(weight * far), by_cluster(weight * far * shared)
        near_weight = clusters.weight - far_weight
        near_square = clusters.square - 2 * by_cluster(weight * far * own) + far_square
        proper = np.minimum(near_weight, far_weight) > LEAST_SHARE * clusters.weight
        # Empty halves get dummy weights, so that no division by zero occurs.
        near_weight, far_weight = (np.where(proper, w, 1.0) for w in (near_weight, far_weight))
        if last:
            break
        near_length, far_length = near_square / near_weight**2, far_square / far_weight**2
        to_near = near_length[labels] - 2 * (own - shared) / near_weight[labels]
        to_far = far_length[labels] - 2 * shared / far_weight[labels]
        before, far = far, inside & proper[labels] & (to_near > to_far)
        shared += within(weight * (far.astype(np.float64) - before))
    gain = near_square / near_weight + far_square / far_weight - clusters.square / clusters.weight
    kept = tried & proper
    return Halves(np.flatnonzero(kept), gain[kept], far & kept[labels])


def _farthest(labels: np.ndarray, inside: np.ndarray, distance: np.ndarray, k: int) -> np.ndarray:
    """Return the first of the farthest rows of each cluster; 0 for clusters not tried."""
    ids = np.flatnonzero(inside)
    ids = ids[np.lexsort((-distance[ids], labels[ids]))]
    found, first = np.unique(labels[ids], return_index=True)
    farthest = np.zeros(k, dtype=np.int64)
    farthest[found] = ids[first]
    return farthest
