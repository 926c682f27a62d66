"""The kind of each column of a table, and whether it is used in the clustering."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from .._errors import InputError
from .quantities import NEARLY_ALL, Notation, parse
from .table import PLAIN, Numbers, Table, Unusable, Words, listing, what_unit

MANY_LEVELS = 100
FREE_TEXT = 6  # words of a value, on average
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
    unit: str = PLAIN  # of numbers that are written as text, or dates

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
        if name not in roles.categorical and name not in table.aside:
            _refuse_nearly_numbers(table, name)

    unasked = {*table.aside} - {*roles.columns, *roles.categorical}
    found = [_facts(table, name, forced=name in roles.categorical) for name in table.columns]
    found = [
        one._replace(left_out=table.aside[one.name]) if one.name in unasked else one
        for one in found
    ]
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
    many = n_distinct > MANY_LEVELS or n_distinct > present / 2
    if present == 0:
        kind, left_out = "empty", "holds nothing"
    elif n_distinct == 1:
        kind, left_out = "constant", f"always {column.levels[0]!r}"
    elif forced:
        pass
    elif many and np.mean([len(level.split()) for level in column.levels]) >= FREE_TEXT:
        kind, left_out = "text", "free text; --texts describes clusters by the words of a file"
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
    kind = "binary" if is_binary(values) else "numeric"
    return ColumnFacts(name, kind, n_missing, None, None, column.unit)


def is_binary(values: np.ndarray) -> bool:
    """Whether all values are 0 or 1.

    Examples
    --------
    >>> is_binary(np.array([0.0, 1.0])), is_binary(np.array([0.5, 1.0]))
    (True, False)
    """
    return bool(((values == 0) | (values == 1)).all())


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
    style = table.style
    found = parse(column.levels, Notation(style.decimal or ".", style.thousands))
    fits = {unit: found.of_unit(unit) for unit in found.units if unit is not None}
    if not fits:
        _refuse_commas(name, column)
        return
    unit = max(fits, key=lambda unit: counts[fits[unit]].sum())
    others = np.flatnonzero(~fits[unit])
    n_fitting = counts[fits[unit]].sum()
    if not len(others) or n_fitting < NEARLY_ALL * counts.sum():
        _refuse_commas(name, column)
        return  # with no others: the file declares them as text: codes, not quantities
    row = int(np.flatnonzero(np.isin(column.codes, others))[0])
    hold = "numbers" if unit == PLAIN else what_unit(unit).partition(" as ")[0]
    raise InputError(
        f"column {name!r}, row {row + 1} is {column.levels[column.codes[row]]!r}, "
        f"but {n_fitting} other rows hold {hold}; mend it, or say "
        f"--exclude {name} or --categorical {name}"
    )


def _refuse_commas(name: str, column: Words) -> None:
    """Reject a column of numbers with decimal commas, where the others have decimal points."""
    found = parse(column.levels, Notation(","))
    commas = [level for level in column.levels if "," in level]
    if commas and all(unit == PLAIN for unit in found.units):
        raise InputError(
            f"column {name!r} holds numbers with decimal commas, as {commas[0]!r}; say --decimal ,"
        )
