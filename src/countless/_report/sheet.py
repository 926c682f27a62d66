"""The table of a report: its columns, which rows and columns are shown, and the map of the rows."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np
import scipy.sparse as sp

from countless._auto.tables import is_graph
from countless._data.cells import NUMERIC, levels_of, numbers_of, read_columns
from countless.preprocess.prepare import Feature


@dataclass(frozen=True)
class SheetLimits:
    """How much of a table the page holds, so that it opens at once."""

    # Rows that are shown, and those of the smallest clusters that a sample always has.
    rows: int = 20_000
    rows_a_cluster: int = 20
    # Columns that are shown, and the length of all their cells; the map has a share, too.
    columns: int = 60
    characters: int = 2_600_000
    cell_characters: int = 200
    # Features from which principal components are computed exactly.
    exact_features: int = 1000
    # Below this spread numbers are not rounded; larger ones are not written as integers.
    least_spread: float = 1e-8
    largest_integer: float = 1e15


SHEET = SheetLimits()


class SheetColumn(NamedTuple):
    """A column as people know it."""

    name: str
    values: np.ndarray  # (n_rows,) numbers, NaN missing; or indices of levels, -1 missing
    levels: tuple[str, ...] | None  # None for numbers
    used: bool  # in the clustering
    kind: str
    done: str  # how it was processed


class Sheet(NamedTuple):
    """The rows that were clustered."""

    source: str
    columns: list[SheetColumn]
    matrix: Any  # (n_rows, n_features) what was compared, dense or sparse; None for a graph
    positions: np.ndarray  # (n_rows,) row numbers in the table, from 1
    names: Sequence[str] | None  # of the rows
    n_source_rows: int  # in the table, those with gaps that were left out included
    n_columns: int  # of the table

    @property
    def n_rows(self) -> int:
        return len(self.positions)

    def renamed(self, names: Sequence[str]) -> Sheet:
        """Return the sheet with names for its columns, which are those of an array or fewer."""
        found = [
            column._replace(name=names[int(column.name.removeprefix("column ")) - 1])
            for column in self.columns
        ]
        return self._replace(columns=found)


def sheet_of(X: Any, labels: np.ndarray, *, source: str, names: Any = None) -> Sheet:
    """Return the sheet of rows that were given to an estimator: an array, or a data frame.

    Parameters
    ----------
    X : array-like, sparse matrix, data frame or graph
    labels : ndarray of shape (n_rows,)
        Decides which columns of a wide array are kept.
    source : str
        The name of the table.
    names : sequence of str, optional
        Names of the rows.

    Examples
    --------
    >>> sheet = sheet_of([[1.0, 5.0], [2.0, 5.0]], np.array([0, 1]), source="rows")
    >>> [column.name for column in sheet.columns], sheet.matrix.shape
    (['column 1', 'column 2'], (2, 2))
    """
    if is_graph(X) or (sp.issparse(X) and X.shape[0] == X.shape[1] and len(labels) == X.shape[0]):
        n_rows = len(labels)
        return Sheet(source, [], None, np.arange(1, n_rows + 1), names, n_rows, 0)
    if sp.issparse(X):
        columns, matrix, n_columns = _of_matrix(sp.csr_array(X), labels), X, X.shape[1]
    elif (array := _as_numbers(X)) is not None:
        columns, matrix, n_columns = _of_matrix(array, labels), array, array.shape[1]
    else:
        columns = columns_of(X)
        matrix, n_columns = encoded(columns)[0], len(columns)
    n_rows = len(labels)
    return Sheet(source, columns, matrix, np.arange(1, n_rows + 1), names, n_rows, n_columns)


def _as_numbers(X: Any) -> np.ndarray | None:
    """Return an array of numbers without missing values; None for any other table."""
    if isinstance(nw.from_native(X, pass_through=True), nw.DataFrame):
        return None
    array = np.asarray(X)
    if array.ndim != 2 or array.dtype.kind not in "biuf":
        return None
    array = array.astype(np.float64, copy=False)
    return array if np.isfinite(array).all() else None


def encoded(columns: Sequence[SheetColumn]) -> tuple[np.ndarray, list[Feature]]:
    """Return the columns that were used as numbers to compare rows by, and what these mean.

    Numbers without missing values are unchanged if there is no other column. Otherwise they are
    standardized, 0 where missing, and a level becomes an indicator column.

    Examples
    --------
    >>> color = SheetColumn("color", np.array([0, 1, -1]), ("red", "blue"), True, "", "")
    >>> matrix, features = encoded([color])
    >>> matrix.round(2).tolist(), [feature.level for feature in features]
    ([[0.71, 0.0], [0.0, 0.71], [0.0, 0.0]], ['red', 'blue'])
    """
    used = [column for column in columns if column.used]
    if all(column.levels is None and np.isfinite(column.values).all() for column in used):
        features = [Feature(column.name, None, 0.0, 1.0) for column in used]
        return np.column_stack([column.values for column in used]), features
    parts, features = [], []
    for column in used:
        if column.levels is not None:
            parts.append((column.values[:, None] == np.arange(len(column.levels))) / np.sqrt(2))
            features += [Feature(column.name, one, 0.0, float(np.sqrt(2))) for one in column.levels]
            continue
        known = np.isfinite(column.values)
        values = column.values[known]
        center = float(values.mean()) if len(values) else 0.0
        scale = float(values.std()) if len(values) else 0.0
        scaled = np.zeros((len(known), 1))
        scaled[known, 0] = (values - center) / scale if scale > 0 else 0.0
        parts.append(scaled)
        features.append(Feature(column.name, None, center, scale))
    return np.hstack(parts), features


def _of_matrix(matrix: Any, labels: np.ndarray) -> list[SheetColumn]:
    """Return the columns of an array; of a wide one those that differ most between clusters."""
    chosen = np.arange(matrix.shape[1])
    if len(chosen) > SHEET.columns:
        chosen = np.sort(np.argsort(-_differences(matrix, labels), kind="stable")[: SHEET.columns])
    dense = matrix[:, chosen].toarray() if sp.issparse(matrix) else matrix[:, chosen]
    return [
        SheetColumn(f"column {at + 1}", values.astype(np.float64), None, True, "numeric", "")
        for at, values in zip(chosen, dense.T, strict=True)
    ]


def _differences(matrix: Any, labels: np.ndarray) -> np.ndarray:
    """Return the variance of each column between clusters, as a share of all of it."""
    _, index, size = np.unique(labels, return_inverse=True, return_counts=True)
    member = sp.csr_array((np.ones(len(index)), (index, np.arange(len(index)))))
    total = member @ matrix
    means = (total.toarray() if sp.issparse(total) else total) / size[:, None]
    share = size / size.sum()
    mean = share @ means
    between = share @ np.square(means - mean)
    square = matrix.multiply(matrix) if sp.issparse(matrix) else np.square(matrix)
    variance = np.asarray(square.mean(axis=0)).ravel() - np.square(mean)
    return np.where(variance > 0, between / np.where(variance > 0, variance, 1), 0)


def columns_of(X: Any) -> list[SheetColumn]:
    """Return the columns of a data frame, or of an array of any cells."""
    return [_of_cells(column) for column in read_columns(X)]


def _of_cells(column: Any) -> SheetColumn:
    name = column.name if isinstance(column.name, str) else f"column {column.name + 1}"
    levels = levels_of(column)
    if column.kind == NUMERIC or levels is None:
        return SheetColumn(name, column.cells, None, True, "numeric", "")
    values = numbers_of(column._replace(kind="categorical"), levels)
    codes = np.where(np.isnan(values), -1, values).astype(np.int64)
    return SheetColumn(name, codes, tuple(map(str, levels)), True, column.kind, "")


def choose_rows(labels: np.ndarray, most: int = SHEET.rows) -> np.ndarray:
    """Return the rows to show: all, or a sample that has rows of every cluster.

    Examples
    --------
    >>> choose_rows(np.array([0, 0, 0, 1]), most=2).size
    4
    """
    n_rows = len(labels)
    if n_rows <= most:
        return np.arange(n_rows)
    order = np.random.default_rng(0).permutation(n_rows)
    of_cluster = np.argsort(labels[order], kind="stable")
    starts = np.flatnonzero(np.diff(labels[order][of_cluster], prepend=labels.min() - 1))
    rank = np.empty(n_rows, dtype=np.int64)
    lengths = np.diff(np.append(starts, n_rows))
    rank[of_cluster] = np.arange(n_rows) - np.repeat(starts, lengths)
    always = order[rank < SHEET.rows_a_cluster]
    rest = order[rank >= SHEET.rows_a_cluster]
    return np.sort(np.append(always, rest[: max(0, most - len(always))]))


def choose_columns(sheet: Sheet, labels: np.ndarray, shown: np.ndarray) -> list[dict[str, Any]]:
    """Return the columns to show as plain values, those that tell clusters apart first.

    They are as many as fit on the page, in the order of the table.
    """
    ranked = sorted(
        range(len(sheet.columns)),
        key=lambda at: (not sheet.columns[at].used, -_difference(sheet.columns[at], labels)),
    )
    left, kept = SHEET.characters, {}
    for at in ranked[: SHEET.columns]:
        plain = plain_column(sheet.columns[at], shown)
        length = len(json.dumps(plain, ensure_ascii=False, separators=(",", ":")).encode())
        if length <= left:
            kept[at] = plain
            left -= length
    return [kept[at] for at in sorted(kept)]


def _difference(column: SheetColumn, labels: np.ndarray) -> float:
    """Return how much a column differs between clusters, from 0 to 1."""
    present = column.values >= 0 if column.levels else ~np.isnan(column.values)
    values, index = column.values[present], np.unique(labels[present], return_inverse=True)[1]
    if not len(values):
        return 0.0
    if column.levels is None:
        return float(_differences(values[:, None], labels[present])[0])
    table = np.zeros((index.max() + 1, int(values.max()) + 1))
    np.add.at(table, (index, values), 1)
    whole = 1 - float(np.square(table.sum(axis=0) / len(values)).sum())
    own = table.sum(axis=1)
    within = float((own - np.square(table).sum(axis=1) / own).sum()) / len(values)
    return 1 - within / whole if whole > 0 else 0.0


def plain_column(column: SheetColumn, shown: np.ndarray) -> dict[str, Any]:
    """Return some rows of a column as plain values; numbers have four digits of their spread.

    Examples
    --------
    >>> column = SheetColumn("x", np.array([0.123456, np.nan]), None, True, "numeric", "")
    >>> plain_column(column, np.array([0, 1]))["values"]
    [0.123456, None]
    """
    values = column.values[shown]
    plain: dict[str, Any] = {"name": column.name, "used": column.used}
    if column.levels is None:
        return plain | {"kind": "numeric", "values": plain_numbers(values)}
    present, codes = np.unique(values[values >= 0], return_inverse=True)
    again = np.full(len(values), -1)
    again[values >= 0] = codes
    levels = [_shortened(str(column.levels[code])) for code in present]
    return plain | {"kind": "categorical", "levels": levels, "values": again.tolist()}


def _shortened(text: str) -> str:
    return text if len(text) <= SHEET.cell_characters else text[: SHEET.cell_characters - 1] + "…"


def plain_numbers(values: np.ndarray) -> list[Any]:
    """Return numbers as a list with None for missing ones, rounded to their spread.

    Examples
    --------
    >>> plain_numbers(np.array([1.0, 2.0, 3.5]))
    [1, 2, 3.5]
    """
    values = np.asarray(values, dtype=np.float64)
    finite = values[np.isfinite(values)]
    top = float(np.abs(finite).max(initial=0.0))
    spread = top * float((finite / top).std()) if top > 0 else 0.0
    if spread > SHEET.least_spread:
        values = np.round(values, min(max(4 - math.floor(math.log10(spread)), 0), 12))
    return [
        None
        if not math.isfinite(value)
        else int(value)
        if value.is_integer() and abs(value) < SHEET.largest_integer
        else value
        for value in values.tolist()
    ]


def principal_components(matrix: Any) -> tuple[np.ndarray, list[float]]:
    """Return the coordinates of rows on two principal components, and their share of the variance.

    Examples
    --------
    >>> points, share = principal_components(np.array([[0.0, 0.0], [1.0, 2.0], [2.0, 4.0]]))
    >>> points.shape, [round(one, 2) for one in share]
    ((3, 2), [1.0, 0.0])
    """
    from sklearn.decomposition import PCA, TruncatedSVD

    n_rows, n_features = matrix.shape
    if sp.issparse(matrix):
        most = min(2, n_features - 1, n_rows - 1)
        if most < 1:
            return np.zeros((n_rows, 2)), [0.0, 0.0]
        found: Any = TruncatedSVD(most, random_state=0)
    else:
        matrix = np.asarray(matrix, dtype=np.float64)
        solver = "covariance_eigh" if n_features <= SHEET.exact_features else "randomized"
        found = PCA(min(2, n_features, n_rows), svd_solver=solver, random_state=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        points = found.fit_transform(matrix)
        share = np.nan_to_num(found.explained_variance_ratio_).tolist()
    missing = 2 - points.shape[1]
    return np.hstack([points, np.zeros((n_rows, missing))]), share + [0.0] * missing
