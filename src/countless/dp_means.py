"""DP-means: k-means with a penalty per cluster instead of a given k.

It minimises ``sum_i w_i d(x_i, center of its cluster) + penalty * n_clusters`` over clusterings and
centers.

Kulis and Jordan, *Revisiting k-means: new algorithms via Bayesian nonparametrics*, ICML 2012.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np
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
    report_passes,
    with_callbacks,
)
from countless._data import Backend, Block
from countless._data.open import open_checked
from countless._data.stored import find_table
from countless._labels import NOISE, look_up
from countless._numbers import validate_numbers
from countless._parameters import (
    check_counts,
    check_flags,
    check_penalties,
    check_tol,
    is_auto,
    is_number,
)
from countless._path.layers import LayeredMixin
from countless._path.micro import assign_to
from countless._search.algorithm1 import Clustering
from countless._search.background import (
    dp_means_with_background,
    given_weight,
    mark_background,
    nearest,
)
from countless._search.checkpoint import CheckpointFile, open_checkpoint
from countless._search.dp_means import (
    Resolved,
    best_of_runs,
    default_tol,
    draw_seed,
    path_with,
    resolve_penalty,
)
from countless._search.lower_bound import (
    OptimalityGap,
    check_same_rows,
    dp_means_lower_bound,
    within_clusters,
)
from countless._search.stream import Stream, resume_stream, start_stream, update_stream
from countless.divergences import SquaredEuclidean, get_divergence

ORDERS = ("given", "random", "farthest")


def transform_block(block: Block, state, message) -> np.ndarray:
    """Return the distances of the rows of a block from each center."""
    divergence, centers = message
    return divergence.distances(block.values, centers)


class DPMeans(
    LayeredMixin,
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
        The penalty of one cluster, in units of the objective (a sum over rows). 'auto' takes it
        from the selected plateau of `penalty_path`. With ``refine=False`` a row opens a cluster
        when its own weighted divergence exceeds the penalty, so 'auto' then takes the number of
        clusters from the path and the penalty from `farthest_first_penalty`.
    divergence : {'sqeuclidean', 'kl', 'itakura-saito', 'logistic', 'cosine'}, default='sqeuclidean'
        The divergence between a row and a center: squared Euclidean distance; relative entropy of
        counts and proportions; Itakura-Saito, for positive values compared by ratio; relative
        entropy of binary data; one minus the cosine.
    order : {'given', 'random', 'farthest'}, default='given'
        The order in which rows may open clusters in a pass: as given, at random, or the farthest
        first.
    refine : bool, default=True
        Local search by merges, splits, moves of single rows, and over-split and repair (undone
        unless it gains), until none lowers the objective. False is Algorithm 1 of Kulis and Jordan
        exactly.
    n_clusters : int, optional
        A given number of clusters, such as the second best of ``path_``: the clusters of the path
        at that number, followed by k-means until convergence. Needs ``penalty='auto'`` and
        ``refine=True``. ``path_.n_clusters`` is still the number chosen from the data.
    background : None, 'auto' or float, default=None
        Rows that belong to no cluster: a row whose divergence from every center exceeds a price has
        the label -1, and costs its weight times the price. A number from 0 to 1 is the largest
        share of the weight that is background. 'auto' takes the price at which a row is as likely
        from a uniform background as from its cluster, if there is evidence for one; it needs dense
        rows and squared Euclidean distance. None gives every row to a cluster.
    n_init : int, default=1
        Number of runs; the one with the lowest objective is kept. Runs after the first visit rows
        in random order or, when refining, are initialised at random rows.
    max_iter : int, default=300
        Maximum number of passes over the rows; a round of refinement that has begun is finished.
    tol : float, optional
        Refinement stops when a round of moves lowers the objective by less than this share of it;
        assignment passes have a much smaller minimum gain. 0 continues until no move lowers it. The
        default is 0 up to 10,000 rows and 2 million cells, and 1e-3 beyond.
    checkpoint : str or Path, optional
        A file to which the run is saved every few passes. An interrupted run is resumed from it,
        with the same result; the file is removed at the end. It is locked while a run uses it, and
        is rejected for another table or other parameters. Needs ``n_init=1`` and, if the order is
        random, an integer ``random_state``.
    random_state : int, RandomState instance or None, default=None
        Determines random orders and initialisations. The chosen number of clusters does not depend
        on it.
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
        The label of each center: 0, 1, ... after `fit`; in a stream an id always denotes the same
        cluster.
    cluster_weights_ : ndarray of shape (n_clusters,)
        The weight of the rows in each cluster.
    penalty_ : float
        The penalty used.
    background_price_ : float
        A row whose divergence from every center exceeds it is background; infinity if none is.
    outlier_score_ : ndarray of shape (n_samples,)
        Unless ``background`` is None, the p-value of each row's divergence from its nearest center:
        the probability that a row of that cluster is at least as far. For squared Euclidean
        distance rows are normal with one variance in each cluster; else it is the rank among the
        cluster's rows.
    path_ : PenaltyPath
        The path from which ``penalty='auto'`` chose; its ``confidence`` is the probability that the
        number of clusters is right.
    layers_, layer_tree_, layer_moves_ : ndarray, LayerTree, list of ndarray
        Nested clusterings at the plateaus of ``path_`` that stand out, as `Path.layers` returns
        them; ``labels_`` is one of them, but for the rows that ``layer_moves_`` lists. A model from
        a file has ``layer_tree_``.
    objective_ : float
        The cost of all rows at their centers plus the penalty for each cluster; that of a row of
        the background is the price.
    objective_history_ : ndarray
        The objective after each pass; it never increases.
    n_iter_ : int
        Number of passes.
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
    background_price_: float
    objective_: float

    def __init__(
        self,
        penalty="auto",
        *,
        divergence="sqeuclidean",
        order="given",
        refine=True,
        n_clusters=None,
        background=None,
        n_init=1,
        max_iter=300,
        tol=None,
        checkpoint=None,
        random_state=None,
        n_jobs=None,
    ):
        self.penalty = penalty
        self.divergence = divergence
        self.order = order
        self.refine = refine
        self.n_clusters = n_clusters
        self.background = background
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.checkpoint = checkpoint
        self.random_state = random_state
        self.n_jobs = n_jobs

    @with_callbacks
    def fit(self, X, y=None, sample_weight=None):
        """Cluster the rows of X.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features), or a table elsewhere
            float32 and float64 are used without conversion, except for the cosine, which makes a
            copy scaled to unit length. Sparse rows are not centred: subtract a large offset of a
            column first. A table elsewhere is a ``np.memmap``, a path to a .npy or Parquet file or
            to a folder of Parquet files, which are read in blocks, or a Dask array or data frame,
            whose chunks are processed by the current Dask cluster. The result is the same for all.
        y : ignored
        sample_weight : array-like of shape (n_samples,), optional
            A row of weight 0 does not affect the clusters; it is labelled afterwards.

        Returns
        -------
        self
        """
        self._check_parameters()
        self._forget_path()
        self.__dict__.pop("outlier_score_", None)  # another fit's
        random = check_random_state(self.random_state)
        with self._open(X, sample_weight, reset=True) as rows, report_passes(self, X) as on_pass:
            search = self._search(rows, random) | {"on_pass": on_pass}
            if self.background is None:
                self._fit_all(rows, search)
            else:
                self._fit_with_background(rows, sample_weight, search)
        return self

    def _search(self, rows: Backend, random: np.random.RandomState) -> dict[str, Any]:
        """Return the parameters of the search."""
        tol = self.tol
        if tol is None:
            tol = default_tol(rows.fixed_point.n_counted, rows.n_features)
        return {
            "order": self.order,
            "refine": bool(self.refine),
            "tol": float(tol),
            "max_iter": self.max_iter,
            "seeds": [draw_seed(random) for _ in range(self.n_init)],
        }

    def _fit_all(self, rows: Backend, search: dict[str, Any]) -> None:
        """Give every row to a cluster."""
        resolved = resolve_penalty(
            rows, self.penalty, n_clusters=self.n_clusters, refine=self.refine
        )
        run = self._run_settings(resolved.penalty, search["tol"])
        with open_checkpoint(self.checkpoint, rows, run) as checkpoint:
            found = best_of_runs(
                rows,
                resolved.penalty,
                start=resolved.start,
                keep=self.n_clusters is not None,
                checkpoint=checkpoint,
                **search,
            )
            self._store(found, resolved)
            checkpoint.remove()

    def _fit_with_background(self, rows: Backend, sample_weight, search: dict[str, Any]) -> None:
        """Find the rows that belong to no cluster, too."""
        if is_auto(self.background) and rows.is_sparse:
            raise ValueError("background='auto' needs dense rows; give the largest share instead")
        separated = dp_means_with_background(
            rows,
            given_weight(sample_weight, rows.n_rows),
            self.background,
            self.penalty,
            n_clusters=self.n_clusters,
            **search,
        )
        found, resolved, price, far_weight, scores = separated
        self._store(found, resolved, price, far_weight)
        state = found.assignment.state
        rows.allocate_more(state, {"score": (np.float64, 1.0)})
        rows.put(state, "score", scores)
        self.outlier_score_ = rows.get(state, "score")

    def fit_predict(self, X, y=None, sample_weight=None):
        """Cluster the rows of X and return their labels."""
        return self.fit(X, sample_weight=sample_weight).labels_

    def partial_fit(self, X, y=None, sample_weight=None):
        """Update the clusters with a batch of rows of a stream.

        Memory is bounded: all rows seen are summarised by at most 1,024 weighted micro-clusters.
        Clusters are created, merged and split as rows arrive, and keep their ids (`cluster_ids_`).
        With ``penalty='auto'`` the first batch determines the penalty, which then grows in
        proportion to the weight seen. After `fit` the stream continues from the clusters found.
        The first batch also determines the price of background; later rows beyond it are
        background until enough of them are close together to be a cluster.

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
            raise ValueError("partial_fit cannot go on from a model loaded from a file; fit again")
        self._check_parameters()
        random = check_random_state(self.random_state)
        with self._open(X, sample_weight, reset=first) as rows:
            if first and self.background is not None:
                self._fit_with_background(rows, sample_weight, self._search(rows, random))
                self.objective_history_ = np.array([self.objective_])
                self.n_iter_ = 1
                return self
            self._take_in(rows, first, random)
            self.labels_ = self._labels_of(rows)
        self.__dict__.pop("outlier_score_", None)  # another batch's
        self._is_stream = True
        return self

    def _take_in(self, rows: Backend, first: bool, random) -> None:
        """Cluster the summary of the stream together with a batch."""
        stream = start_stream(rows.n_features) if first else self._stream
        if isinstance(self.penalty, str) and not first:
            seen = stream.seen
            penalty = self.penalty_ * (seen + rows.fixed_point.total_weight) / seen
        else:
            resolved = resolve_penalty(rows, self.penalty, n_clusters=self.n_clusters)
            penalty = resolved.penalty
            if resolved.path is not None:
                self.path_ = resolved.path
                if not len(self.path_.breakpoints):
                    raise ValueError(
                        "penalty='auto' cannot be found on a first batch whose rows are all equal; "
                        "give a larger batch or a number"
                    )
        price = np.inf if first else self.background_price_
        self._stream, clusters = update_stream(
            stream, rows, penalty, seed=draw_seed(random), price=price
        )
        self.penalty_, self.background_price_ = penalty, price
        self.cluster_ids_, self.cluster_centers_, self.cluster_weights_, self.objective_ = clusters
        self.n_clusters_ = len(self.cluster_ids_)
        history = np.empty(0) if first else self.objective_history_
        self.objective_history_ = np.append(history, self.objective_)
        self.n_iter_ = len(self.objective_history_)
        self.converged_ = True

    def predict(self, X):
        """Return the label of the nearest center for each row of X, or -1 for background."""
        check_is_fitted(self, "cluster_centers_")
        with self._open(X, None, reset=False) as rows:
            return self._labels_of(rows)

    def _labels_of(self, rows: Backend) -> Any:
        assignment = assign_to(rows, self.cluster_centers_)
        mark_background(assignment, self.background_price_)
        return look_up(np.append(self.cluster_ids_, NOISE), assignment.labels)  # -1 is the last

    def transform(self, X):
        """Return the distance of each row from each center.

        Euclidean distance for ``divergence='sqeuclidean'``, as in `sklearn.cluster.KMeans`; else
        the divergence itself.
        """
        check_is_fitted(self, "cluster_centers_")
        divergence = get_divergence(self.divergence)
        with self._open(X, None, reset=False) as rows:
            parts = rows.run(transform_block, None, (divergence, self.cluster_centers_))
        return np.concatenate(parts)

    def score(self, X, y=None, sample_weight=None):
        """Return the negative objective of X at the fitted centers: higher is better."""
        check_is_fitted(self, "cluster_centers_")
        with self._open(X, sample_weight, reset=False) as rows:
            if np.isfinite(self.background_price_):
                weight = given_weight(sample_weight, rows.n_rows)
                _, near = nearest(rows, self.cluster_centers_, weight)
                cost = near.cost(self.background_price_)
                return -(cost + self.penalty_ * len(self.cluster_centers_))
            summary = assign_to(rows, self.cluster_centers_).summary
            return -rows.fixed_point.objective(summary, self.penalty_, self.cluster_centers_)

    def optimality_gap(self, X, sample_weight=None):
        """Return how far from the optimum the clustering of the fit can be.

        The lower bound is valid for every clustering of these rows at the penalty of the fit,
        whatever its number of clusters. Its time is linear in the rows: some seconds for 2,000.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows of the fit. The divergence must be the squared Euclidean distance.
        sample_weight : array-like of shape (n_samples,), optional
            Their weights in the fit.

        Returns
        -------
        OptimalityGap
            ``objective``, ``lower_bound``, and ``gap``: the largest share of the objective that any
            other clustering could save.

        Examples
        --------
        >>> from sklearn.datasets import make_blobs
        >>> from countless import DPMeans
        >>> X, _ = make_blobs(300, centers=4, cluster_std=0.5, random_state=3)
        >>> result = DPMeans().fit(X).optimality_gap(X)
        >>> result.gap < 0.001
        True
        """
        check_is_fitted(self, "labels_")
        if self.divergence != SquaredEuclidean.name or self.background is not None:
            raise ValueError(
                "optimality_gap needs divergence='sqeuclidean' and background=None; got "
                f"{self.divergence!r} and {self.background!r}"
            )
        X = validate_numbers(self, X, reset=False)
        check_same_rows(X, self.labels_)
        weight = given_weight(sample_weight, len(X))
        if not np.isclose(weight.sum(), self.cluster_weights_.sum(), rtol=1e-6):
            raise ValueError(
                "X and sample_weight must be those of the fit, which have a weight of "
                f"{self.cluster_weights_.sum():g}; got {weight.sum():g}"
            )
        labels = self.labels_
        within = within_clusters(X, weight, labels)
        return OptimalityGap(
            within + self.penalty_ * len(np.unique(labels[weight > 0])),
            dp_means_lower_bound(X, weight, self.penalty_, labels),
        )

    def _check_parameters(self) -> None:
        check_penalties(self, "penalty")
        get_divergence(self.divergence)
        if self.order not in ORDERS:
            known = ", ".join(repr(order) for order in ORDERS)
            raise ValueError(f"order must be one of {known}; got {self.order!r}")
        check_flags(self, "refine")
        check_counts(self, "n_init", "max_iter")
        if self.n_clusters is not None:
            check_counts(self, "n_clusters")
            if not is_auto(self.penalty) or not self.refine or self.n_init > 1:
                raise ValueError(
                    "n_clusters needs penalty='auto', refine=True and n_init=1: it takes the "
                    "clusters of the path"
                )
        check_tol(self)
        self._check_background()
        if self.checkpoint is not None:
            if not isinstance(self.checkpoint, str | Path | CheckpointFile):
                raise ValueError(f"checkpoint must be None or a path; got {self.checkpoint!r}")
            if self.n_init > 1:
                raise ValueError(f"checkpoint needs n_init=1; got n_init={self.n_init}")
            by_chance = self.order == "random" and not self.refine
            if by_chance and not isinstance(self.random_state, Integral):
                raise ValueError(
                    "checkpoint needs a number for random_state, because order='random' is "
                    f"decided by it; got {self.random_state!r}"
                )

    def _check_background(self) -> None:
        if self.background is None:
            return
        if is_auto(self.background):
            if not get_divergence(self.divergence).has_noise_model:
                raise ValueError(
                    "background='auto' needs divergence='sqeuclidean'; give the largest share of "
                    f"background for divergence={self.divergence!r}"
                )
        elif not is_number(self.background) or not self.background < 1:
            raise ValueError(
                f"background must be None, 'auto' or a share from 0 to below 1; got "
                f"{self.background!r}"
            )
        if self.checkpoint is not None:
            raise ValueError("checkpoint cannot be combined with background")

    @contextmanager
    def _open(self, X, sample_weight, *, reset: bool) -> Iterator[Backend]:
        """Validate the rows and open them."""
        table = find_table(X)
        in_memory = table is None
        if in_memory:
            table = validate_numbers(self, X, reset=reset, accept_sparse="csr")
        divergence = get_divergence(self.divergence)
        with open_checked(table, sample_weight, divergence, self.n_jobs) as rows:
            if not in_memory:  # one row suffices to check the number of columns
                validate_data(self, rows.points(np.zeros(1, dtype=int)), reset=reset)
            yield rows

    def _run_settings(self, penalty: float, tol: float) -> dict[str, Any]:
        """Return the parameters that a checkpoint must have been made with."""
        run = {
            "penalty": penalty,
            "divergence": self.divergence,
            "order": self.order,
            "refine": bool(self.refine),
            "tol": float(tol),
            "n_clusters": self.n_clusters,
        }
        if self.order == "random" and not self.refine:
            run["random_state"] = self.random_state
        return run

    def _store(
        self,
        found: Clustering,
        resolved: Resolved,
        price: float = np.inf,
        far_weight: float = 0.0,
    ) -> None:
        """Set the fitted attributes, with clusters numbered by first appearance."""
        penalty = resolved.penalty
        assignment, fixed_point = found.assignment, found.assignment.rows.fixed_point
        assignment.forget_all_but_labels()
        assignment.number_by_appearance()
        mark_background(assignment, price)
        self.labels_ = assignment.labels
        self.cluster_centers_ = assignment.centers
        self.n_clusters_ = assignment.n_clusters
        self.cluster_ids_ = np.arange(self.n_clusters_)
        self.cluster_weights_, total = fixed_point.table_sums(assignment.summary)
        self.penalty_ = penalty
        self.background_price_ = price
        self.objective_ = found.objective
        self.objective_history_ = np.array(found.history)
        self.n_iter_ = found.n_iter
        self.converged_ = found.converged
        self.share_computed_ = assignment.n_computed / assignment.n_possible
        within = found.objective - penalty * self.n_clusters_
        self._stream = resume_stream(self.cluster_weights_, total, within, far_weight)
        if resolved.path is not None:
            self.path_ = resolved.path
            if self.refine and self.n_clusters is None:
                self.path_ = path_with(self.path_, found, penalty, self.labels_)
        if not found.converged:
            warnings.warn(
                f"DPMeans stopped at max_iter={self.max_iter} passes before it had converged; "
                "raise max_iter or tol",
                ConvergenceWarning,
                stacklevel=5,  # store, its caller, fit, scikit-learn's wrapper: the user
            )

    @property
    def _n_features_out(self) -> int:
        return self.n_clusters_

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = []
        return tags
