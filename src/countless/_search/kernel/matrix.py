"""Kernel matrices: each entry computed once, in parallel tiles, with memory checked beforehand."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.metrics.pairwise import PAIRWISE_KERNEL_FUNCTIONS, pairwise_kernels

from countless._memory import state_memory
from countless._numbers import moved_to_zero
from countless._threads import open_threads, steps
from countless.kernels.gram import first_asymmetry

# Tolerance of symmetry, as a share of the largest diagonal entry: float32 products need it.
ASYMMETRY = 1e-5
# Kernels whose gamma is a scale of squared distances or products.
SCALED = ("rbf", "poly", "polynomial", "sigmoid")
# Kernels defined for all rows, of either sign.
_OF_ANY_ROWS = (*SCALED, "linear", "laplacian", "cosine")
# What to do about a kernel that is too large.
SMALLER = "give float32 or fewer rows, or approximate it (sklearn.kernel_approximation.Nystroem)"


@dataclass(frozen=True)
class Tiles:
    """How much of a kernel a thread processes at once."""

    side: int = 1024  # rows and columns of a tile of the kernel
    columns: int = 4096  # of the sums: enough to read memory contiguously
    rows: int = 256
    more_clusters: int = 16  # that a pass may open before arrays are enlarged


TILES = Tiles()


class KernelFunction:
    """A kernel by scikit-learn's name, or a callable, with its parameters.

    With ``only_distances``, only distances in its feature space matter: then rows may be centred
    for the linear kernel, since its distances are translation invariant.

    Examples
    --------
    >>> kernel = KernelFunction("rbf", {"gamma": 0.5})
    >>> kernel.between(np.array([[0.0]]), np.array([[0.0], [2.0]])).round(3).tolist()
    [[1.0, 0.135]]
    """

    def __init__(self, kernel: Any, parameters: dict[str, Any], *, only_distances: bool = False):
        if not callable(kernel) and kernel not in PAIRWISE_KERNEL_FUNCTIONS:
            known = ", ".join(repr(name) for name in sorted(PAIRWISE_KERNEL_FUNCTIONS))
            raise ValueError(
                f"kernel must be 'precomputed', a callable or one of {known}; got {kernel!r}"
            )
        self.kernel = kernel
        self.parameters = parameters
        self._moves = kernel == "rbf" or (only_distances and kernel == "linear")

    @property
    def takes_any_rows(self) -> bool:
        """Whether it is known to be defined for all rows; a callable may not accept them."""
        return not callable(self.kernel) and self.kernel in _OF_ANY_ROWS

    def between(self, A: Any, B: Any = None) -> np.ndarray:
        """Return the kernel of every row of A with every row of B (None: A itself)."""
        if self._moves:
            A, moved = moved_to_zero(A, A if B is None else B)
            B = None if B is None else moved
        return self._values(A, B)

    def _values(self, A: Any, B: Any = None) -> np.ndarray:
        return pairwise_kernels(
            A, B, metric=self.kernel, filter_params=not callable(self.kernel), **self.parameters
        )

    def matrix(self, X: Any, n_jobs: int | None = None) -> np.ndarray:
        """Return the kernel of every row of X with every other, in the dtype of X."""
        n = X.shape[0]
        state_memory(f"the kernel of n={n:,} rows", n * n * X.dtype.itemsize, SMALLER)
        values = np.empty((n, n), dtype=X.dtype)
        if self._moves:
            X = moved_to_zero(X, X)[0]

        def fill(rows, columns):
            here, there = slice(*rows), slice(*columns)
            if rows == columns:
                upper = np.triu(self._values(X[here]))  # rounding may break symmetry
                values[here, here] = upper + np.triu(upper, 1).T
            else:
                tile = self._values(X[here], X[there])
                values[here, there] = tile
                values[there, here] = tile.T

        places = steps(n, TILES.side)
        tiles = [(rows, columns) for i, rows in enumerate(places) for columns in places[i:]]
        with open_threads(n_jobs) as each:
            each(fill, tiles)
        check_entries(values)
        return values


def scale_of(X: Any, weight: np.ndarray) -> float:
    """Return one over the sum of the columns' variances: a gamma invariant to the unit of X.

    Examples
    --------
    >>> scale_of(np.array([[0.0, 1.0], [2.0, 1.0]]), np.ones(2))
    1.0
    """
    share = weight / weight.sum()
    X = moved_to_zero(X, X)[0]
    mean = np.asarray(X.T @ share, dtype=np.float64).ravel()
    if sp.issparse(X):
        spread = float((X.multiply(X).T @ share).sum() - mean @ mean)
    else:
        spread = float(sum(share[a:b] @ (np.square(X[a:b] - mean)).sum(axis=1)
                           for a, b in steps(len(X), TILES.side)))  # fmt: skip
    return 1.0 / spread if spread > 0 else 1.0


def check_entries(kernel: np.ndarray, first_row: int = 0) -> None:
    """Raise a ValueError that names the first entry that is NaN or infinite."""
    for start, stop in steps(len(kernel), TILES.side):
        if not np.isfinite(kernel[start:stop].sum(dtype=np.float64)):
            bad = np.argwhere(~np.isfinite(kernel[start:stop]))
            if len(bad):
                row, column = bad[0]
                raise ValueError(
                    f"the kernel of row {first_row + start + row} and row {column} is "
                    f"{kernel[start + row, column]:g}"
                )


def check_precomputed(kernel: np.ndarray, n_jobs: int | None = None) -> None:
    """Raise a ValueError unless a matrix of finite numbers is square and symmetric."""
    n_rows, n_columns = kernel.shape
    if n_rows != n_columns:
        raise ValueError(
            f"a precomputed kernel must be square; got {n_rows} rows and {n_columns} columns"
        )
    largest = float(np.abs(np.diagonal(kernel)).max())
    tolerance = ASYMMETRY * largest
    with open_threads(n_jobs) as each:
        found = each(
            lambda a, b: first_asymmetry(kernel, a, b, tolerance), steps(n_rows, TILES.side)
        )
    row, column = next((pair for pair in found if pair[0] >= 0), (-1, -1))
    if row >= 0:
        raise ValueError(
            f"a precomputed kernel must be symmetric; row {row}, column {column} has "
            f"{kernel[row, column]:g} and row {column}, column {row} has {kernel[column, row]:g}"
        )
