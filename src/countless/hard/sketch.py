"""Looking at rows and centers in few directions, where these hold nearly all that sets them apart.

For an orthonormal basis P of some directions, ``||x - c||`` is at least the distance of ``(P x,
||x - P'P x||)`` from ``(P c, ||c - P'P c||)``, and nearly as large where centers hardly leave the
span of P.
"""

from __future__ import annotations

import numpy as np

from countless.rows import Frame
from countless.rows.inplace import chunks, give_back

# Fewer centers than this are compared in all dimensions.
MANY_CENTERS = 512
# The share of the centers' variance that may lie outside the directions looked at, and how much
# fewer these must be.
OUTSIDE = 0.02
FEWER = 3


def few_directions(frame: Frame, centers: np.ndarray) -> np.ndarray | None:
    """Return the main directions of the centers, if few hold nearly all of their variance."""
    if len(centers) < max(MANY_CENTERS, 2 * frame.n_features):
        return None
    scatter = np.zeros((frame.n_features, frame.n_features))
    for part in chunks(centers):
        seen = frame.seen(centers[part]) / frame.unit
        scatter += seen.T @ seen
    spread, directions = np.linalg.eigh(scatter)
    outside = np.cumsum(np.maximum(spread, 0.0)) <= OUTSIDE * spread.sum()
    n_directions = int(np.count_nonzero(~outside))
    if FEWER * (n_directions + 1) > frame.n_features:
        return None
    give_back()  # what finding them took
    return directions[:, -n_directions:]


def look(points: np.ndarray, basis: np.ndarray) -> np.ndarray:
    """Return what a basis sees of points: where on it they are, and how far from it."""
    return with_rest(points @ basis, np.einsum("ij,ij->i", points, points))


def with_rest(inside: np.ndarray, square: np.ndarray) -> np.ndarray:
    """Append the length of what lies outside the directions, given the squares of whole lengths."""
    rest = square - np.einsum("ij,ij->i", inside, inside, dtype=np.float64)
    return np.column_stack([inside, np.sqrt(np.maximum(rest, 0.0))]).astype(inside.dtype)
