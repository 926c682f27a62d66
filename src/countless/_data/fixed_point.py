"""Fixed-point sums of rows, and the forms in which rows and centers are compared.

A sum of rows is an integer multiple of a step (a power of two), so small that rounding to it is
below the rounding error of float64 sums. Integer addition is exact and associative, so the result
is the same bit for bit in any order of summation: for any number of threads, from files and on
clusters. Subtracting a row from a cluster leaves no residue.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from countless._data.block import Block
from countless.kernels.rows import Linear, Points, Scale
from countless.kernels.statistics import center_rows

# Integers are below these: sums must fit int64, single values float64.
LARGEST_SUM, LARGEST_VALUE = 2.0**62, 2.0**51
SMALLEST_STEP = 2.0**-1000


class Summary(NamedTuple):
    """Sufficient statistics of clusters in fixed point: weights and sums; additive over blocks."""

    weight: np.ndarray  # (n_clusters,) int64
    total: np.ndarray  # (n_clusters, n_features) int64, relative to the origin

    @classmethod
    def zeros(cls, n_clusters: int, n_features: int) -> Summary:
        """Return a summary of empty clusters."""
        total = np.zeros((n_clusters, n_features), dtype=np.int64)
        return cls(np.zeros(n_clusters, dtype=np.int64), total)

    def zeros_factory(self) -> Callable[[], Summary]:
        """Return a function that makes an empty summary of this size; small to serialize."""
        return partial(Summary.zeros, *self.total.shape)

    def add(self, other: Summary) -> None:
        """Add another summary to this one."""
        np.add(self.weight, other.weight, out=self.weight)
        np.add(self.total, other.total, out=self.total)

    def take(self, clusters: np.ndarray | slice) -> Summary:
        """Return some of the clusters."""
        return Summary(self.weight[clusters], self.total[clusters])

    def with_empty(self, n_empty: int) -> Summary:
        """Return a summary with more clusters, which are empty."""
        total = np.pad(self.total, ((0, n_empty), (0, 0)))
        return Summary(np.pad(self.weight, (0, n_empty)), total)

    @property
    def n_bytes(self) -> int:
        return self.weight.nbytes + self.total.nbytes


class Sums(NamedTuple):
    """Weights and sums of clusters, as float64."""

    weight: np.ndarray  # (n_clusters,)
    total: np.ndarray  # (n_clusters, n_features)


class Tile(NamedTuple):
    """Some rows, prepared for a matrix product with centers in the same coordinates."""

    values: Any  # (n, n_features) array or CSR
    norm: np.ndarray  # (n,) the part of the divergence that depends on the row only
    length: np.ndarray  # (n,) Euclidean norms


class FixedPoint(NamedTuple):
    """The divergence, coordinates and fixed-point scale of one table.

    ``origin`` is subtracted before squared Euclidean distances are computed; it is near the mean,
    so that data far from 0 lose no digits. For other divergences it is 0. ``unit`` is about the
    root mean square distance of rows from it: products in this unit fit into float32.
    """

    divergence: Any
    n_rows: int
    n_features: int
    is_sparse: bool
    n_bytes: int  # of the whole table
    n_counted: int  # rows of positive weight
    total_weight: float
    weight_step: float
    step: np.ndarray  # (n_features,)
    reach: float  # upper bound on the distance of rows from the origin
    origin: np.ndarray  # (n_features,)
    unit: float = 1.0
    total_cost: float = 0.0  # weighted sum of the parts of the divergence that depend on rows only

    @property
    def by_differences(self) -> bool:
        """Whether divergences are computed from differences, rather than from a linear form."""
        return self.divergence.is_metric and not self.is_sparse

    @property
    def scale(self) -> Scale:
        return Scale(self.origin, 1.0 / self.step, 1.0 / self.weight_step)

    def empty(self, n_clusters: int) -> Summary:
        """Return a summary of empty clusters."""
        return Summary.zeros(n_clusters, self.n_features)

    def weights(self, summary: Summary) -> np.ndarray:
        """Return the weight of each cluster."""
        return summary.weight * self.weight_step

    def to_floats(self, summary: Summary) -> Sums:
        """Return weights, and sums relative to the origin, as float64."""
        return Sums(self.weights(summary), summary.total * self.step)

    def table_sums(self, summary: Summary) -> Sums:
        """Return weights, and sums in the table's coordinates, as float64."""
        weight, total = self.to_floats(summary)
        return Sums(weight, total + weight[:, None] * self.origin)

    def to_steps(self, weight: np.ndarray, points: np.ndarray) -> Summary:
        """Convert rows, relative to the origin, to fixed point as kernels do: one cluster each."""
        total = np.rint(weight[:, None] * points * (1.0 / self.step))
        return Summary(np.rint(weight / self.weight_step).astype(np.int64), total.astype(np.int64))

    def means(self, summary: Summary) -> np.ndarray:
        """Return the optimal center of each cluster, in the table's coordinates."""
        return self.divergence.means(*self.to_floats(summary)) + self.origin

    def energy(self, summary: Summary) -> np.ndarray:
        """Return each cluster's part of the objective, without the terms of single rows."""
        return self.divergence.energy(*self.to_floats(summary))

    def objective(
        self, summary: Summary, penalty: float, centers: np.ndarray | None = None
    ) -> float:
        """Return the cost of all rows at their centers (None: optimal), plus the penalties."""
        if centers is None:
            energy = self.energy(summary)
        else:
            weight, total = self.to_floats(summary)
            slope, offset = self.divergence.slope_offset(centers - self.origin)
            energy = weight * offset - np.einsum("ij,ij->i", total, slope)
        return float(self.total_cost + energy.sum() + penalty * len(summary.weight))

    def centers(self, values: np.ndarray) -> Points | Linear:
        """Return centers in the form that kernels compare rows with."""
        return Points(values) if self.by_differences else self.linear(values)

    def linear(self, values: np.ndarray) -> Linear:
        """Return centers as slopes and offsets: the divergence is linear in the row."""
        slope, offset = self.divergence.slope_offset(values)
        scale = self.divergence.scale
        return Linear(scale * slope, scale * offset)

    def product_form(
        self, values: np.ndarray, sketch: Callable[[np.ndarray], np.ndarray] | None = None
    ) -> tuple[float, np.ndarray, np.ndarray]:
        """Return (unit, right, offset) of centers, in the coordinates of tiles of that unit.

        A tile's scores are ``offset - tile @ right``. With a sketch, ``right`` contains the
        projected slopes.
        """
        if not self.by_differences:
            linear = self.linear(values)
            return 1.0, np.ascontiguousarray(linear.slope.T), linear.offset
        seen = values - self.origin
        unit = max(self.unit, np.abs(seen).max(initial=0.0))
        seen /= unit
        offset = np.einsum("ij,ij->i", seen, seen).astype(np.float32)
        seen *= 2.0
        projected = seen if sketch is None else sketch(seen)
        return unit, np.ascontiguousarray(projected.T, dtype=np.float32), offset

    def tile(self, block: Block, ids: np.ndarray, unit: float = 1.0) -> Tile:
        """Return some rows, in the given unit of length, for a product with centers."""
        if self.is_sparse:
            values = block.table[block.offset + ids]
            squares = values.astype(np.float64).power(2).sum(axis=1)
            length = np.sqrt(np.asarray(squares).ravel())
            return Tile(values, block.form.cost[ids], length)
        # float32 products suffice to select the few centers whose distance is computed exactly.
        kind = np.float32 if self.by_differences else np.float64
        values = np.empty((len(ids), self.n_features), dtype=kind)
        squares = np.empty(len(ids))
        rows = block.form.values  # type: ignore[union-attr]
        center_rows(rows, ids, self.origin, 1.0 / unit, values, squares)
        norm = squares if self.by_differences else block.form.cost[ids]
        return Tile(values, norm, np.sqrt(squares))


def power_of_two(value: Any) -> Any:
    """Return the smallest power of two that is not below a positive value."""
    return np.maximum(2.0 ** np.ceil(np.log2(np.maximum(value, SMALLEST_STEP))), SMALLEST_STEP)


def step_for(largest: Any, sum_of_weights: float, largest_weight: float) -> Any:
    """Return the fixed-point step in which weighted values and all their sums fit."""
    return power_of_two(largest * max(sum_of_weights / LARGEST_SUM, largest_weight / LARGEST_VALUE))
