"""Choosing the backend of a table, and opening it for a computation."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import numpy as np
import scipy.sparse as sp

from countless._data.backend import Rows, threads
from countless._data.disk import DiskRows
from countless._data.memory import MemoryRows
from countless._data.stored import as_flat_file, is_dask, scratch_folder
from countless._data.validate import survey
from countless._data.weight import in_steps
from countless._threads import count_threads, one_library_thread


@contextmanager
def open_rows(X, weight, divergence, n_jobs=None) -> Iterator[Rows]:
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
        rows: Rows
        if isinstance(X, np.ndarray) or sp.issparse(X):
            rows = MemoryRows(X, in_steps(weight, X.shape[0]), divergence, n_threads, pool)
        elif is_dask(X) and (client := client_of()) is not None:
            from countless._data.dask import ClusterRows

            rows = ClusterRows(X, weight, divergence, client, n_threads, pool)
        else:
            folder = stack.enter_context(scratch_folder())
            table = as_flat_file(X, folder)
            weight = in_steps(weight, table.shape[0])
            rows = DiskRows(table, weight, divergence, folder, n_threads, pool)
        rows.frame, rows.whole = survey(rows, divergence)
        yield rows


def client_of():
    """Return the current Dask client, or None."""
    distributed = sys.modules.get("distributed")
    if distributed is None:
        return None
    try:
        return distributed.get_client()
    except ValueError:
        return None
