"""The penalty path in the feature space of a kernel.

Merge costs need inner products of means alone. So micro-clusters are found by kernel k-means, put
back into a Euclidean space by their inner products, and handed to the path of
`countless.hard.penalty`, which judges plateaus against structureless data as it does for tables.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from countless.hard.divergence import get_divergence
from countless.hard.kernel.clusters import KernelClusters, KernelTable, Prices
from countless.hard.micro import (
    FEW_ROWS,
    PASSES,
    SEED_DRAWS,
    MicroClusters,
    how_many,
    sample_positions,
)
from countless.hard.penalty import PenaltyPath, _judge, _smallest_step
from countless.hard.structureless import Structureless, compactness_curve, null_widths
from countless.hard.ward import ward_tree

CloudHeights = Callable[[float, int], Structureless]

# Squared distances below this many roundings of the largest squared length are those of equal rows.
EQUAL_ROUNDINGS = 64
# Rows that show the shape of the whole.
SHOWN = 1000


def kernel_penalty_path(
    table: KernelTable, seed: int, cloud_heights: CloudHeights | None = None
) -> PenaltyPath:
    """Find what every penalty gives in feature space, and the plateau that stands out.

    Plateaus are judged against what structureless rows show through the same kernel where
    ``cloud_heights`` can say, else against clouds with the rows' spread in feature space.
    """
    few = table.n_rows <= FEW_ROWS
    labels = distinct_rows(table) if few else micro_clusters(table, seed)
    items = KernelClusters(table, Prices(0.0), labels)
    share = items.weight / items.weight.sum()
    mean = coordinates(items.products() / np.outer(items.weight, items.weight), share)
    shown = sample_positions(table.weight, SHOWN, seed)
    sample_weight = table.weight[shown]
    sample = coordinates(
        table.kernel[np.ix_(shown, shown)].astype(np.float64), sample_weight / sample_weight.sum()
    )
    within = items.cost
    if few or within <= _equal(table) * table.weight.sum():
        within = 0.0
    total = items.weight[:, None] * mean
    origin = np.zeros(mean.shape[1])
    micro = MicroClusters(items.labels, items.weight, total, origin, within, sample, sample_weight)
    measure = get_divergence("sqeuclidean")
    tree = ward_tree(micro.weight, micro.total, measure)
    widths, null = _judge(micro, tree, measure, seed)
    if cloud_heights is not None and len(widths):
        n_rows = max(micro.weight.sum(), tree.n_items)
        repeated = within == 0 and n_rows > tree.n_items
        # Rows that are equal are taken as spread over half the step to the next, as `_judge` does.
        spread = n_rows * _smallest_step(micro, tree) / 48 if repeated else 0.0
        cost = within + spread + np.append(np.cumsum(tree.cost)[::-1], 0.0)
        compactness = compactness_curve(cost[: len(widths) + 1], n_rows)
        null = null_widths(cloud_heights(n_rows, seed), compactness, n_rows)
    return PenaltyPath(micro.labels, tree, within, widths, null)


def coordinates(products: np.ndarray, share: np.ndarray) -> np.ndarray:
    """Return points about their mean, by shares, that have these inner products.

    Directions of negative squared length, which a kernel that is not positive semi-definite has,
    are left out.

    Examples
    --------
    >>> points = coordinates(np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([0.5, 0.5]))
    >>> float(np.square(points[0] - points[1]).sum().round(6))
    2.0
    """
    with_mean = products @ share
    centered = products - with_mean[:, None] - with_mean + share @ with_mean
    value, vector = np.linalg.eigh((centered + centered.T) / 2)
    kept = value > 1e-13 * max(value[-1], 0.0)
    kept[-1] = True
    return vector[:, kept] * np.sqrt(np.maximum(value[kept], 0.0))


def distances_to(table: KernelTable, row: int) -> np.ndarray:
    """Return the squared distance of every row from one of them."""
    squares = table.diagonal + table.diagonal[row] - 2.0 * table.kernel[row]
    squares[row] = 0.0
    return np.maximum(squares, 0.0)


def around(table: KernelTable, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the nearest of some rows for every row, by its place among them, and how far it is."""
    labels = np.zeros(table.n_rows, dtype=np.int32)
    distance = np.full(table.n_rows, np.inf)
    for place, row in enumerate(rows):
        to_row = distances_to(table, row)
        nearer = to_row < distance
        labels[nearer], distance[nearer] = place, to_row[nearer]
    return labels, distance


def distinct_rows(table: KernelTable) -> np.ndarray:
    """Return labels that rows share where they are equal; rows of no weight join the nearest."""
    leaders: list[int] = []
    distance = np.full(table.n_rows, np.inf)
    for row in map(int, np.flatnonzero(table.weight)):
        if distance[row] > _equal(table):
            leaders.append(row)
            np.minimum(distance, distances_to(table, row), out=distance)
    return around(table, np.array(leaders))[0]


def micro_clusters(table: KernelTable, seed: int) -> np.ndarray:
    """Return the labels of some hundreds of clusters, by kernel k-means.

    Half of the seeds are drawn by weight, the others by what rows cost there, which finds small
    clusters that have no seed yet.
    """
    n_micro = how_many(table.n_rows)
    seeds = sample_positions(table.weight, n_micro // 2, seed)
    labels, distance = around(table, seeds)
    for draw in range(SEED_DRAWS):
        cost = np.where(distance > _equal(table), table.weight * distance, 0.0)
        if not cost.any():
            break
        more = sample_positions(cost, n_micro // (2 * SEED_DRAWS), draw)
        label, to_more = around(table, more)
        nearer = to_more < distance
        labels[nearer], distance[nearer] = len(seeds) + label[nearer], to_more[nearer]
        seeds = np.append(seeds, more)
    items = KernelClusters(table, Prices(0.0), labels)
    for _ in range(PASSES):
        if not items.settle():
            break
    return items.labels


def kernel_farthest_first(table: KernelTable, k: int) -> float:
    """Return the penalty of the farthest-first rule (`farthest_first_penalty`) in feature space."""
    whole = KernelClusters(table, Prices(0.0), np.zeros(table.n_rows, dtype=np.int32))
    distance = whole.distances()
    far = int(np.argmax(table.weight * distance))
    for _ in range(k - 1):
        np.minimum(distance, distances_to(table, far), out=distance)
        far = int(np.argmax(table.weight * distance))
    return float(table.weight[far] * distance[far])


def _equal(table: KernelTable) -> float:
    """Return the squared distance below which rows are equal."""
    eps = float(np.finfo(table.kernel.dtype).eps)
    return EQUAL_ROUNDINGS * eps * float(np.abs(table.diagonal).max())
