"""The centers around each center, and bounds on how far off all others are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from countless.hard.sketch import few_directions, look
from countless.kernels.neighbours import list_nearest
from countless.rows import Rows
from countless.rows.inplace import chunks, growing

# Measuring one center costs about this many entries of a matrix product, so longer lists do not
# pay.
PRODUCTS_A_CENTER = 8
MOST_NEIGHBOURS = 128
# Lists for exact passes take at most one part in so many of the table's room.
LISTS_ROOM = 64
# In more dimensions hardly any row is settled by them.
FEW_DIMENSIONS = 32
# Tasks that a thread has at least; each takes room.
TASKS = 4
# Centers around their own that rows look at in a local pass, and for each dimension: in few
# dimensions few centers are around one.
LOCAL_NEIGHBOURS, NEIGHBOURS_A_DIMENSION = 32, 8


class Lists(NamedTuple):
    """The centers around each center."""

    neighbours: np.ndarray  # (n_clusters, n_listed) ~c if rows' bounds do not speak of c
    gaps: np.ndarray  # (n_clusters, n_listed + 1) the last column covers those that are not listed
    slip: np.ndarray  # (n_clusters,) how much nearer than that the listed ones may have come

    def farthest(self, drift: np.ndarray) -> np.ndarray:
        """Return the farthest that a listed center moved; infinite if bounds do not speak of it."""
        farthest = np.zeros(len(drift))
        drift = np.append(drift, np.inf)
        for listed in self.neighbours.T:
            np.maximum(farthest, drift[np.maximum(listed, -1)], out=farthest)
        return farthest

    def unmark(self) -> None:
        """Say that rows' bounds speak of all neighbours."""
        for part in chunks(self.neighbours):
            listed = self.neighbours[part]
            np.maximum(listed, ~listed, out=listed)

    def columns(
        self, centers: np.ndarray, number: np.ndarray
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Give some centers' first neighbours, by other numbers, with gaps; then the second."""
        for listed, gap in zip(self.neighbours.T, self.gaps.T, strict=False):
            yield number[listed[centers]], gap[centers]


def list_neighbours(
    rows: Rows,
    centers: np.ndarray,
    *,
    local: bool,
    bounded: np.ndarray | None = None,
    parent: np.ndarray | None = None,
) -> Lists:
    """List the centers around each, coarse or not, nearest first, with distances rounded down.

    Bounds speak of the ``bounded`` centers (None: of all), and of those whose parents they are. Of
    ``bounded`` only the room is left.
    """
    frame, k = rows.frame, len(centers)
    if k == 1:
        return _unlisted(1, np.inf)
    # Worth its k^2 products and comparisons only where rows far outnumber centers; more so where
    # the alternative is to compare all rows with all centers, if not in so many dimensions that
    # all centers are about as far from each other.
    blank = bounded is not None and rows.n_features <= FEW_DIMENSIONS and 16 * k <= rows.n_rows
    worth = local or blank or k * k <= 16 * rows.n_rows
    if not (frame.divergence.is_metric and worth):
        return _unlisted(k, 0.0)
    # A local search may overlook a center, so it need not look so closely.
    kind = np.float32 if local else np.float64
    basis = few_directions(frame, centers) if local else None
    seen, unit = centers, frame.unit
    if basis is not None or centers.dtype != np.float32:
        n_directions = frame.n_features if basis is None else basis.shape[1] + 1
        seen, unit = np.empty((k, n_directions), dtype=kind), 1.0
        for part in frame.chunks(centers):
            points = frame.seen(centers[part])
            points /= frame.unit
            seen[part] = points if basis is None else look(points, basis)
    square = np.einsum("ij,ij->i", seen, seen) * kind(unit**-2)
    error = float(4 * (frame.n_features + 8) * np.finfo(kind).eps * square.max())
    room = frame.n_bytes // (LISTS_ROOM * 8 * k)
    most = max(4, min(MOST_NEIGHBOURS, k // PRODUCTS_A_CENTER, room))
    if local:
        most = min(LOCAL_NEIGHBOURS, NEIGHBOURS_A_DIMENSION * frame.n_features)
    listed = min(most, k - 1)
    if local and bounded is not None and bounded.shape == (k, listed):
        neighbours = bounded
    else:  # those of a local search outlive the centers of now
        neighbours = (growing if local else np.empty)((k, listed), dtype=np.int32)
    gaps = np.empty((k, listed + 1), dtype=np.float32)

    fresh = local and bounded is not None
    known, parent = (bounded, parent) if fresh else (neighbours, np.empty(0, dtype=np.int32))

    def work(start, stop):
        list_nearest(
            seen, square, kind(-2 * unit**-2), error, frame.unit * (1 - 1e-6), start, stop,
            known, parent, neighbours, gaps,
        )  # fmt: skip

    span = -(-k // (TASKS * rows.n_threads))
    rows.each(work, [(at, min(at + span, k)) for at in range(0, k, span)])
    return Lists(neighbours, gaps, np.zeros(k))


def _unlisted(k: int, gap: float) -> Lists:
    """Return lists of nothing, with a bound on how far off all other centers are."""
    gaps = np.full((k, 1), gap, dtype=np.float32)
    return Lists(np.empty((k, 0), dtype=np.int32), gaps, np.zeros(k))
