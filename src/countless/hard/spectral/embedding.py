"""Clusters of the rows of eigenvectors, and how much of them clusters leave unexplained."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.linalg import qr
from sklearn.metrics import pairwise_distances_argmin

from countless._compat import OnPass, ignore_pass
from countless._labels import number_by_appearance
from countless._threads import steps
from countless.hard.divergence import get_divergence
from countless.hard.dp_means import LARGE_TABLE_TOL, SMALL_ROWS, dp_means
from countless.rows import open_rows

ASSIGN = ("k-means", "dp-means")
# Joining two perfect clusters of rows costs 1, so a cluster is worth half of that.
ROW_PENALTY = 0.5
# Centers that move by no more than this share of the rows' variance, squared, stand still.
TOLERANCE = 1e-4
# Distances from rows to centers that are kept at once.
BLOCK = 1 << 20


class RowClustering(NamedTuple):
    """Clusters of the rows of an embedding."""

    labels: np.ndarray
    centers: np.ndarray
    history: np.ndarray  # the cost of the rows after each pass that reports it, clusters paid for
    n_iter: int
    converged: bool


def cluster_rows(
    rows: np.ndarray,
    weight: np.ndarray,
    assign: str,
    *,
    max_iter: int = 300,
    n_jobs: int | None = None,
    on_pass: OnPass = ignore_pass,
) -> RowClustering:
    """Cluster the rows of an embedding, from rows that point in different directions.

    Parameters
    ----------
    rows, weight : ndarray of shape (n, m), ndarray of shape (n,)
    assign : {'k-means', 'dp-means'}
        k-means makes m clusters; DP-means as many as are worth their price.
    max_iter, n_jobs, on_pass
        As in `DPMeans`.
    """
    n, m = rows.shape
    if m == 0:
        return RowClustering(np.zeros(n, dtype=np.int32), rows[:1], np.empty(0), 0, True)
    starts = rows[_different_rows(rows * np.sqrt(weight)[:, None])]
    if assign == "k-means":
        return k_means(rows, weight, starts, max_iter, on_pass)
    tol = 0.0 if n <= SMALL_ROWS else LARGE_TABLE_TOL
    with open_rows(rows, weight, get_divergence("sqeuclidean"), n_jobs) as table:
        found = dp_means(
            table,
            ROW_PENALTY,
            start=number_by_appearance(pairwise_distances_argmin(rows, starts))[1],
            tol=tol,
            max_iter=max_iter,
            on_pass=on_pass,
        )
    history = np.array(found.history)
    return RowClustering(found.labels, found.centers, history, found.n_iter, found.converged)


def k_means(
    rows: np.ndarray,
    weight: np.ndarray,
    centers: np.ndarray,
    max_iter: int = 300,
    on_pass: OnPass = ignore_pass,
) -> RowClustering:
    """Move centers to the means of the rows that are nearest to them, until hardly any moves.

    Passes are few from good starts, and rows are short: scikit-learn's would spend more time on
    checks than on them.

    Examples
    --------
    >>> rows = np.array([[0.0], [1.0], [5.0]])
    >>> k_means(rows, np.ones(3), rows[1:]).centers.tolist()
    [[0.5], [5.0]]
    """
    from_mean = rows - np.average(rows, axis=0, weights=weight)
    still = TOLERANCE * np.average(from_mean**2, axis=0, weights=weight).mean()
    labels, cost = _nearest(rows, weight, centers)
    history, converged = list[float](), False
    while not converged and len(history) < max_iter:
        before, old = centers, labels
        centers = _means(rows, weight, labels, cost, len(before))
        labels, cost = _nearest(rows, weight, centers)
        history.append(float(cost.sum()))
        on_pass(history[-1], len(centers))
        converged = np.array_equal(labels, old) or ((centers - before) ** 2).sum() <= still
    return RowClustering(labels, centers, np.array(history), len(history), converged)


def _nearest(
    rows: np.ndarray, weight: np.ndarray, centers: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the nearest center of each row, and what that costs."""
    labels, cost = np.empty(len(rows), dtype=np.int32), np.empty(len(rows))
    height = np.einsum("ij,ij->i", centers, centers)
    for start, stop in steps(len(rows), max(1, BLOCK // len(centers))):
        block = rows[start:stop]
        gain = block @ (2 * centers.T) - height
        labels[start:stop] = gain.argmax(axis=1)
        cost[start:stop] = np.einsum("ij,ij->i", block, block) - gain.max(axis=1)
    return labels, weight * np.maximum(cost, 0.0)


def _means(
    rows: np.ndarray, weight: np.ndarray, labels: np.ndarray, cost: np.ndarray, k: int
) -> np.ndarray:
    """Return the mean of each cluster; those without rows start anew where rows cost most."""
    size = np.bincount(labels, weight, k)
    sums = [np.bincount(labels, weight * column, k) for column in rows.T]
    means = np.stack(sums, axis=1) / np.where(size > 0, size, 1.0)[:, None]
    empty = np.flatnonzero(size == 0)
    means[empty] = rows[np.argsort(-cost, kind="stable")[: len(empty)]]
    return means


def unexplained(vectors: np.ndarray, root: np.ndarray) -> float:
    """Return what as many centers as eigenvectors leave of their rows, as a share of k - 1.

    Parameters
    ----------
    vectors : ndarray of shape (n, k)
        Orthonormal eigenvectors.
    root : ndarray of shape (n,)
        The indicator of all rows: ``root ** 2`` weighs them.
    """
    cost = cluster_rows(vectors / root[:, None], root**2, "k-means").history[-1]
    return float(cost) / (vectors.shape[1] - 1)


def first_unexplained(vectors: np.ndarray, root: np.ndarray) -> float:
    """Return what clusters around rows that point in different directions leave: a bit more."""
    rows, weight = vectors / root[:, None], root**2
    starts = rows[_different_rows(vectors)]
    labels, _ = _nearest(rows, weight, starts)
    size = np.bincount(labels, weight, minlength=len(starts))
    sums = sp.csr_array((root, (labels, np.arange(len(root)))), (len(size), len(root))) @ vectors
    explained = np.einsum("ij,ij->i", sums, sums) / np.where(size > 0, size, 1.0)
    return float(vectors.shape[1] - explained.sum()) / (vectors.shape[1] - 1)


def _different_rows(vectors: np.ndarray) -> np.ndarray:
    """Return as many rows as there are columns, each far from the space of those before it."""
    return qr(vectors.T, mode="r", pivoting=True, check_finite=False)[1][: vectors.shape[1]]
