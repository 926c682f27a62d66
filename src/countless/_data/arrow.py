"""Tables of pyarrow as columns of numbers and text, and its errors in one line."""

import re
from collections.abc import Iterator, Mapping, Set
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import compute

from .._errors import InputError
from .._formats import TextStyle
from .quantities import Notation, typed
from .table import (
    DATE,
    DATE_TIME,
    PLAIN,
    TIME,
    Column,
    Columns,
    Contents,
    Filled,
    Numbers,
    Table,
    Unusable,
    Words,
    check_names,
    counted,
)

_RAGGED = re.compile(r"Row #(\d+): Expected (\d+) columns, got (\d+)")

_TICKS = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}  # in a second, by the unit of a type


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


def columns_of(table: Any, names: list[str], source: str, as_text: Set[str]) -> tuple[Columns, int]:
    """Convert a pyarrow table to columns of numbers and text.

    Examples
    --------
    >>> columns, n_rows = columns_of(pa.table({"a": [1.5]}), ["a"], "t", set())
    >>> columns["a"].values
    array([1.5])
    """
    names = [label or f"column_{j + 1}" for j, label in enumerate(names)]
    check_names(names, source)
    columns: Columns = {
        label: _column(table.column(j), label, label in as_text) for j, label in enumerate(names)
    }
    return columns, table.num_rows


def _column(chunks: Any, name: str, as_text: bool) -> Column:
    """Convert a pyarrow column to numbers or text, by its type."""
    types = pa.types
    kind = chunks.type
    if types.is_string_view(kind):  # of polars
        chunks = chunks.cast(pa.string())
        kind = chunks.type
    if as_text and (types.is_integer(kind) or types.is_temporal(kind)):
        chunks = chunks.cast(pa.string())  # exact, where a float would round long identifiers
        kind = chunks.type
    if types.is_null(kind):
        return Unusable("nothing", len(chunks))
    if types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind):
        keep = kind if types.is_float32(kind) else pa.float64()
        values = chunks.cast(keep, safe=False).to_numpy(zero_copy_only=False)
        return Numbers(np.asarray(values, dtype=keep.to_pandas_dtype()))
    if types.is_temporal(kind):
        return _days(chunks)
    if types.is_boolean(kind) or (types.is_dictionary(kind) and _is_text(kind.value_type)):
        chunks = chunks.cast(pa.string())
    elif types.is_binary(kind):
        raise InputError(f"column {name!r} is not UTF-8 text")
    elif not _is_text(kind):
        return Unusable(f"values of type {kind}", chunks.null_count)
    encoded = chunks.combine_chunks().dictionary_encode()
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.combine_chunks()
    codes = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    return Words(codes, tuple(encoded.dictionary.to_pylist()))


def _days(chunks: Any) -> Column:
    """Convert dates to days since 1970-01-01; times of day and durations to days."""
    types, kind = pa.types, chunks.type
    if types.is_interval(kind):
        return Unusable(f"values of type {kind}", chunks.null_count)
    if types.is_date(kind):
        days, unit = chunks.cast(pa.date32()).cast(pa.int32()).cast(pa.float64()), DATE
    else:
        ticks = chunks.cast(pa.int32() if types.is_time32(kind) else pa.int64())
        days = compute.divide(ticks.cast(pa.float64(), safe=False), _TICKS[kind.unit] * 86_400.0)
        unit = DATE_TIME if types.is_timestamp(kind) else TIME if types.is_time(kind) else PLAIN
    return Numbers(days.to_numpy(zero_copy_only=False), unit)


def _is_text(kind: Any) -> bool:
    return pa.types.is_string(kind) or pa.types.is_large_string(kind)


def contents_of(table: Any, name: str, style: TextStyle, as_text: Set[str]) -> Contents:
    """Return the contents of a file from a pyarrow table."""
    columns, n_rows = columns_of(table, table.column_names, name, as_text)
    notation = Notation(style.decimal or ".", style.thousands)
    return Contents(typed(columns, notation, as_text), n_rows, style)


def edited_table(found: Any, table: Table, added: Mapping[str, np.ndarray], filled: Filled) -> Any:
    """Return a pyarrow table with more columns of numbers, and some cells filled; NaN is null.

    Filled cells have the type of their column; others are unchanged.
    """
    for j, name in enumerate(table.columns):
        values = {row: cells[name] for row, cells in filled.items() if name in cells}
        if values:
            found = found.set_column(j, name, _filled(found.column(j), values))
    for label, new in added.items():
        array = pa.array(new, from_pandas=True)
        whole = not np.any(new[~np.isnan(new)] % 1)
        found = found.append_column(label, array.cast(pa.int64()) if whole else array)
    return found


def _filled(column: Any, values: Mapping[int, float | str]) -> Any:
    """Return a column with some of its missing values filled."""
    if pa.types.is_string_view(column.type):
        column = column.cast(pa.string())
    kind = column.type
    text = pa.types.is_dictionary(kind) or _is_text(kind)
    fills: list[Any] = [None] * len(column)
    for row, value in values.items():
        fills[row] = value
    if pa.types.is_temporal(kind):
        array = pa.array(fills, pa.string())
    elif text or pa.types.is_boolean(kind):
        array = pa.array([None if v is None else str(v) for v in fills], pa.string())
    else:
        array = pa.array(fills, pa.float64())
        if pa.types.is_integer(kind):
            array = compute.round(array)
    # NaN is missing, too, but not null.
    if pa.types.is_floating(kind):
        column = compute.if_else(compute.is_nan(column), None, column)
    return compute.coalesce(column, array.cast(kind))
