"""Merging clusters in pairs, by the exact cost of each merge."""

from __future__ import annotations

import numpy as np

from countless.rows import Frame, Rows, Summary

# Partners looked at for each cluster where the second order only estimates what a merge costs.
PARTNERS = 8
# Costs that are held at once.
CHUNK_VALUES = 2**17
MANY_CLUSTERS = 1024


def profitable_merges(rows: Rows, summary: Summary, limit: float) -> np.ndarray:
    """Return pairs of clusters that are each other's cheapest merge, if cheaper than the limit.

    Merging such pairs at once, and again until none is left, gives the clusters of merging the
    cheapest pair one at a time: a merge never becomes cheaper by others elsewhere (exactly so for
    squared Euclidean distance).
    """
    frame = rows.frame
    pairs = _candidate_pairs(rows, summary)
    a, b = pairs.T
    energy = frame.energy(summary)
    cost = np.empty(len(pairs))
    step = max(1, CHUNK_VALUES // rows.n_features)
    for at in range(0, len(pairs), step):
        part = slice(at, at + step)
        joined = summary.take(a[part])
        joined.absorb(summary.take(b[part]))
        cost[part] = frame.energy(joined) - energy[a[part]] - energy[b[part]]
    order = np.argsort(cost, kind="stable")
    # The first time that a cluster turns up in the order of costs is with its cheapest partner.
    first = np.full(len(summary.weight), len(order))
    for side in (a, b):
        np.minimum.at(first, side[order], np.arange(len(order)))
    place = np.flatnonzero((first[a[order]] == first[b[order]]) & (cost[order] < limit))
    place = place[first[a[order[place]]] == place]
    return pairs[order[place]]


def _candidate_pairs(rows: Rows, summary: Summary) -> np.ndarray:
    """Return pairs (a, b), a < b, that are among the cheapest merges of a or of b."""
    frame, k = rows.frame, len(summary.weight)
    exact = frame.divergence.name == "sqeuclidean"
    own_cost, offset, left, right = _forms(frame, summary, exact)
    weight = frame.weights(summary)
    weight = (weight / weight.max()).astype(left.dtype)
    partners = 1 if exact else min(PARTNERS, k - 1)

    def cheapest(start, stop):
        part = np.arange(start, stop)
        cost = left[part] @ right.T
        np.subtract(own_cost[part, None] + offset, cost, out=cost)
        cost *= weight[part, None] * weight / (weight[part, None] + weight)
        cost[np.arange(len(part)), part] = np.inf
        if exact:
            return np.column_stack([part, cost.argmin(axis=1)])
        nearest = np.argpartition(cost, partners - 1, axis=1)[:, :partners]
        return np.column_stack([np.repeat(part, partners), nearest.ravel()])

    step = max(16, CHUNK_VALUES // k)
    chunks = [(start, min(start + step, k)) for start in range(0, k, step)]
    found = np.sort(np.concatenate(rows.each(cheapest, chunks)), axis=1)
    return np.unique(found[found[:, 0] != found[:, 1]], axis=0)


def _forms(frame: Frame, summary: Summary, exact: bool):
    """Return clusters' means such that ``own_cost + offset - left @ right.T`` are divergences."""
    if not exact:
        mean = frame.means(summary)
        slope, offset = frame.divergence.slope_offset(mean)
        return frame.divergence.row_cost(mean), offset, mean, slope
    # Which merge is cheapest among very many need not be known to the last digit.
    kind = np.float32 if len(summary.weight) > MANY_CLUSTERS else np.float64
    left = np.empty(summary.total.shape, dtype=kind)
    step = max(1, CHUNK_VALUES // frame.n_features)
    for at in range(0, len(left), step):
        weight, total = frame.floats(summary.take(slice(at, at + step)))
        total /= frame.unit / np.sqrt(2.0) * weight[:, None]
        left[at : at + step] = total
    square = 0.5 * np.einsum("ij,ij->i", left, left)
    return square, square, left, left
