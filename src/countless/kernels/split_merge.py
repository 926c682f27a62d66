"""Metropolis-Hastings split-merge moves; `countless._mcmc.split_merge` describes the proposal."""

import math
from typing import NamedTuple

import numpy as np
from numba import njit
from numba.extending import overload

from countless.kernels.arrays import borrowed
from countless.kernels.cell_blocks import CellBlocks
from countless.kernels.cell_sweep import sweep_cells
from countless.kernels.gibbs import sweep
from countless.kernels.models import add_row, clear, log_marginal, refresh, set_statistics

# Intermediate restricted Gibbs scans between the launch state and the proposal.
LAUNCH_SCANS = 2
# Log slack of early rejection: no rejection while the log ratio so far exceeds minus this.
LOG_SLACK = 1.0
# Clusters of the workspace: the two pieces of a split, and one for temporary statistics.
CAPACITY, WORK = 3, 2
_SPLIT, _MERGE, _REALLOCATE = 0, 1, 2


class State(NamedTuple):
    """A partition with capacity for more clusters, and workspace."""

    rows: np.ndarray  # (n_rows, n_features)
    labels: np.ndarray  # (n_rows,) int32
    sizes: np.ndarray  # (capacity,) int64
    statistics: np.ndarray  # (capacity, width)
    marginals: np.ndarray  # (capacity,), log marginals of the clusters
    members: np.ndarray  # (n_rows,) int64: rows sorted by cluster
    order: np.ndarray  # (n_rows,) int64, workspace
    side: np.ndarray  # (n_rows,) int32: the piece of each row
    target: np.ndarray  # (n_rows,) int32: the piece that a row is forced into
    counts: np.ndarray  # (2,) int64: number of rows in each piece
    gains: np.ndarray  # (capacity,): log gain of merging with each cluster


def scan(pieces, sizes, rows, order, side, target, join, random):
    """Sample the piece of each row in turn; return the log probability of the choices."""
    raise NotImplementedError("compiled code only")


@overload(scan, inline="always")
def _choose_scan(pieces, sizes, rows, order, side, target, join, random):
    def one_by_one(pieces, sizes, rows, order, side, target, join, random):
        begin, none = np.int64(0), np.empty(0)  # a literal 0 would have a different numba type
        return sweep(pieces, sizes, rows, order, begin, side, target, join, none, random, none)[1]

    def in_blocks(pieces, sizes, rows, order, side, target, join, random):
        some = np.empty((order.shape[0], rows.shape[1]), dtype=rows.dtype)
        own, to = np.empty(order.shape[0], np.int32), np.empty(order.shape[0], np.int32)
        for place, row in enumerate(order):
            own[place] = side[row]
            for column in range(rows.shape[1]):
                some[place, column] = rows[row, column]
            if target.shape[0] > 0:
                to[place] = target[row]
        to = to[: min(to.shape[0], target.shape[0])]
        for piece in range(pieces.untabled.shape[0]):
            pieces.untabled[piece] = True
        lags, begin, closed = np.bool_(True), np.int64(0), np.empty(0)
        _, drawn = sweep_cells(pieces, lags, sizes, some, begin, own, to, join, closed, random)
        for place, row in enumerate(order):
            side[row] = own[place]
        return drawn

    return in_blocks if getattr(pieces, "instance_class", None) is CellBlocks else one_by_one


@njit(nogil=True, cache=True)
def _list_members(
    labels,  # IN (n_rows,)
    sizes,  # IN (capacity,)
    k,  # IN
    members,  # OUT (n_rows,)
):
    """List the rows of each cluster, cluster by cluster; return where each one begins."""
    begins = np.zeros(k + 1, dtype=np.int64)
    for c in range(k):
        begins[c + 1] = begins[c] + sizes[c]
    places = begins.copy()
    for row in range(labels.shape[0]):
        c = labels[row]
        members[places[c]] = row
        places[c] += 1
    return begins


@njit(nogil=True, cache=True)
def _append_others(
    rows,  # IN, the rows of a cluster
    i,  # IN
    j,  # IN
    out,  # OUT
    n_found,  # IN, length of ``out`` so far
):
    """Append the rows other than i and j; return the new length."""
    for row in rows:
        out[n_found] = row
        n_found += row != i and row != j
    return n_found


@njit(nogil=True, cache=True)
def _shuffle(
    values,  # IN and OUT
    begin,  # IN
    end,  # IN
    random,  # IN
):
    """Fill positions ``begin`` to ``end`` with a random sample of the values from ``begin`` on."""
    for place in range(begin, end):
        other = place + int(random.random() * (values.shape[0] - place))
        values[place], values[other] = values[other], values[place]


@njit(nogil=True, cache=True)
def _log_sum_of_roots(logs):
    """Return the log of the sum of the square roots of exponentials."""
    highest, total = -math.inf, 0.0
    for value in logs:
        highest = max(highest, 0.5 * value)
    if highest == -math.inf:
        return highest
    for value in logs:
        total += math.exp(0.5 * value - highest)
    return highest + math.log(total)


@njit(nogil=True, cache=True)
def _choose_partner(gains, log_sum, random):
    """Sample a partner cluster with probability proportional to the square root of its gain."""
    chosen, mark = -1, random.random()
    for c in range(gains.shape[0]):
        if gains[c] > -math.inf and mark >= 0.0:
            chosen = c
            mark -= math.exp(0.5 * gains[c] - log_sum)
    return chosen


@njit(nogil=True, cache=True)
def _join(
    labels,  # IN and OUT (n_rows,)
    sizes,  # IN and OUT (capacity,)
    statistics,  # IN and OUT (capacity, width)
    marginals,  # IN and OUT (capacity,)
    a,  # IN
    b,  # IN
    k,  # IN, number of clusters
):
    """Merge cluster b into a, and move the last cluster to index b."""
    for row in range(labels.shape[0]):
        if labels[row] == b:
            labels[row] = a
        if labels[row] > b:
            labels[row] -= 1
    width = statistics.shape[1]
    sizes[a] += sizes[b]
    for w in range(width):
        statistics[a, w] += statistics[b, w]
    for c in range(b, k - 1):
        sizes[c], marginals[c] = sizes[c + 1], marginals[c + 1]
        for w in range(width):
            statistics[c, w] = statistics[c + 1, w]


@njit(nogil=True, cache=True)
def _log_marginal_of(
    clusters,  # workspace
    statistics,  # IN (width,)
    more,  # IN (width,), added to them
):
    """Return the log marginal likelihood of a sum of two sets of statistics."""
    for w in range(more.shape[0]):
        clusters.statistics[WORK, w] = statistics[w] + more[w]
    refresh(clusters, WORK)
    return log_marginal(clusters, WORK)


@njit(nogil=True, cache=True)
def _find_marginals(
    clusters,  # workspace
    statistics,  # IN (capacity, width)
    own,  # IN, an index that is skipped; or negative
    more,  # IN (width,), added to each
    out,  # OUT (n_sets,)
):
    """Compute the log marginal likelihoods of the first sets of statistics."""
    clusters = borrowed(clusters)
    for c in range(out.shape[0]):
        if c != own:
            out[c] = _log_marginal_of(clusters, statistics[c], more)


@njit(nogil=True, cache=True)
def _find_gains(
    together,  # IN (k,) log marginals of each cluster merged with the piece; OUT the log gains
    marginals,  # IN (capacity,)
    sizes,  # IN (capacity,)
    own,  # IN, the cluster of the piece, which is not a candidate
    count,  # IN, number of rows of the piece
    marginal,  # IN, its log marginal
    size,  # IN (n + 1,) log weights of sizes
):
    """Compute the log posterior ratio of merging a piece with each cluster.

    The prior's factor for one cluster less is left out.
    """
    for c in range(together.shape[0]):
        if c == own:  # counted twice, the rows of a cluster could exceed the tables
            together[c] = -math.inf
        else:
            together[c] -= marginals[c] + marginal
            together[c] += size[sizes[c] + count] - size[sizes[c]] - size[count]


@njit(nogil=True, cache=True)
def _begin(
    clusters,  # OUT
    state,  # IN and OUT
    a,  # IN
    b,  # IN
    present,  # IN
    i,  # IN
    j,  # IN
):
    """Initialize the pieces with the current clusters a and b, or with rows i and j alone."""
    for piece in range(2):
        cluster, row = (a, i) if piece == 0 else (b, j)
        if present:
            set_statistics(clusters, piece, state.statistics[cluster])
            state.counts[piece] = state.sizes[cluster]
        else:
            clear(clusters, piece)
            add_row(clusters, piece, state.rows, row)
            state.counts[piece] = 1
        state.side[row] = piece


@njit(nogil=True, cache=True)
def _set_pieces(
    state,  # IN and OUT
    rows,  # IN
    b,  # IN
    present,  # IN
):
    """Record which rows are in cluster b; assign rows to their current pieces, or to none."""
    for row in rows:
        state.target[row] = state.labels[row] == b
        state.side[row] = state.target[row] if present else -1


@njit(nogil=True, cache=True)
def _log_weight_of_two(
    clusters,  # IN the pieces; workspace
    counts,  # IN (2,), number of rows in each
    size,  # IN (n + 1,) log weights of sizes
    nothing,  # IN (width,), zeros
    own,  # OUT (2,), log marginals of the pieces
):
    """Return the log posterior ratio of two pieces against their union.

    The prior's factor for one cluster more is left out.
    """
    clusters = borrowed(clusters)
    statistics = clusters.statistics
    _find_marginals(clusters, statistics, np.int64(-1), nothing, own)
    together = _log_marginal_of(clusters, statistics[0], statistics[1])
    of_sizes = size[counts[0]] + size[counts[1]] - size[counts[0] + counts[1]]
    return own[0] + own[1] - together + of_sizes


@njit(nogil=True, cache=True)
def split_and_merge(
    pieces,  # workspace of the scans
    clusters,  # the clusters of ``pieces``, CAPACITY of them
    state,  # IN and OUT
    k,  # IN, number of clusters
    tables,  # IN: size, join and open, the log weights of the partition prior
    n_proposals,  # IN, number of proposals; there must be capacity for as many more clusters
    n_full,  # IN, number of proposals without early rejection
    launches,  # IN, the share of these that use intermediate scans
    first_rows,  # IN, number of rows allocated before the first test for early rejection
    warms_up,  # IN, whether these are warm-up moves, which do not leave the posterior invariant
    random,  # IN, a numpy Generator
):
    """Make ``n_proposals`` Metropolis-Hastings split and merge proposals.

    Returns the number of clusters. This is one function because numba compiles a callee once more
    for each of its callers, and scans take long to compile.
    """
    pieces, clusters, state = borrowed(pieces), borrowed(clusters), borrowed(state)
    labels, sizes, statistics, marginals = (
        state.labels,
        state.sizes,
        state.statistics,
        state.marginals,
    )
    size, counts, n = tables.size, state.counts, labels.shape[0]
    nothing, own = np.zeros(statistics.shape[1]), np.empty(2)
    _find_marginals(clusters, statistics, np.int64(-1), nothing, marginals[:k])
    members, begins = state.members, _list_members(labels, sizes, k, state.members)
    for proposal in range(n_proposals):
        kind = int((3 if warms_up else 2) * random.random())
        i, log_uniform = int(random.random() * n), math.log1p(-random.random())
        a, b, gains, log_acceptance = np.int64(labels[i]), k, state.gains[:k], 0.0
        if kind == _SPLIT:
            count = sizes[a]
            if count < 2 or tables.open[k] == -math.inf:
                continue
            j = i
            while j == i:
                j = members[begins[a] + int(random.random() * count)]
        else:
            _find_marginals(clusters, statistics, a, statistics[a], gains)
            _find_gains(gains, marginals, sizes, a, sizes[a], marginals[a], size)
            log_sum = _log_sum_of_roots(gains)
            if log_sum == -math.inf:
                continue
            b = _choose_partner(gains, log_sum, random)
            count = sizes[a] + sizes[b]
            log_acceptance = gains[b] - (tables.open[k - 1] - size[1])
            log_acceptance += math.log(sizes[b] / (count - 1)) - (0.5 * gains[b] - log_sum)
            if kind == _MERGE and not log_uniform < log_acceptance:
                continue
            j = members[begins[b] + int(random.random() * sizes[b])]
        n_rest = np.int64(0)
        n_rest = _append_others(members[begins[a] : begins[a + 1]], i, j, state.order, n_rest)
        if b < k:
            others = members[begins[b] : begins[b + 1]]
            n_rest = _append_others(others, i, j, state.order, n_rest)
        rest = state.order[:n_rest]
        present, forced = warms_up and kind == _MERGE, kind == _MERGE and not warms_up
        full = proposal < n_full
        launched = full and random.random() < launches and not present and kind != _REALLOCATE
        n_scans, continues = 1 + (kind == _REALLOCATE), True
        log_proposal, log_continuations = 0.0, 0.0
        if launched:
            n_scans = 2 + LAUNCH_SCANS
        _begin(clusters, state, a, b, present, i, j)
        for scanned in range(n_scans):
            begin, log_proposal = np.int64(0), 0.0
            while begin < n_rest and continues:
                end = n_rest if full else min(n_rest, max(first_rows, 2 * begin))
                if scanned == 0:
                    _shuffle(rest, begin, end, random)
                    _set_pieces(state, rest[begin:end], b, present)
                target = state.target if forced and scanned == n_scans - 1 else state.target[:0]
                some = rest[begin:end]
                log_proposal += scan(
                    pieces, counts, state.rows, some, state.side, target, tables.join, random
                )
                if end < n_rest:
                    log_weight = _log_weight_of_two(clusters, counts, size, nothing, own)
                    log_weight -= log_proposal
                    log_weight += tables.open[k - (kind == _MERGE)] - size[1] + log_continuations
                    log_weight += math.log((counts[0] + counts[1] - 1) / counts[1])
                    log_split_continues = min(0.0, LOG_SLACK + log_weight)
                    log_merge_continues = min(0.0, LOG_SLACK - log_weight)
                    log_continues = log_split_continues if kind == _SPLIT else log_merge_continues
                    continues = math.log1p(-random.random()) < log_continues
                    # Continuation probabilities enter the acceptance ratio in both directions.
                    log_continuations += log_merge_continues - log_split_continues
                begin = end
        if not continues:
            continue
        log_proposal -= log_continuations
        if kind == _MERGE:
            log_acceptance += log_proposal  # of the reverse split
            if log_uniform < log_acceptance:
                joined = gains[b] - (size[count] - size[sizes[a]] - size[sizes[b]])
                marginals[a] += marginals[b] + joined
                _join(labels, sizes, statistics, marginals, a, b, k)
                k -= 1
                begins = _list_members(labels, sizes, k, members)
            continue
        log_two = _log_weight_of_two(clusters, counts, size, nothing, own)
        if kind == _REALLOCATE:
            if not log_two > -gains[b]:
                continue
        else:  # Metropolis-Hastings: posterior ratio times the ratio of reverse to forward proposal
            log_acceptance = tables.open[k] - size[1] + log_two - log_proposal
            log_acceptance += math.log((count - 1) / counts[1])
            if not log_uniform < log_acceptance:  # the remaining terms only lower the ratio
                continue
            _find_marginals(clusters, statistics, a, clusters.statistics[0], gains)
            _find_gains(gains, marginals, sizes, a, counts[0], own[0], size)
            gains[a] = -log_two  # a candidate of the reverse merge is the second piece
            log_acceptance -= 0.5 * log_two + _log_sum_of_roots(gains)
            # The reverse merge is also rejected before its scan, if its ratio without it is small.
            if not log_uniform < min(log_acceptance, -log_proposal):
                continue
            k += 1
        labels[i], labels[j] = a, b
        for row in rest:
            labels[row] = b if state.side[row] == 1 else a
        for piece in range(2):
            c = a if piece == 0 else b
            sizes[c], marginals[c] = counts[piece], own[piece]
            for w in range(nothing.shape[0]):
                statistics[c, w] = clusters.statistics[piece, w]
        begins = _list_members(labels, sizes, k, members)
    return k
