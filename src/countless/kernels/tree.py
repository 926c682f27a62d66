"""What merges of a tree join: dissimilarities between the rows of their two parts."""

import numpy as np
from numba import njit


@njit(nogil=True, cache=True)
def measure_merges(
    distance,  # IN (n, n)
    order,  # IN (n,), the rows, so that every cluster is a stretch
    start,  # IN (n - 1,), where what each merge made begins
    middle,  # IN (n - 1,), where its second part begins
    stop,  # IN (n - 1,), where it ends
    widest,  # OUT (n - 1,), the largest dissimilarity of rows of different parts
    total,  # OUT (n - 1,), the sum of all of them
    squares,  # OUT (n - 1,), the sum of their squares
):
    """Visit every pair of rows once, at the merge that joins them."""
    for merge in range(len(start)):
        largest, added, squared = 0.0, 0.0, 0.0
        for i in range(start[merge], middle[merge]):
            row = order[i]
            for j in range(middle[merge], stop[merge]):
                between = np.float64(distance[row, order[j]])
                added += between
                squared += between * between
                largest = max(largest, between)
        widest[merge], total[merge], squares[merge] = largest, added, squared
