"""Trees in SciPy's linkage format: built from splits, with statistics of their nodes.

In a tree of n rows node i < n is row i, and node n + j is the cluster of merge j.
"""

import numpy as np
from numba import njit


@njit(nogil=True, cache=True)
def link_splits(
    order,  # IN (n,), the rows, ordered so that every cluster is contiguous
    splits,  # IN (n - 1, 3), start, middle and stop of each split
    height,  # IN (n - 1,)
    sequence,  # IN (n - 1,), the splits by ascending height, parts before the whole
    linkage,  # OUT (n - 1, 4)
):
    """Build the linkage matrix by undoing splits one at a time."""
    n = len(order)
    node = order.copy()  # of the cluster that begins at each position
    for merge in range(n - 1):
        split = sequence[merge]
        start, middle, stop = splits[split]
        first, second = node[start], node[middle]
        linkage[merge, 0], linkage[merge, 1] = min(first, second), max(first, second)
        linkage[merge, 2], linkage[merge, 3] = height[split], stop - start
        node[start] = n + merge


@njit(nogil=True, cache=True)
def place_nodes(
    child,  # IN (n - 1, 2)
    size,  # IN (2 n - 1,)
    begin,  # OUT (2 n - 1,), the position at which each node begins
):
    """Order the rows so that every node is contiguous, with its children adjacent."""
    n = len(child) + 1
    begin[2 * n - 2] = 0
    for merge in range(n - 2, -1, -1):  # parents first
        left, right = child[merge]
        begin[left] = begin[n + merge]
        begin[right] = begin[left] + size[left]


@njit(nogil=True, cache=True)
def measure_nodes(
    distance,  # IN (n, n)
    child,  # IN (n - 1, 2)
    size,  # IN (2 n - 1,)
    order,  # IN (n,), the rows, ordered so that every node is contiguous
    begin,  # IN (2 n - 1,), where it begins
    unit,  # IN, divisor of dissimilarities before they are squared
    widest,  # OUT (2 n - 1,), the diameter of each node; zeros on input
    total,  # OUT (2 n - 1,), the sum of all of them
    squares,  # OUT (2 n - 1,), the sum of their squares
):
    """Sum over every pair of rows once, at the merge that joins them."""
    n = len(order)
    for merge in range(n - 1):
        left, right = child[merge]
        largest = max(widest[left], widest[right])
        added, squared = total[left] + total[right], squares[left] + squares[right]
        for i in range(begin[left], begin[left] + size[left]):
            row = order[i]
            for j in range(begin[right], begin[right] + size[right]):
                between = np.float64(distance[row, order[j]])
                added += between
                squared += (between / unit) ** 2
                largest = max(largest, between)
        widest[n + merge], total[n + merge], squares[n + merge] = largest, added, squared


@njit(nogil=True, cache=True)
def raise_nodes(
    child,  # IN (n - 1, 2)
    height,  # OUT (2 n - 1,), raised to the highest within each node
):
    """Make heights monotone: no node is lower than its children."""
    n = len(child) + 1
    for merge in range(n - 1):
        left, right = child[merge]
        height[n + merge] = max(height[n + merge], height[left], height[right])
