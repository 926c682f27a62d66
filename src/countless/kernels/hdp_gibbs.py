"""Collapsed Gibbs sampling of the HDP mixture: single rows, and whole local clusters, move.

Direct assignment sampler (Teh, Jordan, Beal and Blei 2006). Every cluster c has a global weight
``weights[c]``; the last entry is the total weight of all clusters without rows. A row of group j
is assigned to cluster c with probability proportional to ``counts[j, c] + alpha * weights[c]``
times its predictive density. Clusters occupy slots, as in `countless.kernels.gibbs`; a new one
takes the lowest empty slot.
"""

import math

import numpy as np
from numba import njit

from countless.kernels.gibbs import NEGLIGIBLE
from countless.kernels.models import (
    add_row,
    clear,
    log_marginal,
    log_marginals,
    log_marginals_together,
    log_predictive_row,
    log_predictive_without,
    remove_row,
    set_statistics,
)

# Lower bound of the weights, so that their logarithms are finite.
LEAST_WEIGHT = 1e-300


@njit(nogil=True, cache=True)
def sweep_groups(
    clusters,  # IN and OUT
    counts,  # IN and OUT (n_groups, capacity) int64, number of rows of each group in each slot
    sizes,  # IN and OUT (capacity,) int64, number of rows in each slot
    weights,  # IN and OUT (capacity + 1,), of each slot; the last is that of all empty clusters
    rows,  # IN (n_rows, n_features)
    group,  # IN (n_rows,) int32
    order,  # IN (n_visits,) int64, the rows to visit
    begin,  # IN, index of the first visit
    labels,  # IN and OUT (n_rows,) int32, slot of each row; negative: not assigned yet
    target,  # IN (n_rows,) int32, forced slot of each row; empty: slots are sampled
    alpha,  # IN, the concentration of the groups
    gamma,  # IN, the concentration of the global weights
    discount,  # IN, their discount; if it and gamma are 0, no cluster may open
    random,  # IN, a numpy Generator
):
    """Sample the slot of each visited row in turn.

    Returns the visit at which no empty slot was left, or the number of visits; and the log
    probability of the choices.
    """
    capacity = sizes.shape[0]
    may_open = gamma + discount > 0.0
    density, sums = np.empty(capacity), np.empty(capacity)
    n_slots, n_used, empty = 0, 0, capacity
    for c in range(capacity - 1, -1, -1):
        if sizes[c] == 0:
            empty = c
        else:
            n_used += 1
            n_slots = max(n_slots, c + 1)
    log_chosen = 0.0
    for visit in range(begin, order.shape[0]):
        if may_open and empty == capacity:
            return visit, log_chosen
        i = order[visit]
        j, own = group[i], labels[i]
        unseen = weights[capacity]
        if own >= 0:
            counts[j, own] -= 1
        alone = may_open and own >= 0 and sizes[own] == 1
        if alone:  # without this row the cluster is empty, and its weight unseen
            unseen += weights[own]
        opened = own if alone else empty
        reach = max(n_slots, opened + 1) if may_open else n_slots
        # Models are compiled for int64 cluster indices, as other kernels pass them.
        log_predictive_row(clusters, reach, rows, i, np.int64(own), density)
        if own >= 0 and math.isnan(density[own]):
            density[own] = log_predictive_without(clusters, np.int64(own), rows, i)
        highest, likeliest = -math.inf, 0
        for c in range(reach):
            if (sizes[c] > 0 or c == opened) and density[c] > highest:
                highest, likeliest = density[c], c
        # The cutoff is relative to the highest density times its prior weight, which may be small.
        least = _weight(
            counts[j, likeliest], alpha, weights[likeliest], unseen, likeliest == opened
        )
        negligible = NEGLIGIBLE + math.log(min(least, 1.0))
        total = 0.0
        for c in range(reach):
            below = density[c] - highest
            if below > negligible and (sizes[c] > 0 or c == opened):
                weight = _weight(counts[j, c], alpha, weights[c], unseen, c == opened)
                total += weight * math.exp(below)
            sums[c] = total
        if target.shape[0] > 0:
            new = target[i]
        else:
            mark = random.random() * total
            new = 0
            while sums[new] <= mark and sums[new] < total:
                new += 1
        chosen = _weight(counts[j, new], alpha, weights[new], unseen, may_open and new == opened)
        log_chosen += density[new] - highest + math.log(chosen / total)
        counts[j, new] += 1
        if may_open and new == opened:
            share, rest = _draw_share(gamma, discount, n_used - alone, random)
            weights[new] = max(unseen * share, LEAST_WEIGHT)
            weights[capacity] = max(unseen * rest, LEAST_WEIGHT)
            n_used += not alone
        elif alone:
            n_used -= 1
        if new == own:
            continue
        if own >= 0:
            remove_row(clusters, np.int64(own), rows, i)
            sizes[own] -= 1
            if alone:
                weights[capacity] = unseen
                weights[own] = 0.0
                empty = min(empty, own)
        add_row(clusters, new, rows, i)
        sizes[new] += 1
        labels[i] = new
        n_slots = max(n_slots, new + 1)
        while sizes[n_slots - 1] == 0:
            n_slots -= 1
        while empty < capacity and sizes[empty] > 0:
            empty += 1
    return order.shape[0], log_chosen


@njit(nogil=True, cache=True)
def _draw_share(gamma, discount, n_others, random):
    """Draw the share of the unseen weight that a new cluster takes, by stick breaking; the rest."""
    if discount == 0.0:  # Beta(1, gamma)
        log_rest = math.log(1.0 - random.random()) / gamma
        return -math.expm1(log_rest), math.exp(log_rest)
    share = random.beta(1.0 - discount, gamma + (n_others + 1) * discount)
    return share, 1.0 - share


@njit(nogil=True, cache=True)
def _weight(count, alpha, weight, unseen, opens):
    return alpha * unseen if opens else count + alpha * weight


@njit(nogil=True, cache=True)
def move_local_clusters(
    work,  # workspace for one cluster
    statistics,  # IN and OUT (capacity + 1, width), of each slot; the last is workspace
    counts,  # IN and OUT (n_groups, capacity) int64
    weights,  # IN and OUT (capacity + 1,), as above
    rows,  # IN (n_rows, n_features)
    members,  # IN (n_rows,) int64, row indices sorted by group
    starts,  # IN (n_groups + 1,) int64, where each group begins in ``members``
    visits,  # IN (n_visits, 2) int64, a group and a row of it
    begin,  # IN, index of the first visit
    labels,  # IN and OUT (n_rows,) int32
    alpha,  # IN
    gamma,  # IN
    discount,  # IN
    random,  # IN, a numpy Generator
):
    """Resample the cluster of all rows that share a group and a cluster with a visited row.

    These rows (a local cluster) move together, to a cluster without rows of their group or to a
    new one. The weight of the new cluster is sampled before the choice; if the local cluster is
    the only one of its cluster, it is the weight that this cluster has. Returns the visit at which
    no empty slot was left, or the number of visits.
    """
    capacity = counts.shape[1]
    no_tables = np.empty((statistics.shape[1], 0))
    sizes = counts.sum(axis=0)
    n_slots = capacity
    while sizes[n_slots - 1] == 0:
        n_slots -= 1
    alone = np.zeros(capacity)  # the log marginal likelihood of each slot
    log_marginals(work, statistics[:n_slots], alone)
    places = np.empty(capacity, dtype=np.int64)
    together, sums = np.empty(capacity), np.empty(capacity)
    for visit in range(begin, visits.shape[0]):
        reach = min(n_slots + 1, capacity)
        empty = np.argmin(sizes[:reach])
        if sizes[empty] > 0:
            return visit
        j, own = visits[visit, 0], labels[visits[visit, 1]]
        clear(work, np.int64(0))
        for i in members[starts[j] : starts[j + 1]]:
            if labels[i] == own:
                add_row(work, np.int64(0), rows, i)
        statistics[capacity] = work.statistics[0]
        n_moved, counts[j, own] = counts[j, own], 0
        sizes[own] -= n_moved
        unseen = weights[capacity]
        share, _ = _draw_share(gamma, discount, np.sum(sizes > 0), random)
        opened = own
        if sizes[own] == 0:
            unseen += weights[own]
            share = weights[own] / unseen
            statistics[own] = 0.0
        else:
            statistics[own] -= statistics[capacity]
            opened = empty
        alone[own] = _log_marginal_of(work, statistics[own])
        n_places = 0
        for c in range(reach):
            if c == opened or (sizes[c] > 0 and counts[j, c] == 0):
                places[n_places] = c
                n_places += 1
        log_marginals_together(work, no_tables, statistics, capacity, places, n_places, together)
        highest = -math.inf
        for m in range(n_places):
            c = places[m]
            if c == opened:
                chosen = alpha * unseen
                log_weight = math.log(chosen) + _log_rising(chosen * share + 1.0, n_moved - 1)
            else:
                log_weight = _log_rising(alpha * weights[c], n_moved)
            together[m] += log_weight - alone[c]
            highest = max(highest, together[m])
        total = 0.0
        for m in range(n_places):
            total += math.exp(together[m] - highest)
            sums[m] = total
        mark, m = random.random() * total, 0
        while sums[m] <= mark and sums[m] < total:
            m += 1
        new = places[m]
        if opened == own:
            weights[own] = 0.0
        weights[capacity] = unseen
        if new == opened:
            weights[new] = max(unseen * share, LEAST_WEIGHT)
            weights[capacity] = max(unseen * (1.0 - share), LEAST_WEIGHT)
        n_slots = max(n_slots, new + 1)
        counts[j, new] = n_moved
        sizes[new] += n_moved
        statistics[new] += statistics[capacity]
        alone[new] = _log_marginal_of(work, statistics[new])
        for i in members[starts[j] : starts[j + 1]]:
            if labels[i] == own:
                labels[i] = new
    return visits.shape[0]


@njit(nogil=True, cache=True)
def _log_marginal_of(work, statistics):
    only = np.int64(0)
    set_statistics(work, only, statistics)
    return log_marginal(work, only)


@njit(nogil=True, cache=True)
def _log_rising(start, steps):
    return math.lgamma(start + steps) - math.lgamma(start)


@njit(nogil=True, cache=True)
def draw_tables(
    counts,  # IN (n_groups, n_clusters) int64
    opening,  # IN (n_clusters,), alpha times the weight of each cluster
    random,  # IN, a numpy Generator
    tables,  # OUT (n_clusters,) int64
):
    """Sample the number of tables of each cluster, summed over groups.

    In the Chinese restaurant franchise the first row of a group in a cluster opens a table, and a
    row after n others does so with probability a / (a + n), where a is the cluster's entry in
    ``opening``.
    """
    tables[:] = 0
    for j in range(counts.shape[0]):
        for c in range(counts.shape[1]):
            if counts[j, c] > 0:
                tables[c] += 1
            for others in range(1, counts[j, c]):
                if random.random() * (opening[c] + others) < opening[c]:
                    tables[c] += 1
