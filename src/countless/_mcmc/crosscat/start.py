"""Initial views of a chain: sequential allocation of columns, then greedy merges of views.

For a long table a subsample of the rows is used, and the other rows are assigned afterwards. These
moves need not leave the posterior invariant: they only give the initial state.
"""

from __future__ import annotations

import numpy as np

from countless._mcmc.collapsed import Partition
from countless._mcmc.crosscat.cells import Cells
from countless._mcmc.crosscat.columns import all_labels, fresh_view, move_among_views
from countless._mcmc.crosscat.view import View, move_rows, propose_rows, sweep_rows
from countless.kernels.crosscat import draw_log
from countless.priors import PartitionPrior, Tables

# Row sweeps of a merged view before it is evaluated, and split-merge proposals in each.
TRIAL_SWEEPS, ROW_TRIES = 3, 2
# Merges that are tried per view, those of highest gain first.
PARTNERS = 3
# Largest number of rows of the subsample that views are found with.
ENOUGH_ROWS = 2_000


def first_views(
    cells: Cells,
    row_prior: PartitionPrior,
    column_tables: Tables,
    random: np.random.Generator,
) -> list[View]:
    """Return initial views: columns are allocated in random order, then views are merged."""
    n_rows = len(cells.rows)
    if n_rows > ENOUGH_ROWS:
        some = np.sort(random.choice(n_rows, ENOUGH_ROWS, replace=False))
        views = first_views(cells.of_rows(some), row_prior, column_tables, random)
        return [_seat_others(cells, view, some, random) for view in views]
    views = _join_one_by_one(cells, row_prior, column_tables, random)
    while True:
        for _ in range(TRIAL_SWEEPS):
            views = [move_rows(cells, view, row_prior, random, ROW_TRIES) for view in views]
            views = move_among_views(cells, views, column_tables, random)
        merged = _merge_some(cells, views, row_prior, column_tables, random)
        if len(merged) == len(views):
            return merged
        views = merged


def _seat_others(cells: Cells, view: View, seated: np.ndarray, random: np.random.Generator) -> View:
    """Extend a view of some rows to all rows, by a Gibbs sweep."""
    part = cells.part(view.columns)
    rows = part.rows()
    labels = np.full(len(rows), -1, dtype=np.int32)
    labels[seated] = view.labels
    tables = view.prior.tables(len(rows))
    partition = Partition(labels, view.sizes, part.statistics(rows[seated], view.labels))
    partition, _ = sweep_rows(partition, part, rows, tables, random)
    return view._replace(labels=partition.labels, tables=tables)


def _join_one_by_one(cells, row_prior, column_tables, random) -> list[View]:
    """Allocate columns to views in random order, each by its probability.

    The rows of a view are updated each time that its number of columns has doubled.
    """
    views: list[View] = []
    for j in random.permutation(cells.n_columns):
        new = fresh_view([j], len(cells.rows), row_prior, random)
        proposal = propose_rows(cells, new.columns, new.prior, new.tables, random)
        weights = np.array([proposal.log_weight + column_tables.open[len(views)]])
        if views:
            counts = [len(view.columns) for view in views]
            joining = cells.marginals(new.columns, all_labels(views))[0]
            weights = np.append(joining + column_tables.join[counts], weights)
        chosen, _ = draw_log(weights, random)
        if chosen == len(views):
            views.append(new._replace(labels=proposal.labels))
            continue
        view = views[chosen]._replace(columns=np.sort(np.append(views[chosen].columns, j)))
        if len(view.columns) & (len(view.columns) - 1) == 0:  # a power of 2
            view = move_rows(cells, view, row_prior, random, ROW_TRIES)
        views[chosen] = view
    return views


def _merge_some(cells, views, row_prior, column_tables, random) -> list[View]:
    """Try to merge each view with those of highest gain; keep merges that raise the log joint."""
    tried = set()
    while len(views) > 1:
        gains = _gains(cells, views)
        merged = None
        # Views are identified by their columns, as their indices change.
        for place in np.argsort(-gains, axis=None)[: PARTNERS * len(views)]:
            a, b = np.unravel_index(place, gains.shape)
            names = (views[a].columns.tobytes(), views[b].columns.tobytes())
            if a == b or names in tried:
                continue
            tried.add(names)
            merged = _try_merge(cells, views[a], views[b], row_prior, column_tables, random)
            if merged is not None:
                break
        if merged is None:
            return views
        views = [merged, *(view for v, view in enumerate(views) if v not in (a, b))]
    return views


def _gains(cells: Cells, views: list[View]) -> np.ndarray:
    """Return the gain in log joint density if one view (row) takes the columns of another."""
    under = cells.marginals(np.arange(cells.n_columns), all_labels(views))
    lost = np.array([view.log_prior() for view in views])
    gains = np.empty((len(views), len(views)))
    for b, view in enumerate(views):
        own = under[view.columns]
        gains[:, b] = (own - own[:, [b]]).sum(axis=0) - lost[b]
    return gains


def _score(cells: Cells, view: View, column_tables: Tables) -> float:
    likelihood = cells.marginals(view.columns, view.labels).sum()
    return float(view.log_prior() + likelihood + column_tables.size[len(view.columns)])


def _try_merge(cells, first, second, row_prior, column_tables, random) -> View | None:
    """Return the merged view if its density is higher after equally many row moves, or None."""
    merged = first._replace(columns=np.union1d(first.columns, second.columns))
    gain = -np.inf
    for _ in range(TRIAL_SWEEPS):
        merged, first, second = (
            move_rows(cells, view, row_prior, random, ROW_TRIES) for view in (merged, first, second)
        )
        last, gain = gain, _score(cells, merged, column_tables)
        gain -= sum(_score(cells, view, column_tables) for view in (first, second))
        if gain < 0 and gain < last:  # negative and decreasing
            return None
    return merged if gain > 0 else None
