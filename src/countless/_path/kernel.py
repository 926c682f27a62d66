"""The penalty path in the feature space of a kernel.

Merge costs need only inner products of means. So micro-clusters are found by kernel k-means,
embedded in a Euclidean space by their inner products (kernel PCA), and passed to
`countless._path.penalty`, which scores plateaus against a null reference as it does for tables.

A cloud without clusters becomes a curved sheet in the feature space of an RBF kernel, which is
partitioned more easily than a flat cloud of the same variance. So clouds are drawn in the input
space, with the data's variance, and mapped by the kernel before linkage.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import numpy as np
import scipy.sparse as sp

from countless._path.levels import Points, Resolution
from countless._path.micro import (
    CORESET,
    MicroClusters,
    how_many,
    sample_positions,
)
from countless._path.null_reference import (
    CLOUDS,
    NullReference,
    clouds_like,
    null_reference,
    rows_like,
)
from countless._path.penalty import PenaltyPath, path_of_items
from countless._search.kernel.clusters import KernelClusters, KernelTable, Prices
from countless._search.kernel.matrix import KernelFunction
from countless.divergences import get_divergence

KernelClouds = Callable[[float], Iterable[Iterable[Points]]]


def kernel_penalty_path(table: KernelTable, clouds: KernelClouds | None = None) -> PenaltyPath:
    """Compute the clusters at every penalty in feature space, and choose a plateau.

    The null reference are clouds mapped by the same kernel if ``clouds`` is given, else clouds with
    the rows' variance in feature space.
    """
    few = table.n_rows <= CORESET.few_rows
    labels = distinct_rows(table) if few else micro_clusters(table, CLOUDS.seed)
    items = KernelClusters(table, Prices(0.0), labels)
    share = items.weight / items.weight.sum()
    mean = coordinates(items.products() / np.outer(items.weight, items.weight), share)
    within = items.cost
    if few or within <= _equal(table) * table.weight.sum():
        within = 0.0
    shown = sample_positions(table.weight, CLOUDS.sampled_rows, CLOUDS.seed)
    weight = table.weight[shown]
    products = table.kernel[np.ix_(shown, shown)].astype(np.float64)
    sample = coordinates(products, weight / weight.sum())
    total = items.weight[:, None] * mean
    origin = np.zeros(mean.shape[1])
    micro = MicroClusters(items.labels, items.weight, total, origin, within, sample, weight)
    euclidean = get_divergence("sqeuclidean")

    def reference(n_rows: float, resolution: Resolution) -> NullReference:
        if clouds is not None:
            return null_reference(clouds(n_rows), resolution)
        center = np.zeros(sample.shape[1])
        return null_reference(clouds_like(sample, weight, center, euclidean, n_rows), resolution)

    return path_of_items(micro, euclidean, reference)


def clouds_through(
    function: KernelFunction, X, weight: np.ndarray, n_rows: float
) -> Iterator[Iterator[Points]]:
    """Draw clouds with the variance of X, and map them by a kernel.

    Parameters
    ----------
    function : KernelFunction
        One that takes any rows.
    X : ndarray or CSR matrix of shape (n_samples, n_features)
    weight : ndarray of shape (n_samples,)
    n_rows : float
        Rows of the data; clouds have as many points, up to a limit.
    """
    shown = sample_positions(weight, CLOUDS.sampled_rows, CLOUDS.seed)
    sample = X[shown].toarray() if sp.issparse(X) else X[shown]
    for kind in rows_like(sample.astype(np.float64), weight[shown], n_rows):
        yield (_points(function.between(cloud)) for cloud in kind)


def _points(kernel: np.ndarray) -> Points:
    """Return points with these inner products; dropped small variances add to ``within``."""
    n_points = len(kernel)
    points = coordinates(kernel, np.full(n_points, 1 / n_points))
    squares = np.square(points).sum(axis=0)
    kept = squares > CLOUDS.least_variance * squares.max()
    within = float(squares[~kept].sum())
    ones = np.ones(n_points)
    return Points(points[:, kept], ones, get_divergence("sqeuclidean"), within)


def coordinates(products: np.ndarray, share: np.ndarray) -> np.ndarray:
    """Return centred points with these inner products (weighted kernel PCA).

    Negative eigenvalues, of a kernel that is not positive semi-definite, are dropped.

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
    """Return for every row the index of the nearest of some rows, and the squared distance."""
    labels = np.zeros(table.n_rows, dtype=np.int32)
    distance = np.full(table.n_rows, np.inf)
    for place, row in enumerate(rows):
        to_row = distances_to(table, row)
        nearer = to_row < distance
        labels[nearer], distance[nearer] = place, to_row[nearer]
    return labels, distance


def distinct_rows(table: KernelTable) -> np.ndarray:
    """Return labels of distinct rows; rows of zero weight join the nearest."""
    leaders: list[int] = []
    distance = np.full(table.n_rows, np.inf)
    for row in map(int, np.flatnonzero(table.weight)):
        if distance[row] > _equal(table):
            leaders.append(row)
            np.minimum(distance, distances_to(table, row), out=distance)
    return around(table, np.array(leaders))[0]


def micro_clusters(table: KernelTable, seed: int) -> np.ndarray:
    """Return the labels of some hundreds of clusters, by kernel k-means.

    Half of the seeds are drawn by weight, the others with probability proportional to their cost,
    which finds small clusters without a seed.
    """
    n_micro = how_many(table.n_rows)
    seeds = sample_positions(table.weight, n_micro // 2, seed)
    labels, distance = around(table, seeds)
    for draw in range(CORESET.seed_draws):
        cost = np.where(distance > _equal(table), table.weight * distance, 0.0)
        if not cost.any():
            break
        more = sample_positions(cost, n_micro // (2 * CORESET.seed_draws), draw)
        label, to_more = around(table, more)
        nearer = to_more < distance
        labels[nearer], distance[nearer] = len(seeds) + label[nearer], to_more[nearer]
        seeds = np.append(seeds, more)
    items = KernelClusters(table, Prices(0.0), labels)
    for _ in range(CORESET.passes):
        if not items.one_pass():
            break
    return items.labels


def kernel_farthest_first(table: KernelTable, k: int) -> float:
    """Return the farthest-first penalty (`farthest_first_penalty`) in feature space."""
    whole = KernelClusters(table, Prices(0.0), np.zeros(table.n_rows, dtype=np.int32))
    distance = whole.distances()
    far = int(np.argmax(table.weight * distance))
    for _ in range(k - 1):
        np.minimum(distance, distances_to(table, far), out=distance)
        far = int(np.argmax(table.weight * distance))
    return float(table.weight[far] * distance[far])


def _equal(table: KernelTable) -> float:
    """Return the squared distance below which rows are considered equal."""
    eps = float(np.finfo(table.kernel.dtype).eps)
    return 64 * eps * float(np.abs(table.diagonal).max())
