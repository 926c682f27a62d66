"""Rows that fit in memory: a NumPy array or a CSR matrix, worked on block by block by threads.

A block's place depends on the table's shape alone, and partial sums are merged in a tree over
positions, so every result has the same bits for any number of threads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from joblib import effective_n_jobs
from threadpoolctl import threadpool_limits

from countless.kernels.rows import Dense, Linear, Points, Sparse
from countless.kernels.statistics import add_block, gather, move_rows

# Values in a block: enough to make calls cheap beside the work, few enough to keep threads equally
# busy.
BLOCK_VALUES = 2**20
LEAST_VALUES = 2**16
SMALLEST_BLOCK, LARGEST_BLOCK = 2**6, 2**14
FEWEST_BLOCKS = 16
# Stretches of the table that are summed up apart: at most so many, and each with so many rows for
# every cluster at least, so that adding their sums up is cheap beside making them.
STRETCHES = 64
ROWS_A_CLUSTER = 16


class Summary(NamedTuple):
    """What rows say about their clusters; adds up across blocks. Totals are about the origin."""

    weight: np.ndarray  # (n_clusters,)
    total: np.ndarray  # (n_clusters, n_features)


class Tile(NamedTuple):
    """Some rows, ready for a product with centers in the same coordinates."""

    values: Any  # (n, n_features) array or CSR
    norm: np.ndarray  # (n,) the rows' own part of the divergence
    length: np.ndarray  # (n,) Euclidean norms


class MemoryRows:
    """A table in memory, its weights, and threads to work on it. Made by `open_rows`.

    Attributes
    ----------
    form : Dense or Sparse
        The table as kernels see it.
    origin : ndarray of shape (n_features,)
        What squared Euclidean distances are computed about: the mean, so that far-off data loses no
        digits; else 0.
    unit : float
        About the distance of rows from the origin: products in this unit fit into float32.
    total_cost : float
        The weighted sum of the rows' own parts of the divergence.
    """

    def __init__(self, X, weight, divergence, pool: ThreadPoolExecutor | None):
        self.X = X
        self.divergence = divergence
        self.n_rows, self.n_features = X.shape
        self.weight = np.broadcast_to(np.ones(1), self.n_rows) if weight is None else weight
        self._pool = pool
        # A power of two; short tables get smaller blocks, so that there are some for each thread.
        values = min(max(X.shape[0] * X.shape[1] // FEWEST_BLOCKS, LEAST_VALUES), BLOCK_VALUES)
        size = min(values // self.n_features, LARGEST_BLOCK)
        self.block_size = 2 ** int(np.log2(max(size, SMALLEST_BLOCK)))
        self.origin = np.zeros(self.n_features)
        self.unit = 1.0
        # Unit rows, or rows seen from their mean, are compared by differences; the rest by their
        # linear form.
        self.is_sparse = sp.issparse(X)
        self.n_bytes = X.data.nbytes + X.indices.nbytes if self.is_sparse else X.nbytes
        self.by_differences = divergence.is_metric and not self.is_sparse
        if self.is_sparse:
            cost = divergence.row_cost(X)
            self.form: Dense | Sparse = Sparse(X.data, X.indices, X.indptr, divergence.scale * cost)
        else:
            cost = np.empty(0) if self.by_differences else divergence.row_cost(X)
            self.form = Dense(X, cost)
        if divergence.name == "sqeuclidean" and self.by_differences:
            whole = self.summary(np.zeros(self.n_rows, dtype=np.int32), 1)
            self.origin = whole.total[0] / whole.weight[0]
            squares = [self.weight[a:b] @ self.tile(np.arange(a, b)).norm for a, b in self.blocks()]
            self.total_cost = float(np.sum(squares))
            if self.total_cost > 0:
                self.unit = np.sqrt(self.total_cost / whole.weight[0])
        elif len(cost):
            self.total_cost = float(self.weight @ cost)
        else:
            self.total_cost = float(self.weight @ divergence.row_cost(X))
        if not np.isfinite(self.total_cost):
            raise ValueError("X has values so large that their squares overflow; scale it down")

    def blocks(self) -> list[tuple[int, int]]:
        """Return the (start, stop) of each block."""
        starts = range(0, self.n_rows, self.block_size)
        return [(start, min(start + self.block_size, self.n_rows)) for start in starts]

    def each(self, function: Callable, items) -> list:
        """Call ``function(*item)`` for every item, on the threads; return the answers in order."""
        if self._pool is None:
            return [function(*item) for item in items]
        return list(self._pool.map(lambda item: function(*item), items))

    def summary(self, labels: np.ndarray, n_clusters: int) -> Summary:
        """Return the weight and the weighted sum of each cluster."""

        def add(start, stop, part):
            add_block(self.form, start, stop, self.weight, labels, self.origin, *part)

        return self.sums(add, n_clusters)

    def move(
        self, summary: Summary, ids: np.ndarray, old: np.ndarray, new: np.ndarray, n_clusters: int
    ) -> Summary:
        """Return a summary after some rows have gone from their old to their new labels."""
        weight, total = np.zeros(n_clusters), np.zeros((n_clusters, self.n_features))
        weight[: len(summary.weight)], total[: len(summary.weight)] = summary
        move_rows(self.form, ids, self.weight, old, new, self.origin, weight, total)
        return Summary(weight, total)

    def sums(self, add: Callable[[int, int, Summary], None], n_clusters: int) -> Summary:
        """Let ``add(start, stop, part)`` sum up stretches of rows, and add those sums up."""
        room = self.n_bytes // (4 * 8 * n_clusters * self.n_features)
        stretches = max(min(self.n_rows // (ROWS_A_CLUSTER * n_clusters), room, STRETCHES), 1)
        step = self.block_size * max(1, -(-self.n_rows // (stretches * self.block_size)))

        def stretch(start):
            part = Summary(np.zeros(n_clusters), np.zeros((n_clusters, self.n_features)))
            add(start, min(start + step, self.n_rows), part)
            return part

        starts = [(start,) for start in range(0, self.n_rows, step)]
        return _merge_in_pairs(self.each(stretch, starts))

    def means(self, summary: Summary) -> np.ndarray:
        """Return the best center of each cluster, in the table's own coordinates."""
        return self.origin + self.divergence.means(summary.weight, summary.total)

    def objective(
        self, summary: Summary, penalty: float, centers: np.ndarray | None = None
    ) -> float:
        """Return the cost of all rows at their centers (None: the best), plus the penalties."""
        if centers is None:
            energy = self.divergence.energy(summary.weight, summary.total)
        else:
            slope, offset = self.divergence.slope_offset(centers - self.origin)
            energy = summary.weight * offset - np.einsum("ij,ij->i", summary.total, slope)
        return float(self.total_cost + energy.sum() + penalty * len(summary.weight))

    def centers(self, values: np.ndarray):
        """Return centers in the form that kernels compare rows with."""
        if self.by_differences:
            return Points(values)
        slope, offset = self.divergence.slope_offset(values)
        scale = self.divergence.scale
        return Linear(scale * slope, scale * offset)

    def product_form(self, values: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        """Return (unit, slope, offset) of centers, in the coordinates of tiles of that unit."""
        if self.by_differences:
            seen = values - self.origin
            unit = max(self.unit, float(np.abs(seen).max(initial=0.0)))
            seen /= unit
            offset = np.einsum("ij,ij->i", seen, seen)
            return unit, (2.0 * seen).astype(np.float32), offset.astype(np.float32)
        linear = self.centers(values)
        return 1.0, linear.slope, linear.offset

    def tile(self, ids: np.ndarray, unit: float = 1.0) -> Tile:
        """Return some rows, in some unit of length, for a product with centers."""
        if self.is_sparse:
            values = self.X[ids]
            length = np.sqrt(np.asarray(values.multiply(values).sum(axis=1), dtype=float).ravel())
            return Tile(values, self.form.cost[ids], length)
        # Products by float32 are enough to tell which few centers to measure exactly.
        kind = np.float32 if self.by_differences else np.float64
        values = np.empty((len(ids), self.n_features), dtype=kind)
        squares = np.empty(len(ids))
        gather(self.X, ids, self.origin, 1.0 / unit, values, squares)
        norm = squares if self.by_differences else self.form.cost[ids]
        return Tile(values, norm, np.sqrt(squares))

    def take(self, ids: np.ndarray) -> np.ndarray:
        """Return a few rows as float64 centers."""
        rows = self.X[ids]
        return (rows.toarray() if self.is_sparse else rows).astype(np.float64)


@contextmanager
def open_rows(X, weight, divergence, n_jobs=None) -> Iterator[MemoryRows]:
    """Hold a table open for a computation, with its threads; BLAS gets one thread in each.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n_rows, n_features)
        float32 or float64; used where it is, never copied.
    weight : ndarray of shape (n_rows,) or None
        None weighs every row 1.
    divergence : Divergence
        How rows are compared with centers.
    n_jobs : int or None
        Threads, as in joblib.
    """
    n_threads = effective_n_jobs(n_jobs)
    with threadpool_limits(1, user_api="blas"):
        if n_threads == 1:
            yield MemoryRows(X, weight, divergence, None)
        else:
            with ThreadPoolExecutor(n_threads) as pool:
                yield MemoryRows(X, weight, divergence, pool)


def _merge_in_pairs(parts: list[Summary]) -> Summary:
    """Add neighbours, then neighbours of neighbours: a tree shaped by positions alone."""
    while len(parts) > 1:
        for left, right in zip(parts[::2], parts[1::2], strict=False):
            left.weight[:] += right.weight
            left.total[:] += right.total
        parts = parts[::2]
    return parts[0]
