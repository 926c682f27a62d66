"""Views split and merged with all their partitions drawn anew.

A view that tells two stories at once has the product of two partitions, and neither half is worth
leaving while the other keeps it. So here both halves draw their partitions, and a merged view its
own. Which columns go where is first guessed from columns i and k alone, which depends on nothing
that the move changes, and cancels.
"""

from __future__ import annotations

import numpy as np

from countless.bayes.crosscat.cells import Cells
from countless.bayes.crosscat.columns import fresh_view, share_out, views_of
from countless.bayes.crosscat.view import View, propose_rows
from countless.priors import PartitionPrior, Tables


def split_or_merge_anew(
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
    first = views[a]
    second = fresh_view([k], len(cells.rows), row_prior, random) if split else views[b]
    columns = first.columns if split else np.union1d(first.columns, second.columns)
    size, join, opening = column_tables
    n_fewer = len(views) - (not split)  # views of the state in which they are one
    if opening[n_fewer] == -np.inf:
        return views
    rest = random.permutation(columns[(columns != i) & (columns != k)])

    def propose(own, view: View, given=None):
        return propose_rows(cells, np.sort(own), view.prior, view.tables, random, given)

    def gains(labels, others) -> np.ndarray:
        return np.diff(cells.marginals(rest, np.stack([labels, others])), axis=1)[:, 0]

    guesses = propose([i], first), propose([k], second)
    guessed, _ = share_out(gains(guesses[0].labels, guesses[1].labels), join, random)
    of_first, of_second = np.append(rest[~guessed], i), np.append(rest[guessed], k)
    drawn = propose(of_first, first, None if split else first.labels)
    other = propose(of_second, second, None if split else second.labels)
    forced = None if split else np.isin(rest, second.columns)
    follow, log_followed = share_out(gains(drawn.labels, other.labels), join, random, forced)
    halves = [
        first._replace(columns=np.sort(np.append(rest[~follow], i)), labels=drawn.labels),
        second._replace(columns=np.sort(np.append(rest[follow], k)), labels=other.labels),
    ]
    whole = propose(columns, first, first.labels if split else None)
    log_ratio = opening[n_fewer] - size[1] - size[len(columns)] - whole.log_weight
    log_ratio -= drawn.log_chosen + other.log_chosen + log_followed
    for half in halves:
        log_ratio += half.log_prior() + size[len(half.columns)]
        log_ratio += cells.marginals(half.columns, half.labels).sum()
    if np.log1p(-random.random()) >= (log_ratio if split else -log_ratio):
        return views
    new = halves if split else [first._replace(columns=columns, labels=whole.labels)]
    return [*new, *(view for v, view in enumerate(views) if v not in (a, b))]
