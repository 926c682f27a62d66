"""One Markov chain over partitions of the rows and of the columns of a table.

Given the clusters of the columns, the sufficient statistics of a row are the sums of its cells over
each column cluster, and the rows are moved as in a mixture; then the columns likewise, given the
clusters of the rows. Each block of a row cluster and a column cluster has its own parameters, which
are integrated out (Murphy, Machine Learning: a Probabilistic Perspective, section 25.6.1).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from countless._mcmc.bicluster.bundle import Bundle
from countless._mcmc.bicluster.cells import CellStatistics
from countless._mcmc.collapsed import Partition, Setting, collapsed_sweep, partition_of
from countless._mcmc.gibbs import Draw
from countless._mcmc.split_merge import split_and_merge
from countless.models.protocol import BoundModel
from countless.priors import PartitionPrior

# Split-merge proposals for rows, and for columns, after each sweep.
N_TRIES = 4
# Initial state: rows are clustered by at most this number of columns, each a singleton cluster, in
# this number of sweeps; then columns are clustered given these rows, in as many.
START_COLUMNS, START_SWEEPS = 64, 5
# Largest lookup table of the terms of log marginals by count; otherwise it has twice the count of
# the largest block. Tables depend on hyperparameters, and are computed again when these change.
MOST_COUNTS = 2**16


class BiclusterDraw(NamedTuple):
    """One posterior draw: both partitions, each with the joint log density of all."""

    rows: Draw
    columns: Draw

    @property
    def log_joint(self) -> float:
        """The log joint density of the cells and of all sampled quantities."""
        return self.rows.log_joint


class Side:
    """The partition of the rows, or of the columns, and its prior."""

    def __init__(self, n_items: int, given_prior: PartitionPrior, random: np.random.Generator):
        self.labels = np.zeros(n_items, dtype=np.int32)
        self.given_prior = given_prior
        self.prior = given_prior.draw_parameters(random)

    @property
    def sizes(self) -> np.ndarray:
        return np.bincount(self.labels)

    def move(
        self, model: Bundle, rows: np.ndarray, random: np.random.Generator, n_tries: int
    ) -> Partition:
        """Make a Gibbs sweep and split-merge proposals, and sample the prior's parameters."""
        setting = Setting(model, rows, self.prior.tables(len(rows)), random)
        partition = collapsed_sweep(partition_of(model, rows, self.labels), setting)
        partition = split_and_merge(partition, setting, n_tries)
        self.labels = partition.labels
        if self.given_prior.hyperpriors:
            self.prior = self.given_prior.update_parameters(self.prior, partition.sizes, random)
        return partition

    def log_prob(self) -> float:
        """Return the log density of the partition and of the parameters of its prior.

        The normalizing constant of a prior without sampled parameters may be omitted.
        """
        total = self.prior.log_weight(self.sizes) + self.given_prior.log_prob_parameters(self.prior)
        if self.prior.consistent:
            total -= self.prior.log_normalizer(len(self.labels))
        return float(total)


class BiclusterChain:
    """A chain over both partitions, their priors' parameters, and the model's hyperparameters.

    Parameters
    ----------
    model : BoundModel
        Component model of one cell.
    cells : CellStatistics
    priors : (PartitionPrior, PartitionPrior)
        Priors of the partitions of the rows and of the columns.
    random : numpy.random.Generator
    split_merge, sample_hyper : bool
    """

    def __init__(
        self,
        model: BoundModel,
        cells: CellStatistics,
        priors: tuple[PartitionPrior, PartitionPrior],
        random: np.random.Generator,
        *,
        split_merge: bool = True,
        sample_hyper: bool = True,
    ) -> None:
        self.model, self.cells, self.random = model, cells, random
        self.rows, self.columns = (
            Side(n_items, given_prior, random)
            for n_items, given_prior in zip(cells.shape, priors, strict=True)
        )
        self._n_tries = N_TRIES if split_merge else 0
        self._free = np.flatnonzero(model.hyper.free) if sample_hyper else np.empty(0, dtype=int)
        self._blocks: np.ndarray  # (n_blocks, width), the statistics of each
        self._start()

    @property
    def n_clusters(self) -> int:
        """Number of row clusters."""
        return len(self.rows.sizes)

    def sweep(self) -> None:
        """Update both partitions, and sample hyperparameters of the model."""
        tables = self._tables()
        self._move(self.rows, self.cells.of_rows(self.columns.labels), tables)
        partition = self._move(self.columns, self.cells.of_columns(self.rows.labels), tables)
        self._blocks = partition.statistics.reshape(-1, self.model.width)
        if len(self._free):
            self.model = self.model.sample_hyper(self._blocks, self.random, self._free)

    def log_joint(self) -> float:
        """Return the log joint density of cells, both partitions and all sampled parameters."""
        total = float(self.model.log_marginal(self._blocks).sum())
        total += self.rows.log_prob() + self.columns.log_prob()
        return total + self.model.hyper.log_prior(self.model.hyper.value)

    def record(self) -> BiclusterDraw:
        """Return the present state as a draw."""
        log_joint, hyper = self.log_joint(), self.model.hyper.value
        return BiclusterDraw(
            *(Draw(side.labels, log_joint, side.prior, hyper) for side in (self.rows, self.columns))
        )

    def _start(self) -> None:
        """Cluster the rows by some columns, each a singleton cluster, and then the columns.

        With all columns in one cluster, rows would differ in little but their means.
        """
        n_rows, n_columns = self.cells.shape
        some = self.random.permutation(n_columns)[:START_COLUMNS]
        part = np.full(n_columns, -1)
        part[some] = np.arange(len(some))
        sums, tables = self.cells.of_rows(part), self.model.tables(n_rows)
        for _ in range(START_SWEEPS):
            self._move(self.rows, sums, tables)
        sums = self.cells.of_columns(self.rows.labels)
        tables = self.model.tables(min(len(self.cells.value), MOST_COUNTS))
        for _ in range(START_SWEEPS):
            partition = self._move(self.columns, sums, tables)
        self._blocks = partition.statistics.reshape(-1, self.model.width)

    def _move(self, side: Side, sums: np.ndarray, tables: np.ndarray) -> Partition:
        """Update one partition, given the sums of its items over each cluster of the other."""
        model = Bundle(self.model, sums.shape[1] // self.model.width, tables)
        return side.move(model, sums, self.random, self._n_tries)

    def _tables(self) -> np.ndarray:
        return self.model.tables(min(2 * int(self._blocks[:, 0].max()), MOST_COUNTS))
