"""The reader of Parquet: a file, or a folder of files with equal columns, by row groups."""

import io
from collections.abc import Iterator, Mapping, Sequence, Set
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from pyarrow import dataset, parquet

from .._errors import InputError
from .._formats import FORMATS, Format, TextStyle
from .arrow import columns_of, contents_of, edited_table, one_line_errors
from .npy import FlatFile
from .part import Tables, batch_rows, with_words
from .table import Contents, Filled, Table


class ParquetPart(NamedTuple):
    """One row group of a Parquet file."""

    path: Path
    group: int
    start: int
    stop: int
    flat: FlatFile | None = None

    def tables(
        self, columns: Sequence[str] | None = None, as_text: Set[str] = frozenset()
    ) -> Tables:
        """Yield some columns of the rows in blocks."""
        at, name = self.start, self.path.name
        for batch in self.batches(columns):
            table = pa.Table.from_batches([batch])
            found, n_rows = columns_of(table, table.column_names, name, as_text)
            yield at, Table(name, with_words(found, as_text), n_rows, "parquet")
            at += n_rows

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """Yield some columns of the rows in blocks, as pyarrow has them."""
        with one_line_errors(self.path.name), parquet.ParquetFile(self.path) as file:
            n_columns = len(file.schema_arrow.names if columns is None else columns)
            yield from file.iter_batches(
                batch_rows(n_columns), row_groups=[self.group], columns=columns, use_threads=False
            )


def read(
    file: io.BufferedIOBase, name: str, format: Format, style: TextStyle, as_text: Set[str]
) -> Contents:
    """Read a Parquet file.

    Examples
    --------
    >>> from countless._formats import FORMATS
    >>> file = io.BytesIO()
    >>> parquet.write_table(pa.table({"a": [1, None]}), file)
    >>> _ = file.seek(0)
    >>> read(file, "t", FORMATS["parquet"], TextStyle(), set()).columns["a"].values
    array([ 1., nan])
    """
    with one_line_errors(name):
        table = parquet.ParquetFile(file).read()
    return contents_of(table, name, style, as_text)


def edit(
    file: io.BufferedIOBase,
    name: str,
    table: Table,
    added: Mapping[str, np.ndarray],
    filled: Filled,
) -> bytes:
    """Return the table with more columns of numbers, and some cells filled; NaN is null.

    Examples
    --------
    >>> file = io.BytesIO()
    >>> parquet.write_table(pa.table({"a": [1, None]}), file)
    >>> from countless._data.table import Numbers
    >>> table = Table("t", {"a": Numbers(np.ones(2))}, 2)
    >>> new = edit(file, "t", table, {"cluster": np.array([0.0, np.nan])}, {1: {"a": 2.0}})
    >>> parquet.read_table(io.BytesIO(new)).to_pydict()
    {'a': [1, 2], 'cluster': [0, None]}
    """
    new = io.BytesIO()
    with one_line_errors(name):
        found = parquet.ParquetFile(file).read()
        parquet.write_table(edited_table(found, table, added, filled), new)
    return new.getvalue()


def parts(path: Path, format: Format, style: TextStyle) -> list[ParquetPart]:
    """Return the row groups of a file, or of all files in a folder, which have equal columns."""
    with one_line_errors(path.name):
        files = [Path(file) for file in dataset.dataset(path, format="parquet").files]
        found: list[ParquetPart] = []
        first_row, first = 0, None
        for file in files:
            with parquet.ParquetFile(file) as opened:
                first = first or opened.schema_arrow
                if not opened.schema_arrow.equals(first):
                    raise InputError(f"{file.name} has other columns than {files[0].name}")
                for group in range(opened.metadata.num_row_groups):
                    stop = first_row + opened.metadata.row_group(group).num_rows
                    if stop > first_row:
                        found.append(ParquetPart(file, group, first_row, stop))
                    first_row = stop
    if not found:
        raise InputError(f"{path} has no rows" if files else f"{path} holds no Parquet file")
    return found


def numeric_blocks(path: Path) -> Iterator[np.ndarray]:
    """Yield the rows of a table of numbers in blocks; raise a ValueError for any other."""
    place, row = path.resolve(), 0
    for part in parts(place, FORMATS["parquet"], TextStyle()):
        for batch in part.batches():
            yield _numbers(batch, path, row)
            row += batch.num_rows


def _numbers(batch: pa.RecordBatch, path: Path, first_row: int) -> np.ndarray:
    types, names = batch.schema.types, batch.schema.names
    is_number = (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean)
    single = all(kind in (pa.float32(), pa.float16()) for kind in types)
    rows = np.empty((batch.num_rows, len(names)), dtype=np.float32 if single else np.float64)
    for j, (column, kind) in enumerate(zip(batch.columns, types, strict=True)):
        if not any(is_kind(kind) for is_kind in is_number):
            raise ValueError(f"column {names[j]!r} of {path} is no number")
        if column.null_count:
            at = first_row + int(np.argmax(column.is_null().to_numpy(zero_copy_only=False)))
            raise ValueError(f"{path} has a missing value: row {at}, column {names[j]!r}")
        rows[:, j] = column.to_numpy(zero_copy_only=False)
    return rows
