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

from countless._data import Block, FixedPoint
from countless._search.center_neighbors import NeighborLists
from countless._search.projection import principal_directions, project_points, with_residual
from countless._search.pruning import PRUNING
from countless.kernels.assign import (
    DECIDED,
    UNDECIDED,
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
MARKS = {"marked": (np.uint8, DECIDED)}
NO_LIMIT = np.empty(0, dtype=np.int32)


class Pass(NamedTuple):
    """Arguments of an assignment pass, the same for all blocks."""

    fixed_point: FixedPoint
    form: Any  # the centers in the form used by kernels
    products: Products | None  # None in a local pass, which compares with listed centers only
    drift: np.ndarray  # (n_clusters,) distance that each center moved
    others: np.ndarray  # (n_clusters,) largest distance that any other center moved
    lists: NeighborLists
    local: bool
    forget: bool  # whether lower bounds are invalid and must be reset
    penalty: float


def assign_block(block: Block, state, message: Pass, borrow) -> tuple[int, int, int]:
    """Assign each row to its nearest center and update the sums.

    Returns the number of divergences computed, of labels changed, and of rows whose weighted
    divergence from every center exceeds the penalty.
    """
    before = state["labels"].copy()
    computed, n_far = find_nearest(block, state, message)
    with borrow() as sums:
        n_changed = move_rows(
            block.form, block.weight, before, state["labels"], message.fixed_point.scale, *sums
        )
    return computed, n_changed, n_far


def find_nearest(block: Block, state, message: Pass) -> tuple[int, int]:
    """Update labels and bounds; return the divergences computed, and how many rows are far."""
    fixed_point, penalty = message.fixed_point, message.penalty
    labels, upper, lower = state["labels"], state["upper"], state["lower"]
    bounded = np.isfinite(penalty)
    status = state["marked"] if bounded else np.empty(block.n_rows, dtype=np.uint8)
    if message.forget:
        lower[:] = 0.0
    if fixed_point.divergence.is_metric:
        computed = filter_rows(
            block.form, block.weight, message.form, message.drift, message.others, *message.lists,
            1 + PRUNING.slack / fixed_point.n_features, message.local, penalty, labels, upper,
            lower, status,
        )  # fmt: skip
    else:
        labels.fill(-1)
        status.fill(UNDECIDED)
        computed = block.n_rows * len(message.drift)
    if message.products is not None:
        compare(block, state, status, message.form, message.products, penalty)
    return computed, int(np.count_nonzero(status)) if bounded else 0


def compare(
    block: Block, state, status, form, products: Products, penalty, first=0, limit=NO_LIMIT
) -> None:
    """Assign rows that bounds do not decide, by matrix products with the centers, in tiles.

    Rows whose weighted divergence from every center exceeds the penalty are marked as far.
    """
    bounds = penalty, state["labels"], state["upper"], state["lower"], status
    if products.product is not None:
        compare_rows(block.form, block.weight, form, products.product, first, limit, *bounds)
        return
    ids = np.flatnonzero(status == UNDECIDED)
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
    fixed_point : FixedPoint
    centers : ndarray of shape (n_centers, n_features)

    Attributes
    ----------
    basis : ndarray or None
        Of the projection, if one is used.
    product : Product or None
        The same for a kernel that loops over all tiles, if one is used.
    """

    def __init__(self, fixed_point: FixedPoint, centers: np.ndarray):
        self.fixed_point = fixed_point
        basis = principal_directions(fixed_point, centers) if fixed_point.by_differences else None
        seen_by = None if basis is None else partial(project_points, basis=basis)
        self.unit, self.right, self.offset = fixed_point.product_form(centers, seen_by)
        self.basis = None if basis is None else basis.astype(np.float32)
        # The largest distance of a center from the span of the basis.
        self.outside = 0.0 if basis is None else float(self.right[-1].max()) / 2
        reach = float(np.sqrt(np.einsum("ij,ij->j", self.right, self.right).max(initial=0.0)))
        self.rounding = (fixed_point.n_features + 8) * float(np.finfo(self.right.dtype).eps)
        # Bound on the rounding error of a score: a constant, and a part per unit of row length.
        largest = float(np.abs(self.offset).max(initial=0.0))
        self.error = self.rounding * largest, self.rounding * reach
        self.product = None
        if (
            fixed_point.by_differences
            and basis is None
            and fixed_point.n_bytes < PRUNING.kernel_table
        ):
            self.product = Product(
                self.right, self.offset, fixed_point.origin, float(self.unit), self.error,
                self.rounding, self._tile_rows(PRUNING.kernel_tile),
            )  # fmt: skip

    @property
    def n_centers(self) -> int:
        return len(self.offset)

    def _tile_rows(self, n_values: int) -> int:
        return max(16, n_values // max(self.n_centers, self.fixed_point.n_features, 16))

    def tiles(self, block: Block, ids: np.ndarray) -> Iterator[tuple[slice, Scores]]:
        """Compare rows with all centers in tiles: yield the slice of ``ids`` and its scores.

        All tiles share one buffer. Allocating one per tile would cost as much as the product where
        the allocator returns memory to the system at once, as on Dask's workers.
        """
        step = self._tile_rows(PRUNING.tile)
        buffer = None
        if not self.fixed_point.is_sparse:
            buffer = np.empty((min(step, len(ids)), self.n_centers), dtype=self.right.dtype)
        for at in range(0, len(ids), step):
            part = slice(at, at + step)
            yield part, self.scores(block, ids[part], buffer)

    def scores(self, block: Block, ids: np.ndarray, buffer: np.ndarray | None = None) -> Scores:
        """Compare some rows of a block with all centers; dense products are written to a buffer."""
        tile = self.fixed_point.tile(block, ids, self.unit)
        values = tile.values
        error = self.error[0] + self.error[1] * tile.length + self.rounding * np.abs(tile.norm)
        if self.basis is not None:
            values = with_residual(values @ self.basis, tile.norm)
            # The residual length is the root of a difference, so its error is the root of the
            # rounding error.
            error += 4 * np.sqrt(self.rounding) * tile.length * self.outside
        if buffer is None:
            score = values @ self.right
        else:
            score = np.matmul(values, self.right, out=buffer[: len(ids)])
        np.subtract(self.offset, score, out=score)
        return Scores(score, tile.norm, error)
