"""Partitions in the plainest way there is, for tests to compare with."""

import numpy as np


def all_partitions(n_rows):
    """List the labels of every partition of some rows, numbered by first appearance.

    >>> all_partitions(3)
    [(0, 0, 0), (0, 0, 1), (0, 1, 0), (0, 1, 1), (0, 1, 2)]
    >>> [len(all_partitions(n)) for n in range(7)]  # Bell's numbers
    [1, 1, 2, 5, 15, 52, 203]
    """
    found = [()]
    for _ in range(n_rows):
        found = [(*labels, c) for labels in found for c in range(max(labels, default=-1) + 2)]
    return found


def by_first_appearance(labels):
    """Number labels 0, 1, ... in the order in which they appear.

    >>> by_first_appearance([7, 2, 7, 0])
    array([0, 1, 0, 2])
    """
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[inverse]
