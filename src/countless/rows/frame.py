"""What all rows of a table share: how they are measured, and the units that they are added up in.

Sums of rows are whole numbers of a step so small that rounding to it is below that of float64 sums.
Whole numbers add up to the same sum in any order. So threads, files and clusters of machines find
the same bits, and a row that leaves a cluster leaves nothing behind.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from countless.kernels.rows import Linear, Points, Scale, Seen
from countless.kernels.statistics import gather
from countless.rows.block import Block
from countless.rows.inplace import CHUNK_VALUES, chunks, keep, resize

# Whole numbers below these: sums must fit int64, single values float64.
LARGEST_SUM, LARGEST_VALUE = 2.0**62, 2.0**51
SMALLEST_STEP = 2.0**-1000
# Values computed at once: as many as fit the cache, and what pays for a call.
MOST_TILE_VALUES, LEAST_TILE_VALUES = 2**17, 2**13
# Values of clusters: one for so many bytes of the table.
LEAST_VALUES, VALUES_ROOM = 2**9, 2**12


class Summary(NamedTuple):
    """What rows say about their clusters, in steps of the frame; adds up across blocks."""

    weight: np.ndarray  # (n_clusters,) int64
    total: np.ndarray  # (n_clusters, n_features) int64, as seen from the origin

    @classmethod
    def of_nothing(cls, n_clusters: int, n_features: int) -> Summary:
        """Return a summary of clusters that hold nothing."""
        total = np.zeros((n_clusters, n_features), dtype=np.int64)
        return cls(np.zeros(n_clusters, dtype=np.int64), total)

    def maker(self) -> Callable[[], Summary]:
        """Return what makes an empty summary of the same size; it is small to send."""
        return partial(Summary.of_nothing, *self.total.shape)

    def absorb(self, other: Summary) -> None:
        """Add another summary to this one."""
        np.add(self.weight, other.weight, out=self.weight)
        np.add(self.total, other.total, out=self.total)

    def take(self, clusters: np.ndarray | slice) -> Summary:
        """Return some of the clusters."""
        return Summary(self.weight[clusters], self.total[clusters])

    def resize(self, n_clusters: int) -> None:
        """Make room for more clusters, that hold nothing, or forget the last."""
        for part in self:
            resize(part, n_clusters)

    def keep(self, stays: np.ndarray) -> None:
        """Forget the clusters that are not marked."""
        for part in self:
            keep(part, stays)

    def clear(self) -> None:
        """Take everything out of the clusters."""
        for part in self:
            part.fill(0)

    @property
    def n_bytes(self) -> int:
        return self.weight.nbytes + self.total.nbytes


class Sums(NamedTuple):
    """What clusters hold, as numbers."""

    weight: np.ndarray  # (n_clusters,)
    total: np.ndarray  # (n_clusters, n_features)


class Tile(NamedTuple):
    """Some rows, ready for a product with centers in the same coordinates."""

    values: Any  # (n, n_features) array or CSR
    norm: np.ndarray  # (n,) the rows' own part of the divergence
    length: np.ndarray  # (n,) Euclidean norms


class Frame(NamedTuple):
    """How the rows of one table are measured and added up.

    ``origin`` is what squared Euclidean distances are computed about, near the mean so that far-off
    data loses no digits; else 0. ``unit`` is about the distance of rows from it: products in this
    unit fit into float32.
    """

    divergence: Any
    n_rows: int
    n_features: int
    is_sparse: bool
    n_bytes: int  # of the whole table
    n_counted: int  # rows that have weight
    total_weight: float
    weight_step: float
    step: np.ndarray  # (n_features,)
    reach: float  # no row is farther from the origin
    origin: np.ndarray  # (n_features,)
    unit: float = 1.0
    total_cost: float = 0.0  # the weighted sum of the rows' own parts of the divergence
    is_single: bool = False  # whether rows are float32, dense, of a size that float32 can square

    def tile_values(self, room: int) -> int:
        """Return how many values to compute at once: what fits the cache, fewer for a small table.

        That is one for so many bytes of it.
        """
        return min(MOST_TILE_VALUES, max(LEAST_TILE_VALUES, self.n_bytes // room))

    def chunks(self, array: np.ndarray, n_rows: int | None = None) -> list[slice]:
        """Return slices of some clusters each, small beside the table."""
        values = min(CHUNK_VALUES, max(LEAST_VALUES, self.n_bytes // VALUES_ROOM))
        return chunks(array, n_rows, values)

    @property
    def by_differences(self) -> bool:
        """Whether rows are compared with centers by differences, or by a linear form."""
        return self.divergence.is_metric and not self.is_sparse

    @property
    def scale(self) -> Scale:
        return Scale(self.origin, 1.0 / self.step, 1.0 / self.weight_step)

    def empty(self, n_clusters: int) -> Summary:
        """Return a summary of clusters that hold nothing."""
        return Summary.of_nothing(n_clusters, self.n_features)

    def weights(self, summary: Summary) -> np.ndarray:
        """Return the weight of each cluster."""
        return summary.weight * self.weight_step

    def floats(self, summary: Summary) -> Sums:
        """Return weights and totals about the origin as numbers."""
        return Sums(self.weights(summary), summary.total * self.step)

    def use_up(self, summary: Summary) -> Sums:
        """Return weights and totals in the table's own coordinates, in the summary's room."""
        weight, total = self.weights(summary), summary.total.view(np.float64)
        for part in chunks(total):
            total[part] = summary.total[part] * self.step + weight[part, None] * self.origin
        return Sums(weight, total)

    def steps(self, weight: np.ndarray, points: np.ndarray) -> Summary:
        """Return rows seen from the origin in steps, as kernels round them: one cluster each."""
        total = np.rint(weight[:, None] * points * (1.0 / self.step))
        return Summary(np.rint(weight / self.weight_step).astype(np.int64), total.astype(np.int64))

    def means(
        self, summary: Summary, *, coarse: bool = False, out: np.ndarray | None = None
    ) -> np.ndarray:
        """Return the best center of each cluster, in the table's own coordinates.

        Coarse ones are as seen from the origin, in float32.
        """
        means = out
        if means is None:
            means = np.empty(summary.total.shape, dtype=np.float32 if coarse else np.float64)
        for part in self.chunks(means):
            seen = self.divergence.means(*self.floats(summary.take(part)))
            means[part] = seen if coarse else seen + self.origin
        return means

    def seen(self, centers: np.ndarray) -> np.ndarray:
        """Return centers, coarse or not, as seen from the origin, in float64."""
        if centers.dtype == np.float32:
            return centers.astype(np.float64)
        return centers - self.origin

    def energy(self, summary: Summary) -> np.ndarray:
        """Return each cluster's share of the objective beyond its rows' own costs."""
        energy = np.empty(len(summary.weight))
        for part in self.chunks(summary.total):
            energy[part] = self.divergence.energy(*self.floats(summary.take(part)))
        return energy

    def objective(
        self, summary: Summary, penalty: float, centers: np.ndarray | None = None
    ) -> float:
        """Return the cost of all rows at their centers (None: the best), plus the penalties."""
        if centers is None:
            energy = self.energy(summary)
        else:
            energy = np.empty(len(centers))
            for part in self.chunks(centers):
                weight, total = self.floats(summary.take(part))
                slope, offset = self.divergence.slope_offset(self.seen(centers[part]))
                energy[part] = weight * offset - np.einsum("ij,ij->i", total, slope)
        return float(self.total_cost + energy.sum() + penalty * len(summary.weight))

    def centers(self, values: np.ndarray) -> Points | Seen | Linear:
        """Return centers, coarse or not, in the form that kernels compare rows with."""
        if not self.by_differences:
            return self.linear(values)
        return Seen(values, self.origin) if values.dtype == np.float32 else Points(values)

    def linear(self, values: np.ndarray) -> Linear:
        """Return the linear form of centers."""
        slope, offset = self.divergence.slope_offset(values)
        scale = self.divergence.scale
        return Linear(scale * slope, scale * offset)

    def product_form(
        self, values: np.ndarray, sketch: Callable[[np.ndarray], np.ndarray] | None = None
    ) -> tuple[float, np.ndarray, np.ndarray]:
        """Return (unit, right, offset) of centers, in the coordinates of tiles of that unit.

        A tile's scores are ``offset - tile @ right``. With a sketch, ``right`` has what it makes of
        slopes.
        """
        if not self.by_differences:
            linear = self.linear(values)
            return 1.0, np.ascontiguousarray(linear.slope.T), linear.offset
        parts = self.chunks(values)
        largest = [np.abs(self.seen(values[part])).max() for part in parts]
        unit = max(self.unit, *largest, 0.0)
        right = np.empty((0, len(values)), dtype=np.float32)
        offset = np.empty(len(values), dtype=np.float32)
        for part in parts:
            seen = self.seen(values[part])
            seen /= unit
            offset[part] = np.einsum("ij,ij->i", seen, seen)
            seen *= 2.0
            found = seen if sketch is None else sketch(seen)
            if part.start == 0:
                right = np.empty((found.shape[1], len(values)), dtype=np.float32)
            right[:, part] = found.T
        return unit, right, offset

    def tile(self, block: Block, ids: np.ndarray, unit: float = 1.0) -> Tile:
        """Return some rows, in some unit of length, for a product with centers."""
        if self.is_sparse:
            values = block.table[block.offset + ids]
            squares = values.astype(np.float64).power(2).sum(axis=1)
            length = np.sqrt(np.asarray(squares).ravel())
            return Tile(values, block.form.cost[ids], length)
        # Products by float32 are enough to tell which few centers to measure exactly.
        kind = np.float32 if self.by_differences else np.float64
        values = np.empty((len(ids), self.n_features), dtype=kind)
        squares = np.empty(len(ids))
        rows = block.form.values  # type: ignore[union-attr]
        gather(rows, ids, self.origin, 1.0 / unit, values, squares)
        norm = squares if self.by_differences else block.form.cost[ids]
        return Tile(values, norm, np.sqrt(squares))


def power_of_two(value: Any) -> Any:
    """Return the least power of two that is not below a positive value."""
    return np.maximum(2.0 ** np.ceil(np.log2(np.maximum(value, SMALLEST_STEP))), SMALLEST_STEP)


def step_for(largest: Any, sum_of_weights: float, largest_weight: float) -> Any:
    """Return the step in which weighted values up to the largest, and all their sums, fit."""
    return power_of_two(largest * max(sum_of_weights / LARGEST_SUM, largest_weight / LARGEST_VALUE))
