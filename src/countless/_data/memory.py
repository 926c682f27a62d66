"""The memory backend: a NumPy array or a CSR matrix, used without a copy."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from countless._data.backend import ThreadedRows
from countless._data.block import Block, cut, make_block


class MemoryRows(ThreadedRows):
    """A table in memory."""

    in_memory = True

    def __init__(self, X: Any, weight: np.ndarray | None, divergence, n_threads: int, pool):
        super().__init__(X.shape[0], X.shape[1], n_threads, pool)
        self.is_sparse = sp.issparse(X)
        self.n_bytes = X.data.nbytes + X.indices.nbytes if self.is_sparse else X.nbytes
        self._all = make_block(0, X, weight, divergence)

    def load(self, start: int, stop: int) -> Block:
        return cut(self._all, start, stop)

    def pick(self, ids: np.ndarray) -> Block:
        return self._all.pick(ids)
