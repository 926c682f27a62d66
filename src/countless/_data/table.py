"""A table in memory: named columns of numbers or text, with missing values.

Rows are numbered from 1 in all messages, and the header line is not a row.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from difflib import get_close_matches
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from .._errors import InputError
from .._formats import TextStyle

# Units of columns; others are '%', '‰' (values are shares of 1) and currencies.
PLAIN, DATE, DATE_TIME, TIME = "", "date", "date and time", "time"
PER = {"%": 100.0, "‰": 1000.0}
_AS_WRITTEN = {DATE: "%Y-%m-%d", DATE_TIME: "%Y-%m-%d %H:%M:%S", TIME: "%H:%M:%S"}
_EPOCH = datetime(1970, 1, 1)


@dataclass(frozen=True)
class Numbers:
    """A column of numbers; NaN is a missing value.

    The ``unit`` is what the file had: dates are days since 1970-01-01, times of day are days, and
    percentages are shares of 1.

    Examples
    --------
    >>> import numpy as np
    >>> Numbers(np.array([1.5, np.nan])).missing
    array([False,  True])
    """

    values: np.ndarray
    unit: str = PLAIN

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
Columns = dict[str, Column]
# New values of cells, by row and column.
Filled = Mapping[int, Mapping[str, float | str]]


class Contents(NamedTuple):
    """What a reader returns: columns, the number of rows, and how the file was read."""

    columns: Columns
    n_rows: int
    style: TextStyle = TextStyle()
    notes: tuple[str, ...] = ()  # what was guessed, for the user
    aside: Mapping[str, str] = MappingProxyType({})  # columns that take no part unasked, and why
    nodes: Table | None = None  # of a graph whose edges the columns are


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
    notes: tuple[str, ...] = ()  # what was guessed about the file, for the user
    # Columns that take no part unasked, and why.
    aside: Mapping[str, str] = field(default_factory=dict)
    nodes: Table | None = None  # of a graph whose edges the rows are

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


def words_of(texts: Iterable[str | None]) -> Words:
    """Return texts as a column; None is a missing value.

    Examples
    --------
    >>> words_of(["a", None, "a"]).codes.tolist()
    [0, -1, 0]
    """
    texts = list(texts)
    levels = tuple(dict.fromkeys(text for text in texts if text is not None))
    place: dict[str | None, int] = {level: code for code, level in enumerate(levels)}
    place[None] = -1
    return Words(np.array([place[text] for text in texts], dtype=np.int64), levels)


def check_names(names: list[str], source: str) -> None:
    """Reject two columns of the same name.

    Examples
    --------
    >>> check_names(["a", "b"], "t.csv")
    """
    for label, count in Counter(names).items():
        if count > 1:
            places = [str(j + 1) for j, other in enumerate(names) if other == label]
            raise InputError(
                f"{source}: {count} columns are named {label!r} (columns {', '.join(places)})"
            )


def text_cells(column: Words) -> np.ndarray:
    """Return the text of every row as objects; None is a missing value.

    Examples
    --------
    >>> text_cells(Words(np.array([1, -1]), ("red", "blue"))).tolist()
    ['blue', None]
    """
    # The code -1 of a missing value indexes None.
    return np.array([*column.levels, None], dtype=object)[column.codes]


def written(value: float | np.floating, unit: str = PLAIN) -> str:
    """Format a value of a column with its unit, as a file has it.

    Examples
    --------
    >>> written(19753.0, "date"), written(0.125, "%"), written(5.0, "€"), written(0.75, "time")
    ('2024-01-31', '12.5%', '€5', '18:00:00')
    """
    if unit in _AS_WRITTEN:
        try:
            when = _EPOCH + timedelta(days=float(value)) + timedelta(microseconds=500_000)
        except OverflowError:
            return shortest(value)
        return when.strftime(
            {DATE: "%Y-%m-%d", DATE_TIME: "%Y-%m-%d %H:%M:%S", TIME: "%H:%M:%S"}[unit]
        )
    if unit in PER:
        return f"{float(f'{value * PER[unit]:.15g}'):.15g}{unit}"
    return f"{unit}{shortest(value)}"


def what_unit(unit: str) -> str:
    """Describe the values of a unit in memory.

    Examples
    --------
    >>> what_unit("%"), what_unit("date"), what_unit("€")
    ('percent as shares of 1', 'dates as days since 1970-01-01', 'amounts in €')
    """
    if unit == TIME:
        return "times of day as days"
    if unit in _AS_WRITTEN:
        return "dates as days since 1970-01-01"
    if unit in PER:
        return f"{'percent' if unit == '%' else 'per mille'} as shares of 1"
    return f"amounts in {unit}" if unit else "plain numbers"


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
    return Words(codes, tuple(written(value, column.unit) for value in distinct))


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
