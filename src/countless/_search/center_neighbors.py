"""Neighbour lists of centers, with lower bounds on the distances to all other centers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from countless._data import Rows
from countless._search.projection import few_directions, look
from countless.kernels.neighbours import list_nearest

# Computing one distance costs about as much as this many entries of a matrix product, so longer
# lists are no faster.
PRODUCTS_A_CENTER = 8
MOST_NEIGHBOURS = 128
# Lists for exact passes take at most 1 / LISTS_ROOM of the table's memory.
LISTS_ROOM = 64
# In more dimensions neighbour lists decide hardly any row.
FEW_DIMENSIONS = 32
# Least number of tasks per thread; each allocates its own memory.
TASKS = 4
# Length of the lists in a local pass, in all and per dimension: in few dimensions a center has few
# neighbours.
LOCAL_NEIGHBOURS, NEIGHBOURS_A_DIMENSION = 32, 8


class Lists(NamedTuple):
    """The nearest other centers of each center, in order of distance.

    ``gaps`` are lower bounds on distances between centers.
    """

    neighbours: np.ndarray  # (n_clusters, n_listed) ~c if rows' lower bounds do not cover c
    gaps: np.ndarray  # (n_clusters, n_listed + 1) the last column covers those that are not listed
    slip: np.ndarray  # (n_clusters,) upper bound on how much these distances have since shrunk

    def farthest(self, drift: np.ndarray) -> np.ndarray:
        """Return the largest movement of a listed center; infinite if bounds do not cover it."""
        farthest = np.zeros(len(drift))
        drift = np.append(drift, np.inf)
        for listed in self.neighbours.T:
            np.maximum(farthest, drift[np.maximum(listed, -1)], out=farthest)
        return farthest

    def unmark(self) -> None:
        """Declare that rows' lower bounds cover all listed centers."""
        np.maximum(self.neighbours, ~self.neighbours, out=self.neighbours)

    def columns(
        self, centers: np.ndarray, number: np.ndarray
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield the nearest neighbours of some centers, renumbered, with gaps; then the second."""
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
    """List the neighbours of each center, nearest first, with distances rounded down.

    Rows' lower bounds cover the ``bounded`` centers (None: all), and those that descend from them
    by ``parent``.
    """
    frame, k = rows.frame, len(centers)
    if k == 1:
        return _unlisted(1, np.inf)
    # The lists take k^2 products and comparisons, so they pay only where there are many more rows
    # than centers. They pay earlier where bounds are void and all rows would be compared with all
    # centers, unless in high dimensions all centers are about equally distant.
    blank = bounded is not None and rows.n_features <= FEW_DIMENSIONS and 16 * k <= rows.n_rows
    worth = local or blank or k * k <= 16 * rows.n_rows
    if not (frame.divergence.is_metric and worth):
        return _unlisted(k, 0.0)
    # A local pass is approximate anyway, so float32 and a projection suffice.
    kind = np.float32 if local else np.float64
    basis = few_directions(frame, centers) if local else None
    seen = (centers - frame.origin) / frame.unit
    seen = (seen if basis is None else look(seen, basis)).astype(kind)
    square = np.einsum("ij,ij->i", seen, seen)
    error = float(4 * (frame.n_features + 8) * np.finfo(kind).eps * square.max())
    room = frame.n_bytes // (LISTS_ROOM * 8 * k)
    most = max(4, min(MOST_NEIGHBOURS, k // PRODUCTS_A_CENTER, room))
    if local:
        most = min(LOCAL_NEIGHBOURS, NEIGHBOURS_A_DIMENSION * frame.n_features)
    listed = min(most, k - 1)
    neighbours = np.empty((k, listed), dtype=np.int32)
    gaps = np.empty((k, listed + 1), dtype=np.float32)

    fresh = local and bounded is not None
    known, parent = (bounded, parent) if fresh else (neighbours, np.empty(0, dtype=np.int32))

    def work(start, stop):
        list_nearest(
            seen, square, error, frame.unit * (1 - 1e-6), start, stop,
            known, parent, neighbours, gaps,
        )  # fmt: skip

    span = -(-k // (TASKS * rows.n_threads))
    rows.each(work, [(at, min(at + span, k)) for at in range(0, k, span)])
    return Lists(neighbours, gaps, np.zeros(k))


def _unlisted(k: int, gap: float) -> Lists:
    """Return empty lists, with a lower bound on the distances to all other centers."""
    gaps = np.full((k, 1), gap, dtype=np.float32)
    return Lists(np.empty((k, 0), dtype=np.int32), gaps, np.zeros(k))
