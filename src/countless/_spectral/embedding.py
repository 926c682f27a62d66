"""Clustering the rows of a spectral embedding, and the variance that clusters leave unexplained."""

from __future__ import annotations

import warnings
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.linalg import qr
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import pairwise_distances_argmin

from countless._compat import OnPass, ignore_pass
from countless._data import open_rows
from countless._labels import number_by_appearance
from countless._search.dp_means import default_tol, dp_means
from countless.divergences import get_divergence

ASSIGN = ("k-means", "dp-means")


class RowClustering(NamedTuple):
    """Clusters of the rows of an embedding."""

    labels: np.ndarray
    centers: np.ndarray
    history: np.ndarray  # the objective (with penalties) after each pass that reports it
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
    """Cluster the rows of an embedding, initialised at rows chosen by pivoted QR.

    Parameters
    ----------
    rows, weight : ndarray of shape (n, m), ndarray of shape (n,)
    assign : {'k-means', 'dp-means'}
        k-means makes m clusters; DP-means as many as minimise its objective.
    max_iter, n_jobs, on_pass
        As in `DPMeans`.
    """
    n, m = rows.shape
    if m == 0:
        return RowClustering(np.zeros(n, dtype=np.int32), rows[:1], np.empty(0), 0, True)
    starts = rows[_different_rows(rows * np.sqrt(weight)[:, None])]
    if assign == "k-means":
        model = KMeans(m, init=starts, n_init=1, max_iter=max_iter)
        with warnings.catch_warnings():
            # The caller warns about convergence of the whole fit.
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(rows, sample_weight=weight)
        on_pass(model.inertia_, m)
        n_iter = model.n_iter_
        return RowClustering(
            model.labels_,
            model.cluster_centers_,
            np.array([model.inertia_]),
            n_iter,
            n_iter < max_iter,
        )
    with open_rows(rows, weight, get_divergence("sqeuclidean"), n_jobs) as table:
        found = dp_means(
            table,
            0.5,  # the penalty; merging two perfect clusters costs 1
            start=number_by_appearance(pairwise_distances_argmin(rows, starts))[1],
            tol=default_tol(n),
            max_iter=max_iter,
            on_pass=on_pass,
        )
    history = np.array(found.history)
    return RowClustering(found.labels, found.centers, history, found.n_iter, found.converged)


def means_of_clusters(rows: np.ndarray, weight: np.ndarray, labels: np.ndarray) -> RowClustering:
    """Return given clusters as a clustering of the rows, with their means and cost."""
    at = np.arange(len(rows))
    members = sp.csr_array((weight, (labels, at)), (int(labels.max()) + 1, len(rows)))
    total = np.maximum(np.asarray(members.sum(axis=1)).ravel(), np.finfo(float).tiny)
    centers = (members @ rows) / total[:, None]
    cost = float(weight @ ((rows - centers[labels]) ** 2).sum(axis=1))
    return RowClustering(labels, centers, np.array([cost]), 1, True)


def unexplained(vectors: np.ndarray, root: np.ndarray) -> float:
    """Return the variance unexplained by k-means with k centers, as a share of k - 1.

    Parameters
    ----------
    vectors : ndarray of shape (n, k)
        Orthonormal eigenvectors.
    root : ndarray of shape (n,)
        The indicator of all rows: ``root ** 2`` are their weights.
    """
    cost = cluster_rows(vectors / root[:, None], root**2, "k-means").history[-1]
    return float(cost) / (vectors.shape[1] - 1)


def first_unexplained(vectors: np.ndarray, root: np.ndarray) -> float:
    """Return the same after a single k-means step from the initial rows: slightly more."""
    rows, weight = vectors / root[:, None], root**2
    starts = rows[_different_rows(vectors)]
    labels = np.argmax(rows @ (2 * starts.T) - np.einsum("ij,ij->i", starts, starts), axis=1)
    size = np.bincount(labels, weight, minlength=len(starts))
    sums = sp.csr_array((root, (labels, np.arange(len(root)))), (len(size), len(root))) @ vectors
    explained = np.einsum("ij,ij->i", sums, sums) / np.where(size > 0, size, 1.0)
    return float(vectors.shape[1] - explained.sum()) / (vectors.shape[1] - 1)


def _different_rows(vectors: np.ndarray) -> np.ndarray:
    """Return as many rows as columns by pivoted QR, each far from the span of those before it."""
    return qr(vectors.T, mode="r", pivoting=True, check_finite=False)[1][: vectors.shape[1]]
