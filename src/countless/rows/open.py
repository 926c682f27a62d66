"""Opening a table for a computation, wherever it is."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import scipy.sparse as sp
from joblib import effective_n_jobs
from threadpoolctl import threadpool_limits

from countless.rows.frame import step_for
from countless.rows.home import Rows, threads
from countless.rows.memory import MemoryRows
from countless.rows.survey import survey


@contextmanager
def open_rows(X, weight, divergence, n_jobs=None) -> Iterator[Rows]:
    """Hold a table open for a computation, with its threads; BLAS gets one thread in each.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n_rows, n_features)
        float32 or float64 rows as the divergence prepares them; used where they are.
    weight : ndarray of shape (n_rows,) or None
        None weighs every row 1.
    divergence : Divergence
        How rows are compared with centers.
    n_jobs : int or None
        Threads, as in joblib.
    """
    n_threads = effective_n_jobs(n_jobs)
    if weight is not None:
        weight = in_steps(weight)
    with threadpool_limits(1, user_api="blas"), threads(n_threads) as pool:
        rows = MemoryRows(X, weight, divergence, n_threads, pool)
        rows.frame, rows.whole = survey(rows, divergence, rows.n_bytes, sp.issparse(X))
        yield rows


def in_steps(weight: np.ndarray) -> np.ndarray:
    """Round weights to the step that they are added up in; none that is above 0 becomes 0."""
    heaviest = float(weight.max())
    step = step_for(1.0, np.count_nonzero(weight) * heaviest, heaviest)
    return np.where(weight > 0, np.maximum(np.rint(weight / step), 1.0) * step, 0.0)
