"""Parts of a table in storage, which are read as small tables in memory.

A part describes where some rows are stored. It is small, so it can be sent to any machine with
access to the same storage. Rows are numbered from 0 here, and from 1 in errors.
"""

from collections.abc import Iterator, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from .._errors import InputError
from .npy import FlatFile
from .table import Column, Numbers, Table, numbers_as_words

Tables = Iterator[tuple[int, Table]]  # the position of the first row, and the rows


@dataclass(frozen=True)
class Limits:
    """How much of a table is in memory at once; a few tens of megabytes, for any of them."""

    rows: int = 2**16
    values: int = 2**22
    text_bytes: int = 2**26
    part_values: int = 2**22  # in a part of an array, which is read by one task
    piece_bytes: int = 2**20  # of text that is read from a file at once
    record_bytes: int = 2**26  # of one row of text


LIMITS = Limits()


class Part(Protocol):
    """Some rows of a table in storage; ``stop`` is None where it is unknown before reading."""

    @property
    def path(self) -> Path:
        """The file."""

    @property
    def start(self) -> int:
        """The position of the first row in the table."""

    @property
    def stop(self) -> int | None:
        """The position after the last row in the table."""

    @property
    def flat(self) -> FlatFile | None:
        """The file of the whole table, if it stores plain numbers row by row."""

    def tables(
        self, columns: Sequence[str] | None = None, as_text: Set[str] = frozenset()
    ) -> Tables:
        """Yield the rows in blocks; no ``columns`` means all of them."""


def batch_rows(n_columns: int) -> int:
    """Return the number of rows of ``n_columns`` columns in memory at once.

    Examples
    --------
    >>> batch_rows(8), batch_rows(4096)
    (65536, 1024)
    """
    return max(1, min(LIMITS.rows, LIMITS.values // max(n_columns, 1)))


def with_words(columns: dict[str, Column], as_text: Set[str]) -> dict[str, Column]:
    """Convert numbers to text in the given columns."""
    for column in as_text & columns.keys():
        if isinstance(found := columns[column], Numbers):
            columns[column] = numbers_as_words(found)
    return columns


@contextmanager
def one_line(name: str) -> Iterator[None]:
    """Convert errors of reading a file to one line that names it."""
    try:
        yield
    except InputError:
        raise
    except (ValueError, OSError, EOFError) as error:
        raise InputError(f"cannot read {name}: {' '.join(str(error).split())}") from error
