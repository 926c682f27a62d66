"""A penalty from an approximate number of clusters (Kulis and Jordan, section 6.1)."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from countless.hard.checks import check_table, check_weight
from countless.hard.divergence import get_divergence

BLOCK_VALUES = 2**18


def farthest_first_penalty(
    X: Any, k: int, *, sample_weight: Any = None, divergence: str = "sqeuclidean"
) -> float:
    """Return a penalty at which DP-means finds roughly `k` clusters.

    A set starts with the mean of all rows. In each of k rounds the row farthest from the set is
    found and then added. The answer is the distance found in round k, before that row is added. The
    paper does not say whether distances are squared; here they are, since its Algorithm 1 compares
    squared distances with the penalty. A row of weight w counts as w times as far, because that is
    what decides whether it opens a cluster.

    Parameters
    ----------
    X : array-like or CSR matrix of shape (n_samples, n_features)
        The rows.
    k : int
        About how many clusters are wanted, from 1 to the number of rows.
    sample_weight : array-like of shape (n_samples,), optional
        Weights of the rows; default 1.
    divergence : str, default='sqeuclidean'
        As in `DPMeans`.

    Returns
    -------
    float
        On the scale of one row's distance, as Algorithm 1 (``refine=False``) uses it.

    Examples
    --------
    >>> from countless import farthest_first_penalty
    >>> X = [[0.0], [1.0], [10.0], [11.0]]
    >>> farthest_first_penalty(X, 1), farthest_first_penalty(X, 3)
    (30.25, 1.0)
    """
    measure = get_divergence(divergence)
    X = check_table(X, measure)
    n_rows = X.shape[0]
    weight = check_weight(sample_weight, n_rows)
    if not isinstance(k, int | np.integer) or not 1 <= k <= n_rows:
        raise ValueError(
            f"k must be a whole number from 1 to the number of rows, {n_rows}; got {k!r}"
        )
    cost = measure.row_cost(X)
    mean = np.asarray(X.T @ weight, dtype=np.float64).ravel()[None]
    center = measure.means(np.array([weight.sum()]), mean)[0]
    distance = np.full(n_rows, np.inf)
    for _ in range(k):
        np.minimum(distance, _divergence_from(X, center, measure, cost), out=distance)
        far = int(np.argmax(weight * distance))
        center = (X[[far]].toarray()[0] if sp.issparse(X) else X[far]).astype(np.float64)
    return float(weight[far] * distance[far])


def _divergence_from(X, center, measure, cost):
    """Return the divergence of every row from one center, block by block."""
    if not sp.issparse(X) and measure.name == "sqeuclidean":
        # By differences: far-off data loses no digits.
        block = max(1, BLOCK_VALUES // X.shape[1])
        parts = []
        for start in range(0, len(X), block):
            difference = X[start : start + block] - center
            parts.append(np.einsum("ij,ij->i", difference, difference))
        return np.concatenate(parts)
    slope, offset = measure.slope_offset(center[None])
    return np.maximum(cost + offset[0] - X @ slope[0], 0.0)
