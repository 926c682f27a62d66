"""What rows without clusters show through a kernel.

A kernel bends even a structureless cloud: in the feature space of an RBF kernel it is a curved
sheet, which is cut into pieces more easily than a flat cloud of the same spread. So clouds with the
data's own spread are drawn among the rows, as `countless.hard.null_reference` draws them, and sent
through the kernel before they go through the tree.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import scipy.sparse as sp

from countless.hard.axes import NEGLIGIBLE
from countless.hard.divergence import get_divergence
from countless.hard.kernel.matrix import KernelFunction
from countless.hard.kernel.path import coordinates
from countless.hard.levels import Points
from countless.hard.micro import sample_positions
from countless.hard.null_reference import SEED, rows_like

# Kernels that take any rows: clouds reach beyond the data, and a callable may not like that.
ANY_ROWS = ("linear", "rbf", "poly", "polynomial", "sigmoid", "laplacian", "cosine")
# Rows that show the spread of all.
SHOWN = 1000


def clouds_through(
    function: KernelFunction, X, weight: np.ndarray, n_rows: float
) -> Iterator[Iterator[Points]]:
    """Send clouds with the spread of X through a kernel.

    Parameters
    ----------
    function : KernelFunction
        One of `ANY_ROWS`.
    X : ndarray or CSR matrix of shape (n_samples, n_features)
    weight : ndarray of shape (n_samples,)
    n_rows : float
        Rows that the data stands for; clouds have as many points up to a limit.
    """
    shown = sample_positions(weight, SHOWN, SEED)
    sample = X[shown].toarray() if sp.issparse(X) else X[shown]
    for kind in rows_like(sample.astype(np.float64), weight[shown], n_rows):
        yield (_points(function.between(cloud)) for cloud in kind)


def _points(kernel: np.ndarray) -> Points:
    """Return points with these inner products; directions of little variance are rows' own cost."""
    n_points = len(kernel)
    points = coordinates(kernel, np.full(n_points, 1 / n_points))
    squares = np.square(points).sum(axis=0)
    kept = squares > NEGLIGIBLE * squares.max()
    within = float(squares[~kept].sum())
    ones = np.ones(n_points)
    return Points(points[:, kept], ones, get_divergence("sqeuclidean"), within)
