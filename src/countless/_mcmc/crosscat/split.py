"""Split-merge moves of views (Metropolis-Hastings) that keep the row partition of one view.

To split the view of two columns i and k, k opens a new view. Its row partition is drawn for a
launch set of columns that would move with k; then each other column chooses one of the two views.
The view of i keeps the old partition. The launch set depends only on what the move does not change,
so that its probability cancels in the acceptance ratio, as in the moves of Jain and Neal [1]_.

References
----------
.. [1] S. Jain and R. M. Neal, "A split-merge Markov chain Monte Carlo procedure for the Dirichlet
   process mixture model", JCGS 13, 2004.
"""

from __future__ import annotations

import numpy as np

from countless._mcmc.crosscat.cells import Cells
from countless._mcmc.crosscat.pair import draw_pair, share_out
from countless._mcmc.crosscat.view import View, propose_rows
from countless.priors import PartitionPrior, Tables


def split_or_merge_views(
    cells: Cells,
    views: list[View],
    row_prior: PartitionPrior,
    column_tables: Tables,
    random: np.random.Generator,
) -> list[View]:
    """Propose to split the view of two columns, or to merge their two views."""
    pair = draw_pair(cells, views, row_prior, column_tables, random)
    if pair is None:
        return views
    _, k, split, keeps, follows, columns, rest, others, log_two = pair
    size, join = column_tables.size, column_tables.join
    of_rest = np.searchsorted(columns, rest)
    under_old = cells.marginals(columns, keeps.labels)[:, 0]
    log_mark = np.log1p(-random.random())

    def gains(labels: np.ndarray) -> np.ndarray:
        return cells.marginals(columns, labels)[:, 0] - under_old

    def log_posterior_ratio(view: View, gains: np.ndarray) -> float:
        """Return the log posterior ratio of two views to one."""
        n_moved = len(view.columns)
        ratio = size[n_moved] + size[len(columns) - n_moved] - size[len(columns)]
        ratio += log_two + view.log_prior()
        return float(ratio + gains[np.isin(columns, view.columns)].sum())

    log_ratio = 0.0
    if not split:
        log_ratio = log_posterior_ratio(follows, gains(follows.labels))
        if log_mark >= -log_ratio:  # a bound: the reverse proposal has probability at most 1
            return views
    guess = propose_rows(cells, np.array([k]), follows.prior, follows.tables, random)
    follow, _ = share_out(gains(guess.labels)[of_rest], join, random)
    guessed = np.sort(np.append(rest[follow], k))
    given = None if split else follows.labels
    proposal = propose_rows(cells, guessed, follows.prior, follows.tables, random, given)
    new_gains = gains(proposal.labels if split else follows.labels)
    forced = None if split else np.isin(rest, follows.columns)
    follow, log_followed = share_out(new_gains[of_rest], join, random, forced)
    log_proposed = proposal.log_chosen + log_followed
    if not split:
        if log_mark >= log_proposed - log_ratio:
            return views
        return [keeps._replace(columns=columns), *others]
    own = np.sort(np.append(rest[follow], k))
    follows = follows._replace(columns=own, labels=proposal.labels)
    if log_mark >= log_posterior_ratio(follows, new_gains) - log_proposed:
        return views
    return [keeps._replace(columns=np.setdiff1d(columns, own)), follows, *others]
