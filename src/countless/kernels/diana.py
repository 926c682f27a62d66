"""Divisive analysis (DIANA): clusters split by the rows most dissimilar to the others."""

import numpy as np
from numba import njit

# A sum is recomputed when subtractions have left less than this share of it.
WORN = 2.0**-10
# Averages whose relative difference is below this are equal up to rounding.
EQUAL = 1e-12


@njit(nogil=True, cache=True)
def split_all(
    distance,  # IN (n, n), symmetric, 0 on the diagonal
    order,  # OUT (n,), the rows, ordered so that every cluster is contiguous
    start,  # OUT (n - 1,), where the cluster of each split begins in the order
    middle,  # OUT (n - 1,), where its second part begins
    stop,  # OUT (n - 1,), where it ends
    height,  # OUT (n - 1,), its diameter
):
    """Split every cluster in two until all rows are singletons; parents come before their parts."""
    n = distance.shape[0]
    own, fresh, splinter = np.empty(n), np.empty(n), np.empty(n)
    reach, farthest, place = np.empty(n), np.empty(n, np.int64), np.empty(n, np.int64)
    gone, waiting = np.empty(n, np.bool_), np.empty((n, 2), np.int64)
    for i in range(n):
        order[i] = place[i] = i
        own[i], reach[i], farthest[i] = 0.0, 0.0, i
        for j in range(n):
            own[i] += distance[i, j]
            if distance[i, j] > reach[i]:
                reach[i], farthest[i] = distance[i, j], j
        fresh[i] = own[i]
    waiting[0, 0], waiting[0, 1] = 0, n
    n_waiting, n_splits = 1 if n > 1 else 0, 0
    while n_waiting:
        n_waiting -= 1
        first, last = waiting[n_waiting]
        height[n_splits] = _diameter(distance, order, place, reach, farthest, first, last)
        cut = _split(distance, order, own, splinter, gone, first, last)
        for i in range(first, last):
            place[order[i]] = i
        for low, high in ((first, cut), (cut, last)):
            _add_up_worn(distance, order, own, fresh, low, high)
            if high - low > 1:
                waiting[n_waiting, 0], waiting[n_waiting, 1] = low, high
                n_waiting += 1
        start[n_splits], middle[n_splits], stop[n_splits] = first, cut, last
        n_splits += 1


@njit(nogil=True, cache=True)
def _diameter(distance, order, place, reach, farthest, first, last):
    """Return the diameter; recompute the maxima of rows attained outside the cluster."""
    while True:
        widest = order[first]
        for i in range(first + 1, last):
            if reach[order[i]] > reach[widest]:
                widest = order[i]
        if first <= place[farthest[widest]] < last:
            return reach[widest]
        reach[widest], farthest[widest] = 0.0, widest
        for i in range(first, last):
            if distance[widest, order[i]] > reach[widest]:
                reach[widest], farthest[widest] = distance[widest, order[i]], order[i]


@njit(nogil=True, cache=True)
def _split(distance, order, own, splinter, gone, first, last):
    """Move rows to a splinter group while they are closer to it; return where part two begins.

    ``own`` has each row's sum over its group, before and after. Rows of a cluster are in ascending
    order; ties go to the first candidate, and the part with the lowest row comes first.
    """
    rest, n_moved, best = last - first, 0, order[first]
    for i in range(first, last):
        row = order[i]
        gone[row], splinter[row] = False, 0.0
        if own[row] > own[best] * (1.0 + EQUAL):
            best = row
    while best >= 0:
        moved, best, most = best, -1, 0.0
        gone[moved] = True
        own[moved] = splinter[moved]
        rest -= 1
        n_moved += 1
        # One more row in the splinter group changes every sum by one term.
        for i in range(first, last):
            row = order[i]
            between = np.float64(distance[moved, row])
            if gone[row]:
                own[row] += between
                continue
            own[row] -= between
            splinter[row] += between
            if rest > 1:
                stay, go = own[row] / (rest - 1), splinter[row] / n_moved
                if stay - go > most + EQUAL * max(stay, go):
                    most, best = stay - go, row
    return _arrange(order, gone, first, last)


@njit(nogil=True, cache=True)
def _arrange(order, gone, first, last):
    """Make the rows of each part contiguous, that of the first row first; return where it ends."""
    others = np.empty(last - first, np.int64)
    side, n_others, at = gone[order[first]], 0, first
    for i in range(first, last):
        if gone[order[i]] == side:
            order[at] = order[i]
            at += 1
        else:
            others[n_others] = order[i]
            n_others += 1
    order[at:last] = others[:n_others]
    return at


@njit(nogil=True, cache=True)
def _add_up_worn(distance, order, own, fresh, first, last):
    """Recompute the sums that are small relative to what was subtracted from them."""
    for i in range(first, last):
        row = order[i]
        if own[row] < WORN * fresh[row]:
            own[row] = 0.0
            for j in range(first, last):
                own[row] += distance[row, order[j]]
            fresh[row] = own[row]
