"""Nearest centers of the rows of one block: by bounds, by neighbour lists, or by matrix products.

`find_nearest` first decides rows by triangle-inequality bounds and by the centers around their own
(`countless.kernels.assign`). Other rows are compared with all centers by `Products`, a matrix
product that gives lower bounds on the divergences; near ties are decided by exact differences. With
very many centers in many dimensions the product is one of projections on few directions.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from countless._data import Block, Frame
from countless._search.center_neighbors import Lists
from countless._search.projection import few_directions, look, with_rest
from countless.kernels.assign import (
    SETTLED,
    UNSETTLED,
    Product,
    compare_rows,
    filter_rows,
    pick_nearest,
)
from countless.kernels.statistics import move_rows

# Per-row state: all rows start in cluster 0, with bounds that exclude nothing.
BOUNDS = {"upper": (np.float32, np.inf), "lower": (np.float32, 0.0)}
FIELDS = {"labels": (np.int32, 0), **BOUNDS}
# Temporary marks of rows: the outcome of the assignment, or 1 for the second half of a split.
MARKS = {"marked": (np.uint8, SETTLED)}
NO_LIMIT = np.empty(0, dtype=np.int32)
# In few dimensions computing a distance costs less than letting the bounds become loose.
CHEAP = 4.0
# Products of tables below this size (bytes) are computed in one kernel, and larger ones by a call
# of NumPy for each tile; then the values of a tile in a kernel, and in NumPy.
SMALL_TABLE = 2**25
KERNEL_TILE, TILE = 2**13, 2**17


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


def assign_block(block: Block, held, message: Pass, borrow) -> tuple[int, int, int]:
    """Assign each row to its nearest center and update the sums.

    Returns the number of divergences computed, of labels changed, and of rows whose weighted
    divergence from every center exceeds the penalty.
    """
    before = held["labels"].copy()
    computed, n_far = find_nearest(block, held, message)
    with borrow() as sums:
        n_changed = move_rows(
            block.form, block.weight, before, held["labels"], message.frame.scale, *sums
        )
    return computed, n_changed, n_far


def find_nearest(block: Block, held, message: Pass) -> tuple[int, int]:
    """Update labels and bounds; return the divergences computed, and how many rows are far."""
    frame, penalty = message.frame, message.penalty
    labels, upper, lower = held["labels"], held["upper"], held["lower"]
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
    return computed, int(np.count_nonzero(verdict)) if bounded else 0


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


class Scores(NamedTuple):
    """The divergence of row r from center c is >= ``unit^2 (norm[r] + score[r, c] - error[r])``."""

    score: np.ndarray  # (n_rows, n_centers)
    norm: np.ndarray  # (n_rows,)
    error: np.ndarray  # (n_rows,)


class Products:
    """Centers, prepared for matrix products with rows.

    Parameters
    ----------
    frame : Frame
    centers : ndarray of shape (n_centers, n_features)

    Attributes
    ----------
    basis : ndarray or None
        Of the projection, if one is used.
    product : Product or None
        The same for a kernel that loops over all tiles, if one is used.
    """

    def __init__(self, frame: Frame, centers: np.ndarray):
        self.frame = frame
        basis = few_directions(frame, centers) if frame.by_differences else None
        seen_by = None if basis is None else partial(look, basis=basis)
        self.unit, self.right, self.offset = frame.product_form(centers, seen_by)
        self.basis = None if basis is None else basis.astype(np.float32)
        # The largest distance of a center from the span of the basis.
        self.outside = 0.0 if basis is None else float(self.right[-1].max()) / 2
        reach = float(np.sqrt(np.einsum("ij,ij->j", self.right, self.right).max(initial=0.0)))
        self.rounding = (frame.n_features + 8) * float(np.finfo(self.right.dtype).eps)
        # Bound on the rounding error of a score: a constant, and a part per unit of row length.
        largest = float(np.abs(self.offset).max(initial=0.0))
        self.error = self.rounding * largest, self.rounding * reach
        self.product = None
        if frame.by_differences and basis is None and frame.n_bytes < SMALL_TABLE:
            self.product = Product(
                self.right, self.offset, frame.origin, float(self.unit), self.error, self.rounding,
                self._tile_rows(KERNEL_TILE),
            )  # fmt: skip

    @property
    def n_centers(self) -> int:
        return len(self.offset)

    def _tile_rows(self, n_values: int) -> int:
        return max(16, n_values // max(self.n_centers, self.frame.n_features, 16))

    def tiles(self, block: Block, ids: np.ndarray) -> Iterator[tuple[slice, Scores]]:
        """Compare rows with all centers in tiles: yield the slice of ``ids`` and its scores.

        All tiles share one buffer. Allocating one per tile would cost as much as the product where
        the allocator returns memory to the system at once, as on Dask's workers.
        """
        step = self._tile_rows(TILE)
        buffer = None
        if not self.frame.is_sparse:
            buffer = np.empty((min(step, len(ids)), self.n_centers), dtype=self.right.dtype)
        for at in range(0, len(ids), step):
            part = slice(at, at + step)
            yield part, self.scores(block, ids[part], buffer)

    def scores(self, block: Block, ids: np.ndarray, buffer: np.ndarray | None = None) -> Scores:
        """Compare some rows of a block with all centers; dense products are written to a buffer."""
        tile = self.frame.tile(block, ids, self.unit)
        values = tile.values
        error = self.error[0] + self.error[1] * tile.length + self.rounding * np.abs(tile.norm)
        if self.basis is not None:
            values = with_rest(values @ self.basis, tile.norm)
            # The residual length is the root of a difference, so its error is the root of the
            # rounding error.
            error += 4 * np.sqrt(self.rounding) * tile.length * self.outside
        if buffer is None:
            score = values @ self.right
        else:
            score = np.matmul(values, self.right, out=buffer[: len(ids)])
        np.subtract(self.offset, score, out=score)
        return Scores(score, tile.norm, error)
