"""Figures of the cuts of a tree into k = 2, 3, ... clusters, as in `countless._path.levels`.

The width of a plateau comes from squared heights, which are on the scale of costs. With squared
dissimilarities D2 of rows, a row has the squared distance ``mean_j D2[i, j] - mean_jj' D2[j, j'] /
2`` from the mean of a cluster, with or without coordinates. So cost and separation of every cut
follow from one table: the sums of each row over each cluster.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from countless._path.levels import REACH, Figures, Resolution, describe_levels
from countless._path.null_reference import MOST_LEVELS
from countless._path.ward import WardTree
from countless._threads import steps
from countless._tree.pairs import Pairs
from countless.kernels.levels import weight_near_border

# Number of rows whose dissimilarities are squared at once.
AT_ONCE = 1024


class TreeLevels(NamedTuple):
    """The cuts of a tree into 1, ..., K clusters, in units of the total cost per row."""

    gain: np.ndarray  # (K,) squared heights from the top; for Ward's trees over the number of rows
    cost: np.ndarray  # (K,)
    separation: np.ndarray | None  # (K - 1,)
    n_rows: int
    resolution: Resolution  # limit by duplicate rows; its gain is on the scale of these gains

    def describe(self, resolution: Resolution) -> Figures:
        """Return the figures of 2, ..., K clusters.

        If only heights are known, separation equals compactness.
        """
        gain = np.maximum(self.gain, resolution.gain)
        of_rows = Resolution(0.0, resolution.cost)
        unknown = np.full(len(gain) - 1, np.nan)
        separation = unknown if self.separation is None else self.separation
        figures = describe_levels(self.cost, gain, separation, self.n_rows, of_rows)
        return (
            figures
            if self.separation is not None
            else figures._replace(separation=figures.compactness)
        )


def measure_levels(
    linkage: np.ndarray, method: str, pairs: Pairs | None, highest: int
) -> TreeLevels:
    """Measure the cuts of a tree into 1, ..., ``highest`` clusters.

    Parameters
    ----------
    linkage : ndarray of shape (n_rows - 1, 4)
        With at least one positive height.
    method : str
        The linkage of SciPy whose heights these are.
    pairs : Pairs or None
        The dissimilarities of the tree. Without them costs come from heights: where these are
        dissimilarities of clusters, a merge costs the square times ``n_a n_b / (n_a + n_b)``, as in
        Ward's trees.
    highest : int
        Separation is computed up to the numbers of clusters that the null reference has.
    """
    n, ward = len(linkage) + 1, method == "ward"
    unit = float(linkage[:, 2].max())  # avoids overflow and underflow of squares
    height = np.maximum.accumulate(linkage[:, 2]) / unit  # monotone
    size = np.append(np.ones(n), linkage[:, 3])
    first, second = size[linkage[:, :2].astype(np.int64)].T
    mass = first * second / (first + second)
    squares = height**2 / (2 * mass) if ward else height**2  # of distances between means
    cost = np.cumsum(mass * squares)[::-1][:highest].copy()
    separation = None
    if pairs is not None:
        known = min(highest, MOST_LEVELS)
        separation = np.full(highest - 1, np.nan)
        cost[:known], separation[: known - 1] = _measure_means(linkage, pairs, known, unit)
    of_a_row = cost[0] / n
    gain = height**2 / (cost[0] if ward else of_a_row)
    resolution = Resolution()
    if height[0] == 0:
        # Duplicate rows are taken as spread over half the step to the next, as in `hard.penalty`.
        lowest = int(np.argmax(height > 0))
        resolution = Resolution(gain[lowest] / 64, squares[lowest] / of_a_row / 48)
    return TreeLevels(gain[::-1][:highest], cost / of_a_row, separation, n, resolution)


def _measure_means(
    linkage: np.ndarray, pairs: Pairs, highest: int, unit: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return the costs of 1, ..., ``highest`` clusters about their means, and their separation."""
    n = len(linkage) + 1
    merges = linkage[:, :2].astype(np.int64)
    node, labels = np.unique(
        WardTree(merges, linkage[:, 2]).nodes(n - highest), return_inverse=True
    )
    member = np.zeros((n, highest))
    member[np.arange(n), labels] = 1.0
    total = np.empty((n, highest))  # sums of squared dissimilarities of rows to clusters
    for start, stop in steps(n, AT_ONCE):
        total[start:stop] = (pairs.matrix[start:stop] / unit) ** 2 @ member
    between = member.T @ total
    size = member.sum(axis=0)
    cost, separation = np.empty(highest), np.empty(highest - 1)
    ones = np.ones(n)
    for k in range(highest, 0, -1):
        within = np.diag(between) / (2 * size)
        cost[k - 1] = within.sum()
        if k == 1:
            break
        spread = within / size
        apart = between / np.outer(size, size) - spread[:, None] - spread
        apart = np.maximum(apart, np.finfo(float).tiny)
        near = weight_near_border(total / size - spread, ones, apart, REACH)
        # Half a row keeps the logarithm finite where no row is close.
        separation[k - 2] = -np.log((near + 0.5) / (n + 1.0))
        kept, gone = (int(np.flatnonzero(node == child)[0]) for child in merges[n - k])
        node[kept] = 2 * n - k
        for sums in (between, total.T, size, between.T):
            sums[kept] += sums[gone]
        left = np.arange(k) != gone
        between, total = between[np.ix_(left, left)], total[:, left]
        size, node = size[left], node[left]
    return cost, separation
