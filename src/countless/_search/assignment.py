"""The assignment of rows to nearest centers, updated while centers move, open and close.

`Nearest` is the assignment state: labels, cluster sums and, for divergences that are squared
metrics, two triangle-inequality bounds per row (Hamerly) that exclude most rows from comparison.
The labels equal those of comparing every row with every center, on every backend.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from countless._data import Rows, Summary
from countless._data.inplace import give_back, growing, inherit, keep, reorder, resize
from countless._search.center_neighbors import Lists, list_neighbours
from countless._search.products import Products
from countless._search.seeding import find_openers
from countless._search.steps import (
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

# Local passes before neighbour lists are rebuilt: they become stale as centers move.
PASSES_A_LIST = 4


class Nearest:
    """Labels and bounds of all rows against one set of centers.

    Attributes
    ----------
    state
        Per-row arrays in the backend: labels and bounds.
    centers : ndarray of float64 (n_clusters, n_features)
        During local passes on a float32 table they are coarse: float32, relative to the frame's
        origin.
    summary : Summary
        Weights and sums of the clusters, in fixed point.
    n_changed : int
        Rows whose label the last pass changed.
    n_computed, n_possible : int
        Divergences computed so far, and those of a brute-force comparison of all pairs.
    """

    def __init__(self, rows: Rows, centers: np.ndarray | None = None):
        give_back()  # memory that the survey of the table used
        self.rows = rows
        self.state = rows.hold(FIELDS)
        first = rows.frame.means(rows.whole) if centers is None else centers
        self.centers = growing(first.shape, np.float64)
        self.centers[:] = first
        # Every row starts in cluster 0.
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
        """The label of each row, as the same kind of array as the table."""
        return self.rows.held(self.state, "labels")

    @property
    def n_clusters(self) -> int:
        return len(self.centers)

    def assign(self) -> None:
        """Find each row's nearest center."""
        self._lists = None
        self._find(np.zeros(self.n_clusters), np.inf, local=False)

    def settle(self, penalty: float = np.inf, *, local: bool = False) -> int:
        """Do a Lloyd iteration: move centers to the means, assign rows to the nearest.

        With ``local`` rows are compared only with the neighbours of their own center. Returns how
        many rows have a weighted divergence from the nearest center above the penalty; these are
        marked.
        """
        frame = self.rows.frame
        local = local and frame.divergence.is_metric
        # Local passes reuse the neighbour lists for a while if the clusters are the same.
        if not (local and self._bounded is not None and self._list_passes < PASSES_A_LIST):
            self._lists = None
        if not local and self._bounded is not None:  # bounds become invalid: free the memory
            self._bounded = self._bounded[:, :0].copy()
        give_back()
        coarse = local and frame.is_single
        if coarse == self._coarse:
            drift = self._to_means(np.arange(self.n_clusters))
        else:
            drift = np.full(self.n_clusters, np.inf)
            del self.centers  # free its memory before allocating
            shape = self.summary.total.shape
            self.centers = growing(shape, np.float32 if coarse else np.float64)
            frame.means(self.summary, coarse=coarse, out=self.centers)
        return self._find(drift, penalty, local=local)

    def settle_for_good(self) -> None:
        """Do the final exact assignment: centers to the means, rows to the nearest, no empty ones.

        After local passes, which are for very many clusters, the sums are freed first and
        recomputed afterwards: together with centers and bounds they would set the peak memory.
        """
        if self._bounded is None:
            self.settle()
            self.drop_empty()
            return
        shape, frame = self.summary.total.shape, self.rows.frame
        self.forget_all_but_labels()
        del self.centers  # free its memory before allocating
        self.centers = frame.means(self.summary, out=growing(shape, np.float64))
        self.summary.resize(0)
        self._forget_moves()
        self.rows.extend(self.state, BOUNDS)
        self._find(np.zeros(len(self.centers)), np.inf, local=False, sums=False)
        self.forget_all_but_labels()
        self._add_up(len(self.centers))
        self.drop_empty()

    def _find(self, drift: np.ndarray, penalty: float, *, local: bool, sums: bool = True) -> int:
        """Find each row's nearest center; ``drift`` is how far each has just moved."""
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
        """Open clusters at marked rows, in the given order, as a serial loop would.

        A row is compared only with clusters opened by rows before it in that order, so a later one
        may be nearer until the next pass.
        """
        rows, frame = self.rows, self.rows.frame
        openers, points = find_openers(rows, self.state, order, seed, penalty)
        first, n_opened = self.n_clusters, len(openers.row)
        resize(self.centers, first + n_opened)
        self.centers[first:] = points
        del points  # free its memory before allocating
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
        """Remove clusters of zero weight; reassign their rows of zero weight."""
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
        """Relabel rows after a split, merge or move; the summary is already that of the result.

        Cluster ``c`` descends from the old cluster ``ancestor[c]``. If the number of clusters
        grows, old ones keep their numbers; if it shrinks, they keep their order.

        A row of an unchanged cluster keeps its bounds: the movement of every other center is
        measured from its ancestor. Other rows lose theirs, since another part of their old cluster
        may be close.
        """
        give_back()
        step = self._to_means(ancestor)
        self._follow(ancestor)
        self._moved += step
        self.rows.run(adopt_block, self.state, (change, step > 0), data=False)

    def start_from(self, labels: Any) -> None:
        """Set the labels of the rows, and build the clusters from them."""
        self.rows.put(self.state, "labels", labels)
        self._restart(int(max(self.rows.run(largest_label, self.state, data=False))) + 1)

    @property
    def local_lists(self) -> Lists | None:
        """The neighbour lists of the current centers, if a local pass has made them."""
        return None if self._bounded is None else self._lists

    def forget_lists(self) -> None:
        """Discard the neighbour lists; the next pass rebuilds them."""
        self._lists = None
        give_back()

    def keep(self, ancestor: np.ndarray) -> None:
        """Save the labels before a split: cluster ``c`` descends from ``ancestor[c]``."""
        kind = np.min_scalar_type(ancestor.max())
        self.rows.extend(self.state, {KEPT: (kind, 0)})
        self.rows.run(keep_block, self.state, ancestor.astype(kind), data=False)

    def take_back(self, n_clusters: int) -> None:
        """Restore the saved labels, of ``n_clusters`` clusters."""
        self.rows.run(take_back_block, self.state, None, data=False)
        self.forget_kept()
        self._restart(n_clusters)

    def forget_kept(self) -> None:
        """Free the saved labels."""
        self.rows.release(self.state, [KEPT])

    def forget_marks(self) -> None:
        """Free the marks of rows."""
        self.rows.release(self.state, MARKS)

    def forget_all_but_labels(self) -> None:
        """Free all per-row arrays but the labels, and the neighbour lists."""
        self.rows.release(self.state, [*MARKS, *BOUNDS])
        self._lists = self._bounded = None
        give_back()

    def number_by_appearance(self) -> None:
        """Number clusters by their first row of positive weight."""
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
        """Build the clusters from the labels and reset all bounds."""
        self.rows.run(forget_bounds, self.state, None, data=False)
        self._add_up(n_clusters)
        resize(self.centers, n_clusters)
        self._to_means(np.arange(n_clusters))
        self._lists = None
        self._forget_moves()

    def _add_up(self, n_clusters: int) -> None:
        """Compute the clusters' weights and sums from the labels."""
        self.summary.resize(n_clusters)
        self.summary.clear()
        self.rows.run(add_block, self.state, self.rows.frame, into=self.summary)

    def _forget_moves(self) -> None:
        """Declare that bounds are valid for the current centers, and cover all of them."""
        self._moved = np.zeros(self.n_clusters)  # distance moved since bounds were computed
        # The center at that time from which each descends, and those that lower bounds cover.
        self._parent = np.arange(self.n_clusters, dtype=np.int32)
        self._bounded = None

    def _follow(self, ancestor: np.ndarray) -> None:
        """Renumber the bookkeeping of the bounds for centers that descend from ``ancestor``."""
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
        """Move centers to the means; return each one's distance from its ancestor, rounded up."""
        frame, before, k = self.rows.frame, self.n_clusters, len(ancestor)
        if k > before:
            resize(self.centers, k)
        step = np.empty(k)
        parts = frame.chunks(self.centers, k)
        # In an order in which no center is overwritten before its descendants have been measured.
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
