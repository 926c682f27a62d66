"""Changing how many rows an array has, and their order, without a second one of its size."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from functools import cache

import numpy as np

# Values that are moved at once.
CHUNK_VALUES = 2**16
# Memory of this size is the system's own, never a part of what an allocator keeps.
OWN_BYTES = 2**25 + 2**16


def chunks(array: np.ndarray, n_rows: int | None = None) -> list[slice]:
    """Return slices of some rows each, small beside what they are taken of."""
    n_rows = len(array) if n_rows is None else n_rows
    step = max(1, CHUNK_VALUES // max(1, int(np.prod(array.shape[1:]))))
    return [slice(at, min(at + step, n_rows)) for at in range(0, n_rows, step)]


def growing(shape: tuple[int, ...], dtype) -> np.ndarray:
    """Return an array of zeros that, however small, can grow where it is.

    glibc copies most arrays to make them larger, but moves the pages of those that were born large;
    pages that nothing is written to take no room.
    """
    array = np.empty(max(int(np.prod(shape)), OWN_BYTES // np.dtype(dtype).itemsize), dtype=dtype)
    array.resize(shape, refcheck=False)
    array.fill(0)
    return array


def resize(array: np.ndarray, n_rows: int) -> None:
    """Give an array that owns its values more rows, of zeros, or fewer."""
    array.resize((n_rows, *array.shape[1:]), refcheck=False)


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
    source = np.flatnonzero(stays)
    # No row moves down, so none is overwritten before it has moved.
    for part in chunks(array, len(source)):
        array[part] = array[source[part]]
    resize(array, len(source))


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
    if trim := _trim():
        trim(0)


@cache
def _trim() -> Callable[[int], int] | None:
    if sys.platform != "linux":
        return None
    return getattr(ctypes.CDLL(None), "malloc_trim", None)
