"""Keeping every row with its nearest center while centers move, open and close.

`Nearest` holds the labels, what the clusters hold and, for divergences that are squared metrics,
two bounds a row that say which rows can have changed. The labels are those of comparing every row
with every center, wherever the rows live.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from countless.hard.blocks import (
    BOUNDS,
    FIELDS,
    KEPT,
    MARKS,
    Pass,
    Places,
    Relabelling,
    add_block,
    adopt_block,
    assign_block,
    first_rows_block,
    forget_bounds,
    keep_block,
    label_block,
    largest_label,
    open_block,
    rehome_block,
    relabel_block,
    take_back_block,
)
from countless.hard.neighbours import Lists, list_neighbours
from countless.hard.opening import find_openers
from countless.hard.products import Products
from countless.rows import Rows, Summary
from countless.rows.inplace import give_back, growing, inherit, keep, reorder, resize

# Passes for which a local search goes on with its lists: centers move away from them.
PASSES_A_LIST = 4


class Nearest:
    """Labels and bounds of all rows against one set of centers.

    Attributes
    ----------
    state
        What the rows' home holds for each row: labels and bounds.
    centers : ndarray of float64 (n_clusters, n_features)
        While rows look only around their own, those of a float32 table are coarse: float32, as seen
        from the frame's origin.
    summary : Summary
        What the clusters hold.
    n_changed : int
        Rows whose label the last pass changed.
    n_computed, n_possible : int
        Divergences computed so far, and how many comparing all with all would have been.
    """

    def __init__(self, rows: Rows, centers: np.ndarray | None = None):
        give_back()  # what the first look at the table took
        self.rows = rows
        self.state = rows.hold(FIELDS)
        first = rows.frame.means(rows.whole) if centers is None else centers
        self.centers = growing(first.shape, np.float64)
        self.centers[:] = first
        # Every row has the first label.
        k = len(first)
        self.summary = Summary(np.zeros(k, dtype=np.int64), growing(first.shape, np.int64))
        self.summary.weight[0], self.summary.total[0] = rows.whole.weight[0], rows.whole.total[0]
        self.n_computed = self.n_possible = 0
        self.n_changed = rows.n_rows
        self._lists: Lists | None = None
        self._list_passes = 0  # made with these lists
        self._bounded: np.ndarray | None = None
        self._forget_moves()

    @property
    def labels(self) -> Any:
        """The label of each row, in the form that the table came in."""
        return self.rows.held(self.state, "labels")

    @property
    def n_clusters(self) -> int:
        return len(self.centers)

    def assign(self) -> None:
        """Find each row's nearest center."""
        self._lists = None
        self._find(np.zeros(self.n_clusters), np.inf, local=False)

    def settle(self, penalty: float = np.inf, *, local: bool = False) -> int:
        """Move the centers to the means of their clusters, and find each row's nearest.

        With ``local`` rows look among those near their own. Returns how many rows have a weighted
        divergence from the nearest that exceeds the penalty; these are marked.
        """
        frame = self.rows.frame
        local = local and frame.divergence.is_metric
        # A local search goes on with its lists for a while if the clusters stay the same.
        if not (local and self._bounded is not None and self._list_passes < PASSES_A_LIST):
            self._lists = None
        if not local and self._bounded is not None:  # then no bound will hold, and room is short
            self._bounded = self._bounded[:, :0].copy()
        give_back()
        coarse = local and frame.is_single
        if coarse == self._coarse:
            drift = self._to_means(np.arange(self.n_clusters))
        else:
            drift = np.full(self.n_clusters, np.inf)
            del self.centers  # first, to have its room
            shape = self.summary.total.shape
            self.centers = growing(shape, np.float32 if coarse else np.float64)
            frame.means(self.summary, coarse=coarse, out=self.centers)
        return self._find(drift, penalty, local=local)

    def settle_for_good(self) -> None:
        """Move the centers to the means, find each row's nearest, and forget empty clusters.

        After a local search, of very many clusters, the sums are made anew instead of being held
        meanwhile: with the centers and bounds they take more room than all else before.
        """
        if self._bounded is None:
            self.settle()
            self.drop_empty()
            return
        shape, frame = self.summary.total.shape, self.rows.frame
        self.forget_all_but_labels()
        del self.centers  # first, to have its room
        self.centers = frame.means(self.summary, out=growing(shape, np.float64))
        self.summary.resize(0)
        self._forget_moves()
        self.rows.extend(self.state, BOUNDS)
        self._find(np.zeros(len(self.centers)), np.inf, local=False, sums=False)
        self.forget_all_but_labels()
        self._add_up(len(self.centers))
        self.drop_empty()

    def _find(self, drift: np.ndarray, penalty: float, *, local: bool, sums: bool = True) -> int:
        """Find each row's nearest center; each has moved so far since bounds were made."""
        rows, frame = self.rows, self.rows.frame
        if self._lists is None:
            self._lists = list_neighbours(
                rows, self.centers, local=local, bounded=self._bounded, parent=self._parent
            )
            self._list_passes = 0
        lists, drift = self._lists, drift + self._moved
        others = lists.farthest(drift) if local else _largest_of_others(drift)
        if self._list_passes:
            np.add(lists.slip, drift + others, out=lists.slip)
        self._list_passes += 1
        forget = self._bounded is not None and not local
        products = None if local else Products(frame, self.centers)
        if np.isfinite(penalty):
            rows.extend(self.state, MARKS)
        message = Pass(
            frame, frame.centers(self.centers), products, drift, others, lists, local, forget,
            penalty,
        )  # fmt: skip
        if sums:
            answers = rows.run(assign_block, self.state, message, into=self.summary)
        else:
            answers = rows.run(label_block, self.state, message)
        computed, n_changed, n_far = (sum(part) for part in zip(*answers, strict=True))
        self.n_changed = n_changed
        self.n_computed += computed
        self.n_possible += rows.n_rows * self.n_clusters
        self._forget_moves()
        if local:
            lists.unmark()
            self._bounded = lists.neighbours
        return n_far

    def open(self, order: str, seed: int, penalty: float) -> None:
        """Let the marked rows open clusters in the order given, as a serial loop would.

        A row sees the clusters opened by rows before it only, so later ones may be nearer to it
        until the next pass.
        """
        rows, frame = self.rows, self.rows.frame
        openers, points = find_openers(rows, self.state, order, seed, penalty)
        first, n_opened = self.n_clusters, len(openers.row)
        resize(self.centers, first + n_opened)
        self.centers[first:] = points
        del points  # first, to have its room
        self.summary.resize(first + n_opened)
        products = Products(frame, self.centers[first:])
        message = (frame, frame.centers(self.centers), products, first, openers, order, seed)
        changed = rows.run(open_block, self.state, message, into=self.summary)
        self.n_changed += sum(changed)
        self.n_computed += rows.n_rows * n_opened
        self.n_possible += rows.n_rows * n_opened
        self._lists = None
        self._forget_moves()

    def drop_empty(self) -> None:
        """Forget clusters that no row with weight is in; rows without weight look for another."""
        used = self.summary.weight > 0
        if not used.all():
            number = np.where(used, np.cumsum(used, dtype=np.int32) - 1, -1).astype(np.int32)
            self.rows.run(relabel_block, self.state, number, data=False)
            keep(self.centers, used)
            self.summary.keep(used)
            self._follow(np.flatnonzero(used))
            frame = self.rows.frame
            if frame.n_counted < self.rows.n_rows:
                message = frame.centers(self.centers), Products(frame, self.centers)
                self.rows.run(rehome_block, self.state, message)

    def adopt(self, change: Relabelling, ancestor: np.ndarray) -> None:
        """Give rows to the clusters that the summary has now.

        Cluster ``c`` came out of the old cluster ``ancestor[c]``. Where there are more than before,
        old ones stay in their places; where there are fewer, in their order.

        A row of an unchanged cluster keeps its bounds: every other center is so far from its
        ancestor. Other rows may now have a part of their old cluster next to them, of which nothing
        is known.
        """
        give_back()
        step = self._to_means(ancestor)
        self._follow(ancestor)
        self._moved += step
        self.rows.run(adopt_block, self.state, (change, step > 0), data=False)

    def start_from(self, labels: Any) -> None:
        """Take labels for the rows, and make the clusters that they name."""
        self.rows.put(self.state, "labels", labels)
        self._restart(int(max(self.rows.run(largest_label, self.state, data=False))) + 1)

    @property
    def local_lists(self) -> Lists | None:
        """The centers around each, if a local search has listed those of now."""
        return None if self._bounded is None else self._lists

    def forget_lists(self) -> None:
        """Look for the centers around each center anew in the next pass."""
        self._lists = None
        give_back()

    def keep(self, ancestor: np.ndarray) -> None:
        """Remember the labels of before a split: cluster ``c`` came out of ``ancestor[c]``."""
        kind = np.min_scalar_type(ancestor.max())
        self.rows.extend(self.state, {KEPT: (kind, 0)})
        self.rows.run(keep_block, self.state, ancestor.astype(kind), data=False)

    def take_back(self, n_clusters: int) -> None:
        """Go back to the labels remembered, of so many clusters."""
        self.rows.run(take_back_block, self.state, None, data=False)
        self.forget_kept()
        self._restart(n_clusters)

    def forget_kept(self) -> None:
        """Forget the labels remembered."""
        self.rows.release(self.state, [KEPT])

    def forget_marks(self) -> None:
        """Forget which rows were marked."""
        self.rows.release(self.state, MARKS)

    def forget_all_but_labels(self) -> None:
        """Have the room of what only a search needs."""
        self.rows.release(self.state, [*MARKS, *BOUNDS])
        self._lists = self._bounded = None
        give_back()

    def number_by_appearance(self) -> None:
        """Number clusters in the order in which rows that have weight first show them."""
        k = self.n_clusters
        places = Places.of_nothing(k)
        self.rows.run(first_rows_block, self.state, None, into=places)
        order = np.argsort(places.first, kind="stable")
        number = np.empty(k, dtype=np.int32)
        number[order] = np.arange(k)
        self.rows.run(relabel_block, self.state, number, data=False)
        for part in (self.centers, *self.summary):
            reorder(part, order)
        self._follow(order)

    def _restart(self, n_clusters: int) -> None:
        """Make the clusters that labels name; no bound is known."""
        self.rows.run(forget_bounds, self.state, None, data=False)
        self._add_up(n_clusters)
        resize(self.centers, n_clusters)
        self._to_means(np.arange(n_clusters))
        self._lists = None
        self._forget_moves()

    def _add_up(self, n_clusters: int) -> None:
        """Sum up the clusters that labels name."""
        self.summary.resize(n_clusters)
        self.summary.clear()
        self.rows.run(add_block, self.state, self.rows.frame, into=self.summary)

    def _forget_moves(self) -> None:
        """Take the centers as they are for those that bounds speak of: all of them."""
        self._moved = np.zeros(self.n_clusters)  # since bounds were made
        # The center of then that each comes out of, and those that lower bounds speak of.
        self._parent = np.arange(self.n_clusters, dtype=np.int32)
        self._bounded = None

    def _follow(self, ancestor: np.ndarray) -> None:
        """Carry over what bounds speak of to centers that come out of others."""
        place = np.full(len(self._moved) + 1, -1, dtype=np.int32)  # -1 stays -1
        place[ancestor[::-1]] = np.arange(len(ancestor))[::-1]  # the first of several
        self._moved = self._moved[ancestor]
        self._parent = place[self._parent[ancestor]]
        if self._bounded is not None:
            inherit(self._bounded, ancestor)
            for part in self.rows.frame.chunks(self._bounded):
                self._bounded[part] = place[self._bounded[part]]
        self._lists = None

    @property
    def _coarse(self) -> bool:
        return self.centers.dtype == np.float32

    def _to_means(self, ancestor: np.ndarray) -> np.ndarray:
        """Move centers to the means; return how far each then is from an old one, rounded up."""
        frame, before, k = self.rows.frame, self.n_clusters, len(ancestor)
        if k > before:
            resize(self.centers, k)
        step = np.empty(k)
        parts = frame.chunks(self.centers, k)
        # No center moves before those that come out of it have been measured.
        for part in parts if k <= before else reversed(parts):
            mean = frame.means(self.summary.take(part), coarse=self._coarse)
            way = np.subtract(mean, self.centers[ancestor[part]], dtype=np.float64)
            step[part] = np.linalg.norm(way, axis=1) * (1 + 1e-12)
            self.centers[part] = mean
        resize(self.centers, k)
        return step


def _largest_of_others(values: np.ndarray) -> np.ndarray:
    """Return for each position the largest value at any other."""
    if len(values) == 1:
        return np.zeros(1)
    second, largest = np.partition(values, -2)[-2:]
    others = np.full(len(values), largest)
    others[np.argmax(values)] = second
    return others
