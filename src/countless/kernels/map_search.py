"""Moves that raise the log joint density of a partition, for `countless._mcmc.map_search`."""

import math

import numpy as np
from numba import njit

from countless.kernels.arrays import borrowed
from countless.kernels.gibbs import count_slots
from countless.kernels.models import (
    add_row,
    log_marginals_together,
    log_predictive_row,
    log_predictive_without,
    remove_row,
)

# Smaller gains of a move or a merge are rounding errors.
LEAST_GAIN = 1e-7


@njit(nogil=True, cache=True)
def hard_sweep(
    clusters,  # IN and OUT
    sizes,  # IN and OUT (capacity,) int64, rows of each slot
    rows,  # IN (n_rows, n_features)
    order,  # IN (n_visits,) int64, the rows to visit
    begin,  # IN, index of the first visit
    labels,  # IN and OUT (n_rows,) int32, slot of each row; negative: not assigned yet
    join,  # IN (n,) log prior weights of joining a cluster, by its size
    opening,  # IN (n,) log prior weights of a new cluster, by cluster count; empty: none may open
    margins,  # OUT (n_rows,) difference of the log weights of the chosen slot and the next best
):
    """Move each visited row in turn to the slot of highest conditional probability.

    Returns the visit at which no empty slot was left, or the number of visits; the gain in log
    joint density of rows that had a slot before; and the number of rows that moved.
    """
    capacity = sizes.shape[0]
    may_open = opening.shape[0] > 0
    weights = np.empty(capacity)
    n_slots, n_clusters, empty = count_slots(sizes)
    gain, n_moved = 0.0, 0
    for visit in range(begin, order.shape[0]):
        if may_open and empty == capacity:
            return visit, gain, n_moved
        i = order[visit]
        own = labels[i]
        alone = own >= 0 and sizes[own] == 1
        opened = own if alone else empty
        reach = max(n_slots, opened + 1) if may_open else n_slots
        log_predictive_row(clusters, reach, rows, i, np.int64(own), weights)
        if own >= 0 and math.isnan(weights[own]):
            weights[own] = log_predictive_without(clusters, np.int64(own), rows, i)
        log_opening = opening[n_clusters - alone] if may_open else -math.inf
        highest, second, new = -math.inf, -math.inf, int(own)
        for c in range(reach):
            weights[c] += log_opening if c == opened else join[sizes[c] - (c == own)]
            if weights[c] > highest:
                highest, second, new = weights[c], highest, c
            else:
                second = max(second, weights[c])
        margins[i] = highest - second
        if own >= 0:
            if not may_open and alone:  # a piece keeps its last row
                continue
            if not highest > weights[own] + LEAST_GAIN:
                continue
            gain += highest - weights[own]
            remove_row(clusters, np.int64(own), rows, i)
            sizes[own] -= 1
            if sizes[own] == 0:
                n_clusters -= 1
                empty = min(empty, own)
        if new < 0:  # every slot has weight zero
            return visit, math.nan, n_moved
        n_moved += 1
        add_row(clusters, new, rows, i)
        sizes[new] += 1
        labels[i] = new
        if sizes[new] == 1:
            n_clusters += 1
        n_slots = max(n_slots, new + 1)
        while sizes[n_slots - 1] == 0:
            n_slots -= 1
        while empty < capacity and sizes[empty] > 0:
            empty += 1
    return order.shape[0], gain, n_moved


@njit(nogil=True, cache=True)
def _pair_gains(
    clusters,  # workspace
    tables,  # IN (width, n_counts), terms of log marginals by count
    statistics,  # IN (m, width)
    marginals,  # IN (m,)
    sizes,  # IN (m,)
    size,  # IN (n + 1,) log weights of sizes
    c,  # IN
    others,  # IN (n_others,)
    together,  # workspace, (n_others,)
    gains,  # OUT (m, m), filled in row and column c
):
    """Compute the gain of merging c with some others, without the prior's cluster count term."""
    n_others = others.shape[0]
    log_marginals_together(clusters, tables, statistics, c, others, n_others, together)
    for m in range(n_others):
        b = others[m]
        gain = together[m] - marginals[c] - marginals[b]
        gain += size[sizes[c] + sizes[b]] - size[sizes[c]] - size[sizes[b]]
        gains[c, b] = gains[b, c] = gain


@njit(nogil=True, cache=True)
def agglomerate(
    clusters,  # workspace
    tables,  # IN (width, n_counts), terms of log marginals by count
    statistics,  # IN and OUT (m, width)
    sizes,  # IN and OUT (m,) int64
    marginals,  # IN and OUT (m,) log marginals
    size,  # IN (n + 1,) log weights of sizes
    opening,  # IN (n,) log weights of a singleton, by the number of other clusters
    n_others,  # IN, number of clusters besides these
    to_one,  # IN, whether to continue where a merge no longer gains
    partner,  # OUT (m,) int64, the best partner of each cluster initially
    merges,  # OUT (m - 1, 2) int64, the merged cluster and the one that it absorbs
):
    """Merge the pair of clusters of highest gain repeatedly; return the number of merges.

    The statistics of an absorbed cluster are undefined.
    """
    clusters = borrowed(clusters)
    m = sizes.shape[0]
    gains = np.full((m, m), -math.inf)
    together, others = np.empty(m), np.arange(m)
    for c in range(m):
        _pair_gains(
            clusters, tables, statistics, marginals, sizes, size, c, others[:c], together, gains
        )
    best = np.empty(m, dtype=np.int64)
    for c in range(m):
        best[c] = partner[c] = np.argmax(gains[c])
    alive = np.ones(m, dtype=np.bool_)
    for merged in range(m - 1):
        a, highest, k = -1, -math.inf, m + n_others - merged
        for c in range(m):
            if alive[c] and gains[c, best[c]] > highest:
                a, highest = c, gains[c, best[c]]
        # Where the prior allows fewer clusters, the weight of the last one is -inf.
        if a < 0 or not (to_one or highest - (opening[k - 1] - size[1]) > LEAST_GAIN):
            return merged
        a, b = min(a, best[a]), max(a, best[a])
        merges[merged, 0], merges[merged, 1] = a, b
        marginals[a] += marginals[b] + highest
        marginals[a] -= size[sizes[a] + sizes[b]] - size[sizes[a]] - size[sizes[b]]
        statistics[a] += statistics[b]
        sizes[a] += sizes[b]
        sizes[b], alive[b] = 0, False
        gains[b, :] = -math.inf
        gains[:, b] = -math.inf
        n_alive = 0
        for c in range(m):
            if alive[c] and c != a:
                others[n_alive] = c
                n_alive += 1
        some = others[:n_alive]
        _pair_gains(clusters, tables, statistics, marginals, sizes, size, a, some, together, gains)
        for c in range(m):
            if alive[c] and (c == a or best[c] == a or best[c] == b):
                best[c] = np.argmax(gains[c])
            elif alive[c] and gains[c, a] > gains[c, best[c]]:
                best[c] = a
    return m - 1
