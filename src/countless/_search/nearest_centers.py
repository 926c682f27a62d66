"""Nearest centers of the rows of one block: by bounds, by neighbour lists, or by matrix products.

`find_nearest` first decides rows by triangle-inequality bounds and by the centers around their own
(`countless.kernels.assign`). Other rows are compared with all centers by `Products`, a matrix
product that gives lower bounds on the divergences; near ties are decided by exact differences.

With very many centers in many dimensions the product is one of projections on few principal
directions, which are a lower bound too: for an orthonormal basis P of some directions,
``||x - c||`` is at least the distance of ``(P x, ||x - P'P x||)`` from ``(P c, ||c - P'P c||)``,
and nearly equal where centers are close to the span of P.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from countless._data import Backend, Block, FixedPoint
from countless.kernels.assign import (
    DECIDED,
    UNDECIDED,
    Product,
    compare_rows,
    filter_rows,
    list_nearest,
    pick_nearest,
)
from countless.kernels.statistics import move_rows


@dataclass(frozen=True)
class Pruning:
    """Constants of the search for nearest centers: they change its time, never its labels.

    Exceptions are the two of local passes, which compare rows with listed centers only. Chosen by
    ``python benchmarks/dp_means.py``, as the fewest user CPU seconds over its sets.
    """

    # A listed center is compared unless it is this much farther, divided by the number of
    # dimensions: in few dimensions a distance costs less than letting the bounds become loose.
    slack: float = 4.0
    # Longest list of neighbors; at most one in `centers_a_neighbor` centers is listed (a distance
    # costs about as much as that many entries of a product), and all lists take at most this share
    # of the table.
    most_neighbors: int = 128
    centers_a_neighbor: int = 8
    lists_share: float = 1 / 64
    # In more dimensions lists decide hardly any row.
    list_dimensions: int = 32
    # Length of the lists of a local pass, in all and for each dimension, and the passes before they
    # are made again: they become stale as centers move.
    local_neighbors: int = 32
    local_neighbors_a_dimension: int = 8
    passes_a_list: int = 4
    # Bytes of a table whose products are computed in one kernel; above, each tile is one call of
    # NumPy. Then the values of a tile in either.
    kernel_table: int = 2**25
    kernel_tile: int = 2**13
    tile: int = 2**17
    # Least number of centers that are projected, largest share of their variance outside the span,
    # and least factor by which the number of dimensions must fall.
    projected_centers: int = 512
    outside_span: float = 0.02
    fewer_dimensions: int = 3


PRUNING = Pruning()


def principal_directions(fixed_point: FixedPoint, centers: np.ndarray) -> np.ndarray | None:
    """Return the principal directions of the centers, if few explain nearly all variance."""
    if len(centers) < max(PRUNING.projected_centers, 2 * fixed_point.n_features):
        return None
    seen = (centers - fixed_point.origin) / fixed_point.unit
    spread, directions = np.linalg.eigh(seen.T @ seen)
    outside = np.cumsum(np.maximum(spread, 0.0)) <= PRUNING.outside_span * spread.sum()
    n_directions = int(np.count_nonzero(~outside))
    if PRUNING.fewer_dimensions * (n_directions + 1) > fixed_point.n_features:
        return None
    return directions[:, -n_directions:]


def project_points(points: np.ndarray, basis: np.ndarray) -> np.ndarray:
    """Return the projections of points on a basis, and their distances from its span."""
    return with_residual(points @ basis, np.einsum("ij,ij->i", points, points))


def with_residual(inside: np.ndarray, square: np.ndarray) -> np.ndarray:
    """Append the norm of the residual to projections, given the squared norms of the points."""
    rest = square - np.einsum("ij,ij->i", inside, inside, dtype=np.float64)
    return np.column_stack([inside, np.sqrt(np.maximum(rest, 0.0))]).astype(inside.dtype)


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
