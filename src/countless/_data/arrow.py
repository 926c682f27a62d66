"""Tables of pyarrow as columns of numbers and text, and its errors in one line."""

import re
from collections import Counter
from collections.abc import Iterator, Set
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyarrow as pa

from .._errors import InputError
from .table import Column, Numbers, Unusable, Words, counted

_RAGGED = re.compile(r"Row #(\d+): Expected (\d+) columns, got (\d+)")

Columns = tuple[dict[str, Column], int]


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
