"""The reader of Feather: Arrow tables in a file."""

import io
from collections.abc import Mapping, Set

import numpy as np
import pyarrow as pa
from pyarrow import feather

from .._formats import Format, TextStyle
from .arrow import contents_of, edited_table, one_line_errors
from .table import Contents, Filled, Table


def read(
    file: io.BufferedIOBase, name: str, format: Format, style: TextStyle, as_text: Set[str]
) -> Contents:
    """Read a Feather file.

    Examples
    --------
    >>> from countless._formats import FORMATS
    >>> file = io.BytesIO()
    >>> feather.write_feather(pa.table({"a": [1, None]}), file)
    >>> _ = file.seek(0)
    >>> read(file, "t", FORMATS["feather"], TextStyle(), set()).columns["a"].values
    array([ 1., nan])
    """
    return contents_of(_table(file, name), name, style, as_text)


def edit(
    file: io.BufferedIOBase,
    name: str,
    table: Table,
    added: Mapping[str, np.ndarray],
    filled: Filled,
) -> bytes:
    """Return the table with more columns of numbers, and some cells filled; NaN is null."""
    new = io.BytesIO()
    with one_line_errors(name):
        feather.write_feather(edited_table(_table(file, name), table, added, filled), new)
    return new.getvalue()


def _table(file: io.BufferedIOBase, name: str) -> pa.Table:
    with one_line_errors(name):
        return feather.read_table(pa.BufferReader(file.read()))
