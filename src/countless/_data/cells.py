"""Encoding of any table as comparable numbers: the kind of each column, and its cells.

A numeric column keeps its numbers, an ordinal one becomes equal steps in (0, 1], and a categorical
one the indices of its levels. NaN is a missing value in all of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np
from scipy.sparse import issparse

from countless._numbers import check_column_names

NUMERIC, ORDINAL, CATEGORICAL = "numeric", "ordinal", "categorical"
BOOLEAN, EMPTY = "boolean", "empty"


class Column(NamedTuple):
    """One column of a table: its name, its kind, and its cells.

    ``cells`` are numbers with NaN for missing values in a numeric column, and any values with None
    for missing ones in the others. ``levels`` has those of an ordinal column, in order, if known.
    """

    name: Any
    kind: str
    cells: np.ndarray
    levels: tuple | None = None


def code_ordinal(values: Iterable, levels: Sequence) -> np.ndarray:
    """Code values by their rank among ordered levels: 1/L, 2/L, ..., L/L; None is missing.

    Parameters
    ----------
    values : iterable
        One value per row.
    levels : sequence
        All levels, lowest first.

    Returns
    -------
    ndarray of float64

    Examples
    --------
    >>> from countless.dissimilarity import code_ordinal
    >>> code_ordinal(["low", "high", None, "middle"], ["low", "middle", "high"]).round(2)
    array([0.33, 1.  ,  nan, 0.67])
    """
    return _places("values", values, levels) / len(levels)


def read_columns(
    X: Any, kinds: Mapping[Any, Any] | None = None, *, every: str | None = None
) -> list[Column]:
    """Return the columns of a data frame or an array, and the kind of each.

    Parameters
    ----------
    X : data frame or array-like of shape (n_rows, n_columns)
        pandas, polars or PyArrow frames, a list of `Column`, or anything NumPy takes. Ordered
        categories (pandas) and enumerations (polars) are ordinal; other text, categories and
        Booleans are categorical.
    kinds : mapping, optional
        'numeric', 'ordinal', 'categorical', or the levels of an ordinal column in order, by the
        column's name (its number in an array), where the inferred kind is not the right one.
    every : {'numeric', 'ordinal', 'categorical'}, optional
        The kind of all columns.
    """
    columns = _columns_of(X)
    if not columns or not len(columns[0].cells):
        raise ValueError("X holds no row" if columns else "X holds no column")
    if every is not None:
        return [_retold(column, every) for column in columns]
    for name, kind in (kinds or {}).items():
        at = next((i for i, column in enumerate(columns) if column.name == name), None)
        if at is None:
            raise ValueError(f"kinds names column {name!r}, which X does not have")
        columns[at] = _retold(columns[at], kind)
    return columns


def _columns_of(X: Any) -> list[Column]:
    if issparse(X):
        raise ValueError("X is sparse, where this metric takes a table: give X.toarray()")
    if isinstance(X, list) and X and isinstance(X[0], Column):
        return list(X)
    check_column_names(X)
    frame = nw.from_native(X, eager_only=True, pass_through=True)
    return _from_frame(frame) if isinstance(frame, nw.DataFrame) else _from_array(X)


def numbers_of(column: Column, levels: tuple | None) -> np.ndarray:
    """Return the cells of a column as numbers, coded by these levels unless it is numeric.

    An unknown level of a categorical column gets a new code.
    """
    if column.kind == NUMERIC:
        return column.cells
    if column.kind == ORDINAL:
        return _places(f"column {column.name!r}", column.cells, levels or ()) / len(levels or (0,))
    place = {level: i for i, level in enumerate(levels or ())}
    return np.array(
        [np.nan if cell is None else place.get(cell, len(place)) for cell in column.cells],
        dtype=np.float64,
    )


def levels_of(column: Column) -> tuple | None:
    """Return the levels of a column, in order if it is ordinal; None for numbers."""
    if column.kind == NUMERIC:
        return None
    if column.levels is not None:
        return column.levels
    found = dict.fromkeys(cell for cell in column.cells if cell is not None)
    if column.kind == CATEGORICAL:
        return tuple(found)
    try:
        return tuple(sorted(found))
    except TypeError as error:
        raise ValueError(
            f"column {column.name!r} holds values that cannot be put in order; give its levels "
            "in kinds"
        ) from error


def _places(what: str, values: Iterable, levels: Sequence) -> np.ndarray:
    """Return the rank of each value among the levels, from 1."""
    place = {level: i for i, level in enumerate(levels, start=1)}
    if len(place) < len(levels):
        raise ValueError(f"the levels of {what} are not all different")
    found = np.empty(len(values := list(values)))
    for row, value in enumerate(values):
        if not is_missing(value) and value not in place:
            raise ValueError(f"{what}: row {row} is {value!r}, which is not among the levels")
        found[row] = np.nan if is_missing(value) else place[value]
    return found


def kind_of(values: Iterable) -> str:
    """Return the kind of a column by its values, missing ones left out.

    'numeric' for numbers; 'boolean' for truth values, or these and numbers; 'empty' without values;
    'categorical' for anything else.

    Examples
    --------
    >>> kind_of([1, 0.5]), kind_of([True, 0]), kind_of(["a", 1]), kind_of([])
    ('numeric', 'boolean', 'categorical', 'empty')
    """
    types = {type(value) for value in values}
    if not types:
        return EMPTY
    if not all(issubclass(kind, int | float) for kind in types):
        return CATEGORICAL
    return BOOLEAN if bool in types else NUMERIC


def is_missing(value: Any) -> bool:
    """Return whether a cell is missing; NaN, NaT and NA are not equal to themselves."""
    return value is None or type(value).__name__ == "NAType" or bool(value != value)


def _from_frame(frame: nw.DataFrame) -> list[Column]:
    columns = []
    for place, name in enumerate(frame.columns):
        if not isinstance(name, str | int):
            raise ValueError(f"column {place} of X has the name {name!r}; names must be text")
        series = frame.get_column(name)
        kind = series.dtype
        if kind.is_numeric():
            columns.append(Column(name, NUMERIC, series.cast(nw.Float64).to_numpy()))
        elif isinstance(kind, nw.Enum):
            levels = tuple(kind.categories)
            columns.append(Column(name, ORDINAL, _values(series.to_list()), levels))
        elif kind in (nw.String, nw.Categorical, nw.Boolean, nw.Object):
            columns.append(_recognised(name, _values(series.to_list())))
        else:
            raise ValueError(f"column {name!r} holds {kind}, which cannot be compared")
    return columns


def _from_array(X: Any) -> list[Column]:
    table = np.asarray(X)
    if table is not X and table.dtype.kind in "US":  # lists: numbers next to text remain numbers
        table = np.array(X, dtype=object)
    if table.ndim != 2:
        raise ValueError(f"X must have two dimensions; got {table.ndim}")
    if table.dtype.kind in "iuf":
        return [Column(i, NUMERIC, table[:, i].astype(np.float64)) for i in range(table.shape[1])]
    return [_recognised(i, _values(table[:, i].tolist())) for i in range(table.shape[1])]


def _values(cells: list) -> np.ndarray:
    """Return cells as objects, None for missing ones."""
    values = np.empty(len(cells), dtype=object)
    values[:] = [None if is_missing(cell) else cell for cell in cells]
    return values


def _recognised(name: Any, cells: np.ndarray) -> Column:
    """Return a column of objects: numeric if all of its values are numbers, else categorical."""
    if kind_of(cell for cell in cells if cell is not None) == NUMERIC:
        return Column(name, NUMERIC, cells.astype(np.float64))
    return Column(name, CATEGORICAL, cells)


def _retold(column: Column, kind: Any) -> Column:
    """Return a column converted to the kind that the user specified."""
    cells = column.cells
    if kind == NUMERIC and column.kind != NUMERIC:
        numbers = np.empty(len(cells))
        for row, cell in enumerate(cells):
            try:
                numbers[row] = np.nan if cell is None else float(cell)
            except (TypeError, ValueError) as error:
                raise ValueError(
                    f"column {column.name!r} must hold numbers; row {row} is {cell!r}"
                ) from error
        return Column(column.name, NUMERIC, numbers)
    if column.kind == NUMERIC and kind != NUMERIC:
        cells = _values(cells.tolist())
    if isinstance(kind, str):
        if kind not in (NUMERIC, ORDINAL, CATEGORICAL):
            raise ValueError(
                f"kinds must say 'numeric', 'ordinal', 'categorical' or give levels; "
                f"column {column.name!r} has {kind!r}"
            )
        levels = column.levels if kind == ORDINAL else None
        return Column(column.name, kind, cells, levels)
    return Column(column.name, ORDINAL, cells, tuple(kind))
