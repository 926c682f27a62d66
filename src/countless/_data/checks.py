"""Validation of tables."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_array

from countless._data import Rows, open_rows
from countless._data.stored import find_table
from countless._data.weight import check_weight
from countless._numbers import check_finite, naming_text
from countless.divergences import Divergence

__all__ = [
    "check_table",
    "check_weight",
    "open_checked",
    "open_table",
    "without_repeats",
]


def without_repeats(X: Any) -> Any:
    """Return a table in canonical sparse format: duplicate entries are summed."""
    if sp.issparse(X) and not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return X


def check_table(X: Any, divergence: Divergence) -> Any:
    """Return rows, dense or CSR, that the divergence accepts, in the form that it clusters."""
    X = without_repeats(_in_memory(X))
    divergence.check(X)
    return divergence.prepare(X)


def _in_memory(X: Any) -> Any:
    """Return a C-ordered array or a CSR matrix of finite numbers."""
    with naming_text(X):
        checked = check_array(
            X,
            accept_sparse="csr",
            dtype=[np.float64, np.float32],
            order="C",
            ensure_all_finite=False,
        )
    check_finite(checked, X)
    return checked


@contextmanager
def open_table(
    X: Any, sample_weight: Any, divergence: Divergence, n_jobs: int | None
) -> Iterator[Rows]:
    """Validate a table that no estimator has validated, and open it."""
    table = find_table(X)
    if table is None:
        table = _in_memory(X)
    with open_checked(table, sample_weight, divergence, n_jobs) as rows:
        yield rows


@contextmanager
def open_checked(
    table: Any, sample_weight: Any, divergence: Divergence, n_jobs: int | None
) -> Iterator[Rows]:
    """Open validated rows; those in memory are first prepared by the divergence."""
    if isinstance(table, np.ndarray) or sp.issparse(table):
        table = divergence.prepare(without_repeats(table))
    with open_rows(table, sample_weight, divergence, n_jobs) as rows:
        yield rows
