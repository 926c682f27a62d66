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
from scipy.spatial.distance import cdist
from scipy.special import xlogy

# Centers are kept this far inside the domain, so that a row outside a center's support has a large
# but finite cost.
TINY = 1e-12


class MergeCosts(ABC):
    """The costs of merging pairs of clusters, updated as clusters are merged."""

    matrix: np.ndarray  # (m, m)

    @abstractmethod
    def join(self, a: int, b: int, alive: int) -> np.ndarray:
        """Merge b into a; return the new costs of a with the first ``alive`` clusters."""

    @abstractmethod
    def move(self, origin: int, place: int) -> None:
        """Move a cluster to another place."""


class Divergence(ABC):
    """A divergence between rows and centers, by the functions of the module's docstring."""

    name: ClassVar[str]
    # True if it is a squared Euclidean distance of prepared rows, up to the scale: its root
    # satisfies the triangle inequality, so that bounds are valid.
    is_metric: ClassVar[bool] = False
    # The squared Euclidean distance used internally, divided by this divergence.
    scale: ClassVar[float] = 1.0
    # True if adding the same vector to rows and centers changes nothing: rows may be centred, and
    # their columns scaled beforehand.
    is_shift_invariant: ClassVar[bool] = False
    # True if `prepare` scales rows to unit length: data without clusters are then directions.
    is_directional: ClassVar[bool] = False
    # True if merging costs W_a W_b / (W_a + W_b) times the divergence of the means.
    has_ward_costs: ClassVar[bool] = False
    # True if the noise model of ``background='auto'`` has a density of clusters for it.
    has_noise_model: ClassVar[bool] = False
    domain: ClassVar[str] = "any number"
    # True for scale-invariant divergences: small values must not be lost in sums with large ones.
    by_ratio: ClassVar[bool] = False

    def outside_domain(self, values: np.ndarray) -> np.ndarray:
        """Mark the values outside the domain of the divergence."""
        return np.zeros(values.shape, dtype=bool)

    def margin(self, center: np.ndarray) -> np.ndarray:
        """Return the distance of each value of a center from the edge of the domain."""
        return np.full(center.shape, np.inf)

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

    def distances(self, X, centers: np.ndarray) -> np.ndarray:
        """Return the divergence of each row from each center."""
        slope, offset = self.slope_offset(centers)
        return np.maximum(self.row_cost(X)[:, None] + offset - X @ slope.T, 0.0)

    def merge_costs(self, weight: np.ndarray, total: np.ndarray) -> MergeCosts:
        """Return the costs of merging clusters in pairs, given their weights and sums."""
        return _EnergyCosts(weight, total, self)

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
    has_noise_model = True
    is_metric = True
    is_shift_invariant = True
    has_ward_costs = True

    def check(self, X, first_row=0):
        """Accept every number."""

    def row_cost(self, X):
        return _row_sums(X, np.square)

    def slope_offset(self, centers):
        return 2.0 * centers, np.einsum("ij,ij->i", centers, centers)

    def energy(self, weight, total):
        return -np.einsum("ij,ij->i", total, total) / weight

    def distances(self, X, centers):
        """Return the Euclidean distances, as `sklearn.cluster.KMeans.transform` does."""
        return np.sqrt(super().distances(X, centers)) if sp.issparse(X) else cdist(X, centers)

    def merge_costs(self, weight, total):
        return _WardCosts(weight, total)


class Cosine(Divergence):
    """``1 - cos(x, c)``: half the squared Euclidean distance of unit rows from unit centers."""

    name = "cosine"
    is_metric = True
    is_directional = True
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

    def merge_costs(self, weight, total):
        return _CosineCosts(total)


class KullbackLeibler(Divergence):
    """``sum x log(x / c) - x + c``: counts and proportions."""

    name = "kl"
    domain = "values of at least 0"

    def outside_domain(self, values):
        return values < 0

    def margin(self, center):
        return center

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

    def margin(self, center):
        return center

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

    def margin(self, center):
        return np.minimum(center, 1 - center)

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


class _WardCosts(MergeCosts):
    """Ward's costs, updated by the Lance-Williams recurrence."""

    def __init__(self, weight, total):
        self.weight = weight.astype(np.float64)
        means = total / weight[:, None]
        share = self.weight[:, None] * self.weight / (self.weight[:, None] + self.weight)
        self.matrix = share * cdist(means, means, "sqeuclidean")

    def join(self, a, b, alive):
        weight = self.weight[:alive]
        heavier_a, heavier_b = weight + weight[a], weight + weight[b]
        row = heavier_a * self.matrix[a, :alive] + heavier_b * self.matrix[b, :alive]
        row -= weight * self.matrix[a, b]
        row /= heavier_a + weight[b]
        weight[a] += weight[b]
        return row

    def move(self, origin, place):
        self.weight[place] = self.weight[origin]


class _CosineCosts(MergeCosts):
    """Merge costs from the inner products of sums, which are additive like the sums."""

    def __init__(self, total):
        self.product = total @ total.T
        square = np.diag(self.product)
        joint = square[:, None] + square + 2 * self.product
        self.length = np.sqrt(square)
        self.matrix = self.length[:, None] + self.length - np.sqrt(np.maximum(joint, 0.0))

    def join(self, a, b, alive):
        product = self.product
        product[a, :alive] += product[b, :alive]
        product[:alive, a] += product[:alive, b]
        square = product[a, a]
        self.length[a] = np.sqrt(square)
        length = self.length[:alive]
        joint = square + length**2 + 2 * product[a, :alive]
        return length + length[a] - np.sqrt(np.maximum(joint, 0.0))

    def move(self, origin, place):
        self.product[place] = self.product[origin]
        self.product[:, place] = self.product[:, origin]
        self.length[place] = self.length[origin]


class _EnergyCosts(MergeCosts):
    """Merge costs from the energies of weights and sums."""

    def __init__(self, weight, total, divergence):
        self.divergence = divergence
        self.weight = weight.astype(np.float64)
        self.total = total.astype(np.float64)
        self.energy = divergence.energy(self.weight, self.total)
        self.matrix = np.stack([self._row(item, len(weight)) for item in range(len(weight))])

    def _row(self, item, alive):
        joint = self.divergence.energy(
            self.weight[:alive] + self.weight[item], self.total[:alive] + self.total[item]
        )
        return joint - self.energy[:alive] - self.energy[item]

    def join(self, a, b, alive):
        self.weight[a] += self.weight[b]
        self.total[a] += self.total[b]
        self.energy[a] = self.divergence.energy(self.weight[[a]], self.total[[a]])[0]
        return self._row(a, alive)

    def move(self, origin, place):
        for values in (self.weight, self.total, self.energy):
            values[place] = values[origin]


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


def allows_scaling(name: str) -> bool:
    """Return whether columns may be centred and scaled beforehand; False for unknown names.

    Examples
    --------
    >>> allows_scaling("sqeuclidean"), allows_scaling("kl")
    (True, False)
    """
    return name in DIVERGENCES and DIVERGENCES[name].is_shift_invariant
