"""Conversion of a tree of splits to SciPy's tree of merges.

With the rows ordered so that every cluster is contiguous, a split is three positions in that order,
and a tree is a list of splits.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from countless.kernels.tree import link_splits, place_nodes


class Splits(NamedTuple):
    """Splits from the root down to single rows; a cluster is split before its parts are.

    Split i divides the rows ``order[start[i]:stop[i]]`` at ``middle[i]``. A part is never higher
    than the whole.
    """

    order: np.ndarray  # (n_rows,)
    start: np.ndarray  # (n_rows - 1,)
    middle: np.ndarray  # (n_rows - 1,)
    stop: np.ndarray  # (n_rows - 1,)
    height: np.ndarray  # (n_rows - 1,)


def linkage_of_splits(splits: Splits) -> np.ndarray:
    """Return a linkage matrix of SciPy of the splits, undone from the lowest to the highest.

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
    places = np.stack([splits.start, splits.middle, splits.stop], axis=1)
    # Of equal heights the later split comes first, so that parts are joined before the whole.
    sequence = np.lexsort((-np.arange(n - 1), splits.height))
    linkage = np.empty((n - 1, 4))
    link_splits(splits.order, places, splits.height, sequence, linkage)
    return linkage


class Nodes(NamedTuple):
    """Any tree as ranges of an order of its rows: node i < n is row i, n + j that of merge j.

    Node i has the rows ``order[begin[i]:begin[i] + size[i]]``.
    """

    child: np.ndarray  # (n_rows - 1, 2)
    size: np.ndarray  # (2 n_rows - 1,)
    order: np.ndarray  # (n_rows,)
    begin: np.ndarray  # (2 n_rows - 1,)


def nodes_of(linkage: np.ndarray) -> Nodes:
    """Return the nodes of a linkage matrix.

    Examples
    --------
    >>> import numpy as np
    >>> nodes_of(np.array([[0, 1, 1.0, 2], [2, 3, 5.0, 3]])).order.tolist()
    [2, 0, 1]
    """
    n = len(linkage) + 1
    child = linkage[:, :2].astype(np.int64)
    size = np.append(np.ones(n, dtype=np.int64), linkage[:, 3].astype(np.int64))
    begin, order = np.empty(2 * n - 1, dtype=np.int64), np.empty(n, dtype=np.int64)
    place_nodes(child, size, begin)
    order[begin[:n]] = np.arange(n)
    return Nodes(child, size, order, begin)
