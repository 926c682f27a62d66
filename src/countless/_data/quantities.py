"""Numbers that are written as text: with thousands separators, percent signs, currencies, dates.

A column is a quantity if all of its values are of one unit: shares of a percentage, amounts of one
currency, or days of dates. Plain numbers that a file declares as text stay text: they are codes.
"""

import re
from collections.abc import Sequence, Set
from datetime import datetime, timedelta
from typing import NamedTuple

import numpy as np

from .table import DATE, DATE_TIME, PER, PLAIN, Columns, Numbers, Words

SYMBOLS = "$€£¥₹₩₽₺₴₪₫₱฿¢"
CODES = ("USD", "EUR", "GBP", "CHF", "JPY", "CNY", "SEK", "NOK", "DKK", "PLN", "CZK", "INR", "BRL")
NEARLY_ALL = 0.9  # of the rows: one of the others is more often a mistake than intended

FIRST = 10  # values of which each must have a pattern before the others are looked at
_SPACES = " \u00a0\u2009\u202f'\u2019"  # between thousands, in addition to ',' or '.'
_EPOCH = datetime(1970, 1, 1)
_DAY = timedelta(days=1)
_TIME = r"(?:[T ]+(\d{1,2}):(\d\d)(?::(\d\d)(?:[.,](\d{1,9}))?)?\s*(Z|UTC|[+-]\d\d:?\d\d)?)?"
_YEAR_FIRST = re.compile(rf"\s*(\d{{4}})([-/.])(\d{{1,2}})\2(\d{{1,2}}){_TIME}\s*")
_YEAR_LAST = re.compile(rf"\s*(\d{{1,2}})([-/.])(\d{{1,2}})\2(\d{{4}}){_TIME}\s*")


class Notation(NamedTuple):
    """How numbers are written: the decimal point, and what separates thousands.

    ``thousands`` is None where that is guessed: spaces, apostrophes, and of ``,`` and ``.`` the one
    that is no decimal point. The empty text is none.
    """

    decimal: str = "."
    thousands: str | None = None

    def separators(self) -> str:
        """Return the characters that may separate thousands."""
        if self.thousands is not None:
            return self.thousands
        return _SPACES + (",." if self.decimal not in ",." else ",.".replace(self.decimal, ""))

    def pattern(self) -> re.Pattern[str]:
        """Return the pattern of a number with its sign, its unit, and their order."""
        whole = r"\d+"
        if separators := re.escape(self.separators()):
            whole = rf"\d{{1,3}}(?P<mark>[{separators}])\d{{3}}(?:(?P=mark)\d{{3}})*|\d+"
        point = re.escape(self.decimal)
        unit = rf"[{SYMBOLS}]|{'|'.join(CODES)}"
        return re.compile(
            rf"\s*(?P<sign>[-+\u2212]?)\s*(?P<before>{unit})?\s*(?P<second>[-+\u2212]?)\s*"
            rf"(?P<number>(?:(?:{whole})(?:{point}\d*)?|{point}\d+)(?:[eE][-+]?\d+)?)"
            rf"\s*(?P<after>{unit}|[%‰])?\s*"
        )


class Parsed(NamedTuple):
    """The value of each text, NaN for those that are none, and its unit, None for these."""

    values: np.ndarray
    units: list[str | None]
    marks: set[str]  # characters found between thousands

    def of_unit(self, unit: str) -> np.ndarray:
        """Return which texts have this unit."""
        return np.array([each == unit for each in self.units], dtype=bool)


def parse(levels: Sequence[str], notation: Notation) -> Parsed:
    """Parse texts as numbers with units, and as dates.

    Examples
    --------
    >>> found = parse(["12 %", "$1,500.50", "2024-01-31", "red"], Notation())
    >>> found.values.round(2).tolist(), found.units
    ([0.12, 1500.5, 19753.0, nan], ['%', '$', 'date', None])
    """
    values = np.full(len(levels), np.nan)
    units: list[str | None] = [None] * len(levels)
    marks: set[str] = set()
    found = Parsed(values, units, marks)
    pattern, separators = notation.pattern(), notation.separators()
    other: list[int] = []
    for place, level in enumerate(levels):
        match = pattern.fullmatch(level)
        if match is None or not _has_one_sign_and_unit(match):
            other.append(place)
            continue
        text = match["number"]
        if separators and (mark := match["mark"]):
            marks.add(mark)
            text = text.replace(mark, "")
        unit = match["before"] or match["after"] or PLAIN
        value = float(text.replace(notation.decimal, ".")) / PER.get(unit, 1.0)
        negative = {"-", "\u2212"} & {match["sign"], match["second"]}
        values[place], units[place] = -value if negative else value, unit
    _parse_dates(levels, other, found)
    return found


def quantity(column: Words, notation: Notation) -> Numbers | None:
    """Return a text column as numbers if all of its values are of one unit; None otherwise.

    Examples
    --------
    >>> quantity(Words(np.array([0, 1, -1]), ("5 %", "10 %")), Notation())
    Numbers(values=array([0.05, 0.1 ,  nan]), unit='%')
    >>> quantity(Words(np.array([0, 1]), ("007", "008")), Notation()) is None
    True
    """
    levels = column.levels
    patterns = (notation.pattern(), _YEAR_FIRST, _YEAR_LAST)
    for level in levels[:FIRST]:
        if not any(pattern.fullmatch(level) for pattern in patterns):
            return None
    found = parse(levels, notation)
    unit = found.units[0] if levels else None
    if unit is None or any(each != unit for each in found.units):
        return None
    point = notation.decimal != "." and any(notation.decimal in level for level in levels)
    if unit == PLAIN and not found.marks and not point:
        return None
    # The code -1 of a missing value indexes NaN.
    return Numbers(np.append(found.values, np.nan)[column.codes], unit)


def typed(columns: Columns, notation: Notation, as_text: Set[str] = frozenset()) -> Columns:
    """Return columns with numbers in place of texts that are quantities.

    Examples
    --------
    >>> prices = Words(np.array([0, 1]), ("$5", "$1,200"))
    >>> typed({"price": prices}, Notation())["price"].values
    array([   5., 1200.])
    """
    return {
        name: (quantity(column, notation) or column)
        if isinstance(column, Words) and name not in as_text
        else column
        for name, column in columns.items()
    }


def decimal_commas(column: Words, prefer: bool = False) -> bool:
    """Whether the values of a column are numbers with decimal commas, and not with thousands.

    ``prefer`` says that numbers such as 1,500, which may be either, have decimal commas.

    Examples
    --------
    >>> decimal_commas(Words(np.array([0, 1]), ("1,5", "2"))), decimal_commas(
    ...     Words(np.array([0, 1]), ("1,500", "12,000"))
    ... )
    (True, False)
    """
    return (
        any("," in level for level in column.levels)
        and quantity(column, Notation(",")) is not None
        and (prefer or quantity(column, Notation(".")) is None)
    )


def _has_one_sign_and_unit(match: re.Match[str]) -> bool:
    return not (match["sign"] and match["second"]) and not (match["before"] and match["after"])


def _parse_dates(levels: Sequence[str], places: list[int], found: Parsed) -> None:
    """Parse dates at some places; the order of day and month is that of all of them."""
    if not places:
        return
    parts = []
    for place in places:
        if match := _YEAR_FIRST.fullmatch(levels[place]):
            year, _, month, day, *time = match.groups()
            parts.append((place, (year, month, day), time))
    last = [(place, match) for place in places if (match := _YEAR_LAST.fullmatch(levels[place]))]
    if last and (order := _order([match for _, match in last])) is not None:
        for place, match in last:
            first, _, second, year, *time = match.groups()
            day, month = (first, second) if order == "day" else (second, first)
            parts.append((place, (year, month, day), time))
    dated = []
    for place, date, time in parts:
        try:
            when = _moment(date, *time)
        except (ValueError, OverflowError):  # no such day
            continue
        found.values[place] = (when - _EPOCH) / _DAY
        dated.append((place, time))
    unit = DATE_TIME if any(time[0] is not None for _, time in dated) else DATE
    for place, _ in dated:
        found.units[place] = unit


def _order(found: list[re.Match[str]]) -> str | None:
    """Return whether the day or the month comes first; None if that cannot be told."""
    if any(match[2] == "." for match in found):
        return "day"
    first = max(int(match[1]) for match in found)
    second = max(int(match[3]) for match in found)
    if (first > 12) == (second > 12):
        return None
    return "day" if first > 12 else "month"


def _moment(
    date: Sequence[str],
    hour: str | None,
    minute: str | None,
    second: str | None,
    fraction: str | None,
    zone: str | None,
) -> datetime:
    """Return a time, in UTC where it has a zone."""
    year, month, day = map(int, date)
    when = datetime(year, month, day, int(hour or 0), int(minute or 0), int(second or 0))
    when += timedelta(microseconds=int(f"{fraction or 0:0<6}"[:6]))
    if zone in (None, "Z", "UTC"):
        return when
    offset = timedelta(hours=int(zone[1:3]), minutes=int(zone[-2:]))
    return when - offset if zone[0] == "+" else when + offset
