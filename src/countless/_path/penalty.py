"""Choosing the penalty: k as a function of the penalty, and the plateau with most evidence.

DP-means merges two clusters when that costs less than the penalty, and the cost is Ward's. So the
Ward dendrogram of micro-clusters, refined by k-means at every candidate k
(`countless._path.levels`), gives k for every penalty. If there is cluster structure, k is constant
over a wide interval of log(penalty), clusters are compact, and few rows lie between them. These
three statistics are standardised by a null reference, data of the same kind without clusters
(`countless._path.null_reference`), and combined to the evidence for k; one cluster has evidence 0.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from countless._data import Backend
from countless._data.open import open_table
from countless._labels import look_up, number_by_appearance
from countless._path.evidence import NO_STATISTICS, WEIGHTS, PlateauStatistics
from countless._path.farthest import farthest_first_penalty
from countless._path.levels import (
    Level,
    Points,
    Resolution,
    convex_gains,
    describe_levels,
    refine_levels,
    separation,
)
from countless._path.micro import MicroClusters, micro_clusters
from countless._path.null_reference import (
    CLOUDS,
    NullReference,
    clouds_like,
    null_reference,
)
from countless._path.path import Calibration, Path, Plateau
from countless._path.ward import WardTree, ward_tree
from countless._show import Records
from countless._threads import one_library_thread
from countless.divergences import Divergence, get_divergence


@dataclass(frozen=True)
class Candidates:
    """Which k are refined and scored; ``benchmarks/path_evidence.py`` shows what that is worth."""

    # All k up to this; the largest k of the null reference are left out, since their widths need
    # neighbouring k.
    all_up_to: int = CLOUDS.most_levels * 4 // 5
    # Above: the largest number of plateaus, their least width, and the neighbouring k on either
    # side that a width needs.
    most_above: int = 3
    least_width: float = 0.5
    neighbors: int = 2
    # Rows of the sample from which separation is computed.
    sampled_rows: int = 4096
    # Candidate k have at least this many rows and micro-clusters per cluster on average.
    rows_a_cluster: int = 10
    items_a_cluster: int = 3


CANDIDATES = Candidates()

__all__ = ["PenaltyPath", "Plateau", "farthest_first_penalty", "penalty_path"]


class Costs(NamedTuple):
    """The cost of k = 1, 2, ... clusters, and the gain of each further cluster."""

    cost: np.ndarray  # (m,)
    gain: np.ndarray  # (m - 1,), non-increasing: on the lower convex hull of refined costs

    def gain_of(self, last: int) -> np.ndarray:
        """Return the gain of a further cluster at k = 1, ..., last; 0 at k = m."""
        return np.append(self.gain, 0.0)[:last]


class Fitted(NamedTuple):
    """The result of a fit at a penalty of the path."""

    n_clusters: int
    penalty: float
    cost: float  # of all rows at their centers
    labels: Any


class ItemMerges(NamedTuple):
    """A path as its micro-clusters and the merges of them, from which any number follows.

    At a refined number of clusters the labels are those of k-means on the micro-clusters; at
    any other they are the parts that the merges leave.
    """

    items: Any  # (n_rows,) the micro-cluster of each row, numbered by first appearance
    children: np.ndarray  # (m - 1, 2) node m + i joins the nodes children[i]; node j < m is item j
    height: np.ndarray  # (m - 1,) the running maximum of the costs of merges
    refined: dict[int, np.ndarray]  # the labels of the micro-clusters by number of clusters
    centers: np.ndarray | None  # (m, n_features) the nearest one decides the item of a row


class PenaltyPath(Path):
    """Clusters, objective and labels at every penalty. Made by `penalty_path`.

    Attributes
    ----------
    breakpoints, plateaus, penalty, n_clusters, lead, confidence
        As in `Path`. The width of a plateau is ``log(high / low)``, the null width its mean in the
        null reference. Candidate numbers of clusters are at most a tenth of the number of rows. The
        penalty is on the scale of the whole objective: a refined fit compares it with the cost of a
        merge. It is much larger than the distance of a single row.
    statistics : PlateauStatistics
        The statistics behind the plateaus' scores: for k = 2, 3, ... the width, the mean width in
        the null reference, the standard scores of width, compactness and separation, and the
        evidence.
    """

    _calibration = Calibration(intercept=-1.12, slope=0.51)
    # The least width of a plateau that is a layer: clusters twice as far apart as their parts, on
    # the scale of squared distances.
    _least_layer = float(np.log(4.0))

    def __init__(
        self,
        labels: np.ndarray,
        tree: WardTree,
        costs: Costs,
        statistics: PlateauStatistics,
        levels: Mapping[int, Level],
        centers: np.ndarray | None = None,
    ):
        self._labels = labels
        self._centers = centers
        self._tree = tree
        self._cost = costs.cost[::-1]  # of the rows after 0, 1, ... merges
        self._height = costs.gain[::-1]
        self._ends = np.concatenate([[0.0], self._height, [np.inf]])
        self.statistics = statistics
        self._levels = levels
        self._costs = costs
        self._fitted: Fitted | None = None

    @cached_property
    def breakpoints(self) -> np.ndarray:
        return np.unique(self._height[self._height > 0])

    def n_clusters_at(self, penalty: float) -> int:
        """Return the number of clusters at a penalty."""
        return self._tree.n_items - self._merges_at(penalty)

    def objective_at(self, penalty: float) -> float:
        """Return the cost of all rows at their centers, plus the penalty for each cluster."""
        merges = self._merges_at(penalty)
        return float(self._cost[merges] + penalty * (self._tree.n_items - merges))

    def labels_at(self, penalty: float) -> np.ndarray:
        """Return the cluster of each row at a penalty, numbered by first appearance."""
        return self._labels_of(self.n_clusters_at(penalty))

    def _labels_of(self, n_clusters: int) -> Any:
        if self._fitted is not None and n_clusters == self._fitted.n_clusters:
            return self._fitted.labels
        level = self._levels.get(n_clusters)
        if level is None or len(level.weight) < n_clusters:
            labels = self._tree.cut(self._tree.n_items - n_clusters)
        else:
            # Items are numbered by first appearance, so the rows' clusters are, too.
            labels = number_by_appearance(level.labels)[1]
        return look_up(labels, self._labels)

    def stands_out(self, plateau: Plateau) -> bool:
        return super().stands_out(plateau) and plateau.width >= self._least_layer

    def penalty_for(self, n_clusters: int) -> float:
        """Return the midpoint, on a log scale, of the penalties that give this many clusters.

        For one cluster: twice the cost of the last merge, or less if no partition could gain that
        much.
        """
        low, high = self._interval(n_clusters)
        if n_clusters == 1:
            # If all rows are equal, any penalty gives one cluster.
            return min(2 * low, 1.001 * float(self._cost[-1])) or 1.0
        return float(np.sqrt(low) * np.sqrt(high)) if low > 0 else high / 2

    def clusters_at(self, n_clusters: int) -> tuple[float, Any]:
        """Return the penalty nearest to giving this many clusters, and the cluster of each row.

        A number that no penalty gives is a tie between two others at the penalty returned.
        """
        m = self._tree.n_items
        if not 1 <= n_clusters <= m:
            raise ValueError(f"n_clusters must be from 1 to {m}; got {n_clusters}")
        merges = m - n_clusters
        low, high = self._ends[merges], self._ends[merges + 1]
        penalty = float(low) if low == high else self.penalty_for(n_clusters)
        return penalty, self._labels_of(n_clusters)

    @cached_property
    def plateaus(self) -> list[Plateau]:
        width, null_width, _, evidence = self.statistics
        found = [
            Plateau(k, *self._interval(k), *map(float, one))
            for k, one in enumerate(zip(width, null_width, evidence, strict=True), start=2)
            # A better clustering of another number may have taken this one off the path.
            if one[0] > 0 and self.interval(k) is not None
        ]
        one = Plateau(1, *self._interval(1), np.inf, np.inf, 0.0)
        ranked = sorted([one, *found], key=lambda plateau: -plateau.score)
        if self._fitted is None:
            return Records(ranked)
        k = self._fitted.n_clusters
        chosen = next((plateau for plateau in ranked if plateau.n_clusters == k), None)
        if chosen is None:  # it was no candidate
            low, high = self._interval(k)
            chosen = Plateau(k, low, high, float(np.log(high / low)), np.nan, -np.inf)
        return Records([chosen, *(plateau for plateau in ranked if plateau is not chosen)])

    @property
    def penalty(self) -> float:
        if self._fitted is not None:
            return self._fitted.penalty
        return self.penalty_for(self.n_clusters)

    def merges(self) -> ItemMerges:
        """Return the micro-clusters and their merges."""
        refined = {
            k: number_by_appearance(level.labels)[1]
            for k, level in self._levels.items()
            if len(level.weight) == k
        }
        tree = self._tree
        return ItemMerges(self._labels, tree.children, tree.height, refined, self._centers)

    def interval(self, n_clusters: int) -> tuple[float, float] | None:
        """Return the lowest penalty that gives this number, and the lowest that gives fewer.

        None for a number that no penalty gives.
        """
        merges = self._tree.n_items - n_clusters
        if not 0 <= merges <= len(self._height) or self._ends[merges] == self._ends[merges + 1]:
            return None
        return float(self._ends[merges]), float(self._ends[merges + 1])

    def with_fit(self, fitted: Fitted) -> PenaltyPath:
        """Return the path with a better clustering added that a fit found at its penalty.

        It becomes the selected one, whatever its score, so that path and fit agree.
        """
        cost = self._costs.cost.copy()
        cost[fitted.n_clusters - 1] = min(cost[fitted.n_clusters - 1], fitted.cost)
        gain = np.maximum(convex_gains(cost[:-1] - cost[1:]), 0.0)
        path = PenaltyPath(
            self._labels,
            self._tree,
            Costs(cost, gain),
            self.statistics,
            self._levels,
            self._centers,
        )
        path._fitted = fitted
        return path

    def _merges_at(self, penalty: float) -> int:
        if not penalty >= 0:
            raise ValueError(f"penalty must be at least 0; got {penalty!r}")
        return int(np.searchsorted(self._height, penalty, side="right"))

    def _interval(self, n_clusters: int) -> tuple[float, float]:
        found = self.interval(n_clusters)
        if found is None:
            raise ValueError(
                f"n_clusters={n_clusters} is not on the path, which has 1 to {self._tree.n_items}"
            )
        return found


def penalty_path(
    X: Any,
    *,
    sample_weight: Any = None,
    divergence: str = "sqeuclidean",
    random_state: Any = None,
    n_jobs: int | None = None,
) -> PenaltyPath:
    """Compute the clusters at every penalty, and choose the plateau with most evidence.

    Parameters
    ----------
    X : array-like or CSR matrix of shape (n_samples, n_features)
        The rows.
    sample_weight : array-like of shape (n_samples,), optional
        Weights of the rows; an integer weight is equivalent to repeating the row.
    divergence : str, default='sqeuclidean'
        As in `DPMeans`.
    random_state : ignored
        The result is deterministic: the sample of a long table and the null reference are fixed.
    n_jobs : int, optional
        Threads; they do not change the result.

    Returns
    -------
    PenaltyPath

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from countless import penalty_path
    >>> X, _ = make_blobs(300, centers=4, cluster_std=0.5, random_state=3)
    >>> path = penalty_path(X, random_state=0)
    >>> path.n_clusters
    4
    >>> path.n_clusters_at(path.penalty / 100) > path.n_clusters_at(path.penalty)
    True
    """
    with open_table(X, sample_weight, get_divergence(divergence), n_jobs) as rows:
        return path_of(rows)


def path_of(rows: Backend) -> PenaltyPath:
    """Compute the path of an open table."""
    divergence = rows.fixed_point.divergence
    items = micro_clusters(rows, seed=CLOUDS.seed)
    center = items.origin + items.total.sum(axis=0) / items.weight.sum()

    def reference(n_rows: float, resolution: Resolution) -> NullReference:
        clouds = clouds_like(items.sample, items.sample_weight, center, divergence, n_rows)
        return null_reference(clouds, resolution)

    # Separation is computed from single rows: means of many rows lie farther from the borders.
    shown = Points(
        items.sample[: CANDIDATES.sampled_rows],
        items.sample_weight[: CANDIDATES.sampled_rows],
        divergence,
    )
    return path_of_items(items, divergence, reference, shown)


def path_of_items(
    items: MicroClusters,
    divergence: Divergence,
    reference: Callable[[float, Resolution], NullReference],
    shown: Points | None = None,
) -> PenaltyPath:
    """Compute the path of micro-clusters, standardised by a null reference.

    Separation is computed from the points ``shown``, by default the micro-clusters.
    """
    tree = ward_tree(items.weight, items.total, divergence)
    if tree.n_items == 1:
        costs = Costs(np.array([items.within]), np.empty(0))
        return PenaltyPath(items.labels, tree, costs, NO_STATISTICS, {}, items.centers)
    mean = items.total / items.weight[:, None]
    points = Points(mean, items.weight, divergence, items.within)
    n_rows = float(max(items.weight.sum(), tree.n_items))
    repeated = items.within == 0 and n_rows > tree.n_items
    step = _smallest_step(items, tree) if repeated else 0.0
    # Equal rows carry no information below the step between values; they are treated as spread
    # over half a step.
    resolution = Resolution(items.weight.max() / n_rows * step / 64, step / 48)
    # With few distinct rows, as many clusters as those always stand out, but also in the null
    # reference.
    few_values = repeated and tree.n_items <= CLOUDS.most_levels
    most = tree.n_items if few_values else tree.n_items // CANDIDATES.items_a_cluster
    last = int(min(max(n_rows // CANDIDATES.rows_a_cluster, 2), most))
    with one_library_thread():
        levels = _refine(points, tree, last)
        costs = _costs(points, tree, levels)
        if last < 2 or not costs.gain.any():
            return PenaltyPath(items.labels, tree, costs, NO_STATISTICS, levels, items.centers)
        apart = np.full(last - 1, np.nan)
        for k in range(2, last + 1):
            if k in levels:
                apart[k - 2] = separation(shown or points, levels[k])
        gain = costs.gain_of(last)
        figures = describe_levels(costs.cost[:last], gain, apart, n_rows, resolution)
        null = reference(n_rows, resolution)
    scores = null.standard_scores(figures)
    width = np.where(np.isnan(apart), 0.0, figures.width)
    statistics = PlateauStatistics(
        width, null.mean_widths(last - 1), scores, WEIGHTS.evidence(scores)
    )
    return PenaltyPath(items.labels, tree, costs, statistics, levels, items.centers)


def _refine(points: Points, tree: WardTree, last: int) -> dict[int, Level]:
    """Refine all small k by k-means, and the widest plateaus among the larger ones."""
    m = tree.n_items
    highest = min(CANDIDATES.all_up_to + 1, last + 1, m)
    levels = dict(enumerate(refine_levels(points, tree, highest), start=1))
    if last > highest:
        gain = _costs(points, tree, levels).gain_of(last)
        k = np.arange(2, last + 1)
        with np.errstate(divide="ignore", invalid="ignore"):
            width = np.log(gain[:-1] / gain[1:])
        notable = k[(k > highest) & (width > CANDIDATES.least_width)]
        for widest in sorted(notable, key=lambda k: -width[k - 2])[: CANDIDATES.most_above]:
            window = (min(widest + CANDIDATES.neighbors, m), widest - CANDIDATES.neighbors)
            levels |= dict(enumerate(refine_levels(points, tree, *window), start=window[1]))
    return levels


def _costs(points: Points, tree: WardTree, levels: Mapping[int, Level]) -> Costs:
    """Return the costs of refined levels, and those of the dendrogram for other k.

    To make gains next to a refined level comparable, the ratio of refined cost to the dendrogram's
    is interpolated over k.
    """
    excess = np.append(np.cumsum(tree.cost)[::-1], 0.0)  # without the cost within items
    refined = np.array(sorted(k for k in levels if excess[k - 1] > 0))
    ratio = [(levels[k].cost - points.within) / excess[k - 1] for k in refined]
    share = np.interp(np.arange(1, tree.n_items + 1), refined, np.minimum(ratio, 1.0))
    # Not by differences of cumulated costs, in which small merge costs would cancel.
    gain = convex_gains(tree.cost[::-1] * share[:-1] + excess[1:] * (share[:-1] - share[1:]))
    cost = points.within + excess
    for k in refined:
        cost[k - 1] = min(cost[k - 1], levels[k].cost)
    return Costs(cost, np.maximum(gain, 0.0))


def _smallest_step(items: MicroClusters, tree: WardTree) -> float:
    """Return the squared distance of the closest pair of items that a merge joins directly."""
    direct = (tree.children < tree.n_items).all(axis=1)
    a, b = items.weight[tree.children[direct]].T
    return float((tree.cost[direct] * (a + b) / (a * b)).min())
