"""The centers around each center, and bounds on how far off all others are."""

from __future__ import annotations

import numpy as np

from countless.kernels.assign import MOST
from countless.rows import Rows
from countless.rows.inplace import chunks

# Products held at once: what fits the cache.
TILE_VALUES = 2**17
# Measuring one center costs about this many entries of a matrix product, so longer lists do not
# pay.
PRODUCTS_A_CENTER = 8
MOST_NEIGHBOURS = 128
# Centers around their own that rows look at in a local pass.
LOCAL_NEIGHBOURS = 32


def neighbours_of(rows: Rows, centers: np.ndarray, *, local: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return for each center, coarse or not, the nearest others and their distances, rounded down.

    The last column of the distances covers all centers that are not listed.
    """
    frame, k = rows.frame, len(centers)
    if k == 1:
        return np.empty((1, 0), dtype=np.int32), np.full((1, 1), np.inf, dtype=np.float32)
    # Worth its k^2 products and comparisons only where rows far outnumber centers.
    worth = local or k * k <= 16 * rows.n_rows
    if not (frame.divergence.is_metric and worth):
        return np.empty((k, 0), dtype=np.int32), np.zeros((k, 1), dtype=np.float32)
    # A local search may overlook a center, so it need not look so closely.
    kind = np.float32 if local else np.float64
    seen, unit = centers, frame.unit
    if centers.dtype != np.float32:
        seen, unit = np.empty(centers.shape, dtype=kind), 1.0
        for part in chunks(centers):
            seen[part] = frame.seen(centers[part]) / frame.unit
    square = np.einsum("ij,ij->i", seen, seen) * kind(unit**-2)
    error = 4 * (centers.shape[1] + 8) * np.finfo(kind).eps * square.max()
    most = LOCAL_NEIGHBOURS if local else max(4, min(MOST_NEIGHBOURS, k // PRODUCTS_A_CENTER))
    listed = min(most, k - 1)
    neighbours = np.empty((k, listed), dtype=np.int32)
    gaps = np.empty((k, listed + 1), dtype=np.float32)

    def work(start, stop):
        squares = (seen[start:stop] * kind(-2 * unit**-2)) @ seen.T
        squares += square
        squares += square[start:stop, None]
        squares[np.arange(stop - start), np.arange(start, stop)] = np.inf
        nearest = np.empty((stop - start, listed + 1), dtype=np.int64)
        for row, values in enumerate(squares):  # the places of all rows would take twice the room
            nearest[row] = np.argpartition(values, listed)[: listed + 1]
        found = np.take_along_axis(squares, nearest, axis=1)
        order = np.argsort(found, axis=1)
        found = np.take_along_axis(found, order, axis=1)
        neighbours[start:stop] = np.take_along_axis(nearest, order, axis=1)[:, :listed]
        gap = np.sqrt(np.maximum(found - error, 0.0)) * (frame.unit * (1 - 1e-6))
        gaps[start:stop] = np.where(np.isinf(found), np.inf, np.minimum(gap, MOST))

    step = max(16, TILE_VALUES // k)
    rows.each(work, [(at, min(at + step, k)) for at in range(0, k, step)])
    return neighbours, gaps
