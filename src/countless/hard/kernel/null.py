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

from countless.hard.divergence import get_divergence
from countless.hard.kernel.matrix import KernelFunction
from countless.hard.micro import sample_positions
from countless.hard.structureless import (
    N_CLOUDS,
    N_POINTS,
    SKEWNESS,
    Structureless,
    _smooth,
    compactness_curve,
    plateau_widths,
    principal_axes,
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
    center = share @ sample
    axes = principal_axes(sample, share, center, get_divergence("sqeuclidean"))
    _, _, directions = np.linalg.svd(
        np.sqrt(share)[:, None] * (sample - center), full_matrices=False
    )
    back = np.sqrt(axes.variance)[:, None] * directions[: len(axes.variance)]
    m = int(min(n_rows, N_POINTS))
    generator = np.random.default_rng(seed)
    shape = (N_CLOUDS, m, len(axes.variance))
    form = 4 / np.clip(np.abs(axes.skewness), *SKEWNESS) ** 2
    box = np.sqrt(3.0)
    clouds = (
        (generator.standard_gamma(form, shape) - form) / np.sqrt(form),
        generator.uniform(-box, box, shape),
    )
    figures = [
        [_figures(function.between(center + cloud @ back)) for cloud in kind] for kind in clouds
    ]
    values = np.array(figures)  # (shape, cloud, width or compactness, k)
    mean, deviation = values.mean(axis=1), values.std(axis=1, ddof=1)
    k = np.arange(2, mean.shape[-1] + 2)
    width, width_deviation = (_smooth(part[:, 0] * k, k) / k for part in (mean, deviation))
    return Structureless(width, width_deviation, mean[:, 1], deviation[:, 1])


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
