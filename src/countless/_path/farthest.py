"""A penalty from an approximate number of clusters (Kulis and Jordan, section 6.1)."""

from __future__ import annotations

from typing import Any

import numpy as np

from countless._data import Backend, Block
from countless._data.open import open_table
from countless.divergences import get_divergence
from countless.kernels.assign import distances_to


def farthest_first_penalty(
    X: Any, k: int, *, sample_weight: Any = None, divergence: str = "sqeuclidean"
) -> float:
    """Return a penalty at which DP-means finds roughly `k` clusters.

    Farthest-first traversal: a set starts with the mean of all rows. In each of k rounds the row
    farthest from the set is found and then added. The penalty is the distance found in round k,
    before that row is added. The paper does not say whether distances are squared; here they are,
    since its Algorithm 1 compares squared distances with the penalty. The distance of a row is
    multiplied by its weight, because the product decides whether the row opens a cluster.

    Parameters
    ----------
    X : array-like or CSR matrix of shape (n_samples, n_features)
        The rows.
    k : int
        Approximate number of clusters, from 1 to the number of rows.
    sample_weight : array-like of shape (n_samples,), optional
        Weights of the rows; default 1.
    divergence : str, default='sqeuclidean'
        As in `DPMeans`.

    Returns
    -------
    float
        The penalty, on the scale of one row's distance, as Algorithm 1 (``refine=False``) uses it.

    Examples
    --------
    >>> from countless import farthest_first_penalty
    >>> X = [[0.0], [1.0], [10.0], [11.0]]
    >>> farthest_first_penalty(X, 1), farthest_first_penalty(X, 3)
    (30.25, 1.0)
    """
    with open_table(X, sample_weight, get_divergence(divergence), None) as rows:
        if not isinstance(k, int | np.integer) or not 1 <= k <= rows.n_rows:
            raise ValueError(
                f"k must be an integer from 1 to the number of rows, {rows.n_rows}; got {k!r}"
            )
        return farthest_distance(rows, k)


def farthest_distance(rows: Backend, k: int) -> float:
    """Return the weighted distance of the row of round k from the set found before it."""
    fixed_point = rows.fixed_point
    state = rows.allocate({"distance": (np.float64, np.inf)})
    center = fixed_point.means(rows.whole)
    for _ in range(k):
        found = rows.run(farthest_block, state, fixed_point.centers(center))
        cost, place = max(found, key=lambda answer: (answer[0], -answer[1]))
        center = rows.points(np.array([place]))
    return cost / fixed_point.divergence.scale


def farthest_block(block: Block, held, center) -> tuple[float, int]:
    """Update the distances of rows from the set with a new center; return the farthest row."""
    far = distances_to(block.form, block.weight, center, held["distance"])
    return float(block.weight[far] * held["distance"][far]), block.start + far
