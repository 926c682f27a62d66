"""Divisive trees: DIANA, the minimum spanning tree, and bisecting k-means.

DIANA (divisive analysis) grows a tree from the top. The row with the largest average dissimilarity
from the others of its cluster starts a splinter group. Then the row moves for which the average
dissimilarity from the remaining rows exceeds most that from the splinter group, until there is no
such row. Both parts are split in the same way. The height of a cluster is its diameter, the largest
dissimilarity within.

Every row's sums over its group change by one term when a row moves, and the sums at the end of a
split are the initial ones of the next. So a split that moves s of m rows costs O(s m), and a level
of the tree at most O(n^2). Ties are broken as in R's ``cluster::diana``: the first row is taken.

P. Macnaughton-Smith et al., Dissimilarity analysis, Nature 202 (1964); L. Kaufman and P. J.
Rousseeuw, Finding Groups in Data (1990), chapter 6.

The longest edges of a minimum spanning tree are cut: the components are those of single linkage.
Prim's algorithm needs the dissimilarities of one row at a time, so memory is linear in the rows.

Bisecting k-means splits the cluster with the largest sum of squares in two, by scikit-learn's
k-means. The height of a cluster is its inertia, the sum of the squared distances of its rows from
their mean, so that a cut of the tree into k clusters is where bisecting stops at k. M. Steinbach,
G. Karypis and V. Kumar, A comparison of document clustering techniques (2000).
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush

import numpy as np
from sklearn.cluster import KMeans

from countless._tree.splits import Splits
from countless.kernels.diana import split_all


def diana(distance: np.ndarray) -> Splits:
    """Split rows until each is a singleton.

    Parameters
    ----------
    distance : ndarray of shape (n, n)
        Symmetric, 0 on the diagonal, at least 0.

    Returns
    -------
    Splits
        In the order of rows that R's ``diana`` gives.

    Examples
    --------
    >>> import numpy as np
    >>> points = np.array([0.0, 1.0, 9.0])
    >>> splits = diana(np.abs(points[:, None] - points))
    >>> splits.order.tolist(), splits.middle.tolist(), splits.height.tolist()
    ([0, 1, 2], [2, 1], [9.0, 1.0])
    """
    n = len(distance)
    order = np.empty(n, dtype=np.int64)
    start, middle, stop = (np.empty(n - 1, dtype=np.int64) for _ in range(3))
    height = np.empty(n - 1)
    split_all(distance, order, start, middle, stop, height)
    return Splits(order, start, middle, stop, height)


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


def bisecting_tree(X: np.ndarray, n_leaves: int, seed: int) -> tuple[Splits, bool]:
    """Split rows into ``n_leaves`` clusters; the rows of each leaf are joined at its height.

    Returns the splits, and whether every k-means converged.

    Examples
    --------
    >>> import numpy as np
    >>> splits, converged = bisecting_tree(np.array([[0.0], [1.0], [9.0]]), 3, seed=0)
    >>> splits.height.round(2).tolist(), converged
    ([48.67, 0.5], True)
    """
    rows = [np.arange(len(X))]
    height = [_inertia(X)]
    parts: dict[int, tuple[int, int]] = {}
    largest = [(-height[0], 0)] if height[0] > 0 else []
    converged = True
    while largest and len(parts) < n_leaves - 1:
        _, node = heappop(largest)
        model = KMeans(2, n_init=1, random_state=seed).fit(X[rows[node]])
        converged &= model.n_iter_ < model.max_iter
        if not model.labels_.any():  # all squared distances are 0
            continue
        parts[node] = len(rows), len(rows) + 1
        for label in (0, 1):
            part = rows[node][model.labels_ == label]
            rows.append(part)
            height.append(min(_inertia(X[part]), height[node]))  # monotone despite rounding
            if height[-1] > 0:
                heappush(largest, (-height[-1], len(rows) - 1))
    return _lay_out(rows, height, parts), converged


def _inertia(X: np.ndarray) -> float:
    """Return the sum of squares about the mean; exactly 0 for equal rows."""
    if (X[0] == X).all():
        return 0.0
    with np.errstate(over="ignore", invalid="ignore"):
        inertia = float(np.square(X - X.mean(axis=0, dtype=np.float64)).sum())
    if not np.isfinite(inertia):
        raise ValueError("rows are too far apart for their squares: scale X down")
    return inertia


def _lay_out(
    rows: list[np.ndarray], height: list[float], parts: dict[int, tuple[int, int]]
) -> Splits:
    """Order the rows so that every cluster is contiguous, from the root down."""
    order: list[int] = []
    splits: list[tuple[int, int, int, float]] = []
    waiting = [0]
    while waiting:
        node = waiting.pop()
        at, size = len(order), len(rows[node])
        if node in parts:
            first, second = parts[node]
            splits.append((at, at + len(rows[first]), at + size, height[node]))
            waiting += [second, first]
        else:
            splits += [(at + i, at + i + 1, at + size, height[node]) for i in range(size - 1)]
            order += rows[node].tolist()
    places = np.array(splits).reshape(-1, 4)
    start, middle, stop = places[:, :3].T.astype(np.int64)
    return Splits(np.array(order, dtype=np.int64), start, middle, stop, places[:, 3])
