"""Gibbs sweeps over partitions, with the parameters of clusters integrated out or sampled.

Collapsed: the state is a partition with the sufficient statistics of its clusters. A sweep draws
the cluster of each row given those of all others, with weight f(s + 1) / f(s) p(x | rows of the
cluster) for a cluster of s others, f as in `countless.priors`, and f(1) h(k) p(x) for a new one
(Murphy's algorithm 25.1, Neal's algorithm 3 [1]_).

Most rows never change their cluster; rows between overlapping clusters do, and there a chain mixes
slowly. So a sweep may scan such ambiguous rows several times. They are determined during the
warm-up of the chain; afterwards the scan order is fixed, which leaves the posterior invariant. Rows
that move seldom are included: together they keep the boundary between two clusters in place.

Uncollapsed: each sweep draws the parameters of every cluster from their posterior. Then each row is
assigned to a cluster of s others with weight f(s + 1) / f(s) p(x | its parameters), or to a new
one, whose parameters are drawn immediately (Neal's algorithm 2). It is the sampler that Kulis and
Jordan compare DP-means with (section 6 of their paper). It mixes more slowly.

References
----------
.. [1] R. M. Neal, "Markov chain sampling methods for Dirichlet process mixture models", JCGS 9,
   2000.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, cast

import numpy as np

from countless.kernels.arrays import plain
from countless.kernels.gibbs import sweep, sweep_densities
from countless.models import BoundModel
from countless.models.protocol import ClusterModel
from countless.priors import Tables

NO_TARGET = np.empty(0, dtype=np.int32)
NOTHING = np.empty(0)  # no cluster may open; odds are not recorded


@dataclass(frozen=True)
class Scans:
    """Constants of the extra scans of ambiguous rows, chosen by ``benchmarks/mixture.py``."""

    ambiguous_odds: float = 0.005  # mean odds of the second most probable cluster, at least
    extra_scans: int = 6  # of each ambiguous row in each sweep, at most
    most_extra: int = 2  # extra scans of all rows together, as a multiple of their number


SCANS = Scans()


class Partition(NamedTuple):
    """A partition of the rows into nonempty clusters."""

    labels: np.ndarray  # (n_rows,) int32
    sizes: np.ndarray  # (n_clusters,) int64
    statistics: np.ndarray  # (n_clusters, width)


class Target(NamedTuple):
    """The target of the moves of a partition: rows, component model, and the prior's weights."""

    model: ClusterModel
    rows: np.ndarray  # (n_rows, n_features), as the model takes them
    tables: Tables
    random: np.random.Generator


class ScanOrder:
    """The scan order of a sweep: all rows, then extra scans of the ambiguous ones.

    Parameters
    ----------
    n_rows : int
        Number of rows.
    n_warm_up : int
        Number of warm-up sweeps; in their second half the odds of the rows are recorded.
    """

    def __init__(self, n_rows: int, n_warm_up: int) -> None:
        self.order = np.arange(n_rows)
        self._n_warm_up, self._n_swept = n_warm_up, 0
        self._odds = np.zeros(n_rows)

    @property
    def records_odds(self) -> bool:
        """Whether the next sweep records the odds of the rows."""
        return self._n_warm_up // 2 <= self._n_swept < self._n_warm_up

    def record(self, log_odds: np.ndarray) -> None:
        """Record the log odds of each row's second most probable cluster during warm-up.

        The last warm-up sweep fixes the scan order.
        """
        if self.records_odds:
            self._odds += np.exp(log_odds)
        self._n_swept += 1
        if self._n_swept == self._n_warm_up:
            n_recorded = self._n_warm_up - self._n_warm_up // 2
            ambiguous = np.flatnonzero(self._odds > SCANS.ambiguous_odds * n_recorded)
            n_more = min(
                SCANS.extra_scans, SCANS.most_extra * len(self._odds) // max(len(ambiguous), 1)
            )
            self.order = np.concatenate([self.order, *[ambiguous] * n_more])


def partition_of(model: ClusterModel, rows: np.ndarray, labels: np.ndarray) -> Partition:
    """Return the partition given by labels 0, 1, ..., all of which occur."""
    labels = np.array(labels, dtype=np.int32)
    return Partition(labels, np.bincount(labels), model.statistics(rows, labels))


def collapsed_sweep(
    partition: Partition, target: Target, scan_order: ScanOrder | None = None
) -> Partition:
    """Draw the cluster of each row in turn, given all others; ambiguous rows several times."""
    model, rows, tables, random = target
    labels = partition.labels.copy()
    order = np.arange(len(rows)) if scan_order is None else scan_order.order
    odds = NOTHING if scan_order is None or not scan_order.records_odds else np.empty(len(rows))
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
    if scan_order is not None:
        scan_order.record(odds)
    return drop_empty_clusters(labels, sizes, statistics)


def drop_empty_clusters(labels: np.ndarray, sizes: np.ndarray, statistics: np.ndarray) -> Partition:
    """Drop empty clusters and renumber the others in their order."""
    used = sizes > 0
    number = np.cumsum(used, dtype=np.int32) - np.int32(1)
    return Partition(number[labels], sizes[used], statistics[used])


# Number of rows whose densities are computed at once, which bounds memory.
BLOCK_ROWS = 2**14


def uncollapsed_sweep(partition: Partition, target: Target) -> Partition:
    """Draw the parameters of each cluster, then the cluster of each row in turn."""
    _, rows, tables, random = target
    model = cast(BoundModel, target.model)  # other cluster models cannot draw parameters
    labels, sizes = partition.labels.copy(), partition.sizes.copy()
    drawn = model.draw_parameters(partition.statistics, random)
    parameters = {name: np.array(value) for name, value in drawn.items()}
    for start in range(0, len(rows), BLOCK_ROWS):
        block, names = rows[start : start + BLOCK_ROWS], labels[start : start + BLOCK_ROWS]
        fresh = model.log_predictive(block, model.empty())[:, 0]
        densities = plain(model.log_density(block, parameters))
        row, opened = 0, False
        while row < len(block):
            row, opened = sweep_densities(
                densities, fresh, row, sizes, names, tables.join, tables.open, random
            )
            if opened:  # by the previous row
                added = model.draw_parameters(model.statistics(block[row - 1 : row])[None], random)
                slot = int(sizes.argmin())
                if sizes[slot] > 0:
                    slot = len(sizes)
                    sizes = np.append(sizes, 0)
                    parameters = {
                        name: np.concatenate([value, added[name]])
                        for name, value in parameters.items()
                    }
                    densities = np.pad(densities, ((0, 0), (0, 1)))
                for name, value in parameters.items():
                    value[slot] = added[name][0]
                densities[row:, slot] = model.log_density(block[row:], added)[:, 0]
                names[row - 1], sizes[slot] = slot, 1
    return drop_empty_clusters(labels, sizes, model.statistics(rows, labels, len(sizes)))
