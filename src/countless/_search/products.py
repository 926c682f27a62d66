"""Lower bounds on the divergences of rows from all centers, by one matrix product.

With very many centers in many dimensions a projection on few directions saves most of the work.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

import numpy as np

from countless._data import Block, Frame
from countless._search.projection import few_directions, look, with_rest
from countless.kernels.assign import Product

# Least rows of a tile, so that the call's overhead pays, and least values counted for a row.
LEAST_TILE_ROWS, LEAST_ROW_VALUES = 16, 16
# A tile has one value per this many bytes of the table: larger tiles where each is one NumPy call.
TILE_ROOM, KERNEL_TILE_ROOM = 32, 512
# From this table size on (bytes), each tile is one NumPy call; below, a kernel loops over tiles.
SMALL_TABLE = 2**25


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
    sketch : bool
        Whether a projection may be used, so that scores are only lower bounds; otherwise they are
        the divergences, up to rounding.

    Attributes
    ----------
    product : Product or None
        The same for a kernel that loops over all tiles, if one is used.
    """

    def __init__(self, frame: Frame, centers: np.ndarray, *, sketch: bool = True):
        self.frame = frame
        basis = few_directions(frame, centers) if sketch and frame.by_differences else None
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
                max(2 * LEAST_TILE_ROWS, self._tile_rows(KERNEL_TILE_ROOM)),
            )  # fmt: skip

    @property
    def n_centers(self) -> int:
        return len(self.offset)

    def _tile_rows(self, room: int) -> int:
        values_a_row = max(self.n_centers, self.frame.n_features, LEAST_ROW_VALUES)
        return max(LEAST_TILE_ROWS, self.frame.tile_values(room) // values_a_row)

    def tiles(self, block: Block, ids: np.ndarray) -> Iterator[tuple[slice, Scores]]:
        """Compare rows with all centers in tiles: yield the slice of ``ids`` and its scores.

        All tiles share one buffer. Allocating one per tile would cost as much as the product where
        the allocator returns memory to the system at once, as on Dask's workers.
        """
        step = self._tile_rows(TILE_ROOM)
        room = None
        if not self.frame.is_sparse:
            room = np.empty((min(step, len(ids)), self.n_centers), dtype=self.right.dtype)
        for at in range(0, len(ids), step):
            part = slice(at, at + step)
            yield part, self.scores(block, ids[part], room)

    def scores(self, block: Block, ids: np.ndarray, room: np.ndarray | None = None) -> Scores:
        """Compare some rows of a block with all centers; dense products are written to ``room``."""
        tile = self.frame.tile(block, ids, self.unit)
        values = tile.values
        error = self.error[0] + self.error[1] * tile.length + self.rounding * np.abs(tile.norm)
        if self.basis is not None:
            values = with_rest(values @ self.basis, tile.norm)
            # The residual length is the root of a difference, so its error is the root of the
            # rounding error.
            error += 4 * np.sqrt(self.rounding) * tile.length * self.outside
        if room is None:
            score = values @ self.right
        else:
            score = np.matmul(values, self.right, out=room[: len(ids)])
        np.subtract(self.offset, score, out=score)
        return Scores(score, tile.norm, error)
