"""Resizing and reordering the rows of an array in place, without a second array of its size."""

from __future__ import annotations

import ctypes
import mmap
import sys
from collections.abc import Callable
from functools import cache

import numpy as np

# Values moved at once.
CHUNK_VALUES = 2**13
# Rows of a block processed at once where that needs temporary memory.
FEW_ROWS = 2**11
# Allocations of this size are mapped by the system, never taken from the allocator's heap.
OWN_BYTES = 2**25 + 2**16


def chunks(array: np.ndarray, n_rows: int | None = None, values: int = CHUNK_VALUES) -> list[slice]:
    """Return slices that cover an array's rows, with about ``values`` values each."""
    n_rows = len(array) if n_rows is None else n_rows
    step = max(1, values // max(1, int(np.prod(array.shape[1:]))))
    return [slice(at, min(at + step, n_rows)) for at in range(0, n_rows, step)]


def growing(shape: tuple[int, ...], dtype) -> np.ndarray:
    """Return an array of zeros that, however small, can grow without a copy.

    glibc's realloc copies most arrays, but remaps the pages of those that were allocated large;
    pages that are never written to take no memory.
    """
    array = np.empty(max(int(np.prod(shape)), OWN_BYTES // np.dtype(dtype).itemsize), dtype=dtype)
    if advise := _of_libc("madvise"):
        # NumPy requests huge pages from the second page on. Linux does not remap a mix of page
        # sizes, and a huge page would take more memory than its content.
        first = array.ctypes.data // mmap.PAGESIZE * mmap.PAGESIZE
        n_bytes = array.ctypes.data + array.nbytes - first
        advise(ctypes.c_void_p(first), ctypes.c_size_t(n_bytes), mmap.MADV_NOHUGEPAGE)
    array.resize(shape, refcheck=False)
    array.fill(0)
    return array


def resize(array: np.ndarray, n_rows: int) -> None:
    """Append rows of zeros to an array that owns its memory, or remove the last rows."""
    array.resize((n_rows, *array.shape[1:]), refcheck=False)


def inherit(array: np.ndarray, ancestor: np.ndarray) -> None:
    """Replace each row by that of its ancestor, in place: ``array[:] = array[ancestor]``.

    If the number of rows grows, old rows must keep their indices; if it shrinks, their order.

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
    # In an order in which no row is overwritten before its descendants have been copied.
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
    """Permute the rows in place."""
    columns = array.reshape(len(array), -1)  # a view: arrays that own their memory are in C order
    step = max(1, CHUNK_VALUES // max(1, len(array)))
    for at in range(0, columns.shape[1], step):
        columns[:, at : at + step] = columns[order, at : at + step]


def give_back() -> None:
    """Return free memory to the system, where its allocator is known to retain it.

    glibc retains freed memory per thread, and the fragments that growing arrays leave.
    """
    if trim := _of_libc("malloc_trim"):
        trim(0)


@cache
def _of_libc(name: str) -> Callable[..., int] | None:
    """Return a function of the C library, on Linux and if it exists."""
    return getattr(ctypes.CDLL(None), name, None) if sys.platform == "linux" else None
