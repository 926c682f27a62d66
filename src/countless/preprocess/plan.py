"""Fitting the preprocessing: steps from the data and the user's options."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from .._data.columns import ColumnFacts, is_binary
from .._data.table import PLAIN, Column, Numbers, Table, Words, shortest, what_unit, written
from .._errors import InputError
from .prepare import CategoricalStep, NumericStep, Preparation, Prepared, Step, rows_to_use

# The distance of 0 and 1 is then that of two one-hot encoded levels, sqrt(2).
BINARY_SCALE = 0.5**0.5


class ColumnReport(NamedTuple):
    """The report on one column: its kind, and how it was processed."""

    name: str
    kind: str
    n_missing: int
    n_distinct: int | None
    used: bool
    done: str


class Plan(NamedTuple):
    """The fitted preprocessing, its matrix, and the report on every column of the table."""

    preparation: Preparation
    prepared: Prepared
    columns: list[ColumnReport]


def plan_preparation(
    table: Table,
    facts: list[ColumnFacts],
    *,
    missing: str = "error",
    scale: bool = True,
    weight: np.ndarray | None = None,
) -> Plan:
    """Fit the steps of every used column, and apply them.

    Parameters
    ----------
    table : Table
        The data.
    facts : list of ColumnFacts
        What :func:`~countless._data.columns.examine_columns` found.
    missing : {'error', 'drop', 'impute'}, default='error'
        Reject missing values, leave out the rows that have one, or impute the median of the column
        (its most frequent level).
    scale : bool, default=True
        Whether numeric columns are standardized to mean 0 and standard deviation 1.
    weight : ndarray of shape (n_rows,), optional
        A row of weight 2 counts as two rows.

    Returns
    -------
    Plan

    Examples
    --------
    >>> import numpy as np
    >>> from countless._data.columns import Roles, examine_columns
    >>> table = Table("t", {"x": Numbers(np.array([1.0, 3.0, np.nan]))}, n_rows=3)
    >>> plan = plan_preparation(table, examine_columns(table, Roles()), missing="impute")
    >>> plan.prepared.matrix.ravel()
    array([-1.,  1.,  0.])
    >>> plan.columns[0].done
    'standardised; missing values filled with 2'
    """
    weight = np.ones(table.n_rows) if weight is None else weight
    steps = _steps(table, [column.name for column in facts if column.used], missing, scale, weight)
    preparation, reports = decide(table, facts, steps, missing=missing, scale=scale)
    return Plan(preparation, preparation.apply(table), reports)


def decide(
    table: Table,
    facts: Sequence[ColumnFacts],
    steps: Mapping[str, Step],
    *,
    missing: str,
    scale: bool,
) -> tuple[Preparation, list[ColumnReport]]:
    """Return the preprocessing of these steps, and the report on every column.

    ``table`` has the types of the columns: rows are float32 if all that are used are.
    """
    single = all(_is_float32(table.columns[name]) for name in steps)
    preparation = Preparation(tuple(steps.values()), missing, "float32" if single else "float64")
    return preparation, [
        _report(column, steps.get(column.name), missing, scale) for column in facts
    ]


def row_weights(table: Table, name: str) -> np.ndarray:
    """Return a column as weights, or raise an error that names the row of an invalid one.

    Examples
    --------
    >>> import numpy as np
    >>> row_weights(Table("t", {"w": Numbers(np.array([1.0, 0.0]))}, n_rows=2), "w")
    array([1., 0.])
    """
    weight = block_weights(table, name)
    if not weight.any():
        raise InputError(f"weight column {name!r} is 0 in every row")
    return weight


def block_weights(table: Table, name: str) -> np.ndarray:
    """Return the weights of a block of rows, which may all be 0."""
    weight = table.numbers(name).astype(np.float64)
    wrong = np.flatnonzero(~(np.isfinite(weight) & (weight >= 0)))
    if len(wrong):
        row = int(wrong[0])
        what = "empty" if np.isnan(weight[row]) else shortest(weight[row])
        raise InputError(f"weight column {name!r}, row {row + 1} is {what}; it must be 0 or more")
    return weight


def row_groups(table: Table, name: str, rows: np.ndarray) -> np.ndarray:
    """Return the group of each of some rows, or raise an error that names a row without one.

    Examples
    --------
    >>> import numpy as np
    >>> table = Table("t", {"batch": Words(np.array([1, 0]), ("a", "b"))}, n_rows=2)
    >>> row_groups(table, "batch", np.array([0, 1])).tolist()
    ['b', 'a']
    """
    words = table.words(name)
    empty = rows[words.codes[rows] < 0]
    if len(empty):
        raise InputError(f"group column {name!r}, row {int(empty[0]) + 1} is empty")
    return np.array(words.levels)[words.codes[rows]]


def _blank_step(table: Table, name: str) -> Step:
    """Return a step that only detects missing values, before it is fitted."""
    if isinstance(table.columns[name], Words):
        return CategoricalStep(name, "", ("",))
    return NumericStep(name, 0.0, 0.0, 1.0)


def _steps(
    table: Table, names: list[str], missing: str, scale: bool, weight: np.ndarray
) -> dict[str, Step]:
    """Return the step of each column that varies in the rows that are used."""
    while names:
        rows = rows_to_use(table, tuple(_blank_step(table, name) for name in names), missing)
        if not len(rows):
            raise InputError(
                f"every row of {table.source} has a missing value; say --missing impute"
            )
        if weight[rows].sum() <= 0:
            raise InputError("the rows that are used have no weight")
        found = {name: _step(table, name, rows, weight[rows], scale) for name in names}
        steps = {name: step for name, step in found.items() if step is not None}
        if len(steps) == len(names):
            return steps
        # Without the constant columns fewer rows have missing values, so the statistics change.
        names = list(steps)
    raise InputError(f"every column of {table.source} is constant in the rows that are used")


def _step(
    table: Table, name: str, rows: np.ndarray, weight: np.ndarray, scale: bool
) -> Step | None:
    """Return the step for one column, or None if the column is constant."""
    column = table.columns[name]
    if isinstance(column, Words):
        return _categorical_step(name, column.codes[rows], column.levels, weight)
    values = table.numbers(name)[rows].astype(np.float64)
    if np.isinf(values).any():
        row = int(rows[np.isinf(values)][0])
        raise InputError(f"column {name!r}, row {row + 1} is infinite")
    present = ~np.isnan(values)
    unit = column.unit if isinstance(column, Numbers) else PLAIN
    return _fit_numeric(name, unit, values[present], weight[present], scale)


def _categorical_step(
    name: str, codes: np.ndarray, levels: tuple[str, ...], weight: np.ndarray
) -> CategoricalStep | None:
    present = codes >= 0
    total = np.bincount(codes[present], weights=weight[present], minlength=len(levels))
    weight_of = {levels[code]: total[code] for code in np.unique(codes[present])}
    if len(weight_of) < 2:
        return None
    # Ties go to the first level in alphabetical order, so that row order does not matter.
    fill = min(weight_of, key=lambda level: (-weight_of[level], level))
    return CategoricalStep(name, fill, tuple(sorted(weight_of)))


def _fit_numeric(
    name: str, unit: str, values: np.ndarray, weight: np.ndarray, scale: bool
) -> NumericStep | None:
    if weight.sum() <= 0 or values.min() == values.max():
        return None
    fill = weighted_median(values, weight)
    binary = is_binary(values[weight > 0])
    fill = round(fill) if binary else fill
    with np.errstate(over="ignore", invalid="ignore"):
        mean = float(np.average(values, weights=weight))
        deviation = float(np.sqrt(np.average(np.square(values - mean), weights=weight)))
    step = numeric_step(name, fill=fill, mean=mean, deviation=deviation, scale=scale, binary=binary)
    return step and replace(step, unit=unit)


def numeric_step(
    name: str, *, fill: float, mean: float, deviation: float, scale: bool, binary: bool = False
) -> NumericStep | None:
    """Return the step of a column with these statistics; None if its deviation rounds to 0.

    A ``binary`` column counts as a category of two: its values become sqrt(2) apart.

    Examples
    --------
    >>> numeric_step("age", fill=40.0, mean=41.0, deviation=12.0, scale=True)
    NumericStep(name='age', fill=40.0, center=41.0, scale=12.0, unit='')
    """
    if not scale:
        return NumericStep(name, fill, 0.0, 1.0)
    if not (np.isfinite(deviation) and np.isfinite(mean)):
        raise InputError(f"column {name!r} holds numbers too large to standardise")
    if not deviation > 0:
        return None
    return NumericStep(name, float(fill), mean, BINARY_SCALE if binary else deviation)


def weighted_median(values: np.ndarray, weight: np.ndarray) -> float:
    """Return the median of weighted values.

    Examples
    --------
    >>> import numpy as np
    >>> weighted_median(np.array([1.0, 2.0, 10.0]), np.array([1.0, 1.0, 4.0]))
    10.0
    >>> weighted_median(np.array([1.0, 2.0]), np.ones(2))
    1.5
    """
    if weight.min() == weight.max():
        return float(np.median(values))  # equivalent, without a sort
    order = np.argsort(values, kind="stable")
    order = order[weight[order] > 0]
    below = np.cumsum(weight[order])
    low = np.searchsorted(below, below[-1] / 2)
    high = np.searchsorted(below, below[-1] / 2, side="right")
    return float((values[order[low]] + values[order[high]]) / 2)


def _is_float32(column: Column) -> bool:
    return isinstance(column, Numbers) and column.values.dtype == np.float32


def _report(column: ColumnFacts, step: Step | None, missing: str, scale: bool) -> ColumnReport:
    """Describe a column and how it was processed."""
    if column.left_out is not None:
        done = f"left out: {column.left_out}"
    elif step is None:
        done = "left out: constant in the rows that are used"
    elif isinstance(step, CategoricalStep):
        done = f"{len(step.levels)} indicator columns"
    else:
        done = "as it is"
        if scale:
            done = "as a category of two" if column.kind == "binary" else "standardised"
        if step.unit:
            done = f"{what_unit(step.unit)}, {done}"
    if step is not None and column.n_missing and missing == "impute":
        filled = step.fill if isinstance(step, CategoricalStep) else written(step.fill, step.unit)
        done += f"; missing values filled with {filled}"
    return ColumnReport(
        column.name, column.kind, column.n_missing, column.n_distinct, step is not None, done
    )
