"""A table in memory: named columns of numbers or text, with missing values.

Rows are numbered from 1 in all messages, and the header line is not a row.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

import numpy as np

from .._errors import InputError
from .._formats import TextStyle


@dataclass(frozen=True)
class Numbers:
    """A column of numbers; NaN is a missing value.

    Examples
    --------
    >>> import numpy as np
    >>> Numbers(np.array([1.5, np.nan])).missing
    array([False,  True])
    """

    values: np.ndarray

    @property
    def missing(self) -> np.ndarray:
        """True where the value is missing."""
        return np.isnan(self.values)


@dataclass(frozen=True)
class Words:
    """A column of text: each row has an index into ``levels``; -1 is a missing value.

    Examples
    --------
    >>> import numpy as np
    >>> column = Words(np.array([1, 0, -1]), ("red", "blue"))
    >>> column.words()
    ['blue', 'red', '']
    """

    codes: np.ndarray
    levels: tuple[str, ...]

    @property
    def missing(self) -> np.ndarray:
        """True where the value is missing."""
        return self.codes < 0

    def words(self) -> list[str]:
        """Return the text of every row; missing values are empty strings."""
        return [self.levels[code] if code >= 0 else "" for code in self.codes.tolist()]


@dataclass(frozen=True)
class Unusable:
    """A column that is neither numeric nor text, and what it is instead.

    Examples
    --------
    >>> Unusable("dates", n_missing=0).what
    'dates'
    """

    what: str
    n_missing: int


Column = Numbers | Words | Unusable


_USUAL = TextStyle()


@dataclass(frozen=True)
class Table:
    """Named columns of equal length, and their source.

    ``uniform`` says that all columns are one quantity in one unit, as in an array file.

    Examples
    --------
    >>> import numpy as np
    >>> table = Table("a.csv", {"x": Numbers(np.array([1.0, 2.0]))}, n_rows=2)
    >>> table.numbers("x")
    array([1., 2.])
    """

    source: str
    columns: dict[str, Column]
    n_rows: int
    format: str = "memory"
    sha256: str = ""
    uniform: bool = False
    path: Path | None = None  # of the file, if it is one
    style: TextStyle = _USUAL

    def column(self, name: str) -> Column:
        """Return the column of that name, or raise an error that suggests similar names."""
        if name not in self.columns:
            close = get_close_matches(name, self.columns, n=1)
            hint = f"did you mean {close[0]!r}?" if close else f"it has {listing(self.columns)}"
            raise InputError(f"{self.source} has no column {name!r}; {hint}")
        return self.columns[name]

    def numbers(self, name: str) -> np.ndarray:
        """Return a column, which must be numeric."""
        column = self.column(name)
        if not isinstance(column, Numbers):
            raise InputError(f"column {name!r} must hold numbers{_first_word(column)}")
        return column.values

    def words(self, name: str) -> Words:
        """Return a column as text; numbers have their shortest exact representation."""
        column = self.column(name)
        if isinstance(column, Unusable):
            raise InputError(f"column {name!r} holds {column.what}, which cannot be read as text")
        return numbers_as_words(column) if isinstance(column, Numbers) else column


def text_cells(column: Words) -> np.ndarray:
    """Return the text of every row as objects; None is a missing value.

    Examples
    --------
    >>> text_cells(Words(np.array([1, -1]), ("red", "blue"))).tolist()
    ['blue', None]
    """
    # The code -1 of a missing value indexes None.
    return np.array([*column.levels, None], dtype=object)[column.codes]


def numbers_as_words(column: Numbers) -> Words:
    """Return the same column as text, so that 2.0 and 2 are the one level '2'.

    Examples
    --------
    >>> import numpy as np
    >>> numbers_as_words(Numbers(np.array([2.0, 0.5, np.nan]))).words()
    ['2', '0.5', '']
    """
    missing = column.missing
    distinct, inverse = np.unique(column.values[~missing], return_inverse=True)
    codes = np.full(column.values.shape[0], -1, dtype=np.int64)
    codes[~missing] = inverse
    return Words(codes, tuple(shortest(value) for value in distinct))


def shortest(value: float | np.floating) -> str:
    """Format a number in its shortest exact representation, without a trailing '.0'.

    Examples
    --------
    >>> shortest(3.0), shortest(0.25)
    ('3', '0.25')
    """
    text = str(value)
    return text.removesuffix(".0")


def listing(names: Iterable[str], limit: int = 12) -> str:
    """Format names in one line, with the number of those beyond the limit.

    Examples
    --------
    >>> listing(["a", "b", "c"], limit=2)
    'a, b and 1 more'
    """
    names = list(names)
    shown = ", ".join(names[:limit])
    return shown if len(names) <= limit else f"{shown} and {len(names) - limit} more"


def counted(number: int, noun: str) -> str:
    """Format a count and its noun.

    Examples
    --------
    >>> counted(1, "row"), counted(2, "row")
    ('1 row', '2 rows')
    """
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _first_word(column: Column) -> str:
    """Describe the first cell that is not a number."""
    if not isinstance(column, Words):
        return ""
    wrong = [code for code, level in enumerate(column.levels) if not _is_number(level)]
    rows = np.flatnonzero(np.isin(column.codes, wrong))
    if not len(rows):
        return "; its cells are text that looks like numbers" if column.levels else ""
    return f"; row {rows[0] + 1} is {column.levels[column.codes[rows[0]]]!r}"


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
