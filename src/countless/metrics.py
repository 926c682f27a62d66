"""How well two clusterings of the same rows agree.

Purity, variation of information and the measures over pairs of rows are computed here, from the
contingency table of the two clusterings, and the purity of a tree; the other measures are
scikit-learn's, under the same roof. `permutation_test` and `bootstrap_interval` take any of them
that has two clusterings as arguments.

References
----------
.. [1] K. P. Murphy, "Machine Learning: A Probabilistic Perspective", section 25.1.2, 2012.
.. [2] M. Meila, "Comparing clusterings: an axiomatic view", ICML 2005.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.stats
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
from sklearn.utils import check_random_state

from countless._labels import check_labels
from countless._parameters import check_count

__all__ = [
    "adjusted_mutual_info_score",
    "adjusted_rand_score",
    "bootstrap_interval",
    "dendrogram_purity",
    "mutual_info_score",
    "normalized_mutual_info_score",
    "pair_counts",
    "pair_f_score",
    "pair_precision",
    "pair_recall",
    "permutation_test",
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


class PairCounts(NamedTuple):
    """Pairs of rows by whether each of two clusterings puts the two rows together."""

    true_positive: int  # together in both
    false_positive: int  # together in labels_pred only
    false_negative: int  # together in labels_true only
    true_negative: int  # apart in both


def pair_counts(labels_true: ArrayLike, labels_pred: ArrayLike) -> PairCounts:
    """Count the pairs of rows that the clusterings put together or apart.

    Parameters
    ----------
    labels_true, labels_pred : array-like of shape (n_samples,)
        The class and the cluster of each row.

    Returns
    -------
    PairCounts
        Each unordered pair of two rows is counted once: ``n (n - 1) / 2`` in all.

    Examples
    --------
    The example of Murphy's figure 25.1: 17 objects of three classes in three clusters.

    >>> from countless.metrics import pair_counts
    >>> pair_counts(list("AAAAABABBBBCAACCC"), [1] * 6 + [2] * 6 + [3] * 5)
    PairCounts(true_positive=20, false_positive=20, false_negative=24, true_negative=72)
    """
    table = _contingency(labels_true, labels_pred)
    n_rows = int(table.sum())
    both, true, pred = (_n_pairs(s) for s in (table.data, table.sum(axis=1), table.sum(axis=0)))
    return PairCounts(
        both, pred - both, true - both, n_rows * (n_rows - 1) // 2 - true - pred + both
    )


def _n_pairs(sizes: ArrayLike) -> int:
    """Return the number of pairs inside sets of these sizes."""
    sizes = np.asarray(sizes, dtype=np.int64)
    return int((sizes * (sizes - 1) // 2).sum())


def pair_precision(labels_true: ArrayLike, labels_pred: ArrayLike) -> float:
    """Share of the pairs of rows in one cluster that are in one class.

    Parameters
    ----------
    labels_true, labels_pred : array-like of shape (n_samples,)
        The class and the cluster of each row.

    Returns
    -------
    float
        1 if no two rows share a cluster: no pair is wrong.

    Examples
    --------
    >>> from countless.metrics import pair_precision
    >>> pair_precision(list("AAAAABABBBBCAACCC"), [1] * 6 + [2] * 6 + [3] * 5)
    0.5
    """
    counts = pair_counts(labels_true, labels_pred)
    return _share(counts.true_positive, counts.false_positive)


def pair_recall(labels_true: ArrayLike, labels_pred: ArrayLike) -> float:
    """Share of the pairs of rows in one class that are in one cluster.

    Parameters
    ----------
    labels_true, labels_pred : array-like of shape (n_samples,)
        The class and the cluster of each row.

    Returns
    -------
    float
        1 if no two rows share a class: no pair is missed.

    Examples
    --------
    >>> from countless.metrics import pair_recall
    >>> round(pair_recall(list("AAAAABABBBBCAACCC"), [1] * 6 + [2] * 6 + [3] * 5), 3)
    0.455
    """
    counts = pair_counts(labels_true, labels_pred)
    return _share(counts.true_positive, counts.false_negative)


def pair_f_score(labels_true: ArrayLike, labels_pred: ArrayLike, *, beta: float = 1.0) -> float:
    """Weighted harmonic mean of the precision and the recall over pairs of rows.

    Parameters
    ----------
    labels_true, labels_pred : array-like of shape (n_samples,)
        The class and the cluster of each row.
    beta : float, default=1.0
        The weight of recall: above 1 it counts more than precision, below 1 less.

    Returns
    -------
    float
        1 for equal partitions, 0 if no pair of rows is together in both.

    Examples
    --------
    >>> from countless.metrics import pair_f_score
    >>> round(pair_f_score(list("AAAAABABBBBCAACCC"), [1] * 6 + [2] * 6 + [3] * 5), 3)
    0.476
    """
    if not (np.isfinite(beta) and beta > 0):
        raise ValueError(f"beta must be positive and finite; got {beta!r}")
    counts = pair_counts(labels_true, labels_pred)
    weight = beta * beta
    return _share(
        (1 + weight) * counts.true_positive,
        weight * counts.false_negative + counts.false_positive,
    )


def _share(right: float, wrong: float) -> float:
    """Return the share of what is right; 1 of nothing."""
    return right / (right + wrong) if right + wrong else 1.0


Score = Callable[[np.ndarray, np.ndarray], float]


class ScoreTest(NamedTuple):
    """A score of two clusterings, and its distribution over unrelated ones of the same sizes."""

    score: float
    expected: float  # the mean over permutations
    p_value: float  # the probability of at least this score


def permutation_test(
    labels_true: ArrayLike,
    labels_pred: ArrayLike,
    *,
    score: Score = adjusted_rand_score,
    n_permutations: int = 999,
    random_state: Any = None,
) -> ScoreTest:
    """Test whether two clusterings agree more than unrelated ones of the same sizes.

    Under the null hypothesis every assignment of the cluster labels to the rows is equally
    probable. The score is computed for random permutations of the labels, or for all of them where
    there are at most ``n_permutations`` (up to 6 rows by default), so that the p-value is then
    exact. The Rand index and the adjusted Rand index have the same p-value: given the sizes, one
    is an increasing linear function of the other.

    Parameters
    ----------
    labels_true, labels_pred : array-like of shape (n_samples,)
        The two clusterings.
    score : callable, default=`adjusted_rand_score`
        A measure of `countless.metrics` or scikit-learn, of two label arrays; higher is better.
    n_permutations : int, default=999
        The number of random permutations. The p-value is at least ``1 / (n_permutations + 1)``.
    random_state : int, RandomState instance or None
        Draws the permutations.

    Returns
    -------
    ScoreTest
        The score, its mean under the null hypothesis, and the one-sided p-value.

    Examples
    --------
    >>> from countless.metrics import permutation_test, rand_score
    >>> classes, clusters = list("AAAAABABBBBCAACCC"), [1] * 6 + [2] * 6 + [3] * 5
    >>> found = permutation_test(classes, clusters, score=rand_score, random_state=0)
    >>> round(found.score, 3), round(found.expected, 3), found.p_value
    (0.676, 0.575, 0.024)
    """
    classes, clusters = _check_pair(labels_true, labels_pred)
    check_count("n_permutations", n_permutations)
    if len(classes) < 2:
        raise ValueError("a permutation test needs at least 2 rows; got 1")
    found = scipy.stats.permutation_test(
        (clusters,),
        lambda permuted: score(classes, permuted),
        permutation_type="pairings",
        vectorized=False,
        n_resamples=n_permutations,
        alternative="greater",
        rng=np.random.default_rng(check_random_state(random_state).randint(2**31 - 1)),
    )
    return ScoreTest(
        float(found.statistic), float(np.mean(found.null_distribution)), float(found.pvalue)
    )


class ScoreInterval(NamedTuple):
    """A score of two clusterings, and a confidence interval."""

    score: float
    low: float
    high: float


def bootstrap_interval(
    labels_true: ArrayLike,
    labels_pred: ArrayLike,
    *,
    score: Score = adjusted_rand_score,
    confidence_level: float = 0.95,
    n_draws: int = 999,
    random_state: Any = None,
) -> ScoreInterval:
    """Return a bootstrap confidence interval of a score of two clusterings.

    Rows are resampled with replacement, both labels together, and the interval is between
    quantiles of the scores (the percentile method). It measures the uncertainty of a finite number
    of rows; the clusterings themselves are not fitted again: see `countless.bootstrap`.

    Parameters
    ----------
    labels_true, labels_pred : array-like of shape (n_samples,)
        The two clusterings.
    score : callable, default=`adjusted_rand_score`
        A measure of `countless.metrics` or scikit-learn, of two label arrays.
    confidence_level : float, default=0.95
        The probability with which such an interval contains the score of all rows that could have
        been sampled.
    n_draws : int, default=999
        The number of resamples.
    random_state : int, RandomState instance or None
        Draws the rows.

    Returns
    -------
    ScoreInterval

    Examples
    --------
    >>> from countless.metrics import bootstrap_interval, rand_score
    >>> classes, clusters = list("AAAAABABBBBCAACCC"), [1] * 6 + [2] * 6 + [3] * 5
    >>> found = bootstrap_interval(classes, clusters, score=rand_score, random_state=0)
    >>> [round(value, 3) for value in found]
    [0.676, 0.544, 0.882]
    """
    classes, clusters = _check_pair(labels_true, labels_pred)
    check_count("n_draws", n_draws)
    if not 0 < confidence_level < 1:
        raise ValueError(f"confidence_level must be between 0 and 1; got {confidence_level!r}")
    random, n_rows = check_random_state(random_state), len(classes)
    drawn = [random.randint(n_rows, size=n_rows) for _ in range(n_draws)]
    scores = [score(classes[rows], clusters[rows]) for rows in drawn]
    tail = (1 - confidence_level) / 2
    low, high = np.quantile(scores, [tail, 1 - tail])
    return ScoreInterval(float(score(classes, clusters)), float(low), float(high))


def _contingency(labels_true: ArrayLike, labels_pred: ArrayLike) -> csr_matrix:
    """Count the rows of each class (table row) in each cluster (table column)."""
    return contingency_matrix(*_check_pair(labels_true, labels_pred), sparse=True)


def _check_pair(labels_true: ArrayLike, labels_pred: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """Return the number of the class and of the cluster of each row."""
    classes = check_labels("labels_true", labels_true)
    clusters = check_labels("labels_pred", labels_pred)
    if len(classes) != len(clusters):
        raise ValueError(
            f"labels_true has {len(classes)} labels and labels_pred has {len(clusters)}: "
            "both need one label per row"
        )
    return (
        np.unique(classes, return_inverse=True)[1],
        np.unique(clusters, return_inverse=True)[1],
    )


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
