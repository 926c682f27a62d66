"""The reader of text tables: CSV and TSV, plain or compressed.

A table is parsed as one block, so that the type of a column is inferred from all of its rows and
not from the first ones; out of core, by blocks of rows.
"""

import gzip
import io
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from pyarrow import csv

from .._errors import InputError, shift_rows
from .._formats import Format, TextStyle
from . import part
from .arrow import Columns, columns_of, one_line_errors
from .npy import FlatFile
from .part import Tables, one_line, with_words
from .table import Table, shortest

MISSING_TEXTS = ("", "NA", "N/A", "NaN", "nan", "null", "NULL", "None", "?")

_LARGEST_BLOCK = 2**31 - 1  # pyarrow counts the bytes of a block in 32 bits
_OTHER_DELIMITERS = {";": "';'", "\t": "tab", "|": "'|'", ",": "','"}
_GZIP_MAGIC = b"\x1f\x8b"
# A line and its end; a line break between quotes does not end it.
_LINE = re.compile(rb'((?:[^"\r\n]+|"[^"]*"?)*)(\r\n|\n|\r|\Z)')


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
        with one_line(self.path.name), self.path.open("rb") as raw:
            zipped = is_gzip(raw.peek(2))
            file = gzip.GzipFile(fileobj=raw) if zipped else raw
            limits = part.LIMITS
            yield from text_tables(
                iter(lambda: file.read(limits.piece_bytes), b""),
                self.path.name,
                self.format,
                self.style,
                limits.rows,
                as_text,
                limits.text_bytes,
            )


def read(
    file: io.BufferedIOBase, name: str, format: Format, style: TextStyle, as_text: Set[str]
) -> Columns:
    """Read a text table."""
    return parse_text(_unzipped(file.read(), name), name, format, style, as_text)


def parts(path: Path, format: Format, style: TextStyle) -> list[TextPart]:
    """Return the one part of a text table."""
    return [TextPart(path, format, style)]


def extend(
    file: io.BufferedIOBase,
    name: str,
    format: Format,
    style: TextStyle,
    columns: Mapping[str, np.ndarray],
) -> bytes:
    """Return the text with more columns of numbers; NaN is an empty cell.

    Examples
    --------
    >>> from countless._formats import FORMATS
    >>> file = io.BytesIO(b'a;b\\r\\n"1;5";x')
    >>> extend(file, "t", FORMATS["csv"], TextStyle(";", ","), {"c": np.array([0.5])})
    b'a;b;c\\r\\n"1;5";x;0,5'
    """
    delimiter = style.delimiter or format.delimiter
    cells = [map(_cell(style.decimal, delimiter), values.tolist()) for values in columns.values()]
    more = [delimiter.join(row).encode() for row in zip(*cells, strict=True)]
    if style.header:
        more.insert(0, delimiter.join(columns).encode())
    found = [match.groups() for match in _LINE.finditer(_unzipped(file.read(), name))]
    if sum(bool(line) for line, _ in found) != len(more):
        raise InputError(f"the lines of {name} cannot be told apart, for lack of regular quotes")
    left = iter(more)
    add = delimiter.encode()
    return b"".join(line + add + next(left) + end if line else end for line, end in found)


def _cell(decimal: str, delimiter: str) -> Callable[[float], str]:
    def cell(value: float) -> str:
        text = "" if np.isnan(value) else shortest(value).replace(".", decimal)
        return f'"{text}"' if delimiter in text else text

    return cell


def parse_text(
    text: bytes, name: str, format: Format, style: TextStyle, as_text: Set[str]
) -> Columns:
    """Parse the text of a CSV or TSV table into columns."""
    delimiter = style.delimiter or format.delimiter
    check_text(text, name)
    if style.delimiter is None:
        check_delimiter(text, name, delimiter)
    return read_text(
        text, name, delimiter=delimiter, decimal=style.decimal, header=style.header, as_text=as_text
    )


def read_text(
    text: bytes, name: str, *, delimiter: str, decimal: str, header: bool, as_text: Set[str]
) -> Columns:
    """Parse a delimited text table.

    Examples
    --------
    >>> columns, n_rows = read_text(
    ...     b"a,b\\n1,x\\n2,?\\n", "t", delimiter=",", decimal=".", header=True, as_text=set()
    ... )
    >>> columns["b"].words()
    ['x', '']
    """
    if header and b"\n" not in text.strip() and b"\r" not in text.strip():
        raise InputError(f"{name} has no rows, only a line of column names")
    block = min(max(len(text) + 1, 1024), _LARGEST_BLOCK)
    with one_line_errors(name, n_header=int(header)):
        table = csv.read_csv(
            pa.BufferReader(text),
            read_options=csv.ReadOptions(
                use_threads=False, block_size=block, autogenerate_column_names=not header
            ),
            parse_options=csv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
            convert_options=csv.ConvertOptions(
                null_values=list(MISSING_TEXTS),
                strings_can_be_null=True,
                # No text is parsed as Boolean: 'true' is text, at fit and at predict.
                true_values=[],
                false_values=[],
                decimal_point=decimal,
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
    records = _records(pieces, name)
    header = next(records, b"") if style.header else b""
    first_row: int = 0
    block: list[bytes] = []

    def parse(block: list[bytes]) -> Table:
        with shift_rows(first_row):
            text = header + b"".join(block)
            columns, n_rows = parse_text(text, name, format, style, as_text)
        return Table(name, with_words(columns, as_text), n_rows, format.name)

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
        if len(rest) > part.LIMITS.record_bytes:
            raise InputError(f"{name}: line {n_records + 1} does not end; is it a text table?")
    if rest.strip():
        yield rest


def check_text(text: bytes, name: str) -> None:
    """Reject input that is not UTF-8 text.

    Examples
    --------
    >>> check_text(b"a,b", "t.csv")
    """
    if text.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise InputError(f"{name} is UTF-16 text; save it as UTF-8")
    if not text.strip():
        raise InputError(f"{name} is empty")
    if (at := text.find(b"\0")) >= 0:
        line = text.count(b"\n", 0, at) + 1
        raise InputError(f"{name} is not a text table: line {line} holds a zero byte")


def check_delimiter(text: bytes, name: str, delimiter: str) -> None:
    """Reject a first line that another common delimiter would split.

    Examples
    --------
    >>> check_delimiter(b"a,b", "t.csv", ",")
    """
    first = text.strip().partition(b"\n")[0].rstrip().decode(errors="replace")
    for other, spelled in _OTHER_DELIMITERS.items():
        if other in first and delimiter not in first:
            raise InputError(
                f"{name} has one column only, {first!r}; "
                f"if cells are separated by {spelled}, say --delimiter {spelled}"
            )


def _check_header(names: list[str], name: str) -> None:
    # Integers are common column names (years, positions); fractions are data.
    if names and all(_is_number(label) for label in names) and any("." in n for n in names):
        raise InputError(f"{name}: the first line holds data, not column names; say --no-header")


def _is_number(text: str) -> bool:
    return re.fullmatch(r"\s*[+-]?\d*\.?\d+(e[+-]?\d+)?\s*", text, re.IGNORECASE) is not None


def is_gzip(raw: bytes) -> bool:
    """Whether bytes are the start of gzip data."""
    return raw.startswith(_GZIP_MAGIC)


def _unzipped(raw: bytes, name: str) -> bytes:
    if not is_gzip(raw):
        return raw
    try:
        return gzip.decompress(raw)
    except (EOFError, OSError, zlib.error) as error:
        raise InputError(f"{name} is damaged gzip data: {error}") from error
