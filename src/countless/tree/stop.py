"""Where a tree is cut when the user says it: at a number of clusters, or at how wide they are."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from countless._labels import number_by_appearance
from countless.kernels.tree import measure_nodes, raise_nodes
from countless.tree.dendrogram import merge_order
from countless.tree.gap import tree_of
from countless.tree.splits import nodes_of


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
    """Return labels of the highest merges that are said to be clusters, and of rows in none.

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
    for merge in range(n - 2, -1, -1):  # parents first: what they are in is known
        if is_cluster[merge] or cluster[n + merge] != n + merge:
            cluster[child[merge]] = cluster[n + merge]
    return number_by_appearance(cluster[:n])[1]


class Spread(NamedTuple):
    """What each merge made: diameter, average dissimilarity, and height on Ward's scale."""

    diameter: np.ndarray  # (n_rows - 1,)
    mean: np.ndarray
    height: np.ndarray  # the root of twice what undoing the merge saves


def spread_of_merges(linkage: np.ndarray, distance: np.ndarray) -> Spread:
    """Measure what each merge made.

    A cluster costs the sum of its squared dissimilarities, each pair once, over its size: for
    Euclidean rows the sum of squares about the mean. Two parts cost less than the whole by what
    their split saves.

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
    unit = float(distance.max()) or 1.0  # squares of very large or small numbers are none
    measure_nodes(distance, *nodes, unit, widest, total, squares)
    cost = squares / size
    saving = cost[n:] - cost[nodes.child].sum(axis=1)
    n_pairs = size[n:] * (size[n:] - 1) / 2
    height = unit * np.sqrt(2 * np.maximum(saving, 0.0))
    return Spread(widest[n:], total[n:] / n_pairs, height)


def by_saving(linkage: np.ndarray, distance: np.ndarray) -> np.ndarray:
    """Return the same tree with heights that say what splits save, as Ward's trees do.

    A split that leads to a better one is as high as that.

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
