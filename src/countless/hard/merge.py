"""Merging clusters in pairs, by the exact cost of each merge."""

from __future__ import annotations

import numpy as np

from countless.hard.divergence import Divergence
from countless.rows import Summary

# Partners looked at for each cluster: those that seem cheapest to the second order.
PARTNERS = 16
CHUNK = 256


def profitable_merges(divergence: Divergence, summary: Summary, limit: float) -> np.ndarray:
    """Return pairs of clusters that are each other's cheapest merge, where that costs less than the limit.

    Merging such pairs at once, and again until none is left, gives the clusters of merging the cheapest pair one at a time:
    a merge never becomes cheaper by others elsewhere (exactly so for squared Euclidean distance).
    """
    pairs = _candidate_pairs(divergence, summary)
    a, b = pairs.T
    energy = divergence.energy(*summary)
    joined = Summary(summary.weight[a] + summary.weight[b], summary.total[a] + summary.total[b])
    cost = divergence.energy(*joined) - energy[a] - energy[b]
    order = np.argsort(cost, kind="stable")
    # The first time that a cluster turns up in the order of costs is with its cheapest partner.
    first = np.full(len(summary.weight), len(order))
    for side in (a, b):
        np.minimum.at(first, side[order], np.arange(len(order)))
    place = np.flatnonzero((first[a[order]] == first[b[order]]) & (cost[order] < limit))
    place = place[first[a[order[place]]] == place]
    return pairs[order[place]]


def _candidate_pairs(divergence: Divergence, summary: Summary) -> np.ndarray:
    """Return pairs (a, b), a < b, that are among the cheapest merges of a or of b."""
    weight = summary.weight
    k = len(weight)
    mean = divergence.means(*summary)
    own_cost = divergence.row_cost(mean)
    slope, offset = divergence.slope_offset(mean)
    partners = min(PARTNERS, k - 1)
    found = []
    for start in range(0, k, CHUNK):
        part = np.arange(start, min(start + CHUNK, k))
        between = own_cost[part, None] + offset - mean[part] @ slope.T
        cost = between * (weight[part, None] * weight / (weight[part, None] + weight))
        cost[np.arange(len(part)), part] = np.inf
        nearest = np.argpartition(cost, partners - 1, axis=1)[:, :partners]
        found.append(np.column_stack([np.repeat(part, partners), nearest.ravel()]))
    return np.unique(np.sort(np.concatenate(found), axis=1), axis=0)
