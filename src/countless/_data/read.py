"""Reading a table from a file or from standard input; `FORMATS` has the readers."""

import hashlib
import io
import sys
from collections.abc import Iterator, Set
from contextlib import contextmanager
from pathlib import Path

from .._errors import InputError
from .._formats import FORMATS, TextStyle, format_of
from .part import with_words
from .table import Table


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
    format : {'csv', 'tsv', 'parquet', 'npy'}, optional
        By default given by the file's extension; standard input is CSV.
    style : TextStyle, optional
        Delimiter, decimal point and header of a text table. By default the delimiter is the
        format's, the decimal point is a point, and the first line names the columns.
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
    name = "standard input" if source == "-" else Path(source).name
    with _opened(source) as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        file.seek(0)
        columns, n_rows = reader.read(file, name, chosen, style or TextStyle(), as_text)
    if n_rows == 0 or not columns:
        raise InputError(f"{name} has no {'rows' if columns else 'columns'}")
    columns = with_words(columns, as_text)
    return Table(name, columns, n_rows, chosen.name, digest, uniform=chosen.uniform)


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
