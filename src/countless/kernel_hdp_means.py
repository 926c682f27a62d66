"""The hard HDP in the feature space of a kernel: several data sets that share clusters.

It minimises ``sum_i w_i ||psi(x_i) - mean of its cluster||^2 + local_penalty * n_local +
global_penalty * n_clusters``, where every data set pays a local penalty for each of its local
clusters (Kulis and Jordan 2012, sections 4 and 5.2).
"""

from __future__ import annotations

import numpy as np

from countless._compat import OnPass, ignore_pass, report_passes, with_callbacks
from countless._data.validate import check_weight
from countless._kernel_estimator import KernelEstimator
from countless._labels import number_by_appearance
from countless._path.kernel import kernel_farthest_first, kernel_penalty_path
from countless._search.groups.groups import check_groups
from countless._search.kernel.algorithm2 import kernel_algorithm2
from countless._search.kernel.clusters import (
    KernelClustering,
    KernelClusters,
    KernelTable,
    Prices,
    choose_for_groups,
)
from countless._search.kernel.refine import MovableClusters
from countless._search.kernel.refine import refine as refine_clusters
from countless._search.local_search import SCHEDULE
from countless._search.lower_bound import OptimalityGap, shared_lower_bound
from countless._threads import open_threads


def kernel_hdp_means(
    table: KernelTable,
    prices: Prices,
    *,
    refine: bool = True,
    start: np.ndarray | None = None,
    tol: float = 0.0,
    max_iter: int = 300,
    on_pass: OnPass = ignore_pass,
) -> tuple[KernelClustering, np.ndarray]:
    """Cluster the rows of a kernel by the hard HDP; return it, and each row's local cluster.

    Without ``refine`` this is Algorithm 2. With it every pair of a group and a global cluster is
    one local cluster, and local search starts from ``start``, or else from the result of Algorithm
    2, so that the objective is never above it. The parameters are those of `kernel_dp_means`.
    """
    if start is None or not refine:
        found, local = kernel_algorithm2(
            table, prices, max_iter=max_iter, on_pass=ignore_pass if refine else on_pass
        )
        if not refine:
            return found, local
        start = found.clusters.labels
    clusters = MovableClusters(table, prices, start)
    found = refine_clusters(clusters, tol=tol, max_iter=max_iter, on_pass=on_pass)
    return found, table.group * clusters.n_clusters + clusters.labels


class KernelHDPMeans(KernelEstimator):
    """Cluster several data sets that share clusters, in the feature space of a kernel.

    Parameters
    ----------
    local_penalty, global_penalty : 'auto' or float, default='auto'
        The penalty of a data set for each cluster that it uses, and the penalty of a cluster: both
        numbers or both 'auto'. With 'auto' a cluster that is used by an average number of data sets
        costs the penalty chosen from the path of all rows together, half of it as local penalties;
        with ``refine=False`` each is half of the farthest-first penalty.
    kernel, gamma, degree, coef0, kernel_params
        The kernel, as in `KernelDPMeans`.
    refine : bool, default=True
        Local search until no merge, split or move of the rows of a data set, or of a single row,
        lowers the objective. False is Algorithm 2 of Kulis and Jordan exactly.
    max_iter, tol, random_state, n_jobs
        As in `KernelDPMeans`.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        The cluster of each row, shared by all data sets, numbered by first appearance.
    n_clusters_ : int
    local_labels_ : ndarray of shape (n_samples,)
        The local cluster of each row, numbered by first appearance inside its data set; -1 for a
        row of weight 0 that belongs to none of its data set's local clusters.
    groups_ : ndarray of shape (n_groups,)
        The data sets, by first appearance.
    n_local_clusters_ : ndarray of shape (n_groups,)
        The number of local clusters of each.
    group_clusters_ : ndarray of bool of shape (n_groups, n_clusters)
        Which clusters each data set uses.
    local_penalty_, global_penalty_ : float
        The penalties used.
    path_ : PenaltyPath
        The path of the pooled rows, if the penalties are 'auto'.
    center_norms_, cluster_weights_, gamma_, X_fit_, row_weights_
        As in `KernelDPMeans`.
    objective_, objective_history_, n_iter_, converged_
        As in `KernelDPMeans`.
    n_features_in_ : int

    Examples
    --------
    >>> import numpy as np
    >>> from countless import KernelHDPMeans
    >>> X = np.array([[0.0], [0.1], [5.0], [5.1], [0.2], [9.0]])
    >>> model = KernelHDPMeans(0.5, 0.5, kernel="linear").fit(X, groups=list("aaaabb"))
    >>> model.labels_.tolist(), model.n_local_clusters_.tolist()
    ([0, 0, 1, 1, 0, 2], [2, 2])
    """

    def __init__(
        self,
        local_penalty="auto",
        global_penalty="auto",
        *,
        kernel="rbf",
        gamma="scale",
        degree=3,
        coef0=1,
        kernel_params=None,
        refine=True,
        max_iter=300,
        tol=None,
        random_state=None,
        n_jobs=None,
    ):
        self.local_penalty = local_penalty
        self.global_penalty = global_penalty
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.refine = refine
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.n_jobs = n_jobs

    @with_callbacks
    def fit(self, X, y=None, groups=None, sample_weight=None):
        """Cluster the rows of X.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)
            As in `KernelDPMeans`.
        y : ignored
        groups : array-like of shape (n_samples,), optional
            The data set of each row, as labels of any type; None is one data set.
        sample_weight : array-like of shape (n_samples,), optional
            A row of weight 0 does not affect the clusters, but is labelled.

        Returns
        -------
        self
        """
        self._check_shared("local_penalty", "global_penalty")
        if isinstance(self.local_penalty, str) != isinstance(self.global_penalty, str):
            raise ValueError(
                "local_penalty and global_penalty must both be 'auto' or both be numbers; got "
                f"{self.local_penalty!r} and {self.global_penalty!r}"
            )
        self.__dict__.pop("path_", None)  # another fit's
        X = self._check_rows(X, reset=True)
        weight = check_weight(sample_weight, X.shape[0])
        names, number = check_groups(groups, X.shape[0])
        kernel = self._make_kernel(X, weight)
        with report_passes(self, X) as on_pass, open_threads(self.n_jobs) as each:
            table = KernelTable(kernel, weight, number.astype(np.int64), each)
            prices, start = self._resolve_prices(table)
            found, local = kernel_hdp_means(
                table,
                prices,
                refine=self.refine,
                start=start,
                tol=self._tolerance(table.n_rows),
                max_iter=self.max_iter,
                on_pass=on_pass,
            )
        self.local_penalty_, self.global_penalty_ = prices.local, prices.cluster
        order = self._store_clusters(found, weight)
        self.groups_ = names
        self.group_clusters_ = found.clusters.count[:, order] > 0
        self.local_labels_, self.n_local_clusters_ = _number_inside(number, local, weight)
        return self

    def fit_predict(self, X, y=None, groups=None, sample_weight=None):
        """Cluster the rows of X and return their labels."""
        return self.fit(X, groups=groups, sample_weight=sample_weight).labels_

    def predict(self, X, groups=None):
        """Return the cluster of lowest cost for each row of X.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            As in `KernelDPMeans.predict`.
        groups : array-like of shape (n_samples,), optional
            The data set of each row. Rows of one data set are assigned jointly: to the nearest of
            the clusters that it uses, or to a further one where that lowers their cost by more than
            the local penalty. A data set that was not fitted pays the penalty for all that it uses.
            With None every row gets its nearest mean.

        Returns
        -------
        ndarray of int of shape (n_samples,)
        """
        scores = self._scores(X)
        if groups is None:
            return scores.argmin(axis=1).astype(np.int32)
        names, number = check_groups(groups, len(scores))
        place = {name: at for at, name in enumerate(self.groups_.tolist())}
        paid = np.zeros((len(names), self.n_clusters_), dtype=bool)
        for at, name in enumerate(names.tolist()):
            if name in place:
                paid[at] = self.group_clusters_[place[name]]
        rounding = SCHEDULE.rounding * float(np.abs(scores).sum())
        return choose_for_groups(scores, number, paid, self.local_penalty_, paid.copy(), rounding)

    def optimality_gap(self, X, groups=None):
        """Return how far from the optimum the clustering of the fit can be.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows of the fit, or their kernel, which must be positive semi-definite.
        groups : array-like of shape (n_samples,), optional
            Their data sets.

        Returns
        -------
        OptimalityGap
            As from `HDPMeans.optimality_gap`, in the feature space of the kernel.
        """
        bound = self._lower_bound(X)
        group = check_groups(groups, len(self.labels_)).number
        return OptimalityGap(
            self.objective_,
            shared_lower_bound(bound, group, self.local_penalty_, self.global_penalty_),
        )

    def _resolve_prices(self, table: KernelTable) -> tuple[Prices, np.ndarray | None]:
        """Return the penalties and, if they were chosen from the path, the initial labels."""
        if not isinstance(self.local_penalty, str):
            return Prices(float(self.global_penalty), float(self.local_penalty)), None
        self.path_ = kernel_penalty_path(table, self._clouds(table.weight))
        if not self.refine:
            half = kernel_farthest_first(table, self.path_.n_clusters) / 2
            return Prices(half, half), None
        start, half = self.path_.labels_at(self.path_.penalty), self.path_.penalty / 2
        clusters = KernelClusters(table, Prices(0.0), start)
        return Prices(half, half * clusters.n_clusters / clusters.n_local), start


def _number_inside(
    group: np.ndarray, local: np.ndarray, weight: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Number local clusters by first appearance inside each group; count those with weight."""
    counts = np.zeros(int(group.max()) + 1, dtype=np.int64)
    counted = np.flatnonzero(weight)
    names, inverse = number_by_appearance(local[counted])
    _, first = np.unique(inverse, return_index=True)
    inside = np.empty(len(names), dtype=np.int32)
    for name, of in enumerate(group[counted[first]]):
        inside[name] = counts[of]
        counts[of] += 1
    known = dict(zip(names.tolist(), inside.tolist(), strict=True))
    return np.array([known.get(name, -1) for name in local.tolist()], dtype=np.int32), counts
