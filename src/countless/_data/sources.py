"""Tables in storage, read in blocks: the parts of a file, or of a folder of files."""

import hashlib
from collections.abc import Sequence, Set
from dataclasses import dataclass
from pathlib import Path

from .._errors import InputError
from .._formats import FORMATS, Format, TextStyle, format_of
from .part import Part, Tables


@dataclass(frozen=True)
class Source:
    """A table in storage.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import numpy as np
    >>> path = pathlib.Path(tempfile.mkdtemp(), "t.npy")
    >>> np.save(path, np.eye(3))
    >>> source = open_source(str(path))
    >>> [(first, table.n_rows) for first, table in source.tables(["column_2"])]
    [(0, 3)]
    """

    path: Path
    format: Format
    parts: list[Part]

    @property
    def name(self) -> str:
        """The name of the table."""
        return self.path.name

    def tables(
        self, columns: Sequence[str] | None = None, as_text: Set[str] = frozenset()
    ) -> Tables:
        """Yield the table in blocks of rows; no ``columns`` means all of them."""
        for part in self.parts:
            yield from part.tables(columns, as_text)

    def digest(self) -> str:
        """Return the SHA-256 of the file, or of the names and digests of a folder's files."""
        files = sorted({part.path for part in self.parts})
        if len(files) < 2:
            return _digest(files[0] if files else self.path)
        lines = [f"{_digest(file)} {file.relative_to(self.path).as_posix()}\n" for file in files]
        return hashlib.sha256("".join(lines).encode()).hexdigest()


def open_source(path: str, format: str | None = None, style: TextStyle | None = None) -> Source:
    """Find the parts of a table: a text, Parquet or npy file, or a folder of Parquet files."""
    place = Path(path).resolve()  # absolute, so that it is valid in another working directory
    if not place.exists():
        raise InputError(f"cannot read {path}: No such file or directory")
    chosen = FORMATS["parquet" if place.is_dir() else format or format_of(path)]
    if not chosen.blocks:
        able = ", ".join(each.name for each in FORMATS.values() if each.blocks)
        raise InputError(f"--out-of-core and --dask read {able}; not {chosen.title}")
    return Source(place, chosen, chosen.reader().parts(place, chosen, style or TextStyle()))


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
