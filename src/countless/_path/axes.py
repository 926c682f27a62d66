"""Variance and skewness of data along its principal axes, for the null reference."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from countless.divergences import Divergence

# Axes with less than this share of the largest variance are dropped: they do not affect merges.
NEGLIGIBLE = 1e-3


class Axes(NamedTuple):
    """Variance and skewness along the principal axes, largest variance first."""

    variance: np.ndarray
    skewness: np.ndarray
    direction: np.ndarray | None = None  # (n_axes, n_features)


def principal_axes(
    sample: np.ndarray, weight: np.ndarray, center: np.ndarray, divergence: Divergence
) -> Axes:
    """Return the principal axes in the local metric of the divergence at the center.

    Examples
    --------
    >>> import numpy as np
    >>> from countless.divergences import get_divergence
    >>> square = np.array([[-2.0, -1.0], [-2.0, 1.0], [2.0, -1.0], [2.0, 1.0]])
    >>> axes = principal_axes(square, np.ones(4), np.zeros(2), get_divergence("sqeuclidean"))
    >>> axes.variance.tolist(), axes.skewness.tolist()
    ([4.0, 1.0], [0.0, 0.0])
    """
    share = weight / weight.sum()
    if not divergence.is_metric:
        # Near the center a Bregman divergence is a squared distance with one scale per column.
        step = 1e-4 * np.maximum(divergence.margin(center), 0.0)
        ahead, _ = divergence.slope_offset((center + step)[None])
        behind, _ = divergence.slope_offset((center - step)[None])
        curvature = np.divide(
            ahead[0] - behind[0], 2 * step, out=np.zeros_like(step), where=step > 0
        )
        sample = sample * np.sqrt(np.maximum(curvature, 0.0))
    spread = sample - share @ sample
    root = np.sqrt(share)[:, None]
    if spread.shape[1] <= len(spread):
        variance, axis = np.linalg.eigh((root * spread).T @ (root * spread))
        kept = np.flatnonzero(variance > NEGLIGIBLE * variance[-1])[::-1]
        variance, direction = variance[kept], axis[:, kept].T
        scores = spread @ direction.T
    else:
        variance, axis = np.linalg.eigh((root * spread) @ (root * spread).T)
        kept = np.flatnonzero(variance > NEGLIGIBLE * variance[-1])[::-1]
        variance, axis = variance[kept], axis[:, kept]
        direction = (axis / np.sqrt(variance)).T @ (root * spread)
        scores = axis * np.sqrt(variance) / root
    return Axes(variance, share @ (scores / np.sqrt(variance)) ** 3, direction)
