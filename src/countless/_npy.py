"""Reading one ``.npy`` array whose size and dtype are checked before memory is allocated."""

import io
from math import prod
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
