"""Adding, removing and swapping exemplars of a full matrix, where cluster sizes do not count.

The objective sums each row's similarity to its best exemplar, and the exemplars' preferences. With
the best and the second best of every row stored, one pass over the column of a candidate gives the
gain of adding it together with removing any other, as in FasterPAM for a fixed number of medoids.

References
----------
.. [1] E. Schubert and P. J. Rousseeuw, "Fast and eager k-medoids clustering: O(k) runtime
   improvement of the PAM, CLARA, and CLARANS algorithms", Information Systems 101, 2021.
"""

import numpy as np
from numba import njit


@njit(nogil=True, cache=True)
def _offer(row, similarity, k, best, second, slot, second_slot):
    """Update a row's best two exemplars with one more; the last four are # OUT."""
    if similarity > best[row]:
        # For the first exemplar, a row has only the lowest similarity as its best.
        second[row], second_slot[row] = max(best[row], second[row]), slot[row]
        best[row], slot[row] = similarity, k
    elif similarity > second[row]:
        second[row], second_slot[row] = similarity, k


@njit(nogil=True, cache=True)
def _look_again(value, n, row, slots, n_open, lowest, best, second, slot, second_slot):
    """Recompute the two best exemplars of a row, excluding itself; the last four are # OUT."""
    best[row], second[row] = -np.inf, lowest
    slot[row] = second_slot[row] = -1
    for k in range(n_open):
        if slots[k] != row:
            _offer(row, value[slots[k] * n + row], k, best, second, slot, second_slot)


@njit(nogil=True, cache=True)
def _price_closing(is_open, n_open, best, second, slot, closing, bar):
    """Compute the change by removing each slot, and what improves a row; closing, bar are # OUT."""
    closing[:n_open] = 0.0
    for row in range(best.shape[0]):
        bar[row] = np.inf if is_open[row] else second[row]
        if not is_open[row]:
            closing[slot[row]] += second[row] - best[row]


@njit(nogil=True, cache=True)
def swap_exemplars(
    value,  # IN (n * n,), a full matrix, column by column
    preference,  # IN (n,)
    lowest,  # IN, lower bound of the similarities
    least,  # IN, smaller gains are rounding errors
    max_passes,  # IN, maximum number of passes over all candidates
    is_fixed,  # IN, whether exemplars are only swapped, so that their number stays
    is_open,  # OUT (n,)
):
    """Add, remove and swap exemplars, each at once where it gains; return the number of changes."""
    n = preference.shape[0]
    slots = np.empty(n, dtype=np.int64)
    n_open = 0
    for row in range(n):
        if is_open[row]:
            slots[n_open] = row
            n_open += 1
    best, second = np.empty(n), np.empty(n)
    slot, second_slot = np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64)
    for row in range(n):
        _look_again(value, n, row, slots, n_open, lowest, best, second, slot, second_slot)
    closing, bar = np.empty(n), np.empty(n)
    _price_closing(is_open, n_open, best, second, slot, closing, bar)
    change = np.empty(n)  # by removing each slot, besides adding the candidate
    n_changes, quiet, candidate = 0, 0, 0
    for _ in range(max_passes * n):
        column = value[candidate * n : candidate * n + n]
        opens = not is_open[candidate]
        gain = 0.0
        for k in range(n_open):
            exemplar = slots[k]
            known = max(best[exemplar], column[exemplar]) if opens else best[exemplar]
            change[k] = closing[k] + known - preference[exemplar]
        if opens:
            gain = preference[candidate] - best[candidate]
            change[slot[candidate]] += best[candidate] - second[candidate]
            for row in range(n):
                if column[row] > bar[row] and row != candidate:
                    above = max(column[row] - best[row], 0.0)
                    gain += above
                    change[slot[row]] += column[row] - above - second[row]
        closed, most = -1, gain if opens and not is_fixed else -np.inf
        # The last exemplar can be swapped but not removed.
        for k in range(n_open if opens or (n_open > 1 and not is_fixed) else 0):
            if gain + change[k] > most:
                closed, most = k, gain + change[k]
        if most > least:
            n_changes += 1
            quiet = 0
            last = -1
            if closed >= 0:
                is_open[slots[closed]] = False
                n_open -= 1
                last = n_open
                slots[closed] = slots[last]  # moved here from the last slot
            if opens:
                is_open[candidate] = True
                slots[n_open] = candidate
                n_open += 1
            for row in range(n):
                if closed >= 0 and (slot[row] == closed or second_slot[row] == closed):
                    _look_again(
                        value, n, row, slots, n_open, lowest, best, second, slot, second_slot
                    )
                    continue
                if slot[row] == last:
                    slot[row] = closed
                elif second_slot[row] == last:
                    second_slot[row] = closed
                if opens and row != candidate:
                    _offer(row, column[row], n_open - 1, best, second, slot, second_slot)
            _price_closing(is_open, n_open, best, second, slot, closing, bar)
        else:
            quiet += 1
            if quiet == n:
                break
        candidate = (candidate + 1) % n
    return n_changes
