"""Arrays in ``.npy`` files: read whole, or rows of a table read in place.

The size and the dtype of an array are checked before memory is allocated.
"""

from __future__ import annotations

import io
from math import prod
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.lib import format as npy_format


class Header(NamedTuple):
    """The header of an ``.npy`` file."""

    shape: tuple[int, ...]
    dtype: np.dtype
    fortran: bool


def read_npy(file: io.BufferedIOBase, kinds: str = "fiub") -> np.ndarray:
    """Read an array of plain numbers from a seekable file.

    Parameters
    ----------
    file : binary file
        Positioned at the start of the array; nothing may follow the array.
    kinds : str, default='fiub'
        The NumPy kind letters that are accepted.

    Returns
    -------
    ndarray
        In the machine's byte order, and owned by the caller.

    Raises
    ------
    ValueError
        If the header is invalid, the dtype is not accepted, or the number of bytes after the header
        does not match the shape.

    Examples
    --------
    >>> import io
    >>> import numpy as np
    >>> file = io.BytesIO()
    >>> np.save(file, np.arange(3.0))
    >>> _ = file.seek(0)
    >>> read_npy(file)
    array([0., 1., 2.])
    """
    header = read_header(file)
    if header.dtype.kind not in kinds or header.dtype.fields is not None:
        raise ValueError(f"holds {header.dtype}, not plain numbers")
    start = file.tell()
    present = file.seek(0, io.SEEK_END) - start
    expected = prod(header.shape) * header.dtype.itemsize
    if present != expected:
        raise ValueError(f"has {present} bytes of data, its header says {expected}")
    file.seek(start)
    raw = np.empty(expected, dtype=np.uint8)
    if file.readinto(raw.data) != expected:
        raise ValueError("ended while it was read")
    array = raw.view(header.dtype).reshape(header.shape, order="F" if header.fortran else "C")
    return array.astype(header.dtype.newbyteorder("="), copy=False)


def read_header(file: io.BufferedIOBase) -> Header:
    """Read the header of an array; raise a ValueError if it is not readable."""
    readers = {(1, 0): npy_format.read_array_header_1_0, (2, 0): npy_format.read_array_header_2_0}
    try:
        version = npy_format.read_magic(file)
        shape, fortran, dtype = readers[version](file)
    except (KeyError, TypeError, OverflowError, SyntaxError) as error:
        raise ValueError(f"has no readable header ({error})") from error
    if any(length < 0 for length in shape):
        raise ValueError(f"has the impossible shape {shape}")
    return Header(shape, dtype, fortran)


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
