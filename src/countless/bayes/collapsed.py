"""Partitions moved given the data, parameters of clusters integrated out.

The state is a partition with the statistics of its clusters. A sweep draws the cluster of each row
given those of all others, with weight f(s + 1) / f(s) p(x | rows of the cluster) for a cluster of s
others, f as in `countless.priors`, and f(1) h(k) p(x) for a new one (Murphy's algorithm 25.1,
Neal's algorithm 3).

Most rows stay where they are for good; where clusters overlap they come and go, and there a chain
takes its time. So a sweep may visit such rows several times: which they are it learns while the
chain settles, and then it is fixed, as it must be for the posterior to stay as it is. Rows that
seldom go count as well: many of them hold a border between two clusters where it is.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from countless.kernels.gibbs import sweep
from countless.models.protocol import ClusterModel
from countless.priors import Tables

NO_TARGET = np.empty(0, dtype=np.int32)
NOTHING = np.empty(0)  # no cluster may open; no odds are asked for
# Rows that are in their second likeliest cluster with such odds are restless, and are visited so
# many times more; but these visits are at most so many times the rows.
RESTLESS, MORE_VISITS, MOST_MORE = 0.005, 6, 2


class Partition(NamedTuple):
    """Rows in clusters, each of which has some."""

    labels: np.ndarray  # (n_rows,) int32
    sizes: np.ndarray  # (n_clusters,) int64
    statistics: np.ndarray  # (n_clusters, width)


class Setting(NamedTuple):
    """What partitions are moved in: their rows, what clusters look like, and their prior."""

    model: ClusterModel
    rows: np.ndarray  # (n_rows, n_features), as the model takes them
    tables: Tables
    random: np.random.Generator


class Visits:
    """The rows that a sweep visits: all of them, and then the restless ones again.

    Parameters
    ----------
    n_rows : int
        How many rows there are.
    n_settling : int
        How many sweeps the chain settles; in the second half of them one looks.
    """

    def __init__(self, n_rows: int, n_settling: int) -> None:
        self.order = np.arange(n_rows)
        self._n_settling, self._n_swept = n_settling, 0
        self._odds = np.zeros(n_rows)

    @property
    def looks(self) -> bool:
        """Whether the next sweep is one in which one looks."""
        return self._n_settling // 2 <= self._n_swept < self._n_settling

    def note(self, log_odds: np.ndarray) -> None:
        """Learn the log odds of the second likeliest cluster of each row, where one looks."""
        if self.looks:
            self._odds += np.exp(log_odds)
        self._n_swept += 1
        if self._n_swept == self._n_settling:
            n_looks = self._n_settling - self._n_settling // 2
            restless = np.flatnonzero(self._odds > RESTLESS * n_looks)
            n_more = min(MORE_VISITS, MOST_MORE * len(self._odds) // max(len(restless), 1))
            self.order = np.concatenate([self.order, *[restless] * n_more])


def partition_of(model: ClusterModel, rows: np.ndarray, labels: np.ndarray) -> Partition:
    """Return the partition of labels 0, 1, ..., all of which occur."""
    labels = np.array(labels, dtype=np.int32)
    return Partition(labels, np.bincount(labels), model.statistics(rows, labels))


def collapsed_sweep(
    partition: Partition, setting: Setting, visits: Visits | None = None
) -> Partition:
    """Draw the cluster of each row in turn, given all others; of some of them several times."""
    model, rows, tables, random = setting
    labels = partition.labels.copy()
    order = np.arange(len(rows)) if visits is None else visits.order
    odds = NOTHING if visits is None or not visits.looks else np.empty(len(rows))
    sizes, statistics = partition.sizes, partition.statistics
    visit, weights = 0, (tables.join, tables.open)
    while visit < len(order):
        room = 2 * len(sizes) + 6
        clusters = model.clusters(room, statistics)
        sizes = np.concatenate([sizes, np.zeros(room - len(sizes), dtype=np.int64)])
        visit, _, _ = sweep(
            clusters, sizes, rows, order, visit, labels, NO_TARGET, *weights, random, odds
        )
        statistics = clusters.statistics
    if visits is not None:
        visits.note(odds)
    return without_gaps(labels, sizes, statistics)


def without_gaps(labels: np.ndarray, sizes: np.ndarray, statistics: np.ndarray) -> Partition:
    """Return the clusters that have rows, in their order."""
    used = sizes > 0
    number = np.cumsum(used, dtype=np.int32) - np.int32(1)
    return Partition(number[labels], sizes[used], statistics[used])
