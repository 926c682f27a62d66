"""The observed cells of a table, and the component model of a cell."""

from __future__ import annotations

from typing import Any, NamedTuple, cast

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import validate_data

from countless._labels import number_by_appearance
from countless._mcmc.crosscat.table import read_table
from countless._mcmc.draws import equal_keys
from countless.kernels.arrays import plain
from countless.kernels.models_bundles import add_bundles
from countless.models import Bernoulli, Categorical, DiagonalGaussian
from countless.models.cells import ColumnModel
from countless.models.checks import ROUNDING, BadCell, numbers
from countless.models.protocol import BoundModel
from countless.models.registry import MODELS, as_model, model_class


class Cells(NamedTuple):
    """The observed cells of a table, in coordinate format."""

    values: np.ndarray  # (n_cells, 1)
    row: np.ndarray  # (n_cells,)
    column: np.ndarray  # (n_cells,)
    shape: tuple[int, int]

    def bound_to(self, model: BoundModel) -> CellStatistics:
        """Return the cells as statistics of a model; raise an error for an invalid cell."""
        values = _named_cells(self, lambda: model.rows(self.values))
        different, value = number_by_appearance(values[:, 0])
        statistics = model.statistics(different[:, None], np.arange(len(different)))
        return CellStatistics(
            statistics, value, self.row.astype(np.int32), self.column.astype(np.int32), self.shape
        )


class CellStatistics(NamedTuple):
    """The observed cells as additive sufficient statistics of a model."""

    statistics: np.ndarray  # (n_values, width) of each distinct value
    value: np.ndarray  # (n_cells,) index of the distinct value of each cell
    row: np.ndarray  # (n_cells,)
    column: np.ndarray  # (n_cells,)
    shape: tuple[int, int]

    def of_rows(self, part: np.ndarray) -> np.ndarray:
        """Return the sums of each row over each part of the columns, (n_rows, n_parts * width).

        ``part`` is the part of each column; columns with a negative one are omitted.
        """
        return self._sums(self.shape[0], self.row, self.column, part)

    def of_columns(self, part: np.ndarray) -> np.ndarray:
        """Return the sums of each column over each part of the rows, (n_columns, ...)."""
        return self._sums(self.shape[1], self.column, self.row, part)

    def of_blocks(self, row_part: np.ndarray, column_part: np.ndarray) -> np.ndarray:
        """Return the sums of each block, (n_row_parts, n_column_parts * width)."""
        n_parts = int(row_part.max()) + 1
        return self._sums(n_parts, row_part[self.row], self.column, column_part)

    def equal_rows(self) -> np.ndarray:
        """Return a number for each row, equal for rows with equal cells."""
        table = sp.csr_array((self.value + 1, (self.row, self.column)), self.shape)
        table.sort_indices()
        ends = zip(table.indptr[:-1], table.indptr[1:], strict=True)
        return equal_keys(
            table.indices[start:end].tobytes() + table.data[start:end].tobytes()
            for start, end in ends
        )

    def _sums(self, n_items, item, other, part) -> np.ndarray:
        sums = np.zeros((n_items, (int(part.max()) + 1) * self.statistics.shape[1]))
        add_bundles(self.statistics, self.value, item, other, plain(part, np.int32), sums)
        return sums


def read_cells(estimator: Any, X: Any, *, reset: bool) -> Cells:
    """Return the cells of a table that are not missing; of a sparse table, the stored ones.

    ``reset`` is that of ``validate_data``: whether to store the columns in the estimator.
    """
    if sp.issparse(X):
        X = validate_data(
            estimator,
            X,
            reset=reset,
            accept_sparse="coo",
            dtype=np.float64,
            ensure_all_finite="allow-nan",
        )
        values, row, column, shape = X.data, X.row, X.col, X.shape
        names: list[Any] = list(range(shape[1]))
        seen = ~np.isnan(values)
        values, row, column = values[seen], row[seen].astype(int), column[seen].astype(int)
    else:
        names, cells = read_table(estimator, X, reset=reset)
        columns = [_truth_as_numbers(each) for each in cells]
        words = any(each.dtype.kind != "f" for each in columns)
        table = np.stack(columns, axis=1, dtype=object if words else np.float64)
        # Only NaN differs from itself.
        missing = np.equal(table, None) | (table != table)  # type: ignore[call-overload]
        row, column = np.nonzero(~missing.astype(bool))
        values, shape = table[row, column], table.shape
    if not len(values):
        raise ValueError("X has no cell that is not missing")
    if reset:
        estimator.column_names_ = names
    return Cells(values[:, None], row, column, shape)


def _truth_as_numbers(cells: np.ndarray) -> np.ndarray:
    """Return a column of booleans as 1 and 0, any other unchanged."""
    if cells.dtype == object and all(cell is None or isinstance(cell, bool) for cell in cells):
        return cells.astype(np.float64)  # None becomes NaN
    return cells


def choose_model(model: Any, cells: Cells) -> ColumnModel:
    """Return the model of a cell: the given one, or with 'auto' one for the type of the values."""
    if isinstance(model, str) and model == "auto":
        values = cells.values[:, 0]
        if values.dtype == object:
            return Categorical()
        return Bernoulli() if np.isin(values, (0.0, 1.0)).all() else DiagonalGaussian()
    chosen = as_model(model)
    if not chosen.for_cells:
        known = [repr(name) for name in MODELS if model_class(name).for_cells]
        raise ValueError(
            f"model must be 'auto', {', '.join(known)}, or one of these; got {model!r}"
        )
    return cast(ColumnModel, chosen)


def bind(model: ColumnModel, cells: Cells) -> BoundModel:
    """Return the model of one cell, with hyperparameters set from all cells."""
    if model.real_valued:
        _check_digits(cells)
    return _named_cells(cells, lambda: model.bind(cells.values))


def _check_digits(cells: Cells) -> None:
    """Raise a ValueError if the variation within columns is lost to rounding.

    Squares of the differences between columns may be too large for it.
    """
    values = _named_cells(cells, lambda: numbers(cells.values[:, 0], 0)).astype(np.float64)
    count = np.maximum(np.bincount(cells.column, minlength=cells.shape[1]), 1)
    first = np.zeros(cells.shape[1])
    first[cells.column] = values  # a shift per column: a constant column has deviation 0
    mean = first + np.bincount(cells.column, values - first[cells.column], len(count)) / count
    inside = float(np.abs(values - mean[cells.column]).max())
    apart = float(np.ptp(mean[np.unique(cells.column)]))
    if 0 < inside < np.sqrt(ROUNDING) * apart:
        raise ValueError(
            f"columns of X are {apart:g} apart and vary by {inside:g}: one model of all cells "
            "cannot hold both; center or scale the columns"
        )


def _named_cells(cells: Cells, check: Any) -> Any:
    """Run a check of the cells as one long column, and report errors by row and column of X."""
    try:
        return check()
    except BadCell as bad:
        raise bad.at(int(cells.row[bad.row]), int(cells.column[bad.row])) from None
