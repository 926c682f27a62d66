"""Moves of single columns between views; each leaves the posterior invariant.

A column that is not the only one of its view is assigned to any view by its conditional probability
(Gibbs). And a column may open a singleton view, or leave it: the row partition of the singleton
view is proposed for that column (see ``view.py``), and its importance weight is used in place of
the prior draws of Neal's algorithm 8 [1]_.

References
----------
.. [1] R. M. Neal, "Markov chain sampling methods for Dirichlet process mixture models", JCGS 9,
   2000.
"""

from __future__ import annotations

import numpy as np

from countless._mcmc.crosscat.cells import Cells
from countless._mcmc.crosscat.view import View, propose_rows
from countless.kernels.crosscat import draw_log
from countless.priors import PartitionPrior, Tables


def fresh_view(columns, n_rows: int, row_prior: PartitionPrior, random) -> View:
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


def move_among_views(
    cells: Cells, views: list[View], column_tables: Tables, random: np.random.Generator
) -> list[View]:
    """Draw the view, among the present ones, of each column that is no singleton."""
    if len(views) == 1:
        return views
    view_of = views_of(views, cells.n_columns)
    if not cells.move(all_labels(views), column_tables.join, view_of, random):
        return views
    columns = (np.flatnonzero(view_of == v) for v in range(len(views)))
    return [view._replace(columns=own) for view, own in zip(views, columns, strict=True)]


def leave_or_return(
    cells: Cells,
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
    new = views[own] if alone else fresh_view([j], len(cells.rows), row_prior, random)
    proposal = propose_rows(cells, new.columns, new.prior, new.tables, random, given)
    counts = [len(view.columns) for view in others]
    weights = np.append(
        cells.marginals(new.columns, all_labels(others))[0] + column_tables.join[counts],
        proposal.log_weight + column_tables.open[len(others)],
    )
    chosen, _ = draw_log(weights, random)
    if chosen == len(others):
        return [*others, new if alone else new._replace(labels=proposal.labels)]
    others[chosen] = _with_columns(others[chosen], new.columns)
    return others


def _with_columns(view: View, more: np.ndarray) -> View:
    return view._replace(columns=np.sort(np.append(view.columns, more)))
