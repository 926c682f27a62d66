"""From a legal clustering to a better one, by every move that there is.

Rows move one by one and whole clusters join, or, where sizes do not count, exemplars are opened,
closed and swapped, and all rows choose anew.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from countless.exemplar.clustering import Problem, improve, nearest_exemplars, worth
from countless.exemplar.merge import join_clusters
from countless.kernels.swaps import swap_exemplars

SWEEPS, ROUNDS = 100, 10
# How often a summit is left at most, and by closing and opening one exemplar of how many.
KICKS, EXEMPLARS_A_CHANGE = 20, 50


def polish(problem: Problem, label: np.ndarray) -> np.ndarray:
    """Return the exemplar of each row where no move gains, from labels or exemplars of rows."""
    choice, _, _ = improve(problem, label, SWEEPS)
    if problem.is_full and problem.weights.is_flat:
        return swap(problem, choice)
    for _ in range(ROUNDS):
        label, n_joined = join_clusters(problem, choice)
        if not n_joined:
            break
        choice, _, _ = improve(problem, label, SWEEPS)
    return choice


def part_alike(problem: Problem) -> np.ndarray:
    """Return the exemplars where all rows are alike: one for all, or each its own.

    A prior may want sizes in between, which moves find from either end.
    """
    n = problem.n
    one, own = np.zeros(n, dtype=np.int64), np.arange(n)
    if not problem.weights.is_flat:
        return max((polish(problem, start) for start in (one, own)), key=partial(worth, problem))
    preference = float(problem.edges.value[problem.edges.own].min())
    return own if problem.exceeds(preference, problem.between[1]) else one


def swap(problem: Problem, exemplars: np.ndarray) -> np.ndarray:
    """Open, close and swap exemplars until nothing gains; the weights must be flat."""
    edges = problem.edges
    is_open = np.zeros(problem.n, dtype=bool)
    is_open[exemplars] = True
    preference = edges.value[edges.own].astype(np.float64)
    swap_exemplars(edges.value, preference, problem.between[0], problem.rounding, SWEEPS, is_open)
    return nearest_exemplars(problem, np.flatnonzero(is_open))


def search(problem: Problem, choice: np.ndarray) -> np.ndarray:
    """Go on from where nothing gains: change a few exemplars at random, swap, and keep the best.

    That is done no more often than there are exemplars, since few leave little to find. It is for
    full similarities and flat weights; others are returned as they are.
    """
    if not (problem.is_full and problem.weights.is_flat):
        return choice
    random = np.random.default_rng(0)
    best = worth(problem, choice)
    for _ in range(min(KICKS, len(np.unique(choice)))):
        exemplars = np.unique(choice)
        n_changed = 1 + len(exemplars) // EXEMPLARS_A_CHANGE
        closed = random.choice(len(exemplars), n_changed, replace=False)
        opened = random.choice(problem.n, n_changed, replace=False)
        found = swap(problem, np.union1d(np.delete(exemplars, closed), opened))
        value = worth(problem, found)
        if value > best:
            choice, best = found, value
    return choice
