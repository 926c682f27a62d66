"""Opening a table for a computation: its validation, and the choice of its backend."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_array

from countless._data.backend import Backend, MemoryBackend, threads
from countless._data.disk import DiskBackend
from countless._data.stored import as_flat_file, find_table, is_dask, scratch_folder
from countless._data.validate import round_weights, scan_table
from countless._numbers import check_finite, naming_text
from countless._threads import count_threads, one_library_thread
from countless.divergences import Divergence


@contextmanager
def open_rows(X, weight, divergence, n_jobs=None) -> Iterator[Backend]:
    """Open a table for a computation, with a thread pool; BLAS uses one thread in each.

    Parameters
    ----------
    X : ndarray, CSR matrix, or what `countless._data.stored.find_table` found
        float32 or float64 rows in memory, as prepared by the divergence, are used without a copy.
        A Dask collection is processed by the current Dask cluster, if there is one.
    weight : array-like of shape (n_rows,) or None
        None gives every row weight 1.
    divergence : Divergence
        How rows are compared with centers.
    n_jobs : int or None
        Threads, as in joblib.
    """
    n_threads = count_threads(n_jobs)
    with ExitStack() as stack:
        stack.enter_context(one_library_thread())
        pool = stack.enter_context(threads(n_threads))
        rows: Backend
        if isinstance(X, np.ndarray) or sp.issparse(X):
            rows = MemoryBackend(X, round_weights(weight, X.shape[0]), divergence, n_threads, pool)
        elif is_dask(X) and (client := current_client()) is not None:
            from countless._data.dask import DaskBackend

            rows = DaskBackend(X, weight, divergence, client, n_threads, pool)
        else:
            folder = stack.enter_context(scratch_folder())
            table = as_flat_file(X, folder)
            weight = round_weights(weight, table.shape[0])
            rows = DiskBackend(table, weight, divergence, folder, n_threads, pool)
        rows.fixed_point, rows.whole = scan_table(rows, divergence)
        yield rows


def reweigh(rows: Backend, weight: np.ndarray) -> None:
    """Replace the weights of open rows; a row of weight 0 is then the same as an absent one.

    States of the rows stay valid; sums and centers made before are those of the old weights.
    """
    rows.set_weight(weight)
    rows.fixed_point, rows.whole = scan_table(rows, rows.fixed_point.divergence)


def current_client():
    """Return the current Dask client, or None."""
    distributed = sys.modules.get("distributed")
    if distributed is None:
        return None
    try:
        return distributed.get_client()
    except ValueError:
        return None


@contextmanager
def open_table(
    X: Any, sample_weight: Any, divergence: Divergence, n_jobs: int | None
) -> Iterator[Backend]:
    """Validate a table that no estimator has validated, and open it."""
    table = find_table(X)
    if table is None:
        table = _in_memory(X)
    with open_checked(table, sample_weight, divergence, n_jobs) as rows:
        yield rows


@contextmanager
def open_checked(
    table: Any, sample_weight: Any, divergence: Divergence, n_jobs: int | None
) -> Iterator[Backend]:
    """Open validated rows; those in memory are first prepared by the divergence."""
    if isinstance(table, np.ndarray) or sp.issparse(table):
        table = divergence.prepare(without_repeats(table))
    with open_rows(table, sample_weight, divergence, n_jobs) as rows:
        yield rows


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
