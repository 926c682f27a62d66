"""Micro-clusters: a table of any length as some hundreds of weighted points.

A short table is its own distinct rows. A longer one is cut around centers found on a sample, and
then all its rows are counted, so weights and sums are exact.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from countless.hard.divergence import Divergence
from countless.hard.nearest import Nearest
from countless.rows import Block, Rows, open_rows
from countless.rows.survey import hash_uniform

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
# Squared distances below this are those of equal rows.
NOISE = 2.0**-200
# Draws of the second half of the seeds.
SEED_DRAWS = 2


class MicroClusters(NamedTuple):
    """Items that stand for all rows; a row of no weight belongs to the item nearest to it."""

    labels: Any  # (n_rows,) the item of each row, in the form that the table came in
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


def micro_clusters(rows: Rows, *, seed: int, n_micro: int | None = None) -> MicroClusters:
    """Summarise rows by weighted items.

    Parameters
    ----------
    rows : Rows
    seed : int
        Which rows are sampled is a function of the seed and their places.
    n_micro : int, optional
        Default: the distinct rows of short tables, else `how_many`.

    Returns
    -------
    MicroClusters

    Examples
    --------
    >>> import numpy as np
    >>> from countless.hard.divergence import get_divergence
    >>> X = np.array([[1.0], [5.0], [1.0]])
    >>> with open_rows(X, None, get_divergence("sqeuclidean")) as rows:
    ...     items = micro_clusters(rows, seed=0)
    >>> items.labels.tolist(), items.weight.tolist(), items.within
    ([0, 1, 0], [2.0, 1.0], 0.0)
    """
    frame = rows.frame
    most = most_items(rows.n_features, frame.divergence)
    if n_micro is None and frame.n_counted <= min(FEW_ROWS, most):
        sample = rows.pick(sample_places(rows, frame.n_counted, seed, in_order=True))
        centers = _distinct(sample.points())
    else:
        n_micro = n_micro or min(how_many(frame.n_counted), most)
        sample = rows.pick(sample_places(rows, SAMPLE_RATIO * n_micro, seed))
        centers = _centers_of_sample(sample, frame.divergence, n_micro, rows.n_threads)
    nearest = assign_to(rows, centers)
    nearest.drop_empty()
    nearest.number_by_appearance()
    within = max(0.0, frame.total_cost + float(frame.energy(nearest.summary).sum()))
    # What rounding leaves of a sum of zeros is no cost.
    if within <= 1e-12 * abs(frame.total_cost):
        within = 0.0
    shown = sample.pick(np.arange(min(sample.n_rows, max(ITEM_VALUES // rows.n_features, FEWEST))))
    weight, total = frame.floats(nearest.summary)
    return MicroClusters(
        nearest.labels,
        weight,
        total,
        frame.origin,
        within,
        shown.points() - frame.origin,
        shown.weight,
    )


def assign_to(rows: Rows, centers: np.ndarray) -> Nearest:
    """Give each row to its nearest center."""
    nearest = Nearest(rows, centers)
    nearest.assign()
    return nearest


def sample_positions(weight: np.ndarray, size: int, seed: int) -> np.ndarray:
    """Draw positions without replacement, by weight and by a hash of each and the seed."""
    uniform = hash_uniform(np.arange(len(weight), dtype=np.uint64), seed)
    with np.errstate(divide="ignore"):
        time = -np.log(uniform) / weight
    return np.argsort(time, kind="stable")[: min(size, np.count_nonzero(weight))]


def sample_places(rows: Rows, size: int, seed: int, *, in_order: bool = False) -> np.ndarray:
    """Draw places of rows without replacement, by weight and by a hash of each and the seed.

    They come in random order, or ``in_order``. The sample is that of the whole table wherever its
    blocks are.
    """
    frame = rows.frame
    size = min(size, frame.n_counted)
    # The first arrivals of independent Poisson clocks; so many are expected before this time.
    before = 2.0 * size / frame.total_weight
    while True:
        arrivals = rows.run(
            arrivals_block, None, (seed, before if size < frame.n_counted else np.inf)
        )
        place, time = (np.concatenate(part) for part in zip(*arrivals, strict=True))
        if len(place) >= size:
            break
        before *= 4.0
    chosen = np.lexsort((place, time))[:size]
    return np.sort(place[chosen]) if in_order else place[chosen]


def arrivals_block(block: Block, held, message) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows that arrive before a time, and when."""
    seed, before = message
    place = np.arange(block.start, block.start + block.n_rows)
    counted = block.weight > 0
    uniform = hash_uniform(place[counted].astype(np.uint64), seed)
    time = -np.log(uniform) / block.weight[counted]
    early = time < before
    return place[counted][early], time[early]


def _centers_of_sample(sample: Block, divergence: Divergence, n_micro: int, n_jobs) -> np.ndarray:
    """Run a few passes of k-means on the sample, from seeds that leave no region out.

    The sample comes in random order, so its first rows seed the dense regions. The others are drawn
    in proportion to what they cost there, which finds small clusters that have no seed yet.
    """
    with open_rows(sample.values, sample.weight, divergence, n_jobs) as rows:
        first = min(n_micro // 2, rows.n_rows)
        centers = _distinct(rows.points(np.arange(first)))
        for draw in range(SEED_DRAWS):
            cost = sample.weight * _cost(assign_to(rows, centers))
            if not cost.any():
                break
            seeds = sample_positions(cost, n_micro // (2 * SEED_DRAWS), draw)
            centers = _distinct(np.vstack([centers, rows.points(seeds)]))
        nearest = assign_to(rows, centers)
        nearest.drop_empty()
        for _ in range(PASSES - 1):
            nearest.settle(local=True)
            nearest.drop_empty()
        return rows.frame.means(nearest.summary)


def _cost(nearest: Nearest) -> np.ndarray:
    """Return what each row costs at its center."""
    frame = nearest.rows.frame
    cost = nearest.rows.held(nearest.state, "upper").astype(np.float64) ** 2
    noise = np.float64(NOISE)
    if not frame.by_differences:
        noise = 1e-9 * np.abs(frame.linear(nearest.centers).offset[nearest.labels])
    # What rounding leaves of a distance 0 must not look like one.
    return np.where(cost > noise, cost, 0.0)


def _distinct(rows: np.ndarray) -> np.ndarray:
    """Return each row once, in order of appearance."""
    _, first = np.unique(rows, axis=0, return_index=True)
    return rows[np.sort(first)]
