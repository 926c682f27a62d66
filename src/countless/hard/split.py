"""Splitting clusters in two: all at once, in a few passes over the rows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from countless.kernels.moves import add_side, spread_of_clusters
from countless.rows import MemoryRows, Summary

# Passes of 2-means inside each cluster; later ones change little.
PASSES = 3
# A half must hold this share of its cluster's weight; less is the rounding of a difference.
LEAST_SHARE = 1e-9


class Halves(NamedTuple):
    """What splitting some clusters gives."""

    cluster: np.ndarray  # (m,) the clusters
    gain: (
        np.ndarray
    )  # (m,) what splitting each lowers the objective by, before the penalty for one more cluster
    near: Summary  # the half that keeps the label
    far: Summary  # the half that gets a new one
    side: np.ndarray  # (n_rows,) bool, True in the far half


def halve(rows: MemoryRows, labels, upper, summary: Summary, penalty: float) -> Halves:
    """Halve every cluster that could pay the penalty, by 2-means from its main direction.

    ``upper`` bounds the distance of each row from its center: clusters that cost less than the
    penalty altogether are left alone.
    """
    divergence = rows.divergence
    farthest, cost = spread_of_clusters(labels, rows.weight, upper, len(summary.weight))
    cluster = np.flatnonzero(cost > penalty * divergence.scale)
    whole = Summary(summary.weight[cluster], summary.total[cluster])
    side = np.zeros(rows.n_rows, dtype=bool)
    if not len(cluster):
        return Halves(cluster, np.empty(0), whole, whole, side)
    slot = np.full(len(summary.weight), -1)
    slot[cluster] = np.arange(len(cluster))

    def beyond(normal, threshold, spread=False) -> Summary:
        def add(start, stop, part):
            add_side(
                rows.form, start, stop, rows.weight, labels, slot, rows.origin, normal, threshold,
                spread, side, *part,
            )  # fmt: skip

        return rows.sums(add, len(cluster))

    mean = whole.total / whole.weight[:, None]
    # The farthest row points along the cluster; a step of power iteration turns that towards its
    # main direction.
    normal = rows.take(farthest[cluster])
    normal -= rows.origin
    normal -= mean
    _to_unit_length(normal)
    normal = beyond(normal, _row_products(normal, mean), spread=True).total
    _to_unit_length(normal)
    far = beyond(normal, _row_products(normal, mean))
    del mean
    for _ in range(PASSES):
        near, proper = _rest(whole, far)
        # Halves' means attract rows as centers do; d(x, near) - d(x, far) is linear in x.
        slope, offset = divergence.slope_offset(divergence.means(*_filled(near, proper)))
        normal, threshold = divergence.slope_offset(divergence.means(*_filled(far, proper)))
        del near
        normal -= slope
        normal[~proper] = 0.0
        far = beyond(normal, np.where(proper, threshold - offset, 0.0))
    near, proper = _rest(whole, far)
    energy = divergence.energy
    gain = energy(*whole) - energy(*_filled(near, proper)) - energy(*_filled(far, proper))
    return Halves(cluster, np.where(proper, gain, -np.inf), near, far, side)


def _to_unit_length(directions: np.ndarray) -> None:
    """Scale rows to length 1, whatever their scale; rows of zeros stay."""
    tiny = np.finfo(float).tiny
    directions /= np.maximum(np.abs(directions).max(axis=1, keepdims=True), tiny)
    directions /= np.maximum(np.linalg.norm(directions, axis=1, keepdims=True), tiny)


def _row_products(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.einsum("ij,ij->i", a, b)


def _rest(whole: Summary, far: Summary) -> tuple[Summary, np.ndarray]:
    """Return what the far half leaves, and whether both halves hold rows."""
    near = Summary(whole.weight - far.weight, whole.total - far.total)
    return near, np.minimum(near.weight, far.weight) > LEAST_SHARE * whole.weight


def _filled(half: Summary, proper: np.ndarray) -> Summary:
    """Give halves without rows a harmless content, so that whole arrays can be computed with."""
    if proper.all():
        return half
    return Summary(np.where(proper, half.weight, 1.0), np.where(proper[:, None], half.total, 1.0))
