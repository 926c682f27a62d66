"""Keeping every row with its nearest center while centers move, open and close.

`Nearest` holds the labels, what the clusters hold and, for divergences that are squared metrics,
two bounds a row that say which rows can have changed. The labels are those of comparing every row
with every center, wherever the rows live.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from countless.hard.neighbours import Lists, list_neighbours
from countless.hard.opening import find_openers
from countless.hard.products import Products
from countless.kernels.assign import (
    SETTLED,
    UNSETTLED,
    compare_rows,
    count_before,
    filter_rows,
    pick_nearest,
)
from countless.kernels.statistics import add_rows, first_rows, move_rows
from countless.rows import Block, Frame, Rows, Summary
from countless.rows.block import cut
from countless.rows.inplace import (
    FEW_ROWS,
    chunks,
    give_back,
    growing,
    inherit,
    keep,
    reorder,
    resize,
)

# What is held for each row: at first all are in one cluster, and nothing is known.
BOUNDS = {"upper": (np.float32, np.inf), "lower": (np.float32, 0.0)}
FIELDS = {"labels": (np.int32, 0), **BOUNDS}
# Marks of rows, for a while: verdicts on them, or 1 on the far side of a split.
MARKS = {"marked": (np.uint8, SETTLED)}
NO_LIMIT = np.empty(0, dtype=np.int32)
KEPT = "kept"  # the labels of before a venture
# Passes for which a local search goes on with its lists: centers move away from them.
PASSES_A_LIST = 4
# The fewer dimensions, the cheaper it is to measure a center rather than to let bounds grow old.
CHEAP = 4.0


class Pass(NamedTuple):
    """What every block must know to find the nearest centers of its rows."""

    frame: Frame
    form: Any  # the centers as kernels see them
    products: Products | None  # None where all rows look around their own center only
    drift: np.ndarray  # (n_clusters,) how far each center moved
    others: np.ndarray  # (n_clusters,) the farthest that any other center moved
    lists: Lists
    local: bool
    forget: bool  # whether lower bounds hold no more
    penalty: float


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


class Places(NamedTuple):
    """Where clusters first show."""

    first: np.ndarray  # (n_clusters,)

    @classmethod
    def of_nothing(cls, n_clusters: int) -> Places:
        return cls(np.full(n_clusters, np.iinfo(np.int64).max))

    def maker(self) -> Callable[[], Places]:
        return partial(Places.of_nothing, len(self.first))

    def absorb(self, other: Places) -> None:
        np.minimum(self.first, other.first, out=self.first)

    @property
    def n_bytes(self) -> int:
        return self.first.nbytes


class Relabelling(NamedTuple):
    """New labels: by the old one, by the mark too, or for single rows."""

    near: np.ndarray  # (n_old_clusters,) for rows that are not marked
    far: np.ndarray | None = None  # (n_old_clusters,) for marked rows
    rows: np.ndarray | None = None  # places, ascending, of rows that get a label of their own
    labels: np.ndarray | None = None


def assign_block(block: Block, held, message: Pass, borrow) -> tuple[int, int, int]:
    """Give each row to the nearest center; count divergences, changes, and rows far from all."""
    before, computed, n_far = find_nearest(block, held, message)
    with borrow() as sums:
        n_changed = move_rows(
            block.form, block.weight, before, held["labels"], message.frame.scale, *sums
        )
    return computed, n_changed, n_far


def label_block(block: Block, held, message: Pass) -> tuple[int, int, int]:
    """The same, where nobody asks for the sums."""
    before, computed, n_far = find_nearest(block, held, message)
    return computed, int(np.count_nonzero(before != held["labels"])), n_far


def find_nearest(block: Block, held, message: Pass) -> tuple[np.ndarray, int, int]:
    """Return the labels of before, divergences computed, and how many rows are far from all."""
    frame, penalty = message.frame, message.penalty
    labels, upper, lower = held["labels"], held["upper"], held["lower"]
    before = narrowed(labels, len(message.drift))
    bounded = np.isfinite(penalty)
    verdict = held["marked"] if bounded else np.empty(block.n_rows, dtype=np.uint8)
    if message.forget:
        lower[:] = 0.0
    if frame.divergence.is_metric:
        computed = filter_rows(
            block.form, block.weight, message.form, message.drift, message.others, *message.lists,
            1 + CHEAP / frame.n_features, message.local, penalty, labels, upper, lower, verdict,
        )  # fmt: skip
    else:
        labels.fill(-1)
        verdict.fill(UNSETTLED)
        computed = block.n_rows * len(message.drift)
    if message.products is not None:
        compare(block, held, verdict, message.form, message.products, penalty)
    return before, computed, int(np.count_nonzero(verdict)) if bounded else 0


def compare(
    block: Block, held, verdict, form, products: Products, penalty, first=0, limit=NO_LIMIT
) -> None:
    """Compare unsettled rows with centers by products, tile by tile; find those that stay far."""
    bounds = penalty, held["labels"], held["upper"], held["lower"], verdict
    if products.product is not None:
        compare_rows(block.form, block.weight, form, products.product, first, limit, *bounds)
        return
    ids = np.flatnonzero(verdict == UNSETTLED)
    for part, (score, norm, error) in products.tiles(block, ids):
        pick_nearest(
            block.form, ids[part], block.weight, form, score, norm, error, products.unit**2,
            first, limit, *bounds,
        )  # fmt: skip


def open_block(block: Block, held, message, borrow) -> int:
    """Compare rows with the clusters opened before each; count those that join one."""
    frame, form, products, first, openers, order, seed = message
    n_changed = 0
    for few in chunks(held["labels"], values=FEW_ROWS):
        key = openers.key_of(block, held, np.arange(few.start, few.stop), order, seed)
        part = cut(block, few.start, few.stop)
        limit = np.empty(part.n_rows, dtype=np.int32)
        count_before(key, part.start, openers.key, openers.row, limit)
        mine = {name: values[few] for name, values in held.items()}
        before = narrowed(mine["labels"], first)
        verdict = np.full(part.n_rows, UNSETTLED, dtype=np.uint8)
        compare(part, mine, verdict, form, products, np.inf, first, limit)
        with borrow() as sums:
            n_changed += move_rows(
                part.form, part.weight, before, mine["labels"], frame.scale, *sums
            )
    return n_changed


def add_block(block: Block, held, frame: Frame, borrow) -> None:
    """Add up the rows of a block by their labels."""
    with borrow() as sums:
        add_rows(block.form, block.weight, held["labels"], frame.scale, *sums)


def relabel_block(block: Block, held, number: np.ndarray) -> None:
    """Give clusters other numbers; -1 leaves rows without a cluster."""
    for part in chunks(held["labels"], values=FEW_ROWS):
        held["labels"][part] = number[held["labels"][part]]


def rehome_block(block: Block, held, message) -> None:
    """Give rows without a cluster, which have no weight, to the nearest."""
    form, products = message
    verdict = np.where(held["labels"] < 0, np.uint8(UNSETTLED), np.uint8(SETTLED))
    compare(block, held, verdict, form, products, np.inf)


def adopt_block(block: Block, held, message) -> None:
    """Give rows their labels of after a split, merge or move, and say what bounds still hold."""
    change, changed = message
    for part in chunks(held["labels"], values=FEW_ROWS):
        old = held["labels"][part]
        labels = change.near[old]
        if change.far is not None:
            np.copyto(labels, change.far[old], where=held["marked"][part] > 0)
        if change.rows is not None:
            start = block.start + part.start
            first, last = np.searchsorted(change.rows, [start, start + len(old)])
            labels[change.rows[first:last] - start] = change.labels[first:last]
        old[:] = labels
        moved = changed[labels]
        held["upper"][part][moved] = np.inf
        held["lower"][part][moved] = 0.0


def narrowed(labels: np.ndarray, n_clusters: int) -> np.ndarray:
    """Return a copy of labels, in half the room unless clusters are very many."""
    return labels.astype(np.uint16 if n_clusters <= 2**16 else np.int32)


def keep_block(block: Block, held, message) -> None:
    for part in chunks(held["labels"], values=FEW_ROWS):
        held[KEPT][part] = message[held["labels"][part]]


def take_back_block(block: Block, held, message) -> None:
    held["labels"][:] = held[KEPT]


def forget_bounds(block: Block, held, message) -> None:
    held["upper"][:] = np.inf
    held["lower"][:] = 0.0


def largest_label(block: Block, held, message) -> int:
    return int(held["labels"].max())


def first_rows_block(block: Block, held, message, borrow) -> None:
    """Note the place where each cluster first shows."""
    with borrow() as places:
        first_rows(held["labels"], block.weight, block.start, *places)


def _largest_of_others(values: np.ndarray) -> np.ndarray:
    """Return for each position the largest value at any other."""
    if len(values) == 1:
        return np.zeros(1)
    second, largest = np.partition(values, -2)[-2:]
    others = np.full(len(values), largest)
    others[np.argmax(values)] = second
    return others
