"""Changing how many rows an array has, and their order, without a second one of its size."""

from __future__ import annotations

import ctypes
import mmap
import sys
from collections.abc import Callable
from functools import cache

import numpy as np

# Values that are moved at once.
CHUNK_VALUES = 2**13
# Rows of a block that are worked on at once where that takes room.
FEW_ROWS = 2**11
# Memory of this size is the system's own, never a part of what an allocator keeps.
OWN_BYTES = 2**25 + 2**16


def chunks(array: np.ndarray, n_rows: int | None = None, values: int = CHUNK_VALUES) -> list[slice]:
    """Return slices of some rows each, small beside what they are taken of."""
    n_rows = len(array) if n_rows is None else n_rows
    step = max(1, values // max(1, int(np.prod(array.shape[1:]))))
    return [slice(at, min(at + step, n_rows)) for at in range(0, n_rows, step)]


def growing(shape: tuple[int, ...], dtype) -> np.ndarray:
    """Return an array of zeros that, however small, can grow where it is.

    glibc copies most arrays to make them larger, but moves the pages of those that were born large;
    pages that nothing is written to take no room.
    """
    array = np.empty(max(int(np.prod(shape)), OWN_BYTES // np.dtype(dtype).itemsize), dtype=dtype)
    if advise := _of_libc("madvise"):
        # NumPy asks for huge pages from the second page on. Linux does not move pages of two kinds,
        # and a huge one would take more room than what is in it.
        first = array.ctypes.data // mmap.PAGESIZE * mmap.PAGESIZE
        n_bytes = array.ctypes.data + array.nbytes - first
        advise(ctypes.c_void_p(first), ctypes.c_size_t(n_bytes), mmap.MADV_NOHUGEPAGE)
    array.resize(shape, refcheck=False)
    array.fill(0)
    return array


def resize(array: np.ndarray, n_rows: int) -> None:
    """Give an array that owns its values more rows, of zeros, or fewer."""
    array.resize((n_rows, *array.shape[1:]), refcheck=False)


def inherit(array: np.ndarray, ancestor: np.ndarray) -> None:
    """Let each row be what its ancestor was.

    Where there are more than before, old ones must stay in their places; where there are fewer, in
    their order.

    Examples
    --------
    >>> import numpy as np
    >>> array = np.array([3, 1, 2])
    >>> inherit(array, np.array([0, 1, 2, 0]))
    >>> array.tolist()
    [3, 1, 2, 3]
    """
    before, n_rows = len(array), len(ancestor)
    if n_rows > before:
        resize(array, n_rows)
    # No row is overwritten before those that come out of it have been.
    parts = chunks(array, n_rows)
    for part in reversed(parts) if n_rows > before else parts:
        array[part] = array[ancestor[part]]
    resize(array, n_rows)


def keep(array: np.ndarray, stays: np.ndarray) -> None:
    """Keep the rows that are marked, in their order.

    Examples
    --------
    >>> import numpy as np
    >>> array = np.array([3, 1, 2])
    >>> keep(array, np.array([True, False, True]))
    >>> array.tolist()
    [3, 2]
    """
    inherit(array, np.flatnonzero(stays))


def reorder(array: np.ndarray, order: np.ndarray) -> None:
    """Put the rows into another order."""
    columns = array.reshape(len(array), -1)  # a view: owners of their values are in C order
    step = max(1, CHUNK_VALUES // max(1, len(array)))
    for at in range(0, columns.shape[1], step):
        columns[:, at : at + step] = columns[order, at : at + step]


def give_back() -> None:
    """Give memory that is free back to the system, where its allocator is known to keep it.

    glibc keeps what threads have freed for each of them, and the gaps that growing arrays leave.
    """
    if trim := _of_libc("malloc_trim"):
        trim(0)


@cache
def _of_libc(name: str) -> Callable[..., int] | None:
    """Return a function of the C library, on Linux and if it is there."""
    return getattr(ctypes.CDLL(None), name, None) if sys.platform == "linux" else None
