"""Reading a table from a file or from standard input; `FORMATS` has the readers."""

import hashlib
import io
import sys
from collections.abc import Iterator, Mapping, Set
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from .._errors import InputError
from .._formats import FORMATS, TextStyle, format_of
from .part import with_words
from .table import Filled, Table
from .write import Content


def read_table(
    source: str,
    *,
    format: str | None = None,
    style: TextStyle | None = None,
    as_text: Set[str] = frozenset(),
) -> Table:
    """Read a table.

    Parameters
    ----------
    source : str
        A path, or ``'-'`` for standard input.
    format : str, optional
        A key of `FORMATS`; by default given by the file's extension; standard input is CSV.
    style : TextStyle, optional
        How the file is written; what it does not say is guessed.
    as_text : set of str
        Columns whose values are text even where they look like numbers.

    Returns
    -------
    Table

    Raises
    ------
    InputError
        One line that describes the error, with its row or column.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp(), "pets.csv")
    >>> _ = path.write_text("kind,weight\\ncat,4.1\\ndog,\\n")
    >>> table = read_table(str(path))
    >>> table.numbers("weight")
    array([4.1, nan])
    >>> table.words("kind").levels
    ('cat', 'dog')
    """
    if not source:
        raise InputError("the name of the data is empty")
    if source != "-" and Path(source).is_dir():
        raise InputError(f"{source} is a directory, not a table")
    chosen = FORMATS[format or format_of(source)]
    reader = chosen.reader()
    style = style or TextStyle()
    name = "standard input" if source == "-" else Path(source).name
    with _opened(source) as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        file.seek(0)
        found = reader.read(file, name, chosen, style, as_text)
    columns, n_rows = found.columns, found.n_rows
    if n_rows == 0 or not columns:
        raise InputError(f"{name} has no {'rows' if columns else 'columns'}")
    columns = with_words(columns, as_text)
    path = None if source == "-" else Path(source)
    return Table(
        name,
        columns,
        n_rows,
        chosen.name,
        digest,
        chosen.uniform,
        path,
        *found[2:],
    )


def edited(table: Table, added: Mapping[str, np.ndarray], filled: Filled | None = None) -> Content:
    """Return the file of a table with more columns of numbers, and some cells filled.

    All else stays as it is.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp(), "pets.csv")
    >>> _ = path.write_text("kind,weight\\ncat,4.10\\ndog,\\n")
    >>> edited(read_table(str(path)), {"cluster": np.array([0.0, 1.0])}, {1: {"weight": 30.0}})
    b'kind,weight,cluster\\ncat,4.10,0\\ndog,30,1\\n'
    """
    assert table.path is not None, "standard input is gone"
    added = {_free_name(name, table): values for name, values in added.items()}
    with _opened(str(table.path)) as file:
        if hashlib.file_digest(file, "sha256").hexdigest() != table.sha256:
            raise InputError(f"{table.source} has changed since it was read")
        file.seek(0)
        return FORMATS[table.format].reader().edit(file, table.source, table, added, filled or {})


def _free_name(name: str, table: Table) -> str:
    """Return the name, with underscores if the table has a column of that name."""
    while name in table.columns:
        name += "_"
    return name


@contextmanager
def _opened(source: str) -> Iterator[io.BytesIO | io.BufferedReader]:
    """Open a source so that it can be read twice: once for its digest, once to parse it."""
    if source == "-":
        if sys.stdin is None or sys.stdin.closed:
            raise InputError("standard input is closed; name a file instead of '-'")
        yield io.BytesIO(sys.stdin.buffer.read())
        return
    try:
        with Path(source).open("rb") as file:
            yield file
    except OSError as error:
        raise InputError(f"cannot read {source}: {error.strerror or error}") from error
