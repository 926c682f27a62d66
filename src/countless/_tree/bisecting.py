"""Bisecting k-means: the cluster with the largest sum of squares is repeatedly split in two.

scikit-learn's k-means makes the splits. The height of a cluster is its inertia, the sum of the
squared distances of its rows from their mean, so that a cut of the tree into k clusters is where
bisecting stops at k. M. Steinbach, G. Karypis and V. Kumar, A comparison of document clustering
techniques (2000).
"""

from __future__ import annotations

from heapq import heappop, heappush

import numpy as np
from sklearn.cluster import KMeans

from countless._tree.splits import Splits


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
