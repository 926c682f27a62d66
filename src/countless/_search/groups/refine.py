"""Local search on the objective of the hard HDP, from where Algorithm 2 stops.

Local clusters of one group that share a global are one local cluster here, so a clustering is one
global for each row, and ``sum_i ||x_i - mu_z(i)||^2 + local_penalty * n_local + global_penalty *
n_global`` counts the non-empty pairs (group, global). Only moves that lower it are accepted:

* *reassign*: every group chooses again which globals it uses, by additions, drops and swaps, and
  its rows are assigned to the nearest of them; then centers move to their means;
* *split* a global in two; each of its groups goes to one half as a whole, or pays for both;
* *merge* two globals: one global penalty less, and one local penalty less for every group that used
  both;
* *move* whole local clusters, halves of them, and single rows to another global or a new one.

If none lowers it, over-split and repair: globals are split at a price below the penalty, reassigned
and merged again, and all of this is undone unless the objective is lower.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, wraps
from typing import NamedTuple

import numpy as np

from countless._compat import OnPass, ignore_pass
from countless._data.fixed_point import Sums
from countless._search.groups.algorithm2 import SharedClustering
from countless._search.groups.choice import TILES, Chosen, choose
from countless._search.groups.rows import GroupedRows
from countless._search.local_search import SCHEDULE, LocalSearch, OverSplit
from countless.kernels.hdp_moves import (
    count_cells,
    find_cells,
    find_movers,
    merge_globals,
    move_items,
    split_cells,
)


@dataclass(frozen=True)
class SharedSchedule:
    """Constants of moves of shared clusters; ``benchmarks/hdp.py`` shows what they are worth."""

    # Largest number of globals that a round of moves may open.
    opened: int = 16
    # Over-split and repair: splits are made at these shares of the penalties, until there is one
    # more global, or this many times as many; then the passes after the merges.
    over_split_share: float = 0.65
    many_share: float = 0.5
    many_factor: float = 1.25
    repair_passes: int = 3


SHARED_SCHEDULE = SharedSchedule()


class Cells(NamedTuple):
    """The non-empty pairs (group, global): local clusters, sorted by group, then by global."""

    group: np.ndarray  # (n_cells,)
    cluster: np.ndarray  # (n_cells,) the global
    of_row: np.ndarray  # (n_rows,) int32


@dataclass(frozen=True, eq=False)
class Shared:
    """A global for each row, and the statistics that follow from it."""

    group: np.ndarray  # (n_rows,) int32
    labels: np.ndarray  # (n_rows,) int32
    cell_rows: np.ndarray  # (n_groups, n_globals) rows of each group at each global
    summary: Sums  # the globals' weights and sums relative to the origin

    @property
    def n_globals(self) -> int:
        return self.cell_rows.shape[1]

    @property
    def used(self) -> np.ndarray:
        return self.cell_rows > 0

    @cached_property
    def means(self) -> np.ndarray:
        """The globals' means, relative to the origin."""
        return self.summary.total / self.summary.weight[:, None]

    @cached_property
    def cells(self) -> Cells:
        return Cells(*find_cells(self.group, self.labels, self.cell_rows))


def unless_tried(move: Callable) -> Callable:
    """Skip a move that has already failed to improve the current clustering."""

    @wraps(move)
    def try_it(self, *arguments):
        if self.tried.get((move, arguments)) is self.state:
            return 0
        found = move(self, *arguments)
        if not found:
            self.tried[move, arguments] = self.state
        return found

    return try_it


class SharedClusters:
    """The clusters that several data sets share. Rows of a group are contiguous."""

    is_large = False

    def __init__(
        self,
        rows: GroupedRows,
        starts: np.ndarray,
        labels: np.ndarray,
        local_penalty: float,
        global_penalty: float,
        *,
        over_split: bool = True,
    ):
        self.rows, self.starts = rows, starts
        self.n_groups = len(starts) - 1
        self.group = np.repeat(np.arange(self.n_groups, dtype=np.int32), np.diff(starts))
        self.local_penalty, self.global_penalty = local_penalty, global_penalty
        self.over_split = over_split
        self.rounding = SCHEDULE.rounding * rows.total_cost
        self.n_passes = 0
        self.tried: dict[tuple, Shared] = {}
        self.priced: tuple[Shared | None, float] = None, np.inf
        self.adopt(labels.astype(np.int32, copy=False), int(labels.max()) + 1)

    @property
    def n_clusters(self) -> int:
        return self.state.n_globals

    @property
    def objective(self) -> float:
        if self.priced[0] is not self.state:  # cached until the state changes
            cost = self.rows.objective(self.state.summary, self.global_penalty)
            cost += self.local_penalty * np.count_nonzero(self.state.cell_rows)
            self.priced = self.state, cost
        return self.priced[1]

    def adopt(self, labels: np.ndarray, n_globals: int) -> None:
        """Set the global of each row; globals without rows are removed."""
        cell_rows = np.zeros((self.n_groups, n_globals), dtype=np.int64)
        place = np.empty(n_globals, dtype=np.int32)
        n_used = count_cells(self.group, labels, cell_rows, place)
        if n_used < n_globals:
            labels, cell_rows = place[labels], cell_rows.compress(place >= 0, axis=1)
        summary = self.rows.sums(labels, n_used)
        self.state = Shared(self.group, labels, cell_rows, summary)

    @unless_tried
    def reassign(self, share: float = 1.0) -> bool:
        """Choose each group's globals, move centers to their means; return if a label changed.

        A group pays this share of the local penalty for a global.
        """
        self.n_passes += 1
        state = self.state
        chosen = Chosen(state.used, np.empty_like(state.labels))
        unpaid, price = np.zeros_like(chosen.used), share * self.local_penalty
        choose(self.rows, self.starts, state.means, unpaid, price, chosen)
        changed = (chosen.labels != state.labels).any()
        if changed:
            self.adopt(chosen.labels, state.n_globals)
        return bool(changed)

    @unless_tried
    def merge(self) -> int:
        """Merge pairs of globals, largest gain first, while that helps; return how many."""
        state = self.state
        place = np.empty(state.n_globals, dtype=np.int32)
        n_left = merge_globals(
            state.summary.weight.copy(), state.means.copy(), state.used, self.local_penalty,
            self.global_penalty, self.rounding, place,
        )  # fmt: skip
        if n_left < state.n_globals:
            self.adopt(place[state.labels], n_left)
        return state.n_globals - n_left

    @unless_tried
    def split(self, share: float = 1.0) -> int:
        """Split globals that gain more than this share of the added penalties; return how many."""
        state, rows = self.state, self.rows
        price = share * self.global_penalty
        halves = rows.halve(state.labels, price)
        if not (halves.gain > price).any():
            return 0
        cells = state.cells
        side = 2 * cells.of_row + halves.side
        weight, total = rows.sums(side, 2 * len(cells.group))
        goes = np.empty(2 * len(cells.group), dtype=np.int32)
        n_new = split_cells(
            weight, total, cells.cluster, halves.cluster, halves.gain, *halves.near, *halves.far,
            share * self.local_penalty, price, self.rounding, goes,
        )  # fmt: skip
        if n_new:
            self.adopt(goes[side], state.n_globals + n_new)
        return n_new

    @unless_tried
    def move_locals(self) -> int:
        """Move whole local clusters to other globals or new ones; return how many."""
        cells = self.state.cells
        return self._move(cells.of_row, cells.group, cells.cluster)

    @unless_tried
    def move_halves(self) -> int:
        """Cut local clusters in two and move one half, or both; return how many."""
        cells = self.state.cells
        cell = cells.of_row
        halves = self.rows.halve(cell, self.local_penalty)
        cut = halves.cluster[np.isfinite(halves.gain)]
        if not len(cut):
            return 0
        # Second halves are separate items, numbered after all cells.
        far_item = np.full(len(cells.group), -1, dtype=np.int32)
        far_item[cut] = len(cells.group) + np.arange(len(cut))
        item = np.where(halves.side & (far_item[cell] >= 0), far_item[cell], cell)
        group, cluster = (np.append(part, part[cut]) for part in (cells.group, cells.cluster))
        return self._move(item, group, cluster)

    def _move(self, item: np.ndarray, group: np.ndarray, cluster: np.ndarray) -> int:
        """Move items (sets of rows that partition the table) where that lowers the objective."""
        weight, total = self.rows.sums(item, len(group))
        labels, width = cluster.copy(), self.state.n_globals + SHARED_SCHEDULE.opened
        cell_items = np.zeros((self.n_groups, width), dtype=np.int64)
        count_cells(group, labels, cell_items, np.empty(width, dtype=np.int32))
        moved = self._move_items(weight, total / weight[:, None], group, labels, cell_items)
        if moved:
            self.adopt(labels[item], width)
        return moved

    @unless_tried
    def move_rows(self) -> int:
        """Move single rows to other globals or new ones; return how many."""
        state, centers = self.state, self.state.means
        moves = np.empty(self.rows.n_rows, dtype=bool)
        step = max(1, TILES.tile_values // state.n_globals)

        def look(start, stop):
            part = slice(start, stop)
            find_movers(
                self.rows.distances(start, stop, centers), self.group[part], state.labels[part],
                state.summary.weight, state.cell_rows, self.local_penalty, self.global_penalty,
                self.rounding, moves[part],
            )  # fmt: skip

        n_rows = self.rows.n_rows
        self.rows.each(look, [(at, min(at + step, n_rows)) for at in range(0, n_rows, step)])
        ids = np.flatnonzero(moves)
        if not len(ids):
            return 0
        labels = state.labels[ids]
        cell_rows = np.zeros(
            (self.n_groups, state.n_globals + SHARED_SCHEDULE.opened), dtype=np.int64
        )
        cell_rows[:, : state.n_globals] = state.cell_rows
        values = self.rows.seen_at(ids)
        moved = self._move_items(np.ones(len(ids)), values, self.group[ids], labels, cell_rows)
        if moved:
            everyone = state.labels.copy()
            everyone[ids] = labels
            self.adopt(everyone, cell_rows.shape[1])
        return moved

    def _move_items(self, item_weight, item_mean, group, labels, cell_items) -> int:
        g, width = self.state.n_globals, cell_items.shape[1]
        weight, mean = np.zeros(width), np.zeros((width, self.rows.n_features))
        weight[:g], mean[:g] = self.state.summary.weight, self.state.means
        return move_items(
            item_weight, item_mean, group, self.local_penalty, self.global_penalty, self.rounding,
            labels, cell_items, cell_items.sum(axis=0), weight, mean,
        )  # fmt: skip

    def moves(self) -> tuple[Callable[[], int], ...]:
        return (self.move_halves,)

    def over_splits(self) -> list[OverSplit]:
        if not self.over_split:
            return []
        g = self.n_clusters
        many = int(SHARED_SCHEDULE.many_factor * g) + 1
        return [
            OverSplit(SHARED_SCHEDULE.over_split_share, g + 1),
            OverSplit(SHARED_SCHEDULE.many_share, many),
        ]

    def save(self) -> Shared:
        return self.state

    def accept(self, saved: Shared) -> None:
        """Do nothing: a saved state takes no part in the search."""

    def restore(self, saved: Shared) -> None:
        self.state = saved


class SharedSearch(LocalSearch):
    """Local search in which rounds move local clusters and rows, which are cheap here.

    The common schedule, which moves them only where passes and merges gain little, ends higher
    where clusters overlap and groups are small.
    """

    state: SharedClusters

    def start(self) -> None:
        """Split globals until no split lowers the objective."""
        self.state.reassign()
        self.note()
        while self.has_passes and self.state.split():
            self.state.reassign()
            self.note()

    def improve(self, little: float) -> bool:
        """Do one round; return whether no move gains more than ``little``."""
        state, before = self.state, self.history[-1]
        little = little or state.rounding
        state.merge()
        state.move_locals()
        state.reassign()
        state.move_rows()
        self.note()
        if before - self.history[-1] > little:
            return False
        return not self.escape() or before - self.history[-1] <= little

    def repair(self, before: float) -> None:
        """Merge and reassign, as long as the objective may end below ``before``."""
        self.state.merge()
        now = self.state.objective
        for _ in range(SHARED_SCHEDULE.repair_passes):
            last = now
            if not self.state.reassign():
                break
            now = self.state.objective
            if now - before > last - now:  # gains shrink: it will not get below
                break
        self.state.merge()


def refine(
    rows: GroupedRows,
    starts: np.ndarray,
    labels: np.ndarray,
    local_penalty: float,
    global_penalty: float,
    *,
    tol: float,
    max_iter: int,
    over_split: bool = True,
    on_pass: OnPass = ignore_pass,
) -> SharedClustering:
    """Run the local search until no move lowers the objective by more than a share ``tol`` of it.

    Parameters
    ----------
    rows : GroupedRows
        Rows of a group are contiguous.
    starts : ndarray of int (n_groups + 1,)
        Where each group starts, and the number of rows.
    labels : ndarray of int (n_rows,)
        The initial global of each row.
    local_penalty, global_penalty : float
        The penalties of a local and of a global cluster.
    tol, max_iter : float, int
        Stop when a round gains less than this share of the objective, or after ``max_iter`` passes.
    over_split : bool
        Whether to use over-split and repair.
    on_pass : callable
        Called with the objective and the number of globals after each pass.
    """
    clusters = SharedClusters(
        rows, starts, labels, local_penalty, global_penalty, over_split=over_split
    )
    search = SharedSearch(clusters, tol=tol, max_iter=max_iter, on_pass=on_pass)
    search.start()
    search.run()
    group, cluster, local = clusters.state.cells
    return SharedClustering(
        local, group, cluster, clusters.state.means + rows.origin, search.history[-1],
        search.history, clusters.n_passes, search.converged,
    )  # fmt: skip
