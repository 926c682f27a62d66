"""One Markov chain of CrossCat: the partition of columns into views, and of the rows in each.

The initial state is found by sequential allocation of columns, then greedy merges of views. For a
long table a subsample of the rows is used, and the other rows are assigned afterwards. These moves
need not leave the posterior invariant.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from countless._mcmc.crosscat.column_models import ColumnModels
from countless._mcmc.crosscat.split_merge import split_or_merge_resampled, split_or_merge_views
from countless._mcmc.crosscat.views import (
    View,
    all_labels,
    move_columns,
    move_rows,
    move_singleton,
    new_view,
    propose_rows,
    sweep_rows,
    views_of,
)
from countless._mcmc.gibbs import Partition
from countless.kernels.crosscat import draw_log
from countless.models.cells import BoundCells
from countless.priors import PartitionPrior, Tables


@dataclass(frozen=True)
class Tuning:
    """Constants of a chain; they change how fast it mixes, but not its posterior.

    They were chosen by ``benchmarks/crosscat.py``.
    """

    singleton_share: float = 0.01  # of columns, at least one, that may open or leave a singleton
    row_proposals: int = 1  # split-merge proposals for row clusters, in each view and sweep
    resampled_share: float = 0.25  # of the split-merge proposals for views, the expensive kind
    initial_rows: int = 2_000  # rows of the subsample that initial views are found with, at most
    initial_proposals: int = 2  # split-merge proposals for row clusters in each initial sweep
    trial_sweeps: int = 3  # row sweeps of initial views before merges, and of a merged one
    merges_tried: int = 3  # merges that are tried per initial view, those of highest gain first


TUNING = Tuning()


class Draw(NamedTuple):
    """One posterior draw: the stored part of a chain's state."""

    view_of: np.ndarray  # (n_columns,), views numbered by first appearance
    labels: tuple[np.ndarray, ...]  # of each view, (n_rows,), of the smallest sufficient type
    priors: tuple[PartitionPrior, ...]  # of the rows in each view
    column_prior: PartitionPrior
    hyper: np.ndarray  # (n_hyper,) of the model
    log_joint: float


class CrossCatChain:
    """A Markov chain of CrossCat.

    Parameters
    ----------
    model : BoundCells
        The models of the columns.
    rows : ndarray of shape (n_rows, n_columns)
        As returned by ``model.rows``.
    row_prior, column_prior : PartitionPrior
        Priors of the partition of the rows in each view, and of the columns into views. Parameters
        given as distributions are sampled, separately for each view.
    random : numpy.random.Generator
        Source of all random numbers.
    """

    def __init__(
        self,
        model: BoundCells,
        rows: np.ndarray,
        row_prior: PartitionPrior,
        column_prior: PartitionPrior,
        random: np.random.Generator,
    ) -> None:
        self.models = ColumnModels(model, rows)
        self.given_row_prior, self.given_column_prior = row_prior, column_prior
        self.random = random
        self._set_column_prior(column_prior.draw_parameters(random))
        self.views: list[View] = []

    @property
    def n_clusters(self) -> int:
        """Number of views."""
        return len(self.views)

    def sweep(self) -> None:
        """Update rows, columns, views and all parameters once; the first sweep initialises."""
        if not self.views:
            self.views = initial_views(
                self.models, self.given_row_prior, self.column_tables, self.random
            )
        for v in range(len(self.views)):
            self.move_rows(v)
        self.move_columns()
        self.move_parameters()

    def move_rows(self, v: int) -> None:
        """Update the row partition of one view, and the parameters of its prior."""
        self.views[v] = move_rows(
            self.models, self.views[v], self.given_row_prior, self.random, TUNING.row_proposals
        )

    def move_columns(self) -> None:
        """Move columns between views, some to singleton views, and split or merge views."""
        if self.models.n_columns == 1:
            return
        self.views = move_columns(self.models, self.views, self.column_tables, self.random)
        priors = (self.given_row_prior, self.column_tables, self.random)
        n_leaving = max(1, round(TUNING.singleton_share * self.models.n_columns))
        for j in self.random.choice(self.models.n_columns, n_leaving, replace=False):
            self.views = move_singleton(self.models, self.views, int(j), *priors)
        resampled = self.random.random() < TUNING.resampled_share
        split_or_merge = split_or_merge_resampled if resampled else split_or_merge_views
        self.views = split_or_merge(self.models, self.views, *priors)

    def move_parameters(self) -> None:
        """Sample the hyperparameters of columns, and the parameters of the columns' prior."""
        view_of = views_of(self.views, self.models.n_columns)
        self.models.move_hyper(all_labels(self.views), view_of, self.random)
        if self.given_column_prior.hyperpriors:
            sizes = [len(view.columns) for view in self.views]
            prior = self.given_column_prior.update_parameters(self.column_prior, sizes, self.random)
            self._set_column_prior(prior)

    def log_joint(self) -> float:
        """Return the log joint density of the table and of all sampled quantities."""
        total = self.column_prior.log_prob(sizes=[len(view.columns) for view in self.views])
        total += self.given_column_prior.log_prob_parameters(self.column_prior)
        for view in self.views:
            total += view.log_prior() + self.given_row_prior.log_prob_parameters(view.prior)
            total += float(self.models.log_marginals(view.columns, view.labels).sum())
        return total + self.models.log_hyperprior()

    def record(self) -> Draw:
        """Return the present state as a draw."""
        views = sorted(self.views, key=lambda view: view.columns[0])
        return Draw(
            views_of(views, self.models.n_columns),
            tuple(v.labels.astype(np.min_scalar_type(v.labels.max())) for v in views),
            tuple(view.prior for view in views),
            self.column_prior,
            self.models.hyper.value.copy(),
            self.log_joint(),
        )

    def _set_column_prior(self, prior: PartitionPrior) -> None:
        self.column_prior = prior
        self.column_tables = prior.tables(self.models.n_columns)


def initial_views(
    models: ColumnModels,
    row_prior: PartitionPrior,
    column_tables: Tables,
    random: np.random.Generator,
) -> list[View]:
    """Return initial views: columns are allocated in random order, then views are merged."""
    n_rows = len(models.rows)
    if n_rows > TUNING.initial_rows:
        subsample = np.sort(random.choice(n_rows, TUNING.initial_rows, replace=False))
        views = initial_views(models.of_rows(subsample), row_prior, column_tables, random)
        return [_assign_others(models, view, subsample, random) for view in views]
    views = _allocate_sequentially(models, row_prior, column_tables, random)
    while True:
        for _ in range(TUNING.trial_sweeps):
            views = [
                move_rows(models, view, row_prior, random, TUNING.initial_proposals)
                for view in views
            ]
            views = move_columns(models, views, column_tables, random)
        merged = _merge_greedily(models, views, row_prior, column_tables, random)
        if len(merged) == len(views):
            return merged
        views = merged


def _assign_others(
    models: ColumnModels, view: View, subsample: np.ndarray, random: np.random.Generator
) -> View:
    """Extend a view of some rows to all rows, by a Gibbs sweep."""
    subset = models.subset(view.columns)
    rows = subset.rows()
    labels = np.full(len(rows), -1, dtype=np.int32)
    labels[subsample] = view.labels
    tables = view.prior.tables(len(rows))
    partition = Partition(labels, view.sizes, subset.statistics(rows[subsample], view.labels))
    partition, _ = sweep_rows(partition, subset, rows, tables, random)
    return view._replace(labels=partition.labels, tables=tables)


def _allocate_sequentially(models, row_prior, column_tables, random) -> list[View]:
    """Allocate columns to views in random order, each by its probability.

    The rows of a view are updated each time that its number of columns has doubled.
    """
    views: list[View] = []
    for j in random.permutation(models.n_columns):
        new = new_view([j], len(models.rows), row_prior, random)
        proposal = propose_rows(models, new.columns, new.prior, new.tables, random)
        weights = np.array([proposal.log_weight + column_tables.open[len(views)]])
        if views:
            counts = [len(view.columns) for view in views]
            joining = models.log_marginals(new.columns, all_labels(views))[0]
            weights = np.append(joining + column_tables.join[counts], weights)
        chosen, _ = draw_log(weights, random)
        if chosen == len(views):
            views.append(new._replace(labels=proposal.labels))
            continue
        view = views[chosen]._replace(columns=np.sort(np.append(views[chosen].columns, j)))
        if len(view.columns) & (len(view.columns) - 1) == 0:  # a power of 2
            view = move_rows(models, view, row_prior, random, TUNING.initial_proposals)
        views[chosen] = view
    return views


def _merge_greedily(models, views, row_prior, column_tables, random) -> list[View]:
    """Try to merge each view with those of highest gain; keep merges that raise the log joint."""
    tried = set()
    while len(views) > 1:
        gains = _gains(models, views)
        merged = None
        # Views are identified by their columns, as their indices change.
        for place in np.argsort(-gains, axis=None)[: TUNING.merges_tried * len(views)]:
            a, b = np.unravel_index(place, gains.shape)
            names = (views[a].columns.tobytes(), views[b].columns.tobytes())
            if a == b or names in tried:
                continue
            tried.add(names)
            merged = _try_merge(models, views[a], views[b], row_prior, column_tables, random)
            if merged is not None:
                break
        if merged is None:
            return views
        views = [merged, *(view for v, view in enumerate(views) if v not in (a, b))]
    return views


def _gains(models: ColumnModels, views: list[View]) -> np.ndarray:
    """Return the gain in log joint density if one view (row) takes the columns of another."""
    under = models.log_marginals(np.arange(models.n_columns), all_labels(views))
    lost = np.array([view.log_prior() for view in views])
    gains = np.empty((len(views), len(views)))
    for b, view in enumerate(views):
        own = under[view.columns]
        gains[:, b] = (own - own[:, [b]]).sum(axis=0) - lost[b]
    return gains


def _log_joint(models: ColumnModels, view: View, column_tables: Tables) -> float:
    likelihood = models.log_marginals(view.columns, view.labels).sum()
    return float(view.log_prior() + likelihood + column_tables.size[len(view.columns)])


def _try_merge(models, first, second, row_prior, column_tables, random) -> View | None:
    """Return the merged view if its density is higher after equally many row moves, or None."""
    merged = first._replace(columns=np.union1d(first.columns, second.columns))
    gain = -np.inf
    for _ in range(TUNING.trial_sweeps):
        merged, first, second = (
            move_rows(models, view, row_prior, random, TUNING.initial_proposals)
            for view in (merged, first, second)
        )
        last, gain = gain, _log_joint(models, merged, column_tables)
        gain -= sum(_log_joint(models, view, column_tables) for view in (first, second))
        if gain < 0 and gain < last:  # negative and decreasing
            return None
    return merged if gain > 0 else None
