"""The base class of kernel estimators: their kernel, and prediction for new rows."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from countless._compat import CallbackSupportMixin
from countless._data.open import without_repeats
from countless._labels import number_by_appearance
from countless._numbers import check_entries_span, check_span, validate_numbers
from countless._parameters import check_counts, check_flags, check_penalties, check_tol, is_number
from countless._path.kernel import KernelClouds, clouds_through
from countless._search.dp_means import default_tol
from countless._search.kernel.clusters import KernelClustering
from countless._search.kernel.matrix import (
    SCALED,
    KernelFunction,
    check_entries,
    check_precomputed,
    scale_of,
)
from countless._search.lower_bound import check_same_rows, kernel_dp_means_lower_bound
from countless._threads import open_threads, steps

# Entries of the kernel of new rows in memory at once.
NEW_ENTRIES = 2**22


class KernelEstimator(CallbackSupportMixin, ClusterMixin, BaseEstimator):
    """Base class: the kernel of an estimator, and the distances of new rows from its means."""

    kernel: Any
    gamma: Any
    degree: float
    coef0: float
    kernel_params: dict[str, Any] | None
    refine: bool
    max_iter: int
    tol: float | None
    n_jobs: int | None

    def _scores(self, X) -> np.ndarray:
        """Return each new row's squared distance from each mean, minus its own squared norm."""
        check_is_fitted(self, "center_norms_")
        X = self._check_rows(X, reset=False)
        counted = np.flatnonzero(self.row_weights_)
        means = sp.csr_array(
            (self.row_weights_[counted], (self.labels_[counted], counted)),
            shape=(self.n_clusters_, len(self.row_weights_)),
        )
        means = sp.diags_array(1.0 / means.sum(axis=1)) @ means
        function = None if self._is_precomputed() else self._function()
        scores = np.empty((X.shape[0], self.n_clusters_))

        def score(start, stop):
            block = X[start:stop]
            kernel = block if function is None else function.between(block, self.X_fit_)
            check_entries(kernel, start)
            scores[start:stop] = self.center_norms_ - 2.0 * (means @ kernel.T).T

        with open_threads(self.n_jobs) as each:
            each(score, steps(X.shape[0], max(1, NEW_ENTRIES // means.shape[1])))
        return scores

    def _lower_bound(self, X) -> Callable[[np.ndarray, float], float]:
        """Return a lower bound of DP-means for some rows of the fit and a penalty."""
        check_is_fitted(self, "labels_")
        X = self._check_rows(X, reset=False)
        check_same_rows(X, self.labels_)
        kernel = X if self._is_precomputed() else self._function().matrix(X, self.n_jobs)

        def bound(ids: np.ndarray, penalty: float) -> float:
            return kernel_dp_means_lower_bound(
                kernel[np.ix_(ids, ids)], self.row_weights_[ids], penalty, self.labels_[ids]
            )

        return bound

    def _is_precomputed(self) -> bool:
        return isinstance(self.kernel, str) and self.kernel == "precomputed"

    def _check_shared(self, *penalties: str) -> None:
        check_penalties(self, *penalties)
        check_flags(self, "refine")
        check_counts(self, "max_iter")
        check_tol(self)
        gamma = self.gamma
        named = isinstance(gamma, str) and gamma == "scale"
        if gamma is not None and not named and not is_number(gamma):
            raise ValueError(
                f"gamma must be 'scale', None or a number of at least 0; got {gamma!r}"
            )

    def _check_rows(self, X, *, reset: bool):
        sparse = False if self._is_precomputed() else "csr"
        X = validate_numbers(self, X, reset=reset, accept_sparse=sparse)
        if reset and self._is_precomputed():
            check_entries_span(X, "the entries of a precomputed kernel")
        elif reset and isinstance(X, np.ndarray):
            X = check_span(X)
        return without_repeats(X)

    def _make_kernel(self, X, weight: np.ndarray) -> np.ndarray:
        """Return the kernel of all rows, and store what `predict` needs of them."""
        self.X_fit_ = None if self._is_precomputed() else X
        if isinstance(self.gamma, str) and not callable(self.kernel) and self.kernel in SCALED:
            self.gamma_ = scale_of(X, weight)
        elif self.gamma is None or isinstance(self.gamma, str):
            self.gamma_ = 1.0 if self.kernel == "chi2" else 1.0 / X.shape[1]  # scikit-learn's
        else:
            self.gamma_ = float(self.gamma)
        if self.X_fit_ is None:
            check_precomputed(X, self.n_jobs)
            return X
        return self._function().matrix(X, self.n_jobs)

    def _function(self) -> KernelFunction:
        if callable(self.kernel):
            return KernelFunction(self.kernel, self.kernel_params or {})
        parameters = {"gamma": self.gamma_, "degree": self.degree, "coef0": self.coef0}
        parameters |= self.kernel_params or {}
        return KernelFunction(self.kernel, parameters, only_distances=True)

    def _clouds(self, weight: np.ndarray) -> KernelClouds | None:
        """Return a function that draws the kernel's null reference; None if it has none."""
        function = None if self._is_precomputed() else self._function()
        if function is None or not function.takes_any_rows:
            return None
        return partial(clouds_through, function, self.X_fit_, weight)

    def _tolerance(self, n_rows: int) -> float:
        if self.tol is not None:
            return float(self.tol)
        return default_tol(n_rows)

    def _store_clusters(self, found: KernelClustering, weight: np.ndarray) -> np.ndarray:
        """Set the fitted attributes, clusters numbered by first appearance; return old numbers."""
        clusters = found.clusters
        by_appearance, _ = number_by_appearance(clusters.labels[weight > 0])
        number = np.empty(len(by_appearance), dtype=np.int32)
        number[by_appearance] = np.arange(len(by_appearance))
        self.labels_ = number[clusters.labels]
        self.n_clusters_ = len(by_appearance)
        self.center_norms_ = clusters.offset[by_appearance]
        self.cluster_weights_ = clusters.weight[by_appearance]
        self.row_weights_ = weight
        self.objective_ = found.history[-1]
        self.objective_history_ = np.array(found.history)
        self.n_iter_ = found.n_iter
        self.converged_ = found.converged
        if not found.converged:
            warnings.warn(
                f"{type(self).__name__} stopped after {found.n_iter} passes before it had "
                "converged; raise max_iter or tol, or see whether the kernel is positive "
                "semi-definite",
                ConvergenceWarning,
                stacklevel=4,  # store, fit, scikit-learn's wrapper: the caller
            )
        return by_appearance

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self._is_precomputed()
        tags.input_tags.sparse = not self._is_precomputed()
        return tags
