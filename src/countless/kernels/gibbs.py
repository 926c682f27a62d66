"""Collapsed Gibbs sampling: each row is reassigned given the assignments of all others.

Clusters occupy slots. A slot without rows keeps its index, so that no row has to be relabelled; a
new cluster takes the lowest empty slot.
"""

import math

import numpy as np
from numba import njit

from countless.kernels.models import add_row, log_predictive_row, log_predictive_without, remove_row

# A cluster that is exp(-40) times as probable as another one is never drawn in practice.
NEGLIGIBLE = -40.0


@njit(nogil=True, cache=True)
def count_slots(sizes):
    """Return the number of slots in use, the number of clusters, and the lowest empty slot."""
    n_slots, n_clusters, empty = 0, 0, sizes.shape[0]
    for c in range(sizes.shape[0] - 1, -1, -1):
        if sizes[c] == 0:
            empty = c
        else:
            n_clusters += 1
            n_slots = max(n_slots, c + 1)
    return n_slots, n_clusters, empty


@njit(nogil=True, cache=True)
def draw_slot(
    weights,  # IN and OUT (capacity,), log densities of a row in slots; OUT their log weights
    reach,  # IN, number of slots to choose from
    sizes,  # IN (capacity,) int64, number of rows in each slot
    own,  # IN, the row's current slot, or negative
    opened,  # IN, the slot that a new cluster would take
    join,  # IN (n,) log prior weights of joining a cluster, by its size
    opening,  # IN, the log prior weight of a new cluster
    forced,  # IN, forced slot; negative: the slot is sampled
    needs_total,  # IN, whether the normalizing sum is needed
    random,  # IN, a numpy Generator
    sums,  # workspace, (capacity,)
):
    """Sample the slot of a row.

    Returns the slot; the log of the summed weights, NaN unless needed; and the log odds of the
    second most probable slot. The most probable slot is first in the cumulative sum: usually the
    uniform draw selects it whatever the other weights, each bounded by the second largest.
    """
    highest, second, likeliest = -math.inf, -math.inf, 0
    for c in range(reach):
        weights[c] += opening if c == opened else join[sizes[c] - (c == own)]
        if weights[c] > highest:
            highest, second, likeliest = weights[c], highest, c
        else:
            second = max(second, weights[c])
    odds = second - highest
    if odds <= NEGLIGIBLE:
        return likeliest if forced < 0 else forced, highest, odds
    mark = random.random() if forced < 0 else math.inf
    if not needs_total and mark * (1.0 + (reach - 1) * math.exp(odds)) < 1.0:
        return likeliest, math.nan, odds
    total = 1.0
    for c in range(reach):
        below = weights[c] - highest
        if below > NEGLIGIBLE and c != likeliest:
            total += math.exp(below)
        sums[c] = total
    new = forced
    if forced < 0:
        mark *= total
        new = likeliest
        if mark >= 1.0:
            new = 0
            while sums[new] <= mark and sums[new] < total:
                new += 1
    return new, highest + math.log(total) if needs_total else math.nan, odds


@njit(nogil=True, cache=True)
def sweep(
    clusters,  # IN and OUT
    sizes,  # IN and OUT (capacity,) int64, number of rows in each slot
    rows,  # IN (n_rows, n_features)
    order,  # IN (n_visits,) int64, the rows to visit
    begin,  # IN, index of the first visit
    labels,  # IN and OUT (n_rows,) int32, slot of each row; negative: not assigned yet
    target,  # IN (n_rows,) int32, forced slot of each row; empty: slots are sampled
    join,  # IN (n,) log prior weights of joining a cluster, by its size
    opening,  # IN (n,) log prior weights of a new cluster, by cluster count; empty: none may open
    random,  # IN, a numpy Generator
    odds,  # OUT (n_rows,) log odds of the second most probable slot of each; empty: not needed
):
    """Sample the slot of each visited row in turn.

    Returns the visit at which no empty slot was left, or the number of visits; the log probability
    of the choices, NaN where assigned rows may open new clusters; and the log of the summed weights
    of rows that were not assigned before, their log predictive density.
    """
    capacity = sizes.shape[0]
    may_open = opening.shape[0] > 0
    weights, sums = np.empty(capacity), np.empty(capacity)
    n_slots, n_clusters, empty = count_slots(sizes)
    log_chosen, log_predicted = 0.0, 0.0
    for visit in range(begin, order.shape[0]):
        if may_open and empty == capacity:
            return visit, log_chosen, log_predicted
        i = order[visit]
        own = labels[i]
        # A singleton reopens its own cluster or joins another one.
        alone = own >= 0 and sizes[own] == 1
        opened = own if alone else empty
        reach = max(n_slots, opened + 1) if may_open else n_slots
        # Models are compiled for int64 cluster indices, as other kernels pass them.
        log_predictive_row(clusters, reach, rows, i, np.int64(own), weights)
        if own >= 0 and math.isnan(weights[own]):
            weights[own] = log_predictive_without(clusters, np.int64(own), rows, i)
        log_opening = opening[n_clusters - alone] if may_open else -math.inf
        forced = target[i] if target.shape[0] > 0 else -1
        needs_total = own < 0 or not may_open
        new, log_total, log_odds = draw_slot(
            weights, reach, sizes, own, opened, join, log_opening, forced, needs_total, random, sums
        )
        if odds.shape[0] > 0:
            odds[i] = log_odds
        log_chosen += weights[new] - log_total
        if own < 0:
            log_predicted += log_total
        if new == own:
            continue
        if own >= 0:
            remove_row(clusters, np.int64(own), rows, i)
            sizes[own] -= 1
            if sizes[own] == 0:
                n_clusters -= 1
                empty = min(empty, own)
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
    return order.shape[0], log_chosen, log_predicted


@njit(nogil=True, cache=True)
def sweep_densities(
    densities,  # IN (n_rows, n_slots) log density of each row in each slot
    fresh,  # IN (n_rows,) log density of each row in a new cluster
    begin,  # IN, first row to visit
    sizes,  # IN and OUT (n_slots,) int64, number of rows in each slot
    labels,  # IN and OUT (n_rows,) int32, the slot of each row
    join,  # IN (n,) log prior weights of joining a cluster, by its size
    opening,  # IN (n,) log prior weights of a new cluster, by cluster count
    random,  # IN, a numpy Generator
):
    """Sample the slot of each row in turn, until one of them opens a cluster.

    Returns the row after the last one visited, and whether that one is left without a slot.
    """
    n_slots = sizes.shape[0]
    sums = np.empty(n_slots + 1)
    n_clusters = 0
    for c in range(n_slots):
        n_clusters += sizes[c] > 0
    for i in range(begin, labels.shape[0]):
        own = labels[i]
        sizes[own] -= 1
        n_clusters -= sizes[own] == 0
        sums[n_slots] = fresh[i] + opening[n_clusters]
        highest = sums[n_slots]
        for c in range(n_slots):
            sums[c] = densities[i, c] + join[sizes[c]]
            highest = max(highest, sums[c])
        total = 0.0
        for c in range(n_slots + 1):
            below = sums[c] - highest
            if below > NEGLIGIBLE:
                total += math.exp(below)
            sums[c] = total
        mark = random.random() * total
        new = 0
        while sums[new] <= mark and sums[new] < total:
            new += 1
        if new == n_slots:
            return i + 1, True
        labels[i] = new
        n_clusters += sizes[new] == 0
        sizes[new] += 1
    return labels.shape[0], False
