"""Conversion of input tables to the format of column models, and back to the input's type."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np
from sklearn.utils.validation import validate_data

from countless._data.cells import read_columns
from countless._numbers import check_column_names


class _Cells(NamedTuple):
    cells: np.ndarray

    def to_numpy(self) -> np.ndarray:
        return self.cells


class Table(NamedTuple):
    """Columns with their names; it has the methods of a data frame that models use."""

    columns: list[Any]  # the names, or indices if there are none
    cells: list[np.ndarray]

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and of columns."""
        return len(self.cells[0]), len(self.cells)

    def get_columns(self) -> list[_Cells]:
        """Return the columns."""
        return [_Cells(cells) for cells in self.cells]


def read_table(estimator: Any, X: Any, *, reset: bool) -> Table:
    """Return the columns of a data frame or an array, validated as in scikit-learn."""
    if isinstance(X, Table):
        validate_data(estimator, X, reset=reset, skip_check_array=True)
        return X
    check_column_names(X)
    frame = nw.from_native(X, eager_only=True, pass_through=True)
    if isinstance(frame, nw.DataFrame) or _holds_words(X):
        validate_data(estimator, X, reset=reset, skip_check_array=True)
    else:
        X = validate_data(
            estimator, X, reset=reset, dtype=np.float64, ensure_all_finite="allow-nan"
        )
    columns = read_columns(X)
    return Table([column.name for column in columns], [column.cells for column in columns])


def one_row(names: list[Any], given: Mapping[Any, Any]) -> Table:
    """Return a row with these values; the others are missing."""
    places = column_places(names, list(given))
    cells = [np.array([None], dtype=object) for _ in names]
    for place, value in zip(places, given.values(), strict=True):
        cells[place][0] = value
    return Table(names, cells)


def column_places(names: list[Any], asked: Any) -> np.ndarray:
    """Return the indices of columns given by name or index; raise a ValueError if unknown."""
    known = {name: place for place, name in enumerate(names)}
    places = []
    for column in np.atleast_1d(np.asarray(asked, dtype=object)):
        place = known.get(column, column)
        if isinstance(place, bool) or not isinstance(place, int | np.integer):
            raise ValueError(f"{column!r} is no column of the table")
        if not 0 <= place < len(names):
            raise ValueError(f"the table has {len(names)} columns, and no column {place}")
        places.append(int(place))
    return np.array(places, dtype=np.int64)


def names_array(names: list[Any]) -> np.ndarray:
    """Return column names, or indices, as an array for files; raise a ValueError for others."""
    for name in names:
        if type(name) is not type(names[0]) or not isinstance(name, str | int):
            raise ValueError(f"a file holds names of columns that are text, not {name!r}")
    return np.array(names)


def like(X: Any, names: list[Any], columns: list[np.ndarray]) -> Any:
    """Return columns in the type of X: its kind of data frame, or an array."""
    if isinstance(X, Table):
        return Table(names, columns)
    frame = nw.from_native(X, eager_only=True, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        filled = {name: column.tolist() for name, column in zip(names, columns, strict=True)}
        return nw.from_dict(filled, backend=frame.implementation).to_native()
    if all(column.dtype == np.float64 for column in columns):
        return np.column_stack(columns)
    table = np.empty((len(columns[0]), len(columns)), dtype=object)
    for j, column in enumerate(columns):
        table[:, j] = column
    return table


def holds_truth_values(cells: np.ndarray) -> bool:
    """Return whether a column contains booleans."""
    if cells.dtype != object:
        return cells.dtype == bool
    return any(isinstance(cell, bool | np.bool_) for cell in cells)


def _holds_words(X: Any) -> bool:
    """Return whether X, which is no data frame, may contain other values than numbers."""
    if hasattr(X, "dtype"):
        return getattr(X, "ndim", 0) == 2 and X.dtype.kind in "OUSb"
    return isinstance(X, list | tuple) and any(
        isinstance(cell, str) or cell is None
        for row in X
        if isinstance(row, list | tuple)
        for cell in row
    )
