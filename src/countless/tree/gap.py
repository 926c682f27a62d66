"""Where to cut a tree: at its widest gap, compared with the trees of structureless data.

A tree has k clusters over an interval of heights, from the merge that leaves k to the next. Where
there are clusters that interval is wide. Structureless data has gaps, too: at few clusters, in low
dimensions, and of other widths under every linkage. So clouds with the data's spread and no
structure are grown into trees in the same way, and a gap counts as far as it is wider than they
show at that k (`countless.hard.structureless`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cached_property
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
from scipy.cluster import hierarchy
from scipy.spatial.distance import squareform
from sklearn.utils import check_array, check_random_state

from countless.hard.checks import check_finite
from countless.hard.levels import Figures
from countless.hard.penalty import Costs, Judged, PenaltyPath, Plateau
from countless.hard.structureless import (
    Axes,
    compactness_curve,
    draw_clouds,
    null_widths,
    plateau_widths,
    typical,
)
from countless.hard.ward import WardTree
from countless.tree.pairs import Pairs

Grow = Callable[[Pairs], np.ndarray]  # a linkage matrix

# Numbers of dimensions that a tree by itself is compared with, and clouds of each shape for that.
DIMENSIONS = (1, 2, 3, 4, 6, 9, 14, 22, 35)
N_TRIALS = 8
# Clusters of so many rows on average show in how many dimensions the rows of a cluster lie.
SMALL, LARGE = 2, 8
# A single row far out makes single linkage look compact, more often than a normal law would say.
LONG_TAILS = 2.0
# Scores within a fifth of the best are as good, and the fewest clusters win.
EQUAL = 0.8


class TreeCut(PenaltyPath):
    """Clusters and labels at every height of a tree, and the height that stands out.

    Made by `cut_gap`. What `PenaltyPath` says of penalties holds here for heights.

    Attributes
    ----------
    height : float
        Where to cut: the middle, on a log scale, of the chosen gap.
    labels : ndarray of int
        The cluster of each row there, numbered by first appearance.
    n_clusters, confidence, plateaus, breakpoints
        As in `PenaltyPath`.
    """

    def __init__(self, linkage: np.ndarray, widths: np.ndarray, null: np.ndarray):
        tree = tree_of(linkage)
        cost = np.append(np.cumsum(tree.cost)[::-1], 0.0)
        unknown = np.full(len(widths), np.nan)
        judged = Judged(widths, null, Figures(unknown, unknown, unknown), widths - null)
        super().__init__(np.arange(tree.n_items), tree, Costs(cost, tree.height[::-1]), judged, {})

    @cached_property
    def plateaus(self) -> list[Plateau]:
        ranked = super().plateaus
        best = [one for one in ranked if one.score >= EQUAL * ranked[0].score]
        chosen = min(best, key=lambda plateau: plateau.n_clusters)
        return [chosen, *(one for one in ranked if one is not chosen)]

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
    """Cut a tree at its widest gap, compared with structureless data.

    Parameters
    ----------
    linkage : array-like of shape (n_samples - 1, 4)
        A tree as SciPy, fastcluster and scikit-learn's examples write it.
    X : array-like of shape (n_samples, n_features), optional
        The rows, so that the structureless data has their spread; with ``metric='precomputed'``
        their dissimilarities. Without rows it has as many equal directions as the lower parts of
        the tree show, which is less sharp where clusters are long.
    method : str, default='average'
        The method of `scipy.cluster.hierarchy.linkage` that made the tree.
    metric : str, default='euclidean'
        What it was made of: a name that `countless.dissimilarity.dissimilarities` knows, or
        'precomputed'.
    random_state : int, RandomState instance or None
        Draws the structureless data.

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
    seed = int(check_random_state(random_state).randint(2**31 - 1))

    def grow(pairs: Pairs) -> np.ndarray:
        return grow_linkage(pairs, method)

    if X is None:
        return judged(linkage, grow, lambda: _clouds_by_tree(linkage, grow, seed), method)
    X = check_array(X, dtype=[np.float64, np.float32], ensure_all_finite=False)
    check_finite(X)
    if len(X) != n_rows:
        raise ValueError(f"the tree has {n_rows} rows, and X has {len(X)}")
    known = metric == "precomputed"
    pairs = Pairs.of_matrix(X) if known else Pairs.of_rows(X, metric)
    return judged(linkage, grow, lambda: pairs.clouds(seed), method)


def grow_linkage(pairs: Pairs, method: str, engine: str = "scipy") -> np.ndarray:
    """Return the linkage of dissimilarities, by SciPy or by fastcluster, which gives the same."""
    library: Any = hierarchy
    if engine == "fastcluster":
        if find_spec("fastcluster") is None:
            raise ImportError("engine='fastcluster' needs it: pip install 'countless[fastcluster]'")
        library = import_module("fastcluster")
    return library.linkage(squareform(pairs.matrix, checks=False), method)


def tree_of(linkage: np.ndarray) -> WardTree:
    """Return a linkage matrix as merges that can be cut."""
    return WardTree(linkage[:, :2].astype(np.int64), linkage[:, 2])


def judged(
    linkage: np.ndarray, grow: Grow, clouds: Callable[[], Iterable[list[Pairs]]], method: str
) -> TreeCut:
    """Compare the gaps of a tree with those of clouds that were grown alike.

    Parameters
    ----------
    linkage : ndarray of shape (n_rows - 1, 4)
        The tree.
    grow : callable
        Grows the tree of a cloud.
    clouds : callable
        Gives clouds of either shape.
    method : str
        What heights mean: the linkage of SciPy that they are those of.
    """
    n_rows = len(linkage) + 1
    height, cost = _from_the_top(linkage, method)
    positive = height[height > 0]
    last = n_rows // 2
    if last < 2 or not len(positive):
        return TreeCut(linkage, np.empty(0), np.empty(0))
    # Equal rows are taken as spread over half the step to the next, as `hard.penalty` does.
    step = positive[-1] if len(positive) < len(height) else 0.0
    figures = [
        [_figures(*_from_the_top(grow(cloud), method)) for cloud in kind] for kind in clouds()
    ]
    null = typical(figures)
    if method == "single":
        null = null._replace(compactness_deviation=LONG_TAILS * null.compactness_deviation)
    widths = plateau_widths(np.maximum(height[:last], step / 8))
    compactness = compactness_curve(cost[:last] + n_rows * step**2 / 48, n_rows)
    return TreeCut(linkage, widths, null_widths(null, compactness, n_rows))


def _from_the_top(linkage: np.ndarray, method: str) -> tuple[np.ndarray, np.ndarray]:
    """Return heights, and what all merges up to each cost, the highest first.

    A merge that is below an earlier one waits for it. The highest is 1, since only ratios count and
    squares of very large or small heights are no numbers. Where heights are dissimilarities of
    clusters, joining them costs the square times ``n_a n_b / (n_a + n_b)``, as in Ward's trees.
    """
    height = np.maximum.accumulate(linkage[:, 2])
    height = height / (height.max(initial=0.0) or 1.0)
    cost = height**2 / 2
    if method != "ward":
        size = np.append(np.ones(len(linkage) + 1), linkage[:, 3])
        first, second = size[linkage[:, :2].astype(np.int64)].T
        cost = first * second / (first + second) * height**2
    return height[::-1], np.cumsum(cost)[::-1]


def _figures(height: np.ndarray, cost: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the gaps and the compactness of a cloud up to a third of its points."""
    n_points = len(height) + 1
    last = max(2, n_points // 3)
    return plateau_widths(height[:last]), compactness_curve(cost[:last], n_points)


def _clouds_by_tree(linkage: np.ndarray, grow: Grow, seed: int) -> Iterable[list[Pairs]]:
    """Give clouds of as many dimensions as small clusters of the tree seem to have."""
    n_rows = len(linkage) + 1
    wanted = _fall(linkage)

    def clouds(d: int, n_clouds: int | None = None) -> Iterable[list[Pairs]]:
        for kind in draw_clouds(Axes(np.ones(d), np.zeros(d)), n_rows, seed):
            yield [Pairs.of_rows(cloud, "euclidean") for cloud in kind[:n_clouds]]

    falls = [
        np.mean([_fall(grow(cloud)) for kind in clouds(d, N_TRIALS) for cloud in kind])
        for d in DIMENSIONS
    ]
    return clouds(DIMENSIONS[int(np.argmin(np.abs(np.array(falls) - wanted)))])


def _fall(linkage: np.ndarray) -> float:
    """Return how far heights fall, in logs, from small to smaller clusters."""
    height = np.maximum.accumulate(linkage[:, 2])[::-1]
    n_rows = len(height) + 1
    few, many = (height[max(0, min(n_rows // size, n_rows - 1) - 1)] for size in (LARGE, SMALL))
    return float(np.log(few / many)) if many > 0 else np.inf
