"""Partitions moved given the data, parameters of clusters integrated out.

The state is a partition with the statistics of its clusters. A sweep draws the cluster of each row
given those of all others, with weight f(s + 1) / f(s) p(x | rows of the cluster) for a cluster of s
others, f as in `countless.priors`, and f(1) h(k) p(x) for a new one (Murphy's algorithm 25.1,
Neal's algorithm 3).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from countless.kernels.gibbs import sweep
from countless.models.protocol import ClusterModel
from countless.priors import Tables

NO_TARGET = np.empty(0, dtype=np.int32)


class Partition(NamedTuple):
    """Rows in clusters, each of which has some."""

    labels: np.ndarray  # (n_rows,) int32
    sizes: np.ndarray  # (n_clusters,) int64
    statistics: np.ndarray  # (n_clusters, width)


def partition_of(model: ClusterModel, rows: np.ndarray, labels: np.ndarray) -> Partition:
    """Return the partition of labels 0, 1, ..., all of which occur."""
    labels = np.array(labels, dtype=np.int32)
    return Partition(labels, np.bincount(labels), model.statistics(rows, labels))


def collapsed_sweep(
    partition: Partition,
    model: ClusterModel,
    rows: np.ndarray,
    tables: Tables,
    random: np.random.Generator,
) -> Partition:
    """Draw the cluster of each row in turn, given all others."""
    labels = partition.labels.copy()
    order = np.arange(len(rows))
    sizes, statistics = partition.sizes, partition.statistics
    visit = 0
    while visit < len(rows):
        room = 2 * len(sizes) + 6
        clusters = model.clusters(room, statistics)
        sizes = np.concatenate([sizes, np.zeros(room - len(sizes), dtype=np.int64)])
        visit, _, _ = sweep(
            clusters, sizes, rows, order, visit, labels, NO_TARGET, tables.join, tables.open, random
        )
        statistics = clusters.statistics
    return without_gaps(labels, sizes, statistics)


def without_gaps(labels: np.ndarray, sizes: np.ndarray, statistics: np.ndarray) -> Partition:
    """Return the clusters that have rows, in their order."""
    used = sizes > 0
    number = np.cumsum(used, dtype=np.int32) - np.int32(1)
    return Partition(number[labels], sizes[used], statistics[used])
