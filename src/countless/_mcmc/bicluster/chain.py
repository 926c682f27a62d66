"""One Markov chain over partitions of the rows and of the columns of a table.

Given the clusters of the columns, the sufficient statistics of a row are the sums of its cells over
each column cluster, and the rows are moved as in a mixture; then the columns likewise, given the
clusters of the rows. Each block of a row cluster and a column cluster has its own parameters, which
are integrated out (Murphy, Machine Learning: a Probabilistic Perspective, section 25.6.1).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from countless._mcmc.bicluster.cells import CellStatistics
from countless._mcmc.gibbs import Partition, Target, collapsed_sweep, partition_of
from countless._mcmc.partition_chain import Draw
from countless._mcmc.split_merge import split_and_merge
from countless.kernels.models_bundles import BundleClusters
from countless.models.protocol import BoundModel, ClusterModel
from countless.priors import PartitionPrior


class Bundle(ClusterModel):
    """The model of rows given column clusters: independent cell models, one for each cluster.

    A row consists of the sufficient statistics of ``n_parts`` sets of cells. ``tables`` are the
    lookup tables of the cells' model, by count.
    """

    def __init__(self, cell: BoundModel, n_parts: int, tables: np.ndarray):
        self.cell, self.n_parts, self.tables_of_cell = cell, n_parts, tables
        self.width = n_parts * cell.width

    def _allocate(self, capacity: int) -> BundleClusters:
        parts = np.zeros(((capacity + 1) * self.n_parts, self.cell.width))
        return BundleClusters(
            statistics=parts[: capacity * self.n_parts].reshape(capacity, self.width),
            parts=parts,
            marginals=np.zeros((capacity, self.n_parts)),
            found=np.empty((2, capacity)),
            chosen=np.empty(capacity, dtype=np.int64),
            tables=self.tables_of_cell,
            cell=self.cell.clusters(capacity),
        )


@dataclass(frozen=True)
class Tuning:
    """Constants of a chain, chosen by ``benchmarks/bicluster.py``."""

    proposals: int = 4  # split-merge proposals for rows, and for columns, after each sweep
    initial_columns: int = 64  # columns that rows are first clustered by, each a singleton cluster
    initial_sweeps: int = 5  # over the rows, and then over the columns
    # Largest lookup table of the terms of log marginals by count; otherwise it has twice the count
    # of the largest block. Tables are computed again when hyperparameters change.
    most_counts: int = 2**16


TUNING = Tuning()


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
        target = Target(model, rows, self.prior.tables(len(rows)), random)
        partition = collapsed_sweep(partition_of(model, rows, self.labels), target)
        partition = split_and_merge(partition, target, n_tries)
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
        self._n_tries = TUNING.proposals if split_merge else 0
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
        some = self.random.permutation(n_columns)[: TUNING.initial_columns]
        part = np.full(n_columns, -1)
        part[some] = np.arange(len(some))
        sums, tables = self.cells.of_rows(part), self.model.tables(n_rows)
        for _ in range(TUNING.initial_sweeps):
            self._move(self.rows, sums, tables)
        sums = self.cells.of_columns(self.rows.labels)
        tables = self.model.tables(min(len(self.cells.value), TUNING.most_counts))
        for _ in range(TUNING.initial_sweeps):
            partition = self._move(self.columns, sums, tables)
        self._blocks = partition.statistics.reshape(-1, self.model.width)

    def _move(self, side: Side, sums: np.ndarray, tables: np.ndarray) -> Partition:
        """Update one partition, given the sums of its items over each cluster of the other."""
        model = Bundle(self.model, sums.shape[1] // self.model.width, tables)
        return side.move(model, sums, self.random, self._n_tries)

    def _tables(self) -> np.ndarray:
        return self.model.tables(min(2 * int(self._blocks[:, 0].max()), TUNING.most_counts))
