"""Rows cut into small pieces by repeated bisection along principal axes, to start a search from."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

POWER_STEPS = 12  # steps of the power iteration for a principal axis


def standardize(rows: np.ndarray) -> np.ndarray:
    """Return columns of mean 0 and variance 1, missing values as 0; for principal axes only."""
    missing = np.isnan(rows)
    count = np.maximum((~missing).sum(axis=0), 1)
    values = np.where(missing, 0.0, rows).astype(np.float64)
    values -= values.sum(axis=0) / count
    values[missing] = 0.0
    spread = np.sqrt((values**2).sum(axis=0) / count)
    return values / np.where(spread > 0.0, spread, 1.0)


def cut(
    scaled: np.ndarray, n_pieces: int, halve: Callable[[np.ndarray], np.ndarray | None]
) -> np.ndarray:
    """Return a piece for each row, by repeated bisection, largest sum of squares first.

    ``halve`` returns which of some rows are in the second half, or None if all are equal; then
    there may be fewer pieces than ``n_pieces``.
    """
    labels = np.zeros(len(scaled), dtype=np.int32)
    squares = [_squares(scaled)]
    while len(squares) < n_pieces and max(squares) > 0.0:
        piece = int(np.argmax(squares))
        own = np.flatnonzero(labels == piece)
        second = halve(own)
        squares[piece] = 0.0
        if second is not None:
            labels[own[second]] = len(squares)
            squares[piece] = _squares(scaled[own[~second]])
            squares.append(_squares(scaled[own[second]]))
    return labels


def principal_halves(scaled: np.ndarray) -> np.ndarray | None:
    """Cut rows at their mean on the first principal axis; None if all are equal."""
    second = _principal_scores(scaled - scaled.mean(axis=0)) > 0.0
    return second if 0 < second.sum() < len(second) else None


def _squares(values: np.ndarray) -> float:
    return float(((values - values.mean(axis=0)) ** 2).sum())


def _principal_scores(centered: np.ndarray) -> np.ndarray:
    """Return the scores of rows along their first principal axis, by power iteration."""
    axis = centered[np.argmax((centered**2).sum(axis=1))]
    for _ in range(POWER_STEPS):
        length = np.sqrt(axis @ axis)
        if not length > 0.0:
            break
        axis = centered.T @ (centered @ (axis / length))
    return centered @ axis
