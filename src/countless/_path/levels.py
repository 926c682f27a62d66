"""Refined clusterings of some hundreds of weighted points, for every number of clusters.

A cut of Ward's dendrogram is not optimal. At each k k-means is run from two initialisations, the
cut of the dendrogram, and the clusters at k + 1 with the cheapest pair merged; the better is kept.

Three statistics describe a level (one k); `countless._path.null_reference` has their null
distribution:

* the width of its plateau: the interval of log(penalty) over which k clusters are optimal. With
  E[k] the cost of k clusters it is ``log((E[k-1] - E[k]) / (E[k] - E[k+1]))`` where E is convex; a
  k that is optimal at no penalty has width 0;
* its compactness: ``log((E[1] / (n - 1)) / (E[k] / (n - k)))``;
* its separation: the negative log of the share of rows near the border of their cluster.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.optimize import isotonic_regression

from countless._path.ward import WardTree
from countless.divergences import Divergence
from countless.kernels.path import assign_points, sum_clusters, weight_near_border


@dataclass(frozen=True)
class Refinement:
    """Constants of levels; ``benchmarks/path_evidence.py`` shows what they are worth."""

    # Passes of k-means at a level; most need fewer.
    passes: int = 10
    # A row is near a border up to this share of the squared distance between the centers, that is,
    # up to half the distance from the border to its center.
    border_reach: float = 0.25


REFINEMENT = Refinement()


class Points(NamedTuple):
    """Weighted points that represent rows."""

    mean: np.ndarray  # (m, n_features)
    weight: np.ndarray  # (m,)
    divergence: Divergence
    within: float = 0.0  # cost of the rows at their points


class Level(NamedTuple):
    """A clustering into k clusters, or fewer if one has become empty."""

    labels: np.ndarray  # (m,)
    weight: np.ndarray  # (k,)
    total: np.ndarray  # (k, n_features)
    cost: float


class Figures(NamedTuple):
    """The statistics of the levels k = 2, 3, ..."""

    width: np.ndarray
    compactness: np.ndarray
    separation: np.ndarray


class Resolution(NamedTuple):
    """Rounding of discrete data: equal rows are treated as spread over half a step of values."""

    gain: float = 0.0  # least cost of a merge, per row of the table
    cost: float = 0.0  # added cost per row


def refine_levels(points: Points, tree: WardTree, highest: int, lowest: int = 1) -> list[Level]:
    """Return refined clusterings with ``lowest`` to ``highest`` clusters, in this order.

    Examples
    --------
    >>> import numpy as np
    >>> from countless.divergences import get_divergence
    >>> from countless._path.ward import ward_tree
    >>> x = np.array([[0.0], [1.0], [10.0], [11.0]])
    >>> points = Points(x, np.ones(4), get_divergence("sqeuclidean"))
    >>> tree = ward_tree(points.weight, x, points.divergence)
    >>> [level.cost for level in refine_levels(points, tree, 3)]
    [101.0, 1.0, 0.5]
    """
    m = tree.n_items
    node = tree.nodes(m - highest)  # of each point, in the tree
    levels: list[Level] = []
    for k in range(highest, lowest - 1, -1):
        if k < highest:
            merge = m - k - 1
            node[np.isin(node, tree.children[merge])] = m + merge
        starts = [np.unique(node, return_inverse=True)[1]]
        if levels:
            starts.append(_joined(points, levels[-1]))
        levels.append(min((_settle(points, labels) for labels in starts), key=_cost))
    return levels[::-1]


def _cost(level: Level) -> float:
    return level.cost


def _settle(points: Points, labels: np.ndarray) -> Level:
    """Run k-means until no label changes, or for `REFINEMENT.passes`."""
    labels = labels.astype(np.int64)
    for passes in range(REFINEMENT.passes + 1):
        clusters = _sum_clusters(points, labels)
        if passes == REFINEMENT.passes or not assign_points(_compare(points, clusters), labels):
            break
    weight, total = clusters
    mean, mass, divergence, within = points
    cost = within + float(
        divergence.energy(weight, total).sum() - divergence.energy(mass, mass[:, None] * mean).sum()
    )
    return Level(labels, weight, total, max(cost, 0.0))


def _sum_clusters(points: Points, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return weights and sums of clusters; ``labels`` are renumbered without empty ones."""
    k = int(labels.max()) + 1
    weight, total = np.empty(k), np.empty((k, points.mean.shape[1]))
    sum_clusters(points.mean, points.weight, labels, weight, total)
    filled = weight > 0
    if filled.all():
        return weight, total
    labels[:] = (np.cumsum(filled) - 1)[labels]
    return weight[filled], total[filled]


def _compare(points: Points, clusters: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    """Return the divergence of each point from each center, up to a term of the point."""
    slope, offset = points.divergence.slope_offset(points.divergence.means(*clusters))
    return offset - points.mean @ slope.T


def _joined(points: Points, level: Level) -> np.ndarray:
    """Return labels after merging the cheapest pair of clusters."""
    energy = points.divergence.energy
    alone = energy(level.weight, level.total)
    a, b = np.triu_indices(len(alone), 1)
    if not len(a):
        return level.labels
    joint = energy(level.weight[a] + level.weight[b], level.total[a] + level.total[b])
    best = int(np.argmin(joint - alone[a] - alone[b]))
    labels = np.where(level.labels == b[best], a[best], level.labels)
    return labels - (labels > b[best])


def separation(points: Points, level: Level) -> float:
    """Return the negative log of the share of rows near the border of their cluster."""
    centers = points.divergence.means(level.weight, level.total)
    if len(centers) == 1:
        return 0.0
    slope, offset = points.divergence.slope_offset(centers)
    between = offset - centers @ slope.T
    apart = np.maximum(between - np.diag(between)[:, None], np.finfo(float).tiny)
    compared = _compare(points, (level.weight, level.total))
    return separation_of(compared, points.weight, apart)


def separation_of(compared: np.ndarray, weight: np.ndarray, apart: np.ndarray) -> float:
    """Return the same from the divergence of each point from each center, and between centers."""
    near = weight_near_border(compared, weight, apart, REFINEMENT.border_reach)
    # A pseudo-count of half a row keeps the logarithm finite.
    return float(-np.log((near + 0.5) / (weight.sum() + 1.0)))


def convex_gains(gain: np.ndarray) -> np.ndarray:
    """Return the gain of each further cluster on the lower convex hull of the costs.

    ``gain`` is ``E[1] - E[2], E[2] - E[3], ...``; on the hull these are non-increasing.

    Examples
    --------
    >>> convex_gains(np.array([2.0, 4.0, 1.0])).tolist()
    [3.0, 3.0, 1.0]
    """
    return isotonic_regression(gain, increasing=False).x if len(gain) else gain


def describe_levels(
    cost: np.ndarray,
    gain: np.ndarray,
    separation: np.ndarray,
    n_rows: float,
    resolution: Resolution,
) -> Figures:
    """Return the statistics of the levels 2 to K.

    Parameters
    ----------
    cost : ndarray of shape (K,)
        E[1], ..., E[K].
    gain : ndarray of shape (K,)
        The gain of each further cluster, on the hull.
    separation : ndarray of shape (K - 1,)
    n_rows : float
    resolution : Resolution
    """
    tiny = np.finfo(float).tiny
    gain = np.log(np.maximum(gain, max(n_rows * resolution.gain, tiny)))
    k = np.arange(1, len(cost) + 1)
    per_row = np.log(cost + n_rows * resolution.cost + tiny) - np.log(n_rows - k)
    return Figures(gain[:-1] - gain[1:], per_row[0] - per_row[1:], separation)
