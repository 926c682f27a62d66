"""Merging whole clusters, each pair under the best exemplar of both, while the objective grows.

Moves of single rows seldom connect two good clusterings, since those in between are worse. With
``served[a, j]`` the sum of the similarities of cluster a's rows to j, a pair of clusters has the
objective ``max over its rows j of served[a, j] + served[b, j]``: one pass over that table evaluates
all pairs.
"""

from __future__ import annotations

import numpy as np

from countless._exemplar.clustering import COLUMNS_AT_ONCE, Problem
from countless._exemplar.weights import Weights
from countless._threads import steps
from countless.kernels.exemplars import serve_clusters


def join_clusters(problem: Problem, choice: np.ndarray) -> tuple[np.ndarray, int]:
    """Merge clusters while a pair gains; return the labels of rows, and the number of merges."""
    n = problem.n
    _, label = np.unique(choice, return_inverse=True)
    if int(label.max() + 1) * n > 2**24:  # entries of the table; with more none are merged
        return label, 0
    served, reached = _tables(problem, label)
    n_joined = 0
    while len(served) > 1:
        pair, gain = _best_pair(served, reached, label, problem.finite_weights)
        if gain <= problem.rounding:
            break
        low, high = sorted(pair)
        served[low] += served[high]
        reached[low] += reached[high]
        keep = np.arange(len(served)) != high
        served, reached = served[keep], reached[keep]
        label = np.where(label == high, low, label)
        label = label - (label > high)
        n_joined += 1
    return label, n_joined


def _tables(problem: Problem, label: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the sum of each cluster's similarities to each row, and the number of edges summed."""
    shape = (problem.n, int(label.max()) + 1)
    served, reached = np.zeros(shape), np.zeros(shape, dtype=np.int64)

    def add_up(first: int, last: int) -> None:
        serve_clusters(problem.edges, label, first, last, served, reached)

    problem.each(add_up, steps(problem.n, COLUMNS_AT_ONCE))
    return np.ascontiguousarray(served.T), np.ascontiguousarray(reached.T)


def _best_pair(served, reached, label, weights: Weights) -> tuple[tuple[int, int], float]:
    """Return the pair of clusters that gains most by merging, and its gain."""
    size = np.bincount(label)
    order = np.argsort(label, kind="stable")
    first = np.concatenate([[0], np.cumsum(size)[:-1]])
    own = served[label, np.arange(len(label))]
    complete = (reached == size[:, None]) & (reached[label, np.arange(len(label))] == size[label])
    under = np.where(complete, served + own, -np.inf)  # merged with the cluster of j, under j
    joined = np.maximum.reduceat(under[:, order], first, axis=1)
    joined = np.maximum(joined, joined.T)
    alone = np.diagonal(joined) / 2 + weights.size[size]
    fewer = weights.number[len(size) - 1] - weights.number[len(size)]
    # On the diagonal the sum may exceed the number of rows.
    both = np.minimum(size[:, None] + size, len(label))
    gain = joined + weights.size[both] - alone[:, None] - alone + fewer
    np.fill_diagonal(gain, -np.inf)
    at = int(np.argmax(gain))
    a, b = divmod(at, len(size))
    return (a, b), float(gain[a, b])
