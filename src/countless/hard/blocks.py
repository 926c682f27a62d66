"""What is done to one block of rows, wherever it lives: nearest centers, new labels, sums.

`Nearest` sends these to all blocks. ``held`` is what is held for each row of a block, see `FIELDS`;
``borrow`` lends a step the sums that it adds to.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from countless.hard.neighbours import Lists
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
from countless.rows import Block, Frame
from countless.rows.block import cut
from countless.rows.inplace import FEW_ROWS, chunks

# What is held for each row: at first all are in one cluster, and nothing is known.
BOUNDS = {"upper": (np.float32, np.inf), "lower": (np.float32, 0.0)}
FIELDS = {"labels": (np.int32, 0), **BOUNDS}
# Marks of rows, for a while: verdicts on them, or 1 on the far side of a split.
MARKS = {"marked": (np.uint8, SETTLED)}
NO_LIMIT = np.empty(0, dtype=np.int32)
KEPT = "kept"  # the labels of before a venture
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
