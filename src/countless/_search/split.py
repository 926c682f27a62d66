"""Splitting clusters in two by 2-means: all clusters at once, in a few passes over the rows."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np

from countless._data import Block, FixedPoint, Summary
from countless._search.assignment import Assignment
from countless._search.local_search import SCHEDULE
from countless._search.nearest_centers import MARKS
from countless.kernels.moves import add_side, spread_of_clusters


class Halves(NamedTuple):
    """The result of splitting some clusters; the rows of second halves are marked."""

    cluster: np.ndarray  # (m,) the clusters
    gain: np.ndarray  # (m,) decrease of the within-cluster cost
    far: Summary  # sums of the second half, which gets a new label


class Spread(NamedTuple):
    """The row of each cluster that is farthest from its center, and the within-cluster cost."""

    farthest: np.ndarray  # (n_clusters,) -1: no row
    reach: np.ndarray  # (n_clusters,)
    cost: np.ndarray  # (n_clusters,)

    @classmethod
    def zeros(cls, n_clusters: int) -> Spread:
        return cls(np.full(n_clusters, -1), np.zeros(n_clusters), np.zeros(n_clusters))

    def zeros_factory(self) -> Callable[[], Spread]:
        return partial(Spread.zeros, len(self.cost))

    def add(self, other: Spread) -> None:
        first = (other.farthest < self.farthest) | (self.farthest < 0)
        better = (other.reach > self.reach) | (other.reach == self.reach) & first
        better &= other.farthest >= 0
        self.farthest[better] = other.farthest[better]
        self.reach[better] = other.reach[better]
        np.add(self.cost, other.cost, out=self.cost)

    @property
    def n_bytes(self) -> int:
        return sum(part.nbytes for part in self)


class Planes(NamedTuple):
    """A separating hyperplane for each of some clusters."""

    fixed_point: FixedPoint
    slot: np.ndarray  # (n_clusters,) index of a cluster's hyperplane, -1: none
    normal: np.ndarray  # (n_planes, n_features)
    threshold: np.ndarray  # (n_planes,)
    shrink: float  # above 0: sum all rows, times their signed distance, times this


def worth_halving(
    nearest: Assignment, price: float, most: int | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return the clusters that cost more than the price, and the farthest row of each.

    Splitting a cluster cannot gain more than its within-cluster cost. With ``most``, only the
    ``most`` clusters of highest cost are returned.
    """
    spread = Spread.zeros(nearest.n_clusters)
    fixed_point = nearest.rows.fixed_point
    nearest.rows.run(spread_block, nearest.state, fixed_point.centers(nearest.centers), into=spread)
    # With a margin: costs are float sums, and their order of summation must not matter.
    cluster = np.flatnonzero(spread.cost * (1 + 1e-9) > price * fixed_point.divergence.scale)
    if most is not None:
        costliest = np.argsort(-spread.cost[cluster], kind="stable")[:most]
        cluster = np.sort(cluster[costliest])
    return cluster, spread.farthest[cluster]


def halve(nearest: Assignment, cluster: np.ndarray, farthest: np.ndarray) -> Halves:
    """Split clusters by 2-means, started along the first principal direction of each."""
    rows, fixed_point, divergence = (
        nearest.rows,
        nearest.rows.fixed_point,
        nearest.rows.fixed_point.divergence,
    )
    whole = nearest.summary.take(cluster)
    slot = np.full(nearest.n_clusters, -1)
    slot[cluster] = np.arange(len(cluster))
    rows.allocate_more(nearest.state, MARKS)

    def beyond(normal, threshold, shrink=0.0) -> Summary:
        sums = fixed_point.empty(len(cluster))
        planes = Planes(fixed_point, slot, normal, threshold, shrink)
        rows.run(side_block, nearest.state, planes, into=sums)
        return sums

    # Start from the direction of the farthest row; a step of power iteration turns it towards the
    # first principal direction.
    mean = _means(fixed_point, whole)
    normal = rows.points(farthest)
    normal -= fixed_point.origin
    normal -= mean
    _to_unit_length(normal)
    normal = beyond(
        normal, _row_products(normal, mean), shrink=0.5 / (fixed_point.reach or 1.0)
    ).total
    normal = normal * fixed_point.step
    _to_unit_length(normal)
    far = beyond(normal, _row_products(normal, mean))
    del mean
    for _ in range(SCHEDULE.halving_passes):
        proper = _proper(whole, far)
        # Assign rows to the nearer of the two means: d(x, near) - d(x, far) is linear in x.
        near = _rest(whole, far, proper)
        normal, offset = divergence.slope_offset(divergence.means(*fixed_point.to_floats(near)))
        np.negative(normal, out=normal)
        slope, threshold = divergence.slope_offset(
            divergence.means(*fixed_point.to_floats(_filled(far, proper)))
        )
        normal += slope
        del near, slope
        normal[~proper] = 0.0
        far = beyond(normal, np.where(proper, threshold - offset, 0.0))
    proper = _proper(whole, far)
    gain = fixed_point.energy(whole) - fixed_point.energy(_filled(far, proper))
    gain -= fixed_point.energy(_rest(whole, far, proper))
    return Halves(cluster, np.where(proper, gain, -np.inf), far)


def spread_block(block: Block, held, centers, borrow) -> None:
    """Find the row of each cluster that is farthest from its center, and add up the costs."""
    with borrow() as spread:
        spread_of_clusters(
            block.form, block.weight, centers, held["labels"], block.start, held["upper"], *spread
        )


def side_block(block: Block, held, planes: Planes, borrow) -> None:
    """Mark and sum the rows on the positive side of the hyperplanes."""
    with borrow() as sums:
        add_side(
            block.form, block.weight, held["labels"], planes.slot, planes.normal, planes.threshold,
            planes.shrink, planes.fixed_point.scale, held["marked"], *sums,
        )  # fmt: skip


def _means(fixed_point: FixedPoint, summary: Summary) -> np.ndarray:
    """Return the mean of each cluster, relative to the fixed_point's origin."""
    weight, total = fixed_point.to_floats(summary)
    total /= weight[:, None]
    return total


def _to_unit_length(directions: np.ndarray) -> None:
    """Scale rows to unit length in place, without overflow or underflow; zero rows stay zero."""
    tiny = np.finfo(float).tiny
    directions /= np.maximum(np.abs(directions).max(axis=1, keepdims=True), tiny)
    directions /= np.maximum(np.linalg.norm(directions, axis=1, keepdims=True), tiny)


def _row_products(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.einsum("ij,ij->i", a, b)


def _proper(whole: Summary, far: Summary) -> np.ndarray:
    """Return for which clusters neither half is empty."""
    return (far.weight > 0) & (far.weight < whole.weight)


def _rest(whole: Summary, far: Summary, proper: np.ndarray) -> Summary:
    """Return the sums of the first half: the cluster minus the second half."""
    return _filled(Summary(whole.weight - far.weight, whole.total - far.total), proper)


def _filled(half: Summary, proper: np.ndarray) -> Summary:
    """Replace empty halves by dummy values, so that no division by zero occurs."""
    if proper.all():
        return half
    weight, total = np.where(proper, half.weight, 1), half.total.copy()
    total[~proper] = 1
    return Summary(weight, total)
