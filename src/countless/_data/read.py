"""Reading a table from a file or from standard input.

Text and Parquet are read by pyarrow, arrays by NumPy; the file's extension gives the format.
"""

import gzip
import hashlib
import io
import sys
import zlib
from collections.abc import Iterator, Set
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from .._errors import InputError
from .._npy import read_npy
from .table import Column, Numbers, Table, numbers_as_words

FORMATS = ("csv", "tsv", "parquet", "npy")

_SUFFIXES = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".npy": "npy",
}
_GZIP_MAGIC = b"\x1f\x8b"


@dataclass(frozen=True)
class TextStyle:
    """How a text table is written.

    Examples
    --------
    >>> TextStyle(delimiter=";", decimal=",").header
    True
    """

    delimiter: str | None = None
    decimal: str = "."
    header: bool = True


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
    format = format or format_of(source)
    name = "standard input" if source == "-" else Path(source).name
    with _opened(source) as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        file.seek(0)
        columns, n_rows = _read_columns(file, name, format, style or TextStyle(), as_text)
    if n_rows == 0 or not columns:
        raise InputError(f"{name} has no {'rows' if columns else 'columns'}")
    columns = with_words(columns, as_text)
    return Table(name, columns, n_rows, format, digest, uniform=format == "npy")


def with_words(columns: dict[str, Column], as_text: Set[str]) -> dict[str, Column]:
    """Convert numbers to text in the given columns."""
    for column in as_text & columns.keys():
        if isinstance(found := columns[column], Numbers):
            columns[column] = numbers_as_words(found)
    return columns


def _read_columns(
    file: io.BufferedIOBase, name: str, format: str, style: TextStyle, as_text: Set[str]
) -> tuple[dict[str, Column], int]:
    if format == "npy":
        return _read_array(file, name)
    need_pyarrow(format)
    if format == "parquet":
        from .arrow import read_parquet

        return read_parquet(file, name, as_text=as_text)
    return parse_text(_unzipped(file.read(), name), name, format, style, as_text)


def need_pyarrow(format: str) -> None:
    """Raise an error that names the extra to install for a format, if it is missing."""
    try:
        from .arrow import read_text  # noqa: F401
    except ModuleNotFoundError as error:
        if error.name != "pyarrow":
            raise
        kind = "Parquet" if format == "parquet" else "text tables"
        raise InputError(f"reading {kind} needs pyarrow: pip install 'countless[table]'") from error


def parse_text(
    text: bytes, name: str, format: str, style: TextStyle, as_text: Set[str]
) -> tuple[dict[str, Column], int]:
    """Parse the text of a CSV or TSV table into columns."""
    from .arrow import check_delimiter, check_text, read_text

    delimiter = style.delimiter or ("\t" if format == "tsv" else ",")
    check_text(text, name)
    if style.delimiter is None:
        check_delimiter(text, name, delimiter)
    return read_text(
        text, name, delimiter=delimiter, decimal=style.decimal, header=style.header, as_text=as_text
    )


def _read_array(file: io.BufferedIOBase, name: str) -> tuple[dict[str, Column], int]:
    try:
        array = read_npy(file)
    except ValueError as error:
        raise InputError(f"{name} is not a usable .npy file: {error}") from error
    if array.ndim != 2:
        raise InputError(f"{name} must hold rows and columns; its shape is {array.shape}")
    dtype = np.float32 if array.dtype == np.float32 else np.float64
    # Column-major from here on, because each column is read several times.
    by_column = np.ascontiguousarray(array.T, dtype=dtype)
    columns: dict[str, Column] = {
        f"column_{j + 1}": Numbers(values) for j, values in enumerate(by_column)
    }
    return columns, array.shape[0]


def format_of(source: str) -> str:
    """Return the format for the extension of a file, or raise an error."""
    if source == "-":
        return "csv"
    path = Path(source.lower().removesuffix(".gz"))
    if path.suffix not in _SUFFIXES:
        raise InputError(
            f"{source}: its extension says no known format; add --format {'|'.join(FORMATS)}"
        )
    return _SUFFIXES[path.suffix]


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
