"""Projection of rows and centers on few principal directions, as a lower bound on distances.

For an orthonormal basis P of some directions, ``||x - c||`` is at least the distance of ``(P x,
||x - P'P x||)`` from ``(P c, ||c - P'P c||)``, and nearly equal where centers are close to the span
of P.
"""

from __future__ import annotations

import numpy as np

from countless._data import FixedPoint
from countless._search.pruning import PRUNING


def principal_directions(fixed_point: FixedPoint, centers: np.ndarray) -> np.ndarray | None:
    """Return the principal directions of the centers, if few explain nearly all variance."""
    if len(centers) < max(PRUNING.projected_centers, 2 * fixed_point.n_features):
        return None
    seen = (centers - fixed_point.origin) / fixed_point.unit
    spread, directions = np.linalg.eigh(seen.T @ seen)
    outside = np.cumsum(np.maximum(spread, 0.0)) <= PRUNING.outside_span * spread.sum()
    n_directions = int(np.count_nonzero(~outside))
    if PRUNING.fewer_dimensions * (n_directions + 1) > fixed_point.n_features:
        return None
    return directions[:, -n_directions:]


def project_points(points: np.ndarray, basis: np.ndarray) -> np.ndarray:
    """Return the projections of points on a basis, and their distances from its span."""
    return with_residual(points @ basis, np.einsum("ij,ij->i", points, points))


def with_residual(inside: np.ndarray, square: np.ndarray) -> np.ndarray:
    """Append the norm of the residual to projections, given the squared norms of the points."""
    rest = square - np.einsum("ij,ij->i", inside, inside, dtype=np.float64)
    return np.column_stack([inside, np.sqrt(np.maximum(rest, 0.0))]).astype(inside.dtype)
