"""What every function that takes a table checks first."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import check_array

from countless.hard.divergence import Divergence


def check_table(X: Any, divergence: Divergence) -> Any:
    """Return rows, dense or CSR, that the divergence accepts, in the form that it clusters."""
    X = check_array(X, accept_sparse="csr", dtype=[np.float64, np.float32])
    divergence.check(X)
    return divergence.prepare(X)


def check_weight(sample_weight: Any, n_rows: int) -> np.ndarray:
    """Return one float64 weight a row, none negative and not all zero."""
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
        raise ValueError("sample_weight must be positive for at least one row; all are 0")
    return weight
