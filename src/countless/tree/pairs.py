"""What a tree is grown from: how different rows are, measured when it is asked for."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np

from countless.dissimilarity.pairs import Measure
from countless.hard.kernel.path import coordinates
from countless.hard.micro import sample_positions
from countless.hard.structureless import clouds_like

# Rows that show the spread of all.
SHOWN = 1000
# Mirror images may differ by this share of the largest entry.
ASYMMETRY = 1e-6


class Pairs:
    """The dissimilarities of a table's rows, by a measure or as a matrix.

    Attributes
    ----------
    n_rows : int
    rows : ndarray or None
        The rows as numbers, where the measure takes numbers.

    Examples
    --------
    >>> import numpy as np
    >>> pairs = Pairs.of_rows(np.array([[0.0, 0.0], [3.0, 4.0]]), "euclidean")
    >>> pairs.row(1).tolist(), pairs.matrix.tolist()
    ([5.0, 0.0], [[0.0, 5.0], [5.0, 0.0]])
    """

    def __init__(self, n_rows: int, rows: np.ndarray | None, measure: Measure | None, n_jobs=None):
        self.n_rows, self.rows, self._measure, self._n_jobs = n_rows, rows, measure, n_jobs

    @classmethod
    def of_rows(cls, X: Any, metric: str, n_jobs: int | None = None, **settings: Any) -> Pairs:
        """Compare rows; settings are those of `countless.dissimilarity.dissimilarities`."""
        measure = Measure(X, metric=metric, **settings)
        rows = None if metric in ("mixed", "hamming") else np.asarray(X)
        return cls(len(measure.values), rows, measure, n_jobs)

    @classmethod
    def of_matrix(cls, matrix: np.ndarray) -> Pairs:
        """Take dissimilarities that are known, or name the entry that is none."""
        _check_matrix(matrix)
        pairs = cls(len(matrix), None, None)
        pairs.__dict__["matrix"] = matrix
        return pairs

    @cached_property
    def matrix(self) -> np.ndarray:
        """All dissimilarities."""
        assert self._measure is not None  # of_matrix has set the attribute
        return self._measure.square(self._n_jobs)

    def row(self, i: int) -> np.ndarray:
        """Return the dissimilarities of one row from all, without those of the others."""
        if self._measure is None:
            return self.matrix[i]
        return self._measure.row(i)

    def clouds(self, seed: int) -> Iterator[list[Pairs]]:
        """Give clouds without structure of either shape, with the spread of these rows.

        Where rows are numbers, clouds lie among them and are measured alike. Else they lie in the
        space in which distances are the dissimilarities, as far as there is one.
        """
        shown = sample_positions(np.ones(self.n_rows), SHOWN, seed)
        if self.rows is not None and self._measure is not None:
            sample, metric = self.rows[shown].astype(np.float64), self._measure.metric
        else:
            squares = np.square(self.matrix[np.ix_(shown, shown)], dtype=np.float64)
            sample = coordinates(-squares / 2, np.full(len(shown), 1 / len(shown)))
            metric = "euclidean"
        share = np.full(len(shown), 1 / len(shown))
        for kind in clouds_like(sample, share, self.n_rows, seed):
            yield [Pairs.of_rows(cloud, metric) for cloud in kind]


def _check_matrix(matrix: np.ndarray) -> None:
    """Raise a ValueError unless a matrix of finite numbers holds dissimilarities."""
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
    apart = np.abs(matrix - matrix.T) > ASYMMETRY * matrix.max()
    if apart.any():
        row, column = np.argwhere(apart)[0]
        raise ValueError(
            f"precomputed dissimilarities must be symmetric; row {row}, column {column} is "
            f"{matrix[row, column]:g} and row {column}, column {row} is {matrix[column, row]:g}"
        )
