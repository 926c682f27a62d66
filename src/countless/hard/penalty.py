"""Choosing the penalty: k for every penalty at once, and the plateau that stands out.

DP-means joins two clusters when that costs less than the penalty, and the cost is Ward's. So the
tree of cheapest merges over micro-clusters says which k every penalty gives. Where there is
structure, k stays the same over a wide interval of log(penalty); how wide is judged by what data
without structure shows (`countless.hard.structureless`).
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import check_random_state

from countless._labels import look_up
from countless.hard.checks import open_table
from countless.hard.divergence import Divergence, get_divergence
from countless.hard.farthest import farthest_first_penalty
from countless.hard.micro import MicroClusters, micro_clusters
from countless.hard.structureless import (
    compactness_curve,
    null_widths,
    plateau_widths,
    principal_axes,
    simulate,
)
from countless.hard.ward import WardTree, ward_tree
from countless.rows import Rows

# Scores within a fifth of the best are as good, and the fewest clusters win.
EQUAL = 0.8

__all__ = ["PenaltyPath", "Plateau", "farthest_first_penalty", "penalty_path"]


class Plateau(NamedTuple):
    """An interval of penalties that all give the same number of clusters."""

    n_clusters: int
    low: float
    high: float
    width: float  # log(high / low)
    null_width: float  # what the width must exceed to be more than chance; may be infinite
    score: float  # width - null_width


class PenaltyPath:
    """Clusters, objective and labels at every penalty. Made by `penalty_path`.

    Attributes
    ----------
    breakpoints : ndarray
        Penalties at which the number of clusters changes, ascending.
    plateaus : list of Plateau
        The chosen one, then the others by score. They are judged up to k of half the items of the
        tree. One cluster has no upper end, so its score is what the best of the others lacks: it is
        chosen when no other score is above 0. Of scores within a fifth of the best the fewest
        clusters are chosen.
    penalty, n_clusters : float, int
        Those of the chosen plateau. The penalty belongs to the whole objective: it is what a
        refined fit weighs against the cost of a merge, and far above the distance of a single row.
    confidence : float
        From 0 (a tie) to 1 (no rival). For two clusters or more it is one minus the strongest
        rival's strength: the next plateau's score over the chosen one's, or the width that chance
        explains over the width found. For one cluster, one minus how far the nearest rival came:
        its width over the width it needed. Too few rows to judge give 0.
    """

    def __init__(
        self,
        labels: np.ndarray,
        tree: WardTree,
        within: float,
        widths: np.ndarray,
        null: np.ndarray,
    ):
        self._labels = labels
        self._tree = tree
        self._height = tree.height
        self._ends = np.concatenate([[0.0], self._height, [np.inf]])
        self._cost = within + np.concatenate([[0.0], np.cumsum(tree.cost)])
        self._widths = widths
        self._null = null

    def __repr__(self) -> str:
        return (
            f"PenaltyPath(n_clusters={self.n_clusters}, penalty={self.penalty:.6g}, "
            f"confidence={self.confidence:.2f})"
        )

    @cached_property
    def breakpoints(self) -> np.ndarray:
        return np.unique(self._height[self._height > 0])

    def n_clusters_at(self, penalty: float) -> int:
        """Return how many clusters a penalty gives."""
        return self._tree.n_items - self._merges_at(penalty)

    def objective_at(self, penalty: float) -> float:
        """Return the cost of all rows at their centers, plus the penalty for each cluster."""
        merges = self._merges_at(penalty)
        return float(self._cost[merges] + penalty * (self._tree.n_items - merges))

    def labels_at(self, penalty: float) -> np.ndarray:
        """Return the cluster of each row at a penalty, numbered by first appearance."""
        # Items are numbered by first appearance, so clusters of items are, too.
        return look_up(self._tree.cut(self._merges_at(penalty)), self._labels)

    def penalty_for(self, n_clusters: int) -> float:
        """Return the penalty in the middle, on a log scale, of those that give this many clusters.

        For one cluster: twice the cost of the last merge, or less where no cut at all could save
        that much.
        """
        low, high = self._interval(n_clusters)
        if n_clusters == 1:
            # Any penalty will do for rows that are all equal.
            return min(2 * low, 1.001 * float(self._cost[-1])) or 1.0
        return float(np.sqrt(low) * np.sqrt(high)) if low > 0 else high / 2

    @cached_property
    def plateaus(self) -> list[Plateau]:
        found = [
            Plateau(k, *self._interval(k), float(width), float(null), float(width - null))
            for k, (width, null) in enumerate(zip(self._widths, self._null, strict=True), start=2)
            if width > 0
        ]
        lacking = -max((plateau.score for plateau in found), default=-np.inf)
        one = Plateau(1, *self._interval(1), np.inf, np.inf, lacking)
        ranked = sorted([one, *found], key=lambda plateau: -plateau.score)
        equals = [plateau for plateau in ranked if plateau.score >= EQUAL * ranked[0].score]
        best = min(equals, key=lambda plateau: plateau.n_clusters)
        ranked.remove(best)
        return [best, *ranked]

    @property
    def n_clusters(self) -> int:
        return self.plateaus[0].n_clusters

    @property
    def penalty(self) -> float:
        return self.penalty_for(self.n_clusters)

    @property
    def confidence(self) -> float:
        best, *others = self.plateaus
        if not others:
            return 0.0 if len(self.breakpoints) else 1.0
        if best.n_clusters == 1:
            return 1.0 - max(other.width / other.null_width for other in others)
        chance = best.null_width / best.width
        rival = max(other.score for other in others) / best.score
        return max(0.0, 1.0 - max(chance, rival))

    def _merges_at(self, penalty: float) -> int:
        if not penalty >= 0:
            raise ValueError(f"penalty must be at least 0; got {penalty!r}")
        return int(np.searchsorted(self._height, penalty, side="right"))

    def _interval(self, n_clusters: int) -> tuple[float, float]:
        """Return the lowest penalty that gives so many clusters, and the first that gives fewer."""
        merges = self._tree.n_items - n_clusters
        ends = self._ends
        if not 0 <= merges <= len(self._height) or ends[merges] == ends[merges + 1]:
            raise ValueError(
                f"n_clusters={n_clusters} is not on the path, which has 1 to {self._tree.n_items}"
            )
        return float(ends[merges]), float(ends[merges + 1])


def penalty_path(
    X: Any,
    *,
    sample_weight: Any = None,
    divergence: str = "sqeuclidean",
    random_state: Any = None,
    n_jobs: int | None = None,
) -> PenaltyPath:
    """Find what every penalty gives, and the plateau that stands out.

    Parameters
    ----------
    X : array-like or CSR matrix of shape (n_samples, n_features)
        The rows.
    sample_weight : array-like of shape (n_samples,), optional
        Weights of the rows; a whole number stands for so many equal rows.
    divergence : str, default='sqeuclidean'
        As in `DPMeans`.
    random_state : int, RandomState instance or None
        Chooses the sample of a long table and the simulated clouds.
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
    seed = int(check_random_state(random_state).randint(2**31 - 1))
    with open_table(X, sample_weight, get_divergence(divergence), n_jobs) as rows:
        return path_of(rows, seed)


def path_of(rows: Rows, seed: int) -> PenaltyPath:
    """Find what every penalty gives for rows that are open."""
    measure = rows.frame.divergence
    items = micro_clusters(rows, seed=seed)
    tree = ward_tree(items.weight, items.total, measure)
    widths, null = _judge(items, tree, measure, seed)
    return PenaltyPath(items.labels, tree, items.within, widths, null)


def _judge(
    items: MicroClusters, tree: WardTree, measure: Divergence, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the widths at k = 2, 3, ... and what each must exceed."""
    m = tree.n_items
    n_rows = max(items.weight.sum(), m)
    repeated = items.within == 0 and n_rows > m
    last = int(min(n_rows // 2, m if repeated else m // 2))
    if last < 2:
        return np.empty(0), np.empty(0)
    step = _smallest_step(items, tree) if repeated else 0.0
    # Rows that are equal say nothing below the step between values; half a step is their spread.
    floor = max(items.weight.max() * step / 64, np.finfo(float).tiny)
    height = np.maximum(np.append(tree.height[::-1], 0.0), floor)
    cost = items.within + n_rows * step / 48 + np.append(np.cumsum(tree.cost)[::-1], 0.0)
    widths = plateau_widths(height[:last])
    compactness = compactness_curve(cost[:last], n_rows)
    center = items.origin + items.total.sum(axis=0) / items.weight.sum()
    axes = principal_axes(items.sample, items.sample_weight, center, measure)
    return widths, null_widths(simulate(axes, n_rows, seed), compactness, n_rows)


def _smallest_step(items: MicroClusters, tree: WardTree) -> float:
    """Return the squared distance of the closest items among those joined directly."""
    direct = (tree.children < tree.n_items).all(axis=1)
    a, b = items.weight[tree.children[direct]].T
    return float((tree.cost[direct] * (a + b) / (a * b)).min())
