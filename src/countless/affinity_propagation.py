"""Affinity propagation with any prior over the sizes of clusters.

It maximizes ``sum_i s(i, exemplar of i) + sum over clusters of f(size)`` over valid clusterings, in
which exemplars choose themselves; ``s(i, i)`` is the preference of row i. Without a prior f is 0.

Frey and Dueck, *Clustering by passing messages between data points*, Science 2007; Tarlow, Zemel
and Frey, *Flexible priors for exemplar-based clustering*, UAI 2008.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from numbers import Real
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClusterMixin, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from countless._compat import CallbackSupportMixin, OnPass, report_passes, with_callbacks
from countless._data.open import without_repeats
from countless._exemplar.clustering import Problem, improve, worth
from countless._exemplar.local_search import exemplars_of_equal_rows
from countless._exemplar.max_product import Found, Snapshot, max_product, snapshots
from countless._exemplar.preference import (
    base_density,
    check_preference,
    median_similarity,
    preference_path,
)
from countless._exemplar.similarity import (
    TILE_ENTRIES,
    Affinity,
    full_edges,
    gaussian_affinity,
    negative_squares,
    prepare,
    similarities,
    similarity_matrix,
    sparse_edges,
)
from countless._exemplar.weights import check_prior, weights_of
from countless._labels import number_by_appearance
from countless._numbers import check_entries_span, check_span, validate_numbers
from countless._parameters import check_counts, check_flags, is_auto
from countless._path.layers import LayeredMixin
from countless._threads import Each, open_threads, steps
from countless.kernels.edges import Edges

AFFINITIES = ("euclidean", "gaussian", "precomputed")
SOLVERS = ("max-product", "icm")
STARTS = ("one", "singletons")


class AffinityPropagation(LayeredMixin, CallbackSupportMixin, ClusterMixin, BaseEstimator):
    """Clusters around exemplars, without choosing their number, with a prior over sizes.

    Maximizes the sum of the similarities of all rows to the exemplars of their clusters, with the
    preferences of the exemplars, plus the log prior of the sizes. Without a prior and where
    messages converge, the clusters are those of `sklearn.cluster.AffinityPropagation`.

    Parameters
    ----------
    prior : PartitionPrior, 'dirichlet-process', 'uniform' or None, default=None
        The prior over cluster sizes, one of `countless.priors`; 'dirichlet-process' is that of
        ``alpha=1``. Similarities and preferences should then be log probabilities, as with
        ``affinity='gaussian'``.
    preference : 'auto', float, array-like of shape (n_samples,) or None, default=None
        The similarity of a row to itself: the larger, the more exemplars. None is the median of
        all similarities, and with ``affinity='gaussian'`` the log density of the row under the
        base distribution. 'auto' takes it from the widest plateau of a path over preferences,
        and also refines the clusters there; it needs full similarities and no prior.
    damping : float, optional
        The share of the old message in the new one, from 0 to below 1. The default is 0.5, and 0.7
        with a prior. It is raised when messages oscillate.
    max_iter : int, default=200
        Iterations at each damping, or sweeps of ``solver='icm'``. Damping is raised at most three
        times.
    convergence_iter : int, default=15
        Number of iterations without a change of the exemplars after which they are final; with a
        prior, unless the trend of the messages is about to change them.
    affinity : {'euclidean', 'gaussian', 'precomputed'} or callable, default='euclidean'
        The similarity of rows: minus the squared distance; the log density of a normal
        distribution around the exemplar; X itself, where ``X[i, j]`` is the similarity of row i to
        exemplar j, and entries that a sparse matrix does not store cannot be chosen; or a function
        of two tables that returns the similarity of every row of the first to every row of the
        second.
    noise_variance : float, optional
        The variance of each column around the exemplar, required for ``affinity='gaussian'``.
    base_variance, base_mean : float, array-like of shape (n_features,), optional
        Variance and mean of the normal base distribution of exemplars, for
        ``affinity='gaussian'``: one variance, and a mean for each column or for all. By default
        those of X.
    refine : bool, default=False
        Without a prior: after messages have converged, continue with a local search by moves of
        rows and swaps of exemplars, and restarts from perturbed optima; the objective is then
        higher than scikit-learn's. With a prior, where moves of rows and merges of clusters follow
        in any case: begin with these, from one cluster and from singletons, start messages from
        the result, which takes fewer iterations, and keep the best. Ignored by ``solver='icm'``.
    solver : {'max-product', 'icm'}, default='max-product'
        Message passing, or iterated conditional modes: each row in turn moves where it gains most.
    init : {'one', 'singletons'}, default='one'
        The clusters that 'icm' starts from.
    random_state : int, RandomState instance or None, default=None
        Breaks ties between similarities.
    n_jobs : int, default=None
        Threads, as in scikit-learn; the result does not depend on them.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        The cluster of each row, numbered by first appearance.
    n_clusters_ : int
    cluster_centers_indices_ : ndarray of shape (n_clusters,)
        The row that is the exemplar of each cluster.
    cluster_centers_ : ndarray or CSR matrix of shape (n_clusters, n_features)
        The exemplars; None with a precomputed affinity.
    cluster_sizes_ : ndarray of shape (n_clusters,)
    log_joint_ : float
        The objective: the sum of similarities and preferences, and with a prior the log
        probability of the clusters and of their exemplars. It is the log joint density of clusters
        and rows where similarities are log densities.
    preference_ : float or ndarray of shape (n_samples,)
        The preferences used.
    path_ : PenaltyPath
        The path that ``preference='auto'`` chose from; a penalty there is the highest similarity
        minus the preference.
    damping_ : float
        The final damping.
    n_iter_ : int
        Number of iterations or sweeps.
    converged_ : bool
        Whether the exemplars were constant at the end. If not, the clusters are the best valid ones
        seen, improved row by row.
    n_features_in_ : int

    See Also
    --------
    DPMeans : Centers in place of exemplars, for tables of any length.

    Notes
    -----
    Full similarities take ``n_samples ** 2`` entries, and messages as many.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from countless import AffinityPropagation
    >>> X, _ = make_blobs(200, centers=4, cluster_std=0.5, random_state=3)
    >>> model = AffinityPropagation(preference="auto", random_state=0).fit(X)
    >>> model.n_clusters_
    4
    >>> model.predict(X[:3]).tolist() == model.labels_[:3].tolist()
    True
    """

    cluster_centers_: Any
    damping_: float

    def __init__(
        self,
        prior=None,
        *,
        preference=None,
        damping=None,
        max_iter=200,
        convergence_iter=15,
        affinity="euclidean",
        noise_variance=None,
        base_variance=None,
        base_mean=None,
        refine=False,
        solver="max-product",
        init="one",
        random_state=None,
        n_jobs=None,
    ):
        self.prior = prior
        self.preference = preference
        self.damping = damping
        self.max_iter = max_iter
        self.convergence_iter = convergence_iter
        self.affinity = affinity
        self.noise_variance = noise_variance
        self.base_variance = base_variance
        self.base_mean = base_mean
        self.refine = refine
        self.solver = solver
        self.init = init
        self.random_state = random_state
        self.n_jobs = n_jobs

    @with_callbacks
    def fit(self, X, y=None):
        """Cluster the rows of X.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            With ``affinity='precomputed'`` the similarities, of shape (n_samples, n_samples).
            float32 is kept.
        y : ignored

        Returns
        -------
        self
        """
        self._check_parameters()
        self._forget_path()
        X = self._check_rows(X, reset=True)
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        with report_passes(self, X) as on_pass, open_threads(self.n_jobs) as each:
            edges = self._make_edges(X, each)
            self.preference_ = self._resolve_preference(X, edges, each)
            prepare(edges, self.preference_, seed, each)
            weights = weights_of(check_prior(self.prior), len(edges.own))
            problem = Problem(edges, weights, each)
            self._store(problem, self._solve(problem, on_pass))
        given = self._is("precomputed")
        self.cluster_centers_ = None if given else X[self.cluster_centers_indices_]
        return self

    def iterate_messages(self, X, n_iter: int = 20) -> Iterator[Snapshot]:
        """Yield the messages after each iteration, at the initial damping, without fitting.

        For display: each takes two matrices of all pairs of rows.

        Parameters
        ----------
        X : array-like or sparse matrix
            As for `fit`.
        n_iter : int, default=20
            How many iterations.

        Yields
        ------
        Snapshot
            With ``responsibility`` and ``availability``, of shape (n_samples, n_samples): entry
            (i, j) is between row i and exemplar j, and NaN where they have no similarity;
            ``evidence`` of shape (n_samples,) is above 0 for rows that are exemplars so far.

        Examples
        --------
        >>> from countless import AffinityPropagation
        >>> X = [[0.0], [0.1], [0.3], [5.0], [5.1], [5.2]]
        >>> for messages in AffinityPropagation(random_state=0).iterate_messages(X, n_iter=10):
        ...     exemplars = (messages.evidence > 0).nonzero()[0]
        >>> exemplars.tolist()
        [1, 4]
        """
        model = clone(self)  # a fitted estimator stays as it is
        model._check_parameters()
        X = model._check_rows(X, reset=True)
        seed = int(check_random_state(model.random_state).randint(2**31 - 1))
        with open_threads(model.n_jobs) as each:
            edges = model._make_edges(X, each)
            prepare(edges, model._resolve_preference(X, edges, each), seed, each)
            problem = Problem(edges, weights_of(check_prior(model.prior), len(edges.own)), each)
            yield from snapshots(problem, damping=model._first_damping(problem), n_iter=n_iter)

    def _first_damping(self, problem: Problem) -> float:
        if self.damping is not None:
            return float(self.damping)
        return 0.7 if problem.weights.counts_sizes else 0.5

    def predict(self, X):
        """Return the cluster of the exemplar that each row of X is most similar to.

        With a prior the score includes the increment of the log weight of the cluster's size, so
        that of two equally similar exemplars that of the larger cluster is taken.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            With ``affinity='precomputed'`` the similarities of new rows to those of the fit, of
            shape (n_samples, n_samples_fit).

        Returns
        -------
        ndarray of int of shape (n_samples,)
        """
        check_is_fitted(self, "cluster_centers_indices_")
        X = self._check_rows(X, reset=False)
        prior = check_prior(self.prior)
        added = np.zeros(self.n_clusters_)
        if prior is not None:
            size = self.cluster_sizes_
            added = prior.log_join(size) - np.log1p(1 / size)
        labels = np.empty(X.shape[0], dtype=np.int32)

        def choose(first: int, last: int) -> None:
            score = self._to_exemplars(X[first:last]) + added
            none = ~np.isfinite(score.max(axis=1))  # -inf, or NaN from a function
            if none.any():
                raise ValueError(f"row {first + int(none.argmax())} of X can join no cluster")
            labels[first:last] = score.argmax(axis=1)

        with open_threads(self.n_jobs) as each:
            each(choose, steps(X.shape[0], max(1, TILE_ENTRIES // self.n_clusters_)))
        return labels

    def _to_exemplars(self, X) -> np.ndarray:
        """Return the similarity of new rows to exemplars."""
        if not self._is("precomputed"):
            return similarities(self._affinity(), X, self.cluster_centers_)
        given = X[:, self.cluster_centers_indices_]
        if not sp.issparse(given):
            return given
        stored = sp.csr_array((np.ones(given.nnz), given.indices, given.indptr), given.shape)
        return np.where(stored.toarray() > 0, given.toarray(), -np.inf)

    def _is(self, affinity: str) -> bool:
        return isinstance(self.affinity, str) and self.affinity == affinity

    def _affinity(self) -> Affinity:
        if callable(self.affinity):
            return self.affinity
        if self._is("gaussian"):
            return gaussian_affinity(float(self.noise_variance))
        return negative_squares

    def _check_parameters(self) -> None:
        check_prior(self.prior)
        check_counts(self, "max_iter", "convergence_iter")
        check_flags(self, "refine")
        choices: dict[str, tuple[str, ...]] = {"solver": SOLVERS, "init": STARTS}
        if not callable(self.affinity):
            choices["affinity"] = AFFINITIES
        for name, known in choices.items():
            value = getattr(self, name)
            if not isinstance(value, str) or value not in known:
                names = ", ".join(repr(option) for option in known)
                also = " or a function" if name == "affinity" else ""
                raise ValueError(f"{name} must be one of {names}{also}; got {value!r}")
        if self.damping is not None and not (
            isinstance(self.damping, Real) and 0 <= float(self.damping) < 1
        ):
            raise ValueError(f"damping must be from 0 to below 1; got {self.damping!r}")
        for name in ("noise_variance", "base_variance"):
            value = getattr(self, name)
            if value is not None and not (isinstance(value, Real) and 0 < float(value) < np.inf):
                raise ValueError(f"{name} must be a positive number; got {value!r}")
        if self._is("gaussian") and self.noise_variance is None:
            raise ValueError("affinity='gaussian' needs a noise_variance")
        if is_auto(self.preference) and self.prior is not None:
            raise ValueError(
                "preference='auto' is for prior=None: with a prior, preferences are log densities; "
                "give them, or None with affinity='gaussian'"
            )

    def _check_rows(self, X, *, reset: bool):
        X = validate_numbers(self, X, reset=reset, accept_sparse="csr")
        if reset and self._is("precomputed"):
            check_entries_span(X, "precomputed similarities")
        elif reset and isinstance(X, np.ndarray):
            X = check_span(X)
        if reset and self._is("precomputed") and X.shape[0] != X.shape[1]:
            raise ValueError(
                "precomputed similarities must be square; got "
                f"{X.shape[0]} rows and {X.shape[1]} columns"
            )
        return without_repeats(X)

    def _make_edges(self, X, each: Each) -> Edges:
        """Return the similarities of all rows; preferences are set later."""
        if not self._is("precomputed"):
            values = similarity_matrix(X, self._affinity(), each)
            _check_similarities(values)
            return full_edges(values)
        if sp.issparse(X):
            return sparse_edges(X)
        return full_edges(X.T.copy(order="C"))

    def _resolve_preference(self, X, edges: Edges, each: Each) -> Any:
        """Return one preference for all rows, or one for each."""
        if is_auto(self.preference):
            self.path_, preference = preference_path(edges, each)
            return preference
        if self.preference is not None:
            return check_preference(self.preference, len(edges.own))
        if self._is("gaussian"):
            return base_density(X, self.base_mean, self.base_variance)
        return median_similarity(edges)

    def _solve(self, problem: Problem, on_pass: OnPass) -> Found:
        damping = self._first_damping(problem)
        if problem.all_alike:
            return Found(exemplars_of_equal_rows(problem), 1, True, damping)
        if self.solver == "icm":
            start = np.zeros(problem.n) if self.init == "one" else np.arange(problem.n)
            return Found(*improve(problem, start, self.max_iter, on_pass), damping)
        path = getattr(self, "path_", None)
        return max_product(
            problem,
            damping=damping,
            max_iter=self.max_iter,
            convergence_iter=self.convergence_iter,
            refine=self.refine,
            start=path and path.labels_at(path.penalty),
            on_pass=on_pass,
        )

    def _store(self, problem: Problem, found: Found) -> None:
        self.cluster_centers_indices_, self.labels_ = number_by_appearance(found.choice)
        self.n_clusters_ = len(self.cluster_centers_indices_)
        self.cluster_sizes_ = np.bincount(self.labels_)
        self.log_joint_ = float(worth(problem, found.choice))
        self.n_iter_ = found.n_iter
        self.converged_ = found.converged
        self.damping_ = found.damping
        if not found.converged:
            what = "sweeps" if self.solver == "icm" else "iterations"
            raised = ""
            if self.solver != "icm":
                raised = f", with damping raised to {found.damping:.3g}"
            warnings.warn(
                f"AffinityPropagation stopped after {found.n_iter} {what} before it had "
                f"converged{raised}; the clusters are the best seen: raise damping or max_iter",
                ConvergenceWarning,
                stacklevel=4,  # store, fit, scikit-learn's wrapper: the caller
            )

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self._is("precomputed")
        tags.input_tags.sparse = True
        return tags


def _check_similarities(values: np.ndarray) -> None:
    """Raise a ValueError that names the first pair whose similarity is not finite."""
    for exemplar, column in enumerate(values):
        if not np.isfinite(column.sum(dtype=np.float64)) and not np.isfinite(column).all():
            row = int(np.argmin(np.isfinite(column)))
            raise ValueError(f"the affinity of row {row} and row {exemplar} is {column[row]:g}")
