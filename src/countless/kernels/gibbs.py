"""Giving rows to clusters one by one, each by its probability given all the others.

Clusters live in slots. A slot without rows keeps its place, so that no row ever has to be renamed;
the lowest of them is where a new cluster opens.
"""

import math

import numpy as np
from numba import njit

from countless.kernels.models import (
    add_row,
    log_predictive_row,
    log_predictive_without,
    remove_row,
)

# A cluster that is exp(-40) times as likely as another one is not chosen within a lifetime.
NEGLIGIBLE = -40.0


@njit(nogil=True, cache=True)
def look_at(sizes):
    """Return how many slots there are, how many have rows, and the lowest that has none."""
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
    weights,  # IN and OUT (room,), log densities of a row in slots; then the log weights of these
    reach,  # IN, how many slots there are to choose from
    sizes,  # IN (room,) int64, how many rows each slot has
    own,  # IN, the slot that has the row, or negative
    opened,  # IN, the slot in which a new cluster would open
    join,  # IN (n,) log weights of joining a cluster by its size
    opening,  # IN, the log weight of a new one
    forced,  # IN, the slot that the row must go to; negative where chance decides
    asked,  # IN, whether the sum is asked for
    random,  # IN, a numpy Generator
    sums,  # a place to work, (room,)
):
    """Draw the slot of a row.

    Returns it, the log of the summed weights, NaN if not asked for, and the log odds of the second
    likeliest slot. The likeliest comes first: mostly chance falls there whatever the others weigh,
    at most as much as the second each.
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
    if not asked and mark * (1.0 + (reach - 1) * math.exp(odds)) < 1.0:
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
    return new, highest + math.log(total) if asked else math.nan, odds


@njit(nogil=True, cache=True)
def sweep(
    clusters,  # IN and OUT
    sizes,  # IN and OUT (room,) int64, how many rows each slot has
    rows,  # IN (n_rows, n_features)
    order,  # IN (n_visits,) int64, the rows to visit
    begin,  # IN, the visit to begin with
    labels,  # IN and OUT (n_rows,) int32, the slot of each row; negative where it has none yet
    target,  # IN (n_rows,) int32, the slot that each row must go to; empty where chance decides
    join,  # IN (n,) log weights of joining a cluster by its size
    opening,  # IN (n,) log weights of a new one by how many there are; empty where none may open
    random,  # IN, a numpy Generator
    odds,  # OUT (n_rows,) log odds of the second likeliest slot of each; empty if not asked for
):
    """Draw the slot of each visited row in turn.

    Returns the visit at which slots ran out, or the number of visits; the log probability of what
    was chosen, NaN where rows that have slots may open new ones; and the log of the summed weights
    of rows that had no slot before, which says how well the clusters foretold them.
    """
    room = sizes.shape[0]
    may_open = opening.shape[0] > 0
    weights, sums = np.empty(room), np.empty(room)
    n_slots, n_clusters, empty = look_at(sizes)
    log_chosen, log_foretold = 0.0, 0.0
    for visit in range(begin, order.shape[0]):
        if may_open and empty == room:
            return visit, log_chosen, log_foretold
        i = order[visit]
        own = labels[i]
        # A row that is alone opens its own cluster again, or joins another one.
        alone = own >= 0 and sizes[own] == 1
        opened = own if alone else empty
        reach = max(n_slots, opened + 1) if may_open else n_slots
        # Models are compiled for int64, which other kernels number clusters by.
        log_predictive_row(clusters, reach, rows, i, np.int64(own), weights)
        if own >= 0 and math.isnan(weights[own]):
            weights[own] = log_predictive_without(clusters, np.int64(own), rows, i)
        log_opening = opening[n_clusters - alone] if may_open else -math.inf
        forced = target[i] if target.shape[0] > 0 else -1
        asked = own < 0 or not may_open
        new, log_total, log_odds = draw_slot(
            weights, reach, sizes, own, opened, join, log_opening, forced, asked, random, sums
        )
        if odds.shape[0] > 0:
            odds[i] = log_odds
        log_chosen += weights[new] - log_total
        if own < 0:
            log_foretold += log_total
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
        while empty < room and sizes[empty] > 0:
            empty += 1
    return order.shape[0], log_chosen, log_foretold


@njit(nogil=True, cache=True)
def sweep_densities(
    densities,  # IN (n_rows, n_slots) log density of each row in each slot
    fresh,  # IN (n_rows,) log density of each row in a new cluster
    begin,  # IN, the row to begin with
    sizes,  # IN and OUT (n_slots,) int64, how many rows each slot has
    labels,  # IN and OUT (n_rows,) int32, the slot of each row
    join,  # IN (n,) log weights of joining a cluster by its size
    opening,  # IN (n,) log weights of a new one by how many there are
    random,  # IN, a numpy Generator
):
    """Draw the slot of each row in turn, until one of them opens a cluster.

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
