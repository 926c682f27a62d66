"""Projection of rows and centers on few principal directions, as a lower bound on distances.

For an orthonormal basis P of some directions, ``||x - c||`` is at least the distance of ``(P x,
||x - P'P x||)`` from ``(P c, ||c - P'P c||)``, and nearly equal where centers are close to the span
of P.
"""

from __future__ import annotations

import numpy as np

from countless._data import Frame

# Fewer centers than this are compared in all dimensions.
MANY_CENTERS = 512
# The share of the centers' variance that may lie outside the span, and the factor by which the
# projection must reduce the number of dimensions.
OUTSIDE = 0.02
FEWER = 3


def few_directions(frame: Frame, centers: np.ndarray) -> np.ndarray | None:
    """Return the principal directions of the centers, if few explain nearly all variance."""
    if len(centers) < max(MANY_CENTERS, 2 * frame.n_features):
        return None
    seen = (centers - frame.origin) / frame.unit
    spread, directions = np.linalg.eigh(seen.T @ seen)
    outside = np.cumsum(np.maximum(spread, 0.0)) <= OUTSIDE * spread.sum()
    n_directions = int(np.count_nonzero(~outside))
    if FEWER * (n_directions + 1) > frame.n_features:
        return None
    return directions[:, -n_directions:]


def look(points: np.ndarray, basis: np.ndarray) -> np.ndarray:
    """Return the projections of points on a basis, and their distances from its span."""
    return with_rest(points @ basis, np.einsum("ij,ij->i", points, points))


def with_rest(inside: np.ndarray, square: np.ndarray) -> np.ndarray:
    """Append the norm of the residual to projections, given the squared norms of the points."""
    rest = square - np.einsum("ij,ij->i", inside, inside, dtype=np.float64)
    return np.column_stack([inside, np.sqrt(np.maximum(rest, 0.0))]).astype(inside.dtype)
