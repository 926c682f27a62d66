"""Local search from a valid clustering, with all kinds of moves.

Rows move one at a time and whole clusters are merged; where sizes do not count, exemplars are
added, removed and swapped instead, and all rows are reassigned.

Moves of single rows seldom connect two good clusterings, since those in between are worse, so each
pair of clusters is also considered for a merge under the best exemplar of both. With
``served[a, j]`` the sum of the similarities of cluster a's rows to j, a pair of clusters has the
objective ``max over its rows j of served[a, j] + served[b, j]``: one pass over that table evaluates
all pairs.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from countless._exemplar.clustering import (
    COLUMNS_AT_ONCE,
    Problem,
    improve,
    nearest_exemplars,
    worth,
)
from countless._exemplar.weights import Weights
from countless._threads import steps
from countless.kernels.exemplars import serve_clusters
from countless.kernels.swaps import swap_exemplars


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


@dataclass(frozen=True)
class ExemplarSearch:
    """Constants of local search; ``benchmarks/affinity.py`` shows what they are worth."""

    # Largest number of sweeps over the rows, and of rounds of merging clusters.
    sweeps: int = 100
    rounds: int = 10
    # Largest number of restarts from a local optimum, and one in how many exemplars is replaced.
    restarts: int = 20
    exemplars_a_change: int = 50


SEARCH = ExemplarSearch()


def local_optimum(problem: Problem, label: np.ndarray) -> np.ndarray:
    """Return a locally optimal exemplar of each row, from labels or exemplars of rows."""
    choice, _, _ = improve(problem, label, SEARCH.sweeps)
    if problem.is_full and problem.weights.is_flat:
        return swap(problem, choice)
    for _ in range(SEARCH.rounds):
        label, n_joined = join_clusters(problem, choice)
        if not n_joined:
            break
        choice, _, _ = improve(problem, label, SEARCH.sweeps)
    return choice


def exemplars_of_equal_rows(problem: Problem) -> np.ndarray:
    """Return the exemplars where all rows are equal: one cluster, or singletons.

    With a size prior other sizes may be optimal, which moves find from either extreme.
    """
    n = problem.n
    one, own = np.zeros(n, dtype=np.int64), np.arange(n)
    if not problem.weights.is_flat:
        return max(
            (local_optimum(problem, start) for start in (one, own)), key=partial(worth, problem)
        )
    preference = float(problem.edges.value[problem.edges.own].min())
    return own if problem.exceeds(preference, problem.between[1]) else one


def swap(problem: Problem, exemplars: np.ndarray) -> np.ndarray:
    """Add, remove and swap exemplars until none gains; requires flat weights."""
    edges = problem.edges
    is_open = np.zeros(problem.n, dtype=bool)
    is_open[exemplars] = True
    preference = edges.value[edges.own].astype(np.float64)
    lowest, _ = problem.between
    swap_exemplars(edges.value, preference, lowest, problem.rounding, SEARCH.sweeps, False, is_open)
    return nearest_exemplars(problem, np.flatnonzero(is_open))


def iterated_local_search(problem: Problem, choice: np.ndarray) -> np.ndarray:
    """Iterated local search: replace a few exemplars at random, swap, and keep the best.

    The number of restarts is at most the number of exemplars, since few exemplars leave little to
    find. It requires full similarities and flat weights; otherwise the choice is returned as it is.
    """
    if not (problem.is_full and problem.weights.is_flat):
        return choice
    random = np.random.default_rng(0)
    best = worth(problem, choice)
    for _ in range(min(SEARCH.restarts, len(np.unique(choice)))):
        exemplars = np.unique(choice)
        n_changed = 1 + len(exemplars) // SEARCH.exemplars_a_change
        closed = random.choice(len(exemplars), n_changed, replace=False)
        opened = random.choice(problem.n, n_changed, replace=False)
        found = swap(problem, np.union1d(np.delete(exemplars, closed), opened))
        value = worth(problem, found)
        if value > best:
            choice, best = found, value
    return choice
