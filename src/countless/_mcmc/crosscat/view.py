"""One view: some columns, and their partition of the rows.

A row partition is proposed by sequential allocation: rows are assigned to clusters in random order,
each by its probability given the rows before it. The last few of these may be ignored, so that a
block of rows is processed at once. With z for the partition, x for the columns and q(z) for the
proposal probability, the importance weight ``p(z) p(x | z) / q(z)`` is an unbiased estimate of the
marginal likelihood p(x), of small variance where the columns separate clusters well. The order is
part of the proposal, so that a present partition can be evaluated under a newly drawn order.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from countless._labels import number_by_appearance
from countless._mcmc.collapsed import NO_TARGET, Partition, Setting, without_gaps
from countless._mcmc.crosscat.cells import Cells, SomeColumns
from countless._mcmc.split_merge import split_and_merge
from countless.kernels.cell_sweep import sweep_cells
from countless.priors import PartitionPrior, Tables


class View(NamedTuple):
    """Columns that share one partition of the rows."""

    columns: np.ndarray  # (n_own_columns,), increasing
    labels: np.ndarray  # (n_rows,) int32, 0, 1, ...
    prior: PartitionPrior  # of the partition, with numeric parameters
    tables: Tables  # of the prior

    @property
    def sizes(self) -> np.ndarray:
        """Number of rows of each cluster."""
        return np.bincount(self.labels)

    def log_prior(self) -> float:
        """Return the log prior probability of the partition."""
        return self.prior.log_prob(sizes=self.sizes)


class Proposal(NamedTuple):
    """A proposed partition with its proposal probability and importance weight."""

    labels: np.ndarray
    log_chosen: float  # log proposal probability
    log_weight: float  # log importance weight: joint density over proposal probability


def propose_rows(
    cells: Cells,
    columns: np.ndarray,
    prior: PartitionPrior,
    tables: Tables,
    random: np.random.Generator,
    given: np.ndarray | None = None,
) -> Proposal:
    """Propose a row partition for some columns, or evaluate a given one as a proposal."""
    part = cells.part(columns)
    n = len(cells.rows)
    order = random.permutation(n)
    rows = part.rows()[order]
    target = NO_TARGET
    if given is not None:
        target = number_by_appearance(given[order])[1].astype(np.int32)
    nobody = Partition(np.full(n, -1, np.int32), np.zeros(0, np.int64), part.empty(0))
    drawn, log_chosen = sweep_rows(nobody, part, rows, tables, random, target, lags=True)
    log_joint = prior.log_prob(sizes=drawn.sizes) + part.log_marginal(drawn.statistics).sum()
    labels = np.empty(n, dtype=np.int32)
    labels[order] = drawn.labels
    return Proposal(labels, log_chosen, float(log_joint) - log_chosen)


def sweep_rows(
    partition: Partition,
    part: SomeColumns,
    rows: np.ndarray,
    tables: Tables,
    random: np.random.Generator,
    target: np.ndarray = NO_TARGET,
    lags: bool = False,
) -> tuple[Partition, float]:
    """Draw the cluster of each row in turn; return the partition and its log probability.

    Rows without a label are assigned one; ``target`` and ``lags`` are those of the kernel.
    """
    labels, (_, sizes, statistics) = partition.labels.copy(), partition
    log_chosen, i = 0.0, 0
    while i < len(rows):
        capacity = 2 * len(sizes) + 6
        blocks = part.blocks(rows, capacity, statistics)
        sizes = np.pad(sizes, (0, capacity - len(sizes)))
        i, chosen = sweep_cells(
            blocks, lags, sizes, rows, i, labels, target, tables.join, tables.open, random
        )
        log_chosen, statistics = log_chosen + chosen, blocks.cells.statistics
    return without_gaps(labels, sizes, statistics), log_chosen


def move_rows(
    cells: Cells,
    view: View,
    given_prior: PartitionPrior,
    random: np.random.Generator,
    n_tries: int,
) -> View:
    """Update a view by a Gibbs sweep, split-merge moves, and a draw of its prior's parameters."""
    part = cells.part(view.columns)
    rows = part.rows()
    partition = Partition(view.labels, view.sizes, part.statistics(rows, view.labels))
    partition, _ = sweep_rows(partition, part, rows, view.tables, random)
    if n_tries:
        partition = split_and_merge(partition, Setting(part, rows, view.tables, random), n_tries)
    view = view._replace(labels=partition.labels)
    if not given_prior.hyperpriors:
        return view
    prior = given_prior.update_parameters(view.prior, partition.sizes, random)
    return view._replace(prior=prior, tables=prior.tables(len(rows)))
