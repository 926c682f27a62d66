"""Messages of factors that see how many of their variables are on, and nothing else.

Such a factor weighs a count c by a table ``gain[c]``, and its variable p, when on, brings
``value[p]``. What each variable is told rests on the best choice of the others at every count:
sort the values, and the best c of them are the first c. Leaving one out shifts those behind it.
"""

import numpy as np
from numba import njit

RUN = 12  # stretches of this length are sorted by insertion


@njit(nogil=True, cache=True)
def sort_descending(key, item, spare_key, spare_item, n):
    """Sort the first n keys, largest first, and their items along; all four are # OUT.

    Returns the two arrays that hold the result.
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


@njit(nogil=True, cache=True)
def best_of_others(
    value,  # IN (n,), largest first
    n,  # IN
    gain,  # IN (n + 2,) or more, the weight of each count
    total,  # scratch (n + 1,)
    when_on,  # OUT (n,), the best of the others and the count, with this one on
    when_off,  # OUT (n,), the same with this one off
):
    """Return the best of all, and the best with one more variable that is not among them, on."""
    total[0] = 0.0
    off, on = gain[0], gain[1]
    for p in range(n):
        when_off[p], when_on[p] = off, on
        total[p + 1] = total[p] + value[p]
        off = max(off, total[p + 1] + gain[p + 1])
        on = max(on, total[p + 1] + gain[p + 2])
    behind_off = behind_on = -np.inf
    for p in range(n - 1, -1, -1):
        behind_off = max(behind_off, total[p + 1] + gain[p])
        behind_on = max(behind_on, total[p + 1] + gain[p + 1])
        when_off[p] = max(when_off[p], behind_off - value[p])
        when_on[p] = max(when_on[p], behind_on - value[p])
    return off, on
