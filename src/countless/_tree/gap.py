"""Dendrogram cuts: at the gap of heights that stands out from the null reference.

A tree has k clusters over an interval of heights, from the merge that leaves k to the next. Where
there are clusters that interval is wide, clusters are compact, and few rows lie between them. Data
without clusters has gaps, too: at few clusters, in low dimensions, and of other widths under every
linkage. So trees are grown in the same way from null reference samples, data without clusters but
of similar shape (`countless._path.null_reference`), and a figure is measured by its excess over
theirs at that k.

The width of a plateau comes from squared heights, which are on the scale of costs. With squared
dissimilarities D2 of rows, a row has the squared distance ``mean_j D2[i, j] - mean_jj' D2[j, j'] /
2`` from the mean of a cluster, with or without coordinates. So cost and separation of every cut
follow from one table: the sums of each row over each cluster.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
from scipy.cluster import hierarchy
from scipy.spatial.distance import squareform
from sklearn.utils import check_array

from countless._numbers import check_finite
from countless._path.evidence import NO_STATISTICS, WEIGHTS, PlateauStatistics
from countless._path.levels import Figures, Resolution, describe_levels, separation_of
from countless._path.null_reference import (
    CLOUDS,
    Axes,
    bells_and_boxes,
    reference_of,
)
from countless._path.path import Calibration
from countless._path.penalty import (
    CANDIDATES,
    Costs,
    PenaltyPath,
)
from countless._path.ward import WardTree
from countless._threads import one_library_thread, steps
from countless._tree.pairs import Pairs

Grow = Callable[[Pairs], np.ndarray]  # a linkage matrix


@dataclass(frozen=True)
class TreeClouds:
    """Constants of the null reference of a tree without rows.

    ``benchmarks/path_evidence.py --trees`` shows what they are worth.
    """

    # Candidate dimensions, and number of samples of each shape.
    dimensions: tuple[int, ...] = (1, 2, 3, 4, 6, 9, 14, 22, 35)
    n_samples: int = 4
    # Average cluster sizes between which the decay of heights shows the dimension of the rows.
    small: int = 2
    large: int = 8


TREE_CLOUDS = TreeClouds()


class TreeCut(PenaltyPath):
    """Clusters and labels at every height of a tree, and the height that stands out.

    Made by `cut_gap`. The documentation of penalties in `PenaltyPath` applies to heights here.

    Attributes
    ----------
    height : float
        The height of the cut: the middle, on a log scale, of the chosen gap.
    labels : ndarray of int
        The cluster of each row there, numbered by first appearance.
    n_clusters, confidence, plateaus, breakpoints
        As in `PenaltyPath`.
    """

    # The evidence is that of `penalty_path`. Cuts of a tree are not refined, and fewer of them have
    # the right k at the same lead: calibrated for average, complete, single, Ward's and DIANA's
    # trees together (benchmarks/path_evidence.py --trees).
    _calibration = Calibration(intercept=-1.86, slope=0.70)
    _least_layer = float(np.log(2.0))  # heights are distances

    def __init__(self, linkage: np.ndarray, statistics: PlateauStatistics):
        tree = tree_of(linkage)
        cost = np.append(np.cumsum(tree.cost)[::-1], 0.0)
        super().__init__(
            np.arange(tree.n_items), tree, Costs(cost, tree.height[::-1]), statistics, {}
        )

    def __repr__(self) -> str:
        return (
            f"TreeCut(n_clusters={self.n_clusters}, height={self.height:.6g}, "
            f"confidence={self.confidence:.2f})"
        )

    @property
    def height(self) -> float:
        return self.penalty

    @property
    def labels(self) -> np.ndarray:
        return self.labels_at(self.height)


def cut_gap(
    linkage: Any,
    X: Any = None,
    *,
    method: str = "average",
    metric: str = "euclidean",
    random_state: Any = None,
) -> TreeCut:
    """Cut a tree at the gap that stands out from the null reference.

    Parameters
    ----------
    linkage : array-like of shape (n_samples - 1, 4)
        A tree in the format of SciPy, fastcluster and scikit-learn's examples.
    X : array-like of shape (n_samples, n_features), optional
        The rows, so that the null reference has their spread; with ``metric='precomputed'`` their
        dissimilarities. Without rows the null reference is isotropic, with the dimension that the
        lower merges of the tree indicate, which is less sharp where clusters are elongated.
    method : str, default='average'
        The method of `scipy.cluster.hierarchy.linkage` that made the tree.
    metric : str, default='euclidean'
        The metric of the tree: a name that `countless.dissimilarity.dissimilarities` knows, or
        'precomputed'.
    random_state : ignored
        The null reference is deterministic.

    Returns
    -------
    TreeCut

    Examples
    --------
    >>> from scipy.cluster.hierarchy import linkage
    >>> from sklearn.datasets import make_blobs
    >>> from countless import cut_gap
    >>> X, _ = make_blobs(200, centers=4, cluster_std=0.5, random_state=3)
    >>> tree = linkage(X, "average")
    >>> cut = cut_gap(tree, X, random_state=0)
    >>> cut.n_clusters, cut_gap(tree, random_state=0).n_clusters
    (4, 4)
    """
    linkage = np.asarray(linkage, dtype=np.float64)
    hierarchy.is_valid_linkage(linkage, throw=True, name="linkage")
    n_rows = len(linkage) + 1

    def grow(pairs: Pairs) -> np.ndarray:
        return grow_linkage(pairs, method)

    if X is None:
        return compare_with_null(linkage, grow, lambda: _clouds_by_tree(linkage, grow), method)
    given, X = X, check_array(X, dtype=[np.float64, np.float32], ensure_all_finite=False)
    check_finite(X, given)
    if len(X) != n_rows:
        raise ValueError(f"the tree has {n_rows} rows, and X has {len(X)}")
    known = metric == "precomputed"
    pairs = Pairs.of_matrix(X) if known else Pairs.of_rows(X, metric)
    return compare_with_null(linkage, grow, pairs.clouds, method, pairs)


def grow_linkage(pairs: Pairs, method: str, engine: str = "scipy") -> np.ndarray:
    """Return the linkage of dissimilarities, by SciPy or by fastcluster, which agree."""
    library: Any = hierarchy
    if engine == "fastcluster":
        if find_spec("fastcluster") is None:
            raise ImportError("engine='fastcluster' needs it: pip install 'countless[fastcluster]'")
        library = import_module("fastcluster")
    return library.linkage(squareform(pairs.matrix, checks=False), method)


def tree_of(linkage: np.ndarray) -> WardTree:
    """Return a linkage matrix as merges that can be cut."""
    return WardTree(linkage[:, :2].astype(np.int64), linkage[:, 2])


def compare_with_null(
    linkage: np.ndarray,
    grow: Grow,
    clouds: Callable[[], Iterable[Iterable[Pairs]]],
    method: str,
    pairs: Pairs | None = None,
) -> TreeCut:
    """Compare the levels of a tree with those of trees of the null reference.

    Parameters
    ----------
    linkage : ndarray of shape (n_rows - 1, 4)
        The tree.
    grow : callable
        Grows the tree of a null sample.
    clouds : callable
        Yields lists of null samples, one list for each shape.
    method : str
        The linkage of SciPy whose heights these are.
    pairs : Pairs, optional
        The dissimilarities of the tree. Without them, and for single linkage, whose clusters need
        not be compact about their means, compactness is computed from heights alone.
    """
    n_rows = len(linkage) + 1
    last = max(n_rows // CANDIDATES.rows_a_cluster, 2)
    if n_rows <= last or not linkage[:, 2].any():
        return TreeCut(linkage, NO_STATISTICS)
    of_means = pairs is not None and method != "single"

    levels = measure_levels(linkage, method, pairs if of_means else None, last)

    def describe(cloud: Pairs) -> Figures:
        highest = max(cloud.n_rows // CLOUDS.points_a_cluster, 2)
        known = cloud if of_means else None
        tree = measure_levels(grow(cloud), method, known, highest)
        return tree.describe(levels.resolution)

    with one_library_thread():
        null = reference_of([describe(cloud) for cloud in kind] for kind in clouds())
    figures = levels.describe(levels.resolution)
    scores = null.standard_scores(figures)
    # The figures are of squared heights.
    width, null_width = figures.width / 2, null.mean_widths(last - 1) / 2
    # Where only the width is known it must exceed a minimum, as in `countless._path.penalty`.
    beyond = np.arange(2, last + 1) > CLOUDS.most_levels
    width[beyond & (figures.width <= CANDIDATES.least_width)] = 0.0
    evidence = WEIGHTS.evidence(scores)
    # A cut that splits off only a few outlying rows counts no more than one of the null reference.
    enough = np.minimum(CANDIDATES.rows_a_cluster, n_rows / (2 * np.arange(2, last + 1)))
    few = _second_sizes(linkage, last) < enough
    evidence[few] = np.minimum(evidence[few], WEIGHTS.constant)
    return TreeCut(linkage, PlateauStatistics(width, null_width, scores, evidence))


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
        known = min(highest, CLOUDS.most_levels)
        separation = np.full(highest - 1, np.nan)
        cost[:known], separation[: known - 1] = _measure_means(linkage, pairs, known, unit)
    of_a_row = cost[0] / n
    gain = height**2 / (cost[0] if ward else of_a_row)
    resolution = Resolution()
    if height[0] == 0:
        # Duplicate rows are taken as spread over half the step to the next, as in `penalty_path`.
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
    for start, stop in steps(n, 1024):
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
        separation[k - 2] = separation_of(total / size - spread, ones, apart)
        kept, gone = (int(np.flatnonzero(node == child)[0]) for child in merges[n - k])
        node[kept] = 2 * n - k
        for sums in (between, total.T, size, between.T):
            sums[kept] += sums[gone]
        left = np.arange(k) != gone
        between, total = between[np.ix_(left, left)], total[:, left]
        size, node = size[left], node[left]
    return cost, separation


def _second_sizes(linkage: np.ndarray, highest: int) -> np.ndarray:
    """Return the size of the second largest of 2, ..., ``highest`` clusters."""
    size = np.append(np.ones(len(linkage) + 1), linkage[:, 3])
    sizes, second = [float(size[-1])], []
    for merge in range(1, highest):
        sizes.remove(size[-merge])
        for child in linkage[-merge, :2].astype(np.int64):
            insort(sizes, float(size[child]))
        second.append(sizes[-2])
    return np.array(second)


def _clouds_by_tree(linkage: np.ndarray, grow: Grow) -> Iterable[list[Pairs]]:
    """Yield null samples of the dimension that the small clusters of the tree indicate."""
    n_points = min(len(linkage) + 1, CLOUDS.n_points)
    wanted = _fall(linkage)

    def clouds(d: int, n_clouds: int | None = None) -> Iterable[list[Pairs]]:
        axes = Axes(np.ones(d), np.zeros(d))
        for kind in bells_and_boxes(axes, n_points, np.random.default_rng(CLOUDS.seed)):
            yield [Pairs.of_rows(cloud, "euclidean") for cloud in kind[:n_clouds]]

    falls = [
        np.mean([_fall(grow(cloud)) for kind in clouds(d, TREE_CLOUDS.n_samples) for cloud in kind])
        for d in TREE_CLOUDS.dimensions
    ]
    return clouds(TREE_CLOUDS.dimensions[int(np.argmin(np.abs(np.array(falls) - wanted)))])


def _fall(linkage: np.ndarray) -> float:
    """Return the decrease of log heights from small to smaller clusters."""
    height = np.maximum.accumulate(linkage[:, 2])[::-1]
    n_rows = len(height) + 1
    few, many = (
        height[max(0, min(n_rows // size, n_rows - 1) - 1)]
        for size in (TREE_CLOUDS.large, TREE_CLOUDS.small)
    )
    return float(np.log(few / many)) if many > 0 else np.inf
