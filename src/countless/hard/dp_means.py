"""DP-means: k-means that opens a cluster where rows pay for it, and so needs no k.

It minimises ``sum_i w_i d(x_i, center of its cluster) + penalty * n_clusters`` over clusterings and
centers.

Kulis and Jordan, *Revisiting k-means: new algorithms via Bayesian nonparametrics*, ICML 2012.
"""

from __future__ import annotations

import warnings
from numbers import Integral, Real

import numpy as np
import scipy.sparse as sp
from scipy.spatial.distance import cdist
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    ClusterMixin,
    TransformerMixin,
)
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
from countless._labels import number_by_appearance
from countless.hard.algorithm1 import Clustering, algorithm1, one_pass, visiting_order
from countless.hard.checks import check_finite, check_weight, without_repeats
from countless.hard.divergence import get_divergence
from countless.hard.farthest import farthest_first_penalty
from countless.hard.nearest import Nearest
from countless.hard.penalty import penalty_path
from countless.hard.refine import refine as refine_clusters
from countless.hard.stream import Stream, resume_stream, start_stream, update_stream
from countless.rows import MemoryRows, Summary, open_rows

ORDERS = ("given", "random", "farthest")
# Tables of up to so many rows and cells are refined until no move helps; larger ones until moves
# gain little.
SMALL_ROWS, SMALL_CELLS = 10_000, 2_000_000
LARGE_TABLE_TOL = 1e-3


def dp_means(
    rows: MemoryRows,
    penalty: float,
    *,
    order: str = "given",
    refine: bool = True,
    start: np.ndarray | None = None,
    tol: float = 0.0,
    max_iter: int = 300,
    random: np.random.RandomState | None = None,
    on_pass: OnPass = ignore_pass,
) -> Clustering:
    """Cluster rows by DP-means.

    Parameters
    ----------
    rows : MemoryRows
    penalty : float
        The price of one cluster.
    order : {'given', 'random', 'farthest'}
        In what order rows may open clusters.
    refine : bool
        False is Algorithm 1. True takes its first pass, or the clusters of ``start``, and lowers
        the objective from there.
    start : ndarray of int, optional
        A label for each row to start from, when refining.
    tol, max_iter : float, int
        Stop when a round gains less than this share of the objective, or after so many passes.
    random : RandomState, optional
        Needed for ``order='random'``.
    on_pass : callable
        Told the objective and the number of clusters after each pass.
    """
    if refine and start is not None:
        labels = start.astype(np.int32)
        summary = rows.summary(labels, int(labels.max()) + 1)
        nearest = Nearest(rows, rows.means(summary))
        nearest.labels = labels
        return refine_clusters(
            rows, nearest, summary, penalty, tol=tol, max_iter=max_iter, on_pass=on_pass
        )
    rank = visiting_order(order, rows.n_rows, random)
    if not refine:
        return algorithm1(rows, penalty, rank=rank, max_iter=max_iter, on_pass=on_pass)
    summary = rows.summary(np.zeros(rows.n_rows, dtype=np.int32), 1)
    nearest = Nearest(rows, rows.means(summary))
    summary = one_pass(nearest, summary, penalty, rank)
    return refine_clusters(
        rows, nearest, summary, penalty, tol=tol, max_iter=max_iter, on_pass=on_pass
    )


def around_random_rows(rows: MemoryRows, n_clusters: int, random) -> np.ndarray:
    """Return the labels of rows around some of them chosen at random."""
    centers = rows.take(np.sort(random.choice(rows.n_rows, n_clusters, replace=False)))
    nearest = Nearest(rows, centers)
    nearest.assign(centers)
    return np.unique(nearest.labels, return_inverse=True)[1]


def _is_number(value) -> bool:
    """Tell whether a parameter is a finite number of at least 0."""
    if isinstance(value, bool) or not isinstance(value, Real):
        return False
    return 0 <= float(value) < np.inf


class DPMeans(
    CallbackSupportMixin,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    ClusterMixin,
    BaseEstimator,
):
    """Cluster rows without choosing the number of clusters.

    Minimises the cost of all rows at the centers of their clusters, plus a penalty for each
    cluster.

    Parameters
    ----------
    penalty : 'auto' or float, default='auto'
        The price of one cluster, in units of the objective (a sum over rows). 'auto' takes it from
        the widest plateau of `penalty_path`. With ``refine=False`` a row opens a cluster when its
        own weighted divergence exceeds the penalty, so that 'auto' there takes the number of
        clusters from the path and the penalty from `farthest_first_penalty`.
    divergence : {'sqeuclidean', 'kl', 'itakura-saito', 'logistic', 'cosine'}, default='sqeuclidean'
        What is summed: squared Euclidean distance; relative entropy of counts and proportions;
        ratios of positive values; relative entropy of binary data; one minus the cosine.
    order : {'given', 'random', 'farthest'}, default='given'
        The order in which rows may open clusters in a pass: as given, at random, or the farthest
        first.
    refine : bool, default=True
        Go on with merges, splits and moves of single rows, and with ventures that are taken back
        unless they pay, until none lowers the objective. False is Algorithm 1 of Kulis and Jordan
        to the letter.
    n_init : int, default=1
        Runs, of which the one with the lowest objective is kept. Runs after the first take rows in
        random order or, when refining, start around random rows.
    max_iter : int, default=300
        Passes over the rows at most; a round of refinement that has begun is finished.
    tol : float, optional
        Refinement stops when a round lowers the objective by less than this share of it. 0 goes on
        until no move helps. The default is 0 up to 10,000 rows and 2 million cells, and 1e-3
        beyond.
    random_state : int, RandomState instance or None, default=None
        Decides random orders, and the sample that 'auto' takes of a long table.
    n_jobs : int, default=None
        Threads, as in scikit-learn; the result does not depend on them.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        The cluster of each row, numbered by first appearance; after `partial_fit`, the ids of the
        last batch's clusters.
    n_clusters_ : int
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
    cluster_ids_ : ndarray of shape (n_clusters,)
        The label of each center: 0, 1, ... after `fit`; in a stream an id never changes its
        meaning.
    cluster_weights_ : ndarray of shape (n_clusters,)
        The weight of the rows in each cluster.
    penalty_ : float
        The penalty used.
    path_ : PenaltyPath
        The path that ``penalty='auto'`` chose from; its ``confidence`` says how sure the number of
        clusters is.
    objective_ : float
        The cost of all rows at their centers plus the penalty for each cluster.
    objective_history_ : ndarray
        The objective after each pass; it never rises.
    n_iter_ : int
        Passes made.
    converged_ : bool
        Whether it ended before ``max_iter``.
    share_computed_ : float
        Divergences computed, as a share of comparing every row with every center in every pass.
    n_features_in_ : int

    See Also
    --------
    penalty_path : The number of clusters at every penalty.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from countless import DPMeans
    >>> X, _ = make_blobs(300, centers=4, cluster_std=0.5, random_state=3)
    >>> model = DPMeans(random_state=0).fit(X)
    >>> model.n_clusters_
    4
    >>> model.predict(X[:3]).tolist() == model.labels_[:3].tolist()
    True
    """

    _stream: Stream
    penalty_: float
    objective_history_: np.ndarray

    def __init__(
        self,
        penalty="auto",
        *,
        divergence="sqeuclidean",
        order="given",
        refine=True,
        n_init=1,
        max_iter=300,
        tol=None,
        random_state=None,
        n_jobs=None,
    ):
        self.penalty = penalty
        self.divergence = divergence
        self.order = order
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
            float32 and float64 are used as they are, but for the cosine, which copies them to unit
            length. Sparse rows are compared about zero: take a large offset out of a column first.
        y : ignored
        sample_weight : array-like of shape (n_samples,), optional
            A row of weight 0 is as good as absent (the others are copied); it is labelled all the
            same, after the rest.

        Returns
        -------
        self
        """
        self._check_parameters()
        self.__dict__.pop("path_", None)  # another fit's
        X, weight = self._check_rows(X, sample_weight, reset=True)
        random = check_random_state(self.random_state)
        penalty, start = self._resolve_penalty(X, weight, random, refine=self.refine)
        counted = slice(None) if weight is None or weight.all() else np.flatnonzero(weight)
        with report_passes(self, X) as on_pass:
            found, summary = self._fit_rows(
                X[counted],
                None if weight is None else weight[counted],
                penalty,
                None if start is None else start[counted],
                random,
                on_pass,
            )
        self._store(found, summary, penalty)
        if not isinstance(counted, slice):
            labels = self._nearest(X).labels
            labels[counted] = number_by_appearance(found.labels)[1]
            self.labels_ = labels
        return self

    def fit_predict(self, X, y=None, sample_weight=None):
        """Cluster the rows of X and return their labels."""
        return self.fit(X, sample_weight=sample_weight).labels_

    def partial_fit(self, X, y=None, sample_weight=None):
        """Take in a batch of rows of a stream.

        Memory is bounded: all rows seen are remembered as at most 1,024 weighted items. Clusters
        are born, merged and split as rows come, and keep their ids (`cluster_ids_`). With
        ``penalty='auto'`` the first batch decides, and the penalty then grows in proportion to the
        weight seen. After `fit` the stream goes on from the clusters found.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)
        y : ignored
        sample_weight : array-like of shape (n_samples,), optional

        Returns
        -------
        self
        """
        first = not hasattr(self, "cluster_centers_")
        if not first and not hasattr(self, "_stream"):
            raise ValueError("partial_fit cannot go on from a model loaded from a file; fit anew")
        self._check_parameters()
        X, weight = self._check_rows(X, sample_weight, reset=first)
        weight = check_weight(weight, X.shape[0])
        random = check_random_state(self.random_state)
        stream = start_stream(X.shape[1]) if first else self._stream
        if isinstance(self.penalty, str) and not first:
            seen = stream.items.weight.sum()
            penalty = self.penalty_ * (seen + weight.sum()) / seen
        else:
            penalty = self._resolve_penalty(X, weight, random, refine=True)[0]
            if isinstance(self.penalty, str) and not len(self.path_.breakpoints):
                raise ValueError(
                    "penalty='auto' cannot be found on a first batch whose rows are all equal; "
                    "give a larger batch or a number"
                )
        divergence, seed = get_divergence(self.divergence), int(random.randint(2**31 - 1))
        self._stream, clusters = update_stream(stream, X, weight, divergence, penalty, seed=seed)
        self.penalty_ = penalty
        self.cluster_ids_, self.cluster_centers_, self.cluster_weights_, self.objective_ = clusters
        self.n_clusters_ = len(self.cluster_ids_)
        history = np.empty(0) if first else self.objective_history_
        self.objective_history_ = np.append(history, self.objective_)
        self.n_iter_ = len(self.objective_history_)
        self.converged_ = True
        self.labels_ = self.cluster_ids_[self._nearest(X).labels]
        return self

    def predict(self, X):
        """Return the label of the nearest center for each row of X."""
        X = self._check_new_rows(X)
        return self.cluster_ids_[self._nearest(X).labels]

    def transform(self, X):
        """Return how far each row is from each center.

        Euclidean distance for ``divergence='sqeuclidean'``, as in `sklearn.cluster.KMeans`; else
        the divergence itself.
        """
        X = self._check_new_rows(X)
        if self.divergence == "sqeuclidean" and not sp.issparse(X):
            return cdist(X, self.cluster_centers_)
        divergence = get_divergence(self.divergence)
        slope, offset = divergence.slope_offset(self.cluster_centers_)
        values = divergence.row_cost(X)[:, None] + offset - X @ slope.T
        values = np.maximum(values, 0.0)
        return np.sqrt(values) if self.divergence == "sqeuclidean" else values

    def score(self, X, y=None, sample_weight=None):
        """Return minus the objective of X at the centers found: the higher the better."""
        X = self._check_new_rows(X)
        weight = check_weight(sample_weight, X.shape[0])
        with open_rows(X, weight, get_divergence(self.divergence), self.n_jobs) as rows:
            nearest = Nearest(rows, self.cluster_centers_)
            nearest.assign(self.cluster_centers_)
            summary = rows.summary(nearest.labels, self.n_clusters_)
            return -rows.objective(summary, self.penalty_, self.cluster_centers_)

    def _check_parameters(self) -> None:
        auto = isinstance(self.penalty, str) and self.penalty == "auto"
        if not auto and not _is_number(self.penalty):
            raise ValueError(
                f"penalty must be 'auto' or a number of at least 0; got {self.penalty!r}"
            )
        get_divergence(self.divergence)
        if self.order not in ORDERS:
            known = ", ".join(repr(order) for order in ORDERS)
            raise ValueError(f"order must be one of {known}; got {self.order!r}")
        if not isinstance(self.refine, bool | np.bool_):
            raise ValueError(f"refine must be True or False; got {self.refine!r}")
        for name in ("n_init", "max_iter"):
            value = getattr(self, name)
            if not isinstance(value, Integral) or value < 1:
                raise ValueError(f"{name} must be a whole number of at least 1; got {value!r}")
        if self.tol is not None and not _is_number(self.tol):
            raise ValueError(f"tol must be None or a number of at least 0; got {self.tol!r}")

    def _check_rows(self, X, sample_weight, *, reset: bool):
        """Return rows as the divergence wants them, and their weights (None: all 1)."""
        X = validate_data(
            self,
            X,
            reset=reset,
            accept_sparse="csr",
            dtype=[np.float64, np.float32],
            order="C",
            ensure_all_finite=False,
        )
        check_finite(X)
        X = without_repeats(X)
        divergence = get_divergence(self.divergence)
        divergence.check(X)
        weight = None if sample_weight is None else check_weight(sample_weight, X.shape[0])
        return divergence.prepare(X), weight

    def _check_new_rows(self, X):
        check_is_fitted(self, "cluster_centers_")
        return self._check_rows(X, None, reset=False)[0]

    def _resolve_penalty(self, X, weight, random, *, refine: bool):
        """Return the penalty and, where the path found it, the labels to start from."""
        if not isinstance(self.penalty, str):
            return float(self.penalty), None
        self.path_ = penalty_path(
            X,
            sample_weight=weight,
            divergence=self.divergence,
            random_state=random,
            n_jobs=self.n_jobs,
        )
        if refine:
            return self.path_.penalty, self.path_.labels_at(self.path_.penalty)
        penalty = farthest_first_penalty(
            X, self.path_.n_clusters, sample_weight=weight, divergence=self.divergence
        )
        return penalty, None

    def _fit_rows(self, X, weight, penalty, start, random, on_pass) -> tuple[Clustering, Summary]:
        """Return the best of ``n_init`` runs, and its sums in the rows' own coordinates."""
        tol = self.tol
        if tol is None:
            small = X.shape[0] <= SMALL_ROWS and X.shape[0] * X.shape[1] <= SMALL_CELLS
            tol = 0.0 if small else LARGE_TABLE_TOL
        with open_rows(X, weight, get_divergence(self.divergence), self.n_jobs) as rows:
            settings = {
                "refine": self.refine,
                "tol": tol,
                "max_iter": self.max_iter,
                "random": random,
                "on_pass": on_pass,
            }
            best = dp_means(rows, penalty, order=self.order, start=start, **settings)
            for _ in range(self.n_init - 1):
                if self.refine:
                    start = around_random_rows(rows, len(best.centers), random)
                run = dp_means(rows, penalty, order="random", start=start, **settings)
                best = min(best, run, key=lambda found: found.objective)
            total = best.summary.total + best.summary.weight[:, None] * rows.origin
        return best, Summary(best.summary.weight, total)

    def _store(self, found: Clustering, summary: Summary, penalty: float) -> None:
        """Keep what was found, clusters numbered by first appearance."""
        by_appearance, self.labels_ = number_by_appearance(found.labels)
        self.cluster_centers_ = found.centers[by_appearance]
        self.n_clusters_ = len(by_appearance)
        self.cluster_ids_ = np.arange(self.n_clusters_)
        self.cluster_weights_ = summary.weight[by_appearance]
        self.penalty_ = penalty
        self.objective_ = found.objective
        self.objective_history_ = np.array(found.history)
        self.n_iter_ = found.n_iter
        self.converged_ = found.converged
        self.share_computed_ = found.share_computed
        self._stream = resume_stream(
            self.cluster_weights_,
            summary.total[by_appearance],
            found.objective - penalty * self.n_clusters_,
        )
        if not found.converged:
            warnings.warn(
                f"DPMeans stopped at max_iter={self.max_iter} passes before it had converged; "
                "raise max_iter or tol",
                ConvergenceWarning,
                stacklevel=4,  # store, fit, scikit-learn's wrapper: the caller
            )

    def _nearest(self, X) -> Nearest:
        with open_rows(X, None, get_divergence(self.divergence), self.n_jobs) as rows:
            nearest = Nearest(rows, self.cluster_centers_)
            nearest.assign(self.cluster_centers_)
            return nearest

    @property
    def _n_features_out(self) -> int:
        return self.n_clusters_

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = []
        return tags
