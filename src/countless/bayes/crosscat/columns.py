"""Moves of columns between views, and of views as a whole; each leaves the posterior as it is.

Three moves are here, and one more in ``anew.py``. A column among others goes to any view by its
probability. A column may leave for a view of its own, or come back from it: the partition of the
new view is drawn for that column (see ``view.py``), and its weight takes the place that Neal's
algorithm 8 gives to draws from the prior [1]_. And a view is split in two, or two are merged: of
two columns i and k of one view, k opens a view whose partition is drawn for the columns that would
follow it, and each other column chooses; the partition that i keeps stays as it is. The first guess
of who would follow depends on nothing that the move changes, so that it cancels, as in the moves of
Jain and Neal [2]_.

References
----------
.. [1] R. M. Neal, "Markov chain sampling methods for Dirichlet process mixture models", JCGS 9,
   2000.
.. [2] S. Jain and R. M. Neal, "A split-merge Markov chain Monte Carlo procedure for the Dirichlet
   process mixture model", JCGS 13, 2004.
"""

from __future__ import annotations

import numpy as np

from countless.bayes.crosscat.cells import Cells
from countless.bayes.crosscat.view import View, propose_rows
from countless.kernels.crosscat import draw_log
from countless.priors import PartitionPrior, Tables


def fresh_view(columns, n_rows: int, row_prior: PartitionPrior, random) -> View:
    """Return a view whose prior is drawn and whose partition is still to come."""
    prior = row_prior.draw_parameters(random)
    return View(np.asarray(columns), np.empty(0, np.int32), prior, prior.tables(n_rows))


def views_of(views: list[View], n_columns: int) -> np.ndarray:
    """Return the view of each column."""
    view_of = np.empty(n_columns, dtype=np.int64)
    for v, view in enumerate(views):
        view_of[view.columns] = v
    return view_of


def all_labels(views: list[View]) -> np.ndarray:
    """Return the partitions of all views, (n_views, n_rows)."""
    return np.stack([view.labels for view in views])


def move_among_views(
    cells: Cells, views: list[View], column_tables: Tables, random: np.random.Generator
) -> list[View]:
    """Draw the view of each column that is not alone, among those that there are."""
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
    """Draw the view of one column among those of the others and one of its own."""
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


def split_or_merge_views(
    cells: Cells,
    views: list[View],
    row_prior: PartitionPrior,
    column_tables: Tables,
    random: np.random.Generator,
) -> list[View]:
    """Propose to split the view of two columns, or to merge their two views."""
    i, k = random.choice(cells.n_columns, 2, replace=False)
    view_of = views_of(views, cells.n_columns)
    a, b = view_of[i], view_of[k]
    split = bool(a == b)
    keeps, follows = views[a], views[b]
    columns = keeps.columns if split else np.union1d(keeps.columns, follows.columns)
    size, _, opening = column_tables
    n_fewer = len(views) - (not split)  # views of the state in which they are one
    if opening[n_fewer] == -np.inf:
        return views
    rest = random.permutation(columns[(columns != i) & (columns != k)])
    under_old = cells.marginals(columns, keeps.labels)[:, 0]
    log_mark = np.log1p(-random.random())

    def log_posterior_ratio(view: View, under_new: np.ndarray) -> float:
        """Return the log of how much more probable two views are than one."""
        moved = np.isin(columns, view.columns)
        n_moved = len(view.columns)
        ratio = size[n_moved] + size[len(columns) - n_moved] - size[len(columns)]
        ratio += opening[n_fewer] - size[1] + view.log_prior()
        return float(ratio + np.sum((under_new - under_old)[moved]))

    log_ratio = 0.0
    if split:
        follows = fresh_view([k], len(cells.rows), row_prior, random)
    else:
        log_ratio = log_posterior_ratio(follows, cells.marginals(columns, follows.labels)[:, 0])
        if log_mark >= -log_ratio:  # the way back is at best certain
            return views
    given = None if split else follows.labels
    guessed = np.array([k])
    place = {int(j): p for p, j in enumerate(columns)}
    rest_places = np.array([place[int(j)] for j in rest], dtype=np.int64)
    guess = propose_rows(cells, guessed, follows.prior, follows.tables, random)
    gains = cells.marginals(columns, guess.labels)[:, 0] - under_old
    follow, _ = share_out(gains[rest_places], column_tables.join, random)
    guessed = np.sort(np.append(rest[follow], k))
    proposal = propose_rows(cells, guessed, follows.prior, follows.tables, random, given)
    labels = proposal.labels if split else follows.labels
    under_new = cells.marginals(columns, labels)[:, 0]
    gains = (under_new - under_old)[rest_places]
    forced = None if split else np.isin(rest, follows.columns)
    follow, log_followed = share_out(gains, column_tables.join, random, forced)
    log_proposed = proposal.log_chosen + log_followed
    if not split:
        if log_mark >= log_proposed - log_ratio:
            return views
        merged = keeps._replace(columns=columns)
        return [merged, *(view for v, view in enumerate(views) if v not in (a, b))]
    follows = follows._replace(columns=np.sort(np.append(rest[follow], k)), labels=labels)
    if log_mark >= log_posterior_ratio(follows, under_new) - log_proposed:
        return views
    kept = keeps._replace(columns=np.setdiff1d(columns, follows.columns))
    return [kept, follows, *(view for v, view in enumerate(views) if v != a)]


def share_out(
    gains: np.ndarray, join: np.ndarray, random: np.random.Generator, forced=None
) -> tuple[np.ndarray, float]:
    """Let columns choose between two views that have one each, in turn, by what the second gains.

    Returns who chose the second, and the log probability of that; ``forced`` says who must.
    """
    second = np.zeros(len(gains), dtype=bool)
    sizes = [1, 1]
    log_probability = 0.0
    for place, gain in enumerate(gains):
        odds = gain + join[sizes[1]] - join[sizes[0]]
        if forced is None:
            second[place] = np.log(random.random()) < -np.logaddexp(0.0, -odds)
        else:
            second[place] = forced[place]
        log_probability -= np.logaddexp(0.0, -odds if second[place] else odds)
        sizes[int(second[place])] += 1
    return second, float(log_probability)


def _with_columns(view: View, more: np.ndarray) -> View:
    return view._replace(columns=np.sort(np.append(view.columns, more)))
