"""k-medoids: k rows as centers, of least sum of dissimilarities, by greedy starts and swaps.

Minimises ``sum_i min_m D[i, m]`` over sets of k medoids m. The first medoids are chosen one by one,
each to lower the sum most (BUILD of PAM); then medoids are swapped with other rows while that
lowers it, each swap at once (FasterPAM).

References
----------
.. [1] L. Kaufman and P. J. Rousseeuw, "Finding groups in data", 1990, chapter 2.
.. [2] E. Schubert and P. J. Rousseeuw, "Fast and eager k-medoids clustering", Information Systems
   101, 2021.
"""

from __future__ import annotations

import warnings
from typing import NamedTuple

import numpy as np
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import pairwise_distances
from sklearn.utils.validation import check_is_fitted

from countless._labels import number_by_appearance
from countless._numbers import check_entries_span, check_span, validate_numbers
from countless._parameters import check_counts
from countless._tree.pairs import Pairs
from countless.kernels.swaps import swap_exemplars

# Gains below this share of the largest dissimilarity are rounding errors.
ROUNDING = 1e-12


class Medoids(NamedTuple):
    """A clustering by medoids."""

    labels: np.ndarray  # (n_rows,)
    indices: np.ndarray  # (n_clusters,), the row that is the medoid of each cluster
    cost: float  # the sum of dissimilarities of rows to their medoids
    n_swaps: int
    converged: bool  # whether no swap was left that lowers the cost


def k_medoids(distance: np.ndarray, n_clusters: int, *, max_iter: int) -> Medoids:
    """Cluster rows by their dissimilarities, (n_rows, n_rows).

    Examples
    --------
    >>> import numpy as np
    >>> from countless.k_medoids import k_medoids
    >>> rows = np.array([0.0, 1.0, 2.0, 9.0, 10.0])
    >>> found = k_medoids(np.abs(rows[:, None] - rows), 2, max_iter=10)
    >>> found.labels, found.indices, found.cost
    (array([0, 0, 0, 1, 1], dtype=int32), array([1, 3]), 3.0)
    """
    n = len(distance)
    is_medoid = np.zeros(n, dtype=bool)
    nearest = np.full(n, distance.max(initial=0.0))
    for _ in range(n_clusters):
        saved = np.array([np.maximum(nearest - column, 0.0).sum() for column in distance])
        saved[is_medoid] = -1.0
        best = int(np.argmax(saved))
        is_medoid[best] = True
        np.minimum(nearest, distance[best], out=nearest)
    similarity = -distance.astype(np.float64).ravel()
    lowest = float(similarity.min())
    least = -ROUNDING * lowest
    n_swaps = swap_exemplars(similarity, np.zeros(n), lowest, least, max_iter, True, is_medoid)
    again = is_medoid.copy()
    converged = swap_exemplars(similarity, np.zeros(n), lowest, least, 1, True, again) == 0
    medoids = np.flatnonzero(is_medoid)
    labels = distance[medoids].argmin(axis=0)
    labels[medoids] = np.arange(n_clusters)  # equal rows may both be medoids
    order, labels = number_by_appearance(labels)
    medoids = medoids[order]
    return Medoids(
        labels, medoids, float(distance[medoids[labels], np.arange(n)].sum()), n_swaps, converged
    )


class KMedoids(ClusterMixin, BaseEstimator):
    """k-medoids clustering: each row with the nearest of k rows; you choose k.

    A baseline for the methods of this library, which choose the number of clusters. It needs the
    memory of all pairwise distances.

    Parameters
    ----------
    n_clusters : int, default=8
        The number of clusters.
    metric : str, default='euclidean'
        A metric of `sklearn.metrics.pairwise_distances`, or 'precomputed'.
    max_iter : int, default=300
        Largest number of passes over all rows, each of which may swap with a medoid.

    Attributes
    ----------
    labels_ : ndarray of int of shape (n_samples,)
        The cluster of each row, numbered by first appearance.
    n_clusters_ : int
    medoid_indices_ : ndarray of int of shape (n_clusters,)
        The row that is the medoid of each cluster.
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
        The medoids; None for precomputed distances.
    inertia_ : float
        The sum of the distances of rows to their medoids.
    n_iter_ : int
        Number of swaps after the greedy start.
    converged_ : bool
        Whether no swap is left that lowers the sum.

    See Also
    --------
    AffinityPropagation : Chooses the number of exemplars, too.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from countless.k_medoids import KMedoids
    >>> X, _ = make_blobs(90, centers=3, random_state=1)
    >>> model = KMedoids(3).fit(X)
    >>> model.medoid_indices_.tolist(), round(model.inertia_, 1)
    ([4, 81, 89], 100.7)
    """

    def __init__(self, n_clusters=8, *, metric="euclidean", max_iter=300):
        self.n_clusters = n_clusters
        self.metric = metric
        self.max_iter = max_iter

    def fit(self, X, y=None):
        """Cluster the rows of X.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            With ``metric='precomputed'`` distances of shape (n_samples, n_samples).
        y : ignored

        Returns
        -------
        self
        """
        check_counts(self, "n_clusters", "max_iter")
        X = validate_numbers(self, X, reset=True)
        if self.n_clusters > len(X):
            raise ValueError(f"n_clusters={self.n_clusters}, and X has {len(X)} rows")
        known = self.metric == "precomputed"
        if known:
            check_entries_span(X, "precomputed distances", squared=False)
            distance = Pairs.of_matrix(X).matrix
        else:
            distance = pairwise_distances(check_span(X), metric=self.metric)
        found = k_medoids(distance, self.n_clusters, max_iter=self.max_iter)
        self.labels_, self.medoid_indices_ = found.labels, found.indices
        self.n_clusters_, self.n_iter_ = self.n_clusters, found.n_swaps
        self.cluster_centers_ = None if known else X[found.indices]
        self.inertia_, self.converged_ = found.cost, found.converged
        if not self.converged_:
            warnings.warn(
                f"KMedoids still swapped after {self.max_iter} passes; raise max_iter",
                ConvergenceWarning,
                stacklevel=2,
            )
        return self

    def predict(self, X):
        """Return the cluster of the nearest medoid of each row.

        Parameters
        ----------
        X : array-like of shape (n_new, n_features)
            With ``metric='precomputed'`` distances from the rows of `fit`.

        Returns
        -------
        labels : ndarray of int of shape (n_new,)
        """
        check_is_fitted(self, "inertia_")
        X = validate_numbers(self, X, reset=False)
        if self.metric == "precomputed":
            return X[:, self.medoid_indices_].argmin(axis=1).astype(np.int32)
        distance = pairwise_distances(X, self.cluster_centers_, metric=self.metric)
        return distance.argmin(axis=1).astype(np.int32)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.metric == "precomputed"
        return tags
