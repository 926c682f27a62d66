"""HDP-means: clusters several data sets, each of which uses a subset of shared global clusters.

It minimises ``sum_i ||x_i - center of its global cluster||^2 + local_penalty * n_local +
global_penalty * n_global``, objective (2) of Kulis and Jordan, *Revisiting k-means: new algorithms
via Bayesian nonparametrics*, ICML 2012: each pair of a data set and a global cluster that it uses
costs the local penalty, and each global cluster once the global penalty.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from countless._compat import (
    CallbackSupportMixin,
    OnPass,
    ignore_pass,
    report_passes,
    with_callbacks,
)
from countless._data.npy import FlatFile
from countless._data.stored import as_flat_file, find_table, scratch_folder
from countless._labels import number_by_appearance
from countless._numbers import validate_numbers
from countless._parameters import check_counts, check_flags, check_penalties, check_tol, is_auto
from countless._path.penalty import path_of
from countless._search.dp_means import default_tol, dp_means
from countless._search.groups.algorithm2 import SharedClustering, algorithm2
from countless._search.groups.choice import assign_groups
from countless._search.groups.groups import Groups, check_groups, number_inside
from countless._search.groups.penalties import HDPPenalties, hdp_penalties
from countless._search.groups.refine import refine
from countless._search.groups.rows import open_grouped
from countless._search.groups.start import first_labels
from countless._search.lower_bound import (
    OptimalityGap,
    check_same_rows,
    dp_means_lower_bound,
    shared_lower_bound,
    within_clusters,
)

__all__ = ["HDPMeans", "HDPPenalties", "hdp_penalties"]


def hdp_means(
    X: np.ndarray | FlatFile,
    groups: Groups,
    penalties: HDPPenalties | None,
    *,
    refine_: bool = True,
    tol: float = 0.0,
    max_iter: int = 300,
    random: np.random.RandomState | None = None,
    n_jobs: int | None = None,
    on_pass: OnPass = ignore_pass,
) -> tuple[SharedClustering, HDPPenalties]:
    """Cluster the rows of several data sets.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_features) or FlatFile
    groups : Groups
        The data set of each row.
    penalties : HDPPenalties or None
        The penalties of a local and of a global cluster; None estimates them from the data.
    refine_ : bool
        False is Algorithm 2. True is local search, initialised with the clusters of a subsample.
    tol, max_iter : float, int
        Stop when a round gains less than this share of the objective, or after ``max_iter`` passes.
    random : RandomState, optional
        Draws the subsample of a long table.
    n_jobs : int, optional
        Threads; they do not change the result.
    on_pass : callable
        Called with the objective and the number of globals after each pass.

    Returns
    -------
    SharedClustering, HDPPenalties
        The clustering, with rows in the order given, and the penalties used.
    """
    settings: dict[str, Any] = {"max_iter": max_iter, "on_pass": on_pass}
    random = check_random_state(random)
    if refine_ and groups.n_groups == 1:
        return _one_data_set(X, penalties, tol, random, n_jobs, settings)
    if not refine_ and penalties is None and isinstance(X, FlatFile):
        raise ValueError("refine=False finds no penalties for rows in a file; give numbers")
    if refine_ or penalties is None:
        order, starts = groups.sorted()
        with open_grouped(X, order, n_jobs) as rows:
            labels, chosen = first_labels(rows, starts, penalties, random)
            if refine_:
                found = refine(rows, starts, labels, *chosen, tol=tol, **settings)
                if order is not None:
                    local = np.empty_like(found.local_labels)
                    local[order] = found.local_labels
                    found = found._replace(local_labels=local)
                return found, chosen
        # Algorithm 2 compares single rows with the penalties, so these are on the scale of a row.
        n_global = int(labels.max()) + 1
        group = np.repeat(np.arange(groups.n_groups), np.diff(starts))
        n_local = max(1, round(len(np.unique(group * n_global + labels)) / groups.n_groups))
        penalties = hdp_penalties(X, groups.number, n_local, n_global)
    with open_grouped(X, None, n_jobs) as rows:
        found = algorithm2(rows, groups.number, groups.n_groups, *penalties, **settings)
    return found, penalties


def _one_data_set(X, penalties, tol, random, n_jobs, settings):
    """Cluster one data set: DP-means at the sum of both penalties."""
    start = None
    with open_grouped(X, None, n_jobs) as rows:
        if penalties is None:
            path = path_of(rows.backend)
            penalties = HDPPenalties(path.penalty / 2, path.penalty / 2)
            start = path.labels_at(path.penalty)
        found = dp_means(rows.backend, sum(penalties), start=start, tol=tol, **settings)
        clusters = np.arange(len(found.centers))
        return SharedClustering(
            found.labels, np.zeros_like(clusters), clusters, found.centers, found.objective,
            found.history, found.n_iter, found.converged,
        ), penalties  # fmt: skip


class HDPMeans(CallbackSupportMixin, ClusterMixin, BaseEstimator):
    """Cluster several data sets that share clusters, without choosing how many there are.

    A row's label is its global cluster. Each data set uses some of the global clusters; its rows at
    one of them are a local cluster.

    Parameters
    ----------
    local_penalty : 'auto' or float, default='auto'
        The penalty of one local cluster, that is, of one data set's use of a global cluster.
    global_penalty : 'auto' or float, default='auto'
        The penalty of one global cluster. 'auto' estimates both from the data, so either both are
        numbers or both are 'auto'.
    refine : bool, default=True
        Local search by merges, splits and moves, of global and local clusters and of single rows,
        until none lowers the objective. False is Algorithm 2 of Kulis and Jordan exactly, which
        compares single rows with the penalties: `hdp_penalties` finds suitable ones.
    max_iter : int, default=300
        Maximum number of passes over the rows; a round of refinement that has begun is finished.
    tol : float, optional
        Refinement stops when a round lowers the objective by less than this share of it. The
        default is 0 up to 10,000 rows, which continues until no move lowers it, and 1e-3 beyond.
    random_state : int, RandomState instance or None, default=None
        Draws the subsample of a long table from which refinement starts.
    n_jobs : int, default=None
        Threads, as in scikit-learn; the result does not depend on them.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        The global cluster of each row, numbered by first appearance.
    n_clusters_ : int
        The number of global clusters.
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
    local_labels_ : ndarray of shape (n_samples,)
        The local cluster of each row inside its data set, numbered by first appearance there.
    groups_ : ndarray of shape (n_groups,)
        The data sets, in order of first appearance.
    n_local_clusters_ : ndarray of shape (n_groups,)
        The number of local clusters of each data set.
    group_clusters_ : ndarray of bool of shape (n_groups, n_clusters)
        Which global clusters each data set uses.
    local_penalty_, global_penalty_ : float
        The penalties used.
    objective_ : float
        The sum of squared distances of all rows from their centers, plus the penalties.
    objective_history_ : ndarray
        The objective after each pass; it never increases.
    n_iter_ : int
        Number of passes.
    converged_ : bool
        Whether it ended before ``max_iter``.
    n_features_in_ : int

    See Also
    --------
    hdp_penalties : Penalties from approximate numbers of clusters.
    DPMeans : The same for one data set.

    Examples
    --------
    >>> import numpy as np
    >>> from countless import HDPMeans
    >>> centers = np.array([[0.0, 0.0], [5.0, 0.0], [0.0, 5.0]])
    >>> random = np.random.RandomState(0)
    >>> truth = np.repeat([0, 1, 1, 2, 2, 0], 20)  # each data set has two of three clusters
    >>> groups = np.repeat(["a", "b", "c"], 40)
    >>> X = centers[truth] + random.standard_normal((120, 2))
    >>> model = HDPMeans(random_state=0).fit(X, groups=groups)
    >>> model.n_clusters_, model.n_local_clusters_.tolist()
    (3, [2, 2, 2])
    >>> model.predict([[5.0, 0.5]], groups=["b"])
    array([1], dtype=int32)
    """

    objective_history_: np.ndarray

    def __init__(
        self,
        local_penalty="auto",
        global_penalty="auto",
        *,
        refine=True,
        max_iter=300,
        tol=None,
        random_state=None,
        n_jobs=None,
    ):
        self.local_penalty = local_penalty
        self.global_penalty = global_penalty
        self.refine = refine
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.n_jobs = n_jobs

    @with_callbacks
    def fit(self, X, y=None, groups=None):
        """Cluster the rows of X.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or a table in a file
            float32 and float64 are used without conversion. If the rows of a data set are not
            contiguous, a copy with sorted rows is made. A table in a file is a ``np.memmap``, or a
            path to a .npy or Parquet file or to a folder of Parquet files; it is read in blocks.
        y : ignored
        groups : array-like of shape (n_samples,), optional
            The data set of each row, as labels of any type. None is one data set.

        Returns
        -------
        self
        """
        penalties = self._check_parameters()
        with self._table(X, reset=True) as table, report_passes(self, X) as on_pass:
            groups = check_groups(groups, table.shape[0])
            tol = self.tol
            if tol is None:
                tol = default_tol(table.shape[0])
            found, penalties = hdp_means(
                table,
                groups,
                penalties,
                refine_=self.refine,
                tol=tol,
                max_iter=self.max_iter,
                random=self.random_state,
                n_jobs=self.n_jobs,
                on_pass=on_pass,
            )
        self._store(found, groups, penalties)
        return self

    def fit_predict(self, X, y=None, groups=None):
        """Cluster the rows of X and return the global cluster of each."""
        return self.fit(X, groups=groups).labels_

    def predict(self, X, groups=None):
        """Return the global cluster of each row of X.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        groups : array-like of shape (n_samples,), optional
            The data set of each row. Rows of one data set are assigned jointly: to the nearest of
            the clusters that it uses, or to a further one where that lowers their cost by more than
            the local penalty. A data set that was not fitted pays the penalty for all that it uses.
            With None every row gets its nearest center.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
        """
        check_is_fitted(self)
        with self._table(X, reset=False) as table:
            return self._predict(table, groups)

    def _predict(self, table: np.ndarray | FlatFile, groups) -> np.ndarray:
        price = 0.0 if groups is None else self.local_penalty_
        groups = check_groups(groups, table.shape[0])
        paid = np.zeros((groups.n_groups, self.n_clusters_), dtype=bool)
        place = {name: j for j, name in enumerate(self.groups_.tolist())}
        for row, name in enumerate(groups.names.tolist()):
            if name in place and price > 0:
                paid[row] = self.group_clusters_[place[name]]
        order, starts = groups.sorted()
        with open_grouped(table, order, self.n_jobs) as rows:
            labels = assign_groups(rows, starts, self.cluster_centers_, paid, price)
        if order is not None:
            labels[order] = labels.copy()
        return labels

    def optimality_gap(self, X, groups=None):
        """Return how far from the optimum the clustering of the fit can be.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows of the fit.
        groups : array-like of shape (n_samples,), optional
            Their data sets.

        Returns
        -------
        OptimalityGap
            ``objective``, ``lower_bound``, and ``gap``: the largest share of the objective that any
            other clustering could save. With ``refine=False`` local clusters of one data set can
            share a global cluster; the objective counts these once.
        """
        check_is_fitted(self, "labels_")
        X = validate_numbers(self, X, reset=False)
        check_same_rows(X, self.labels_)
        group = check_groups(groups, len(X)).number
        n_global = int(self.labels_.max()) + 1
        n_local = len(np.unique(group * n_global + self.labels_))
        penalties = self.local_penalty_, self.global_penalty_
        weight, labels = np.ones(len(X)), self.labels_

        def bound(ids, penalty):
            return dp_means_lower_bound(X[ids], weight[ids], penalty, labels[ids])

        return OptimalityGap(
            within_clusters(X, weight, labels) + penalties[0] * n_local + penalties[1] * n_global,
            shared_lower_bound(bound, group, *penalties),
        )

    def _check_parameters(self) -> HDPPenalties | None:
        """Return the penalties, or None for 'auto'."""
        check_penalties(self, "local_penalty", "global_penalty")
        auto = is_auto(self.local_penalty)
        if auto != is_auto(self.global_penalty):
            raise ValueError(
                "local_penalty and global_penalty must both be 'auto' or both be numbers; got "
                f"{self.local_penalty!r} and {self.global_penalty!r}"
            )
        check_flags(self, "refine")
        check_counts(self, "max_iter")
        check_tol(self)
        if auto:
            return None
        return HDPPenalties(float(self.local_penalty), float(self.global_penalty))

    @contextmanager
    def _table(self, X, *, reset: bool) -> Iterator[np.ndarray | FlatFile]:
        """Yield the validated rows, in memory or in a file."""
        table = find_table(X)
        if table is None:
            X = validate_numbers(self, X, reset=reset)
            yield X
            return
        with scratch_folder() as folder:
            table = as_flat_file(table, folder)
            validate_data(self, table.read(0, 1), reset=reset)
            yield table

    def _store(self, found: SharedClustering, groups: Groups, penalties: HDPPenalties) -> None:
        """Set the fitted attributes, with clusters numbered by first appearance."""
        by_appearance, self.labels_ = number_by_appearance(found.local_global[found.local_labels])
        self.cluster_centers_ = found.centers[by_appearance]
        self.n_clusters_ = len(by_appearance)
        self.groups_ = groups.names
        self.group_clusters_ = np.zeros((groups.n_groups, self.n_clusters_), dtype=bool)
        self.group_clusters_[groups.number, self.labels_] = True
        self.local_labels_, self.n_local_clusters_ = number_inside(
            groups.number, found.local_labels
        )
        self.local_penalty_, self.global_penalty_ = penalties
        self.objective_ = found.objective
        self.objective_history_ = np.array(found.history)
        self.n_iter_ = found.n_iter
        self.converged_ = found.converged
        if not found.converged:
            warnings.warn(
                f"HDPMeans stopped at max_iter={self.max_iter} passes before it had converged; "
                "raise max_iter or tol",
                ConvergenceWarning,
                stacklevel=4,  # store, fit, scikit-learn's wrapper: the caller
            )
