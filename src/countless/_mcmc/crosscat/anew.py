"""Split-merge moves of views (Metropolis-Hastings) that resample all row partitions involved.

A view that combines two independent structures has the product of their two partitions as its row
partition. Neither half of its columns gains by leaving while the other half keeps that product. So
here a split draws the row partitions of both halves, and a merge that of the merged view. The
launch allocation of columns is drawn from columns i and k alone; it depends only on what the move
does not change, so that its probability cancels in the acceptance ratio.
"""

from __future__ import annotations

import numpy as np

from countless._mcmc.crosscat.cells import Cells
from countless._mcmc.crosscat.pair import Pair, draw_pair, share_out
from countless._mcmc.crosscat.view import View, propose_rows
from countless.priors import PartitionPrior, Tables

# Probability that a merge is attempted: most pairs of columns are in two unrelated views, and to
# draw a joint partition is expensive. It enters the acceptance ratio of splits and merges.
MERGING = 0.2


def split_or_merge_anew(
    cells: Cells,
    views: list[View],
    row_prior: PartitionPrior,
    column_tables: Tables,
    random: np.random.Generator,
) -> list[View]:
    """Propose to split the view of two columns, or to merge their two views."""
    pair = draw_pair(cells, views, row_prior, column_tables, random)
    if pair is None or (not pair.split and random.random() > MERGING):
        return views
    log_mark = np.log1p(-random.random())

    def log_joint(view: View) -> float:
        log_density = cells.marginals(view.columns, view.labels).sum()
        return float(view.log_prior() + column_tables.size[len(view.columns)] + log_density)

    def propose_whole(given=None) -> tuple[View, float]:
        first = pair.first._replace(columns=pair.columns)
        drawn = propose_rows(cells, pair.columns, first.prior, first.tables, random, given)
        return first._replace(labels=drawn.labels), drawn.log_chosen

    # The reverse proposal has probability at most 1: this bound rejects most moves early.
    if pair.split:
        *halves, log_chosen = _halves(cells, pair, column_tables.join, random)
        log_ratio = np.log(MERGING) + pair.log_two - log_joint(pair.first) - log_chosen
        log_ratio += sum(map(log_joint, halves))
        if log_mark >= log_ratio or log_mark >= log_ratio + propose_whole(pair.first.labels)[1]:
            return views
        return [*halves, *pair.others]
    whole, log_chosen = propose_whole()
    log_ratio = log_joint(whole) - log_chosen - pair.log_two - np.log(MERGING)
    log_ratio -= log_joint(pair.first) + log_joint(pair.second)
    if log_mark >= log_ratio:
        return views
    if log_mark >= log_ratio + _halves(cells, pair, column_tables.join, random)[-1]:
        return views
    return [whole, *pair.others]


def _halves(
    cells: Cells, pair: Pair, join: np.ndarray, random: np.random.Generator
) -> tuple[View, View, float]:
    """Draw two views of the columns of a pair; for a merge, evaluate the two present ones.

    Returns them with the log of their proposal probability.
    """
    i, k, split, first, second, _, rest, *_ = pair

    def propose(own, view: View, given=None):
        return propose_rows(cells, np.sort(own), view.prior, view.tables, random, given)

    def gains(one: np.ndarray, two: np.ndarray) -> np.ndarray:
        return np.diff(cells.marginals(rest, np.stack([one, two])), axis=1)[:, 0]

    guessed, _ = share_out(
        gains(propose([i], first).labels, propose([k], second).labels), join, random
    )
    drawn = propose(np.append(rest[~guessed], i), first, None if split else first.labels)
    other = propose(np.append(rest[guessed], k), second, None if split else second.labels)
    forced = None if split else np.isin(rest, second.columns)
    follow, log_followed = share_out(gains(drawn.labels, other.labels), join, random, forced)
    return (
        first._replace(columns=np.sort(np.append(rest[~follow], i)), labels=drawn.labels),
        second._replace(columns=np.sort(np.append(rest[follow], k)), labels=other.labels),
        drawn.log_chosen + other.log_chosen + log_followed,
    )
