"""One Markov chain of CrossCat: the partition of columns into views, and of the rows in each."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from countless._mcmc.crosscat.anew import split_or_merge_anew
from countless._mcmc.crosscat.cells import Cells
from countless._mcmc.crosscat.columns import all_labels, leave_or_return, move_among_views, views_of
from countless._mcmc.crosscat.split import split_or_merge_views
from countless._mcmc.crosscat.start import first_views
from countless._mcmc.crosscat.view import View, move_rows
from countless.models.cells import BoundCells
from countless.priors import PartitionPrior

# Share of the columns, at least one, that in each sweep may open a singleton view or leave theirs.
LEAVING = 0.01
# Split-merge proposals for row clusters, in each view and sweep.
ROW_TRIES = 1
# Share of the split-merge proposals for views that resample all row partitions; these cost most.
ANEW = 0.25


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
        self.cells = Cells(model, rows)
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
            self.views = first_views(
                self.cells, self.given_row_prior, self.column_tables, self.random
            )
        for v in range(len(self.views)):
            self.move_rows(v)
        self.move_columns()
        self.move_parameters()

    def move_rows(self, v: int) -> None:
        """Update the row partition of one view, and the parameters of its prior."""
        self.views[v] = move_rows(
            self.cells, self.views[v], self.given_row_prior, self.random, ROW_TRIES
        )

    def move_columns(self) -> None:
        """Move columns between views, some to singleton views, and split or merge views."""
        if self.cells.n_columns == 1:
            return
        self.views = move_among_views(self.cells, self.views, self.column_tables, self.random)
        priors = (self.given_row_prior, self.column_tables, self.random)
        n_leaving = max(1, round(LEAVING * self.cells.n_columns))
        for j in self.random.choice(self.cells.n_columns, n_leaving, replace=False):
            self.views = leave_or_return(self.cells, self.views, int(j), *priors)
        anew = self.random.random() < ANEW
        split_or_merge = split_or_merge_anew if anew else split_or_merge_views
        self.views = split_or_merge(self.cells, self.views, *priors)

    def move_parameters(self) -> None:
        """Sample the hyperparameters of columns, and the parameters of the columns' prior."""
        view_of = views_of(self.views, self.cells.n_columns)
        self.cells.move_hyper(all_labels(self.views), view_of, self.random)
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
            total += float(self.cells.marginals(view.columns, view.labels).sum())
        return total + self.cells.log_hyperprior()

    def record(self) -> Draw:
        """Return the present state as a draw."""
        views = sorted(self.views, key=lambda view: view.columns[0])
        return Draw(
            views_of(views, self.cells.n_columns),
            tuple(v.labels.astype(np.min_scalar_type(v.labels.max())) for v in views),
            tuple(view.prior for view in views),
            self.column_prior,
            self.cells.hyper.value.copy(),
            self.log_joint(),
        )

    def _set_column_prior(self, prior: PartitionPrior) -> None:
        self.column_prior = prior
        self.column_tables = prior.tables(self.cells.n_columns)
