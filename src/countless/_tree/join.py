"""Assignment of rows, new or in small clusters, to the nearest cluster of a tree.

For new rows "nearest" depends on the method of the tree. Single linkage and spanning trees use the
nearest row of a cluster, complete linkage the farthest, Ward's method and bisecting k-means the
mean of its rows, and the others the average dissimilarity from its rows.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from sklearn.metrics import pairwise_distances_argmin

from countless._labels import number_by_appearance
from countless._threads import steps

OF_MEANS = ("ward", "bisecting")
OF_NEAREST = ("single", "mst")
_OF_ROWS = {**dict.fromkeys(OF_NEAREST, np.minimum), "complete": np.maximum}
# Maximum number of dissimilarities in memory at once.
BLOCK_VALUES = 2**22


def join_by_rows(
    between: Callable[[int, int], np.ndarray], n_new: int, labels: np.ndarray, method: str
) -> np.ndarray:
    """Return the cluster of each new row, by its dissimilarities from the rows of the tree.

    Parameters
    ----------
    between : callable
        Returns those of the new rows in a range, (n_rows, n_labels).
    n_new : int
        The number of new rows.
    labels : ndarray of int
        The cluster of each row of the tree, from 0 up.
    method : str
        The method of the tree.

    Examples
    --------
    >>> import numpy as np
    >>> rows, new, labels = np.array([0.0, 5.0, 8.0]), np.array([[6.0]]), np.array([0, 0, 1])
    >>> join_by_rows(lambda start, stop: np.abs(new - rows), 1, labels, "single")
    array([0])
    >>> join_by_rows(lambda start, stop: np.abs(new - rows), 1, labels, "average")
    array([1])
    """
    order = np.argsort(labels, kind="stable")
    size = np.bincount(labels)
    first = np.cumsum(size) - size
    gather = _OF_ROWS.get(method, np.add)
    joined = np.empty(n_new, dtype=labels.dtype)
    for start, stop in steps(n_new, max(1, BLOCK_VALUES // len(labels))):
        nearness = gather.reduceat(between(start, stop)[:, order], first, axis=1)
        joined[start:stop] = (nearness / size if gather is np.add else nearness).argmin(axis=1)
    return joined


def join_by_means(rows: np.ndarray, labels: np.ndarray, new: np.ndarray) -> np.ndarray:
    """Return the cluster with the nearest mean for each new row.

    Examples
    --------
    >>> import numpy as np
    >>> join_by_means(np.array([[0.0], [5.0], [9.0]]), np.array([0, 0, 1]), np.array([[6.0]]))
    array([1])
    """
    means = np.zeros((int(labels.max()) + 1, rows.shape[1]))
    np.add.at(means, labels, rows)
    means /= np.bincount(labels)[:, None]
    return pairwise_distances_argmin(new, means.astype(new.dtype)).astype(labels.dtype)


def join_small(row: Callable[[int], np.ndarray], labels: np.ndarray, least: int) -> np.ndarray:
    """Reassign the rows of small clusters to the cluster of the nearest row of the others.

    Where no cluster is large enough, all rows are one cluster.

    Parameters
    ----------
    row : callable
        Returns the dissimilarities of one row from all.
    labels : ndarray of int
        The cluster of each row, from 0 up.
    least : int
        Minimum number of rows in a cluster.

    Examples
    --------
    >>> import numpy as np
    >>> points = np.array([0.0, 1.0, 3.0, 8.0, 9.0])
    >>> labels = np.array([0, 0, 1, 2, 2])
    >>> join_small(lambda i: np.abs(points - points[i]), labels, 2).tolist()
    [0, 0, 0, 1, 1]
    """
    is_large = np.bincount(labels)[labels] >= least
    if is_large.all():
        return labels
    large = np.flatnonzero(is_large)
    if not len(large):
        return np.zeros_like(labels)
    joined = labels.copy()
    for small in np.flatnonzero(~is_large):
        joined[small] = labels[large[row(int(small))[large].argmin()]]
    return number_by_appearance(joined)[1]
