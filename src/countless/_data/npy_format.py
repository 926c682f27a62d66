"""The reader of arrays: ``.npy`` files of one table of numbers."""

import io
from collections.abc import Sequence, Set
from pathlib import Path
from typing import NamedTuple

import numpy as np

from .._data.npy import read_npy
from .._errors import InputError
from .._formats import Format, TextStyle
from . import part
from .npy import FlatFile, npy_table
from .part import Tables, batch_rows, one_line, with_words
from .table import Column, Contents, Numbers, Table


class ArrayPart(NamedTuple):
    """Some rows of an ``.npy`` file."""

    flat: FlatFile
    start: int
    stop: int

    @property
    def path(self) -> Path:
        """The file."""
        return self.flat.path

    def tables(
        self, columns: Sequence[str] | None = None, as_text: Set[str] = frozenset()
    ) -> Tables:
        """Yield the rows in blocks; an array has no text."""
        step = batch_rows(self.flat.shape[1])
        for at in range(self.start, self.stop, step):
            with one_line(self.flat.path.name):
                rows = self.flat.read(at, min(at + step, self.stop))
            every = {f"column_{j + 1}": values for j, values in enumerate(rows.T)}
            chosen: dict[str, Column] = {
                name: Numbers(values)
                for name, values in every.items()
                if columns is None or name in columns
            }
            chosen = with_words(chosen, as_text)
            yield at, Table(self.flat.path.name, chosen, len(rows), "npy", uniform=True)


def read(
    file: io.BufferedIOBase, name: str, format: Format, style: TextStyle, as_text: Set[str]
) -> Contents:
    """Read an array as columns of numbers."""
    try:
        array = read_npy(file)
    except ValueError as error:
        raise InputError(f"{name} is not a usable .npy file: {error}") from error
    if array.ndim != 2:
        raise InputError(f"{name} must hold rows and columns; its shape is {array.shape}")
    dtype = np.float32 if array.dtype == np.float32 else np.float64
    # Column-major from here on, because each column is read several times.
    by_column = np.ascontiguousarray(array.T, dtype=dtype)
    columns: dict[str, Column] = {
        f"column_{j + 1}": Numbers(values) for j, values in enumerate(by_column)
    }
    return Contents(columns, array.shape[0])


def parts(path: Path, format: Format, style: TextStyle) -> list[ArrayPart]:
    """Return the parts of an array."""
    with one_line(path.name):
        file = npy_table(path)
    n_rows, n_columns = file.shape
    step = max(batch_rows(n_columns), part.LIMITS.part_values // n_columns)
    return [ArrayPart(file, at, min(at + step, n_rows)) for at in range(0, n_rows, step)]
