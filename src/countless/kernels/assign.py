"""Assignment of rows to their nearest centers, with distances pruned by the triangle inequality.

Every row has two bounds (Hamerly 2010): an upper bound on the distance to its own center and a
lower bound on the distance to any other. They are distances, not squares, stored in float32 and
rounded conservatively. A row that the bounds do not decide is compared with the centers close to
its own (exponion, Newling and Fleuret 2016) or, if these are many, with all centers by a matrix
product. The result is exact in each case: near ties are decided by differences in float64, and
equal distances by the lower label.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from countless.kernels.rows import divergence
from countless.kernels.statistics import center_rows

LEAST, MOST = 2.0**-120, 2.0**126

# Assignment states of a row: within the penalty of its center; beyond the penalty of all centers;
# not compared yet; beyond the penalty of all centers but one of a cluster opened in this pass.
DECIDED, FAR, UNDECIDED, REACHED = 0, 1, 2, 3


class Product(NamedTuple):
    """Centers prepared for matrix products with tiles of rows."""

    right: np.ndarray  # (n_features, n_centers) float32
    offset: np.ndarray  # (n_centers,) float32
    origin: np.ndarray  # (n_features,), subtracted from rows
    unit: float  # unit of length
    error: tuple[float, float]  # of a score: a constant, and a factor of the row's norm
    rounding: float
    tile_rows: int


@njit(nogil=True, cache=True)
def round_up(value):
    """Round a distance up to float32."""
    return np.float32(value * (1.0 + 2.0**-22) + LEAST)


@njit(nogil=True, cache=True)
def round_down(value):
    """Round a distance down to float32, and negative values to 0."""
    return np.float32(max(0.0, min(value, MOST) * (1.0 - 2.0**-22) - LEAST))


@njit(nogil=True, cache=True)
def filter_rows(
    rows, weight, centers, drift, others, neighbours, gaps, approached, slack, local, penalty,
    labels, upper, lower, status,
):  # fmt: skip
    """Decide the rows of a block by their bounds or by comparison with nearby centers.

    Center ``c`` moved by ``drift[c]``, and no other by more than ``others[c]``. ``gaps[c, t]`` is
    (a lower bound on) the distance from center ``c`` to its ``t``-th nearest center ``neighbours[c,
    t]`` when these were listed, and no two have approached each other since by more than
    ``approached[c]``; the last column covers every center that is not listed. With ``local`` only
    listed centers are compared and bounded, and the bounds do not cover those listed as ``~c``. A
    listed center is compared unless the bounds make its squared distance ``slack`` times that of
    the nearest: comparing more centers than necessary tightens the bounds.

    Returns the number of divergences computed, here and for rows that must be compared with all
    centers and have no label. labels, upper, lower, status are # OUT.
    """
    listed = neighbours.shape[1]
    computed = 0
    for i in range(labels.shape[0]):
        own = labels[i]
        upper_bound = upper[i] + drift[own]
        lower_bound = max(0.0, lower[i] - others[own])
        if not local:
            lower_bound = max(lower_bound, gaps[own, 0] - upper_bound)
        if upper_bound < lower_bound and weight[i] * upper_bound * upper_bound <= penalty:
            upper[i] = round_up(upper_bound)
            lower[i] = round_down(lower_bound)
            status[i] = DECIDED
            continue
        value = divergence(rows, i, centers, own)
        computed += 1
        upper_bound = np.sqrt(value)
        if not local:
            lower_bound = max(lower_bound, gaps[own, 0] - upper_bound)
        if not upper_bound < lower_bound:
            # Every center nearer than the row's own is within twice the row's distance of its own.
            radius = 2.0 * upper_bound
            if not (local or radius < gaps[own, listed]):
                labels[i] = -1
                status[i] = UNDECIDED
                computed += drift.shape[0]
                continue
            best = own
            best_value = value
            runner_up = np.inf
            t = 0
            while t < listed and gaps[own, t] <= radius:
                c, other = neighbours[own, t], 0.0
                if c < 0:
                    c = ~c
                elif local:
                    other = max(0.0, lower[i] - drift[c]) ** 2
                if not other > slack * best_value:
                    other = divergence(rows, i, centers, c)
                    computed += 1
                if other < best_value or (other == best_value and c < best):
                    runner_up = best_value
                    best_value = other
                    best = c
                elif other < runner_up:
                    runner_up = other
                t += 1
            lower_bound = np.sqrt(runner_up)
            if t < listed or not local:
                lower_bound = min(lower_bound, gaps[own, t] - approached[own] - upper_bound)
            if local and best != own:
                lower_bound = 0.0  # no bounds are known for the centers around this one
            labels[i] = best
            value = best_value
            upper_bound = np.sqrt(value)
        upper[i] = round_up(upper_bound)
        lower[i] = round_down(lower_bound)
        status[i] = FAR if weight[i] * value > penalty else DECIDED
    return computed


@njit(nogil=True, cache=True, fastmath={"nnan", "nsz", "reassoc"})
def _least(scores, stop):
    least = scores[0]
    for c in range(1, stop):
        least = min(least, scores[c])
    return least


@njit(nogil=True, cache=True)
def pick_nearest(
    rows, ids, weight, centers, scores, norm, error, unit, first, limit, penalty,
    labels, upper, lower, status,
):  # fmt: skip
    """Assign each row to its nearest center from a table of scores; decide near ties exactly.

    ``unit * (norm[r] + scores[r, c] - error[r])`` is a lower bound, as tight as possible, of the
    divergence of row ``ids[r]`` from center ``first + c``. Row ``i`` may take only columns below
    ``limit[i]`` (if there are limits), but its lower bound covers all. A row that has a label
    already (``labels >= 0``) keeps it unless a column is strictly nearer.

    scores (overwritten), labels, upper, lower, status are # OUT.
    """
    for r in range(ids.shape[0]):
        i = ids[r]
        row = scores[r]
        stop = limit[i] if limit.shape[0] > 0 else row.shape[0]
        floor = norm[r] - error[r]
        best = labels[i]
        best_value = np.inf
        runner_up = np.inf
        if best >= 0:
            best_value = np.float64(upper[i]) * np.float64(upper[i])
            runner_up = np.float64(lower[i]) * np.float64(lower[i])
        least = _least(row, stop) if stop > 0 else np.inf
        if stop > 0 and unit * (floor + least) <= best_value:
            if best >= 0:
                best_value = divergence(rows, i, centers, best)
            c = 0
            while row[c] != least:
                c += 1
            # Usually this column is the nearest, and no other is within the error.
            row[c] = np.inf
            value = divergence(rows, i, centers, first + c)
            if value < best_value:
                runner_up = min(runner_up, best_value)
                best_value = value
                best = first + c
            else:
                runner_up = min(runner_up, value)
            if unit * (floor + _least(row, stop)) <= best_value:
                for c in range(stop):
                    if unit * (floor + row[c]) <= best_value:
                        row[c] = np.inf
                        value = divergence(rows, i, centers, first + c)
                        if value < best_value or (value == best_value and first + c < best):
                            runner_up = min(runner_up, best_value)
                            best_value = value
                            best = first + c
                        else:
                            runner_up = min(runner_up, value)
        runner_up = min(runner_up, max(0.0, unit * (floor + _least(row, row.shape[0]))))
        labels[i] = best
        upper[i] = round_up(np.sqrt(best_value))
        lower[i] = round_down(np.sqrt(runner_up))
        status[i] = FAR if weight[i] * best_value > penalty else DECIDED


@njit(nogil=True, cache=True)
def compare_rows(
    rows, weight, centers, product, first, limit, penalty, labels, upper, lower, status
):
    """Compare the undecided rows of a block with centers, tile by tile, by `pick_nearest`.

    labels, upper, lower, status are # OUT.
    """
    n_features, k = product.right.shape
    size = min(product.tile_rows, status.shape[0])
    values = np.empty((size, n_features), dtype=np.float32)
    scores = np.empty((size, k), dtype=np.float32)
    ids = np.empty(size, dtype=np.int64)
    norm, error = np.empty(size), np.empty(size)
    n, last = 0, status.shape[0] - 1
    for i in range(last + 1):
        if status[i] == UNDECIDED:
            ids[n] = i
            n += 1
        if n == size or (i == last and n > 0):
            center_rows(rows.values, ids[:n], product.origin, 1.0 / product.unit, values, norm)
            np.dot(values[:n], product.right, scores[:n])
            for r in range(n):
                error[r] = product.error[0] + product.error[1] * np.sqrt(norm[r])
                error[r] += product.rounding * norm[r]
                for c in range(k):
                    scores[r, c] = product.offset[c] - scores[r, c]
            pick_nearest(
                rows, ids[:n], weight, centers, scores[:n], norm, error, product.unit**2,
                first, limit, penalty, labels, upper, lower, status,
            )  # fmt: skip
            n = 0


@njit(nogil=True, cache=True)
def open_clusters(rows, ids, weight, centers, penalty, opened):
    """Visit far rows in turn; each beyond the penalty of all clusters opened so far opens one.

    ``centers`` has the rows of ``ids``. Returns how many opened; their positions in ``ids`` are in
    ``opened`` # OUT.
    """
    count = 0
    for r in range(ids.shape[0]):
        i = ids[r]
        reached = False
        for p in range(count):
            if weight[i] * divergence(rows, i, centers, opened[p]) <= penalty:
                reached = True
                break
        if not reached:
            opened[count] = r
            count += 1
    return count


@njit(nogil=True, cache=True)
def mark_reached(rows, weight, centers, n_centers, penalty, status):
    """Mark far rows that are within the penalty of one of the centers. status is # OUT."""
    for i in range(status.shape[0]):
        c = 0
        while status[i] == FAR and c < n_centers:
            if weight[i] * divergence(rows, i, centers, c) <= penalty:
                status[i] = REACHED
            c += 1


@njit(nogil=True, cache=True)
def count_before(key, start, opened_key, opened_row, limit):
    """Count the opening rows that are visited before each row, or are that row. limit is # OUT.

    Rows are visited by ascending key, ties in row order; opening rows are listed in this order.
    """
    for i in range(key.shape[0]):
        low, high = 0, opened_key.shape[0]
        while low < high:
            middle = (low + high) // 2
            if opened_key[middle] < key[i] or (
                opened_key[middle] == key[i] and opened_row[middle] <= start + i
            ):
                low = middle + 1
            else:
                high = middle
        limit[i] = low


@njit(nogil=True, cache=True)
def distances_to(rows, weight, center, distance):
    """Update the distances with one more center; return the farthest row. distance is # OUT."""
    far = 0
    for i in range(distance.shape[0]):
        distance[i] = min(distance[i], divergence(rows, i, center, 0))
        if weight[i] * distance[i] > weight[far] * distance[far]:
            far = i
    return far


@njit(nogil=True, cache=True)
def distances_of(rows, labels, centers, distance):
    """Compute the divergence of each row from the center of its label. distance is # OUT."""
    for i in range(labels.shape[0]):
        distance[i] = divergence(rows, i, centers, labels[i])


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
