"""Merging clusters in pairs, by the exact cost of each merge."""

from __future__ import annotations

import numpy as np

from countless.hard.divergence import Divergence
from countless.rows import Summary

# Partners looked at for each cluster: those that seem cheapest to the second order.
PARTNERS = 16
CHUNK = 256


def profitable_merges(divergence: Divergence, summary: Summary, limit: float) -> np.ndarray:
    """Return pairs of clusters, each cluster in one pair at most, whose merge costs less than the limit.

    The cheapest come first; since pairs share no cluster, all of them can be merged at once.
    """
    pairs = _candidate_pairs(divergence, summary)
    a, b = pairs.T
    energy = divergence.energy(*summary)
    joined = divergence.energy(summary.weight[a] + summary.weight[b], summary.total[a] + summary.total[b])
    cost = joined - energy[a] - energy[b]
    taken = np.zeros(len(summary.weight), dtype=bool)
    chosen = []
    for pair in np.argsort(cost, kind="stable"):
        if cost[pair] >= limit:
            break
        if not taken[pairs[pair]].any():
            taken[pairs[pair]] = True
            chosen.append(pairs[pair])
    return np.array(chosen, dtype=np.int64).reshape(-1, 2)


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
