"""Cuts of a tree by criteria of the user: the number of clusters, or their diameter."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from countless._labels import number_by_appearance
from countless._tree.dendrogram import merge_order
from countless._tree.gap import tree_of
from countless._tree.splits import nodes_of
from countless.kernels.tree import measure_nodes, raise_nodes


def cut_at_number(linkage: np.ndarray, n_clusters: int) -> np.ndarray:
    """Return labels after the highest merges were undone.

    Examples
    --------
    >>> import numpy as np
    >>> cut_at_number(np.array([[0, 1, 1.0, 2], [2, 3, 5.0, 3]]), 2).tolist()
    [0, 0, 1]
    """
    return tree_of(linkage).cut(len(linkage) + 1 - n_clusters)


def cut_from_the_top(linkage: np.ndarray, is_cluster: np.ndarray) -> np.ndarray:
    """Return labels of the highest merges that are marked as clusters, and of single rows.

    Examples
    --------
    >>> import numpy as np
    >>> linkage = np.array([[0, 1, 1.0, 2], [2, 3, 5.0, 3]])
    >>> cut_from_the_top(linkage, np.array([True, False])).tolist()
    [0, 0, 1]
    """
    n = len(linkage) + 1
    child = linkage[:, :2].astype(np.int64)
    cluster = np.arange(2 * n - 1)
    for merge in range(n - 2, -1, -1):  # parents first
        if is_cluster[merge] or cluster[n + merge] != n + merge:
            cluster[child[merge]] = cluster[n + merge]
    return number_by_appearance(cluster[:n])[1]


class Spread(NamedTuple):
    """Figures of each merged cluster: diameter, mean dissimilarity, and height on Ward's scale."""

    diameter: np.ndarray  # (n_rows - 1,)
    mean: np.ndarray
    height: np.ndarray  # square root of twice the decrease of cost by undoing the merge


def spread_of_merges(linkage: np.ndarray, distance: np.ndarray) -> Spread:
    """Compute figures of the cluster of each merge.

    The cost of a cluster is the sum of its squared dissimilarities, each pair once, over its size:
    for Euclidean rows the sum of squares about the mean. A split decreases the cost by the
    difference between the cluster and its two parts.

    Examples
    --------
    >>> import numpy as np
    >>> points = np.array([0.0, 2.0, 7.0])
    >>> linkage = np.array([[0, 1, 2.0, 2], [2, 3, 7.0, 3]])
    >>> spread = spread_of_merges(linkage, np.abs(points[:, None] - points))
    >>> spread.diameter.tolist(), spread.mean.round(2).tolist(), spread.height.round(2).tolist()
    ([2.0, 7.0], [2.0, 4.67], [2.0, 6.93])
    """
    nodes = nodes_of(linkage)
    n, size = len(nodes.order), nodes.size
    widest, total, squares = np.zeros((3, 2 * n - 1))
    unit = float(distance.max()) or 1.0  # avoids overflow and underflow of squares
    measure_nodes(distance, *nodes, unit, widest, total, squares)
    cost = squares / size
    saving = cost[n:] - cost[nodes.child].sum(axis=1)
    n_pairs = size[n:] * (size[n:] - 1) / 2
    height = unit * np.sqrt(2 * np.maximum(saving, 0.0))
    return Spread(widest[n:], total[n:] / n_pairs, height)


def by_saving(linkage: np.ndarray, distance: np.ndarray) -> np.ndarray:
    """Return the same tree with heights on Ward's scale, from the decrease of cost by splits.

    Heights are made monotone: a split is at least as high as those below it.

    Examples
    --------
    >>> import numpy as np
    >>> points = np.array([0.0, 2.0, 7.0])
    >>> linkage = np.array([[0, 1, 2.0, 2], [2, 3, 7.0, 3]])
    >>> by_saving(linkage, np.abs(points[:, None] - points))[:, 2].round(2).tolist()
    [2.0, 6.93]
    """
    n = len(linkage) + 1
    height = np.append(np.zeros(n), spread_of_merges(linkage, distance).height)
    child = linkage[:, :2].astype(np.int64)
    raise_nodes(child, height)
    order, children = merge_order(child, height[n:])
    return np.column_stack([children, height[n:][order], linkage[order, 3]])
