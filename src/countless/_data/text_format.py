"""The reader of text tables: CSV and TSV, plain or compressed.

A table is parsed as one block, so that the type of a column is inferred from all of its rows and
not from the first ones; out of core, by blocks of rows.
"""

import io
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from pyarrow import csv

from .._errors import InputError, shift_rows
from .._formats import Format, TextStyle
from . import part
from .arrow import columns_of, one_line_errors
from .compressed import decompressed
from .npy import FlatFile
from .part import Tables, one_line, with_words
from .quantities import Notation, decimal_commas, typed
from .table import (
    DATE,
    DATE_TIME,
    Column,
    Columns,
    Contents,
    Filled,
    Numbers,
    Table,
    Words,
    what_unit,
    written,
)
from .text_style import MISSING_TEXTS, as_utf8, guess_delimiter, guess_encoding, guesses

_LARGEST_BLOCK = 2**31 - 1  # pyarrow counts the bytes of a block in 32 bits
# A line and its end; a line break between quotes does not end it.
_LINE = re.compile(r'((?:[^"\r\n]+|"[^"]*"?)*)(\r\n|\n|\r|\Z)')


class TextPart(NamedTuple):
    """A whole text table; row offsets are unknown before it is read."""

    path: Path
    format: Format
    style: TextStyle
    start: int = 0
    stop: int | None = None  # unknown before the table is read
    flat: FlatFile | None = None

    def tables(
        self, columns: Sequence[str] | None = None, as_text: Set[str] = frozenset()
    ) -> Tables:
        """Yield the rows in blocks, with all columns."""
        name, limits = self.path.name, part.LIMITS
        with one_line(name), self.path.open("rb") as raw, decompressed(raw, name) as file:
            yield from text_tables(
                iter(lambda: file.read(limits.piece_bytes), b""),
                name,
                self.format,
                self.style,
                limits.rows,
                as_text,
                limits.text_bytes,
            )


def read(
    file: io.BufferedIOBase, name: str, format: Format, style: TextStyle, as_text: Set[str]
) -> Contents:
    """Read a text table; what its style does not say is guessed."""
    text, encoding = _decoded(file, name, style)
    check_text(text, name)
    delimiter = style.delimiter or guess_delimiter(text, format, style.header)
    found = style._replace(encoding=encoding, delimiter=delimiter)
    columns, n_rows, found = parse_text(text, name, found, as_text)
    return Contents(columns, n_rows, found, guesses(found, style, format))


def parts(path: Path, format: Format, style: TextStyle) -> list[TextPart]:
    """Return the one part of a text table."""
    return [TextPart(path, format, style)]


def edit(
    file: io.BufferedIOBase,
    name: str,
    table: Table,
    added: Mapping[str, np.ndarray],
    filled: Filled,
) -> bytes:
    """Return the text with more columns of numbers, and some cells replaced.

    All other cells are unchanged, to the character. NaN is an empty cell.

    Examples
    --------
    >>> columns = {"a": Words(np.array([-1]), ()), "b": Numbers(np.array([1.5]))}
    >>> table = Table("t", columns, 1, style=TextStyle(";", ","))
    >>> file = io.BytesIO(b'a;b\\r\\n;1,50')
    >>> edit(file, "t", table, {"c": np.array([0.5])}, {0: {"a": "x"}})
    b'a;b;c\\r\\nx;1,50;0,5'
    """
    style = table.style
    text, encoding = _decoded(file, name, style)
    delimiter, decimal = style.delimiter or ",", style.decimal or "."
    place = {column: j for j, column in enumerate(table.columns)}
    cell = _cell(decimal, delimiter)
    columns = [map(cell, values.tolist()) for values in added.values()]
    more = [delimiter.join(row) for row in zip(*columns, strict=True)]
    if style.header:
        more.insert(0, delimiter.join(added))
    found = [match.groups() for match in _LINE.finditer(text.decode())]
    lines = [at for at, (line, _) in enumerate(found) if line]
    if len(lines) != table.n_rows + style.header:
        raise InputError(f"the lines of {name} cannot be told apart, for lack of regular quotes")
    for row, cells in filled.items():
        at = lines[row + style.header]
        line, end = found[at]
        parts = _cells(line, delimiter)
        if len(parts) != len(place):
            raise InputError(
                f"the cells of {name} cannot be told apart, for lack of regular quotes"
            )
        for column, value in cells.items():
            if isinstance(value, str) and _has_point(table.columns[column]):
                value = value.replace(".", decimal)
            parts[place[column]] = cell(value)
        found[at] = (delimiter.join(parts), end)
    if added:
        for at, row_cells in zip(lines, more, strict=True):
            line, end = found[at]
            found[at] = (f"{line}{delimiter}{row_cells}", end)
    return "".join(chain.from_iterable(found)).encode(encoding)


def _has_point(column: Column) -> bool:
    """Whether a column holds numbers with a unit, which may have a decimal point."""
    return isinstance(column, Numbers) and column.unit not in (DATE, DATE_TIME)


def _decoded(file: io.BufferedIOBase, name: str, style: TextStyle) -> tuple[bytes, str]:
    """Return the text in UTF-8, and the encoding that it has in the file."""
    with decompressed(file, name) as plain:
        raw = plain.read()
    encoding = style.encoding or guess_encoding(raw, complete=True)
    return b"".join(as_utf8([raw], encoding, name)), encoding


def _cells(line: str, delimiter: str) -> list[str]:
    """Split a line at the delimiters that are not between quotes."""
    mark = re.escape(delimiter)
    cells = re.findall(rf'((?:[^"{mark}]+|"[^"]*"?)*)({mark}|\Z)', line)
    return [cell for cell, end in cells if end or cell] + ([""] if line.endswith(delimiter) else [])


def _cell(decimal: str, delimiter: str) -> Callable[[float | str], str]:
    """Return the function that writes a cell; the cells of a text are not changed."""

    def cell(value: float | str) -> str:
        if isinstance(value, float):
            value = "" if np.isnan(value) else written(value).replace(".", decimal)
        if delimiter in value or '"' in value or "\n" in value or "\r" in value:
            value = '"' + value.replace('"', '""') + '"'
        return value

    return cell


def parse_text(
    text: bytes, name: str, style: TextStyle, as_text: Set[str]
) -> tuple[Columns, int, TextStyle]:
    """Parse the UTF-8 text of a table, with a known delimiter, into columns.

    If the decimal point is not known, it is a comma where that makes numbers of text, and leaves
    all other numbers numbers.
    """
    columns, n_rows = read_text(text, name, style._replace(decimal=style.decimal or "."), as_text)
    words = [column for column in columns.values() if isinstance(column, Words)]
    prefer = style.delimiter == ";"
    found = style._replace(decimal=style.decimal or ".")
    usual = typed(columns, Notation(found.decimal or ".", found.thousands), as_text)
    if style.decimal is None and any(decimal_commas(column, prefer) for column in words):
        found = style._replace(decimal=",")
        columns, _ = read_text(text, name, found, as_text)
        other = typed(columns, Notation(",", found.thousands), as_text)
        if _numeric(usual) <= _numeric(other):
            return other, n_rows, found
    return usual, n_rows, style._replace(decimal=style.decimal or ".")


def _numeric(columns: Columns) -> set[str]:
    return {name for name, column in columns.items() if isinstance(column, Numbers)}


def read_text(text: bytes, name: str, style: TextStyle, as_text: Set[str]) -> tuple[Columns, int]:
    """Parse a delimited text table; quantities that are written as text stay text.

    Examples
    --------
    >>> columns, n_rows = read_text(b"a,b\\n1,x\\n2,?\\n", "t", TextStyle(",", "."), set())
    >>> columns["b"].words()
    ['x', '']
    """
    header = style.header
    if header and b"\n" not in text.strip() and b"\r" not in text.strip():
        raise InputError(f"{name} has no rows, only a line of column names")
    block = min(max(len(text) + 1, 1024), _LARGEST_BLOCK)
    with one_line_errors(name, n_header=int(header)):
        table = csv.read_csv(
            pa.BufferReader(text),
            read_options=csv.ReadOptions(
                use_threads=False, block_size=block, autogenerate_column_names=not header
            ),
            parse_options=csv.ParseOptions(delimiter=style.delimiter, newlines_in_values=True),
            convert_options=csv.ConvertOptions(
                null_values=list(MISSING_TEXTS),
                strings_can_be_null=True,
                # No text is parsed as Boolean: 'true' is text, at fit and at predict.
                true_values=[],
                false_values=[],
                decimal_point=style.decimal,
                column_types={column: pa.string() for column in as_text},
            ),
        )
        names = table.column_names
    if not header:
        names = [""] * len(names)
    _check_header(names, name)
    return columns_of(table, names, name, as_text)


def text_tables(
    pieces: Iterable[bytes],
    name: str,
    format: Format,
    style: TextStyle,
    block_rows: int,
    as_text: Set[str] = frozenset(),
    block_bytes: int | None = None,
) -> Tables:
    """Parse text that arrives in chunks of any size as tables of ``block_rows`` rows.

    Fewer rows if these would exceed ``block_bytes``. The set ``as_text`` may grow meanwhile.

    Examples
    --------
    >>> from countless._formats import FORMATS
    >>> pieces = [b"a,b\\n1,", b"2\\n3,4\\n5,", b"6"]
    >>> tables = text_tables(pieces, "t", FORMATS["csv"], TextStyle(), block_rows=2)
    >>> [(first, table.numbers("b").tolist()) for first, table in tables]
    [(0, [2.0, 4.0]), (2, [6.0])]
    """
    source = iter(pieces)
    start = next(source, b"")
    encoding = style.encoding or guess_encoding(start, complete=False)
    decoded = as_utf8(chain([start], source), encoding, name)
    start = next(decoded, b"")
    delimiter = style.delimiter or guess_delimiter(start, format, style.header)
    found = style._replace(encoding=encoding, delimiter=delimiter)
    records = _records(chain([start], decoded), name)
    header = next(records, b"") if style.header else b""
    first_row: int = 0
    block: list[bytes] = []
    units: dict[str, str] = {}

    def parse(block: list[bytes]) -> Table:
        nonlocal found
        with shift_rows(first_row):
            text = header + b"".join(block)
            check_text(text, name)
            # The decimal point of the first block is that of all.
            columns, n_rows, found = parse_text(text, name, found, as_text)
        _check_units(columns, units)
        notes = guesses(found, style, format)
        columns = with_words(columns, as_text)
        return Table(name, columns, n_rows, format.name, style=found, notes=notes)

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


def _check_units(columns: Columns, units: dict[str, str]) -> None:
    """Raise an error if a column has another unit than in the blocks before; add new ones."""
    for name, column in columns.items():
        if not isinstance(column, Numbers):
            continue
        unit = DATE if column.unit == DATE_TIME else column.unit
        before = units.setdefault(name, unit)
        if unit != before:
            here, there = what_unit(unit), what_unit(before)
            raise InputError(f"column {name!r} holds {there} in some rows, {here} in others")


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
        if len(rest) > part.LIMITS.record_bytes:
            raise InputError(f"{name}: line {n_records + 1} does not end; is it a text table?")
    if rest.strip():
        yield rest


def check_text(text: bytes, name: str) -> None:
    """Reject input that is no text.

    Examples
    --------
    >>> check_text(b"a,b", "t.csv")
    """
    if not text.strip():
        raise InputError(f"{name} is empty")
    if (at := text.find(b"\0")) >= 0:
        line = text.count(b"\n", 0, at) + 1
        raise InputError(f"{name} is not a text table: line {line} holds a zero byte")


def _check_header(names: list[str], name: str) -> None:
    # Integers are common column names (years, positions); fractions are data.
    if names and all(_is_number(label) for label in names) and any("." in n for n in names):
        raise InputError(f"{name}: the first line holds data, not column names; say --no-header")


def _is_number(text: str) -> bool:
    return re.fullmatch(r"\s*[+-]?\d*\.?\d+(e[+-]?\d+)?\s*", text, re.IGNORECASE) is not None
