"""Which globals each data set uses, when centers stand still: the cheapest for its rows.

A group pays a price for every global that it uses, and its rows go to the nearest of them. The
choice is improved by additions, drops and swaps until none pays (facility location by local
search); groups are independent of each other, and so worked on side by side.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from countless.hard.hdp.rows import GroupedRows
from countless.kernels.hdp import best_change, choose_globals, weigh_changes

# Squared distances held at once by a thread; a group with more is worked on in parts.
TILE_VALUES = 2**17
LARGE_GROUP_VALUES = 2**22
# Changes of the globals that a large group uses, between two moves of the centers.
LARGE_GROUP_CHANGES = 4
# Gains below this share of the cost of one cluster are rounding.
ROUNDING = 1e-12


class Chosen(NamedTuple):
    """What groups use, and where their rows are then."""

    used: np.ndarray  # (n_groups, n_globals) bool
    labels: np.ndarray  # (n_rows,) the global of each row


def choose(
    rows: GroupedRows,
    starts: np.ndarray,
    centers: np.ndarray,
    paid: np.ndarray,
    price: float,
    chosen: Chosen,
) -> None:
    """Let every group choose which globals it uses, from what ``chosen`` says and into it."""
    used, labels = chosen
    tolerance = ROUNDING * rows.total_cost

    def work(first, last):
        part = slice(starts[first], starts[last])
        choose_globals(
            rows.distances(part.start, part.stop, centers), starts[first : last + 1] - part.start,
            paid[first:last], price, tolerance, used[first:last], labels[part],
        )  # fmt: skip

    tiles, large = _tiles(starts, len(centers))
    rows.each(work, tiles)
    for group in large:
        _choose_for_large(
            rows, starts[group], starts[group + 1], centers, paid[group], price, used[group], labels
        )


def _choose_for_large(rows, begin, end, centers, paid, price, used, labels) -> None:
    """Choose the globals of a group whose distances do not fit, in passes over its rows."""
    g = len(used)
    step = max(1, TILE_VALUES // g)
    parts = [(at, min(at + step, end)) for at in range(begin, end, step)]
    if not used.any():
        used[:] = True

    def weigh(start, stop):
        sums = np.zeros(g), np.zeros(g), np.zeros((g, g))
        near = rows.distances(start, stop, centers)
        weigh_changes(near, used, *sums, labels[start:stop])
        return sums

    for remaining in range(LARGE_GROUP_CHANGES, -1, -1):
        add, drop, kept = (sum(part) for part in zip(*rows.each(weigh, parts), strict=True))
        gone, new, change = best_change(used, paid, price, add, drop, kept)
        if not (remaining and change < -ROUNDING * rows.total_cost):
            return
        if gone >= 0:
            used[gone] = False
        if new >= 0:
            used[new] = True


def assign_groups(
    rows: GroupedRows, starts: np.ndarray, centers: np.ndarray, paid: np.ndarray, price: float
) -> np.ndarray:
    """Return a global for each row, when groups pay for the centers that they use.

    ``paid`` marks those that a group uses already; at price 0 all are.
    """
    used = paid.copy() if price > 0 else np.ones_like(paid)
    chosen = Chosen(used, np.empty(rows.n_rows, dtype=np.int32))
    choose(rows, starts, centers - rows.origin, paid, price, chosen)
    return chosen.labels


def _tiles(starts: np.ndarray, n_globals: int) -> tuple[list[tuple[int, int]], list[int]]:
    """Return runs of groups that are worked on together, and groups too large for one thread."""
    tiles, large = [], []
    room, most = TILE_VALUES // n_globals, LARGE_GROUP_VALUES // n_globals
    first, n_groups = 0, len(starts) - 1
    if starts[-1] <= room:
        return [(0, n_groups)], []
    while first < n_groups:
        if starts[first + 1] - starts[first] > most:
            large.append(first)
            first += 1
            continue
        last = int(np.searchsorted(starts, starts[first] + room, side="right")) - 1
        last = max(last, first + 1)
        tiles.append((first, last))
        first = last
    return tiles, large
