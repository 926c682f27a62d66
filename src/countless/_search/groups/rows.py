"""Rows of several data sets, contiguous by data set, in memory or in a file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple

import numpy as np

from countless._data import open_rows
from countless._data.backend import LocalBackend
from countless._data.block import Block
from countless._data.fixed_point import Sums
from countless._data.npy import FlatFile
from countless._data.stored import scratch_folder, sorted_copy
from countless._search.assignment import Assignment, add_block
from countless._search.split import halve, worth_halving
from countless.divergences import get_divergence
from countless.kernels.hdp import measure
from countless.kernels.hdp_moves import halve_rows, sum_rows
from countless.kernels.rows import Dense, Points

NO_COST = np.empty(0)  # rows are compared by differences


class SideHalves(NamedTuple):
    """The result of splitting some clusters in two."""

    cluster: np.ndarray  # (m,) the clusters
    gain: np.ndarray  # (m,) decrease of the within-cluster cost, -inf: cannot be split
    near: Sums  # of the first half
    far: Sums  # of the second half
    side: np.ndarray  # (n_rows,) bool, True in the second half


class GroupedRows:
    """Rows on one machine, with float64 sums relative to the origin. Made by `open_grouped`."""

    def __init__(self, backend: Any):
        self.backend: LocalBackend = backend
        self.n_rows, self.n_features, self.spans = backend.n_rows, backend.n_features, backend.spans
        self.origin, self.total_cost = backend.fixed_point.origin, backend.fixed_point.total_cost

    def load(self, start: int, stop: int) -> Block:
        """Return some consecutive rows."""
        return self.backend.load(start, stop)

    def seen(self, start: int, stop: int) -> np.ndarray:
        """Return some consecutive rows relative to the origin."""
        return self.load(start, stop).values - self.origin

    def distances(self, start: int, stop: int, centers: np.ndarray) -> np.ndarray:
        """Return the squared distances of some rows from centers given relative to the origin."""
        block = self.seen(start, stop)
        values = block @ (-2.0 * centers.T)
        values += self.squares(start, stop, block)[:, None]
        values += np.einsum("ij,ij->i", centers, centers)
        return np.maximum(values, 0.0, out=values)

    def squares(self, start: int, stop: int, block: np.ndarray) -> np.ndarray:
        """Return the squared norms of some rows relative to the origin."""
        return np.einsum("ij,ij->i", block, block)

    def seen_at(self, ids: np.ndarray) -> np.ndarray:
        """Return any rows, in float64, relative to the origin."""
        return self.backend.points(ids) - self.origin

    def each(self, function: Callable, items: Iterable[tuple]) -> list:
        """Call ``function(*item)`` for every item, on threads; return answers in order."""
        return self.backend.each(function, items)

    def sums(self, labels: np.ndarray, n_clusters: int) -> Sums:
        """Return the weight and the sum of each cluster."""
        fixed_point = self.backend.fixed_point
        summary = fixed_point.empty(n_clusters)
        self.backend.run(add_block, {"labels": labels}, fixed_point, into=summary)
        return fixed_point.to_floats(summary)

    def means(self, sums: Sums) -> np.ndarray:
        """Return the mean of each cluster, in the table's coordinates."""
        return self.origin + sums.total / sums.weight[:, None]

    def objective(self, sums: Sums, penalty: float) -> float:
        """Return the cost of all rows at their clusters' means, plus the penalties."""
        energy = self.backend.fixed_point.divergence.energy(*sums)
        return float(self.total_cost + energy.sum() + penalty * len(sums.weight))

    def halve(self, labels: np.ndarray, price: float) -> SideHalves:
        """Split in two the clusters whose cost exceeds a price."""
        clusters, floats = Assignment(self.backend), self.backend.fixed_point.to_floats
        clusters.set_labels(labels)
        cluster, farthest = worth_halving(clusters, price)
        if not len(cluster):
            nothing = floats(clusters.summary.take(cluster))
            return SideHalves(cluster, np.empty(0), nothing, nothing, np.zeros(self.n_rows, bool))
        halves = halve(clusters, cluster, farthest)
        whole, far = floats(clusters.summary.take(cluster)), floats(halves.far)
        near = Sums(whole.weight - far.weight, whole.total - far.total)
        side = self.backend.get(clusters.state, "marked") > 0
        return SideHalves(cluster, halves.gain, near, far, side)


class FewRows(GroupedRows):
    """Rows of one block, stored relative to the origin: each step is one call of a kernel.

    Such steps take less time than dispatching blocks to threads.
    """

    def __init__(self, backend: Any):
        super().__init__(backend)
        self._seen = super().seen(0, self.n_rows)
        self._squares = super().squares(0, self.n_rows, self._seen)

    def seen(self, start: int, stop: int) -> np.ndarray:
        return self._seen[start:stop]

    def seen_at(self, ids: np.ndarray) -> np.ndarray:
        return self._seen[ids]

    def squares(self, start: int, stop: int, block: np.ndarray) -> np.ndarray:
        return self._squares[start:stop]

    def distances(self, start: int, stop: int, centers: np.ndarray) -> np.ndarray:
        # In few columns a plain loop over distances is faster than a matrix product.
        if self.n_features > 8:
            return super().distances(start, stop, centers)
        distance = np.empty((stop - start, len(centers)))
        measure(Dense(self._seen[start:stop], NO_COST), Points(centers), distance)
        return distance

    def each(self, function: Callable, items: Iterable[tuple]) -> list:
        return [function(*item) for item in items]

    def sums(self, labels: np.ndarray, n_clusters: int) -> Sums:
        sums = Sums(np.zeros(n_clusters), np.zeros((n_clusters, self.n_features)))
        sum_rows(self._seen, labels, *sums)
        return sums

    def halve(self, labels: np.ndarray, price: float) -> SideHalves:
        n_clusters, side = int(labels.max()) + 1, np.zeros(self.n_rows, dtype=bool)
        near, far = (Sums(np.zeros(n_clusters), np.zeros((n_clusters, self.n_features)))
                     for _ in range(2))  # fmt: skip
        gain = np.empty(n_clusters)
        n_passes = 3  # later ones change little
        halve_rows(self._seen, labels, price, n_passes, side, *near, *far, gain)
        return SideHalves(np.arange(n_clusters), gain, near, far, side)


@contextmanager
def open_grouped(table: Any, order: np.ndarray | None, n_jobs: int | None) -> Iterator[GroupedRows]:
    """Open an array or a FlatFile, in an order that makes data sets contiguous.

    ``order=None`` means that they already are.
    """
    with ExitStack() as stack:
        if order is not None and isinstance(table, FlatFile):
            table = sorted_copy(table, order, stack.enter_context(scratch_folder()))
        elif order is not None:
            table = table[order]
        backend = stack.enter_context(open_rows(table, None, get_divergence("sqeuclidean"), n_jobs))
        yield FewRows(backend) if len(backend.spans) == 1 else GroupedRows(backend)
