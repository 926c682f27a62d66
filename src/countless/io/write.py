"""Writing results: all of them or none, and nothing that a spreadsheet would run."""

import os
import re
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np

from .errors import InputError

# A cell that starts so is a formula to a spreadsheet; the wide forms are the same to some of them.
_FORMULA_STARTS = tuple("=+-@\t\r\n\uff1d\uff0b\uff0d\uff20")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_NEEDS_QUOTES = re.compile('[",\r\n]')


def safe_cell(text: str) -> str:
    """Return text that no spreadsheet takes for a formula; numbers stay numbers.

    Examples
    --------
    >>> safe_cell("=1+1"), safe_cell("-4.5"), safe_cell("plain")
    ("'=1+1", '-4.5', 'plain')
    """
    if text.startswith(_FORMULA_STARTS) and not _NUMBER.fullmatch(text):
        return "'" + text
    return text


def labels_csv(
    labels: np.ndarray, rows: np.ndarray, n_rows: int, ids: tuple[str, Iterable[str]] | None = None
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
        What names the rows; by default they are counted from 1.

    Returns
    -------
    bytes

    Examples
    --------
    >>> import numpy as np
    >>> labels_csv(np.array([0, 1]), np.array([0, 2]), 3)
    b'row,label\\n1,0\\n2,\\n3,1\\n'
    """
    text = np.full(n_rows, "", dtype=object)
    text[rows] = [str(label) for label in labels.tolist()]
    name, names = ids or ("row", map(str, range(1, n_rows + 1)))
    lines = [f"{_csv_cell(name)},label\n"]
    lines += [f"{_csv_cell(cell)},{label}\n" for cell, label in zip(names, text, strict=True)]
    return "".join(lines).encode()


def _csv_cell(text: str) -> str:
    # The csv module leaves a carriage return unquoted, and it would end the line for a reader.
    text = safe_cell(text)
    return '"' + text.replace('"', '""') + '"' if _NEEDS_QUOTES.search(text) else text


def check_free(directory: Path, names: Iterable[str], force: bool) -> None:
    """Refuse a directory in which one of the files exists, unless ``force``.

    Examples
    --------
    >>> check_free(Path("no-such-directory"), ["labels.csv"], force=False)
    """
    if directory.exists() and not directory.is_dir():
        raise InputError(f"{directory} is a file, not a directory")
    taken = [name for name in names if (directory / name).exists()]
    if taken and not force:
        raise InputError(f"{directory / taken[0]} exists; say --force to overwrite, or --out DIR")


def write_directory(
    directory: Path, files: Mapping[str, bytes], known: Iterable[str], force: bool
) -> None:
    """Write files into a directory: complete ones, or none at all.

    Parameters
    ----------
    directory : Path
        Made when it does not exist.
    files : mapping of str to bytes
        The contents by file name.
    known : iterable of str
        Every name that a run may write; with ``force`` those not in ``files`` are removed, so that
        no file of an earlier run stands among the new ones.
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
    check_free(directory, known, force)
    scratch = directory.with_name(f".{directory.name}.{os.getpid()}.tmp")
    try:
        scratch.mkdir(parents=True)
        for name, content in files.items():
            (scratch / name).write_bytes(content)
        if not directory.exists():
            scratch.rename(directory)  # all of them in one step
            return
        for name in files:
            (scratch / name).replace(directory / name)
        for name in set(known) - set(files):
            (directory / name).unlink(missing_ok=True)
    except OSError as error:
        raise InputError(f"cannot write {directory}: {error.strerror or error}") from error
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def write_file(path: Path, content: bytes, force: bool = False) -> None:
    """Write one file, complete or not at all.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp(), "a.txt")
    >>> write_file(path, b"a")
    >>> path.read_bytes()
    b'a'
    """
    if path.exists() and not force:
        raise InputError(f"{path} exists; say --force to overwrite")
    scratch = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        scratch.write_bytes(content)
        scratch.replace(path)
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror or error}") from error
    finally:
        scratch.unlink(missing_ok=True)
