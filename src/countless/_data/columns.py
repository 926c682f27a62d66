"""The kind of each column of a table, and whether it is used in the clustering."""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from .._errors import InputError
from .table import Numbers, Table, Unusable, Words, listing

MANY_LEVELS = 100
NEARLY_ALL = 0.9

_NUMBER = re.compile(r"\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*")
_COMMA_NUMBER = re.compile(r"\s*[+-]?\d+,\d+\s*")
_THOUSANDS = re.compile(r"\s*[+-]?\d{1,3}(,\d{3})*(\.\d+)?\s*")
_EXACT = 2.0**53  # beyond it adjacent integers are the same float


@dataclass(frozen=True)
class Roles:
    """The roles of columns given by the user; no ``columns`` means all of them.

    Examples
    --------
    >>> Roles(exclude=("class",)).set_aside()
    {'class': '--exclude'}
    """

    columns: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    categorical: tuple[str, ...] = ()
    id: str | None = None
    weight: str | None = None
    compare: str | None = None
    group: str | None = None

    def set_aside(self) -> dict[str, str]:
        """Return the columns with another role, and the option that gave it."""
        aside = dict.fromkeys(self.exclude, "--exclude")
        for option in ("id", "weight", "compare", "group"):
            if name := getattr(self, option):
                aside[name] = f"--{option}"
        return aside


class ColumnFacts(NamedTuple):
    """One column: its kind, its number of missing values, and why it is left out, if it is."""

    name: str
    kind: str
    n_missing: int
    n_distinct: int | None
    left_out: str | None

    @property
    def used(self) -> bool:
        """Whether the column is used in the clustering."""
        return self.left_out is None


def named_columns(table: Table, given: Iterable[str]) -> tuple[str, ...]:
    """Resolve command-line values to column names: each is a name, or a comma-separated list.

    Examples
    --------
    >>> import numpy as np
    >>> column = Numbers(np.zeros(1))
    >>> table = Table("t", {"a": column, "b": column, "x, y": column}, n_rows=1)
    >>> named_columns(table, ["a,b", "x, y"])
    ('a', 'b', 'x, y')
    """
    names: list[str] = []
    for text in given:
        names += [text] if text in table.columns else [part.strip() for part in text.split(",")]
    for name in names:
        table.column(name)
    return tuple(dict.fromkeys(names))


def examine_columns(table: Table, roles: Roles) -> list[ColumnFacts]:
    """Determine the kind of each column and whether it is used.

    Parameters
    ----------
    table : Table
        The data.
    roles : Roles
        The roles given by the user, with names of the table.

    Returns
    -------
    list of ColumnFacts
        In the table's order.

    Raises
    ------
    InputError
        If a column named by the user cannot be used, or no column is left.

    Examples
    --------
    >>> import numpy as np
    >>> table = Table("t", {"x": Numbers(np.array([1.0, 2.5])), "y": Numbers(np.ones(2))}, n_rows=2)
    >>> [(column.name, column.kind, column.used) for column in examine_columns(table, Roles())]
    [('x', 'numeric', True), ('y', 'constant', False)]
    """
    if table.n_rows == 1:
        raise InputError(f"{table.source} has one row only: there is nothing to cluster")

    def check(name: str) -> None:
        if name not in roles.categorical:
            _refuse_nearly_numbers(table, name)

    found = [_facts(table, name, forced=name in roles.categorical) for name in table.columns]
    return choose_columns(found, roles, table.source, check)


def choose_columns(
    found: Iterable[ColumnFacts],
    roles: Roles,
    source: str,
    check: Callable[[str], None] = lambda name: None,
) -> list[ColumnFacts]:
    """Leave out the columns with another role; reject this for columns named by the user.

    ``check`` is called with the name of every other column.
    """
    aside = roles.set_aside()
    for name in (*roles.columns, *roles.categorical):
        if name in aside:
            raise InputError(f"column {name!r} cannot be both used and set aside by {aside[name]}")
    facts = []
    for column in found:
        name, asked = column.name, column.name in (*roles.columns, *roles.categorical)
        if name in aside:
            column = column._replace(left_out=aside[name])
        elif roles.columns and not asked:
            column = column._replace(left_out="not in --columns")
        else:
            check(name)
            if asked:
                _refuse_useless(column)
        facts.append(column)
    if not any(column.used for column in facts):
        reasons = listing(f"{column.name!r} ({column.left_out})" for column in facts)
        raise InputError(f"{source} has no column to cluster by: {reasons}")
    return facts


def _facts(table: Table, name: str, forced: bool) -> ColumnFacts:
    column = table.columns[name]
    if isinstance(column, Unusable):
        kind = "empty" if column.what == "nothing" else "other"
        return ColumnFacts(name, kind, column.n_missing, None, f"holds {column.what}")
    n_missing = int(column.missing.sum())
    present = table.n_rows - n_missing
    if isinstance(column, Numbers):
        return _number_facts(name, column, n_missing)
    n_distinct = len(column.levels)
    left_out = None
    kind = "categorical"
    if present == 0:
        kind, left_out = "empty", "holds nothing"
    elif n_distinct == 1:
        kind, left_out = "constant", f"always {column.levels[0]!r}"
    elif forced:
        pass
    elif n_distinct == present or n_distinct > max(10, present / 2):
        kind, left_out = "identifier", f"{n_distinct} different values in {present} rows"
    elif n_distinct > MANY_LEVELS:
        kind, left_out = "text", f"{n_distinct} different values"
    return ColumnFacts(name, kind, n_missing, n_distinct, left_out)


def _number_facts(name: str, column: Numbers, n_missing: int) -> ColumnFacts:
    values = column.values[~column.missing] if n_missing else column.values
    if len(values) == 0:
        return ColumnFacts(name, "empty", n_missing, 0, "holds nothing")
    if values.min() == values.max():
        always = "too large to tell apart: all" if abs(values[0]) > _EXACT else "always"
        return ColumnFacts(name, "constant", n_missing, 1, f"{always} {values[0]:g}")
    n = len(values)
    counts = values[0] in (0, 1) and n > 2 and values[-1] - values[0] == n - 1
    if not n_missing and counts and np.array_equal(values, values[0] + np.arange(n)):
        return ColumnFacts(name, "identifier", 0, n, "counts the rows")
    return ColumnFacts(name, "numeric", n_missing, None, None)


def _refuse_useless(found: ColumnFacts) -> None:
    if found.used:
        return
    hint = ""
    if found.kind == "identifier":
        hint = f"; --id {found.name} labels the rows by it"
    elif found.kind == "text":
        hint = f"; --categorical {found.name} uses it all the same"
    raise InputError(f"column {found.name!r} is {found.kind} ({found.left_out}){hint}")


def _refuse_nearly_numbers(table: Table, name: str) -> None:
    """Reject a numeric column in which a few cells are text: more often a mistake than intended."""
    column = table.columns[name]
    if not isinstance(column, Words):
        return
    counts = np.bincount(column.codes[column.codes >= 0], minlength=len(column.levels))

    def fitting(pattern: re.Pattern[str]) -> np.ndarray:
        return np.array([pattern.fullmatch(level) is not None for level in column.levels])

    def nearly_all(fits: np.ndarray) -> bool:
        return bool(counts[fits].sum() >= NEARLY_ALL * counts.sum())

    numbers = fitting(_NUMBER)
    if numbers.all():
        return  # the file declares them as text: codes, not quantities
    if nearly_all(numbers):
        row = int(np.flatnonzero(np.isin(column.codes, np.flatnonzero(~numbers)))[0])
        raise InputError(
            f"column {name!r}, row {row + 1} is {column.levels[column.codes[row]]!r}, "
            f"but {counts[numbers].sum()} other rows hold numbers; mend it, or say "
            f"--exclude {name} or --categorical {name}"
        )
    if nearly_all(fitting(_THOUSANDS)):
        example = next(level for level in column.levels if "," in level)
        raise InputError(
            f"column {name!r} holds numbers like {example!r}: take the commas out, or say "
            "--decimal , if they are decimal points"
        )
    if nearly_all(fitting(_COMMA_NUMBER)):
        raise InputError(f"column {name!r} holds numbers with a decimal comma; say --decimal ,")
