"""How well two clusterings of the same rows agree.

Purity and variation of information are computed here, from the contingency table of the two
clusterings, and the purity of a tree; the other measures are scikit-learn's, under the same roof.

References
----------
.. [1] K. P. Murphy, "Machine Learning: A Probabilistic Perspective", section 25.1.2, 2012.
.. [2] M. Meila, "Comparing clusterings: an axiomatic view", ICML 2005.
"""

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_matrix
from sklearn.metrics import (
    adjusted_mutual_info_score,
    adjusted_rand_score,
    mutual_info_score,
    normalized_mutual_info_score,
    rand_score,
)
from sklearn.metrics.cluster import contingency_matrix

from countless._labels import check_labels

__all__ = [
    "adjusted_mutual_info_score",
    "adjusted_rand_score",
    "dendrogram_purity",
    "mutual_info_score",
    "normalized_mutual_info_score",
    "purity",
    "rand_score",
    "variation_of_information",
]


def purity(labels_true: ArrayLike, labels_pred: ArrayLike) -> float:
    """Share of rows that belong to the most frequent class of their cluster.

    Purity does not charge for clusters: one cluster per row has purity 1. Read it next to a
    measure that does, such as :func:`variation_of_information`.

    Parameters
    ----------
    labels_true : array-like of shape (n_samples,)
        The class of each row.
    labels_pred : array-like of shape (n_samples,)
        The cluster of each row.

    Returns
    -------
    float
        Above 0, and 1 when no cluster mixes classes.

    Examples
    --------
    >>> from countless.metrics import purity
    >>> purity(["a", "a", "b", "b"], [0, 0, 0, 1])
    0.75
    """
    table = _contingency(labels_true, labels_pred)
    return float(table.max(axis=0).sum() / table.sum())


def variation_of_information(labels_true: ArrayLike, labels_pred: ArrayLike) -> float:
    """Information, in nats, that the two clusterings do not share: H(U | V) + H(V | U).

    It is a metric on partitions: symmetric, zero only for equal partitions, and it satisfies the
    triangle inequality. It is at most ``log(n_samples)``.

    Parameters
    ----------
    labels_true : array-like of shape (n_samples,)
        One clustering.
    labels_pred : array-like of shape (n_samples,)
        The other; swapping the two changes nothing.

    Returns
    -------
    float
        Zero when the two put the same rows together, whatever the labels are called.

    Examples
    --------
    >>> from countless.metrics import variation_of_information
    >>> variation_of_information([0, 0, 1, 1], ["x", "x", "y", "y"])
    0.0
    >>> round(variation_of_information([0, 0, 1, 1], [0, 0, 0, 0]), 4)
    0.6931
    """
    table = _contingency(labels_true, labels_pred).tocoo()
    shared = table.data
    class_size = np.asarray(table.sum(axis=1)).ravel()[table.row]
    cluster_size = np.asarray(table.sum(axis=0)).ravel()[table.col]
    # No term is negative and equal partitions give log(1), so nothing cancels: zero is exact.
    terms = shared * (np.log(class_size / shared) + np.log(cluster_size / shared))
    return float(terms.sum() / shared.sum())


def _contingency(labels_true: ArrayLike, labels_pred: ArrayLike) -> csr_matrix:
    """Count the rows of each class (table row) in each cluster (table column)."""
    classes = check_labels("labels_true", labels_true)
    clusters = check_labels("labels_pred", labels_pred)
    if len(classes) != len(clusters):
        raise ValueError(
            f"labels_true has {len(classes)} labels and labels_pred has {len(clusters)}: "
            "both need one label per row"
        )
    return contingency_matrix(classes, clusters, sparse=True)


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
    >>> from countless.metrics import dendrogram_purity
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
