"""The assignment of rows to nearest centers, updated while centers move, open and close.

`Assignment` is the state: labels, cluster sums and, for divergences that are squared
metrics, two triangle-inequality bounds per row (Hamerly) that exclude most rows from comparison.
The labels equal those of comparing every row with every center, on every backend.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from countless._data import Backend, Block, FixedPoint
from countless._search.nearest_centers import (
    BOUNDS,
    FIELDS,
    MARKS,
    PRUNING,
    NeighborLists,
    Pass,
    Products,
    assign_block,
    compare,
    list_neighbors,
)
from countless._search.seeding import find_opening_rows
from countless.kernels.assign import DECIDED, UNDECIDED, count_before
from countless.kernels.statistics import add_rows, first_rows, move_rows

SAVED = "kept"  # labels saved before an over-split, to undo it


class Relabelling(NamedTuple):
    """New labels, by old label and mark, or for single rows."""

    near: np.ndarray  # (n_old_clusters,) for rows that are not marked
    far: np.ndarray | None = None  # (n_old_clusters,) for marked rows
    rows: np.ndarray | None = None  # indices, ascending, of rows that are relabelled one by one
    labels: np.ndarray | None = None


class Places(NamedTuple):
    """The first row of each cluster."""

    first: np.ndarray  # (n_clusters,)

    @classmethod
    def zeros(cls, n_clusters: int) -> Places:
        return cls(np.full(n_clusters, np.iinfo(np.int64).max))

    def zeros_factory(self) -> Callable[[], Places]:
        return partial(Places.zeros, len(self.first))

    def add(self, other: Places) -> None:
        np.minimum(self.first, other.first, out=self.first)

    @property
    def n_bytes(self) -> int:
        return self.first.nbytes


class Assignment:
    """Labels and bounds of all rows against one set of centers.

    Attributes
    ----------
    state
        Per-row arrays in the backend: labels and bounds.
    centers : ndarray of float64 (n_clusters, n_features)
    summary : Summary
        Weights and sums of the clusters, in fixed point.
    n_changed : int
        Rows whose label the last pass changed.
    n_computed, n_possible : int
        Divergences computed so far, and those of a brute-force comparison of all pairs.
    """

    def __init__(self, rows: Backend, centers: np.ndarray | None = None):
        self.rows = rows
        self.state = rows.allocate(FIELDS)
        self.centers = rows.fixed_point.means(rows.whole) if centers is None else np.array(centers)
        # Every row starts in cluster 0.
        self.summary = rows.whole.with_empty(len(self.centers) - 1)
        self.n_computed = self.n_possible = 0
        self.n_changed = rows.n_rows
        self._lists: NeighborLists | None = None
        self._list_passes = 0  # made with these lists
        self._bounded: np.ndarray | None = None
        self._forget_moves()

    @property
    def labels(self) -> Any:
        """The label of each row, as the same kind of array as the table."""
        return self.rows.get(self.state, "labels")

    @property
    def n_clusters(self) -> int:
        return len(self.centers)

    def assign(self) -> None:
        """Find each row's nearest center."""
        self._lists = None
        self._find(np.zeros(self.n_clusters), np.inf, local=False)

    def lloyd_step(self, penalty: float = np.inf, *, local: bool = False) -> int:
        """Do a Lloyd iteration: move centers to the means, assign rows to the nearest.

        With ``local`` rows are compared only with the neighbours of their own center. Returns how
        many rows have a weighted divergence from the nearest center above the penalty; these are
        marked.
        """
        fixed_point = self.rows.fixed_point
        local = local and fixed_point.divergence.is_metric
        # Local passes reuse the neighbour lists for a while if the clusters are the same.
        if not (local and self._bounded is not None and self._list_passes < PRUNING.passes_a_list):
            self._lists = None
        return self._find(self._to_means(np.arange(self.n_clusters)), penalty, local=local)

    def _find(self, drift: np.ndarray, penalty: float, *, local: bool) -> int:
        """Find each row's nearest center; ``drift`` is how far each has just moved."""
        rows, fixed_point = self.rows, self.rows.fixed_point
        if self._lists is None:
            self._lists = list_neighbors(
                rows, self.centers, local=local, bounded=self._bounded, parent=self._parent
            )
            self._list_passes = 0
        lists, drift = self._lists, drift + self._moved
        others = lists.farthest(drift) if local else _largest_of_others(drift)
        if self._list_passes:
            np.add(lists.slip, drift + others, out=lists.slip)
        self._list_passes += 1
        forget = self._bounded is not None and not local
        products = None if local else Products(fixed_point, self.centers)
        if np.isfinite(penalty):
            rows.allocate_more(self.state, MARKS)
        message = Pass(
            fixed_point, fixed_point.centers(self.centers), products, drift, others, lists, local,
            forget, penalty,
        )  # fmt: skip
        answers = rows.run(assign_block, self.state, message, into=self.summary)
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
        rows, fixed_point = self.rows, self.rows.fixed_point
        openers, points = find_opening_rows(rows, self.state, order, seed, penalty)
        first, n_opened = self.n_clusters, len(openers.row)
        self.centers = np.vstack([self.centers, points])
        self.summary = self.summary.with_empty(n_opened)
        products = Products(fixed_point, points)
        message = (
            fixed_point,
            fixed_point.centers(self.centers),
            products,
            first,
            openers,
            order,
            seed,
        )
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
            self.centers, self.summary = self.centers[used], self.summary.take(used)
            self._follow(np.flatnonzero(used))
            fixed_point = self.rows.fixed_point
            if fixed_point.n_counted < self.rows.n_rows:
                message = fixed_point.centers(self.centers), Products(fixed_point, self.centers)
                self.rows.run(assign_unlabelled_block, self.state, message)

    def relabel(self, change: Relabelling, ancestor: np.ndarray) -> None:
        """Relabel rows after a split, merge or move; the summary is already that of the result.

        Cluster ``c`` descends from the old cluster ``ancestor[c]``. If the number of clusters
        grows, old ones keep their numbers; if it shrinks, they keep their order.

        A row of an unchanged cluster keeps its bounds: the movement of every other center is
        measured from its ancestor. Other rows lose theirs, since another part of their old cluster
        may be close.
        """
        step = self._to_means(ancestor)
        self._follow(ancestor)
        self._moved += step
        self.rows.run(relabel_rows_block, self.state, (change, step > 0), data=False)

    def set_labels(self, labels: Any) -> None:
        """Set the labels of the rows, and build the clusters from them."""
        self.rows.put(self.state, "labels", labels)
        self._restart(int(max(self.rows.run(largest_label, self.state, data=False))) + 1)

    @property
    def local_lists(self) -> NeighborLists | None:
        """The neighbour lists of the current centers, if a local pass has made them."""
        return None if self._bounded is None else self._lists

    def forget_lists(self) -> None:
        """Discard the neighbour lists; the next pass rebuilds them."""
        self._lists = None

    def save_labels(self, ancestor: np.ndarray) -> None:
        """Save the labels before a split: cluster ``c`` descends from ``ancestor[c]``."""
        self.rows.allocate_more(self.state, {SAVED: (np.int32, 0)})
        self.rows.run(save_labels_block, self.state, ancestor, data=False)

    def restore_labels(self, n_clusters: int) -> None:
        """Restore the saved labels, of ``n_clusters`` clusters."""
        self.rows.run(restore_labels_block, self.state, None, data=False)
        self.forget_saved_labels()
        self._restart(n_clusters)

    def forget_saved_labels(self) -> None:
        """Free the saved labels."""
        self.rows.free(self.state, [SAVED])

    def forget_marks(self) -> None:
        """Free the marks of rows."""
        self.rows.free(self.state, MARKS)

    def forget_all_but_labels(self) -> None:
        """Free all per-row arrays but the labels, and the neighbour lists."""
        self.rows.free(self.state, [*MARKS, *BOUNDS])
        self._lists = self._bounded = None

    def number_by_appearance(self) -> None:
        """Number clusters by their first row of positive weight."""
        k = self.n_clusters
        places = Places.zeros(k)
        self.rows.run(first_rows_block, self.state, None, into=places)
        order = np.argsort(places.first, kind="stable")
        number = np.empty(k, dtype=np.int32)
        number[order] = np.arange(k)
        self.rows.run(relabel_block, self.state, number, data=False)
        self.centers, self.summary = self.centers[order], self.summary.take(order)
        self._follow(order)

    def _restart(self, n_clusters: int) -> None:
        """Build the clusters from the labels and reset all bounds."""
        self.rows.run(forget_bounds, self.state, None, data=False)
        self.summary = self.rows.fixed_point.empty(n_clusters)
        self.rows.run(add_block, self.state, self.rows.fixed_point, into=self.summary)
        self.centers = self.rows.fixed_point.means(self.summary)
        self._lists = None
        self._forget_moves()

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
            self._bounded = place[self._bounded[ancestor]]
        self._lists = None

    def _to_means(self, ancestor: np.ndarray) -> np.ndarray:
        """Move centers to the means; return each one's distance from its ancestor, rounded up."""
        before = self.centers[ancestor]
        self.centers = self.rows.fixed_point.means(self.summary)
        return np.linalg.norm(self.centers - before, axis=1) * (1 + 1e-12)


def _largest_of_others(values: np.ndarray) -> np.ndarray:
    """Return for each position the largest value at any other."""
    if len(values) == 1:
        return np.zeros(1)
    second, largest = np.partition(values, -2)[-2:]
    others = np.full(len(values), largest)
    others[np.argmax(values)] = second
    return others


def open_block(block: Block, state, message, borrow) -> int:
    """Compare each row with the clusters opened before its turn; count the rows that join one."""
    fixed_point, form, products, first, openers, order, seed = message
    key = openers.key_of(block, state, np.arange(block.n_rows), order, seed)
    limit = np.empty(block.n_rows, dtype=np.int32)
    count_before(key, block.start, openers.key, openers.row, limit)
    before = state["labels"].copy()
    status = np.full(block.n_rows, UNDECIDED, dtype=np.uint8)
    compare(block, state, status, form, products, np.inf, first, limit)
    with borrow() as sums:
        return move_rows(
            block.form, block.weight, before, state["labels"], fixed_point.scale, *sums
        )


def add_block(block: Block, state, fixed_point: FixedPoint, borrow) -> None:
    """Add up the rows of a block by their labels."""
    with borrow() as sums:
        add_rows(block.form, block.weight, state["labels"], fixed_point.scale, *sums)


def relabel_block(block: Block, state, number: np.ndarray) -> None:
    """Renumber clusters; -1 leaves rows without a cluster."""
    state["labels"][:] = number[state["labels"]]


def assign_unlabelled_block(block: Block, state, message) -> None:
    """Assign rows without a cluster, which have zero weight, to the nearest center."""
    form, products = message
    status = np.where(state["labels"] < 0, np.uint8(UNDECIDED), np.uint8(DECIDED))
    compare(block, state, status, form, products, np.inf)


def relabel_rows_block(block: Block, state, message) -> None:
    """Relabel rows after a split, merge or move; reset the bounds that are no longer valid."""
    change, changed = message
    old = state["labels"]
    labels = change.near[old]
    if change.far is not None:
        np.copyto(labels, change.far[old], where=state["marked"] > 0)
    if change.rows is not None:
        first, last = np.searchsorted(change.rows, [block.start, block.start + len(old)])
        labels[change.rows[first:last] - block.start] = change.labels[first:last]
    old[:] = labels
    moved = changed[labels]
    state["upper"][moved] = np.inf
    state["lower"][moved] = 0.0


def save_labels_block(block: Block, state, ancestor: np.ndarray) -> None:
    state[SAVED][:] = ancestor[state["labels"]]


def restore_labels_block(block: Block, state, message) -> None:
    state["labels"][:] = state[SAVED]


def forget_bounds(block: Block, state, message) -> None:
    state["upper"][:] = np.inf
    state["lower"][:] = 0.0


def largest_label(block: Block, state, message) -> int:
    return int(state["labels"].max())


def first_rows_block(block: Block, state, message, borrow) -> None:
    """Find the first row of each cluster."""
    with borrow() as places:
        first_rows(state["labels"], block.weight, block.start, *places)
