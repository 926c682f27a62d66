"""Similarities from dissimilarities, and back.

| ``how`` | similarity of a dissimilarity d | what takes it |
| --- | --- | --- |
| ``'negative'`` | ``-d`` | affinity propagation |
| ``'complement'`` | ``1 - d``, for d in [0, 1] | Gower's own similarity |
| ``'exponential'`` | ``exp(-d / scale)`` | graphs, spectral methods |
| ``'inner'`` | inner products about the mean of points at squared distances d | kernel methods |
"""

from __future__ import annotations

from typing import Any

import numpy as np

HOW = ("negative", "complement", "exponential", "inner")


def to_similarity(D: Any, how: str = "negative", *, scale: float | None = None) -> np.ndarray:
    """Return similarities from dissimilarities.

    Parameters
    ----------
    D : array-like of shape (n, n)
        Dissimilarities, at least 0.
    how : {'negative', 'complement', 'exponential', 'inner'}
        ``-d``; ``1 - d``; ``exp(-d / scale)``; or the inner products about their mean of points
        whose squared distances are d, a kernel (Torgerson's scaling).
    scale : float, optional
        For ``'exponential'``; by default the mean of D.

    Returns
    -------
    ndarray of shape (n, n)

    Examples
    --------
    >>> import numpy as np
    >>> from countless.dissimilarity import to_similarity
    >>> to_similarity(np.array([[0.0, 4.0], [4.0, 0.0]]), "inner")
    array([[ 1., -1.],
           [-1.,  1.]])
    """
    D = _check_square(D, "D", how)
    if (D < 0).any():
        row, column = np.argwhere(D < 0)[0]
        raise ValueError(f"D must be at least 0; row {row}, column {column} is {D[row, column]:g}")
    if how == "negative":
        return -D
    if how == "complement":
        if D.max(initial=0.0) > 1:
            row, column = np.argwhere(D > 1)[0]
            raise ValueError(
                f"D must be at most 1; row {row}, column {column} is {D[row, column]:g}"
            )
        return 1 - D
    if how == "exponential":
        return np.exp(-D / _check_scale(scale, D))
    mean = D.mean(axis=0, dtype=np.float64)
    return ((mean[:, None] + mean - mean.mean() - D) / 2).astype(D.dtype)


def to_dissimilarity(S: Any, how: str = "negative", *, scale: float = 1.0) -> np.ndarray:
    """Return dissimilarities from similarities; undoes `to_similarity` at the same ``scale``.

    Parameters
    ----------
    S : array-like of shape (n, n)
        Similarities.
    how : {'negative', 'complement', 'exponential', 'inner'}
        ``-s``; ``1 - s``; ``-scale * log(s)``; or the squared distances of points with these inner
        products.
    scale : float, default=1.0
        For ``'exponential'``.

    Returns
    -------
    ndarray of shape (n, n)

    Examples
    --------
    >>> import numpy as np
    >>> from countless.dissimilarity import to_dissimilarity
    >>> to_dissimilarity(np.array([[1.0, -1.0], [-1.0, 1.0]]), "inner")
    array([[0., 4.],
           [4., 0.]])
    """
    S = _check_square(S, "S", how)
    if how == "negative":
        return -S
    if how == "complement":
        return 1 - S
    if how == "exponential":
        if (S <= 0).any():
            row, column = np.argwhere(S <= 0)[0]
            raise ValueError(
                f"S must be positive; row {row}, column {column} is {S[row, column]:g}"
            )
        return -_check_scale(scale, S) * np.log(S)
    own = np.diagonal(S)
    return np.maximum(own[:, None] + own - 2 * S, 0)


def _check_square(M: Any, name: str, how: str) -> np.ndarray:
    if how not in HOW:
        known = ", ".join(repr(known) for known in HOW)
        raise ValueError(f"how must be one of {known}; got {how!r}")
    M = np.asarray(M)
    if M.dtype not in (np.float32, np.float64):
        M = M.astype(np.float64)
    if M.ndim != 2 or M.shape[0] != M.shape[1]:
        raise ValueError(f"{name} must be a square matrix; got shape {M.shape}")
    if not np.isfinite(M).all():
        row, column = np.argwhere(~np.isfinite(M))[0]
        raise ValueError(f"{name}: row {row}, column {column} is {M[row, column]:g}")
    return M


def _check_scale(scale: float | None, M: np.ndarray) -> float:
    if scale is None:
        return float(M.mean()) or 1.0
    if not 0 < scale < np.inf:
        raise ValueError(f"scale must be a positive number; got {scale!r}")
    return float(scale)
