"""Micro-clusters: a table of any length as some hundreds of weighted points.

A short table is its own distinct rows. A longer one is cut around centers found on a sample, and
then all its rows are counted, so weights and sums are exact.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from countless.hard.divergence import Divergence
from countless.hard.nearest import Nearest
from countless.rows import MemoryRows, Summary, open_rows

# Tables of at most this many rows are not summarised: their distinct rows are the items.
FEW_ROWS = 1000
# How many micro-clusters: between the two, as many as keep the comparisons with all rows at this
# number.
FEWEST, MOST, COMPARISONS = 384, 1024, 4e7
# Values in the items and in the dense part of the sample: a table with many columns gets fewer.
ITEM_VALUES = 2**22
# Values of all pairs of items: where merge costs have no short cut, each must be looked at.
PAIR_VALUES = 2**27
# Sampled rows for each micro-cluster, and passes of k-means over the sample.
SAMPLE_RATIO = 8
PASSES = 6
# Draws of the second half of the seeds.
SEED_DRAWS = 2


class MicroClusters(NamedTuple):
    """Items that stand for all rows; a row of no weight belongs to the item nearest to it."""

    labels: np.ndarray  # (n_rows,) the item of each row
    weight: np.ndarray  # (m,)
    total: np.ndarray  # (m, n_features) about the origin
    origin: np.ndarray  # (n_features,)
    within: float  # cost of the rows at their items' means
    sample: np.ndarray  # (s, n_features) rows minus origin that show the shape of the whole
    sample_weight: np.ndarray  # (s,)


def most_items(n_features: int, divergence: Divergence) -> int:
    """Return how many items the tree can afford."""
    affordable = ITEM_VALUES / n_features
    if not divergence.is_metric:
        affordable = min(affordable, np.sqrt(PAIR_VALUES / n_features))
    return int(max(affordable, FEWEST / 3))


def how_many(n_rows: int) -> int:
    """Return the number of micro-clusters that a table is worth."""
    return int(min(max(COMPARISONS / n_rows, FEWEST), MOST, max(n_rows / 4, FEWEST)))


def micro_clusters(
    X: Any,
    weight: np.ndarray,
    divergence: Divergence,
    *,
    seed: int,
    n_micro: int | None = None,
    n_jobs: int | None = None,
) -> MicroClusters:
    """Summarise rows by weighted items.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n_rows, n_features)
        Rows inside the divergence's domain, prepared by it.
    weight : ndarray of shape (n_rows,)
        At least one is positive.
    divergence : Divergence
        How rows are compared.
    seed : int
        Which rows are sampled is a function of the seed and their positions.
    n_micro : int, optional
        Default: the distinct rows of short tables, else `how_many`.
    n_jobs : int, optional
        Threads; they do not change the result.

    Returns
    -------
    MicroClusters

    Examples
    --------
    >>> import numpy as np
    >>> from countless.hard.divergence import get_divergence
    >>> X = np.array([[1.0], [5.0], [1.0]])
    >>> items = micro_clusters(X, np.ones(3), get_divergence("sqeuclidean"), seed=0)
    >>> items.labels.tolist(), items.weight.tolist(), items.within
    ([0, 1, 0], [2.0, 1.0], 0.0)
    """
    with open_rows(X, weight, divergence, n_jobs) as rows:
        most = most_items(rows.n_features, divergence)
        if n_micro is None and rows.n_rows <= min(FEW_ROWS, most):
            sampled = np.flatnonzero(weight > 0)
            centers = _distinct(rows.take(sampled))
        else:
            n_micro = n_micro or min(how_many(rows.n_rows), most)
            sampled = sample_positions(weight, SAMPLE_RATIO * n_micro, seed)
            centers = _centers_of_sample(X, weight, divergence, sampled, n_micro, n_jobs)
        labels, summary = _assign(rows, centers)
        energy = divergence.energy(summary.weight, summary.total)
        within = max(0.0, rows.total_cost + float(energy.sum()))
        # What rounding leaves of a sum of zeros is no cost.
        if within <= 1e-12 * abs(rows.total_cost):
            within = 0.0
        shown = sampled[: max(ITEM_VALUES // rows.n_features, FEWEST)]
        sample = rows.take(shown) - rows.origin
        return MicroClusters(
            labels, summary.weight, summary.total, rows.origin, within, sample, weight[shown]
        )


def sample_positions(weight: np.ndarray, size: int, seed: int) -> np.ndarray:
    """Draw positions without replacement, by weight and by a hash of each and the seed."""
    uniform = hash_uniform(np.arange(len(weight), dtype=np.uint64), seed)
    with np.errstate(divide="ignore"):
        arrival = -np.log(uniform) / weight  # the first arrivals of independent Poisson clocks
    size = min(size, int(np.count_nonzero(weight)))
    first = np.argpartition(arrival, size - 1)[:size]
    return first[np.argsort(arrival[first], kind="stable")]


def hash_uniform(position: np.ndarray, seed: int) -> np.ndarray:
    """Return a number in (0, 1) for each position: the finaliser of splitmix64."""
    state = position * np.uint64(0x9E3779B97F4A7C15) + np.uint64(seed % 2**64)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        state = (state ^ (state >> np.uint64(shift))) * np.uint64(factor)
    state ^= state >> np.uint64(31)
    return ((state >> np.uint64(11)).astype(np.float64) + 0.5) / 2.0**53


def _centers_of_sample(X, weight, divergence, sampled, n_micro, n_jobs):
    """Run a few passes of k-means on the sample, from seeds that leave no region out.

    The sample comes in random order, so its first rows seed the dense regions. The others are drawn
    in proportion to what they cost there, which finds small clusters that have no seed yet.
    """
    with open_rows(X[sampled], weight[sampled], divergence, n_jobs) as rows:
        first = min(n_micro // 2, rows.n_rows)
        centers = _distinct(rows.take(np.arange(first)))
        for draw in range(SEED_DRAWS):
            cost = rows.weight * _divergence(rows, _assign(rows, centers)[0], centers)
            if not cost.any():
                break
            seeds = sample_positions(cost, n_micro // (2 * SEED_DRAWS), draw)
            centers = _distinct(np.vstack([centers, rows.take(seeds)]))
        nearest = Nearest(rows, centers)
        nearest.assign(centers)
        summary = nearest.summarise(None)
        for _ in range(PASSES - 1):
            nearest.assign(rows.means(summary), local=True)
            summary = nearest.summarise(summary)
        return rows.means(summary)


def _divergence(rows: MemoryRows, labels: np.ndarray, centers: np.ndarray) -> np.ndarray:
    """Return what each row costs at its center, block by block."""
    slope, offset = rows.divergence.slope_offset(centers)
    cost = rows.divergence.row_cost(rows.X) + offset[labels]
    for start, stop in rows.blocks():
        block, near = rows.X[start:stop], slope[labels[start:stop]]
        dots = block.multiply(near) if sp.issparse(block) else block * near
        cost[start:stop] -= np.asarray(dots.sum(axis=1)).ravel()
    # What rounding leaves of a distance 0 must not look like one.
    return np.where(cost > 1e-9 * np.abs(offset[labels]), cost, 0.0)


def _assign(rows: MemoryRows, centers: np.ndarray) -> tuple[np.ndarray, Summary]:
    """Give each row to its nearest center; centers that attract no weight are left out."""
    while True:
        nearest = Nearest(rows, centers)
        nearest.assign(centers)
        summary = rows.summary(nearest.labels, len(centers))
        heavy = summary.weight > 0
        if heavy.all():
            return nearest.labels, summary
        centers = centers[heavy]


def _distinct(rows: np.ndarray) -> np.ndarray:
    """Return each row once, in order of appearance."""
    _, first = np.unique(rows, axis=0, return_index=True)
    return rows[np.sort(first)]
