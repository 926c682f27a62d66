"""Trees in SciPy's format, and their purity."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from countless._labels import check_labels


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


def dendrogram_purity(linkage: ArrayLike, classes: ArrayLike) -> float:
    """Return the dendrogram purity of a tree with respect to known classes.

    For two random leaves of the same class, it is the expected share of that class in the smallest
    subtree that contains both; it is 1 if every class is a subtree (Heller and Ghahramani, 2005).
    Classes of one leaf are left out.

    Parameters
    ----------
    linkage : array-like of shape (n_leaves - 1, 2 or more)
        A linkage matrix of SciPy, or ``children_`` of an estimator.
    classes : array-like of shape (n_leaves,)

    Returns
    -------
    float

    Examples
    --------
    >>> from countless._tree.dendrogram import dendrogram_purity
    >>> dendrogram_purity([[0, 1], [2, 3]], ["a", "a", "b"])
    1.0
    >>> dendrogram_purity([[0, 2], [1, 3]], ["a", "a", "b"])
    0.6666666666666666
    """
    children = _check_children(linkage)
    numbers = np.unique(check_labels("classes", classes), return_inverse=True)[1]
    n = len(children) + 1
    if len(numbers) != n:
        raise ValueError(f"classes has {len(numbers)} entries for {n} leaves")
    count = np.zeros((2 * n - 1, numbers.max() + 1))
    count[np.arange(n), numbers] = 1
    total = count.sum(axis=0)
    if not (total > 1).any():
        raise ValueError("classes has no class of two leaves or more")
    score = np.zeros(len(total))
    for step, (a, b) in enumerate(children):
        count[n + step] = count[a] + count[b]
        score += 2 * count[a] * count[b] * count[n + step] / count[n + step].sum()
    pairs = np.maximum(total - 1, 1)
    return float((score / pairs).sum() / total[total > 1].sum())


def _check_children(linkage: ArrayLike) -> np.ndarray:
    """Return the two nodes of each merge, or raise an error that names an invalid merge."""
    merges = np.asarray(linkage)
    if merges.ndim != 2 or merges.shape[1] < 2:
        raise ValueError(f"a tree has one row for each merge; got an array of shape {merges.shape}")
    children = merges[:, :2].astype(np.int64)
    n = len(children) + 1
    free = np.ones(2 * n - 1, dtype=bool)
    for step, pair in enumerate(children):
        if pair.min() < 0 or pair.max() >= n + step or pair[0] == pair[1] or not free[pair].all():
            raise ValueError(
                f"merge {step} joins {pair[0]} and {pair[1]}, which are not both there"
            )
        free[pair] = False
    return children
