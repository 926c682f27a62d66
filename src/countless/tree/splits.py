"""A tree of splits as SciPy writes a tree of merges.

When every cluster stands in one stretch of an order of the rows, a split is three places in that
order, and a tree is a list of splits.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Splits(NamedTuple):
    """Splits from the whole down to single rows; a cluster is split before its parts are.

    Split i parts the rows ``order[start[i]:stop[i]]`` at ``middle[i]``. A part is never higher than
    the whole.
    """

    order: np.ndarray  # (n_rows,)
    start: np.ndarray  # (n_rows - 1,)
    middle: np.ndarray  # (n_rows - 1,)
    stop: np.ndarray  # (n_rows - 1,)
    height: np.ndarray  # (n_rows - 1,)


def linkage_of_splits(splits: Splits) -> np.ndarray:
    """Return the splits, undone from the lowest to the highest, as a linkage matrix of SciPy.

    Examples
    --------
    >>> import numpy as np
    >>> order, start, middle, stop = ([2, 0, 1], [0, 1], [1, 2], [3, 3])
    >>> splits = Splits(*map(np.array, (order, start, middle, stop, [5.0, 1.0])))
    >>> linkage_of_splits(splits)
    array([[0., 1., 1., 2.],
           [2., 3., 5., 3.]])
    """
    n = len(splits.order)
    node = np.array(splits.order)  # of the cluster that begins at each place
    linkage = np.empty((n - 1, 4))
    # Of equal heights the later split comes first, so that parts are joined before the whole is.
    for merge, i in enumerate(np.lexsort((-np.arange(n - 1), splits.height))):
        first, second = node[splits.start[i]], node[splits.middle[i]]
        size = splits.stop[i] - splits.start[i]
        linkage[merge] = min(first, second), max(first, second), splits.height[i], size
        node[splits.start[i]] = n + merge
    return linkage


def stretches(linkage: np.ndarray) -> Splits:
    """Return any linkage matrix as stretches of an order, merge by merge; heights as they are.

    Examples
    --------
    >>> import numpy as np
    >>> stretches(np.array([[0, 1, 1.0, 2], [2, 3, 5.0, 3]])).order.tolist()
    [2, 0, 1]
    """
    n = len(linkage) + 1
    size = np.append(np.ones(n, dtype=np.int64), linkage[:, 3].astype(np.int64))
    child = linkage[:, :2].astype(np.int64)
    begin = np.zeros(2 * n - 1, dtype=np.int64)
    for merge in range(n - 2, -1, -1):  # the whole begins at 0, and parents are placed first
        left, right = child[merge]
        begin[left] = begin[n + merge]
        begin[right] = begin[left] + size[left]
    order = np.empty(n, dtype=np.int64)
    order[begin[:n]] = np.arange(n)
    start = begin[n:]
    return Splits(order, start, begin[child[:, 1]], start + size[n:], linkage[:, 2])
