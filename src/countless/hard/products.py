"""Bounding the divergences of rows from all centers by one matrix product.

With very many centers in many dimensions most of the work is saved by looking at few directions.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

import numpy as np

from countless.hard.sketch import few_directions, look, with_rest
from countless.rows import Block, Frame

# Rows enough to make a matrix product worth its preparation, and what one takes in any case.
LEAST_TILE_ROWS, LEAST_ROW_VALUES = 16, 16


class Scores(NamedTuple):
    """Row r is at least ``unit^2 (norm[r] + score[r, c] - error[r])`` away from center c."""

    score: np.ndarray  # (n_rows, n_centers)
    norm: np.ndarray  # (n_rows,)
    error: np.ndarray  # (n_rows,)


class Products:
    """Centers, ready to be compared with any rows.

    Parameters
    ----------
    frame : Frame
    centers : ndarray of shape (n_centers, n_features)
    sketch : bool
        Whether scores may be lower bounds only; otherwise they are the divergences, but for
        rounding.
    """

    def __init__(self, frame: Frame, centers: np.ndarray, *, sketch: bool = True):
        self.frame = frame
        basis = few_directions(frame, centers) if sketch and frame.by_differences else None
        seen_by = None if basis is None else partial(look, basis=basis)
        self.unit, self.slope, self.offset = frame.product_form(centers, seen_by)
        self.basis = None if basis is None else basis.astype(np.float32)
        # The farthest that a center lies outside the span of the basis.
        self.outside = 0.0 if basis is None else float(self.slope[:, -1].max()) / 2
        self.reach = np.sqrt(np.einsum("ij,ij->i", self.slope, self.slope).max(initial=0.0))
        # SciPy's sparse product would copy a transposed view at every call.
        self._right = np.ascontiguousarray(self.slope.T) if frame.is_sparse else None

    def tiles(self, block: Block, ids: np.ndarray) -> Iterator[tuple[slice, Scores]]:
        """Compare rows with all centers tile by tile: give the part of ``ids``, and its scores.

        All tiles share the room of one. Room of its own would be mapped anew for each, which costs
        as much as the product where memory is given back at once, as on Dask's workers.
        """
        values_a_row = max(len(self.slope), self.frame.n_features, LEAST_ROW_VALUES)
        step = max(LEAST_TILE_ROWS, self.frame.tile_values // values_a_row)
        room = None
        if not self.frame.is_sparse:
            room = np.empty((min(step, len(ids)), len(self.slope)), dtype=self.slope.dtype)
        for at in range(0, len(ids), step):
            part = slice(at, at + step)
            yield part, self.scores(block, ids[part], room)

    def scores(self, block: Block, ids: np.ndarray, room: np.ndarray | None = None) -> Scores:
        """Compare some rows of a block with all centers; dense products fill the room given."""
        tile = self.frame.tile(block, ids, self.unit)
        values = tile.values
        rounding = (self.frame.n_features + 8) * np.finfo(self.slope.dtype).eps
        error = rounding * (np.abs(tile.norm) + np.abs(self.offset).max(initial=0.0))
        error += rounding * tile.length * self.reach
        if self.basis is not None:
            values = with_rest(values @ self.basis, tile.norm)
            # The rest is the root of a difference, so it can be off by the root of what rounding
            # leaves.
            error += 4 * np.sqrt(rounding) * tile.length * self.outside
        if room is None:
            score = values @ (self.slope.T if self._right is None else self._right)
        else:
            score = np.matmul(values, self.slope.T, out=room[: len(ids)])
        np.subtract(self.offset, score, out=score)
        return Scores(score, tile.norm, error)
