"""Greedy agglomeration of Bayesian hierarchical clustering (Heller and Ghahramani 2005).

``log_sum[k]`` is the log of the sum of ``prod_l alpha Gamma(n_l) p(rows of l)`` over all partitions
into clusters l that are consistent with the tree below k. A merge of i and j adds one partition, a
single cluster, to all pairs of theirs: ``sum_k = alpha Gamma(n_k) p(rows of k) + sum_i sum_j``, and
the odds of the merge are the ratio of the two terms. ``log_weight[n]`` is ``log alpha Gamma(n)``.

The odds of all pairs of places x < y are stored, row by row without the diagonal. They change only
when a place is merged; but a later merge may have higher odds than an earlier one, so that the
nearest-neighbor chain algorithm does not apply. Every place stores its best partner among the
places after it, or an upper bound of the odds once that partner has been merged; the partner is
searched again only when the bound is the highest of all.
"""

import math

import numpy as np
from numba import njit

from countless.kernels.models import log_marginals_together, log_predictive

_STALE = -1


@njit(nogil=True, cache=True)
def _odds_with(clusters, tables, statistics, size, log_weight, log_sum, x, others, n_others, out):
    """Fill ``out`` with the log odds of merging place x and each of the others."""
    log_marginals_together(clusters, tables, statistics, x, others, n_others, out)
    for m in range(n_others):
        y = others[m]
        out[m] += log_weight[size[x] + size[y]] - log_sum[x] - log_sum[y]


@njit(nogil=True, cache=True)
def _row_start(n, x):
    """Return the offset of the odds of x, relative to place 0."""
    return x * (2 * n - x - 1) // 2 - x - 1


@njit(nogil=True, cache=True)
def fill_marginals(
    clusters,  # IN workspace, one cluster
    tables,  # IN (width, n_counts)
    statistics,  # IN (n + 1, width), the last without rows
    out,  # OUT (n,)
):
    """Compute the log marginal of every place, as that of it and an empty cluster together."""
    n = out.shape[0]
    log_marginals_together(clusters, tables, statistics, n, np.arange(n), n, out)


@njit(nogil=True, cache=True)
def fill_pairs(
    clusters,  # IN workspace, one cluster
    tables,  # IN (width, n_counts)
    statistics,  # IN (n, width)
    first,  # IN
    last,  # IN
    together,  # OUT (n (n - 1) / 2,)
):
    """Compute the log marginal of every pair whose lower place is from first up to last."""
    n = statistics.shape[0]
    places = np.arange(n)
    for x in range(first, last):
        begin = _row_start(n, x) + x + 1
        row, later = together[begin : begin + n - x - 1], places[x + 1 :]
        log_marginals_together(clusters, tables, statistics, x, later, n - x - 1, row)


@njit(nogil=True, cache=True)
def odds_of_pairs(
    together,  # IN (n (n - 1) / 2,) log marginals
    size,  # IN (n,)
    log_weight,  # IN (n_rows + 1,)
    log_sum,  # IN (n,)
    odds,  # OUT (n (n - 1) / 2,), may be the same array
):
    """Turn log marginals of pairs into the log odds of their merges."""
    place = 0
    for x in range(size.shape[0]):
        for y in range(x + 1, size.shape[0]):
            odds[place] = together[place] + log_weight[size[x] + size[y]] - log_sum[x] - log_sum[y]
            place += 1


@njit(nogil=True, cache=True)
def _find_partner(odds, alive, at, n_alive, n, best, partner):
    """Find the best partner of the place ``alive[at]`` among those after it."""
    x = alive[at]
    start = _row_start(n, x)
    highest, found = -np.inf, _STALE
    for later in range(at + 1, n_alive):
        y = alive[later]
        if odds[start + y] > highest or found == _STALE:
            highest, found = odds[start + y], y
    best[x], partner[x] = highest, found


@njit(nogil=True, cache=True)
def _best_pair(odds, alive, n_alive, n, best, partner):
    """Return the position in ``alive`` of the lower place of the pair with the best odds."""
    while True:
        at = 0
        for other in range(1, n_alive - 1):
            if best[alive[other]] > best[alive[at]]:
                at = other
        if partner[alive[at]] != _STALE:
            return at
        _find_partner(odds, alive, at, n_alive, n, best, partner)


@njit(nogil=True, cache=True)
def _softplus(x):
    """Return log(1 + exp(x)) without overflow."""
    return max(x, 0.0) + math.log1p(math.exp(-abs(x)))


@njit(nogil=True, cache=True)
def grow(
    clusters,  # IN workspace, one cluster
    tables,  # IN (width, n_counts)
    statistics,  # IN those of the leaves (n, width), overwritten
    size,  # IN (n,) rows of each leaf, overwritten
    log_weight,  # IN (n_rows + 1,)
    log_sum,  # IN (n,) of the leaves, overwritten
    odds,  # IN of all pairs, overwritten
    children,  # OUT (n - 1, 2), leaves are 0 to n - 1, the node of merge i is n + i
):
    """Merge the pair with the best odds until one cluster is left."""
    n = statistics.shape[0]
    alive, node = np.arange(n), np.arange(n)
    best, partner = np.full(n, -np.inf), np.full(n, _STALE)
    others, new = np.empty(n, dtype=np.int64), np.empty(n)
    for at in range(n - 1):
        _find_partner(odds, alive, at, n, n, best, partner)
    for step in range(n - 1):
        n_alive = n - step
        at = _best_pair(odds, alive, n_alive, n, best, partner)
        x = alive[at]
        y = partner[x]
        children[step, 0], children[step, 1] = min(node[x], node[y]), max(node[x], node[y])
        # The merged cluster takes the place of y, and x is removed.
        log_sum[y] += log_sum[x] + _softplus(odds[_row_start(n, x) + y])
        size[y] += size[x]
        node[y] = n + step
        for w in range(statistics.shape[1]):
            statistics[y, w] += statistics[x, w]
        n_alive -= 1
        for later in range(at, n_alive):
            alive[later] = alive[later + 1]
        n_others, at = 0, 0
        for other in range(n_alive):
            if alive[other] == y:
                at = other
            else:
                others[n_others] = alive[other]
                n_others += 1
        _odds_with(
            clusters, tables, statistics, size, log_weight, log_sum, y, others, n_others, new
        )
        for m in range(n_others):
            z = others[m]
            if z > y:
                odds[_row_start(n, y) + z] = new[m]
                continue
            odds[_row_start(n, z) + y] = new[m]
            if new[m] > best[z]:
                best[z], partner[z] = new[m], y
            elif partner[z] == x or partner[z] == y:
                partner[z] = _STALE
        _find_partner(odds, alive, at, n_alive, n, best, partner)


@njit(nogil=True, cache=True)
def add_up(
    children,  # IN (n - 1, 2)
    values,  # IN those of the leaves (2 n - 1, width), OUT those of all nodes
):
    """Sum the values of the children of every node."""
    n = children.shape[0] + 1
    for step in range(n - 1):
        a, b = children[step]
        for w in range(values.shape[1]):
            values[n + step, w] = values[a, w] + values[b, w]


@njit(nogil=True, cache=True)
def sum_up(
    children,  # IN (n - 1, 2)
    log_joint,  # IN (2 n - 1,) log alpha Gamma(n_k) p(rows of k)
    log_sum,  # OUT (2 n - 1,)
    log_odds,  # OUT (n - 1,)
):
    """Compute the sums over partitions, and the odds of merges, of a given tree."""
    n = children.shape[0] + 1
    for leaf in range(n):
        log_sum[leaf] = log_joint[leaf]
    for step in range(n - 1):
        apart = log_sum[children[step, 0]] + log_sum[children[step, 1]]
        difference = log_joint[n + step] - apart
        log_odds[step] = difference
        log_sum[n + step] = apart + _softplus(difference)


@njit(nogil=True, cache=True)
def weigh_nodes(
    children,  # IN (n - 1, 2)
    log_odds,  # IN (n - 1,)
    weight,  # OUT (2 n - 1,)
):
    """Compute the probability that each node is a cluster: merged itself, and no ancestor is."""
    n = children.shape[0] + 1
    weight[2 * n - 2] = 1.0  # until it is visited, the probability that no ancestor is merged
    for step in range(n - 2, -1, -1):
        above = weight[n + step]
        ratio = math.exp(-abs(log_odds[step]))
        likelier, other = 1.0 / (1.0 + ratio), ratio / (1.0 + ratio)
        taken, apart = (likelier, other) if log_odds[step] >= 0.0 else (other, likelier)
        weight[n + step] = above * taken
        weight[children[step, 0]] = above * apart
        weight[children[step, 1]] = above * apart


@njit(nogil=True, cache=True)
def walk_down(
    clusters,  # IN those of all nodes
    children,  # IN (n - 1, 2)
    log_size,  # IN (2 n - 1,)
    rows,  # IN (n_rows, n_features)
    at,  # IN (n_rows,) where each row starts, OUT the leaf that it reaches
):
    """Pass each row down from node to node, to the child with the higher probability."""
    n = children.shape[0] + 1
    for i in range(rows.shape[0]):
        k = at[i]
        while k >= n:
            a, b = children[k - n]
            to_a = log_size[a] + log_predictive(clusters, a, rows, i)
            to_b = log_size[b] + log_predictive(clusters, b, rows, i)
            k = b if to_b > to_a else a
        at[i] = k
