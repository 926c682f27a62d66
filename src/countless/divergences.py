"""The divergences that DP-means computes between a row and a center.

Every divergence here is a Bregman divergence (or the cosine form of one). The library uses two
properties of those:

* up to a term of the row it is linear in the row, ``d(x, c) = row_cost(x) + offset(c) - <x,
  slope(c)>``, so a matrix product compares a block of rows with all centers, dense or sparse;
* the optimal center of a cluster is its mean, and the cost of the cluster then depends on its rows
  through ``sum_i w_i row_cost(x_i)`` and its sufficient statistics, the weight ``W`` and the
  weighted sum ``S``: ``sum_i w_i row_cost(x_i) + energy(W, S)``. The cost of merges, splits and
  moves of rows is exact because weights and sums are additive.

Banerjee, Merugu, Dhillon and Ghosh, *Clustering with Bregman divergences*, JMLR 2005.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, NoReturn

import numpy as np
import scipy.sparse as sp
from scipy.special import xlogy

# Centers are kept this far inside the domain, so that a row outside a center's support has a large
# but finite cost.
TINY = 1e-12


class Divergence(ABC):
    """A divergence between rows and centers, by the functions of the module's docstring."""

    name: ClassVar[str]
    # True if sqrt(divergence) satisfies the triangle inequality, so that bounds are valid.
    is_metric: ClassVar[bool] = False
    # The squared Euclidean distance used internally, divided by this divergence.
    scale: ClassVar[float] = 1.0
    domain: ClassVar[str] = "any number"
    # True for scale-invariant divergences: small values must not be lost in sums with large ones.
    by_ratio: ClassVar[bool] = False

    def outside_domain(self, values: np.ndarray) -> np.ndarray:
        """Mark the values outside the domain of the divergence."""
        return np.zeros(values.shape, dtype=bool)

    def prepare(self, X):
        """Return the rows in the form that is clustered (unchanged, except for the cosine)."""
        return X

    @abstractmethod
    def row_cost(self, X) -> np.ndarray:
        """Return the part of the divergence that depends on the row only."""

    @abstractmethod
    def slope_offset(self, centers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return each center's linear form: ``d(x, c) = row_cost(x) + offset - <x, slope>``."""

    def means(self, weight: np.ndarray, total: np.ndarray) -> np.ndarray:
        """Return the optimal center of each cluster."""
        return total / weight[:, None]

    @abstractmethod
    def energy(self, weight: np.ndarray, total: np.ndarray) -> np.ndarray:
        """Return each cluster's part of the objective, without the terms of single rows."""

    def check(self, X, first_row: int = 0) -> None:
        """Raise a ValueError that names the first row and column outside the domain.

        ``first_row`` is the index of the first row of X in the whole table.
        """
        zero_is_bad = bool(self.outside_domain(np.zeros(1, dtype=np.float64))[0])
        if sp.issparse(X) and zero_is_bad and X.nnz < X.shape[0] * X.shape[1]:
            raise ValueError(
                f"divergence={self.name!r} needs {self.domain}; a sparse table holds zeros"
            )
        values = X.data[:, None] if sp.issparse(X) else X
        for start, part in _blocks(values):
            bad = np.argwhere(self.outside_domain(part))
            if len(bad):
                self._refuse(X, first_row, start + bad[0, 0], bad[0, 1], part[tuple(bad[0])])

    def _refuse(self, X, first_row: int, row: int, column: int, value: float) -> NoReturn:
        if sp.issparse(X):  # then the row is that of an entry
            row, column = int(np.searchsorted(X.indptr, row, side="right")) - 1, int(X.indices[row])
        raise ValueError(
            f"divergence={self.name!r} needs {self.domain}; "
            f"row {first_row + row}, column {column} is {value:g}"
        )


class SquaredEuclidean(Divergence):
    """``||x - c||^2``, as in the paper."""

    name = "sqeuclidean"
    is_metric = True

    def check(self, X, first_row=0):
        """Accept every number."""

    def row_cost(self, X):
        return _row_sums(X, np.square)

    def slope_offset(self, centers):
        return 2.0 * centers, np.einsum("ij,ij->i", centers, centers)

    def energy(self, weight, total):
        return -np.einsum("ij,ij->i", total, total) / weight


class Cosine(Divergence):
    """``1 - cos(x, c)``: half the squared Euclidean distance of unit rows from unit centers."""

    name = "cosine"
    is_metric = True
    scale = 2.0
    domain = "rows that are not all zero"

    def check(self, X, first_row=0):
        largest = _largest(X)
        if not largest.all():
            row = first_row + int(np.argmin(largest))
            raise ValueError(f"divergence='cosine' needs {self.domain}; row {row} is")

    def prepare(self, X):
        # Scale first by the largest absolute value, so that squares neither overflow nor underflow.
        # Zero rows are left unchanged; the check reports them.
        largest = _largest(X)
        X = X.copy()
        _divide_rows(X, np.where(np.isfinite(largest) & (largest > 0), largest, 1.0))
        norm = np.sqrt(_row_sums(X, np.square))
        _divide_rows(X, np.where(norm > 0, norm, 1.0))
        return X

    def row_cost(self, X):
        return np.ones(X.shape[0])

    def slope_offset(self, centers):
        return centers, np.zeros(len(centers))

    def means(self, weight, total):
        norm = np.linalg.norm(total, axis=1, keepdims=True)
        # If the sum is zero, every unit vector has the same cost.
        direction = np.zeros_like(total)
        direction[:, 0] = 1.0
        return np.divide(total, norm, out=direction, where=norm > 0)

    def energy(self, weight, total):
        return -np.linalg.norm(total, axis=1)


class KullbackLeibler(Divergence):
    """``sum x log(x / c) - x + c``: counts and proportions."""

    name = "kl"
    domain = "values of at least 0"

    def outside_domain(self, values):
        return values < 0

    def row_cost(self, X):
        return _row_sums(X, lambda x: xlogy(x, x) - x)

    def slope_offset(self, centers):
        # The floor is relative to the center, because the divergence has no natural unit.
        floor = np.maximum(TINY * centers.mean(axis=1, keepdims=True), np.finfo(float).tiny)
        inside = np.maximum(centers, floor)
        return np.log(inside), inside.sum(axis=1)

    def means(self, weight, total):
        return np.maximum(total, 0.0) / weight[:, None]

    def energy(self, weight, total):
        total = np.maximum(total, 0.0)  # rounding can make a difference of sums negative
        return -(xlogy(total, total / weight[:, None]) - total).sum(axis=1)


class ItakuraSaito(Divergence):
    """``sum x / c - log(x / c) - 1``: spectra and other positive values compared by ratio."""

    name = "itakura-saito"
    by_ratio = True
    domain = "values above 0"

    def outside_domain(self, values):
        return values <= 0

    def row_cost(self, X):
        return -_row_sums(X, np.log)

    def slope_offset(self, centers):
        return -1.0 / centers, np.log(centers).sum(axis=1) - centers.shape[1]

    def energy(self, weight, total):
        return weight * np.log(total / weight[:, None]).sum(axis=1)


class Logistic(Divergence):
    """Bernoulli relative entropy, ``sum x log(x/c) + (1-x) log((1-x)/(1-c))``: binary data."""

    name = "logistic"
    domain = "values from 0 to 1"

    def outside_domain(self, values):
        return (values < 0) | (values > 1)

    def row_cost(self, X):
        return _row_sums(X, lambda x: xlogy(x, x) + xlogy(1 - x, 1 - x))

    def slope_offset(self, centers):
        inside = np.clip(centers, TINY, 1 - TINY)
        return np.log(inside) - np.log1p(-inside), -np.log1p(-inside).sum(axis=1)

    def means(self, weight, total):
        return np.clip(total / weight[:, None], 0.0, 1.0)

    def energy(self, weight, total):
        mean = self.means(weight, total)
        return -weight * (xlogy(mean, mean) + xlogy(1 - mean, 1 - mean)).sum(axis=1)


def _blocks(X: np.ndarray):
    """Yield (start, rows) of blocks of a table, to bound temporary memory."""
    step = max(1, 2**20 // max(1, X.shape[1]))
    for start in range(0, X.shape[0], step):
        yield start, X[start : start + step]


def _divide_rows(X, divisor: np.ndarray) -> None:
    """Divide each row by a number, in place; its inverse could overflow in the dtype of X."""
    divisor = divisor.astype(X.dtype)
    if sp.issparse(X):
        X.data /= np.repeat(divisor, np.diff(X.indptr))
    else:
        X /= divisor[:, None]


def _largest(X) -> np.ndarray:
    """Return the largest absolute value in each row, in float64."""
    if sp.issparse(X):
        return abs(X).max(axis=1).toarray().ravel().astype(np.float64)
    return np.concatenate([np.abs(part).max(axis=1) for _, part in _blocks(X)]).astype(np.float64)


def _row_sums(X, function) -> np.ndarray:
    """Sum ``function`` over each row in float64; ``function(0)`` must be 0 for sparse rows."""
    if sp.issparse(X):
        transformed = X.copy()
        transformed.data = function(X.data.astype(np.float64))
        return np.asarray(transformed.sum(axis=1)).ravel()
    parts = [function(part.astype(np.float64)).sum(axis=1) for _, part in _blocks(X)]
    return np.concatenate(parts)


DIVERGENCES: dict[str, Divergence] = {
    divergence.name: divergence
    for divergence in (
        SquaredEuclidean(),
        Cosine(),
        KullbackLeibler(),
        ItakuraSaito(),
        Logistic(),
    )
}


def get_divergence(name: str) -> Divergence:
    """Return the divergence of that name.

    Examples
    --------
    >>> import numpy as np
    >>> divergence = get_divergence("sqeuclidean")
    >>> weight, total = np.array([2.0]), np.array([[4.0, 0.0]])
    >>> float(divergence.energy(weight, total)[0])
    -8.0
    """
    if name not in DIVERGENCES:
        known = ", ".join(repr(known) for known in DIVERGENCES)
        raise ValueError(f"divergence must be one of {known}; got {name!r}")
    return DIVERGENCES[name]
