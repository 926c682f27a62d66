"""What rows without clusters show through a kernel.

A kernel bends even a structureless cloud: in the feature space of an RBF kernel it is a curved
sheet, which is cut into pieces more easily than a flat cloud of the same spread. So clouds with the
data's own spread are drawn among the rows, as `countless.hard.structureless` draws them, and sent
through the kernel before they go through the tree.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from scipy.cluster.hierarchy import linkage
from scipy.spatial.distance import squareform

from countless.hard.kernel.matrix import KernelFunction
from countless.hard.micro import sample_positions
from countless.hard.structureless import (
    Structureless,
    clouds_like,
    compactness_curve,
    plateau_widths,
    typical,
)

# Kernels that take any rows: clouds reach beyond the data, and a callable may not like that.
ANY_ROWS = ("linear", "rbf", "poly", "polynomial", "sigmoid", "laplacian", "cosine")
# Rows that show the spread of all.
SHOWN = 1000


def clouds_through(
    function: KernelFunction, X, weight: np.ndarray, n_rows: float, seed: int
) -> Structureless:
    """Send clouds with the spread of X through a kernel and the tree.

    Parameters
    ----------
    function : KernelFunction
        One of `ANY_ROWS`.
    X : ndarray or CSR matrix of shape (n_samples, n_features)
    weight : ndarray of shape (n_samples,)
    n_rows : float
        Rows that the data stands for; clouds have as many points up to a limit.
    seed : int
        The same seed gives the same figures.
    """
    shown = sample_positions(weight, SHOWN, seed)
    sample = X[shown].toarray() if sp.issparse(X) else X[shown]
    sample, share = sample.astype(np.float64), weight[shown] / weight[shown].sum()
    clouds = clouds_like(sample, share, n_rows, seed)
    return typical([[_figures(function.between(cloud)) for cloud in kind] for kind in clouds])


def _figures(kernel: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return widths and compactness of a cloud up to a third of its points."""
    length = np.diagonal(kernel)
    squares = np.maximum(length[:, None] + length - 2 * kernel, 0.0)
    np.fill_diagonal(squares, 0.0)
    distance = squareform(np.sqrt((squares + squares.T) / 2), checks=False)
    height = linkage(distance, "ward")[::-1, 2] ** 2 / 2
    cost = np.cumsum(height[::-1])[::-1]
    last = max(2, len(kernel) // 3)
    return plateau_widths(height[:last]), compactness_curve(cost[:last], len(kernel))
