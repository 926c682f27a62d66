"""One view: some columns, and the partition of the rows that they share.

A partition is proposed by giving rows to clusters one by one, in random order, each by its
probability given the rows before it. With z for the partition, x for the columns and q for the
probability of having drawn z, ``p(z) p(x | z) / q(z)`` is then what the rows before foretold of
each row, multiplied: an unbiased estimate of p(x), whose variance is small where columns tell
clusters apart. The order is part of what is drawn, so that a partition that is there already may
be judged under an order drawn anew.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from countless._labels import number_by_appearance
from countless.bayes.collapsed import NO_TARGET, Partition, collapsed_sweep
from countless.bayes.crosscat.cells import Cells
from countless.bayes.split_merge import split_and_merge
from countless.kernels.gibbs import sweep
from countless.priors import PartitionPrior, Tables


class View(NamedTuple):
    """Columns that see the rows in the same way."""

    columns: np.ndarray  # (n_own_columns,), rising
    labels: np.ndarray  # (n_rows,) int32, 0, 1, ...
    prior: PartitionPrior  # of the partition, all parameters numbers
    tables: Tables  # of the prior

    @property
    def sizes(self) -> np.ndarray:
        """The rows of each cluster."""
        return np.bincount(self.labels)

    def log_prior(self) -> float:
        """Return the log probability of the partition."""
        return self.prior.log_prob(sizes=self.sizes)


class Proposal(NamedTuple):
    """A partition with what there is to know about having drawn it."""

    labels: np.ndarray
    log_chosen: float  # the log probability of drawing it
    log_weight: float  # of its prior and its columns, over that


def propose_rows(
    cells: Cells,
    columns: np.ndarray,
    prior: PartitionPrior,
    tables: Tables,
    random: np.random.Generator,
    given: np.ndarray | None = None,
) -> Proposal:
    """Draw a partition for some columns; or judge a given one as if it had been drawn."""
    part = cells.part(columns)
    rows = part.rows()
    n = len(rows)
    order = random.permutation(n)
    target = NO_TARGET
    if given is not None:
        target = np.empty(n, dtype=np.int32)
        target[order] = number_by_appearance(given[order])[1]
    labels = np.full(n, -1, dtype=np.int32)
    sizes, statistics = np.zeros(0, dtype=np.int64), np.zeros((0, part.width))
    log_chosen, log_foretold, visit = 0.0, -prior.log_normalizer(n), 0
    while visit < n:
        room = 2 * len(sizes) + 8
        clusters = part.clusters(room, statistics)
        sizes = np.pad(sizes, (0, room - len(sizes)))
        visit, chosen, foretold = sweep(
            clusters, sizes, rows, order, visit, labels, target, tables.join, tables.open, random
        )
        log_chosen, log_foretold = log_chosen + chosen, log_foretold + foretold
        statistics = clusters.statistics
    return Proposal(labels, log_chosen, log_foretold)


def move_rows(
    cells: Cells,
    view: View,
    believed: PartitionPrior,
    random: np.random.Generator,
    n_tries: int,
) -> View:
    """Move the rows of a view, by themselves and by clusters, and the parameters of its prior."""
    part = cells.part(view.columns)
    rows = part.rows()
    partition = Partition(view.labels, view.sizes, part.statistics(rows, view.labels))
    partition = collapsed_sweep(partition, part, rows, view.tables, random)
    if n_tries:
        partition = split_and_merge(partition, part, rows, view.tables, random, n_tries)
    view = view._replace(labels=partition.labels)
    if not believed.believed:
        return view
    prior = believed.update_parameters(view.prior, partition.sizes, random)
    return view._replace(prior=prior, tables=prior.tables(len(rows)))
