"""Whole clusters split in two or joined; `countless.bayes.split_merge` says how and why."""

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

# Scans between the first sharing out and the proposal, where it is not the proposal itself.
LAUNCH_SCANS = 2
# One goes on for sure where the proposal is at most exp(this) times too improbable so far.
CLEMENCY = 1.0
# The room of clusters here: the two pieces of a cluster, and a place to work.
ROOM, WORK = 3, 2
_SPLIT, _MERGE, _ANEW = 0, 1, 2


class State(NamedTuple):
    """A partition, with room for more clusters, and places to work."""

    rows: np.ndarray  # (n_rows, n_features)
    labels: np.ndarray  # (n_rows,) int32
    sizes: np.ndarray  # (room,) int64
    statistics: np.ndarray  # (room, width)
    marginals: np.ndarray  # (room,), log marginals of the clusters
    members: np.ndarray  # (n_rows,) int64: rows, cluster by cluster
    order: np.ndarray  # (n_rows,) int64: a place to work
    side: np.ndarray  # (n_rows,) int32: which piece has a row
    target: np.ndarray  # (n_rows,) int32: which piece must have it
    counts: np.ndarray  # (2,) int64: the rows of each piece
    gains: np.ndarray  # (room,): what joining each cluster gains


def scan(pieces, sizes, rows, order, side, target, join, random):
    """Draw the piece of each row in turn; return the log probability of what was drawn."""
    raise NotImplementedError("compiled code only")


@overload(scan, inline="always")
def _choose_scan(pieces, sizes, rows, order, side, target, join, random):
    def one_by_one(pieces, sizes, rows, order, side, target, join, random):
        begin, none = np.int64(0), np.empty(0)  # a plain 0 would be a type of its own
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
    sizes,  # IN (room,)
    k,  # IN
    members,  # OUT (n_rows,)
):
    """List the rows of each cluster, one cluster after another; return where each one begins."""
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
    rows,  # IN, those of a cluster
    i,  # IN
    j,  # IN
    out,  # OUT
    n_found,  # IN, how many are there
):
    """Add the rows that are neither i nor j; return how many are there then."""
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
    """Put any of the values from ``begin`` on into the places before ``end``."""
    for place in range(begin, end):
        other = place + int(random.random() * (values.shape[0] - place))
        values[place], values[other] = values[other], values[place]


@njit(nogil=True, cache=True)
def _log_sum_of_roots(logs):
    """Return the log of the sum of the square roots."""
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
    """Choose a cluster by the square root of what joining it gains."""
    chosen, mark = -1, random.random()
    for c in range(gains.shape[0]):
        if gains[c] > -math.inf and mark >= 0.0:
            chosen = c
            mark -= math.exp(0.5 * gains[c] - log_sum)
    return chosen


@njit(nogil=True, cache=True)
def _join(
    labels,  # IN and OUT (n_rows,)
    sizes,  # IN and OUT (room,)
    statistics,  # IN and OUT (room, width)
    marginals,  # IN and OUT (room,)
    a,  # IN
    b,  # IN
    k,  # IN, how many clusters there are
):
    """Give the rows of cluster b to a, and close the gap."""
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
    clusters,  # a place to work
    statistics,  # IN (width,)
    more,  # IN (width,), which is added
):
    """Return the log marginal of a set of statistics."""
    for w in range(more.shape[0]):
        clusters.statistics[WORK, w] = statistics[w] + more[w]
    refresh(clusters, WORK)
    return log_marginal(clusters, WORK)


@njit(nogil=True, cache=True)
def _find_marginals(
    clusters,  # a place to work
    statistics,  # IN (room, width)
    own,  # IN, a set that is left out; or negative
    more,  # IN (width,), which is added to each
    out,  # OUT (n_sets,)
):
    """Find the log marginals of the first sets of statistics."""
    clusters = borrowed(clusters)
    for c in range(out.shape[0]):
        if c != own:
            out[c] = _log_marginal_of(clusters, statistics[c], more)


@njit(nogil=True, cache=True)
def _find_gains(
    together,  # IN (k,) log marginals of each cluster with the piece; OUT the gains
    marginals,  # IN (room,)
    sizes,  # IN (room,)
    own,  # IN, the cluster that the piece is of, which is no partner
    count,  # IN, the rows of the piece
    marginal,  # IN, its log marginal
    size,  # IN (n + 1,) log weights of sizes
):
    """Find the log of what joining a piece with each cluster would gain.

    The weight of having one cluster less is left out.
    """
    for c in range(together.shape[0]):
        if c == own:  # together they may have more rows than there are
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
    """Begin with the present clusters a and b, or with rows i and j alone."""
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
def _seat(
    state,  # IN and OUT
    rows,  # IN
    b,  # IN
    present,  # IN
):
    """Note which rows are of cluster b, and give rows their present places, or none."""
    for row in rows:
        state.target[row] = state.labels[row] == b
        state.side[row] = state.target[row] if present else -1


@njit(nogil=True, cache=True)
def _log_weight_of_two(
    clusters,  # IN the pieces; a place to work
    counts,  # IN (2,), their rows
    size,  # IN (n + 1,) log weights of sizes
    nothing,  # IN (width,), zeros
    own,  # OUT (2,), log marginals of the pieces
):
    """Return the log of how much more probable some rows are as two pieces than as one.

    The weight of having one cluster more is left out.
    """
    clusters = borrowed(clusters)
    statistics = clusters.statistics
    _find_marginals(clusters, statistics, -1, nothing, own)
    together = _log_marginal_of(clusters, statistics[0], statistics[1])
    of_sizes = size[counts[0]] + size[counts[1]] - size[counts[0] + counts[1]]
    return own[0] + own[1] - together + of_sizes


@njit(nogil=True, cache=True)
def split_and_merge(
    pieces,  # a place for scans to work
    clusters,  # its clusters, of ROOM
    state,  # IN and OUT
    k,  # IN, how many clusters there are
    tables,  # IN: size, join and open, the log weights of the prior
    n_tries,  # IN, for so many more clusters there must be room
    n_whole,  # IN, so many of them are never given up half way
    launches,  # IN, the share of those that scans go before
    first_part,  # IN, so many rows of others are shared out before one asks whether to go on
    settles,  # IN
    random,  # IN, a numpy Generator
):
    """Propose so many splits and merges, and take those that are accepted.

    Returns how many clusters there are then. All is in one place, as numba compiles what a function
    calls once more for each of its callers, and scans are long.
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
    _find_marginals(clusters, statistics, -1, nothing, marginals[:k])
    members, begins = state.members, _list_members(labels, sizes, k, state.members)
    for tried in range(n_tries):
        kind = int((3 if settles else 2) * random.random())
        i, log_mark = int(random.random() * n), math.log1p(-random.random())
        a, b, gains, log_ratio = np.int64(labels[i]), k, state.gains[:k], 0.0
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
            log_ratio = gains[b] - (tables.open[k - 1] - size[1])
            log_ratio += math.log(sizes[b] / (count - 1)) - (0.5 * gains[b] - log_sum)
            if kind == _MERGE and not log_mark < log_ratio:
                continue
            j = members[begins[b] + int(random.random() * sizes[b])]
        n_rest = _append_others(members[begins[a] : begins[a + 1]], i, j, state.order, 0)
        if b < k:
            others = members[begins[b] : begins[b + 1]]
            n_rest = _append_others(others, i, j, state.order, n_rest)
        rest = state.order[:n_rest]
        present, forced = settles and kind == _MERGE, kind == _MERGE and not settles
        whole = tried < n_whole
        launched = whole and random.random() < launches and not present and kind != _ANEW
        n_scans, log_drawn, log_kept, goes_on = 1 + (kind == _ANEW), 0.0, 0.0, True
        if launched:
            n_scans = 2 + LAUNCH_SCANS
        _begin(clusters, state, a, b, present, i, j)
        for scanned in range(n_scans):
            begin, log_drawn = 0, 0.0
            while begin < n_rest and goes_on:
                end = n_rest if whole else min(n_rest, max(first_part, 2 * begin))
                if scanned == 0:
                    _shuffle(rest, begin, end, random)
                    _seat(state, rest[begin:end], b, present)
                target = state.target if forced and scanned == n_scans - 1 else state.target[:0]
                some = rest[begin:end]
                log_drawn += scan(
                    pieces, counts, state.rows, some, state.side, target, tables.join, random
                )
                if end < n_rest:
                    log_weight = _log_weight_of_two(clusters, counts, size, nothing, own)
                    log_weight -= log_drawn
                    log_weight += tables.open[k - (kind == _MERGE)] - size[1] + log_kept
                    log_weight += math.log((counts[0] + counts[1] - 1) / counts[1])
                    split_stays = min(0.0, CLEMENCY + log_weight)
                    merge_stays = min(0.0, CLEMENCY - log_weight)
                    stays = split_stays if kind == _SPLIT else merge_stays
                    goes_on = math.log1p(-random.random()) < stays
                    log_kept += merge_stays - split_stays  # what going on adds to the odds
                begin = end
        if not goes_on:
            continue
        log_drawn -= log_kept
        if kind == _MERGE:
            if log_mark < log_ratio + log_drawn:
                joined = gains[b] - (size[count] - size[sizes[a]] - size[sizes[b]])
                marginals[a] += marginals[b] + joined
                _join(labels, sizes, statistics, marginals, a, b, k)
                k -= 1
                begins = _list_members(labels, sizes, k, members)
            continue
        log_two = _log_weight_of_two(clusters, counts, size, nothing, own)
        if kind == _ANEW:
            if not log_two > -gains[b]:
                continue
        else:
            log_ratio = tables.open[k] - size[1] + log_two - log_drawn
            log_ratio += math.log((count - 1) / counts[1])
            if not log_mark < log_ratio:  # what follows only lowers it
                continue
            _find_marginals(clusters, statistics, a, clusters.statistics[0], gains)
            _find_gains(gains, marginals, sizes, a, counts[0], own[0], size)
            gains[a] = -log_two  # in place of the cluster there would be the second piece
            log_ratio -= 0.5 * log_two + _log_sum_of_roots(gains)
            if not log_mark < min(log_ratio, -log_drawn):  # merges are refused before they begin
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
