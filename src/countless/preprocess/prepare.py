"""Preprocessing: from a table to the matrix that is clustered, in serializable steps.

A numeric column is standardized, or left in its unit. A categorical column is one-hot encoded: two
rows that differ then have squared distance 2, which is also the mean for a standardized column, so
that both kinds of columns have the same influence.
"""

from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np

from .._data.table import PLAIN, Numbers, Table, Unusable, counted, listing, what_unit
from .._errors import InputError

MISSING_CHOICES = ("error", "drop", "impute")


class Feature(NamedTuple):
    """One column of the matrix: its source column, and the meaning of its values.

    A value ``v`` of the matrix means ``center + scale * v`` of ``column``; with a ``level`` it is
    the indicator of that level of ``column``.
    """

    column: str
    level: str | None
    center: float
    scale: float
    unit: str = PLAIN


@dataclass(frozen=True)
class NumericStep:
    """Shift and scale one column; ``fill`` replaces missing values.

    Examples
    --------
    >>> NumericStep("age", fill=40.0, center=41.0, scale=12.0).features()
    [Feature(column='age', level=None, center=41.0, scale=12.0, unit='')]
    """

    name: str
    fill: float
    center: float
    scale: float
    unit: str = PLAIN  # of the column at the fit

    @property
    def plain(self) -> bool:
        """Whether values are unchanged."""
        return (self.center, self.scale) == (0.0, 1.0)

    def features(self) -> list[Feature]:
        """Return the one output column of the step."""
        return [Feature(self.name, None, self.center, self.scale, self.unit)]

    def missing(self, table: Table) -> np.ndarray:
        """Return True for each row whose value is missing."""
        if _is_empty(table, self.name):
            return np.ones(table.n_rows, dtype=bool)
        return np.isnan(table.numbers(self.name))

    def write(self, table: Table, rows: np.ndarray, out: np.ndarray) -> str | None:
        """Fill one column of the matrix from the given rows of the table."""
        is_empty = _is_empty(table, self.name)
        values = np.full(table.n_rows, np.nan) if is_empty else table.numbers(self.name)
        values = values[rows] if len(rows) < len(values) else values
        if np.isinf(values).any():
            row = int(rows[np.isinf(values)][0])
            raise InputError(f"column {self.name!r}, row {row + 1} is infinite")
        with np.errstate(over="ignore"):
            out[:, 0] = (np.where(np.isnan(values), self.fill, values) - self.center) / self.scale
        if not np.isfinite(out[:, 0]).all():
            at = int(np.argmin(np.isfinite(out[:, 0])))
            raise InputError(
                f"column {self.name!r}, row {int(rows[at]) + 1} has {values[at]:g}, "
                f"too far from {self.center:g} on a scale of {self.scale:g}"
            )
        column = table.columns[self.name]
        if isinstance(column, Numbers) and what_unit(column.unit) != what_unit(self.unit):
            return (
                f"column {self.name!r} holds {what_unit(column.unit)}, "
                f"and held {what_unit(self.unit)} when the model was fitted"
            )
        return None


@dataclass(frozen=True)
class CategoricalStep:
    """One-hot encoding with one indicator column per level; ``fill`` replaces missing values.

    Examples
    --------
    >>> [f.level for f in CategoricalStep("sex", "male", ("female", "male")).features()]
    ['female', 'male']
    """

    name: str
    fill: str
    levels: tuple[str, ...]

    def features(self) -> list[Feature]:
        """Return the output columns of the step."""
        return [Feature(self.name, level, 0.0, 1.0) for level in self.levels]

    def missing(self, table: Table) -> np.ndarray:
        """Return True for each row whose value is missing."""
        if _is_empty(table, self.name):
            return np.ones(table.n_rows, dtype=bool)
        return table.words(self.name).missing

    def write(self, table: Table, rows: np.ndarray, out: np.ndarray) -> str | None:
        """Fill the indicator columns; return a line about unknown levels."""
        out[:] = 0
        place = {level: j for j, level in enumerate(self.levels)}
        if _is_empty(table, self.name):
            out[:, place[self.fill]] = 1
            return None
        words = table.words(self.name)
        # One more entry than levels, so that the code -1 of a missing value indexes the fill.
        target = np.array([place.get(level, -1) for level in words.levels] + [place[self.fill]])
        at = target[words.codes[rows]]
        known = np.flatnonzero(at >= 0)
        out[known, at[known]] = 1
        if len(known) == len(rows):
            return None
        unseen = sorted(repr(words.levels[code]) for code in np.unique(words.codes[rows[at < 0]]))
        return (
            f"column {self.name!r} has {counted(len(rows) - len(known), 'row')} with values the "
            f"model never saw ({listing(unseen, 5)}): none of its indicators is set"
        )


Step = NumericStep | CategoricalStep


class Prepared(NamedTuple):
    """The matrix, the positions of its rows in the table, and warnings for the user."""

    matrix: np.ndarray
    rows: np.ndarray
    notes: list[str]


@dataclass(frozen=True)
class Preparation:
    """The steps from a table to a matrix, the same at fit and at predict.

    Examples
    --------
    >>> import numpy as np
    >>> from countless._data.table import Numbers
    >>> table = Table("t", {"x": Numbers(np.array([1.0, 3.0]))}, n_rows=2)
    >>> steps = Preparation((NumericStep("x", fill=2.0, center=2.0, scale=1.0),))
    >>> steps.apply(table).matrix
    array([[-1.],
           [ 1.]])
    >>> Preparation.from_json(steps.to_json()) == steps
    True
    """

    steps: tuple[Step, ...]
    missing: str = "error"
    dtype: str = "float64"
    group: str | None = None  # the column with the group of each row

    @property
    def names(self) -> list[str]:
        """The input columns."""
        return [step.name for step in self.steps]

    @property
    def words(self) -> set[str]:
        """The input columns that are read as text."""
        return {step.name for step in self.steps if isinstance(step, CategoricalStep)}

    def features(self) -> list[Feature]:
        """Return the meaning of each column of the matrix."""
        return [feature for step in self.steps for feature in step.features()]

    def apply(self, table: Table, missing: str | None = None) -> Prepared:
        """Transform a table to the matrix.

        Parameters
        ----------
        table : Table
            Must have every column of the steps, by name; other columns are ignored.
        missing : {'error', 'drop', 'impute'}, optional
            Treatment of missing values; by default that of the fit.

        Returns
        -------
        Prepared
        """
        check_columns(table, self.names)
        rows = rows_to_use(table, self.steps, missing or self.missing)
        widths = [len(step.features()) for step in self.steps]
        # Filled column by column, so columns are contiguous until all of them are filled.
        by_column = np.empty((sum(widths), len(rows)), dtype=self.dtype)
        notes = []
        start = 0
        for step, width in zip(self.steps, widths, strict=True):
            note = step.write(table, rows, by_column[start : start + width].T)
            notes += [note] if note else []
            start += width
        return Prepared(np.ascontiguousarray(by_column.T), rows, notes)

    def to_json(self) -> dict[str, Any]:
        """Return the steps as plain values."""
        kinds = {NumericStep: "numeric", CategoricalStep: "categorical"}
        steps = [{"kind": kinds[type(step)], **asdict(step)} for step in self.steps]
        for step in steps:
            if "levels" in step:
                step["levels"] = list(step["levels"])
            elif step["unit"] == PLAIN:
                del step["unit"]
        plain = {"missing": self.missing, "dtype": self.dtype, "steps": steps}
        return plain if self.group is None else plain | {"group": self.group}

    @classmethod
    def from_json(cls, value: Any) -> "Preparation":
        """Return the steps that :meth:`to_json` described; raise ValueError for anything else."""
        if not isinstance(value, dict) or set(value) - {"group"} != {"missing", "dtype", "steps"}:
            raise ValueError("the preparation must have missing, dtype and steps")
        if not isinstance(value.get("group", ""), str):
            raise ValueError("the preparation's group is not the name of a column")
        if value["missing"] not in MISSING_CHOICES or value["dtype"] not in ("float32", "float64"):
            raise ValueError("the preparation has an unknown choice of missing values or dtype")
        if not isinstance(value["steps"], list) or not value["steps"]:
            raise ValueError("the preparation has no steps")
        steps = tuple(_step_from_json(step) for step in value["steps"])
        if len({step.name for step in steps}) < len(steps):
            raise ValueError("the preparation uses a column twice")
        return cls(steps, value["missing"], value["dtype"], value.get("group"))


def _step_from_json(value: Any) -> Step:
    if not isinstance(value, dict) or not isinstance(value.get("name"), str):
        raise ValueError("a step of the preparation has no name")
    name, kind, keys = value["name"], value.get("kind"), set(value)
    if kind == "numeric" and keys - {"unit"} == {"kind", "name", "fill", "center", "scale"}:
        numbers = [value["fill"], value["center"], value["scale"]]
        largest = float(np.finfo(np.float64).max)  # Python integers may be larger
        finite = all(type(n) in (int, float) and -largest <= n <= largest for n in numbers)
        if finite and value["scale"] > 0 and isinstance(value.get("unit", PLAIN), str):
            unit = value.get("unit", PLAIN)
            fill, center, scale = map(float, numbers)
            return NumericStep(name, fill, center, scale, unit)
    if kind == "categorical" and keys == {"kind", "name", "fill", "levels"}:
        levels = value["levels"]
        words = isinstance(levels, list) and all(isinstance(level, str) for level in levels)
        if words and value["fill"] in levels and len(set(levels)) == len(levels):
            return CategoricalStep(name, value["fill"], tuple(levels))
    raise ValueError(f"the preparation's step for column {name!r} is not valid")


def rows_to_use(table: Table, steps: tuple[Step, ...], missing: str) -> np.ndarray:
    """Return the positions of the rows that are used, or raise for missing values not allowed.

    The result may be empty.

    Examples
    --------
    >>> import numpy as np
    >>> from countless._data.table import Numbers
    >>> table = Table("t", {"x": Numbers(np.array([1.0, np.nan]))}, n_rows=2)
    >>> rows_to_use(table, (NumericStep("x", 0.0, 0.0, 1.0),), "drop")
    array([0])
    """
    if missing == "impute":
        return np.arange(table.n_rows)
    by_column = {step.name: step.missing(table) for step in steps}
    incomplete = {name: int(where.sum()) for name, where in by_column.items() if where.any()}
    if not incomplete:
        return np.arange(table.n_rows)
    if missing == "error":
        name, count = next(iter(incomplete.items()))
        row = int(np.argmax(by_column[name])) + 1
        total = (
            f" ({sum(incomplete.values())} missing values in {len(incomplete)} columns)"
            if len(incomplete) > 1
            else ""
        )
        raise InputError(
            f"column {name!r} has {counted(count, 'missing value')}, the first in row "
            f"{row}{total}; say --missing drop or --missing impute"
        )
    return np.flatnonzero(~np.logical_or.reduce(list(by_column.values())))


def _is_empty(table: Table, name: str) -> bool:
    column = table.columns[name]
    return isinstance(column, Unusable) and column.what == "nothing"


def check_columns(table: Table, names: list[str]) -> None:
    """Raise an error that names the missing columns of a table."""
    if missing := [name for name in names if name not in table.columns]:
        raise InputError(f"{table.source} lacks {_columns_named(missing)}")


def _columns_named(names: list[str]) -> str:
    quoted = listing([repr(name) for name in names])
    return f"column {quoted}" if len(names) == 1 else f"{len(names)} columns: {quoted}"
