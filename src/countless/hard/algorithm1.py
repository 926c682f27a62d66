"""Algorithm 1 of Kulis and Jordan, to the letter, on blocks of rows.

It lowers ``sum_i w_i d(x_i, center of its cluster) + penalty * n_clusters`` pass by pass. Within a
pass the old means stand still; a row that is farther than the penalty from them, and from what
earlier rows of the pass opened, opens a cluster.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from sklearn.utils import check_random_state

from countless.hard.nearest import Nearest
from countless.rows import MemoryRows, Summary

Rank = Callable[[np.ndarray], np.ndarray]  # rows -> when each is visited in a pass


class Clustering(NamedTuple):
    """A hard clustering, and how it was reached."""

    labels: np.ndarray  # (n_rows,) int32
    centers: np.ndarray  # (n_clusters, n_features) float64
    summary: Summary  # the clusters' weights and sums
    objective: float
    history: list[float]  # the objective after each pass
    n_iter: int
    converged: bool
    share_computed: float  # divergences computed / those of comparing all rows with all centers


def visiting_order(order: str, n_rows: int, random: np.random.RandomState | None) -> Rank | None:
    """Return the rank of each row under a fixed order; None where every pass makes its own."""
    if order == "given":
        return lambda ids: ids
    if order == "random":
        rank = check_random_state(random).permutation(n_rows)
        return lambda ids: rank[ids]
    return None


def farthest_first(nearest: Nearest, far: np.ndarray) -> Rank:
    """Rank far rows by falling weighted divergence; all others come after them."""
    cost = nearest.rows.weight[far] * nearest.upper[far].astype(np.float64) ** 2
    rank = np.full(nearest.rows.n_rows, len(far))
    rank[far[np.argsort(-cost, kind="stable")]] = np.arange(len(far))
    return lambda ids: rank[ids]


def one_pass(nearest: Nearest, summary: Summary, penalty: float, rank: Rank | None) -> Summary:
    """Assign every row to a mean, let far ones open clusters, return what clusters then hold."""
    rows = nearest.rows
    price = penalty * rows.divergence.scale
    far = nearest.assign(rows.means(summary), price)
    if len(far):
        nearest.open(far, price, rank or farthest_first(nearest, far))
    return nearest.summarise(summary)


def algorithm1(
    rows: MemoryRows,
    penalty: float,
    *,
    rank: Rank | None,
    max_iter: int,
    on_pass: Callable[[float, int], None] = lambda objective, n_clusters: None,
) -> Clustering:
    """Run Algorithm 1 until no label changes.

    Parameters
    ----------
    rows : MemoryRows
    penalty : float
        The price of one cluster, and the weighted divergence beyond which a row opens one.
    rank : callable or None
        When each row is visited; None visits the farthest rows first.
    max_iter : int
        Passes at most.
    on_pass : callable
        Told the objective and the number of clusters after each pass.
    """
    summary = rows.summary(np.zeros(rows.n_rows, dtype=np.int32), 1)
    nearest = Nearest(rows, rows.means(summary))
    history: list[float] = []
    converged = False
    while len(history) < max_iter and not converged:
        summary = one_pass(nearest, summary, penalty, rank)
        history.append(rows.objective(summary, penalty))
        converged = nearest.n_changed == 0
        on_pass(history[-1], nearest.n_clusters)
    return Clustering(
        nearest.labels,
        rows.means(summary),
        summary,
        history[-1],
        history,
        len(history),
        converged,
        nearest.n_computed / nearest.n_possible,
    )
