"""Max-product messages of factors that depend only on how many of their variables are on.

Such a factor adds ``weight[c]`` for a count c, and variable p adds ``value[p]`` when it is on. The
message to a variable needs the maximum over the other variables at every count. With values sorted
in descending order the best choice of c variables is the first c, and excluding one variable shifts
those after it. So a variable needs the maximum of ``sum of the first c + weight`` over the counts
before its position, and over the counts after it.

A full sort is rarely needed. Values are distributed over bins, largest first. At counts on the
border between bins these maxima are exact. At counts inside a bin the sums are bounded, since the
bin's ends bound its values; only where a bound exceeds the known maximum are its values sorted.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

RUN = 12  # runs of this length are sorted by insertion
VALUES_A_BIN = 8
LEAST_RANGE = 1e-200  # smallest range of values that is divided into bins


class Bins(NamedTuple):
    """Workspace for n values in bins: the initial bins, and one more for each value."""

    held: np.ndarray  # (n_bins + 1,), number of values in the previous bins
    total: np.ndarray  # (n_bins + 1,), sum of these values
    before: np.ndarray  # (2, n_bins), the maximum over counts up to each bin, off and on
    behind: np.ndarray  # (2, n_bins), the maximum over counts from the bin's end
    is_open: np.ndarray  # (n_bins,), whether a larger sum is possible inside
    renamed: np.ndarray  # (n_bins,)
    bin_of: np.ndarray  # (n,), of each value
    key: np.ndarray  # (2, n + 1), for sorting
    item: np.ndarray  # (2, n + 1)


@njit(nogil=True, cache=True)
def new_bins(n):
    """Allocate the workspace for n values."""
    n_bins = n + n // VALUES_A_BIN + 1
    return Bins(
        np.empty(n_bins + 1, dtype=np.int64),
        np.empty(n_bins + 1),
        np.empty((2, n_bins)),
        np.empty((2, n_bins)),
        np.empty(n_bins, dtype=np.bool_),
        np.empty(n_bins, dtype=np.int32),
        np.empty(n, dtype=np.int32),
        np.empty((2, n + 1)),
        np.empty((2, n + 1), dtype=np.int32),
    )


@njit(nogil=True, cache=True)
def sort_descending(key, item, spare_key, spare_item, n):
    """Sort the first n keys in descending order, and their items along; all four are # OUT.

    Returns the two arrays that contain the result.
    """
    for low in range(0, n, RUN):
        for at in range(low + 1, min(low + RUN, n)):
            moved, moved_item = key[at], item[at]
            to = at
            while to > low and key[to - 1] < moved:
                key[to], item[to] = key[to - 1], item[to - 1]
                to -= 1
            key[to], item[to] = moved, moved_item
    width = RUN
    while width < n:
        for low in range(0, n, 2 * width):
            middle, high = min(low + width, n), min(low + 2 * width, n)
            left, right = low, middle
            for to in range(low, high):
                if left < middle and (right >= high or key[left] >= key[right]):
                    spare_key[to], spare_item[to] = key[left], item[left]
                    left += 1
                else:
                    spare_key[to], spare_item[to] = key[right], item[right]
                    right += 1
        key, spare_key, item, spare_item = spare_key, key, spare_item, item
        width *= 2
    return key, item


@njit(nogil=True, cache=True, fastmath={"nnan", "nsz", "reassoc"})
def _extremes(value, n):
    low, high = value[0], value[0]
    for p in range(n):
        low, high = min(low, value[p]), max(high, value[p])
    return low, high


@njit(nogil=True, cache=True)
def _deal(value, n, low, high, n_bins, bins):
    """Distribute values over bins of equal widths; bins is # OUT."""
    held, total, bin_of = bins.held, bins.total, bins.bin_of
    bins_a_unit = n_bins / (high - low) if high - low > LEAST_RANGE else 0.0
    for p in range(n):
        bin_of[p] = min(np.int32((high - value[p]) * bins_a_unit), n_bins - 1)
    held[: n_bins + 1] = 0
    total[: n_bins + 1] = 0.0
    for p in range(n):
        b = bin_of[p]
        held[b + 1] += 1
        total[b + 1] += value[p]
    for b in range(n_bins):
        held[b + 1] += held[b]
        total[b + 1] += total[b]


@njit(nogil=True, cache=True)
def _note_largest(weight, n_bins, bins):
    """Fill the maxima before and behind each bin; return those for one fewer, as many, one more."""
    held, total, before, behind, _, _, _, _, _ = bins
    off, on = weight[1], weight[2]
    for b in range(n_bins):
        before[0, b], before[1, b] = off, on
        off = max(off, total[b + 1] + weight[held[b + 1] + 1])
        on = max(on, total[b + 1] + weight[held[b + 1] + 2])
    behind_off = behind_on = -np.inf
    for b in range(n_bins - 1, -1, -1):
        behind_off = max(behind_off, total[b + 1] + weight[held[b + 1]])
        behind_on = max(behind_on, total[b + 1] + weight[held[b + 1] + 1])
        behind[0, b], behind[1, b] = behind_off, behind_on
    return max(behind_off, weight[0]), off, on


@njit(nogil=True, cache=True, fastmath={"nnan", "nsz"})
def _bound_inside(weight, first, last, begin, end, top, bottom):
    """Bound the sums at counts between first and last: one fewer on, as many, one more."""
    from_top, from_bottom = begin - first * top, end - last * bottom
    fewer = same = more = -np.inf
    for c in range(first + 1, last):
        most = min(from_top + c * top, from_bottom + c * bottom)
        fewer = max(fewer, most + weight[c])
        same = max(same, most + weight[c + 1])
        more = max(more, most + weight[c + 2])
    return fewer, same, more


@njit(nogil=True, cache=True)
def _find_open(weight, n_bins, high, width, bins):
    """Mark bins inside which a sum may exceed the maxima; return how many values they contain.

    A bin needs no sorting if the bounds of the sums inside it exceed neither the maxima that
    variables in other bins see at its ends, nor the best choice of its own variables without it.
    """
    held, total, before, behind, is_open, _, _, _, _ = bins
    n_open = 0
    for b in range(n_bins):
        first, last, begin, end = held[b], held[b + 1], total[b], total[b + 1]
        is_open[b] = False
        if last - first < 2:
            continue
        top, bottom = high - b * width, high - (b + 1) * width
        fewer, same, more = _bound_inside(weight, first, last, begin, end, top, bottom)
        off, on, behind_off, behind_on = before[0, b], before[1, b], behind[0, b], behind[1, b]
        if (
            same > max(off, min(behind_off - top, end + weight[last + 1]))
            or more > max(on, min(behind_on - top, end + weight[last + 2]))
            or fewer > max(behind_off, min(off + bottom, begin + weight[first]))
            or same > max(behind_on, min(on + bottom, begin + weight[first + 1]))
        ):
            is_open[b] = True
            n_open += last - first
    return n_open


@njit(nogil=True, cache=True)
def _part_open(value, n, n_bins, bins):
    """Give each value of an open bin a separate bin; return the new number of bins."""
    held, total, _, _, is_open, renamed, bin_of, keys, items = bins
    n_parted = 0
    for b in range(n_bins):
        renamed[b] = n_parted
        n_parted += held[b + 1] - held[b] if is_open[b] else 1
    m = 0
    for p in range(n):
        b = bin_of[p]
        keys[0, m], items[0, m] = value[p], p
        m += is_open[b]
        bin_of[p] = renamed[b]
    key, item = sort_descending(keys[0], items[0], keys[1], items[1], m)
    # From the last bin to the first, so that nothing is overwritten before it is read.
    to = n_parted
    for b in range(n_bins - 1, -1, -1):
        first, last, end = held[b], held[b + 1], total[b + 1]
        if not is_open[b]:
            held[to], total[to] = last, end
            to -= 1
            continue
        for c in range(last, first, -1):
            held[to], total[to] = c, end
            to -= 1
            m -= 1
            end -= key[m]
            bin_of[item[m]] = to
    return n_parted


@njit(nogil=True, cache=True)
def best_of_others(
    value,  # IN (n,)
    n,  # IN
    weight,  # IN (n + 3,) or more: weight[c + 1] is that of a count c, from -1 on
    bins,  # scratch
    when_on,  # OUT (n,), the maximum over the other variables with this one on
    when_off,  # OUT (n,), the maximum over the other variables with this one off
):
    """Return the overall maximum with the count taken as one fewer, as it is, and one more."""
    if n == 0:
        return weight[0], weight[1], weight[2]
    low, high = _extremes(value, n)
    n_bins = n // VALUES_A_BIN + 1
    _deal(value, n, low, high, n_bins, bins)
    best = _note_largest(weight, n_bins, bins)
    if _find_open(weight, n_bins, high, (high - low) / n_bins, bins):
        best = _note_largest(weight, _part_open(value, n, n_bins, bins), bins)
    before, behind, bin_of = bins.before, bins.behind, bins.bin_of
    for p in range(n):
        b = bin_of[p]
        when_off[p] = max(before[0, b], behind[0, b] - value[p])
        when_on[p] = max(before[1, b], behind[1, b] - value[p])
    return best
