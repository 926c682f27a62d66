"""Preferences: the similarities of rows to themselves, which control the number of exemplars.

The automatic preference comes from a path over preferences. With D(i, j) the highest similarity
minus that of i and j, and p the highest minus the preference, the net similarity is a constant
minus ``sum_i D(i, exemplar of i) + p * n_clusters``. If D is a squared distance this is the
objective of DP-means with exemplars in place of means, which are close to each other in clusters of
more than a few rows. So the path over penalties of `countless._path.kernel`, which needs only inner
products, is a path over preferences.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from countless._exemplar.similarity import log_normal
from countless._path.kernel import kernel_penalty_path
from countless._path.penalty import PenaltyPath
from countless._search.kernel.clusters import KernelTable
from countless._threads import Each
from countless.dissimilarity import to_similarity
from countless.kernels.edges import Edges


def preference_path(edges: Edges, each: Each) -> tuple[PenaltyPath, float]:
    """Return the path over penalties, and the preference that corresponds to the chosen penalty.

    Parameters
    ----------
    edges : Edges
        Full similarities; their preferences are ignored.
    each : callable
        Calls a function for every item, on threads.
    """
    if len(edges.row_of):
        raise ValueError(
            "preference='auto' needs full similarities; these are sparse: give a number"
        )
    n = len(edges.own)
    similarity = edges.value.reshape(n, n)
    between = similarity + similarity.T
    between /= 2
    np.fill_diagonal(between, -np.inf)
    highest = float(between.max()) if n > 1 else 0.0
    np.fill_diagonal(between, highest)
    products = to_similarity(highest - between, "inner")
    table = KernelTable(products, np.ones(n), np.zeros(n, dtype=np.int64), each)
    path = kernel_penalty_path(table)
    return path, highest - path.penalty


def median_similarity(edges: Edges) -> float:
    """Return the median of all similarities, as scikit-learn does, or of those that are stored."""
    stored = edges.value
    if len(edges.row_of):
        stored = np.delete(stored, edges.own)
    return float(np.median(stored)) if len(stored) else 0.0


def as_numbers(name: str, given: Any) -> np.ndarray:
    """Return a parameter as an array of numbers, or raise an error that names the invalid one."""
    try:
        return np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must be a number or several; got {given!r}") from error


def check_preference(given: Any, n: int) -> Any:
    """Return one preference for all of n rows, or one for each; raise an error if invalid."""
    preference = as_numbers("preference", given)
    if preference.shape not in ((), (n,)):
        raise ValueError(
            f"preference must be a number or one for each of {n} rows; "
            f"got an array of shape {preference.shape}"
        )
    finite = np.isfinite(np.atleast_1d(preference))
    if not finite.all():
        raise ValueError(f"preference must be finite; that of row {int(finite.argmin())} is not")
    return preference if preference.ndim else float(preference)


def base_density(X: Any, mean: Any, variance: float | None) -> np.ndarray:
    """Return the log density of each row under a normal distribution, by default that of X.

    Examples
    --------
    >>> base_density(np.array([[-1.0], [1.0]]), None, None).round(3).tolist()
    [-1.419, -1.419]
    """
    dense = X.toarray() if sp.issparse(X) else X.astype(np.float64)
    center = dense.mean(axis=0) if mean is None else as_numbers("base_mean", mean)
    if center.shape not in ((), dense.shape[1:]) or not np.isfinite(center).all():
        raise ValueError(
            f"base_mean must be a finite number or one for each of {dense.shape[1]} columns; "
            f"got {mean!r}"
        )
    squares = np.square(dense - center)
    if variance is None:
        variance = float(squares.mean())
    if not variance > 0:
        raise ValueError("all rows are equal: give a base_variance")
    return log_normal(squares.sum(axis=1), float(variance), X.shape[1])
