"""Collapsed Gibbs sampling of partitions: parameters of clusters are integrated out.

The state is a partition with the sufficient statistics of its clusters. A sweep draws the cluster
of each row given those of all others, with weight f(s + 1) / f(s) p(x | rows of the cluster) for a
cluster of s others, f as in `countless.priors`, and f(1) h(k) p(x) for a new one (Murphy's
algorithm 25.1, Neal's algorithm 3).

Most rows never change their cluster; rows between overlapping clusters do, and there a chain mixes
slowly. So a sweep may scan such ambiguous rows several times. They are determined during the
warm-up of the chain; afterwards the scan order is fixed, which leaves the posterior invariant. Rows
that move seldom are included: together they keep the boundary between two clusters in place.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from countless.kernels.gibbs import sweep
from countless.models.protocol import ClusterModel
from countless.priors import Tables

NO_TARGET = np.empty(0, dtype=np.int32)
NOTHING = np.empty(0)  # no cluster may open; odds are not recorded
# A row is ambiguous if the mean odds of its second most probable cluster exceed the first number.
# It is scanned MORE_VISITS more times in each sweep; the extra scans of all rows together are at
# most MOST_MORE times the number of rows.
RESTLESS, MORE_VISITS, MOST_MORE = 0.005, 6, 2


class Partition(NamedTuple):
    """A partition of the rows into nonempty clusters."""

    labels: np.ndarray  # (n_rows,) int32
    sizes: np.ndarray  # (n_clusters,) int64
    statistics: np.ndarray  # (n_clusters, width)


class Setting(NamedTuple):
    """The target of the moves of a partition: rows, component model, and the prior's weights."""

    model: ClusterModel
    rows: np.ndarray  # (n_rows, n_features), as the model takes them
    tables: Tables
    random: np.random.Generator


class Visits:
    """The scan order of a sweep: all rows, then extra scans of the ambiguous ones.

    Parameters
    ----------
    n_rows : int
        Number of rows.
    n_settling : int
        Number of warm-up sweeps; in their second half the odds of the rows are recorded.
    """

    def __init__(self, n_rows: int, n_settling: int) -> None:
        self.order = np.arange(n_rows)
        self._n_settling, self._n_swept = n_settling, 0
        self._odds = np.zeros(n_rows)

    @property
    def looks(self) -> bool:
        """Whether the next sweep records the odds of the rows."""
        return self._n_settling // 2 <= self._n_swept < self._n_settling

    def note(self, log_odds: np.ndarray) -> None:
        """Record the log odds of each row's second most probable cluster during warm-up.

        The last warm-up sweep fixes the scan order.
        """
        if self.looks:
            self._odds += np.exp(log_odds)
        self._n_swept += 1
        if self._n_swept == self._n_settling:
            n_looks = self._n_settling - self._n_settling // 2
            restless = np.flatnonzero(self._odds > RESTLESS * n_looks)
            n_more = min(MORE_VISITS, MOST_MORE * len(self._odds) // max(len(restless), 1))
            self.order = np.concatenate([self.order, *[restless] * n_more])


def partition_of(model: ClusterModel, rows: np.ndarray, labels: np.ndarray) -> Partition:
    """Return the partition given by labels 0, 1, ..., all of which occur."""
    labels = np.array(labels, dtype=np.int32)
    return Partition(labels, np.bincount(labels), model.statistics(rows, labels))


def collapsed_sweep(
    partition: Partition, setting: Setting, visits: Visits | None = None
) -> Partition:
    """Draw the cluster of each row in turn, given all others; ambiguous rows several times."""
    model, rows, tables, random = setting
    labels = partition.labels.copy()
    order = np.arange(len(rows)) if visits is None else visits.order
    odds = NOTHING if visits is None or not visits.looks else np.empty(len(rows))
    sizes, statistics = partition.sizes, partition.statistics
    visit, weights = 0, (tables.join, tables.open)
    while visit < len(order):
        capacity = 2 * len(sizes) + 6
        clusters = model.clusters(capacity, statistics)
        sizes = np.concatenate([sizes, np.zeros(capacity - len(sizes), dtype=np.int64)])
        visit, _, _ = sweep(
            clusters, sizes, rows, order, visit, labels, NO_TARGET, *weights, random, odds
        )
        statistics = clusters.statistics
    if visits is not None:
        visits.note(odds)
    return without_gaps(labels, sizes, statistics)


def without_gaps(labels: np.ndarray, sizes: np.ndarray, statistics: np.ndarray) -> Partition:
    """Drop empty clusters and renumber the others in their order."""
    used = sizes > 0
    number = np.cumsum(used, dtype=np.int32) - np.int32(1)
    return Partition(number[labels], sizes[used], statistics[used])
