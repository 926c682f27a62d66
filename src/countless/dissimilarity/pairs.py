"""Dissimilarities of all pairs of rows, in tiles on threads.

Every metric is a sum over the columns of ``weight * difference``, where the difference of two
cells is absolute, squared, or whether they are unequal:

* ``'sqeuclidean'``, ``'euclidean'``: squared differences, and the root of their sum;
* ``'cityblock'``: absolute differences;
* ``'correlation'``: one minus the correlation of two rows, which is half the squared distance of
  rows standardized to mean 0 and norm 1;
* ``'hamming'``: the share of the columns in which two rows differ;
* ``'mixed'``: the average, over the columns known in both rows, of absolute differences in units of
  the column's range (numeric and ordinal), and of inequality (categorical). J. C. Gower, A general
  coefficient of similarity and some of its properties, Biometrics 27 (1971).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property, partial
from typing import Any

import numpy as np

from countless._data.cells import CATEGORICAL, NUMERIC, levels_of, numbers_of, read_columns
from countless._memory import state_memory
from countless._threads import open_threads, steps
from countless.kernels.dissimilarity import ABSOLUTE, SQUARED, UNEQUAL, compare_rows

# Rows of a tile: a row of differences fits the L1 cache.
TILE = 512
# How cells of a numeric column are compared; None: by the kind of each column.
METRICS: Mapping[str, int | None] = {
    "sqeuclidean": SQUARED,
    "euclidean": SQUARED,
    "cityblock": ABSOLUTE,
    "correlation": SQUARED,
    "hamming": None,
    "mixed": None,
}


def dissimilarities(
    X: Any,
    Y: Any = None,
    *,
    metric: str = "mixed",
    weights: Any = None,
    kinds: Mapping[Any, Any] | None = None,
    dtype: Any = None,
    n_jobs: int | None = None,
) -> np.ndarray:
    """Return the dissimilarities of all pairs of rows.

    Parameters
    ----------
    X : data frame or array-like of shape (n_rows, n_columns)
        The rows. With ``'mixed'`` and ``'hamming'``, columns of any kind, with missing values;
        otherwise numbers.
    Y : like X, optional
        Other rows to compare those of X with; ranges and levels are those of X.
    metric : {'mixed', 'hamming', 'euclidean', 'sqeuclidean', 'cityblock', 'correlation'}
        The dissimilarity.
    weights : array-like of shape (n_columns,) or mapping, optional
        The weight of each column; a mapping names columns, and the others have weight 1.
    kinds : mapping, optional
        For ``'mixed'``: 'numeric', 'ordinal', 'categorical', or the levels of an ordinal column in
        order, by the column's name (its number in an array).
    dtype : {float32, float64}, optional
        Of the result; by default float32 for float32 arrays, else float64. Sums are float64.
    n_jobs : int, optional
        Threads; the result does not depend on them.

    Returns
    -------
    ndarray of shape (n_rows, n_rows) or (n_rows, n_rows of Y)

    Examples
    --------
    >>> import pandas as pd
    >>> from countless.dissimilarity import dissimilarities
    >>> frame = pd.DataFrame({"size": [1.0, 3.0, None], "colour": ["red", "blue", "red"]})
    >>> dissimilarities(frame)
    array([[0., 1., 0.],
           [1., 0., 1.],
           [0., 1., 0.]])
    """
    measure = Measure(X, metric=metric, weights=weights, kinds=kinds, dtype=dtype)
    if Y is None:
        return measure.square(n_jobs)
    return measure.between(measure.values, measure.encode(Y, "Y"), n_jobs)


class Measure:
    """A table encoded for comparison, and its metric.

    Parameters are those of `dissimilarities`.

    Attributes
    ----------
    values : ndarray of shape (n_rows, n_columns)
        The rows of X; NaN is a missing value.
    weights : ndarray of shape (n_columns,)
        The weight of each column.
    """

    def __init__(
        self,
        X: Any,
        *,
        metric: str = "mixed",
        weights: Any = None,
        kinds: Mapping[Any, Any] | None = None,
        dtype: Any = None,
    ):
        if metric not in METRICS:
            known = ", ".join(repr(name) for name in METRICS)
            raise ValueError(f"metric must be one of {known}; got {metric!r}")
        if kinds and metric != "mixed":
            raise ValueError(f"kinds is for metric='mixed', not for {metric!r}")
        self.metric = metric
        self._averaged = metric in ("mixed", "hamming")
        is_single = getattr(X, "dtype", None) == np.float32
        self.dtype = np.dtype(dtype or (np.float32 if is_single else np.float64))
        if self.dtype not in (np.float32, np.float64):
            raise ValueError(f"dtype must be float32 or float64; got {self.dtype}")
        every = {"mixed": None, "hamming": CATEGORICAL}.get(metric, NUMERIC)
        self._read = partial(read_columns, kinds=kinds, every=every)
        columns = self._read(X)
        self._names = [column.name for column in columns]
        self._levels = [levels_of(column) for column in columns]
        compared = METRICS[metric]
        self._kinds = np.array(
            [UNEQUAL if column.kind == CATEGORICAL else compared or ABSOLUTE for column in columns]
        )
        self.weights = _check_weights(weights, self._names)
        self._low, self._range = np.zeros(len(columns)), np.ones(len(columns))
        values = self._numbers(columns, "X")
        if metric == "mixed":
            self._low, self._range = _ranges(values, self._kinds)
        self.values = self._finish(values, "X")

    def encode(self, X: Any, name: str = "X") -> np.ndarray:
        """Return other rows in the same encoding."""
        columns = self._read(X)
        if [column.name for column in columns] != self._names:
            raise ValueError(f"the columns of {name} are not those of X")
        return self._finish(self._numbers(columns, name), name)

    def row(self, i: int) -> np.ndarray:
        """Return the dissimilarities of one row of X from all."""
        out = np.empty((1, len(self.values)), dtype=self.dtype)
        self._compare(self.values[i : i + 1], *self._columns, out)
        self._refuse_strangers(out, i)
        out[0, i] = 0.0
        return out[0]

    def square(self, n_jobs: int | None = None) -> np.ndarray:
        """Return the symmetric matrix of dissimilarities of all rows."""
        n = len(self.values)
        if n > TILE:
            what, size = f"the dissimilarities of n={n:,} rows", n * n * self.dtype.itemsize
            state_memory(what, size, "give float32 or fewer rows")
        out = np.empty((n, n), dtype=self.dtype)
        columns, incomplete = self._columns

        def fill(rows, others):
            here, there = slice(*rows), slice(*others)
            tile = out[here, there]
            self._compare(self.values[here], columns[:, there], incomplete, tile)
            if rows == others:
                np.fill_diagonal(tile, 0.0)
            else:
                out[there, here] = tile.T

        places = steps(n, TILE)
        with open_threads(n_jobs) as each:
            each(fill, [(rows, others) for i, rows in enumerate(places) for others in places[i:]])
        self._refuse_strangers(out)
        return out

    def between(
        self, A: np.ndarray, B: np.ndarray, n_jobs: int | None = None, first_row: int = 0
    ) -> np.ndarray:
        """Return dissimilarities of encoded rows from others; errors count from ``first_row``."""
        out = np.empty((len(A), len(B)), dtype=self.dtype)
        columns, incomplete = self._by_column(B)

        def fill(rows, others):
            here, there = slice(*rows), slice(*others)
            self._compare(A[here], columns[:, there], incomplete, out[here, there])

        places = [(a, b) for a in steps(len(A), TILE) for b in steps(len(B), TILE)]
        with open_threads(n_jobs) as each:
            each(fill, places)
        self._refuse_strangers(out, first_row)
        return out

    @cached_property
    def _columns(self) -> tuple[np.ndarray, np.ndarray]:
        return self._by_column(self.values)

    def _by_column(self, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return np.ascontiguousarray(values.T), np.isnan(values).any(axis=0)

    def _compare(self, here, there, incomplete, out) -> None:
        there = np.ascontiguousarray(there)
        compare_rows(here, there, self._kinds, self.weights, incomplete, self._averaged, out)
        if self.metric == "euclidean":
            np.sqrt(out, out=out)
        elif self.metric == "correlation":
            np.multiply(out, 0.5, out=out)

    def _numbers(self, columns: Sequence, name: str) -> np.ndarray:
        """Return all cells as numbers; errors name the column and the row."""
        n = len(columns[0].cells)
        values = np.empty((n, len(columns)))
        for i, (column, levels) in enumerate(zip(columns, self._levels, strict=True)):
            values[:, i] = numbers_of(column, levels)
            wrong = np.isinf(values[:, i])
            if not self._averaged:
                wrong |= np.isnan(values[:, i])
            if wrong.any():
                row = int(np.argmax(wrong))
                what = "NaN" if np.isnan(values[row, i]) else "infinity"
                raise ValueError(f"{name} contains {what}: row {row}, column {column.name!r}")
        return values

    def _finish(self, values: np.ndarray, name: str) -> np.ndarray:
        """Return rows in the encoding in which they are compared."""
        values = (values - self._low) / self._range
        if self.metric == "correlation":
            values -= values.mean(axis=1, keepdims=True)
            length = np.linalg.norm(values, axis=1)
            flat = length <= 1e-12 * np.abs(values).max(initial=0.0)
            if flat.any():
                row = int(np.argmax(flat))
                raise ValueError(f"{name}: row {row} is constant, so it has no correlation")
            values /= length[:, None]
        return np.ascontiguousarray(values, dtype=self.dtype)

    def _refuse_strangers(self, out: np.ndarray, first_row: int = 0) -> None:
        """Raise for rows without a common known cell, or whose dissimilarity overflows."""
        for start, stop in steps(len(out), TILE):
            wrong = ~np.isfinite(out[start:stop])
            if wrong.any():
                row, other = np.argwhere(wrong)[0]
                rows = f"row {first_row + start + row} and row {other}"
                if np.isnan(out[start + row, other]):
                    raise ValueError(f"{rows} have no known column in common")
                raise ValueError(f"{rows} are too far apart for {self.dtype}: scale X down")


def _ranges(values: np.ndarray, kinds: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the minimum and the range of each column; codes of categories are unchanged."""
    low, span = np.zeros(len(kinds)), np.ones(len(kinds))
    for i in np.flatnonzero(kinds != UNEQUAL):
        known = values[~np.isnan(values[:, i]), i]
        if len(known):
            low[i] = known.min()
            span[i] = (known.max() - known.min()) or 1.0
    return low, span


def _check_weights(weights: Any, names: list) -> np.ndarray:
    if isinstance(weights, Mapping):
        for name in weights:
            if name not in names:
                raise ValueError(f"weights names column {name!r}, which X does not have")
        weights = [weights.get(name, 1.0) for name in names]
    found = np.ones(len(names)) if weights is None else np.asarray(weights, dtype=np.float64)
    if found.shape != (len(names),):
        raise ValueError(f"weights must have one number for each of the {len(names)} columns")
    wrong = ~(np.isfinite(found) & (found >= 0))
    if wrong.any():
        column = int(np.argmax(wrong))
        raise ValueError(
            f"the weight of column {names[column]!r} must be at least 0; got {found[column]}"
        )
    if not found.any():
        raise ValueError("no column has weight")
    return found
