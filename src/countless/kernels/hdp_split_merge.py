"""Splits and merges of clusters that groups share: one cluster becomes two, or two become one.

A proposal names two rows. If they share a cluster it is split between them, its weight ``w`` into
``s w`` and ``(1 - s) w``; otherwise their clusters merge. The moves follow Jain and Neal, "A
split-merge Markov chain Monte Carlo procedure for the Dirichlet process mixture model", JCGS 13,
2004, with the weights of the clusters as part of the state. A launch state is made of the rows of
both clusters alone: rows join either side one by one, then some scans of Gibbs sampling between the
two; one more scan proposes the split, and ``s`` is drawn from a beta distribution about what that
split suggests. All of these have probabilities, so that the acceptance ratio is exact.

The first row is any row. The second is in the same cluster for a split. For a merge its cluster is
chosen by the square root of the density that the first row has there, so that neighbours are tried.
"""

import math

import numpy as np
from numba import njit

from countless.kernels.gamma import log_rising
from countless.kernels.hdp_gibbs import close_cluster
from countless.kernels.models import (
    add_row,
    clear,
    log_marginal,
    log_predictive,
    log_predictive_row,
    log_predictive_without,
    refresh,
    remove_row,
    set_statistics,
)

# Scans between the launch state and the proposal.
N_SCANS = 2
# A share of a weight is this far from 0 and 1: its logarithm must be a number.
LEAST_SHARE = 1e-12


@njit(nogil=True, cache=True)
def _expected_tables(counts, opening):
    """Return about how many tables the rows of a cluster have, in all groups together."""
    total = 0.0
    for j in range(counts.shape[0]):
        if counts[j] > 0:
            total += 1.0 + opening * math.log((opening + counts[j] - 0.5) / (opening + 0.5))
    return total


@njit(nogil=True, cache=True)
def _choose_side(log_odds, random):
    """Return 1 by these log odds, else 0, and the log probability of that."""
    side = 1 if random.random() * (1.0 + math.exp(-log_odds)) < 1.0 else 0
    return side, _log_chance(log_odds, side)


@njit(nogil=True, cache=True)
def _log_chance(log_odds, side):
    if side == 1:
        log_odds = -log_odds
    # log 1 / (1 + exp(x)), without overflow
    return -max(log_odds, 0.0) - math.log1p(math.exp(-abs(log_odds)))


@njit(nogil=True, cache=True)
def _scan(rows, group, members, opening, share, place, known, wanted, random, clusters, sides, cells):
    """Visit the members in turn and choose a side for each given the others; return the log chance.

    ``sides[m]`` is -1 for a member that has none yet. Where ``known``, sides are not chosen but
    taken from ``wanted``. The sides are the clusters at ``place`` and ``place + 1``.
    """
    log_chance = 0.0
    first, second = opening * share, opening * (1.0 - share)
    for m in range(members.shape[0]):
        i, side = members[m], sides[m]
        j = group[i]
        if side >= 0:
            cells[side, j] -= 1
        if side == 0:
            density = log_predictive_without(clusters, place, rows, i)
        else:
            density = log_predictive(clusters, place, rows, i)
        if side == 1:
            other = log_predictive_without(clusters, place + 1, rows, i)
        else:
            other = log_predictive(clusters, place + 1, rows, i)
        log_odds = other - density + math.log((cells[1, j] + second) / (cells[0, j] + first))
        if known:
            chosen = wanted[m]
            log_chance += _log_chance(log_odds, chosen)
        else:
            chosen, step = _choose_side(log_odds, random)
            log_chance += step
        if chosen != side:
            if side >= 0:
                remove_row(clusters, place + side, rows, i)
            add_row(clusters, place + chosen, rows, i)
            sides[m] = chosen
        cells[chosen, j] += 1
    return log_chance


@njit(nogil=True, cache=True)
def _choose_cluster(seats, density, without, random):
    """Return a place by the square root of its density; not that of the first row's cluster."""
    n_clusters = seats.n_clusters[0]
    highest = -math.inf
    for c in range(n_clusters):
        if c != without:
            highest = max(highest, density[c])
    total = 0.0
    for c in range(n_clusters):
        if c != without:
            total += math.exp(0.5 * (density[c] - highest))
    mark = random.random() * total
    chosen = -1
    for c in range(n_clusters):
        if c != without:
            chosen = c
            mark -= math.exp(0.5 * (density[c] - highest))
            if mark < 0.0:
                break
    return chosen


@njit(nogil=True, cache=True)
def _log_chance_of_cluster(seats, density, without, merged, of_merged):
    """Return the log chance of choosing a cluster of this density instead of ``merged``."""
    total = 1.0
    for c in range(seats.n_clusters[0]):
        if c != without and c != merged:
            total += math.exp(min(0.5 * (density[c] - of_merged), 700.0))
    return -math.log(total)


@njit(nogil=True, cache=True)
def _pick_row(labels, name, size, without, random):
    """Return any row of a cluster of so many rows, but not the row ``without``."""
    left = int(random.random() * size)
    for i in range(labels.shape[0]):
        if labels[i] == name and i != without:
            if left == 0:
                return i
            left -= 1
    return -1


@njit(nogil=True, cache=True)
def split_or_merge(
    rows,  # IN (n_rows, n_features)
    alpha,  # IN
    gamma,  # IN
    n_tries,  # IN
    random,  # IN
    seats,  # IN and OUT, with room for n_tries + 2 more clusters
    clusters,  # IN and OUT
):
    """Try so many splits and merges; return how many were taken."""
    n_taken = 0
    if rows.shape[0] < 2:
        return n_taken
    labels, counts, weights = seats.labels, seats.counts, seats.weights
    density = np.empty(seats.names.shape[0])
    members, sides = np.empty(rows.shape[0], np.int64), np.empty(rows.shape[0], np.int8)
    wanted = np.empty(rows.shape[0], np.int8)
    cells = np.empty((2, counts.shape[0]), np.int64)
    for _ in range(n_tries):
        n_clusters = seats.n_clusters[0]
        split = n_clusters == 1 or random.random() < 0.5
        i = min(int(random.random() * rows.shape[0]), rows.shape[0] - 1)
        a = labels[i]
        if split and seats.sizes[a] == 1:
            continue
        log_predictive_row(clusters, n_clusters, rows, i, -1, density)
        if split:
            b = a
            k = _pick_row(labels, a, seats.sizes[a] - 1, i, random)
        else:
            b = seats.names[_choose_cluster(seats, density, seats.places[a], random)]
            k = _pick_row(labels, b, seats.sizes[b], -1, random)
        weight = weights[a] if split else weights[a] + weights[b]

        # Both sides are made in the two places behind the clusters.
        place = n_clusters
        cells[:] = 0
        add_row(clusters, place, rows, i)
        add_row(clusters, place + 1, rows, k)
        cells[0, seats.group[i]] += 1
        cells[1, seats.group[k]] += 1
        n_members = 0
        for m in range(rows.shape[0]):
            if (labels[m] == a or labels[m] == b) and m != i and m != k:
                # A random order: the next one goes anywhere among those before it.
                at = int(random.random() * (n_members + 1))
                members[n_members] = members[at]
                members[at] = m
                n_members += 1
        some = members[:n_members]
        for m in range(n_members):
            sides[m] = -1
            wanted[m] = 0 if labels[some[m]] == a else 1
        opening, share = alpha * weight, 0.5
        log_chance = 0.0
        for scan in range(N_SCANS + 2):
            known = not split and scan == N_SCANS + 1
            log_chance = _scan(
                rows, seats.group, some, opening, share, place, known, wanted, random, clusters,
                sides, cells,
            )  # fmt: skip
            tables_a = _expected_tables(cells[0], 0.5 * opening)
            tables_b = _expected_tables(cells[1], 0.5 * opening)
            share = tables_a / (tables_a + tables_b)
        if split:
            share = random.beta(tables_a, tables_b)
            share = min(max(share, LEAST_SHARE), 1.0 - LEAST_SHARE)
        else:
            share = weights[a] / weight

        # The density of the two clusters over that of the one ...
        log_ratio = math.log(gamma) - math.log(share) - math.log1p(-share)
        size_b = 0
        for j in range(counts.shape[0]):
            size_b += cells[1, j]
            log_ratio += log_rising(opening * share, cells[0, j])
            log_ratio += log_rising(opening * (1.0 - share), cells[1, j])
            log_ratio -= log_rising(opening, cells[0, j] + cells[1, j])
        log_ratio += log_marginal(clusters, place) + log_marginal(clusters, place + 1)
        of_merged = log_predictive(clusters, place + 1, rows, i)
        if split:
            log_ratio -= log_marginal(clusters, seats.places[a])
        else:
            for w in range(clusters.statistics.shape[1]):
                clusters.statistics[place, w] += clusters.statistics[place + 1, w]
            refresh(clusters, place)
            log_ratio -= log_marginal(clusters, place)
        # ... times the chance to propose the merge, over that of the split.
        before = n_clusters if split else n_clusters - 1
        log_ratio += _log_chance_of_cluster(
            seats, density, seats.places[a], seats.places[b], of_merged
        )
        log_ratio += math.log(0.5 / size_b) - math.log(1.0 if before == 1 else 0.5)
        log_ratio += math.log(n_members + 1.0) - log_chance
        log_ratio -= (
            math.lgamma(tables_a + tables_b) - math.lgamma(tables_a) - math.lgamma(tables_b)
            + (tables_a - 1.0) * math.log(share) + (tables_b - 1.0) * math.log1p(-share)
        )  # fmt: skip
        if math.log(1.0 - random.random()) < (log_ratio if split else -log_ratio):
            n_taken += 1
            set_statistics(clusters, seats.places[a], clusters.statistics[place])
            if split:
                b = seats.names[place]
                set_statistics(clusters, place, clusters.statistics[place + 1])
                clear(clusters, place + 1)
                seats.n_clusters[0] += 1
                labels[k] = b
                for m in range(n_members):
                    if sides[m] == 1:
                        labels[some[m]] = b
                seats.sizes[a] -= size_b
                seats.sizes[b] = size_b
                counts[:, a] = cells[0]
                counts[:, b] = cells[1]
                weights[a], weights[b] = share * weight, (1.0 - share) * weight
                continue
            labels[k] = a
            for m in range(n_members):
                labels[some[m]] = a
            seats.sizes[a] += size_b
            seats.sizes[b] = 0
            counts[:, a] += counts[:, b]
            counts[:, b] = 0
            weights[a], weights[b] = weight, 0.0
            close_cluster(seats, clusters, b)
        clear(clusters, place)
        clear(clusters, place + 1)
    return n_taken
