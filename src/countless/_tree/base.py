"""Base class of estimators that cut a tree: validate, grow, cut, store; and predict."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.neighbors import NearestNeighbors
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from countless._compat import CallbackSupportMixin, report_passes, with_callbacks
from countless._numbers import (
    check_column_names,
    check_entries_span,
    check_span,
    moved_to_zero,
    validate_numbers,
)
from countless._parameters import check_counts, is_number
from countless._path.layers import LayeredMixin
from countless._path.penalty import PenaltyPath
from countless._tree.gap import compare_with_null
from countless._tree.join import OF_MEANS, OF_NEAREST, join_by_means, join_by_rows, join_small
from countless._tree.pairs import Pairs
from countless._tree.stop import cut_at_number, cut_from_the_top, spread_of_merges
from countless.dissimilarity.pairs import METRICS, Measure

SETTINGS = ("weights", "kinds", "dtype")


class TreeEstimator(LayeredMixin, CallbackSupportMixin, ClusterMixin, BaseEstimator, ABC):
    """Base class of estimators that cut a tree: comparison of rows, and the cut."""

    method: str
    metric: str
    metric_params: dict[str, Any] | None
    n_clusters: int | None
    max_diameter: float | None
    max_dissimilarity: float | None
    min_cluster_size: int
    random_state: Any
    n_jobs: int | None

    _methods: tuple[str, ...] = ()

    @with_callbacks
    def fit(self, X, y=None):
        """Grow the tree of X, and cut it.

        Parameters
        ----------
        X : data frame or array-like of shape (n_samples, n_features)
            Rows of numbers; columns of any kind, with missing values, for ``'mixed'`` and
            ``'hamming'``. With ``metric='precomputed'``, dissimilarities of shape
            (n_samples, n_samples).
        y : ignored

        Returns
        -------
        self
        """
        self._check_parameters()
        self._forget_path()
        rows = self._check_rows(X, reset=True)
        pairs = self._pairs(rows, list(getattr(X, "columns", [])))
        if self.n_clusters is not None and self.n_clusters > pairs.n_rows:
            raise ValueError(f"n_clusters={self.n_clusters}, and X has {pairs.n_rows} rows")
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        self.converged_ = True
        with report_passes(self, X) as on_pass:
            self.linkage_matrix_ = self._grow(pairs, seed)
            cut = self._cut(pairs, seed)
            self.labels_ = join_small(pairs.row, cut, self.min_cluster_size)
            self.n_clusters_ = int(self.labels_.max()) + 1
            if self.n_clusters_ <= cut.max():
                # It counts the small clusters, which have been joined.
                self.__dict__.pop("path_", None)
            self.n_iter_ = max(1, pairs.n_rows - 1)
            on_pass(float(self.linkage_matrix_[-1:, 2].sum()), self.n_clusters_)
        of_rows = self.metric != "precomputed"
        self.X_fit_ = rows if of_rows else None
        self.column_weights_ = pairs.weights if of_rows else None
        if not self.converged_:
            warnings.warn(
                "a k-means of two clusters did not converge", ConvergenceWarning, stacklevel=2
            )
        return self

    def predict(self, X):
        """Return the nearest cluster of each row of X, by the distance of the method.

        That is the distance from its nearest row (``'mst'``, ``'single'``), its farthest
        (``'complete'``), its mean (``'bisecting'``, ``'ward'``), or the average over its rows
        (``'diana'``, ``'average'``, ``'weighted'``). Fitted rows are not always predicted to be in
        their own cluster.

        Parameters
        ----------
        X : like that of `fit`
            With ``metric='precomputed'``, the dissimilarities of new rows from those of `fit`,
            of shape (n_new, n_samples).

        Returns
        -------
        labels : ndarray of int of shape (n_new,)
        """
        check_is_fitted(self, "linkage_matrix_")
        rows = self._check_rows(X, reset=False)
        if self.metric == "precomputed":
            if self.method in OF_MEANS:
                raise ValueError(f"method={self.method!r} joins rows to means: predict needs rows")
            return join_by_rows(lambda *at: rows[slice(*at)], len(rows), self.labels_, self.method)
        settings = {**(self.metric_params or {}), "weights": self.column_weights_}
        measure = Measure(self.X_fit_, metric=self.metric, **settings)
        new = measure.encode(rows)
        known = measure.values
        if self.metric in ("euclidean", "sqeuclidean") and self.method in (*OF_MEANS, *OF_NEAREST):
            unit = np.sqrt(measure.weights).astype(new.dtype)
            new, known = moved_to_zero(new, known)
            new, known = new * unit, known * unit
            if self.method in OF_MEANS:
                return join_by_means(known, self.labels_, new)
            nearest = NearestNeighbors(n_neighbors=1, n_jobs=self.n_jobs).fit(known)
            return self.labels_[nearest.kneighbors(new, return_distance=False)[:, 0]]

        def between(start: int, stop: int) -> np.ndarray:
            return measure.between(new[start:stop], known, self.n_jobs, start)

        return join_by_rows(between, len(new), self.labels_, self.method)

    def _check_parameters(self) -> None:
        if self.method not in self._methods:
            known = ", ".join(repr(name) for name in self._methods)
            raise ValueError(f"method must be one of {known}; got {self.method!r}")
        if self.metric not in (*METRICS, "precomputed"):
            known = ", ".join(repr(name) for name in (*METRICS, "precomputed"))
            raise ValueError(f"metric must be one of {known}; got {self.metric!r}")
        if self.n_clusters is not None:
            check_counts(self, "n_clusters")
        check_counts(self, "min_cluster_size")
        for name in ("max_diameter", "max_dissimilarity"):
            value = getattr(self, name)
            if value is not None and not is_number(value):
                raise ValueError(f"{name} must be None or a number of at least 0; got {value!r}")
        stops = ("n_clusters", "max_diameter", "max_dissimilarity")
        given = [name for name in stops if getattr(self, name) is not None]
        if len(given) > 1:
            raise ValueError(f"a tree is cut in one place: give {given[0]} or {given[1]}, not both")
        params = self.metric_params
        if params is not None and (not isinstance(params, Mapping) or set(params) - set(SETTINGS)):
            raise ValueError(
                f"metric_params must be None or a mapping of {', '.join(SETTINGS)}; got {params!r}"
            )
        if params and self.metric == "precomputed":
            raise ValueError("metric_params is for rows; the metric is 'precomputed'")

    def _check_rows(self, X, *, reset: bool) -> Any:
        """Return rows in the form that the metric takes: numbers, or a table unchanged."""
        if self.metric in ("mixed", "hamming"):
            check_column_names(X)
            validate_data(self, X, reset=reset, skip_check_array=True)
            return X
        X = validate_numbers(self, X, reset=reset)
        if reset and self.metric == "precomputed":
            # Only Ward's linkage squares them.
            squared = self.method == "ward"
            check_entries_span(X, "precomputed dissimilarities", squared=squared)
        return check_span(X) if reset and self.metric != "precomputed" else X

    def _pairs(self, rows: Any, names: list) -> Pairs:
        """Return the dissimilarities of the rows."""
        if self.metric == "precomputed":
            return Pairs.of_matrix(rows)
        settings = dict(self.metric_params or {})
        weights = settings.get("weights")
        if self.metric not in ("mixed", "hamming") and names and isinstance(weights, Mapping):
            place = {name: at for at, name in enumerate(names)}
            settings["weights"] = {place.get(name, name): w for name, w in weights.items()}
        return Pairs.of_rows(rows, self.metric, self.n_jobs, **settings)

    @abstractmethod
    def _grow(self, pairs: Pairs, seed: int) -> np.ndarray:
        """Return the tree of these rows."""

    def _choose(self, pairs: Pairs, seed: int) -> tuple[PenaltyPath, np.ndarray]:
        """Return the cuts of a tree, compared with the null reference, and that tree."""
        path = compare_with_null(
            self.linkage_matrix_,
            lambda cloud: self._grow(cloud, seed),
            pairs.clouds,
            "single" if self.method == "mst" else self.method,
            pairs,
        )
        return path, self.linkage_matrix_

    def _cut(self, pairs: Pairs, seed: int) -> np.ndarray:
        linkage = self.linkage_matrix_
        if self.n_clusters is not None:
            return cut_at_number(linkage, self.n_clusters)
        if self.max_diameter is not None or self.max_dissimilarity is not None:
            spread = spread_of_merges(linkage, pairs.matrix)
            if self.max_diameter is not None:
                return cut_from_the_top(linkage, spread.diameter <= self.max_diameter)
            return cut_from_the_top(linkage, spread.mean <= self.max_dissimilarity)
        self.path_, linkage = self._choose(pairs, seed)
        return cut_at_number(linkage, self.path_.n_clusters)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.metric == "precomputed"
        return tags
