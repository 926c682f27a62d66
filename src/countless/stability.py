"""Cluster stability by the bootstrap.

Rows are resampled with replacement, and clustered as the table was. Three statistics are recorded:
how often two rows are in one cluster (co-clustering), how well each cluster is recovered (the
largest Jaccard index, rows in both over rows in either, with a cluster of the resample), and the
number of clusters. C. Hennig, Cluster-wise assessment of cluster stability, Computational
Statistics & Data Analysis 52 (2007): clusters with a mean Jaccard index of .75 or more are stable,
those with .5 or less are dissolved.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.metrics import adjusted_rand_score
from sklearn.utils import check_random_state, get_tags, resample

from countless._labels import NOISE, number_by_appearance
from countless._memory import state_memory
from countless._parameters import check_count
from countless._show import Plotted, Records
from countless._threads import open_threads

NOT_DRAWN = -2
# Jaccard index up to which a cluster is dissolved, and from which it is recovered.
DISSOLVED, STABLE = 0.5, 0.75


class ClusterStability(NamedTuple):
    """A cluster, its number of rows, and its mean Jaccard index."""

    cluster: int
    n_rows: int
    stability: float


class Stability(Plotted):
    """Bootstrap stability of clusters. Made by `bootstrap`.

    Attributes
    ----------
    labels : ndarray of int of shape (n_samples,)
        The clusters of all rows, numbered by first appearance; -1 is noise.
    draws : ndarray of int32 of shape (n_draws, n_samples)
        The clusters of each resample; -1 is noise, and -2 a row that was not drawn.
    n_clusters : ndarray of int of shape (n_draws,)
        The number of clusters of each resample.
    jaccard : ndarray of shape (n_draws, n_clusters)
        The largest Jaccard index of each cluster; NaN if none of its rows was drawn.
    stability : ndarray of shape (n_clusters,)
        The mean Jaccard index: .75 and more is stable, .5 and less is dissolved.
    agreement : ndarray of shape (n_draws,)
        The adjusted Rand index of each resample with the clusters of all rows.
    row_confidence : ndarray of shape (n_samples,)
        The average share of a row's cluster that it is co-clustered with; NaN for noise, and for
        rows that were never drawn with another of their cluster.
    """

    def __init__(self, labels: np.ndarray, draws: np.ndarray):
        self.labels, self.draws = labels, draws

    def __repr__(self) -> str:
        found = ", ".join(f"{value:.2f}" for value in self.stability)
        return f"Stability(n_draws={len(self.draws)}, stability=[{found}])"

    _display, _maker = "StabilityDisplay", "from_stability"

    def _describe(self) -> tuple[list[str], Records]:
        low, high = int(self.n_clusters.min()), int(self.n_clusters.max())
        lines = [
            f"Bootstrap stability in {len(self.draws)} draws: {low} to {high} clusters, adjusted "
            f"Rand index {self.agreement.mean():.2f} on average"
        ]
        sizes = np.bincount(self.labels[self.labels >= 0], minlength=len(self.stability))
        found = enumerate(zip(sizes, self.stability, strict=True))
        return lines, Records(
            ClusterStability(cluster, int(size), float(value)) for cluster, (size, value) in found
        )

    @cached_property
    def n_clusters(self) -> np.ndarray:
        return np.array([len(np.unique(draw[draw >= 0])) for draw in self.draws])

    @cached_property
    def jaccard(self) -> np.ndarray:
        found = np.full((len(self.draws), self.labels.max(initial=-1) + 1), np.nan)
        for values, table in zip(found, self._tables, strict=True):
            either = table.sum(axis=1, keepdims=True) + table.sum(axis=0) - table
            share = np.divide(table, either, out=np.zeros(table.shape), where=either > 0)
            best = share[:-1, :-1].max(axis=1, initial=0.0)  # the last is noise
            values[:] = np.where(table[:-1].any(axis=1), best, np.nan)
        return found

    @cached_property
    def stability(self) -> np.ndarray:
        known = ~np.isnan(self.jaccard)
        total = np.where(known, self.jaccard, 0.0).sum(axis=0)
        return np.divide(
            total, known.sum(axis=0), out=np.zeros(len(total)), where=known.any(axis=0)
        )

    @cached_property
    def agreement(self) -> np.ndarray:
        drawn = [draw > NOT_DRAWN for draw in self.draws]
        return np.array(
            [
                adjusted_rand_score(self.labels[here], draw[here])
                for draw, here in zip(self.draws, drawn, strict=True)
            ]
        )

    @cached_property
    def row_confidence(self) -> np.ndarray:
        total, count = np.zeros(len(self.labels)), np.zeros(len(self.labels))
        for draw, table in zip(self.draws, self._tables, strict=True):
            here = np.flatnonzero((draw > NOT_DRAWN) & (self.labels >= 0))
            mates = table.sum(axis=1)[self.labels[here]] - 1
            here, mates = here[mates > 0], mates[mates > 0]
            stayed = np.where(draw[here] >= 0, table[self.labels[here], draw[here]] - 1, 0)
            total[here] += stayed / mates
            count[here] += 1
        return np.divide(total, count, out=np.full(len(total), np.nan), where=count > 0)

    def together(self, rows: Any = None) -> np.ndarray:
        """Return the co-clustering matrix: how often rows were in one cluster, if both were drawn.

        Parameters
        ----------
        rows : array-like of int, optional
            Which rows; by default all, which takes 4 bytes for every pair.

        Returns
        -------
        ndarray of float32 of shape (n_rows, n_rows)
            NaN for rows that were never drawn together.
        """
        draws = self.draws if rows is None else self.draws[:, np.asarray(rows)]
        n = draws.shape[1]
        state_memory(f"n={n:,} rows with each other", 8 * n * n, "ask for fewer rows")
        both, same = np.zeros((2, n, n), dtype=np.float32)
        for draw in draws:
            here = (draw > NOT_DRAWN).astype(np.float32)
            both += np.outer(here, here)
            for label in np.unique(draw[draw >= 0]):
                members = np.flatnonzero(draw == label)
                same[np.ix_(members, members)] += 1
        np.fill_diagonal(same, np.diagonal(both))
        return np.divide(same, both, out=np.full_like(same, np.nan), where=both > 0)

    @cached_property
    def _tables(self) -> list[np.ndarray]:
        """The contingency table of each resample with the clusters; noise is last in both."""
        k = self.labels.max(initial=-1) + 1
        tables = []
        for draw in self.draws:
            drawn = draw > NOT_DRAWN
            n_found = draw.max(initial=-1) + 1
            table = np.zeros((k + 1, n_found + 1), dtype=np.int64)
            np.add.at(table, (self.labels[drawn], draw[drawn]), 1)  # -1 is the last place
            tables.append(table)
        return tables


def bootstrap(
    estimator: Any,
    X: Any,
    *,
    n_draws: int = 100,
    replace: bool = True,
    share: float = 1.0,
    random_state: Any = None,
    n_jobs: int | None = None,
    **fit_params: Any,
) -> Stability:
    """Cluster bootstrap resamples of the rows, and record how well clusters are recovered.

    Parameters
    ----------
    estimator : estimator with ``fit_predict``
        Any clusterer of countless or of scikit-learn; it is cloned, never fitted itself. If its
        ``random_state`` is None, every fit gets a different seed.
    X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
        The rows; dissimilarities or similarities, (n_samples, n_samples), for an estimator that
        takes these.
    n_draws : int, default=100
        Number of resamples.
    replace : bool, default=True
        Whether a row can be drawn twice. For methods that duplicates mislead, use False
        (subsampling), with a ``share`` below 1.
    share : float, default=1.0
        Size of a resample, as a share of all rows.
    random_state : int, RandomState instance or None
        Draws the rows.
    n_jobs : int, optional
        Resamples clustered in parallel, on threads; they do not change the result.
    **fit_params
        Further arguments of ``fit_predict``, such as ``sample_weight`` or ``groups``, one value per
        row.

    Returns
    -------
    Stability

    Examples
    --------
    >>> from sklearn.cluster import KMeans
    >>> from sklearn.datasets import make_blobs
    >>> from countless import bootstrap
    >>> X, _ = make_blobs(90, centers=[[0, 0], [9, 0], [0, 9]], random_state=0)
    >>> found = bootstrap(KMeans(3, n_init=3), X, n_draws=10, random_state=0)
    >>> found.stability.round(2).tolist()
    [1.0, 1.0, 1.0]
    >>> found.together([0, 1]).shape
    (2, 2)
    """
    n_rows = X.shape[0] if hasattr(X, "shape") else len(X)
    check_count("n_draws", n_draws)
    if not 0 < share <= 1 or (share == 1 and not replace):
        raise ValueError(
            f"share must be above 0 and at most 1, and below 1 without replacement; got {share!r}"
        )
    for name, values in fit_params.items():
        if len(values) != n_rows:
            raise ValueError(f"{name} has {len(values)} values, and X has {n_rows} rows")
    seeds = check_random_state(random_state).randint(2**31 - 1, size=n_draws + 1)
    size = max(2, round(share * n_rows))
    pairwise = get_tags(estimator).input_tags.pairwise

    def fit(seed: int, table: Any, extra: dict[str, Any]) -> np.ndarray:
        model = clone(estimator)
        if model.get_params(deep=False).get("random_state", seed) is None:
            model.set_params(random_state=int(seed))
        return np.asarray(model.fit_predict(table, **extra))

    def draw(seed: int) -> np.ndarray:
        chosen = [np.arange(n_rows), *fit_params.values(), *([] if pairwise else [X])]
        drawn = resample(*chosen, replace=replace, n_samples=size, random_state=seed)
        rows, *parts = drawn if len(chosen) > 1 else [drawn]
        extra = dict(zip(fit_params, parts, strict=False))
        table = X[rows][:, rows] if pairwise else parts[-1]
        labels = np.full(n_rows, NOT_DRAWN, dtype=np.int32)
        labels[rows] = _numbered(fit(seed, table, extra))
        return labels

    whole = _numbered(fit(seeds[0], X, fit_params))
    with open_threads(n_jobs) as each:
        draws = each(draw, [(seed,) for seed in seeds[1:]])
    return Stability(whole, np.array(draws))


def _numbered(labels: np.ndarray) -> np.ndarray:
    """Number clusters by first appearance; noise stays -1."""
    noise = labels < 0
    numbers = np.full(len(labels), NOISE, dtype=np.int32)
    numbers[~noise] = number_by_appearance(labels[~noise])[1]
    return numbers
