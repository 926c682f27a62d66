"""The null reference in the feature space of a kernel.

A structureless cloud becomes a curved sheet in the feature space of an RBF kernel, which is
partitioned more easily than a flat cloud of the same variance. So clouds are drawn in the input
space, as `countless._path.null_reference` does, with the data's variance, and mapped by the kernel
before linkage.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import scipy.sparse as sp

from countless._path.axes import NEGLIGIBLE
from countless._path.kernel import coordinates
from countless._path.levels import Points
from countless._path.micro import sample_positions
from countless._path.null_reference import SEED, rows_like
from countless._search.kernel.matrix import KernelFunction
from countless.divergences import get_divergence

# Kernels defined for all rows: clouds extend beyond the data, which a callable may not accept.
ANY_ROWS = ("linear", "rbf", "poly", "polynomial", "sigmoid", "laplacian", "cosine")
# Rows of the sample from which the variance is estimated.
SHOWN = 1000


def clouds_through(
    function: KernelFunction, X, weight: np.ndarray, n_rows: float
) -> Iterator[Iterator[Points]]:
    """Draw clouds with the variance of X, and map them by a kernel.

    Parameters
    ----------
    function : KernelFunction
        One of `ANY_ROWS`.
    X : ndarray or CSR matrix of shape (n_samples, n_features)
    weight : ndarray of shape (n_samples,)
    n_rows : float
        Rows of the data; clouds have as many points, up to a limit.
    """
    shown = sample_positions(weight, SHOWN, SEED)
    sample = X[shown].toarray() if sp.issparse(X) else X[shown]
    for kind in rows_like(sample.astype(np.float64), weight[shown], n_rows):
        yield (_points(function.between(cloud)) for cloud in kind)


def _points(kernel: np.ndarray) -> Points:
    """Return points with these inner products; dropped small variances add to ``within``."""
    n_points = len(kernel)
    points = coordinates(kernel, np.full(n_points, 1 / n_points))
    squares = np.square(points).sum(axis=0)
    kept = squares > NEGLIGIBLE * squares.max()
    within = float(squares[~kept].sum())
    ones = np.ones(n_points)
    return Points(points[:, kept], ones, get_divergence("sqeuclidean"), within)
