"""Divisive analysis (DIANA): a tree grown from the top.

The row with the largest average dissimilarity from the others of its cluster starts a splinter
group. Then the row moves for which the average dissimilarity from the remaining rows exceeds most
that from the splinter group, until there is no such row. Both parts are split in the same way. The
height of a cluster is its diameter, the largest dissimilarity within.

Every row's sums over its group change by one term when a row moves, and the sums at the end of a
split are the initial ones of the next. So a split that moves s of m rows costs O(s m), and a level
of the tree at most O(n^2). Ties are broken as in R's ``cluster::diana``: the first row is taken.

P. Macnaughton-Smith et al., Dissimilarity analysis, Nature 202 (1964); L. Kaufman and P. J.
Rousseeuw, Finding Groups in Data (1990), chapter 6.
"""

from __future__ import annotations

import numpy as np

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
