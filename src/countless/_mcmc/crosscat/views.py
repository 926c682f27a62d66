"""Views of CrossCat, and their Gibbs moves: rows between clusters, single columns between views.

A view is a set of columns that share one partition of the rows. Its row partition is proposed by
sequential allocation: rows are assigned to clusters in random order, each by its probability given
the rows before it. The last few of these may be ignored, so that a block of rows is processed at
once. With z for the partition, x for the columns and q(z) for the proposal probability, the
importance weight ``p(z) p(x | z) / q(z)`` is an unbiased estimate of the marginal likelihood p(x),
of small variance where the columns separate clusters well. The order is part of the proposal, so
that a present partition can be evaluated under a newly drawn order.

A column that is not the only one of its view is assigned to any view by its conditional probability
(Gibbs). And a column may open a singleton view, or leave it: the row partition of the singleton
view is proposed for that column, and its importance weight is used in place of the prior draws of
Neal's algorithm 8 [1]_. Each move leaves the posterior invariant.

References
----------
.. [1] R. M. Neal, "Markov chain sampling methods for Dirichlet process mixture models", JCGS 9,
   2000.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from countless._labels import number_by_appearance
from countless._mcmc.crosscat.column_models import ColumnModels, ColumnSubset
from countless._mcmc.gibbs import NO_TARGET, Partition, Target, drop_empty_clusters
from countless._mcmc.split_merge import split_and_merge
from countless.kernels.cell_sweep import sweep_cells
from countless.kernels.crosscat import draw_log
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
    log_proposal: float  # log proposal probability
    log_weight: float  # log importance weight: joint density over proposal probability


def propose_rows(
    models: ColumnModels,
    columns: np.ndarray,
    prior: PartitionPrior,
    tables: Tables,
    random: np.random.Generator,
    given: np.ndarray | None = None,
) -> Proposal:
    """Propose a row partition for some columns, or evaluate a given one as a proposal."""
    subset = models.subset(columns)
    n = len(models.rows)
    order = random.permutation(n)
    rows = subset.rows()[order]
    target = NO_TARGET
    if given is not None:
        target = number_by_appearance(given[order])[1].astype(np.int32)
    no_clusters = Partition(np.full(n, -1, np.int32), np.zeros(0, np.int64), subset.empty(0))
    drawn, log_proposal = sweep_rows(no_clusters, subset, rows, tables, random, target, lags=True)
    log_joint = prior.log_prob(sizes=drawn.sizes) + subset.log_marginal(drawn.statistics).sum()
    labels = np.empty(n, dtype=np.int32)
    labels[order] = drawn.labels
    return Proposal(labels, log_proposal, float(log_joint) - log_proposal)


def sweep_rows(
    partition: Partition,
    subset: ColumnSubset,
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
    log_proposal, i = 0.0, 0
    while i < len(rows):
        capacity = 2 * len(sizes) + 6
        blocks = subset.blocks(rows, capacity, statistics)
        sizes = np.pad(sizes, (0, capacity - len(sizes)))
        i, chosen = sweep_cells(
            blocks, lags, sizes, rows, i, labels, target, tables.join, tables.open, random
        )
        log_proposal, statistics = log_proposal + chosen, blocks.cells.statistics
    return drop_empty_clusters(labels, sizes, statistics), log_proposal


def move_rows(
    models: ColumnModels,
    view: View,
    given_prior: PartitionPrior,
    random: np.random.Generator,
    n_tries: int,
) -> View:
    """Update a view by a Gibbs sweep, split-merge moves, and a draw of its prior's parameters."""
    subset = models.subset(view.columns)
    rows = subset.rows()
    partition = Partition(view.labels, view.sizes, subset.statistics(rows, view.labels))
    partition, _ = sweep_rows(partition, subset, rows, view.tables, random)
    if n_tries:
        partition = split_and_merge(partition, Target(subset, rows, view.tables, random), n_tries)
    view = view._replace(labels=partition.labels)
    if not given_prior.hyperpriors:
        return view
    prior = given_prior.update_parameters(view.prior, partition.sizes, random)
    return view._replace(prior=prior, tables=prior.tables(len(rows)))


def new_view(columns, n_rows: int, row_prior: PartitionPrior, random) -> View:
    """Return a view with its prior's parameters drawn, and without a row partition yet."""
    prior = row_prior.draw_parameters(random)
    return View(np.asarray(columns), np.empty(0, np.int32), prior, prior.tables(n_rows))


def views_of(views: list[View], n_columns: int) -> np.ndarray:
    """Return the view of each column."""
    view_of = np.empty(n_columns, dtype=np.int64)
    for v, view in enumerate(views):
        view_of[view.columns] = v
    return view_of


def all_labels(views: list[View]) -> np.ndarray:
    """Return the row partitions of all views, (n_views, n_rows)."""
    return np.stack([view.labels for view in views])


def move_columns(
    models: ColumnModels, views: list[View], column_tables: Tables, random: np.random.Generator
) -> list[View]:
    """Draw the view, among the present ones, of each column that is no singleton."""
    if len(views) == 1:
        return views
    view_of = views_of(views, models.n_columns)
    if not models.draw_views(all_labels(views), column_tables.join, view_of, random):
        return views
    columns = (np.flatnonzero(view_of == v) for v in range(len(views)))
    return [view._replace(columns=own) for view, own in zip(views, columns, strict=True)]


def move_singleton(
    models: ColumnModels,
    views: list[View],
    j: int,
    row_prior: PartitionPrior,
    column_tables: Tables,
    random: np.random.Generator,
) -> list[View]:
    """Draw the view of one column, among those of the others and a singleton view."""
    own = next(v for v, view in enumerate(views) if j in view.columns)
    alone = len(views[own].columns) == 1
    others = [
        view._replace(columns=view.columns[view.columns != j])
        for v, view in enumerate(views)
        if v != own or not alone
    ]
    if not others:
        return views
    given = views[own].labels if alone else None
    new = views[own] if alone else new_view([j], len(models.rows), row_prior, random)
    proposal = propose_rows(models, new.columns, new.prior, new.tables, random, given)
    counts = [len(view.columns) for view in others]
    weights = np.append(
        models.log_marginals(new.columns, all_labels(others))[0] + column_tables.join[counts],
        proposal.log_weight + column_tables.open[len(others)],
    )
    chosen, _ = draw_log(weights, random)
    if chosen == len(others):
        return [*others, new if alone else new._replace(labels=proposal.labels)]
    others[chosen] = _with_columns(others[chosen], new.columns)
    return others


def _with_columns(view: View, more: np.ndarray) -> View:
    return view._replace(columns=np.sort(np.append(view.columns, more)))
