"""Neighbour lists of centers, with lower bounds on the distances to all other centers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from countless._data import Backend
from countless._search.projection import principal_directions, project_points
from countless._search.pruning import PRUNING
from countless.kernels.neighbours import list_nearest


class NeighborLists(NamedTuple):
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


def list_neighbors(
    rows: Backend,
    centers: np.ndarray,
    *,
    local: bool,
    bounded: np.ndarray | None = None,
    parent: np.ndarray | None = None,
) -> NeighborLists:
    """List the neighbours of each center, nearest first, with distances rounded down.

    Rows' lower bounds cover the ``bounded`` centers (None: all), and those that descend from them
    by ``parent``.
    """
    fixed_point, k = rows.fixed_point, len(centers)
    if k == 1:
        return _unlisted(1, np.inf)
    # The lists take k^2 products and comparisons, so they pay only where there are many more rows
    # than centers. They pay earlier where bounds are void and all rows would be compared with all
    # centers, unless in high dimensions all centers are about equally distant.
    blank = (
        bounded is not None and rows.n_features <= PRUNING.list_dimensions and 16 * k <= rows.n_rows
    )
    worth = local or blank or k * k <= 16 * rows.n_rows
    if not (fixed_point.divergence.is_metric and worth):
        return _unlisted(k, 0.0)
    # A local pass is approximate anyway, so float32 and a projection suffice.
    kind = np.float32 if local else np.float64
    basis = principal_directions(fixed_point, centers) if local else None
    seen = (centers - fixed_point.origin) / fixed_point.unit
    seen = (seen if basis is None else project_points(seen, basis)).astype(kind)
    square = np.einsum("ij,ij->i", seen, seen)
    error = float(4 * (fixed_point.n_features + 8) * np.finfo(kind).eps * square.max())
    room = int(PRUNING.lists_share * fixed_point.n_bytes) // (8 * k)
    most = max(4, min(PRUNING.most_neighbors, k // PRUNING.centers_a_neighbor, room))
    if local:
        most = min(
            PRUNING.local_neighbors, PRUNING.local_neighbors_a_dimension * fixed_point.n_features
        )
    listed = min(most, k - 1)
    neighbours = np.empty((k, listed), dtype=np.int32)
    gaps = np.empty((k, listed + 1), dtype=np.float32)

    fresh = local and bounded is not None
    known, parent = (bounded, parent) if fresh else (neighbours, np.empty(0, dtype=np.int32))

    def work(start, stop):
        list_nearest(
            seen, square, error, fixed_point.unit * (1 - 1e-6), start, stop,
            known, parent, neighbours, gaps,
        )  # fmt: skip

    span = -(-k // (4 * rows.n_threads))  # tasks of about equal time
    rows.each(work, [(at, min(at + span, k)) for at in range(0, k, span)])
    return NeighborLists(neighbours, gaps, np.zeros(k))


def _unlisted(k: int, gap: float) -> NeighborLists:
    """Return empty lists, with a lower bound on the distances to all other centers."""
    gaps = np.full((k, 1), gap, dtype=np.float32)
    return NeighborLists(np.empty((k, 0), dtype=np.int32), gaps, np.zeros(k))
