"""Trees in SciPy's format."""

from __future__ import annotations

import numpy as np


def merge_order(children: np.ndarray, height: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Sort merges by height; ties keep their order.

    Parameters
    ----------
    children : ndarray of shape (n_leaves - 1, 2)
        Node i below n_leaves is a leaf, n_leaves + i the node of merge i.
    height : ndarray of shape (n_leaves - 1,)
        No less than that of either child.

    Returns
    -------
    order : ndarray of shape (n_leaves - 1,)
        The merges in ascending order of height.
    children : ndarray of shape (n_leaves - 1, 2)
        The same tree with its merges numbered in this order.

    Examples
    --------
    >>> children = np.array([[0, 1], [2, 3], [4, 5]])
    >>> order, children = merge_order(children, np.array([2.0, 1.0, 3.0]))
    >>> order.tolist(), children.tolist()
    ([1, 0, 2], [[2, 3], [0, 1], [4, 5]])
    """
    n = len(children) + 1
    order = np.argsort(height, kind="stable")
    number = np.arange(2 * n - 1)
    number[n + order] = n + np.arange(n - 1)
    return order, np.sort(number[children[order]], axis=1)


def linkage_matrix(children: np.ndarray, height: np.ndarray) -> np.ndarray:
    """Return merges, sorted by height, as a linkage matrix of SciPy.

    Examples
    --------
    >>> linkage_matrix(np.array([[0, 1], [2, 3]]), np.array([1.0, 5.0]))
    array([[0., 1., 1., 2.],
           [2., 3., 5., 3.]])
    """
    n = len(children) + 1
    count = np.ones(2 * n - 1)
    for step, pair in enumerate(children):
        count[n + step] = count[pair].sum()
    return np.column_stack([children, height, count[n:]]).astype(np.float64)
