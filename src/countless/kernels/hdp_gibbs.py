"""Rows of several groups at clusters that all groups share: the hierarchical Dirichlet process.

Every cluster has a weight, and what the weights leave of 1 belongs to clusters that no row has yet.
A row of group ``j`` is at cluster ``k`` with weight ``counts[j, k] + alpha * weights[k]``.
Clusters have names that stay; in the arrays of the model the ones that have rows come first.
"""

import math
from typing import NamedTuple

import numpy as np
from numba import njit

from countless.kernels.gamma import log_rising
from countless.kernels.models import (
    add_row,
    clear,
    log_predictive_row,
    remove_row,
    set_statistics,
)

# No weight is less than this: its logarithm must be a number.
LEAST_WEIGHT = 1e-300


class Seats(NamedTuple):
    """Which row is at which cluster, with room for so many clusters."""

    group: np.ndarray  # (n_rows,) int32
    labels: np.ndarray  # (n_rows,) int32, names of clusters
    counts: np.ndarray  # (n_groups, room) int64, by name
    sizes: np.ndarray  # (room,) int64, by name
    weights: np.ndarray  # (room + 1,) by name; the last is that of all clusters without rows
    names: np.ndarray  # (room,) int64, the name of the cluster at each place of the model's arrays
    places: np.ndarray  # (room,) int64, the place of each name
    n_clusters: np.ndarray  # (1,) int64, clusters with rows: the first places


@njit(nogil=True, cache=True)
def break_off(
    seats,  # IN and OUT
    name,  # IN a cluster whose weight is to be drawn
    whole,  # IN the weight of the cluster and of all clusters without rows together
    gamma,  # IN
    random,  # IN
):
    """Draw the share of the weight without rows that the next cluster has: Beta(1, gamma)."""
    log_rest = math.log(1.0 - random.random()) / gamma
    seats.weights[name] = max(-whole * math.expm1(log_rest), LEAST_WEIGHT)
    seats.weights[-1] = max(whole * math.exp(log_rest), LEAST_WEIGHT)


@njit(nogil=True, cache=True)
def close_cluster(
    seats,  # IN and OUT
    clusters,  # IN and OUT
    name,  # IN a cluster without rows, among the first places
):
    """Give its place to the last cluster, and its weight to those without rows."""
    place, last = seats.places[name], seats.n_clusters[0] - 1
    if place != last:
        moved = seats.names[last]
        set_statistics(clusters, place, clusters.statistics[last])
        seats.names[place], seats.names[last] = moved, name
        seats.places[moved], seats.places[name] = place, last
    clear(clusters, last)
    seats.weights[-1] += seats.weights[name]
    seats.weights[name] = 0.0
    seats.n_clusters[0] = last


@njit(nogil=True, cache=True)
def sweep(
    rows,  # IN (n_rows, n_features)
    fresh,  # IN (n_rows,) the log density of each row in a cluster of its own
    alpha,  # IN
    gamma,  # IN
    start,  # IN the first row to visit
    random,  # IN
    seats,  # IN and OUT
    clusters,  # IN and OUT
):
    """Draw the cluster of each row given all others; return the row at which room ran out."""
    group, labels, counts, weights = seats.group, seats.labels, seats.counts, seats.weights
    room = seats.names.shape[0]
    density = np.empty(room)
    for i in range(start, rows.shape[0]):
        n_clusters = seats.n_clusters[0]
        if n_clusters == room:
            return i
        j, own = group[i], labels[i]
        place = seats.places[own]
        alone = seats.sizes[own] == 1
        log_predictive_row(clusters, n_clusters, rows, i, place, density)
        counts[j, own] -= 1
        highest = fresh[i]
        for c in range(n_clusters):
            highest = max(highest, density[c])
        unseen = weights[-1]
        if alone:  # without its row the cluster is one of those that no row has
            unseen += weights[own]
        total = 0.0
        for c in range(n_clusters):
            name = seats.names[c]
            if not (alone and c == place):
                total += (counts[j, name] + alpha * weights[name]) * math.exp(density[c] - highest)
            density[c] = total
        total += alpha * unseen * math.exp(fresh[i] - highest)
        mark = random.random() * total
        chosen = 0
        while chosen < n_clusters and density[chosen] <= mark:
            chosen += 1
        if chosen == n_clusters and alone:
            break_off(seats, own, unseen, gamma, random)
            counts[j, own] += 1
            continue
        name = seats.names[chosen]
        if name != own:
            remove_row(clusters, place, rows, i)
            seats.sizes[own] -= 1
            if chosen == n_clusters:
                break_off(seats, name, unseen, gamma, random)
                seats.n_clusters[0] += 1
            elif alone:
                close_cluster(seats, clusters, own)
            add_row(clusters, seats.places[name], rows, i)
            seats.sizes[name] += 1
            labels[i] = name
        counts[j, name] += 1
    return rows.shape[0]


@njit(nogil=True, cache=True)
def draw_tables(
    seats,  # IN
    alpha,  # IN
    random,  # IN
    tables,  # OUT (room,) by name
):
    """Draw how often the rows of each cluster, group by group, chose it from the shared weights.

    The first row of a group did so, and the one after n others with chance a / (a + n), where a is
    alpha times the weight of the cluster; these are the tables of the Chinese restaurant franchise.
    """
    for c in range(seats.n_clusters[0]):
        name = seats.names[c]
        opening = alpha * seats.weights[name]
        tables[name] = 0
        for j in range(seats.counts.shape[0]):
            if seats.counts[j, name] > 0:
                tables[name] += 1
            for others in range(1, seats.counts[j, name]):
                if random.random() * (opening + others) < opening:
                    tables[name] += 1


@njit(nogil=True, cache=True)
def draw_weights(
    seats,  # IN and OUT
    tables,  # IN (room,) by name
    gamma,  # IN
    random,  # IN
):
    """Draw the weights of all clusters given their tables: a Dirichlet distribution."""
    weights = seats.weights
    total = weights[-1] = random.standard_gamma(gamma)
    for c in range(seats.n_clusters[0]):
        name = seats.names[c]
        weights[name] = random.standard_gamma(tables[name])
        total += weights[name]
    weights[-1] = max(weights[-1] / total, LEAST_WEIGHT)
    for c in range(seats.n_clusters[0]):
        name = seats.names[c]
        weights[name] = max(weights[name] / total, LEAST_WEIGHT)


@njit(nogil=True, cache=True)
def log_seating(
    seats,  # IN
    alpha,  # IN
    gamma,  # IN
):
    """Return the log density of the partition and of the weights of its clusters.

    With b for weights and u for what they leave, it is ``gamma^k u^(gamma - 1) / (b(1) ... b(k))``
    times, for each group of n rows, the product of ``Gamma(alpha b + n(k)) / Gamma(alpha b)`` over
    its clusters, over ``Gamma(alpha + n) / Gamma(alpha)``.
    """
    total = (gamma - 1.0) * math.log(seats.weights[-1])
    for c in range(seats.n_clusters[0]):
        total += math.log(gamma) - math.log(seats.weights[seats.names[c]])
    for j in range(seats.counts.shape[0]):
        n_rows = 0
        for c in range(seats.n_clusters[0]):
            name = seats.names[c]
            n_rows += seats.counts[j, name]
            total += log_rising(alpha * seats.weights[name], seats.counts[j, name])
        total -= log_rising(alpha, n_rows)
    return total
