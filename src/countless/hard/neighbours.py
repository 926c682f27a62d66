"""The centers around each center, and bounds on how far off all others are."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from countless.hard.sketch import few_directions, look
from countless.kernels.assign import MOST
from countless.kernels.neighbours import mark_fresh, pick_neighbours
from countless.rows import Rows
from countless.rows.inplace import chunks

# Measuring one center costs about this many entries of a matrix product, so longer lists do not
# pay.
PRODUCTS_A_CENTER = 8
MOST_NEIGHBOURS = 128
# Lists for exact passes take at most one part in so many of the table's room.
LISTS_ROOM = 16
# In more dimensions hardly any row is settled by them.
FEW_DIMENSIONS = 32
# Centers around their own that rows look at in a local pass.
LOCAL_NEIGHBOURS = 32


class Lists(NamedTuple):
    """The centers around each center."""

    neighbours: np.ndarray  # (n_clusters, n_listed)
    gaps: np.ndarray  # (n_clusters, n_listed + 1) the last column covers those that are not listed
    fresh: np.ndarray  # (n_clusters, n_listed) whether rows' bounds do not speak of it

    def moved(self, drift: np.ndarray) -> np.ndarray:
        """Return how far listed centers moved, rounded up; infinite where bounds do not speak."""
        moved = np.empty(self.neighbours.shape, dtype=np.float32)
        for column, listed in enumerate(self.neighbours.T):
            moved[:, column] = np.minimum(drift[listed] * (1 + 1e-6), MOST)
        moved[self.fresh] = np.inf
        return moved

    def merged(self, stays: np.ndarray, number: np.ndarray) -> Lists:
        """Return the lists of the centers that stay, of which each then has another number."""
        return Lists(number[self.neighbours[stays]], self.gaps[stays], self.fresh[stays])


def list_neighbours(
    rows: Rows,
    centers: np.ndarray,
    *,
    local: bool,
    bounded: np.ndarray | None = None,
    parent: np.ndarray | None = None,
) -> Lists:
    """List the centers around each, coarse or not, for rows to look at.

    Bounds speak of the ``bounded`` centers (None: of all), and of those whose parents they are.
    """
    neighbours, gaps = neighbours_of(rows, centers, local=local, blank=bounded is not None)
    fresh = np.zeros(neighbours.shape, dtype=bool)
    if local and bounded is not None:
        mark_fresh(neighbours, bounded, parent, fresh)
    return Lists(neighbours, gaps, fresh)


def neighbours_of(
    rows: Rows, centers: np.ndarray, *, local: bool, blank: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """Return for each center, coarse or not, the nearest others and their distances, rounded down.

    The last column of the distances covers all centers that are not listed. With ``blank`` no
    bound of any row is known.
    """
    frame, k = rows.frame, len(centers)
    if k == 1:
        return np.empty((1, 0), dtype=np.int32), np.full((1, 1), np.inf, dtype=np.float32)
    # Worth its k^2 products and comparisons only where rows far outnumber centers; more so where
    # the alternative is to compare all rows with all centers, if not in so many dimensions that
    # all centers are about as far from each other.
    blank = blank and rows.n_features <= FEW_DIMENSIONS and 16 * k <= rows.n_rows
    worth = local or blank or k * k <= 16 * rows.n_rows
    if not (frame.divergence.is_metric and worth):
        return np.empty((k, 0), dtype=np.int32), np.zeros((k, 1), dtype=np.float32)
    # A local search may overlook a center, so it need not look so closely.
    kind = np.float32 if local else np.float64
    basis = few_directions(frame, centers) if local else None
    seen, unit = centers, frame.unit
    if basis is not None or centers.dtype != np.float32:
        n_directions = frame.n_features if basis is None else basis.shape[1] + 1
        seen, unit = np.empty((k, n_directions), dtype=kind), 1.0
        for part in chunks(centers):
            points = frame.seen(centers[part]) / frame.unit
            seen[part] = points if basis is None else look(points, basis)
    square = np.einsum("ij,ij->i", seen, seen) * kind(unit**-2)
    error = 4 * (frame.n_features + 8) * np.finfo(kind).eps * square.max()
    room = frame.n_bytes // (LISTS_ROOM * 8 * k)
    most = max(4, min(MOST_NEIGHBOURS, k // PRODUCTS_A_CENTER, room))
    listed = min(LOCAL_NEIGHBOURS if local else most, k - 1)
    neighbours = np.empty((k, listed), dtype=np.int32)
    gaps = np.empty((k, listed + 1), dtype=np.float32)

    def work(start, stop):
        scores = (seen[start:stop] * kind(-2 * unit**-2)) @ seen.T
        found = np.empty((stop - start, listed + 1), dtype=kind)
        pick_neighbours(scores, square, start, neighbours[start:stop], found)
        found += square[start:stop, None]
        gap = np.sqrt(np.maximum(found - error, 0.0)) * (frame.unit * (1 - 1e-6))
        gaps[start:stop] = np.where(np.isinf(found), np.inf, np.minimum(gap, MOST))

    step = max(16, frame.tile_values // k)
    rows.each(work, [(at, min(at + step, k)) for at in range(0, k, step)])
    return neighbours, gaps
