"""Merge costs, and every cluster's cheapest partner, updated while clusters are merged."""

import numpy as np
from numba import njit


@njit(nogil=True, cache=True)
def find_partner(matrix, cluster, alive, partner, lowest):
    """Find the cheapest partner of one cluster among those left. partner, lowest are # OUT."""
    best = 0
    for other in range(1, alive):
        if matrix[cluster, other] < matrix[cluster, best]:
            best = other
    partner[cluster] = best
    lowest[cluster] = matrix[cluster, best]


@njit(nogil=True, cache=True)
def replace_pair(matrix, partner, lowest, a, b, row, alive):
    """Put the merge of a < b, whose costs are ``row``, at index a, and the last cluster at index b.

    So the remaining clusters keep the first indices, and late merges are cheap. matrix, partner,
    lowest are # OUT.
    """
    last = alive - 1
    for other in range(alive):
        matrix[a, other] = row[other]
        matrix[other, a] = row[other]
    matrix[a, a] = np.inf
    if b != last:
        for other in range(alive):
            matrix[b, other] = matrix[last, other]
            matrix[other, b] = matrix[other, last]
        matrix[b, b] = np.inf
        partner[b] = partner[last]
        lowest[b] = lowest[last]
    for cluster in range(last):
        chosen = partner[cluster]
        if cluster == a or chosen in (a, b):
            find_partner(matrix, cluster, last, partner, lowest)
            continue
        if chosen == last:
            partner[cluster] = b
        if matrix[cluster, a] < lowest[cluster]:
            partner[cluster] = a
            lowest[cluster] = matrix[cluster, a]
