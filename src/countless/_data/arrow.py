"""Text and Parquet tables through pyarrow, converted to columns of numbers and text.

A text table is parsed as one block, so that the type of a column is inferred from all of its rows
and not from the first ones.
"""

import io
import re
from collections import Counter
from collections.abc import Iterator, Set
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import csv, parquet

from .._errors import InputError
from .table import Column, Numbers, Unusable, Words, counted

MISSING_TEXTS = ("", "NA", "N/A", "NaN", "nan", "null", "NULL", "None", "?")

_LARGEST_BLOCK = 2**31 - 1  # pyarrow counts the bytes of a block in 32 bits
_RAGGED = re.compile(r"Row #(\d+): Expected (\d+) columns, got (\d+)")
_OTHER_DELIMITERS = {";": "';'", "\t": "tab", "|": "'|'", ",": "','"}

Columns = tuple[dict[str, Column], int]


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


def read_parquet(file: io.BufferedIOBase, name: str, *, as_text: Set[str]) -> Columns:
    """Read a Parquet file.

    Examples
    --------
    >>> import io
    >>> import pyarrow as pa
    >>> from pyarrow import parquet
    >>> file = io.BytesIO()
    >>> parquet.write_table(pa.table({"a": [1, None]}), file)
    >>> _ = file.seek(0)
    >>> read_parquet(file, "t", as_text=set())[0]["a"].values
    array([ 1., nan])
    """
    with one_line_errors(name):
        table = parquet.ParquetFile(file).read()
    return columns_of(table, table.column_names, name, as_text)


@contextmanager
def one_line_errors(name: str, n_header: int = 0) -> Iterator[None]:
    """Convert pyarrow's errors about a table to one line."""
    try:
        yield
    except UnicodeDecodeError as error:
        raise InputError(f"{name}: the column names are not UTF-8 text") from error
    except (pa.ArrowException, OSError) as error:
        if ragged := _RAGGED.search(str(error)):
            row, expected, found = (int(number) for number in ragged.groups())
            message = f"row {row - n_header} has {counted(found, 'cell')}, expected {expected}"
        else:
            message = " ".join(str(error).split())
        raise InputError(f"{name}: {message}") from error


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


def columns_of(table: Any, names: list[str], source: str, as_text: Set[str]) -> Columns:
    """Convert a pyarrow table to columns of numbers and text.

    Examples
    --------
    >>> columns, n_rows = columns_of(pa.table({"a": [1.5]}), ["a"], "t", set())
    >>> columns["a"].values
    array([1.5])
    """
    names = [label or f"column_{j + 1}" for j, label in enumerate(names)]
    for label, count in Counter(names).items():
        if count > 1:
            places = [str(j + 1) for j, other in enumerate(names) if other == label]
            raise InputError(
                f"{source}: {count} columns are named {label!r} (columns {', '.join(places)})"
            )
    columns = {
        label: _column(table.column(j), label, label in as_text) for j, label in enumerate(names)
    }
    return columns, table.num_rows


def _column(chunks: Any, name: str, as_text: bool) -> Column:
    """Convert a pyarrow column to numbers or text, by its type."""
    types = pa.types
    if as_text and types.is_integer(chunks.type):
        chunks = chunks.cast(pa.string())  # exact, where a float would round long identifiers
    kind = chunks.type
    if types.is_null(kind):
        return Unusable("nothing", len(chunks))
    if types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind):
        keep = kind if types.is_float32(kind) else pa.float64()
        values = chunks.cast(keep, safe=False).to_numpy(zero_copy_only=False)
        return Numbers(np.asarray(values, dtype=keep.to_pandas_dtype()))
    if types.is_boolean(kind) or (types.is_dictionary(kind) and _is_text(kind.value_type)):
        chunks = chunks.cast(pa.string())
    elif types.is_binary(kind):
        raise InputError(f"column {name!r} is not UTF-8 text")
    elif not _is_text(kind):
        what = "dates" if types.is_temporal(kind) else f"values of type {kind}"
        return Unusable(what, chunks.null_count)
    encoded = chunks.combine_chunks().dictionary_encode()
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.combine_chunks()
    codes = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    return Words(codes, tuple(encoded.dictionary.to_pylist()))


def _is_text(kind: Any) -> bool:
    return pa.types.is_string(kind) or pa.types.is_large_string(kind)
