"""Micro-clusters (a coreset): a table of any length as some hundreds of weighted points.

For a short table these are its distinct rows. A longer one is partitioned around centers found on a
sample, and then all its rows are assigned, so weights and sums are exact.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from countless._data import Backend, Block, open_rows
from countless._data.validate import hash_uniform
from countless._search.assignment import Assignment
from countless.divergences import Divergence


@dataclass(frozen=True)
class Coreset:
    """Constants of micro-clusters; ``benchmarks/path_evidence.py`` shows what they are worth."""

    # Tables of at most this many rows are not summarised: their distinct rows are the items.
    few_rows: int = 1000
    # Least and largest number of micro-clusters; in between, rows times micro-clusters is about
    # this many comparisons.
    fewest: int = 384
    most: int = 1024
    comparisons: float = 4e7
    # Largest number of values in the items and in the dense part of the sample: a table with many
    # columns gets fewer items.
    item_values: int = 2**22
    # Largest number of values of all pairs of items, for divergences whose merge costs are computed
    # pair by pair.
    pair_values: int = 2**27
    # Sampled rows per micro-cluster, k-means iterations on the sample, and rounds in which the
    # second half of the seeds is drawn.
    sample_ratio: int = 8
    passes: int = 6
    seed_draws: int = 2


CORESET = Coreset()


class MicroClusters(NamedTuple):
    """Items that represent all rows; a row of zero weight belongs to the item nearest to it."""

    labels: Any  # (n_rows,) the item of each row, as the same kind of array as the table
    weight: np.ndarray  # (m,)
    total: np.ndarray  # (m, n_features) relative to the origin
    origin: np.ndarray  # (n_features,)
    within: float  # cost of the rows at their items' means
    sample: np.ndarray  # (s, n_features) a sample of the rows, relative to the origin
    sample_weight: np.ndarray  # (s,)
    centers: Any = None  # (m, n_features) each row belongs to the item of its nearest center


def most_items(n_features: int, divergence: Divergence) -> int:
    """Return the largest number of items for which the dendrogram is affordable."""
    affordable = CORESET.item_values / n_features
    if not divergence.is_metric:
        affordable = min(affordable, np.sqrt(CORESET.pair_values / n_features))
    return int(max(affordable, CORESET.fewest / 3))


def how_many(n_rows: int) -> int:
    """Return the number of micro-clusters for a table."""
    fewest = CORESET.fewest
    return int(
        min(max(CORESET.comparisons / n_rows, fewest), CORESET.most, max(n_rows / 4, fewest))
    )


def micro_clusters(rows: Backend, *, seed: int, n_micro: int | None = None) -> MicroClusters:
    """Summarise rows by weighted items.

    Parameters
    ----------
    rows : Backend
    seed : int
        The sample is a function of the seed and the indices of rows.
    n_micro : int, optional
        Default: the distinct rows of short tables, else `how_many`.

    Returns
    -------
    MicroClusters

    Examples
    --------
    >>> import numpy as np
    >>> from countless.divergences import get_divergence
    >>> X = np.array([[1.0], [5.0], [1.0]])
    >>> with open_rows(X, None, get_divergence("sqeuclidean")) as rows:
    ...     items = micro_clusters(rows, seed=0)
    >>> items.labels.tolist(), items.weight.tolist(), items.within
    ([0, 1, 0], [2.0, 1.0], 0.0)
    """
    fixed_point = rows.fixed_point
    most = most_items(rows.n_features, fixed_point.divergence)
    if n_micro is None and fixed_point.n_counted <= min(CORESET.few_rows, most):
        sample = rows.pick(sample_places(rows, fixed_point.n_counted, seed, in_order=True))
        centers = _distinct(sample.points())
    else:
        n_micro = n_micro or min(how_many(fixed_point.n_counted), most)
        sample = rows.pick(sample_places(rows, CORESET.sample_ratio * n_micro, seed))
        centers = _centers_of_sample(sample, fixed_point.divergence, n_micro, rows.n_threads)
    nearest = assign_to(rows, centers)
    nearest.drop_empty()
    nearest.number_by_appearance()
    within = max(0.0, fixed_point.total_cost + float(fixed_point.energy(nearest.summary).sum()))
    # A tiny cost is the rounding error of a sum of zeros.
    if within <= 1e-12 * abs(fixed_point.total_cost):
        within = 0.0
    n_shown = max(CORESET.item_values // rows.n_features, CORESET.fewest)
    shown = sample.pick(np.arange(min(sample.n_rows, n_shown)))
    weight, total = fixed_point.to_floats(nearest.summary)
    return MicroClusters(
        nearest.labels,
        weight,
        total,
        fixed_point.origin,
        within,
        shown.points() - fixed_point.origin,
        shown.weight,
        nearest.centers,
    )


def assign_to(rows: Backend, centers: np.ndarray) -> Assignment:
    """Assign each row to its nearest center."""
    nearest = Assignment(rows, centers)
    nearest.assign()
    return nearest


def sample_positions(weight: np.ndarray, size: int, seed: int) -> np.ndarray:
    """Draw positions without replacement, with probability by weight, from hashes of the seed."""
    uniform = hash_uniform(np.arange(len(weight), dtype=np.uint64), seed)
    with np.errstate(divide="ignore"):
        time = -np.log(uniform) / weight
    return np.argsort(time, kind="stable")[: min(size, np.count_nonzero(weight))]


def sample_places(rows: Backend, size: int, seed: int, *, in_order: bool = False) -> np.ndarray:
    """Draw row indices without replacement, with probability by weight, from hashes of the seed.

    They are returned in random order, or ascending with ``in_order``. The sample does not depend on
    the backend or the blocks.
    """
    fixed_point = rows.fixed_point
    size = min(size, fixed_point.n_counted)
    # The first arrivals of independent Poisson processes, with the weights as rates; about twice
    # the size is expected before this time.
    before = 2.0 * size / fixed_point.total_weight
    while True:
        arrivals = rows.run(
            arrivals_block, None, (seed, before if size < fixed_point.n_counted else np.inf)
        )
        place, time = (np.concatenate(part) for part in zip(*arrivals, strict=True))
        if len(place) >= size:
            break
        before *= 4.0
    chosen = np.lexsort((place, time))[:size]
    return np.sort(place[chosen]) if in_order else place[chosen]


def arrivals_block(block: Block, held, message) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows that arrive before a time, and their arrival times."""
    seed, before = message
    place = np.arange(block.start, block.start + block.n_rows)
    counted = block.weight > 0
    uniform = hash_uniform(place[counted].astype(np.uint64), seed)
    time = -np.log(uniform) / block.weight[counted]
    early = time < before
    return place[counted][early], time[early]


def _centers_of_sample(sample: Block, divergence: Divergence, n_micro: int, n_jobs) -> np.ndarray:
    """Run a few k-means iterations on the sample, with seeding in the style of k-means||.

    The sample is in random order, so its first rows seed the dense regions. The other seeds are
    drawn with probability proportional to their cost, which finds small clusters without a seed.
    """
    with open_rows(sample.values, sample.weight, divergence, n_jobs) as rows:
        first = min(n_micro // 2, rows.n_rows)
        centers = _distinct(rows.points(np.arange(first)))
        for draw in range(CORESET.seed_draws):
            cost = sample.weight * _cost(assign_to(rows, centers))
            if not cost.any():
                break
            seeds = sample_positions(cost, n_micro // (2 * CORESET.seed_draws), draw)
            centers = _distinct(np.vstack([centers, rows.points(seeds)]))
        nearest = assign_to(rows, centers)
        nearest.drop_empty()
        for _ in range(CORESET.passes - 1):
            nearest.lloyd_step(local=True)
            nearest.drop_empty()
        return rows.fixed_point.means(nearest.summary)


def _cost(nearest: Assignment) -> np.ndarray:
    """Return the cost of each row at its center."""
    fixed_point = nearest.rows.fixed_point
    cost = nearest.rows.get(nearest.state, "upper").astype(np.float64) ** 2
    noise = np.float64(2.0**-200)  # less is attributed to equal rows
    if not fixed_point.by_differences:
        noise = 1e-9 * np.abs(fixed_point.linear(nearest.centers).offset[nearest.labels])
    # Rounding errors of a zero distance must not count as a cost.
    return np.where(cost > noise, cost, 0.0)


def _distinct(rows: np.ndarray) -> np.ndarray:
    """Return each row once, in order of appearance."""
    _, first = np.unique(rows, axis=0, return_index=True)
    return rows[np.sort(first)]
