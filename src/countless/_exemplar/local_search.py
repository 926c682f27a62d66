"""Local search from a valid clustering, with all kinds of moves.

Rows move one at a time and whole clusters are merged; where sizes do not count, exemplars are
added, removed and swapped instead, and all rows are reassigned.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from countless._exemplar.clustering import Problem, improve, nearest_exemplars, worth
from countless._exemplar.merge import join_clusters
from countless.kernels.swaps import swap_exemplars


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
    swap_exemplars(
        edges.value, preference, problem.between[0], problem.rounding, SEARCH.sweeps, is_open
    )
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
