"""Out-of-core tables, in parts that are read as small tables.

A part describes where some rows are stored. It is small, so it can be sent to any machine with
access to the same storage. Rows are numbered from 0 here, and from 1 in errors.
"""

import gzip
import hashlib
from collections.abc import Iterable, Iterator, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from .._errors import InputError, shift_rows
from .read import TextStyle, format_of, is_gzip, need_pyarrow, parse_text, with_words
from .stored import FlatFile, find_table
from .table import Column, Numbers, Table

# Maximum rows and values, or bytes of text, in memory at once.
BATCH_ROWS, BATCH_VALUES, BATCH_BYTES = 2**16, 2**22, 2**26
PART_VALUES = 2**22  # values in a part of an array, which is read by one task
PIECE_BYTES = 2**20
LONGEST_RECORD = 2**26

Tables = Iterator[tuple[int, Table]]  # the position of the first row, and the rows


class ArrayPart(NamedTuple):
    """Some rows of an ``.npy`` file."""

    file: FlatFile
    start: int
    stop: int

    def tables(
        self, columns: Sequence[str] | None = None, as_text: Set[str] = frozenset()
    ) -> Tables:
        """Yield the rows in blocks; an array has no text."""
        step = batch_rows(self.file.shape[1])
        for at in range(self.start, self.stop, step):
            with _one_line(self.file.path.name):
                rows = self.file.read(at, min(at + step, self.stop))
            every = {f"column_{j + 1}": values for j, values in enumerate(rows.T)}
            chosen: dict[str, Column] = {
                name: Numbers(values)
                for name, values in every.items()
                if columns is None or name in columns
            }
            chosen = with_words(chosen, as_text)
            yield at, Table(self.file.path.name, chosen, len(rows), "npy", uniform=True)


class ParquetPart(NamedTuple):
    """One row group of a Parquet file."""

    path: Path
    group: int
    start: int
    stop: int

    def tables(
        self, columns: Sequence[str] | None = None, as_text: Set[str] = frozenset()
    ) -> Tables:
        """Yield some columns of the rows in blocks."""
        import pyarrow as pa
        from pyarrow import parquet

        from .arrow import columns_of, one_line_errors

        at, name = self.start, self.path.name
        with one_line_errors(name), parquet.ParquetFile(self.path) as file:
            n_columns = len(file.schema_arrow.names if columns is None else columns)
            batches = file.iter_batches(
                batch_rows(n_columns), row_groups=[self.group], columns=columns, use_threads=False
            )
            for batch in batches:
                table = pa.Table.from_batches([batch])
                found, n_rows = columns_of(table, table.column_names, name, as_text)
                yield at, Table(name, with_words(found, as_text), n_rows, "parquet")
                at += n_rows


class TextPart(NamedTuple):
    """A whole text table; row offsets are unknown before it is read."""

    path: Path
    format: str
    style: TextStyle

    def tables(
        self, columns: Sequence[str] | None = None, as_text: Set[str] = frozenset()
    ) -> Tables:
        """Yield the rows in blocks, with all columns."""
        with _one_line(self.path.name), self.path.open("rb") as raw:
            zipped = is_gzip(raw.peek(2))
            file = gzip.GzipFile(fileobj=raw) if zipped else raw
            pieces = iter(lambda: file.read(PIECE_BYTES), b"")
            yield from text_tables(
                pieces, self.path.name, self.format, self.style, BATCH_ROWS, as_text, BATCH_BYTES
            )


Part = ArrayPart | ParquetPart | TextPart


@dataclass(frozen=True)
class Source:
    """A table in storage.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import numpy as np
    >>> path = pathlib.Path(tempfile.mkdtemp(), "t.npy")
    >>> np.save(path, np.eye(3))
    >>> source = open_source(str(path))
    >>> [(first, table.n_rows) for first, table in source.tables(["column_2"])]
    [(0, 3)]
    """

    path: Path
    format: str
    parts: list[Part]

    @property
    def name(self) -> str:
        """The name of the table."""
        return self.path.name

    def tables(
        self, columns: Sequence[str] | None = None, as_text: Set[str] = frozenset()
    ) -> Tables:
        """Yield the table in blocks of rows; no ``columns`` means all of them."""
        for part in self.parts:
            yield from part.tables(columns, as_text)

    def digest(self) -> str:
        """Return the SHA-256 of the file, or of the names and digests of a folder's files."""
        files = sorted({part.path for part in self.parts if isinstance(part, ParquetPart)})
        if len(files) < 2:
            return _digest(files[0] if files else self.path)
        lines = [f"{_digest(file)} {file.relative_to(self.path).as_posix()}\n" for file in files]
        return hashlib.sha256("".join(lines).encode()).hexdigest()


def batch_rows(n_columns: int) -> int:
    """Return the number of rows of ``n_columns`` columns in memory at once.

    Examples
    --------
    >>> batch_rows(8), batch_rows(4096)
    (65536, 1024)
    """
    return max(1, min(BATCH_ROWS, BATCH_VALUES // max(n_columns, 1)))


def open_source(path: str, format: str | None = None, style: TextStyle | None = None) -> Source:
    """Find the parts of a table: a text, Parquet or npy file, or a folder of Parquet files."""
    place = Path(path).resolve()  # absolute, so that it is valid in another working directory
    if not place.exists():
        raise InputError(f"cannot read {path}: there is no such file")
    format = "parquet" if place.is_dir() else format or format_of(path)
    if format == "npy":
        return Source(place, format, _array_parts(place))
    need_pyarrow(format)
    if format == "parquet":
        return Source(place, format, _parquet_parts(place))
    return Source(place, format, [TextPart(place, format, style or TextStyle())])


def text_tables(
    pieces: Iterable[bytes],
    name: str,
    format: str,
    style: TextStyle,
    block_rows: int,
    as_text: Set[str] = frozenset(),
    block_bytes: int | None = None,
) -> Tables:
    """Parse text that arrives in chunks of any size as tables of ``block_rows`` rows.

    Fewer rows if these would exceed ``block_bytes``. The set ``as_text`` may grow meanwhile.

    Examples
    --------
    >>> pieces = [b"a,b\\n1,", b"2\\n3,4\\n5,", b"6"]
    >>> tables = text_tables(pieces, "t", "csv", TextStyle(), block_rows=2)
    >>> [(first, table.numbers("b").tolist()) for first, table in tables]
    [(0, [2.0, 4.0]), (2, [6.0])]
    """
    records = _records(pieces, name)
    header = next(records, b"") if style.header else b""
    first_row: int = 0
    block: list[bytes] = []

    def parse(block: list[bytes]) -> Table:
        with shift_rows(first_row):
            text = header + b"".join(block)
            columns, n_rows = parse_text(text, name, format, style, as_text)
        return Table(name, with_words(columns, as_text), n_rows, format)

    size = 0
    for record in records:
        block.append(record)
        size += len(record)
        if len(block) == block_rows or (block_bytes is not None and size >= block_bytes):
            table = parse(block)
            yield first_row, table
            first_row, block, size = first_row + table.n_rows, [], 0
    if block or first_row == 0:
        yield first_row, parse(block)


def _records(pieces: Iterable[bytes], name: str) -> Iterator[bytes]:
    """Split text into records; a line break inside a quoted cell does not end a record."""
    rest, n_records = b"", 0
    for piece in pieces:
        *lines, rest = (rest + piece).split(b"\n")
        open_record = b""
        for line in lines:
            record = open_record + line + b"\n"
            if record.count(b'"') % 2:
                open_record = record
            else:
                open_record = b""
                if record.strip():
                    n_records += 1
                    yield record
        rest = open_record + rest
        if len(rest) > LONGEST_RECORD:
            raise InputError(f"{name}: line {n_records + 1} does not end; is it a text table?")
    if rest.strip():
        yield rest


def _array_parts(path: Path) -> list[Part]:
    with _one_line(path.name):
        file = find_table(path)
    if not isinstance(file, FlatFile):
        raise InputError(f"{path} is read in blocks only if its name ends in .npy")
    n_rows, n_columns = file.shape
    step = max(batch_rows(n_columns), PART_VALUES // n_columns)
    return [ArrayPart(file, at, min(at + step, n_rows)) for at in range(0, n_rows, step)]


def _parquet_parts(path: Path) -> list[Part]:
    from pyarrow import dataset, parquet

    from .arrow import one_line_errors

    with one_line_errors(path.name):
        files = [Path(file) for file in dataset.dataset(path, format="parquet").files]
        parts: list[Part] = []
        first_row, first = 0, None
        for file in files:
            with parquet.ParquetFile(file) as opened:
                first = first or opened.schema_arrow
                if not opened.schema_arrow.equals(first):
                    raise InputError(f"{file.name} has other columns than {files[0].name}")
                for group in range(opened.metadata.num_row_groups):
                    stop = first_row + opened.metadata.row_group(group).num_rows
                    if stop > first_row:
                        parts.append(ParquetPart(file, group, first_row, stop))
                    first_row = stop
    if not parts:
        raise InputError(f"{path} has no rows" if files else f"{path} holds no Parquet file")
    return parts


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def _one_line(name: str) -> Iterator[None]:
    try:
        yield
    except InputError:
        raise
    except (ValueError, OSError, EOFError) as error:
        raise InputError(f"cannot read {name}: {' '.join(str(error).split())}") from error
