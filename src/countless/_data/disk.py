"""The disk backend: a table in a file, of which a few blocks are in memory at a time.

Per-row state is in memory-mapped files, too; their pages are released after each step.
"""

from __future__ import annotations

import mmap
from itertools import count
from pathlib import Path

import numpy as np

from countless._data.backend import BlockState, LocalBackend
from countless._data.block import Block, make_block
from countless._data.npy import FlatFile

# Values written at once when a file is initialised.
FILL_VALUES = 2**20


class DiskBackend(LocalBackend):
    """A table in a flat file.

    Parameters
    ----------
    table : FlatFile
    weight : ndarray of shape (n_rows,) or None
    divergence : Divergence
    folder : Path
        Where to put the files of per-row state.
    n_threads, pool : int, ThreadPoolExecutor or None
    """

    is_sparse = False
    far_rows_at_once = 512

    def __init__(self, table: FlatFile, weight, divergence, folder: Path, n_threads: int, pool):
        super().__init__(*table.shape, n_threads, pool)
        self._table, self._divergence, self._folder = table, divergence, folder
        self._weight = weight
        self._maps: list[mmap.mmap] = []
        self._names = count()
        self.n_bytes = table.n_bytes

    def set_weight(self, weight: np.ndarray) -> None:
        self._weight = weight

    def load(self, start: int, stop: int) -> Block:
        rows = self._divergence.prepare(self._table.read(start, stop))
        weight = None if self._weight is None else self._weight[start:stop]
        return make_block(start, rows, weight, self._divergence)

    def new_array(self, dtype, fill) -> np.ndarray:
        path = self._folder / f"state-{next(self._names)}"
        with path.open("wb") as file:
            for at in range(0, self.n_rows, FILL_VALUES):
                file.write(np.full(min(FILL_VALUES, self.n_rows - at), fill, dtype=dtype).data)
        with path.open("r+b") as file:
            self._maps.append(mmap.mmap(file.fileno(), 0))
        return np.frombuffer(self._maps[-1], dtype=dtype)

    def run(self, step, state=None, message=None, *, into=None, data=True) -> list:
        answers = super().run(step, state, message, into=into, data=data)
        for mapped in self._maps:
            if hasattr(mmap, "MADV_DONTNEED"):  # changes are written to the file
                mapped.madvise(mmap.MADV_DONTNEED)
        return answers

    def get(self, state: BlockState, name: str):
        values = state[name].copy()
        if self._table.chunks is None:
            return values
        import dask.array as da

        return da.from_array(values, chunks=(self._table.chunks,))
