"""The minimum spanning tree, whose longest edges are cut.

The components are those of single linkage. Prim's algorithm needs the dissimilarities of one row at
a time, so memory is linear in the number of rows.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np


def spanning_tree(row: Callable[[int], np.ndarray], n_rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the edges of a minimum spanning tree, and their lengths.

    Parameters
    ----------
    row : callable
        Returns the dissimilarities of one row from all.
    n_rows : int
        The number of rows.

    Examples
    --------
    >>> import numpy as np
    >>> points = np.array([0.0, 9.0, 1.0])
    >>> edges, length = spanning_tree(lambda i: np.abs(points - points[i]), 3)
    >>> edges.tolist(), length.tolist()
    ([[0, 2], [2, 1]], [1.0, 8.0])
    """
    nearest = np.full(n_rows, np.inf)  # distance of each row outside the tree from the tree
    link = np.zeros(n_rows, dtype=np.int64)  # the row of the tree at this distance
    outside = np.ones(n_rows, dtype=bool)
    edges = np.empty((n_rows - 1, 2), dtype=np.int64)
    length = np.empty(n_rows - 1)
    at = 0
    for step in range(n_rows - 1):
        outside[at] = False
        nearest[at] = np.inf
        distance = row(at)
        nearer = outside & (distance < nearest)
        link[nearer] = at
        nearest[nearer] = distance[nearer]
        at = int(nearest.argmin())
        edges[step], length[step] = (link[at], at), nearest[at]
    return edges, length


def linkage_of_edges(edges: np.ndarray, length: np.ndarray) -> np.ndarray:
    """Return a linkage matrix of SciPy of the edges, joined in ascending order of length.

    Examples
    --------
    >>> import numpy as np
    >>> linkage_of_edges(np.array([[0, 2], [2, 1]]), np.array([1.0, 8.0]))
    array([[0., 2., 1., 2.],
           [1., 3., 8., 3.]])
    """
    n = len(length) + 1
    parent, size = np.arange(2 * n - 1), np.ones(2 * n - 1)
    linkage = np.empty((n - 1, 4))
    for merge, edge in enumerate(np.argsort(length, kind="stable")):
        pieces = sorted(_root(parent, int(row)) for row in edges[edge])
        parent[pieces] = n + merge
        size[n + merge] = size[pieces].sum()
        linkage[merge] = *pieces, length[edge], size[n + merge]
    return linkage


def _root(parent: np.ndarray, node: int) -> int:
    while parent[node] != node:
        parent[node] = parent[parent[node]]  # path compression
        node = parent[node]
    return int(node)
