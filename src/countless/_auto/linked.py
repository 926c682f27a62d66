"""Clusters of rows that are densely linked: communities of their nearest-neighbour graph."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.utils.validation import check_is_fitted

from countless._graph.communities import choose_resolution, communities
from countless._labels import number_by_appearance
from countless._numbers import validate_numbers
from countless._parameters import check_counts
from countless._spectral.affinity import NEIGHBORS, Affinity
from countless._spectral.necks import as_graph
from countless._threads import one_library_thread

# Lengths of unit rows may differ from 1 by this much: by half a digit of float16.
UNIT_ERROR = 1e-3
# In fewer columns directions are points of a curve or a surface, which other candidates follow.
FEWEST_COLUMNS = 4


def row_lengths(X: Any) -> np.ndarray:
    """Return the Euclidean norm of each row, of an array or a CSR matrix."""
    squares = X.multiply(X) if sp.issparse(X) else np.einsum("ij,ij->i", X, X, dtype=np.float64)
    return np.sqrt(np.asarray(squares.sum(axis=1)).ravel() if sp.issparse(X) else squares)


def are_directions(lengths: np.ndarray, n_columns: int) -> bool:
    """Return whether all rows that are not zero have unit length.

    Examples
    --------
    >>> are_directions(np.array([1.0, 0.0, 1.0]), 50), are_directions(np.array([1.0, 2.0]), 50)
    (True, False)
    """
    known = lengths[lengths > 0]
    return bool(
        n_columns >= FEWEST_COLUMNS and len(known) and np.abs(known - 1.0).max() <= UNIT_ERROR
    )


class NeighborCommunities(ClusterMixin, BaseEstimator):
    """Communities of the nearest-neighbour graph of rows, without choosing their number.

    Parameters
    ----------
    n_neighbors : int, default=15
        Neighbours of each row; in up to 20,000 rows they are exact.
    n_jobs : int, default=None
        Threads, as in scikit-learn; the result does not depend on them.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        The cluster of each row, numbered by first appearance.
    n_clusters_ : int
    resolution_ : float
        The resolution of the modularity that was maximised.
    excess_ : float
        By how much the attained share of modularity exceeds that of structureless clouds.
    X_fit_ : ndarray or CSR matrix
        The rows, which `predict` compares new rows with.
    n_iter_, converged_ : int, bool
        Always 1 and True.
    n_features_in_ : int

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from countless._auto.linked import NeighborCommunities
    >>> X, y = make_blobs(300, n_features=50, centers=6, cluster_std=3.0, random_state=0)
    >>> model = NeighborCommunities().fit(X)
    >>> model.n_clusters_
    6
    >>> bool((model.predict(X) == model.labels_).all())
    True
    """

    def __init__(self, *, n_neighbors=15, n_jobs=None):
        self.n_neighbors = n_neighbors
        self.n_jobs = n_jobs

    def fit(self, X, y=None):
        """Cluster the rows of X, an array or a CSR matrix."""
        check_counts(self, "n_neighbors")
        X = validate_numbers(self, X, reset=True, accept_sparse="csr", ensure_min_samples=2)
        linked = self._affinity().between_rows
        is_directional = are_directions(row_lengths(X), X.shape[1])
        with one_library_thread(None):  # clouds must not depend on the number of threads
            found = choose_resolution(X, linked, is_directional=is_directional)
        self.resolution_, self.excess_ = found
        labels = np.zeros(X.shape[0], dtype=np.int32)
        if found.is_significant:
            labels = communities(as_graph(linked(X)), found.value)
        names, self.labels_ = number_by_appearance(labels)
        self.n_clusters_ = len(names)
        self.X_fit_ = X
        self.n_iter_, self.converged_ = 1, True
        return self

    def predict(self, X):
        """Return the cluster of most of the nearest neighbours of each row of X."""
        check_is_fitted(self, "X_fit_")
        X = validate_numbers(self, X, reset=False, accept_sparse="csr")
        if self.n_clusters_ == 1:
            return np.zeros(X.shape[0], dtype=np.int32)
        n_rows = len(self.labels_)
        members = sp.csr_array((np.ones(n_rows), (np.arange(n_rows), self.labels_)))
        votes = self._affinity().to_rows(X, self.X_fit_) @ members
        return np.asarray(votes.argmax(axis=1), dtype=np.int32).ravel()

    def _affinity(self) -> Affinity:
        settings: dict[str, Any] = {"n_neighbors": self.n_neighbors, "n_jobs": self.n_jobs}
        return Affinity(NEIGHBORS, parameters={}, **settings)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
