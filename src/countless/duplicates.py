"""Near duplicates: rows that are closer to each other than the density around them predicts.

Where rows are a sample of a smooth density in d dimensions, the rows around one of them are locally
uniform. Then ``x_j = log(r_(j+1) / r_j)`` of the distances r1 <= r2 <= ... of its neighbours is
exponential with the rate ``d * j``; in other words, r1 / r2 has the distribution function t**d. A
row with j copies has a large x_j.

The dimension need not be the same everywhere. It is estimated from x_1 of the rows around a row
(Facco, d'Errico, Rodriguez and Laio, *Estimating the intrinsic dimension of datasets by a minimal
neighborhood information*, 2017), without the larger half, in which duplicates would be: with the
sum ``total`` of m values that are counted, censored at the largest of them, m / total estimates d,
and ``x_j / total`` exceeds t with probability ``(1 + j t)**-m``. The sum of that over all j, at the
largest x_j, bounds the p-value of a row. The false discovery rate is controlled by the procedure of
Benjamini and Hochberg.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components
from scipy.stats import false_discovery_control
from sklearn.neighbors import NearestNeighbors
from sklearn.utils import check_array

from countless._labels import NOISE, number_by_appearance
from countless._numbers import check_finite, moved_to_zero
from countless._show import Records, Shown, short
from countless._threads import count_threads, one_library_thread


@dataclass(frozen=True)
class CopySearch:
    """Constants of the search."""

    # Neighbours of each row: a group of near duplicates has at most as many rows.
    n_neighbors: int = 20
    # Share of the values around a row that its dimension is estimated from, the smallest.
    counted: float = 0.5
    # Values of a block.
    block_values: int = 2**22


COPY_SEARCH = CopySearch()


class Group(NamedTuple):
    """Rows that repeat each other, exactly or nearly."""

    rows: list[int]  # ascending
    distance: float  # the largest from a row to the nearest other one of the group
    p_value: float  # the lowest of its rows


class NearDuplicates(Shown):
    """Groups of rows that repeat each other. Made by `near_duplicates`.

    Attributes
    ----------
    groups : list of Group
        In the order of their first rows.
    labels : ndarray of shape (n_samples,)
        The group of each row; -1 for rows that repeat no other.
    keep : ndarray of bool of shape (n_samples,)
        All rows but those that repeat an earlier one.
    p_values : ndarray of shape (n_samples,)
        An upper bound on the probability that a row of a smooth density has neighbours as close,
        beside the next ones; 0 for exact repeats.
    dimension : float
        The intrinsic dimension around the distinct rows, their median; NaN if they are too few
        or on a grid.
    """

    def __init__(self, labels, distances, p_values, dimension: float):
        self.labels, self.p_values, self.dimension = labels, p_values, dimension
        order = np.argsort(labels, kind="stable")
        order = order[np.searchsorted(labels[order], 0) :]
        parts = np.split(order, np.flatnonzero(np.diff(labels[order])) + 1) if len(order) else []
        self.groups = Records(
            Group(rows.tolist(), float(distances[rows].max()), float(p_values[rows].min()))
            for rows in parts
        )
        self.keep = labels == NOISE
        self.keep[[group.rows[0] for group in self.groups]] = True

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self.groups)} groups)"

    def _describe(self) -> tuple[list[str], Records]:
        repeated = int((~self.keep).sum())
        line = f"{len(self.groups)} groups of near duplicates; {repeated} rows repeat earlier ones "
        return [line + f"(intrinsic dimension {short(self.dimension)})"], self.groups


def near_duplicates(
    X: Any, *, metric: str = "euclidean", level: float = 0.05, n_jobs: int | None = None
) -> NearDuplicates:
    """Find rows that are closer to each other than the density around them predicts.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        The rows.
    metric : {'euclidean', 'cosine'}, default='euclidean'
        'cosine' compares directions: rows are scaled to unit length.
    level : float, default=0.05
        The largest expected proportion of rows without a copy among those found, if rows are a
        sample of a smooth density (false discovery rate). Exact repeats are always found.
    n_jobs : int, optional
        Threads; they do not change the result.

    Returns
    -------
    NearDuplicates

    Notes
    -----
    Groups of more than 20 rows, exact repeats aside, are not found: they are clusters. Time is that
    of the exact neighbours of all rows: of the order of the square of their number in more than
    some 15 dimensions. Where the density is far from constant among 20 neighbours, in many
    dimensions with heavy tails, the false discovery rate is above ``level``.

    Examples
    --------
    >>> import numpy as np
    >>> from countless import near_duplicates
    >>> X = np.random.default_rng(0).normal(size=(300, 3))
    >>> X[7], X[200] = X[3] + 1e-6, X[100]
    >>> found = near_duplicates(X)
    >>> [group.rows for group in found.groups]
    [[3, 7], [100, 200]]
    >>> int(found.keep.sum())
    298
    """
    if metric not in ("euclidean", "cosine"):
        raise ValueError(f"metric must be 'euclidean' or 'cosine'; got {metric!r}")
    if isinstance(level, bool) or not isinstance(level, float | int) or not 0 < level < 1:
        raise ValueError(f"level must be a number above 0 and below 1; got {level!r}")
    count_threads(n_jobs)
    given, X = X, check_array(X, dtype=[np.float64, np.float32], ensure_all_finite=False)
    check_finite(X, given)
    rows = X.astype(np.float64, copy=False)
    if metric == "cosine":
        norm = np.linalg.norm(rows, axis=1, keepdims=True)
        rows = rows / np.where(norm > 0, norm, 1.0)
    # Exact repeats are found by sorting; all else is about distinct rows.
    distinct, repeat = np.unique(rows, axis=0, return_inverse=True)
    repeat = repeat.ravel()  # of another shape in some versions of NumPy
    near = _copies(distinct, level, n_jobs)
    count = np.bincount(repeat)
    label = near.group[repeat]
    size = np.bincount(label)
    grouped = np.full(len(rows), NOISE, dtype=np.int32)
    inside = size[label] > 1
    grouped[inside] = number_by_appearance(label[inside])[1]
    exact = count[repeat] > 1
    p_values = np.where(exact, 0.0, near.p_value[repeat])
    return NearDuplicates(
        grouped, np.where(exact, 0.0, near.distance[repeat]), p_values, near.dimension
    )


class Copies(NamedTuple):
    """Near duplicates among distinct rows."""

    group: np.ndarray  # (n,) equal for rows that repeat each other
    distance: np.ndarray  # (n,) from the nearest row
    p_value: np.ndarray  # (n,)
    dimension: float


def _copies(rows: np.ndarray, level: float, n_jobs: int | None) -> Copies:
    n_rows = len(rows)
    if n_rows < 3:  # no ratio of distances
        return Copies(np.arange(n_rows), np.full(n_rows, np.inf), np.ones(n_rows), np.nan)
    distance, neighbor = nearest_rows(rows, min(COPY_SEARCH.n_neighbors, n_rows - 1), n_jobs)
    log_ratio = np.diff(np.log(np.maximum(distance, np.finfo(float).tiny)), axis=1)
    around = dimension_around(log_ratio[:, 0], neighbor)
    largest = log_ratio.max(axis=1)
    n_copies = log_ratio.argmax(axis=1) + 1
    p_value = np.zeros(n_rows)
    for j in range(1, log_ratio.shape[1] + 1):
        p_value += (1.0 + j * largest / around.total) ** -around.n_counted
    p_value = np.minimum(p_value, 1.0)
    found = np.flatnonzero(false_discovery_control(p_value) <= level)
    row = np.repeat(found, n_copies[found])
    column = np.concatenate([neighbor[i, : n_copies[i]] for i in found] or [found])
    links = sp.csr_array((np.ones(len(row)), (row, column)), (n_rows, n_rows))
    group = connected_components(links, directed=False)[1]
    known = np.isfinite(around.total)
    dimension = (
        float(np.median((around.n_counted / around.total)[known])) if known.any() else np.nan
    )
    return Copies(group, distance[:, 0], p_value, dimension)


def nearest_rows(
    rows: np.ndarray, n_neighbors: int, n_jobs: int | None
) -> tuple[np.ndarray, np.ndarray]:
    """Return the distances of the nearest other rows, ascending, and their indices.

    Distances are computed from differences: matrix products lose those of near duplicates.
    """
    rows = moved_to_zero(rows, rows)[0]
    with one_library_thread():
        search = NearestNeighbors(n_neighbors=n_neighbors, n_jobs=n_jobs).fit(rows)
        neighbor = search.kneighbors(return_distance=False)
    distance = np.empty(neighbor.shape)
    step = max(1, COPY_SEARCH.block_values // (n_neighbors * rows.shape[1]))
    for start in range(0, len(rows), step):
        block = slice(start, start + step)
        difference = rows[neighbor[block]] - rows[block, None]
        distance[block] = np.sqrt(np.einsum("ijk,ijk->ij", difference, difference))
    order = np.lexsort((neighbor, distance))
    return np.take_along_axis(distance, order, 1), np.take_along_axis(neighbor, order, 1)


class Around(NamedTuple):
    """What the rows around each row say about the dimension."""

    total: np.ndarray  # (n,) of the smallest log ratios, the others censored
    n_counted: np.ndarray  # (n,) how many are counted; their ratio estimates the dimension


def dimension_around(log_ratio: np.ndarray, neighbor: np.ndarray) -> Around:
    """Return the censored sums of log(r2 / r1) over the neighbours' neighbours of each row.

    Examples
    --------
    >>> cube = np.random.default_rng(0).uniform(size=(2000, 3))
    >>> distance, neighbor = nearest_rows(cube, 20, None)
    >>> around = dimension_around(np.log(distance[:, 1] / distance[:, 0]), neighbor)
    >>> round(float(np.median(around.n_counted / around.total)))
    3
    """
    n_rows, k = neighbor.shape
    total, n_counted = np.empty(n_rows), np.empty(n_rows)
    step = max(1, COPY_SEARCH.block_values // k**2)
    for start in range(0, n_rows, step):
        own = np.arange(start, min(start + step, n_rows))
        pool = neighbor[neighbor[own]].reshape(len(own), -1)
        pool.sort(axis=1)
        other = (np.diff(pool, axis=1, prepend=-1) > 0) & (pool != own[:, None])
        values = np.sort(np.where(other, log_ratio[pool], np.inf), axis=1)
        count = other.sum(axis=1)
        m = np.maximum((COPY_SEARCH.counted * count).astype(np.int64), 1)
        last = np.take_along_axis(values, m[:, None] - 1, 1)
        counted = np.where(np.arange(values.shape[1]) < m[:, None], values, 0.0).sum(axis=1)
        total[own] = counted + (count - m) * last[:, 0]
        n_counted[own] = m
    # Where distances are tied, as on a grid, there is no density to compare with.
    return Around(np.where(total > 0, total, np.inf), n_counted)
