"""Spectral DP-means: spectral clustering with all eigenvectors above a penalty instead of k.

DP-means with a kernel K maximises ``tr(Y' (K - penalty I) Y)`` over normalised indicators Y of a
partition. Over all orthonormal Y the maximum is at the eigenvectors of K whose eigenvalues exceed
the penalty (theorem 5.2). With a graph Laplacian in place of the kernel the same is a relaxation of
penalised cuts: spectral clustering that needs no k.

Kulis and Jordan, *Revisiting k-means: new algorithms via Bayesian nonparametrics*, ICML 2012.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import pairwise_distances_argmin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from countless._compat import CallbackSupportMixin, report_passes, with_callbacks
from countless._data.open import without_repeats
from countless._labels import number_by_appearance
from countless._numbers import check_entries_span, check_span, validate_numbers
from countless._parameters import check_counts, check_penalties
from countless._path.layers import LayeredMixin
from countless._path.penalty import PenaltyPath, penalty_path
from countless._spectral.affinity import NEIGHBORS, Affinity
from countless._spectral.eigen import LeadingPairs
from countless._spectral.embedding import ASSIGN, RowClustering, cluster_rows, means_of_clusters
from countless._spectral.laplacian import LAPLACIANS, Form, make_form
from countless._spectral.necks import Necks, find_necks
from countless._spectral.spectrum import SpectrumPath, look_over
from countless._threads import one_library_thread

# Kernel principal components on which the penalty path is computed.
PATH_DIRECTIONS = 64
# Least number of eigenvalues from which the confidence in one cluster is computed.
FEWEST_RIVALS = 4


class Eigenvectors(NamedTuple):
    """All eigenpairs above a penalty."""

    values: np.ndarray  # (m,) descending
    vectors: np.ndarray  # (n, m)
    penalty: float
    path: PenaltyPath | SpectrumPath | None  # from which the penalty was chosen; None: given
    chance_missed: float  # upper bound on the probability that a pair is missing
    labels: np.ndarray | None = None  # clusters, if necks separate them


def eigenvectors_above(form: Form, penalty: float, random: np.random.RandomState) -> Eigenvectors:
    """Return the eigenvectors of a form whose eigenvalues are above a penalty, none missed."""
    pairs = LeadingPairs(form.matrix, random, form.known)
    probability = pairs.above(penalty)
    return Eigenvectors(pairs.values, _with_signs(pairs.vectors), penalty, None, probability)


def eigenvectors_that_stand_out(
    form: Form,
    affinity: Any,
    random: np.random.RandomState,
    parted: Callable[[], Necks] | None = None,
) -> Eigenvectors:
    """Choose the penalty from the data; return the eigenvectors above it.

    For a graph the penalty is in the selected eigengap of its spectrum. If none is significant,
    ``parted`` searches clusters separated by necks, and there are as many eigenvectors as clusters.
    For a kernel it is the penalty that `penalty_path` chooses in the kernel's feature space.
    """
    labels = None
    pairs = LeadingPairs(form.matrix, random, form.known)
    path: PenaltyPath | SpectrumPath
    if form.laplacian is None:
        pairs.first(PATH_DIRECTIONS)
        features = pairs.vectors * np.sqrt(np.maximum(pairs.values, 0.0))
        path = penalty_path(features, random_state=random)
        probability = pairs.above(path.penalty)
    else:
        # A fixed seed: the number of clusters must not depend on the draw of the coarse graph.
        look = look_over(form, affinity, np.random.RandomState(0))
        rivals = FEWEST_RIVALS if look.most == 1 else look.most
        while True:
            pairs.first(max(rivals, len(pairs.values)) + 1, look.leading)
            path = SpectrumPath(pairs.values, pairs.vectors, form.root)
            probability = pairs.above(path.penalty)
            if len(pairs.values) <= path.n_clusters:  # else an eigenvalue had been missed
                break
        if path.n_clusters == 1 and parted is not None:
            necks = parted()
            pairs = LeadingPairs(form.matrix, random, form.known)
            pairs.first(max(FEWEST_RIVALS, necks.n_clusters) + 1)
            path = SpectrumPath(pairs.values, pairs.vectors, form.root, necks)
            probability = pairs.above(path.penalty)
            labels = necks.labels if necks.n_clusters > 1 else None
    vectors = _with_signs(pairs.vectors)
    return Eigenvectors(pairs.values, vectors, path.penalty, path, probability, labels)


def _with_signs(vectors: np.ndarray) -> np.ndarray:
    """Flip signs so that the largest entry of each eigenvector is positive."""
    if not vectors.size:
        return vectors
    largest = np.abs(vectors).argmax(axis=0)
    signs = np.sign(vectors[largest, np.arange(vectors.shape[1])])
    return vectors * signs


class SpectralDPMeans(LayeredMixin, CallbackSupportMixin, ClusterMixin, BaseEstimator):
    """Spectral clustering without choosing the number of clusters.

    Takes all eigenvectors of a kernel or of a graph's Laplacian whose eigenvalues are above a
    penalty, and clusters their rows.

    Parameters
    ----------
    penalty : 'auto' or float, default='auto'
        The threshold of eigenvalues. With a Laplacian, eigenvalues are at most 1 and useful
        penalties lie between 0 and 1; 'auto' selects a significant eigengap of the spectrum; if
        there is none, 'nearest_neighbors' searches necks (sparse cuts) between adjacent parts of
        the graph that are deeper than those of a null reference, and cuts there.
        With ``laplacian=None`` the penalty is that of `DPMeans` in the kernel's feature space, and
        'auto' takes it from `penalty_path` there.
    kernel : str or callable, default='nearest_neighbors'
        The affinity of two rows: 'nearest_neighbors' is the k-nearest-neighbour graph,
        'precomputed' takes X as the symmetric matrix itself, dense or sparse, and any name or
        function of `sklearn.metrics.pairwise.pairwise_kernels` computes it.
    laplacian : {'symmetric', 'random-walk', 'unnormalized', None}, default='symmetric'
        The Laplacian L; eigenvalues are those of ``I - L``: ``L = I - D^-1/2 W D^-1/2`` with rows
        of the embedding scaled to unit length; ``L = I - D^-1 W``; or ``L = (D - W) / max(D)``.
        None uses the kernel itself, as in theorem 5.2.
    assign : {'k-means', 'dp-means'}, default='k-means'
        How rows of eigenvectors are clustered: by k-means into as many clusters as there are
        eigenvectors, or by DP-means, with half the cost of merging two perfect clusters as the
        penalty; that may give fewer or more, and takes longer.
    n_neighbors : int, default=10
        Neighbours of each row, for 'nearest_neighbors'. Fewer resolve finer shapes; more are less
        sensitive to noise. They are exact up to 20,000 rows, and in up to 10 columns; else each row
        is compared with those of the 32 nearest cells of about 300 rows, which misses few
        neighbours if there are clusters.
    gamma : float, optional
        Parameter of the kernels 'rbf', 'poly' and 'sigmoid'; by default one over the sum of the
        columns' variances. Other kernels have scikit-learn's default.
    degree, coef0 : float, default=3, 1
        Parameters of the kernels 'poly' and 'sigmoid'.
    kernel_params : dict, optional
        Parameters of a kernel that is a function.
    max_iter : int, default=300
        Maximum number of passes over the rows of eigenvectors.
    random_state : int, RandomState instance or None, default=None
        Draws the start vectors of the eigensolver.
    n_jobs : int, default=None
        Threads, as in scikit-learn; the result does not depend on them.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        The cluster of each row, numbered by first appearance.
    n_clusters_ : int
    eigenvalues_ : ndarray of shape (n_eigenvectors,)
        All above the penalty, descending. The eigenvalues of the Laplacian are 1 minus these.
    eigenvectors_ : ndarray of shape (n_samples, n_eigenvectors)
        Eigenvectors of the kernel, of ``D - W``, or of ``D^-1 W`` for both normalised Laplacians.
    embedding_ : ndarray of shape (n_samples, n_eigenvectors)
        The rows that were clustered: of the eigenvectors, scaled to unit length if 'symmetric'.
    cluster_centers_ : ndarray of shape (n_clusters, n_eigenvectors)
        Cluster centers in the embedding.
    penalty_ : float
        The penalty used.
    chance_missed_ : float
        An upper bound on the probability that an eigenvalue above the penalty is missing; 0 if they
        were counted.
    path_ : SpectrumPath or PenaltyPath
        The path from which ``penalty='auto'`` chose; its ``confidence`` is that of the number of
        clusters.
    objective_ : float
        The objective of `DPMeans` in the kernel's feature space or, with a Laplacian, of
        `GraphDPMeans` at ``penalty - 1``, up to a constant (the trace).
    relaxed_objective_ : float
        The same for the eigenvectors: a lower bound for all partitions.
    objective_history_ : ndarray
        The cost of the rows of eigenvectors after each pass over them; it never increases.
    n_iter_ : int
        Number of passes over those rows.
    converged_ : bool
        Whether they ended before ``max_iter``.
    X_fit_ : ndarray or CSR matrix
        The rows of the fit, which `predict` compares new rows with; None for a precomputed kernel.
    largest_degree_ : float
        The largest degree of the graph.
    n_features_in_ : int

    See Also
    --------
    DPMeans : The same without a kernel, not relaxed.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from countless import SpectralDPMeans
    >>> X, moon = make_moons(400, noise=0.04, random_state=0)
    >>> model = SpectralDPMeans(random_state=0).fit(X)
    >>> model.n_clusters_
    2
    >>> model.predict([[0.0, 1.0], [1.0, -0.5]]).tolist() == model.labels_[
    ...     [moon.tolist().index(0), moon.tolist().index(1)]
    ... ].tolist()
    True
    """

    def __init__(
        self,
        penalty="auto",
        *,
        kernel=NEIGHBORS,
        laplacian="symmetric",
        assign="k-means",
        n_neighbors=10,
        gamma=None,
        degree=3,
        coef0=1,
        kernel_params=None,
        max_iter=300,
        random_state=None,
        n_jobs=None,
    ):
        self.penalty = penalty
        self.kernel = kernel
        self.laplacian = laplacian
        self.assign = assign
        self.n_neighbors = n_neighbors
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.max_iter = max_iter
        self.random_state = random_state
        self.n_jobs = n_jobs

    @with_callbacks
    def fit(self, X, y=None):
        """Cluster the rows of X.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)
            Rows; or, with ``kernel='precomputed'``, a symmetric matrix of all rows with all.
        y : ignored

        Returns
        -------
        self
        """
        self._check_parameters()
        self._forget_path()
        X = self._check_rows(X, reset=True)
        random = check_random_state(self.random_state)
        # One BLAS thread, so that results do not depend on the number of cores.
        with one_library_thread(None), report_passes(self, X) as on_pass:
            between_rows = self._affinity().between_rows
            affinity = between_rows(X)
            form = make_form(affinity, self.laplacian)
            if isinstance(self.penalty, str):
                parted = None
                if self.kernel == NEIGHBORS and isinstance(X, np.ndarray):

                    def parted():
                        return find_necks(affinity, X, between_rows)

                found = eigenvectors_that_stand_out(form, affinity, random, parted)
            else:
                found = eigenvectors_above(form, float(self.penalty), random)
            rows, weight = form.rows(found.vectors)
            if found.labels is not None:
                clustering = means_of_clusters(rows, weight, found.labels)
            else:
                clustering = cluster_rows(
                    rows,
                    weight,
                    self.assign,
                    max_iter=self.max_iter,
                    n_jobs=self.n_jobs,
                    on_pass=on_pass,
                )
        self.X_fit_ = None if self.kernel == "precomputed" else X
        self._store(form, found, rows, clustering)
        return self

    def predict(self, X):
        """Return a label for each row of X, which need not be among those of the fit.

        With 'nearest_neighbors' it is the majority label of its neighbours. With another kernel,
        eigenvectors are extended to new rows by the eigenvalue equation (Nystroem extension): a new
        row's entry is the mean of the others', weighted by affinity. Its cluster is that of the
        nearest center. Rows of the fit get their own labels if their affinities are the same as in
        the fit. For 'nearest_neighbors' they differ slightly: a row is its own nearest neighbour.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_new, n_features)
            With ``kernel='precomputed'``, the kernel of new rows with those of the fit.

        Returns
        -------
        ndarray of shape (n_new,)
        """
        check_is_fitted(self, "cluster_centers_")
        X = self._check_rows(X, reset=False)
        if not len(self.eigenvalues_):
            return np.zeros(X.shape[0], dtype=np.int32)
        affinity = self._affinity().to_rows(X, self.X_fit_)
        if self.kernel == NEIGHBORS:
            members = sp.csr_array(
                (np.ones(len(self.labels_)), (np.arange(len(self.labels_)), self.labels_))
            )
            return np.asarray((affinity @ members).toarray().argmax(axis=1), dtype=np.int32).ravel()
        rows = self._extend(affinity)
        return pairwise_distances_argmin(rows, self.cluster_centers_).astype(np.int32)

    def _extend(self, affinity) -> np.ndarray:
        """Return the Nystroem extension: embed rows given affinities with the rows of the fit."""
        rows = np.asarray(affinity @ self.eigenvectors_)
        if self.laplacian is None:
            return rows / self.eigenvalues_
        total = np.asarray(affinity.sum(axis=1), dtype=np.float64).ravel()
        if not total.all():
            raise ValueError(f"row {int(np.argmin(total))} is like no row of the fit: all are 0")
        if self.laplacian == "unnormalized":
            divisor = total[:, None] - self.largest_degree_ * (1.0 - self.eigenvalues_)
            return rows / np.where(divisor == 0, np.finfo(float).tiny, divisor)
        rows /= total[:, None] * self.eigenvalues_
        if self.laplacian == "symmetric":
            rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        return rows

    def _check_parameters(self) -> None:
        check_penalties(self, "penalty")
        for name, known in (("laplacian", LAPLACIANS), ("assign", ASSIGN)):
            value = getattr(self, name)
            if not (value is None or isinstance(value, str)) or value not in known:
                listed = ", ".join(repr(one) for one in known)
                raise ValueError(f"{name} must be one of {listed}; got {value!r}")
        check_counts(self, "n_neighbors", "max_iter")

    def _check_rows(self, X, *, reset: bool):
        least = 2 if reset else 1
        X = validate_numbers(self, X, reset=reset, accept_sparse="csr", ensure_min_samples=least)
        if reset and self.kernel == "precomputed":
            check_entries_span(X, "the entries of a precomputed kernel")
        elif reset and isinstance(X, np.ndarray) and self.kernel != NEIGHBORS:
            X = check_span(X)
        return without_repeats(X)

    def _affinity(self) -> Affinity:
        parameters = {"gamma": self.gamma, "degree": self.degree, "coef0": self.coef0}
        if callable(self.kernel):
            parameters = dict(self.kernel_params or {})
        return Affinity(
            self.kernel, n_neighbors=self.n_neighbors, parameters=parameters, n_jobs=self.n_jobs
        )

    def _store(
        self, form: Form, found: Eigenvectors, rows: np.ndarray, clustering: RowClustering
    ) -> None:
        by_appearance, self.labels_ = number_by_appearance(clustering.labels)
        self.n_clusters_ = len(by_appearance)
        self.cluster_centers_ = clustering.centers[by_appearance]
        self.eigenvalues_ = found.values
        self.embedding_ = rows
        self.penalty_ = found.penalty
        self.chance_missed_ = found.chance_missed
        if found.path is not None:
            self.path_ = found.path
        self.objective_ = form.objective(self.labels_, found.penalty)
        self.relaxed_objective_ = form.relaxed_objective(found.values, found.penalty)
        self.objective_history_ = clustering.history
        self.n_iter_ = clustering.n_iter
        self.converged_ = clustering.converged
        self.eigenvectors_ = found.vectors / form.root[:, None]
        self.largest_degree_ = form.largest_degree
        if not clustering.converged:
            warnings.warn(
                f"SpectralDPMeans stopped at max_iter={self.max_iter} passes over the rows of "
                "eigenvectors before they had converged; raise max_iter",
                ConvergenceWarning,
                stacklevel=4,  # store, fit, scikit-learn's wrapper: the caller
            )

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = self.kernel == "precomputed"
        return tags
