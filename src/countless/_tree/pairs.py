"""The input of trees: dissimilarities of rows, computed on demand."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property, partial
from typing import Any

import numpy as np

from countless._path.kernel import coordinates
from countless._path.micro import sample_positions
from countless._path.null_reference import CLOUDS, rows_like
from countless._threads import steps
from countless.dissimilarity.pairs import Measure
from countless.kernels.gram import first_asymmetry


class Pairs:
    """The dissimilarities of a table's rows, by a metric or as a matrix.

    Attributes
    ----------
    n_rows : int
    rows : ndarray or None
        The rows as numbers, where the metric is numeric.
    weights : ndarray
        The weight of each column.

    Examples
    --------
    >>> import numpy as np
    >>> pairs = Pairs.of_rows(np.array([[0.0, 0.0], [3.0, 4.0]]), "euclidean")
    >>> pairs.row(1).tolist(), pairs.matrix.tolist()
    ([5.0, 0.0], [[0.0, 5.0], [5.0, 0.0]])
    """

    def __init__(
        self,
        n_rows: int,
        compare_all: Callable[[], np.ndarray],
        row: Callable[[int], np.ndarray],
        rows: np.ndarray | None = None,
        settings: dict[str, Any] | None = None,
        weights: np.ndarray | float = 1.0,
    ):
        self.n_rows, self.rows, self.weights = n_rows, rows, weights
        self._compare_all = compare_all
        self._settings = settings or {}  # parameters for rows of the null reference
        self.row = row  # computes the dissimilarities of one row from all, without the others

    @classmethod
    def of_rows(cls, X: Any, metric: str, n_jobs: int | None = None, **settings: Any) -> Pairs:
        """Compare rows; settings are those of `countless.dissimilarity.dissimilarities`."""
        measure = Measure(X, metric=metric, **settings)
        rows = None if metric in ("mixed", "hamming") else np.asarray(X)
        n_rows = len(measure.values)
        settings = {"metric": metric, **settings}
        compare_all = partial(measure.square, n_jobs)
        return cls(n_rows, compare_all, measure.row, rows, settings, measure.weights)

    @classmethod
    def of_matrix(cls, matrix: np.ndarray) -> Pairs:
        """Take precomputed dissimilarities, or raise an error that names the invalid entry."""
        _check_matrix(matrix)
        return cls(len(matrix), lambda: matrix, matrix.__getitem__)

    @cached_property
    def matrix(self) -> np.ndarray:
        """All dissimilarities."""
        return self._compare_all()

    @property
    def weighted_rows(self) -> np.ndarray:
        """Rows scaled so that plain Euclidean distances are the weighted ones of these rows."""
        rows = np.asarray(self.rows)
        return rows * np.sqrt(self.weights).astype(rows.dtype)

    def clouds(self) -> Iterator[list[Pairs]]:
        """Yield null reference samples with the spread of these rows, a list for each shape.

        Numeric rows: samples have the same location, the values of discrete columns, and the same
        metric. Otherwise they are drawn in the space in which Euclidean distances approximate the
        dissimilarities. They do not depend on a seed.
        """
        shown = sample_positions(np.ones(self.n_rows), CLOUDS.sampled_rows, CLOUDS.seed)
        ones = np.ones(len(shown))
        if self.rows is not None:
            sample, settings = self.rows[shown].astype(np.float64), self._settings
        else:
            between = self.matrix[np.ix_(shown, shown)].astype(np.float64)
            between /= between.max() or 1.0  # only the shape of the samples matters
            sample = coordinates(-(between**2) / 2, ones / len(shown))
            settings = {"metric": "euclidean"}
        for kind in rows_like(sample, ones, self.n_rows):
            yield [Pairs.of_rows(cloud, **settings) for cloud in kind]


def _check_matrix(matrix: np.ndarray) -> None:
    """Raise a ValueError unless a matrix of finite numbers is a dissimilarity matrix."""
    n_rows, n_columns = matrix.shape
    if n_rows != n_columns:
        raise ValueError(
            f"precomputed dissimilarities must be square; got {n_rows} rows, {n_columns} columns"
        )
    if matrix.min() < 0:
        row, column = np.argwhere(matrix < 0)[0]
        raise ValueError(
            f"precomputed dissimilarities must be at least 0; row {row}, column {column} is "
            f"{matrix[row, column]:g}"
        )
    if np.diagonal(matrix).any():
        row = int(np.flatnonzero(np.diagonal(matrix))[0])
        raise ValueError(f"row {row} differs from itself: column {row} is {matrix[row, row]:g}")
    tolerance = 1e-6 * float(matrix.max())
    found = (first_asymmetry(matrix, *places, tolerance) for places in steps(n_rows, 1000))
    row, column = next((pair for pair in found if pair[0] >= 0), (-1, -1))
    if row >= 0:
        raise ValueError(
            f"precomputed dissimilarities must be symmetric; row {row}, column {column} is "
            f"{matrix[row, column]:g} and row {column}, column {row} is {matrix[column, row]:g}"
        )
