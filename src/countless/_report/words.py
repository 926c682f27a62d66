"""The words that set a cluster apart: log odds with an informative Dirichlet prior.

A word's odds in one set of rows beside another are ``log(a / (n_a - a)) - log(b / (n_b - b))``, all
counts raised by those of a prior: the words of all rows, as many in total as in an average cluster.
Divided by the standard deviation, ``sqrt(1 / a + 1 / b)``, that is a z-score (Monroe, Colaresi and
Quinn, "Fightin' Words", 2008).

A cluster is compared with its siblings, the clusters on the other side of the merge that it is part
of in a tree of the clusters, and with all other clusters; the mean of both z-scores counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from countless._path.ward import ward_tree
from countless.divergences import get_divergence

# Words of one cluster at most, and the score that each has at least.
N_WORDS, SMALLEST_SCORE = 8, 2.0


class Word(NamedTuple):
    """A word that sets a cluster apart."""

    word: str
    log_odds: float  # beside the siblings
    score: float  # the mean of both z-scores


def count_words(texts: Sequence[str]) -> tuple[sp.csr_array, list[str]]:
    """Return which words are in each text, and the words: shape (n_texts, n_words).

    A word counts once in a text, since words come in bursts. English function words, numbers and
    words of a single text are left out.

    Examples
    --------
    >>> counts, words = count_words(["The puck, the goal", "goal and PUCK", "a disk"])
    >>> words, counts.toarray().tolist()
    (['goal', 'puck'], [[1, 1], [1, 1], [0, 0]])
    """
    from sklearn.feature_extraction.text import CountVectorizer

    for row, text in enumerate(texts):
        if not isinstance(text, str):
            raise ValueError(f"texts: row {row} is {text!r}, which is no text")
    counter = CountVectorizer(
        binary=True, stop_words="english", token_pattern=r"(?u)\b[^\W\d_][^\W_]+\b"
    )
    try:
        counts = sp.csr_array(counter.fit_transform(texts))
    except ValueError:  # no words at all
        return sp.csr_array((len(texts), 0)), []
    repeated = np.flatnonzero(np.asarray(counts.sum(axis=0)).ravel() > 1)
    words = counter.get_feature_names_out()
    return counts[:, repeated], [str(words[at]) for at in repeated]


def log_odds(
    inside: np.ndarray, outside: np.ndarray, prior: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the log odds ratio of each word between two sets of counts, and its z-score.

    Examples
    --------
    >>> ratio, score = log_odds(np.array([8.0, 2.0]), np.array([2.0, 8.0]), np.array([1.0, 1.0]))
    >>> ratio.round(2).tolist(), score.round(2).tolist()
    ([2.2, -2.2], [3.3, -3.3])
    """
    a, b = inside + prior, outside + prior
    ratio = np.log(a) - np.log(a.sum() - a) - np.log(b) + np.log(b.sum() - b)
    return ratio, ratio / np.sqrt(1 / a + 1 / b)


def distinctive_words(
    counts: Any,
    words: Sequence[str],
    labels: np.ndarray,
    siblings: np.ndarray,
    n_words: int = N_WORDS,
) -> list[list[Word]]:
    """Return the words that set each cluster 0, 1, ... apart, those of the highest score first.

    Parameters
    ----------
    counts : array or sparse matrix of shape (n_rows, n_words)
    words : sequence of str
    labels : ndarray of shape (n_rows,)
        From 0.
    siblings : ndarray of bool of shape (n_clusters, n_clusters)
        Those of each cluster, as `siblings_of` returns them.
    n_words : int, default=8
        Words of one cluster at most.
    """
    k = len(siblings)
    member = sp.csr_array((np.ones(len(labels)), (labels, np.arange(len(labels)))))
    own = (member @ sp.csr_array(counts, dtype=np.float64)).toarray()
    whole = own.sum(axis=0)
    known = np.flatnonzero(whole > 0)
    if k < 2 or len(known) < 2:
        return [[] for _ in range(k)]
    own, whole = own[:, known], whole[known]
    prior = whole / k
    found = []
    for cluster in range(k):
        ratio, beside_siblings = log_odds(own[cluster], siblings[cluster] @ own, prior)
        _, beside_others = log_odds(own[cluster], whole - own[cluster], prior)
        score = (beside_siblings + beside_others) / 2
        best = np.lexsort((known, -score))[:n_words]
        found.append(
            [
                Word(words[known[at]], float(ratio[at]), float(score[at]))
                for at in best
                if score[at] >= SMALLEST_SCORE
            ]
        )
    return found


def siblings_of(weight: np.ndarray, total: np.ndarray) -> np.ndarray:
    """Return which clusters are the siblings of each in the Ward tree of their centers.

    Parameters
    ----------
    weight : ndarray of shape (n_clusters,)
        Weights of the clusters.
    total : ndarray of shape (n_clusters, n_features)
        Sums of their rows.

    Returns
    -------
    ndarray of bool of shape (n_clusters, n_clusters)

    Examples
    --------
    >>> siblings_of(np.ones(3), np.array([[0.0], [5.0], [6.0]])).tolist()
    [[False, True, True], [False, False, True], [False, True, False]]
    """
    k = len(weight)
    siblings = np.zeros((k, k), dtype=bool)
    if k < 2:
        return siblings
    tree = ward_tree(weight, total, get_divergence("sqeuclidean"))
    inside = np.zeros((2 * k - 1, k), dtype=bool)
    inside[:k] = np.eye(k)
    for merge, (a, b) in enumerate(tree.children, start=k):
        inside[merge] = inside[a] | inside[b]
        for child, other in ((a, b), (b, a)):
            if child < k:
                siblings[child] = inside[other]
    return siblings
