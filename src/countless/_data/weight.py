"""Validation of sample weights, and their rounding to fixed point."""

from __future__ import annotations

from typing import Any

import numpy as np

from countless._data.fixed_point import step_for

# The largest weight is between these, so that neither steps nor sums overflow or underflow.
SMALLEST, LARGEST = 1e-200, 1e200


def check_weight(sample_weight: Any, n_rows: int) -> np.ndarray:
    """Return one float64 weight per row, none negative and not all zero."""
    if sample_weight is None:
        return np.ones(n_rows)
    weight = np.asarray(sample_weight, dtype=np.float64)
    if weight.shape != (n_rows,):
        raise ValueError(
            f"sample_weight must hold a number for each of {n_rows} rows; got shape {weight.shape}"
        )
    bad = ~(np.isfinite(weight) & (weight >= 0))
    if bad.any():
        row = int(np.argmax(bad))
        raise ValueError(
            f"sample_weight must be finite and at least 0; row {row} has {weight[row]:g}"
        )
    if not weight.any():
        raise ValueError("sample_weight must not be zero for every row; all are 0")
    return weight


def in_steps(sample_weight: Any, n_rows: int) -> np.ndarray | None:
    """Return validated weights, rounded to their fixed-point step; None stays None.

    A positive weight is never rounded to 0.
    """
    if sample_weight is None:
        return None
    weight = check_weight(sample_weight, n_rows)
    heaviest = float(weight.max())
    if not SMALLEST < heaviest < LARGEST:
        raise ValueError(
            f"sample_weight must be from {SMALLEST:.0e} to {LARGEST:.0e} at most; got {heaviest:g}"
        )
    step = step_for(1.0, np.count_nonzero(weight) * heaviest, heaviest)
    return np.where(weight > 0, np.maximum(np.rint(weight / step), 1.0) * step, 0.0)
