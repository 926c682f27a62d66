"""Merging clusters in pairs, by the exact cost of each merge."""

from __future__ import annotations

import numpy as np

from countless.rows import MemoryRows, Summary

# Partners looked at for each cluster where the second order only estimates what a merge costs.
PARTNERS = 8
# Costs that are held at once.
CHUNK_VALUES = 2**17
MANY_CLUSTERS = 1024


def profitable_merges(rows: MemoryRows, summary: Summary, limit: float) -> np.ndarray:
    """Return pairs of clusters that are each other's cheapest merge, if cheaper than the limit.

    Merging such pairs at once, and again until none is left, gives the clusters of merging the
    cheapest pair one at a time: a merge never becomes cheaper by others elsewhere (exactly so for
    squared Euclidean distance).
    """
    divergence = rows.divergence
    pairs = _candidate_pairs(rows, summary)
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


def _candidate_pairs(rows: MemoryRows, summary: Summary) -> np.ndarray:
    """Return pairs (a, b), a < b, that are among the cheapest merges of a or of b."""
    divergence, weight = rows.divergence, summary.weight
    k = len(weight)
    mean = divergence.means(*summary)
    own_cost = divergence.row_cost(mean)
    slope, offset = divergence.slope_offset(mean)
    exact = divergence.name == "sqeuclidean"
    # Which merge is cheapest among very many need not be known to the last digit.
    kind = np.float32 if exact and k > MANY_CLUSTERS else np.float64
    unit = rows.unit if exact else 1.0
    left, right = (mean / unit).astype(kind), (slope / unit).astype(kind)
    own_cost, offset = (own_cost / unit**2).astype(kind), (offset / unit**2).astype(kind)
    weight = (weight / weight.max()).astype(kind)
    partners = 1 if exact else min(PARTNERS, k - 1)

    def cheapest(start, stop):
        part = np.arange(start, stop)
        cost = own_cost[part, None] + offset - left[part] @ right.T
        cost *= weight[part, None] * weight / (weight[part, None] + weight)
        cost[np.arange(len(part)), part] = np.inf
        if exact:
            return np.column_stack([part, cost.argmin(axis=1)])
        nearest = np.argpartition(cost, partners - 1, axis=1)[:, :partners]
        return np.column_stack([np.repeat(part, partners), nearest.ravel()])

    step = max(64, CHUNK_VALUES // k)
    chunks = [(start, min(start + step, k)) for start in range(0, k, step)]
    found = np.sort(np.concatenate(rows.each(cheapest, chunks)), axis=1)
    return np.unique(found[found[:, 0] != found[:, 1]], axis=0)
