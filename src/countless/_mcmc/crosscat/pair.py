"""Common parts of split-merge moves of views: a pair of columns, and the others' allocation."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from countless._mcmc.crosscat.cells import Cells
from countless._mcmc.crosscat.columns import fresh_view, views_of
from countless._mcmc.crosscat.view import View
from countless.priors import PartitionPrior, Tables


class Pair(NamedTuple):
    """Two columns, whose view may split or whose views may merge."""

    i: int
    k: int
    split: bool  # whether they are in one view, so that a split is proposed
    first: View  # of i
    second: View  # of k; for a split a new view without a partition yet
    columns: np.ndarray  # of both views, increasing
    rest: np.ndarray  # the columns except i and k, in random order
    others: list[View]  # the views that the move does not change
    log_two: float  # log prior ratio of two views to one, without the factors of their sizes


def draw_pair(
    cells: Cells,
    views: list[View],
    row_prior: PartitionPrior,
    column_tables: Tables,
    random: np.random.Generator,
) -> Pair | None:
    """Draw two columns; None if the prior does not allow two views."""
    i, k = random.choice(cells.n_columns, 2, replace=False)
    view_of = views_of(views, cells.n_columns)
    a, b = view_of[i], view_of[k]
    split = bool(a == b)
    n_fewer = len(views) - (not split)  # number of views when the two are merged
    if column_tables.open[n_fewer] == -np.inf:
        return None
    first = views[a]
    second = fresh_view([k], len(cells.rows), row_prior, random) if split else views[b]
    columns = first.columns if split else np.union1d(first.columns, second.columns)
    rest = random.permutation(columns[(columns != i) & (columns != k)])
    others = [view for v, view in enumerate(views) if v not in (a, b)]
    log_two = float(column_tables.open[n_fewer] - column_tables.size[1])
    return Pair(int(i), int(k), split, first, second, columns, rest, others, log_two)


def share_out(
    gains: np.ndarray, join: np.ndarray, random: np.random.Generator, forced=None
) -> tuple[np.ndarray, float]:
    """Allocate columns sequentially to two views that start with one column each.

    ``gains`` are the log likelihood ratios of the second view to the first. Returns which columns
    are in the second view, and the log probability of that; ``forced`` prescribes it.
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
