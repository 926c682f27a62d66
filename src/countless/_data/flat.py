"""Flat files: tables of plain numbers stored row by row, which are read in place."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np

from .._npy import read_header


class FlatFile(NamedTuple):
    """A numeric table in a file, stored row by row (C order)."""

    path: Path
    offset: int
    dtype: np.dtype
    shape: tuple[int, int]
    chunks: tuple[int, ...] | None = None  # of the Dask array that it was copied from

    @property
    def kind(self) -> np.dtype:
        """The dtype of rows in memory: as for arrays, float32 is kept, all others are float64."""
        return np.dtype(np.float32 if self.dtype == np.float32 else np.float64)

    @property
    def n_bytes(self) -> int:
        """The size of the rows in memory."""
        return self.shape[0] * self.shape[1] * self.kind.itemsize

    def read(self, start: int, stop: int) -> np.ndarray:
        """Return some rows, in the dtype used in memory."""
        rows = np.empty((stop - start, self.shape[1]), dtype=self.dtype)
        with self.path.open("rb", buffering=0) as file:
            file.seek(self.offset + start * self.shape[1] * self.dtype.itemsize)
            read, into = 0, rows.data.cast("B")
            while read < len(into):
                count = file.readinto(into[read:])
                if not count:
                    raise ValueError(f"{self.path} ends before row {stop - 1}: it was cut short")
                read += count
        return rows.astype(self.kind, copy=False)


def npy_table(path: Path) -> FlatFile:
    """Return the table of an ``.npy`` file; raise a ValueError for another array."""
    with path.open("rb") as file:
        try:
            header = read_header(file)
        except ValueError as error:
            raise ValueError(f"{path} is no .npy file: {error}") from error
        if len(header.shape) != 2 or 0 in header.shape:
            raise ValueError(f"{path} must hold a table; its shape is {header.shape}")
        if header.fortran:
            raise ValueError(f"{path} is stored by columns; save it with order='C'")
        if header.dtype.kind not in "biuf":
            raise ValueError(f"{path} must hold numbers; it holds {header.dtype}")
        return FlatFile(path, file.tell(), header.dtype, header.shape)
