"""Steps on one block of rows, on any backend: nearest centers, relabelling, cluster sums.

`Nearest` runs these on all blocks. ``held`` is the per-row state of a block, see `FIELDS`;
``borrow`` is a context manager that gives a step the sums it adds to.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from countless._data import Block, Frame
from countless._data.block import cut
from countless._data.inplace import FEW_ROWS, chunks
from countless._search.center_neighbors import Lists
from countless._search.products import Products
from countless.kernels.assign import (
    SETTLED,
    UNSETTLED,
    compare_rows,
    count_before,
    filter_rows,
    pick_nearest,
)
from countless.kernels.statistics import add_rows, first_rows, move_rows

# Per-row state: all rows start in cluster 0, with bounds that exclude nothing.
BOUNDS = {"upper": (np.float32, np.inf), "lower": (np.float32, 0.0)}
FIELDS = {"labels": (np.int32, 0), **BOUNDS}
# Temporary marks of rows: the outcome of the assignment, or 1 for the second half of a split.
MARKS = {"marked": (np.uint8, SETTLED)}
NO_LIMIT = np.empty(0, dtype=np.int32)
KEPT = "kept"  # labels saved before an over-split, to undo it
# In few dimensions computing a distance costs less than letting the bounds become loose.
CHEAP = 4.0


class Pass(NamedTuple):
    """Arguments of an assignment pass, the same for all blocks."""

    frame: Frame
    form: Any  # the centers in the form used by kernels
    products: Products | None  # None in a local pass, which compares with listed centers only
    drift: np.ndarray  # (n_clusters,) distance that each center moved
    others: np.ndarray  # (n_clusters,) largest distance that any other center moved
    lists: Lists
    local: bool
    forget: bool  # whether lower bounds are invalid and must be reset
    penalty: float


class Places(NamedTuple):
    """The first row of each cluster."""

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
    """New labels, by old label and mark, or for single rows."""

    near: np.ndarray  # (n_old_clusters,) for rows that are not marked
    far: np.ndarray | None = None  # (n_old_clusters,) for marked rows
    rows: np.ndarray | None = None  # indices, ascending, of rows that are relabelled one by one
    labels: np.ndarray | None = None


def assign_block(block: Block, held, message: Pass, borrow) -> tuple[int, int, int]:
    """Assign each row to its nearest center and update the sums.

    Returns the number of divergences computed, of labels changed, and of rows whose weighted
    divergence from every center exceeds the penalty.
    """
    before, computed, n_far = find_nearest(block, held, message)
    with borrow() as sums:
        n_changed = move_rows(
            block.form, block.weight, before, held["labels"], message.frame.scale, *sums
        )
    return computed, n_changed, n_far


def label_block(block: Block, held, message: Pass) -> tuple[int, int, int]:
    """Do the same as `assign_block`, without updating the sums."""
    before, computed, n_far = find_nearest(block, held, message)
    return computed, int(np.count_nonzero(before != held["labels"])), n_far


def find_nearest(block: Block, held, message: Pass) -> tuple[np.ndarray, int, int]:
    """Return the old labels, the divergences computed, and how many rows exceed the penalty."""
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
    """Assign rows that bounds do not decide, by matrix products with the centers, in tiles.

    Rows whose weighted divergence from every center exceeds the penalty are marked as far.
    """
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
    """Compare each row with the clusters opened before its turn; count the rows that join one."""
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
    """Renumber clusters; -1 leaves rows without a cluster."""
    for part in chunks(held["labels"], values=FEW_ROWS):
        held["labels"][part] = number[held["labels"][part]]


def rehome_block(block: Block, held, message) -> None:
    """Assign rows without a cluster, which have zero weight, to the nearest center."""
    form, products = message
    verdict = np.where(held["labels"] < 0, np.uint8(UNSETTLED), np.uint8(SETTLED))
    compare(block, held, verdict, form, products, np.inf)


def adopt_block(block: Block, held, message) -> None:
    """Relabel rows after a split, merge or move; reset the bounds that are no longer valid."""
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
    """Return a copy of labels, as uint16 (half the memory) where the number of clusters allows."""
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
    """Find the first row of each cluster."""
    with borrow() as places:
        first_rows(held["labels"], block.weight, block.start, *places)
