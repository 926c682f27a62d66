"""Nearest neighbours among many centers, selected from tables of squared distances."""

import numpy as np
from numba import njit

from countless.kernels.assign import MOST

# Number of centers compared at once, and of centers they are compared with.
TILE_ROWS, TILE_COLUMNS = 32, 128


@njit(nogil=True, cache=True)
def list_nearest(seen, square, error, unit, start, stop, known, parent, neighbours, gaps):
    """List the nearest centers of each from ``start`` to ``stop``, with distances rounded down.

    Distances of the rows of ``seen`` are in a unit, and their squares are exact up to the error.
    Centers that are not ``known`` are marked, if there are parents.

    neighbours, gaps are # OUT.
    """
    k, listed = seen.shape[0], neighbours.shape[1]
    size = min(TILE_ROWS, stop - start)
    capacity = np.empty(size * min(TILE_COLUMNS, k), dtype=seen.dtype)
    nearest = np.empty((size, listed), dtype=np.int32)
    found = np.empty((size, listed + 1), dtype=seen.dtype)
    for at in range(start, stop, size):
        n = min(size, stop - at)
        found[:] = np.inf
        for first in range(0, k, TILE_COLUMNS):
            others = seen[first : first + TILE_COLUMNS]
            scores = capacity[: n * others.shape[0]].reshape(n, others.shape[0])
            np.dot(seen[at : at + n], others.T, scores)
            scores *= -2
            pick_neighbours(scores, square, at, first, nearest[:n], found)
        if parent.shape[0] > 0:
            mark_fresh(nearest[:n], known[at : at + n], parent)
        for r in range(n):
            neighbours[at + r] = nearest[r]
            for t in range(listed + 1):
                gap = found[r, t]
                if np.isfinite(gap):
                    gap = min(np.sqrt(max(gap + square[at + r] - error, 0.0)) * unit, MOST)
                gaps[at + r, t] = gap


@njit(nogil=True, cache=True)
def pick_neighbours(scores, square, start, first, neighbours, squares):
    """Merge the least values of each row, in ascending order, into the neighbours listed so far.

    Row ``r`` is center ``start + r``, which is not listed itself, and column ``c`` is center
    ``first + c``. The others are ordered by ``scores[r, c] + square[first + c]``, ties by column.
    ``squares``, all infinite initially, has one column more than ``neighbours``: the least value
    that is not listed.

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
    """Mark the neighbours of each center that are neither known nor descend from a known one.

    ``parent[c]`` is the center that ``c`` was, or was split from, when ``known`` was listed; -1 is
    none in both. A mark turns ``c`` into ``~c``. neighbours is # OUT.
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
