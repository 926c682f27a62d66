"""DP-means in the feature space of a kernel.

It minimises ``sum_i w_i ||psi(x_i) - mean of its cluster||^2 + penalty * n_clusters``, where the
kernel is the inner product of ``psi(x_i)`` and ``psi(x_j)`` (Kulis and Jordan 2012, section 5.2).
"""

from __future__ import annotations

import numpy as np
from sklearn.utils import check_random_state

from countless._compat import OnPass, ignore_pass, report_passes, with_callbacks
from countless._data.validate import check_weight
from countless._kernel_estimator import KernelEstimator
from countless._parameters import check_counts
from countless._path.kernel import around, kernel_farthest_first, kernel_penalty_path
from countless._path.layers import LayeredMixin
from countless._search.kernel.clusters import KernelClustering, KernelTable, Prices
from countless._search.kernel.refine import MovableClusters
from countless._search.kernel.refine import refine as refine_clusters
from countless._search.lower_bound import OptimalityGap
from countless._threads import open_threads


def kernel_dp_means(
    table: KernelTable,
    penalty: float,
    *,
    refine: bool = True,
    start: np.ndarray | None = None,
    tol: float = 0.0,
    max_iter: int = 300,
    on_pass: OnPass = ignore_pass,
) -> KernelClustering:
    """Cluster the rows of a kernel by DP-means.

    Parameters
    ----------
    table : KernelTable
    penalty : float
        The penalty of one cluster.
    refine : bool
        False is Algorithm 1. True is local search from its first pass, or from the clusters of
        ``start``.
    start : ndarray of int, optional
        Initial labels of the rows, when refining.
    tol, max_iter : float, int
        Stop when a round gains less than this share of the objective, or after ``max_iter`` passes.
    on_pass : callable
        Called with the objective and the number of clusters after each pass.
    """
    if start is not None:
        clusters = MovableClusters(table, Prices(penalty), start)
        return refine_clusters(clusters, tol=tol, max_iter=max_iter, on_pass=on_pass)
    clusters = MovableClusters(table, Prices(penalty), np.zeros(table.n_rows, dtype=np.int32))
    if refine:
        clusters.one_pass(penalty)
        return refine_clusters(clusters, tol=tol, max_iter=max_iter, on_pass=on_pass)
    history: list[float] = []
    changed = True
    while changed and len(history) < max_iter:
        changed = clusters.one_pass(penalty)
        history.append(clusters.objective)
        on_pass(history[-1], clusters.n_clusters)
    return KernelClustering(clusters, history, len(history), not changed)


class KernelDPMeans(LayeredMixin, KernelEstimator):
    """DP-means in the feature space of a kernel, without choosing the number of clusters.

    Parameters
    ----------
    penalty : 'auto' or float, default='auto'
        The penalty of one cluster, in units of the objective (a sum over rows). 'auto' takes it
        from the selected plateau of the path in feature space; with ``refine=False`` from the
        farthest-first heuristic at the number of clusters found there, as in `DPMeans`.
    kernel : str or callable, default='rbf'
        A name of `sklearn.metrics.pairwise.pairwise_kernels`, a function of two rows, or
        'precomputed': then X is the kernel, a symmetric matrix.
    gamma : 'scale', float or None, default='scale'
        Parameter of the kernels that have one. 'scale' is one over the sum of the columns'
        variances for 'rbf', 'poly' and 'sigmoid', and scikit-learn's default for the others. None
        is scikit-learn's default for all.
    degree, coef0 : float, default=3, 1
        Parameters of the kernels 'poly' and 'sigmoid'.
    kernel_params : dict, optional
        Further parameters of the kernel.
    refine : bool, default=True
        Local search by merges, splits, moves of single rows, and over-split and repair (undone
        unless it gains), until none lowers the objective. False is Algorithm 1 of Kulis and Jordan
        exactly.
    n_init : int, default=1
        Number of refined runs; the one with the lowest objective is kept. Those after the first are
        initialised at random rows.
    max_iter : int, default=300
        Maximum number of passes over the rows; a round of refinement that has begun is finished.
    tol : float, optional
        Refinement stops when a round lowers the objective by less than this share of it. The
        default is 0 up to 10,000 rows, which continues until no move lowers it, and 1e-3 beyond.
    random_state : int, RandomState instance or None, default=None
        Determines random initialisations.
    n_jobs : int, default=None
        Threads, as in scikit-learn; the result does not depend on them.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        The cluster of each row, numbered by first appearance.
    n_clusters_ : int
    cluster_weights_ : ndarray of shape (n_clusters,)
        The weight of the rows in each cluster.
    center_norms_ : ndarray of shape (n_clusters,)
        The squared norm of each mean in feature space.
    penalty_ : float
        The penalty used.
    path_ : PenaltyPath
        The path from which ``penalty='auto'`` chose.
    gamma_ : float
        The gamma used by kernels that have one.
    X_fit_ : ndarray or CSR matrix
        The rows of the fit, which `predict` compares new ones with; None with a precomputed kernel.
    row_weights_ : ndarray of shape (n_samples,)
        Their weights.
    objective_ : float
        The sum of squared distances of all rows from their means, plus the penalty for each
        cluster.
    objective_history_ : ndarray
        The objective after each pass; it never increases.
    n_iter_ : int
        Number of passes.
    converged_ : bool
        Whether it ended before ``max_iter``.
    n_features_in_ : int

    See Also
    --------
    DPMeans : The same without a kernel, for tables of any length.

    Notes
    -----
    The kernel has ``n_samples ** 2`` entries of the dtype of X. Its size is logged to the logger
    ``countless`` before it is allocated; a MemoryError states it if memory does not suffice.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from countless import KernelDPMeans
    >>> X, _ = make_blobs(200, centers=4, cluster_std=0.5, random_state=3)
    >>> model = KernelDPMeans(random_state=0).fit(X)
    >>> model.n_clusters_
    4
    >>> model.predict(X[:3]).tolist() == model.labels_[:3].tolist()
    True
    """

    def __init__(
        self,
        penalty="auto",
        *,
        kernel="rbf",
        gamma="scale",
        degree=3,
        coef0=1,
        kernel_params=None,
        refine=True,
        n_init=1,
        max_iter=300,
        tol=None,
        random_state=None,
        n_jobs=None,
    ):
        self.penalty = penalty
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.refine = refine
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.n_jobs = n_jobs

    @with_callbacks
    def fit(self, X, y=None, sample_weight=None):
        """Cluster the rows of X.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)
            float32 rows give a float32 kernel. With ``kernel='precomputed'``, the kernel, of shape
            (n_samples, n_samples); it is used without a copy.
        y : ignored
        sample_weight : array-like of shape (n_samples,), optional
            A row of weight 0 does not affect the clusters, but is labelled.

        Returns
        -------
        self
        """
        self._check_shared("penalty")
        check_counts(self, "n_init")
        self._forget_path()
        X = self._check_rows(X, reset=True)
        weight = check_weight(sample_weight, X.shape[0])
        kernel = self._make_kernel(X, weight)
        random = check_random_state(self.random_state)
        with report_passes(self, X) as on_pass, open_threads(self.n_jobs) as each:
            table = KernelTable(kernel, weight, np.zeros(len(kernel), dtype=np.int64), each)
            penalty, start = self._resolve_penalty(table)
            found = self._best_run(table, penalty, start, random, on_pass)
        self.penalty_ = penalty
        self._store_clusters(found, weight)
        return self

    def fit_predict(self, X, y=None, sample_weight=None):
        """Cluster the rows of X and return their labels."""
        return self.fit(X, sample_weight=sample_weight).labels_

    def predict(self, X):
        """Return the label of the nearest mean in feature space for each row of X.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            With ``kernel='precomputed'``, the kernel of each new row with every row of the fit,
            ``(n_samples, n_samples_fit)``.

        Returns
        -------
        ndarray of int of shape (n_samples,)
        """
        return self._scores(X).argmin(axis=1).astype(np.int32)

    def optimality_gap(self, X):
        """Return how far from the optimum the clustering of the fit can be.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows of the fit, or their kernel, which must be positive semi-definite.

        Returns
        -------
        OptimalityGap
            As from `DPMeans.optimality_gap`, in the feature space of the kernel.
        """
        bound = self._lower_bound(X)
        return OptimalityGap(self.objective_, bound(np.arange(len(self.labels_)), self.penalty_))

    def _resolve_penalty(self, table: KernelTable):
        """Return the penalty and, if it was chosen from the path, the initial labels."""
        if not isinstance(self.penalty, str):
            return float(self.penalty), None
        self.path_ = kernel_penalty_path(table, self._clouds(table.weight))
        if self.refine:
            return self.path_.penalty, self.path_.labels_at(self.path_.penalty)
        return kernel_farthest_first(table, self.path_.n_clusters), None

    def _best_run(self, table: KernelTable, penalty, start, random, on_pass) -> KernelClustering:
        settings = {
            "refine": self.refine,
            "tol": self._tolerance(table.n_rows),
            "max_iter": self.max_iter,
            "on_pass": on_pass,
        }
        best = kernel_dp_means(table, penalty, start=start, **settings)
        for _ in range(self.n_init - 1 if self.refine else 0):
            ids = random.choice(table.n_rows, best.clusters.n_clusters, replace=False)
            run = kernel_dp_means(table, penalty, start=around(table, ids)[0], **settings)
            best = min(best, run, key=lambda found: found.history[-1])
        return best
