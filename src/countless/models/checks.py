"""Input of models: its validation, and rounded values.

Errors name the row and column, or the parameter.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

# The squares of larger numbers, summed over rows, would overflow.
LARGEST = 1e152
# Below this variance, squares have underflowed and lost digits.
LEAST_VARIANCE = 1e-280
# Relative tolerance of rounding errors: numbers that differ less are equal.
ROUNDING = 8 * np.finfo(np.float64).eps

# Prior expectation of the variance of a cluster as a share of the variance of the data; and the
# same with fewer rows than columns, where nothing else prevents narrow clusters of one row each.
SHARE, SHARE_OF_FEW = 0.1, 1.0


class BadCell(ValueError):
    """An invalid cell for a model."""

    def __init__(self, what: str, row: int, column: int, value: Any = None):
        has = "" if value is None else f" has {value}"
        super().__init__(f"X {what}: row {row}, column {column}{has}")
        self.what, self.row, self.column, self.value = what, row, column, value

    def at(self, row: int, column: int) -> BadCell:
        """Return the same error for another row and column."""
        return BadCell(self.what, row, column, self.value)


def columns_of(X: Any) -> list[np.ndarray]:
    """Return the columns of an array or of a data frame (pandas, polars)."""
    if hasattr(X, "iloc"):
        columns = [_values_of(X.iloc[:, j]) for j in range(X.shape[1])]
    elif hasattr(X, "get_columns"):
        columns = [column.to_numpy() for column in X.get_columns()]
    else:
        array = np.asarray(X)
        if array is not X and array.dtype.kind in "US":  # lists: keep numbers mixed with text
            array = np.array(X, dtype=object)
        if array.ndim != 2:
            raise ValueError(f"X must have rows and columns; its shape is {array.shape}")
        columns = list(array.T)
    if not columns:
        raise ValueError("X has no columns; at least one is needed")
    if not len(columns[0]):
        raise ValueError(f"X has {len(columns)} columns and no rows; at least one row is needed")
    return [_times_as_objects(column) for column in columns]


def _times_as_objects(values: np.ndarray) -> np.ndarray:
    """Return dates as objects: in nanoseconds, and where missing, they would become numbers."""
    kind = values.dtype.kind
    return values.astype(f"{kind}8[us]").astype(object) if kind in "mM" else values


def _values_of(column: Any) -> np.ndarray:
    """Return a column of a pandas frame; missing values among objects, of any type, as None."""
    values = column.to_numpy()
    if values.dtype == object:
        values = values.copy()
        values[column.isna().to_numpy()] = None
    return values


def refuse(bad: np.ndarray, values: np.ndarray, column: int, why: str) -> None:
    """Raise an error that names the first invalid cell of a column, if there is one."""
    if bad.any():
        row = int(np.argmax(bad))
        raise BadCell(why, row, column, values[row])


def numbers(values: np.ndarray, column: int) -> np.ndarray:
    """Return a column as floats, missing values as NaN; float32 is preserved."""
    if values.dtype.kind == "c":
        raise BadCell("contains a complex number", 0, column, values[0])
    if values.dtype == np.float32:
        result = values
    else:
        try:
            result = np.asarray(values, dtype=np.float64)
        except (TypeError, ValueError, OverflowError):
            result = np.array([_number(value, row, column) for row, value in enumerate(values)])
    refuse(np.isinf(result), values, column, "contains infinity")
    if result.dtype == np.float64:
        too_large = np.abs(result) > LARGEST
        refuse(too_large, values, column, f"contains a number beyond {LARGEST:g}")
    return result


def _number(value: Any, row: int, column: int) -> float:
    try:
        return np.nan if value is None else float(value)
    except (TypeError, ValueError, OverflowError):
        raise BadCell(f"has {value!r}, not a number", row, column) from None


def integers(values: np.ndarray, column: int) -> np.ndarray:
    """Return a column of counts as floats, missing values as NaN."""
    result = numbers(values, column)
    refuse(result < 0, values, column, "contains a negative count")
    refuse(result % 1 > 0, values, column, "contains a count that is not an integer")
    return result


def per_column(name: str, value: Any, n_columns: int, *, positive: bool = True) -> np.ndarray:
    """Validate a parameter, a scalar or one number for each column; return one for each column."""
    wanted = "one number" if n_columns == 1 else f"one number or {n_columns}"
    try:
        array = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be {wanted}; got {value!r}") from None
    if array.shape not in ((), (n_columns,)):
        raise ValueError(f"{name} must be {wanted}; its shape is {array.shape}")
    if not np.isfinite(array).all() or (positive and not (array > 0).all()):
        kind = "positive" if positive else "finite"
        raise ValueError(f"{name} must be {kind}; got {value}")
    return np.broadcast_to(array, (n_columns,)).copy()


def means_and_variances(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return mean and variance of each column, ignoring missing values; 0 and 1 without values.

    A constant column gets variance 1, and its mean is exactly its value.
    """
    seen = np.isfinite(values)
    count = np.maximum(seen.sum(axis=0), 1)
    filled = np.where(seen, values, 0.0).astype(np.float64)
    mean = filled.sum(axis=0) / count
    variance = np.where(seen, (filled - mean) ** 2, 0.0).sum(axis=0) / count
    for j in range(values.shape[1]):
        column = values[seen[:, j], j].astype(np.float64)
        if not len(column) or is_constant(column):
            mean[j], variance[j] = (column[0] if len(column) else 0.0), 1.0
        elif variance[j] < LEAST_VARIANCE:
            raise ValueError(
                f"a column of X spans {np.ptp(column):g}, and squares of that underflow; "
                "scale it up"
            )
    return mean, variance


def cluster_share(columns: Sequence[np.ndarray] | np.ndarray) -> float:
    """Return the expected variance of a cluster as a share of that of these columns.

    Constant columns are not counted.
    """
    n_rows = len(columns[0])
    few = n_rows < len(columns) and n_rows < sum(map(_varies, columns))
    return SHARE_OF_FEW if few else SHARE


def _varies(values: np.ndarray) -> bool:
    """Return whether a column of any type has two different values; missing ones are ignored."""
    seen = (value for value in values.tolist() if value is not None and value == value)
    first = next(seen, None)
    return any(value != first for value in seen)


def is_constant(values: np.ndarray) -> bool:
    """Return whether numbers are equal up to rounding errors."""
    return bool(np.ptp(values) <= ROUNDING * np.abs(values).max())


def log_rounding_variances(values: np.ndarray) -> np.ndarray:
    """Return the log variance of rounding in each column; -inf where no value repeats.

    Repeated values are taken to be rounded, to steps no larger than the least difference. If they
    were taken as exact, the likelihood of a cluster of equal values would be unbounded as its
    variance tends to 0.
    """
    found = np.full(values.shape[1], -np.inf)
    for j, column in enumerate(values.T.astype(np.float64)):
        seen = column[np.isfinite(column)]
        distinct = np.unique(seen)
        if 1 < len(distinct) < len(seen):
            steps = np.diff(distinct)
            steps = steps[steps > 1e-9 * np.ptp(distinct)]  # others are rounding errors
            if len(steps):
                found[j] = 2.0 * np.log(steps.min()) - np.log(12.0)
    return found


# Width of a uniform distribution of variance 1.
CONSTANT_STEP = 12.0**0.5


def spread_rounding(
    rows: np.ndarray, columns: Sequence[int] | np.ndarray, random: np.random.Generator
) -> np.ndarray:
    """Dither: spread equal numbers evenly over a rounding step, in random order.

    A rounded value stands for an interval as wide as the rounding step. If rounded values are taken
    as exact, the likelihood is unbounded: a cluster of equal values may have an arbitrarily small
    variance.

    The step of a column is the smallest difference between its values. Spread over it, three or
    more equal numbers have the variance step^2 / 12 of rounding. A constant column has no step; it
    is given the variance 1 that models assume for it, and is then uninformative about clusters.

    Parameters
    ----------
    rows : ndarray of shape (n_rows, n_columns)
    columns : sequence of int
        Columns of numbers whose variance is estimated.
    random : numpy.random.Generator

    Returns
    -------
    ndarray of shape (n_rows, n_columns)
        The mean of equal numbers is unchanged, as are numbers that occur once.
    """
    spread = rows.copy()
    steps = np.sqrt(12.0 * np.exp(log_rounding_variances(rows[:, columns])))
    for j, step in zip(columns, steps, strict=True):
        seen = np.flatnonzero(~np.isnan(rows[:, j]))
        if len(seen) > 1 and is_constant(rows[seen, j]):
            step = CONSTANT_STEP
        if step == 0:  # all values are distinct
            continue
        _, value, count = np.unique(rows[seen, j], return_inverse=True, return_counts=True)
        order = np.lexsort((random.random(len(seen)), value))
        rank = np.empty(len(seen))
        rank[order] = np.arange(len(seen)) - np.repeat(np.cumsum(count) - count, count)
        spread[seen, j] += step * ((rank + 0.5) / count[value] - 0.5)
    return spread
