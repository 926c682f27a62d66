"""One iteration of max-product message passing on the exemplar model, column by column.

A message is the difference between the best score with an edge chosen and without it. Row i sends
column j the responsibility ``r(i, j) = s(i, j) - max over other columns of a + s``, and column j
returns the availability ``a(i, j)``, from the best choice of all other rows given that i joins j.
So a column needs only three things of a row: the largest sum a + s, the second largest, and the
column of the largest; responsibilities are never stored. Damped responsibilities are running means,
given by the running mean of the maxima plus a few corrections at their columns (``Rows``).

References
----------
.. [1] B. J. Frey and D. Dueck, "Clustering by passing messages between data points", Science, 2007.
.. [2] D. Tarlow, R. S. Zemel and B. J. Frey, "Flexible priors for exemplar-based clustering",
   UAI, 2008.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from countless.kernels.counts import best_of_others, new_bins

WORTH_ANOTHER = 0.7  # sifting is repeated while it leaves at most this share of the candidates


class Rows(NamedTuple):
    """Damped messages of rows: ``r(i, j) = share * s(i, j) - level[i] + correction(i, j)``."""

    share: float
    level: np.ndarray  # (n,)
    start: np.ndarray  # (n + 1,), where the corrections of each column begin
    place: np.ndarray  # (n_corrections,), the position among the column's edges
    correction: np.ndarray  # (n_corrections,)


class Maxima(NamedTuple):
    """The two largest sums a + s of each row."""

    best: np.ndarray  # (n,)
    second: np.ndarray  # (n,)
    column: np.ndarray  # (n,), the column of the largest
    place: np.ndarray  # (n,), and its position among that column's edges; the row in a full matrix


class Sizes(NamedTuple):
    """Log weights of cluster sizes, without the exemplar; empty where sizes do not count."""

    weight: np.ndarray  # (n + 3,), of c rows at index c + 1
    least_step: np.ndarray  # the smallest increment by any further row after c, at c
    most_step: np.ndarray  # the largest increment by any row up to the one after c, at c


@njit(nogil=True, cache=True, fastmath={"reassoc", "nsz"})
def sum_positive(values, n):
    """Return the sum of the positive values."""
    total = 0.0
    for k in range(n):
        total += max(values[k], 0.0)
    return total


@njit(nogil=True, cache=True)
def answer_plain(message, n, own):
    """Turn the responsibilities of a column into its availabilities; message is # OUT."""
    self_message = message[own]
    others = sum_positive(message, n) - max(self_message, 0.0)
    both = others + self_message
    for k in range(n):
        message[k] = min(0.0, both - max(message[k], 0.0))
    message[own] = others


@njit(nogil=True, cache=True)
def _sift(message, n, sizes, key, item):
    """Find the rows whose membership in the best choice depends on which row is left out.

    Rows above one threshold are always in the best choice, and rows below another never are; every
    row decided narrows the two thresholds. Fills key and item with the messages and positions of
    the undecided rows, # OUT. Returns their number, the upper threshold, the number of rows above
    it, and the sum of their messages.
    """
    least_step, most_step = sizes.least_step, sizes.most_step
    last = most_step.shape[0] - 1
    low = -most_step[min(n - 1, last)]
    m = 0
    for k in range(n):
        value = message[k]
        key[m], item[m] = value, k
        m += value >= low
    high, sure, total = np.inf, 0, 0.0
    while m:
        # The row left out may be one of those above the threshold.
        high, low = -least_step[max(sure - 1, 0)], -most_step[min(sure + m, last)]
        kept = 0
        for p in range(m):
            value, k = key[p], item[p]
            key[kept], item[kept] = value, k
            kept += (value >= low) & (value <= high)
            sure += value > high
            total += value if value > high else 0.0
        enough = kept > WORTH_ANOTHER * m
        m = kept
        if enough:
            break
    return m, high, sure, total


@njit(nogil=True, cache=True)
def answer_sized(message, n, own, sizes, work, items, bins):
    """Turn responsibilities into availabilities where clusters are weighted by their size."""
    self_message = message[own]
    message[own] = -np.inf
    key, item, when_on, when_off = work[0], items, work[1], work[2]
    m, high, sure, total = _sift(message, n, sizes, key, item)
    fewer, off, on = best_of_others(key, m, sizes.weight[sure:], bins, when_on, when_off)
    opens = self_message + total
    outside = min(opens + on, on - off)
    with_it, with_it_most = opens + off, off - fewer
    for k in range(n):
        value = message[k]
        message[k] = min(with_it - value, with_it_most) if value > high else outside
    for p in range(m):
        message[item[p]] = min(opens + when_on[p], when_on[p] - when_off[p])
    message[own] = total + off


@njit(nogil=True, cache=True)
def note_two(total, next_total, j, best, second, column):
    """Update the maxima of all rows with columns j and j + 1, branch-free; the last are # OUT."""
    for row in range(best.shape[0]):
        one, other = total[row], next_total[row]
        known, runner_up, where = best[row], second[row], column[row]
        more = one > known
        lower = known if more else one
        runner_up = lower if lower > runner_up else runner_up
        where = j if more else where
        known = one if more else known
        more = other > known
        lower = known if more else other
        runner_up = lower if lower > runner_up else runner_up
        where = j + 1 if more else where
        best[row] = other if more else known
        second[row], column[row] = runner_up, where


@njit(nogil=True, cache=True)
def note_some(total, j, rows, best, second, column, place):
    """Update the maxima of the rows that column j has edges to, and the edge positions."""
    for k in range(rows.shape[0]):
        value, row = total[k], rows[k]
        if value > best[row]:
            second[row], best[row], column[row], place[row] = best[row], value, j, k
        elif value > second[row]:
            second[row] = value


@njit(nogil=True, cache=True)
def pass_columns(
    edges,  # IN
    first,  # IN
    last,  # IN
    rows,  # IN
    damping,  # IN
    sizes,  # IN
    message,  # OUT (n_edges,), availabilities
    maxima,  # OUT, of the columns from first to last
    belief,  # OUT (n,), the net evidence that a row is an exemplar
):
    """Update the availabilities of some columns, and the maxima of every row."""
    value, start, row_of, own_edge, _, _, _ = edges
    share, level, fix_start, fix_place, correction = rows
    best, second, column, place = maxima
    full = row_of.shape[0] == 0
    n = level.shape[0]
    two, known = np.empty((2, n)), np.empty(n)
    work, items, bins = np.empty((3, n + 1)), np.empty(n + 1, dtype=np.int32), new_bins(n)
    best[:] = -np.inf
    second[:] = -np.inf
    column[:] = -1
    for j in range(first, last):
        begin, end = start[j], start[j + 1]
        length = end - begin
        similarity, old = value[begin:end], message[begin:end]
        fresh = two[(j - first) % 2]
        if full:
            known = level
        else:
            for k in range(length):
                known[k] = level[row_of[begin + k]]
        for k in range(length):
            fresh[k] = share * similarity[k] - known[k]
        for at in range(fix_start[j], fix_start[j + 1]):
            fresh[fix_place[at]] += correction[at]
        own = own_edge[j] - begin
        belief[j] = fresh[own]
        if sizes.weight.shape[0]:
            answer_sized(fresh, length, own, sizes, work, items, bins)
        else:
            answer_plain(fresh, length, own)
        for k in range(length):
            old[k] = damping * old[k] + (1.0 - damping) * fresh[k]
            fresh[k] = old[k] + similarity[k]
        belief[j] += old[own]
        if not full:
            note_some(fresh, j, row_of[begin:end], best, second, column, place)
        elif (j - first) % 2:
            note_two(two[0], two[1], j - 1, best, second, column)
        elif j == last - 1:
            two[1] = -np.inf
            note_two(two[0], two[1], j, best, second, column)


@njit(nogil=True, cache=True)
def merge_maxima(whole, part):
    """Merge the maxima of later columns into those of earlier ones; whole is # OUT."""
    best, second, column, place = whole
    for row in range(best.shape[0]):
        if part.best[row] > best[row]:
            second[row] = max(best[row], part.second[row])
            best[row] = part.best[row]
            column[row], place[row] = part.column[row], part.place[row]
        else:
            second[row] = max(second[row], part.best[row])


@njit(nogil=True, cache=True)
def follow_rows(
    rows,  # IN
    maxima,  # IN
    damping,  # IN
    gap_alone,  # IN, difference of the maxima of a row that has one edge
    negligible,  # IN, smaller corrections are dropped
):
    """Update the damped messages of rows with their new maxima."""
    share, level, start, place, correction = rows
    best, second, column, where = maxima
    n = level.shape[0]
    # Sort rows by the column of their maximum (counting sort).
    filed_start = np.zeros(n + 2, dtype=np.int64)
    for row in range(n):
        filed_start[column[row] + 2] += 1
    for j in range(n):
        filed_start[j + 2] += filed_start[j + 1]
    filed = np.empty(n, dtype=np.int64)
    for row in range(n):
        filed[filed_start[column[row] + 1]] = row
        filed_start[column[row] + 1] += 1
    new_level = np.empty(n)
    for row in range(n):
        new_level[row] = damping * level[row] + (1.0 - damping) * best[row]
    new_start = np.empty(n + 1, dtype=np.int64)
    new_place = np.empty(place.shape[0] + n, dtype=np.int32)
    new_correction = np.empty(place.shape[0] + n)
    slot = np.full(n, -1, dtype=np.int64)
    count = 0
    for j in range(n):
        new_start[j] = count
        for at in range(start[j], start[j + 1]):
            kept = damping * correction[at]
            if kept > negligible:
                slot[place[at]] = count
                new_place[count], new_correction[count] = place[at], kept
                count += 1
        for at in range(filed_start[j], filed_start[j + 1]):
            row = filed[at]
            gap = min(best[row] - second[row], gap_alone)
            k = where[row]
            known = slot[k]
            if new_start[j] <= known < count and new_place[known] == k:
                new_correction[known] += (1.0 - damping) * gap
            else:
                slot[k] = count
                new_place[count], new_correction[count] = k, (1.0 - damping) * gap
                count += 1
    new_start[n] = count
    share = damping * share + (1.0 - damping)
    return Rows(
        share, new_level, new_start, new_place[:count].copy(), new_correction[:count].copy()
    )
