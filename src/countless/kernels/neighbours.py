"""The nearest of many centers, picked from tables of their squared distances."""

from numba import njit


@njit(nogil=True, cache=True)
def pick_neighbours(scores, square, start, first, neighbours, squares):
    """List centers of the least values of each row, from the least on, among those listed before.

    Row ``r`` is about center ``start + r``, which is not listed itself, and column ``c`` about
    center ``first + c``; ``scores[r, c] + square[first + c]`` orders the others, and equal values
    the lower column. ``squares``, all infinite at first, has one column more than ``neighbours``:
    the least value that is not listed.

    neighbours, squares are # OUT.
    """
    listed = neighbours.shape[1]
    for r in range(scores.shape[0]):
        least, places = squares[r], neighbours[r]
        worst = least[listed]
        for c in range(scores.shape[1]):
            value = scores[r, c] + square[first + c]
            if value < worst and first + c != start + r:
                t = listed
                while t > 0 and least[t - 1] > value:
                    least[t] = least[t - 1]
                    if t < listed:
                        places[t] = places[t - 1]
                    t -= 1
                least[t] = value
                if t < listed:
                    places[t] = first + c
                worst = least[listed]


@njit(nogil=True, cache=True)
def mark_fresh(neighbours, known, parent):
    """Mark the neighbours of each center that are not known, nor come out of one that is.

    ``parent[c]`` is what center ``c`` was, or was a part of, when ``known`` was listed; there and
    here -1 is none. A mark turns ``c`` into ``~c``. neighbours is # OUT.
    """
    for r in range(neighbours.shape[0]):
        for t in range(neighbours.shape[1]):
            before = parent[neighbours[r, t]]
            found = False
            s = 0
            while not found and s < known.shape[1]:
                found = before >= 0 and known[r, s] == before
                s += 1
            if not found:
                neighbours[r, t] = ~neighbours[r, t]
