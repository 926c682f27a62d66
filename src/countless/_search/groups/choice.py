"""Which globals each data set uses, for fixed centers: a facility location problem per group.

A group pays a price for every global that it uses, and its rows are assigned to the nearest of
them. The choice is improved by additions, drops and swaps until none lowers the cost (local search
for facility location); groups are independent of each other, and so processed in parallel.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from countless._search.groups.rows import GroupedRows
from countless._search.local_search import SCHEDULE
from countless.kernels.hdp import best_change, choose_globals, weigh_changes


@dataclass(frozen=True)
class Tiles:
    """How much is processed at once; ``benchmarks/hdp.py`` has its time."""

    # Squared distances in memory per thread, and the size from which a group is processed in parts.
    tile_values: int = 2**17
    large_group_values: int = 2**22
    # Changes to the globals of a large group between two updates of the centers.
    large_group_changes: int = 4


TILES = Tiles()


class Chosen(NamedTuple):
    """The globals that groups use, and the assignment of their rows."""

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
    """Choose the globals of every group, starting from ``chosen`` and updating it in place.

    A group does not pay for the globals marked in ``paid``.
    """
    used, labels = chosen
    tolerance = SCHEDULE.rounding * rows.total_cost

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
    """Choose the globals of a group whose distances exceed a thread's memory, in passes."""
    g = len(used)
    step = max(1, TILES.tile_values // g)
    parts = [(at, min(at + step, end)) for at in range(begin, end, step)]
    if not used.any():
        used[:] = True

    def weigh(start, stop):
        sums = np.zeros(g), np.zeros(g), np.zeros((g, g))
        near = rows.distances(start, stop, centers)
        weigh_changes(near, used, *sums, labels[start:stop])
        return sums

    for remaining in range(TILES.large_group_changes, -1, -1):
        add, drop, kept = (sum(part) for part in zip(*rows.each(weigh, parts), strict=True))
        gone, new, change = best_change(used, paid, price, add, drop, kept)
        if not (remaining and change < -SCHEDULE.rounding * rows.total_cost):
            return
        if gone >= 0:
            used[gone] = False
        if new >= 0:
            used[new] = True


def assign_groups(
    rows: GroupedRows, starts: np.ndarray, centers: np.ndarray, paid: np.ndarray, price: float
) -> np.ndarray:
    """Assign each row to a global, where groups pay for the globals that they use.

    ``paid`` marks those that a group uses already, at no price; at price 0 all are used.
    """
    used = paid.copy() if price > 0 else np.ones_like(paid)
    chosen = Chosen(used, np.empty(rows.n_rows, dtype=np.int32))
    choose(rows, starts, centers - rows.origin, paid, price, chosen)
    return chosen.labels


def _tiles(starts: np.ndarray, n_globals: int) -> tuple[list[tuple[int, int]], list[int]]:
    """Return ranges of groups that are processed together, and groups too large for one thread."""
    tiles, large = [], []
    capacity, most = TILES.tile_values // n_globals, TILES.large_group_values // n_globals
    first, n_groups = 0, len(starts) - 1
    if starts[-1] <= capacity:
        return [(0, n_groups)], []
    while first < n_groups:
        if starts[first + 1] - starts[first] > most:
            large.append(first)
            first += 1
            continue
        last = int(np.searchsorted(starts, starts[first] + capacity, side="right")) - 1
        last = max(last, first + 1)
        tiles.append((first, last))
        first = last
    return tiles, large
