"""Connected clusters as unions of ellipses: a mixture whose components are merged.

A mixture models a ring or a moon by many components, with no density valley between adjacent ones.
Merging all components that no valley separates recovers the ring, keeps separate clusters separate,
and adds a thin background to the clusters it surrounds (`countless._auto.separation`). Tables of
many columns are first projected on their leading principal components: estimating a covariance
matrix per cluster needs more rows than such tables have.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted, validate_data

from countless._auto.separation import separation
from countless._labels import number_by_appearance
from countless._numbers import validate_numbers
from countless._spectral.affinity import NEIGHBORS, Affinity
from countless.dp_mixture import DPMixture

# Neighbours of each row in the graph that defines which clusters are adjacent.
N_NEIGHBORS = 10
# Principal components that a mixture is fitted to: 12 have a covariance matrix of 78 entries.
MOST_COMPONENTS = 12
# Rounds of the search for the mixture. On sets of the default-answer benchmark 5 rounds have the
# same mean adjusted mutual information as 50 (0.65 on the 13 slowest), in half the time.
N_ROUNDS = 5


def neighbor_links(X: Any, n_jobs: int | None) -> sp.csr_array:
    """Return the symmetric nearest-neighbour graph of rows."""
    # In a table of few rows ten neighbours would include rows of every cluster.
    n_neighbors = min(N_NEIGHBORS, max(2, X.shape[0] // 5))
    affinity = Affinity(NEIGHBORS, n_neighbors=n_neighbors, parameters={}, n_jobs=n_jobs)
    return affinity.between_rows(X)


def leading_components(X: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean and the leading principal components, or 0 and the identity if few columns.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(50, 30))
    >>> mean, components = leading_components(X)
    >>> ((X - mean) @ components.T).shape
    (50, 12)
    """
    n_features = X.shape[1]
    if n_features <= MOST_COMPONENTS or X.shape[0] <= MOST_COMPONENTS:
        return np.zeros(n_features), np.eye(n_features)
    if sp.issparse(X):  # a fixed seed, so that the choice does not depend on a random state
        pca = PCA(MOST_COMPONENTS, svd_solver="arpack", random_state=0).fit(X)
    else:
        pca = PCA(MOST_COMPONENTS, svd_solver="covariance_eigh").fit(X)
    return pca.mean_, pca.components_


class MergedMixture(ClusterMixin, BaseEstimator):
    """Merge the components of a Dirichlet process mixture that no density valley separates.

    Parameters
    ----------
    merge : bool, default=True
        Whether components are merged; if not, clusters are the (elliptical) components.
    n_jobs : int, default=None
        Threads, as in scikit-learn; the result does not depend on them.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        The cluster of each row, numbered by first appearance.
    n_clusters_ : int
    mixture_ : DPMixture
        The mixture of the projected rows, found by ``inference='map'``.
    mean_, components_ : ndarray of shape (n_features,), (n_components, n_features)
        The projection: at most 12 principal components, or all columns unchanged.
    groups_ : ndarray of shape (mixture_.n_clusters_,)
        The cluster of each component.
    n_iter_, converged_ : int, bool
        Rounds of the search for the mixture, and always True: it ends after at most five rounds.
    n_features_in_ : int

    See Also
    --------
    SpectralDPMeans : Connected clusters by the eigenvectors of a neighbour graph.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from countless._auto.merged import MergedMixture
    >>> X, _ = make_moons(600, noise=0.05, random_state=0)
    >>> model = MergedMixture().fit(X)
    >>> model.mixture_.n_clusters_ > model.n_clusters_
    True
    >>> model.n_clusters_
    2
    """

    def __init__(self, *, merge=True, n_jobs=None):
        self.merge = merge
        self.n_jobs = n_jobs

    def fit(self, X, y=None):
        """Cluster the rows of X.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : ignored

        Returns
        -------
        self
        """
        if not isinstance(self.merge, bool):
            raise ValueError(f"merge must be True or False; got {self.merge!r}")
        X = validate_numbers(self, X, reset=True, ensure_min_samples=2)
        return self.take(self.fit_mixture(X), X, neighbor_links(X, self.n_jobs))

    def fit_mixture(self, X: np.ndarray) -> MergedMixture:
        """Fit the projection and the mixture, without merging."""
        self.mean_, self.components_ = leading_components(X)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # rounds are few on purpose
            self.mixture_ = DPMixture(inference="map", n_sweeps=N_ROUNDS).fit(self._project(X))
        return self

    def take(self, fitted: MergedMixture, X: np.ndarray, links: sp.csr_array) -> MergedMixture:
        """Use the mixture of an estimator fitted to X (this or another), and merge components."""
        validate_data(self, X, reset=True, skip_check_array=True)
        self.mean_, self.components_ = fitted.mean_, fitted.components_
        self.mixture_ = mixture = fitted.mixture_
        groups = np.arange(mixture.n_clusters_)
        if self.merge:
            groups = separation(self._project(X), mixture.labels_, links).merge()
        names, self.labels_ = number_by_appearance(groups[mixture.labels_])
        number = np.empty(len(names), dtype=np.int32)
        number[names] = np.arange(len(names))
        self.groups_, self.n_clusters_ = number[groups], len(names)
        self.n_iter_, self.converged_ = mixture.n_iter_, True
        return self

    def predict(self, X):
        """Return the cluster of the most probable component for each row of X."""
        check_is_fitted(self, "groups_")
        X = validate_numbers(self, X, reset=False)
        return self.groups_[self.mixture_.predict(self._project(X))]

    def _project(self, X: np.ndarray) -> np.ndarray:
        return (X - self.mean_) @ self.components_.T
