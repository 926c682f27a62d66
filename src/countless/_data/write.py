"""Writing results atomically, and safe from formula injection in spreadsheets."""

import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np

from .. import _files
from .._errors import InputError
from .._files import Content as Content
from .._files import write_folder

# Spreadsheets take a cell that starts so for a formula; some accept the full-width forms.
_FORMULA_STARTS = tuple("=+-@\t\r\n\uff1d\uff0b\uff0d\uff20")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_NEEDS_QUOTES = re.compile('[",\r\n]')


def safe_cell(text: str) -> str:
    """Escape text that a spreadsheet would take for a formula; numbers are unchanged.

    Examples
    --------
    >>> safe_cell("=1+1"), safe_cell("-4.5"), safe_cell("plain")
    ("'=1+1", '-4.5', 'plain')
    """
    if text.startswith(_FORMULA_STARTS) and not _NUMBER.fullmatch(text):
        return "'" + text
    return text


def labels_csv(
    labels: np.ndarray,
    rows: np.ndarray,
    n_rows: int,
    ids: tuple[str, Iterable[str]] | None = None,
    more: Mapping[str, np.ndarray] | None = None,
) -> bytes:
    """Return the labels as CSV: one line per row of the table, in its order.

    Parameters
    ----------
    labels : ndarray of shape (n_used,)
        The cluster of each row that was used.
    rows : ndarray of shape (n_used,)
        The positions of these rows in the table; the other rows get an empty label.
    n_rows : int
        The number of rows of the table.
    ids : (name, texts), optional
        Names of the rows; by default row numbers from 1.
    more : mapping from str to ndarray of shape (n_used,), optional
        Further columns of labels.

    Returns
    -------
    bytes

    Examples
    --------
    >>> import numpy as np
    >>> labels_csv(np.array([0, 1]), np.array([0, 2]), 3)
    b'row,label\\n1,0\\n2,\\n3,1\\n'
    >>> labels_csv(np.array([0, 1]), np.array([0, 1]), 2, more={"layer_1": np.array([0, 0])})
    b'row,label,layer_1\\n1,0,0\\n2,1,0\\n'
    """
    name, names = ids or ("row", range(1, n_rows + 1))
    if more:
        columns = [_spread(own, rows, n_rows) for own in (labels, *more.values())]
        return table_csv([name, "label", *more], [map(str, names), *columns])
    return labels_header(name) + label_lines(labels, rows, n_rows, names)


def labels_header(name: str = "row") -> bytes:
    """Return the header of a file of labels; rows have names or numbers."""
    return f"{_csv_cell(name)},label\n".encode()


def label_lines(
    labels: np.ndarray, rows: np.ndarray | range, n_rows: int, names: Iterable[str] | range
) -> bytes:
    """Return the lines of a block of rows, in the form of :func:`labels_csv`.

    ``names`` are texts, or row numbers.

    Examples
    --------
    >>> label_lines(np.array([4]), range(1), 2, ["a", "b"])
    b'a,4\\nb,\\n'
    """
    text = _spread(labels, rows, n_rows)
    cells = names if isinstance(names, range) else map(_csv_cell, names)
    pairs = zip(cells, text, strict=True)
    return "".join([f"{cell},{label}\n" for cell, label in pairs]).encode()


def _spread(labels: np.ndarray, rows: np.ndarray | range, n_rows: int) -> list[str]:
    """Return the labels as texts for all rows, empty for those that have none."""
    text = [str(label) for label in labels.tolist()]
    if len(text) == n_rows:
        return text
    sparse = np.full(n_rows, "", dtype=object)
    sparse[np.asarray(rows)] = text
    return sparse.tolist()


def table_csv(header: Iterable[str], columns: Iterable[Iterable[str]]) -> bytes:
    """Return columns of texts as CSV.

    Examples
    --------
    >>> table_csv(["a", "b"], [["1", "2"], ["x", "y, z"]])
    b'a,b\\n1,x\\n2,"y, z"\\n'
    """
    lines = [header, *zip(*columns, strict=True)]
    return "".join(",".join(map(_csv_cell, line)) + "\n" for line in lines).encode()


def _csv_cell(text: str) -> str:
    # The csv module leaves a carriage return unquoted, and readers would end the line there.
    text = safe_cell(text)
    return '"' + text.replace('"', '""') + '"' if _NEEDS_QUOTES.search(text) else text


def check_free(directory: Path, names: Iterable[str], force: bool) -> None:
    """Reject a directory that is not writable, or has one of the files unless ``force``.

    Examples
    --------
    >>> check_free(Path("no-such-directory"), ["labels.csv"], force=False)
    """
    if directory.exists() and not directory.is_dir():
        raise InputError(f"{directory} is a file, not a directory")
    _check_writable(directory, directory)
    taken = [name for name in names if (directory / name).exists()]
    if taken and not force:
        raise InputError(f"{directory / taken[0]} exists; say --force to overwrite, or --out DIR")


def check_free_file(path: Path, force: bool) -> None:
    """Reject a file that exists, unless ``force``, or whose directory is not writable.

    Examples
    --------
    >>> check_free_file(Path("no-such-file"), force=False)
    """
    if path.is_dir():
        raise InputError(f"{path} is a directory, not a file")
    if path.exists() and not force:
        raise InputError(f"{path} exists; say --force to overwrite")
    if not path.parent.exists():
        raise InputError(f"cannot write {path}: there is no directory {path.parent}")
    _check_writable(path, path.parent)


def _check_writable(target: Path, directory: Path) -> None:
    """Raise before the computation, not after it, if its result cannot be written."""
    while not directory.exists():
        directory = directory.parent
    if not directory.is_dir():
        raise InputError(f"cannot write {target}: {directory} is a file, not a directory")
    if not os.access(directory, os.W_OK | os.X_OK):
        raise InputError(f"cannot write {target}: no permission to write into {directory}")


def write_directory(
    directory: Path, files: Mapping[str, Content], known: Iterable[str], force: bool
) -> None:
    """Write files into a directory: all complete, or none.

    Parameters
    ----------
    directory : Path
        Created if it does not exist.
    files : mapping of str to bytes, or to an iterable of bytes
        The contents by file name.
    known : iterable of str
        Every name that a run may write; with ``force`` those not in ``files`` are removed, so that
        no file of an earlier run remains.
    force : bool
        Whether existing files may be replaced.

    Examples
    --------
    >>> import tempfile
    >>> directory = Path(tempfile.mkdtemp(), "out")
    >>> write_directory(directory, {"a.txt": b"a"}, known=["a.txt"], force=False)
    >>> (directory / "a.txt").read_bytes()
    b'a'
    """
    known = list(known)
    check_free(directory, known, force)
    try:
        write_folder(directory, files, known)
    except OSError as error:
        raise InputError(f"cannot write {directory}: {error.strerror or error}") from error


def write_file(path: Path, content: Content, force: bool = False) -> None:
    """Write one file atomically.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp(), "a.txt")
    >>> write_file(path, b"a")
    >>> path.read_bytes()
    b'a'
    """
    check_free_file(path, force)
    try:
        _files.write_file(path, content)
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror or error}") from error
