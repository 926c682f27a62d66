"""Metropolis-Hastings moves that split a view of CrossCat in two, or merge two views.

Both moves draw two columns i and k. If they are in one view, a split is proposed, else the merge of
their views. Other columns are allocated sequentially, by their likelihood ratio under the two row
partitions. A launch allocation, drawn first, depends only on what the move does not change, so that
its probability cancels in the acceptance ratio, as in the moves of Jain and Neal [1]_.

`split_or_merge_views` keeps the row partition of the view of i: to split, k opens a new view, whose
row partition is drawn for the launch set of columns.

`split_or_merge_resampled` resamples all row partitions involved. A view that combines two
independent structures has the product of their two partitions as its row partition, and neither
half of its columns gains by leaving while the other half keeps that product. So a split draws the
row partitions of both halves, and a merge that of the merged view.

References
----------
.. [1] S. Jain and R. M. Neal, "A split-merge Markov chain Monte Carlo procedure for the Dirichlet
   process mixture model", JCGS 13, 2004.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from countless._mcmc.crosscat.column_models import ColumnModels
from countless._mcmc.crosscat.views import View, new_view, propose_rows, views_of
from countless.priors import PartitionPrior, Tables

# Probability that a merge is attempted in `split_or_merge_resampled`.
MERGE_PROBABILITY = 0.2


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
    models: ColumnModels,
    views: list[View],
    row_prior: PartitionPrior,
    column_tables: Tables,
    random: np.random.Generator,
) -> Pair | None:
    """Draw two columns; None if the prior does not allow two views."""
    i, k = random.choice(models.n_columns, 2, replace=False)
    view_of = views_of(views, models.n_columns)
    a, b = view_of[i], view_of[k]
    split = bool(a == b)
    n_fewer = len(views) - (not split)  # number of views when the two are merged
    if column_tables.open[n_fewer] == -np.inf:
        return None
    first = views[a]
    second = new_view([k], len(models.rows), row_prior, random) if split else views[b]
    columns = first.columns if split else np.union1d(first.columns, second.columns)
    rest = random.permutation(columns[(columns != i) & (columns != k)])
    others = [view for v, view in enumerate(views) if v not in (a, b)]
    log_two = float(column_tables.open[n_fewer] - column_tables.size[1])
    return Pair(int(i), int(k), split, first, second, columns, rest, others, log_two)


def allocate_columns(
    log_likelihood_ratios: np.ndarray, join: np.ndarray, random: np.random.Generator, forced=None
) -> tuple[np.ndarray, float]:
    """Allocate columns sequentially to two views that start with one column each.

    Returns which columns are in the second view, and the log probability of that; ``forced``
    prescribes it.
    """
    second = np.zeros(len(log_likelihood_ratios), dtype=bool)
    sizes = [1, 1]
    log_probability = 0.0
    for place, log_likelihood_ratio in enumerate(log_likelihood_ratios):
        log_odds = log_likelihood_ratio + join[sizes[1]] - join[sizes[0]]
        if forced is None:
            second[place] = np.log(random.random()) < -np.logaddexp(0.0, -log_odds)
        else:
            second[place] = forced[place]
        log_probability -= np.logaddexp(0.0, -log_odds if second[place] else log_odds)
        sizes[int(second[place])] += 1
    return second, float(log_probability)


def split_or_merge_views(
    models: ColumnModels,
    views: list[View],
    row_prior: PartitionPrior,
    column_tables: Tables,
    random: np.random.Generator,
) -> list[View]:
    """Propose to split the view of two columns, or to merge their two views; keep one partition."""
    pair = draw_pair(models, views, row_prior, column_tables, random)
    if pair is None:
        return views
    _, k, split, keeps, moves, columns, rest, others, log_two = pair
    size, join = column_tables.size, column_tables.join
    index_of_rest = np.searchsorted(columns, rest)
    under_old = models.log_marginals(columns, keeps.labels)[:, 0]
    log_uniform = np.log1p(-random.random())

    def log_likelihood_ratios(labels: np.ndarray) -> np.ndarray:
        return models.log_marginals(columns, labels)[:, 0] - under_old

    def log_posterior_ratio(view: View, log_likelihood_ratios: np.ndarray) -> float:
        """Return the log posterior ratio of two views to one."""
        n_moved = len(view.columns)
        ratio = size[n_moved] + size[len(columns) - n_moved] - size[len(columns)]
        ratio += log_two + view.log_prior()
        return float(ratio + log_likelihood_ratios[np.isin(columns, view.columns)].sum())

    log_ratio = 0.0
    if not split:
        log_ratio = log_posterior_ratio(moves, log_likelihood_ratios(moves.labels))
        log_acceptance_bound = -log_ratio  # the reverse proposal has probability at most 1
        if log_uniform >= log_acceptance_bound:
            return views
    launch = propose_rows(models, np.array([k]), moves.prior, moves.tables, random)
    in_launch, _ = allocate_columns(
        log_likelihood_ratios(launch.labels)[index_of_rest], join, random
    )
    launch_columns = np.sort(np.append(rest[in_launch], k))
    given = None if split else moves.labels
    proposal = propose_rows(models, launch_columns, moves.prior, moves.tables, random, given)
    under_new = log_likelihood_ratios(proposal.labels if split else moves.labels)
    forced = None if split else np.isin(rest, moves.columns)
    in_second, log_allocation = allocate_columns(under_new[index_of_rest], join, random, forced)
    log_proposal = proposal.log_proposal + log_allocation
    if not split:
        log_acceptance = log_proposal - log_ratio
        if log_uniform >= log_acceptance:
            return views
        return [keeps._replace(columns=columns), *others]
    own = np.sort(np.append(rest[in_second], k))
    moves = moves._replace(columns=own, labels=proposal.labels)
    log_acceptance = log_posterior_ratio(moves, under_new) - log_proposal
    if log_uniform >= log_acceptance:
        return views
    return [keeps._replace(columns=np.setdiff1d(columns, own)), moves, *others]


def split_or_merge_resampled(
    models: ColumnModels,
    views: list[View],
    row_prior: PartitionPrior,
    column_tables: Tables,
    random: np.random.Generator,
) -> list[View]:
    """Propose to split the view of two columns, or to merge their two views; resample the rows.

    Most pairs of columns are in two unrelated views, and to propose a joint partition is expensive.
    So a merge is attempted with probability `MERGE_PROBABILITY` only, which is a factor of the
    proposal probability in both directions.
    """
    pair = draw_pair(models, views, row_prior, column_tables, random)
    if pair is None or (not pair.split and random.random() > MERGE_PROBABILITY):
        return views
    log_uniform = np.log1p(-random.random())

    def log_joint(view: View) -> float:
        log_density = models.log_marginals(view.columns, view.labels).sum()
        return float(view.log_prior() + column_tables.size[len(view.columns)] + log_density)

    def propose_merged(given=None) -> tuple[View, float]:
        first = pair.first._replace(columns=pair.columns)
        drawn = propose_rows(models, pair.columns, first.prior, first.tables, random, given)
        return first._replace(labels=drawn.labels), drawn.log_proposal

    # The reverse proposal has probability at most 1: this bound rejects most moves early.
    if pair.split:
        *halves, log_proposal = _propose_halves(models, pair, column_tables.join, random)
        log_acceptance_bound = (
            np.log(MERGE_PROBABILITY) + pair.log_two - log_joint(pair.first) - log_proposal
        )
        log_acceptance_bound += sum(map(log_joint, halves))
        if log_uniform >= log_acceptance_bound:
            return views
        _, log_reverse_proposal = propose_merged(pair.first.labels)
        log_acceptance = log_acceptance_bound + log_reverse_proposal
        return views if log_uniform >= log_acceptance else [*halves, *pair.others]
    merged, log_proposal = propose_merged()
    log_acceptance_bound = (
        log_joint(merged) - log_proposal - pair.log_two - np.log(MERGE_PROBABILITY)
    )
    log_acceptance_bound -= log_joint(pair.first) + log_joint(pair.second)
    if log_uniform >= log_acceptance_bound:
        return views
    *_, log_reverse_proposal = _propose_halves(models, pair, column_tables.join, random)
    log_acceptance = log_acceptance_bound + log_reverse_proposal
    return views if log_uniform >= log_acceptance else [merged, *pair.others]


def _propose_halves(
    models: ColumnModels, pair: Pair, join: np.ndarray, random: np.random.Generator
) -> tuple[View, View, float]:
    """Propose two views of the columns of a pair; for a merge, evaluate the two present ones.

    Returns them with the log of their proposal probability.
    """
    i, k, split, first, second, _, rest, *_ = pair

    def propose(own, view: View, given=None):
        return propose_rows(models, np.sort(own), view.prior, view.tables, random, given)

    def log_likelihood_ratios(one: np.ndarray, two: np.ndarray) -> np.ndarray:
        return np.diff(models.log_marginals(rest, np.stack([one, two])), axis=1)[:, 0]

    launch = log_likelihood_ratios(propose([i], first).labels, propose([k], second).labels)
    in_launch, _ = allocate_columns(launch, join, random)
    of_first = propose(np.append(rest[~in_launch], i), first, None if split else first.labels)
    of_second = propose(np.append(rest[in_launch], k), second, None if split else second.labels)
    forced = None if split else np.isin(rest, second.columns)
    in_second, log_allocation = allocate_columns(
        log_likelihood_ratios(of_first.labels, of_second.labels), join, random, forced
    )
    return (
        first._replace(columns=np.sort(np.append(rest[~in_second], i)), labels=of_first.labels),
        second._replace(columns=np.sort(np.append(rest[in_second], k)), labels=of_second.labels),
        of_first.log_proposal + of_second.log_proposal + log_allocation,
    )
