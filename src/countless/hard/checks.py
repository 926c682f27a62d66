"""What every function that takes a table checks first."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_array

from countless._numbers import naming_text
from countless.hard.divergence import Divergence
from countless.rows import Rows, open_rows
from countless.rows.table import find_table
from countless.rows.weight import check_weight

__all__ = [
    "check_finite",
    "check_table",
    "check_weight",
    "open_checked",
    "open_table",
    "without_repeats",
]


def check_finite(X) -> None:
    """Raise a ValueError that names the first gap or infinity by row and column."""
    # A sum is finite unless something in it is not, or it overflows: then the search finds nothing.
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(X.sum()):
            return
    values = X.data if sp.issparse(X) else X
    bad = np.argwhere(~np.isfinite(values))
    if not len(bad):
        return
    value = values[tuple(bad[0])]
    if sp.issparse(X):
        row, column = np.searchsorted(X.indptr, bad[0, 0], side="right") - 1, X.indices[bad[0, 0]]
    else:
        row, column = bad[0]
    what = "NaN" if np.isnan(value) else "infinity"
    raise ValueError(f"X contains {what}: row {row}, column {column} ({len(bad)} such in all)")


def without_repeats(X: Any) -> Any:
    """Return a table whose sparse cells are each stored once."""
    if sp.issparse(X) and not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return X


def check_table(X: Any, divergence: Divergence) -> Any:
    """Return rows, dense or CSR, that the divergence accepts, in the form that it clusters."""
    X = _in_memory(X)
    check_finite(X)
    X = without_repeats(X)
    divergence.check(X)
    return divergence.prepare(X)


def _in_memory(X: Any) -> Any:
    """Return an array, row by row, or a CSR matrix."""
    with naming_text(X):
        return check_array(
            X,
            accept_sparse="csr",
            dtype=[np.float64, np.float32],
            order="C",
            ensure_all_finite=False,
        )


@contextmanager
def open_table(
    X: Any, sample_weight: Any, divergence: Divergence, n_jobs: int | None
) -> Iterator[Rows]:
    """Check a table that no estimator has checked, and hold it open."""
    table = find_table(X)
    if table is None:
        table = _in_memory(X)
    with open_checked(table, sample_weight, divergence, n_jobs) as rows:
        yield rows


@contextmanager
def open_checked(
    table: Any, sample_weight: Any, divergence: Divergence, n_jobs: int | None
) -> Iterator[Rows]:
    """Hold rows open; those in memory are brought into the divergence's form."""
    if isinstance(table, np.ndarray) or sp.issparse(table):
        table = divergence.prepare(without_repeats(table))
    with open_rows(table, sample_weight, divergence, n_jobs) as rows:
        yield rows
