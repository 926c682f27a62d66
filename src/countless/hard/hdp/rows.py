"""Rows of several data sets, the rows of a data set side by side, in memory or in a file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from countless.hard.divergence import get_divergence
from countless.hard.nearest import Nearest, add_block
from countless.hard.split import halve, worth_halving
from countless.rows import open_rows
from countless.rows.block import Block
from countless.rows.frame import Sums
from countless.rows.home import ThreadedRows
from countless.rows.table import FlatFile, scratch_folder, sorted_copy


class SideHalves(NamedTuple):
    """What splitting some clusters gives."""

    cluster: np.ndarray  # (m,) the clusters
    gain: np.ndarray  # (m,) how much splitting each lowers the cost of rows
    near: Sums
    far: Sums
    side: np.ndarray  # (n_rows,) bool, True in the far half


class GroupedRows:
    """Rows on one machine, with sums about the origin as numbers. Made by `open_grouped`."""

    def __init__(self, home: Any):
        self.home: ThreadedRows = home
        self.n_rows, self.n_features, self.spans = home.n_rows, home.n_features, home.spans
        self.origin, self.total_cost = home.frame.origin, home.frame.total_cost

    def load(self, start: int, stop: int) -> Block:
        """Return some consecutive rows."""
        return self.home.load(start, stop)

    def seen(self, start: int, stop: int) -> np.ndarray:
        """Return some consecutive rows as seen from the origin."""
        return self.load(start, stop).values - self.origin

    def points(self, ids: np.ndarray) -> np.ndarray:
        """Return any rows as float64 centers."""
        return self.home.points(ids)

    def each(self, function: Callable, items: Iterable[tuple]) -> list:
        """Call ``function(*item)`` for every item, on threads; return answers in order."""
        return self.home.each(function, items)

    def sums(self, labels: np.ndarray, n_clusters: int) -> Sums:
        """Return the weight and the sum of each cluster."""
        frame = self.home.frame
        summary = frame.empty(n_clusters)
        self.home.run(add_block, {"labels": labels}, frame, into=summary)
        return frame.floats(summary)

    def means(self, sums: Sums) -> np.ndarray:
        """Return the mean of each cluster, in the table's own coordinates."""
        return self.origin + sums.total / sums.weight[:, None]

    def objective(self, sums: Sums, penalty: float) -> float:
        """Return the cost of all rows at their clusters' means, plus the penalties."""
        energy = self.home.frame.divergence.energy(*sums)
        return float(self.total_cost + energy.sum() + penalty * len(sums.weight))

    def halve(self, labels: np.ndarray, price: float) -> SideHalves:
        """Halve the clusters that cost more than a price."""
        clusters, floats = Nearest(self.home), self.home.frame.floats
        clusters.start_from(labels)
        cluster, farthest = worth_halving(clusters, price)
        if not len(cluster):
            nothing = floats(clusters.summary.take(cluster))
            return SideHalves(cluster, np.empty(0), nothing, nothing, np.zeros(self.n_rows, bool))
        halves = halve(clusters, cluster, farthest)
        whole, far = floats(clusters.summary.take(cluster)), floats(halves.far)
        near = Sums(whole.weight - far.weight, whole.total - far.total)
        side = self.home.held(clusters.state, "marked")
        return SideHalves(cluster, halves.gain, near, far, side)


@contextmanager
def open_grouped(table: Any, order: np.ndarray | None, n_jobs: int | None) -> Iterator[GroupedRows]:
    """Hold an array or a FlatFile open, in an order that puts data sets side by side.

    None means that they are.
    """
    with scratch_folder() as folder:
        if order is not None:
            in_file = isinstance(table, FlatFile)
            table = sorted_copy(table, order, folder) if in_file else table[order]
        with open_rows(table, None, get_divergence("sqeuclidean"), n_jobs) as home:
            yield GroupedRows(home)
