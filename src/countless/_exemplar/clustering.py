"""Clusterings by exemplars: each row's exemplar, the objective, and local search moves.

A clustering is ``choice``, the exemplar of each row. It is valid where exemplars choose themselves
and rows have an edge to their exemplar. The objective is the sum of all similarities to exemplars
(net similarity) plus the log weights of the prior.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from countless._compat import OnPass, ignore_pass
from countless._exemplar.similarity import LEAST_SHIFT
from countless._exemplar.weights import Weights
from countless._threads import Each, steps
from countless.kernels.edges import Edges
from countless.kernels.exemplars import (
    Groups,
    add_up_columns,
    choose_exemplars,
    link_rows,
    net_of_choice,
    sweep_rows,
)

COLUMNS_AT_ONCE = 256


@dataclass(frozen=True)
class Problem:
    """Similarities with preferences, the weights of a prior, and the thread pool."""

    edges: Edges
    weights: Weights
    each: Each

    @property
    def n(self) -> int:
        return len(self.edges.own)

    @property
    def is_full(self) -> bool:
        return not len(self.edges.row_of)

    @cached_property
    def between(self) -> tuple[float, float]:
        """The lowest and the highest similarity of a row to another one."""
        value, own = self.edges.value, self.edges.own
        if len(value) == len(own):
            return 0.0, 0.0
        preference = value[own]
        other = np.setdiff1d(np.arange(len(own) + 1), own)[0]  # an edge between two rows
        value[own] = value[other]
        low, high = float(value.min()), float(value.max())
        value[own] = preference
        return low, high

    @property
    def all_alike(self) -> bool:
        """Whether rows differ only by the perturbations that break ties."""
        preference = self.edges.value[self.edges.own]
        return (
            self.is_full
            and not self.exceeds(*self.between[::-1])
            and not self.exceeds(float(preference.max()), float(preference.min()))
        )

    def exceeds(self, high: float, low: float) -> bool:
        """Return whether one similarity exceeds another by more than the tie-breaking shift."""
        limits = np.finfo(self.edges.value.dtype)
        shift = limits.eps * max(abs(low), abs(high)) + LEAST_SHIFT * limits.tiny
        return bool(high - low > 8 * shift)

    @cached_property
    def price(self) -> float:
        """Upper bound of the difference between the objectives of two clusterings."""
        preference = self.edges.value[self.edges.own]
        low, high = self.between
        spread = max(high, float(preference.max())) - min(low, float(preference.min()))
        return 2.0 * self.n * spread + self.weights.spread or 1.0  # positive if all is equal

    @cached_property
    def finite_weights(self) -> Weights:
        """The weights, with a finite penalty in place of minus infinity."""
        return self.weights.bounded(self.price)

    @cached_property
    def rounding(self) -> float:
        """Gains below this are rounding errors."""
        return 1e-13 * self.price


def worth(problem: Problem, choice: np.ndarray) -> float:
    """Return the net similarity plus the prior's log weights; minus infinity if not valid."""
    size = np.bincount(choice, minlength=problem.n)
    used = np.flatnonzero(size)
    if not np.array_equal(choice[used], used):
        return -np.inf
    return net_of_choice(problem.edges, choice, size) + problem.weights.of(size[used])


def nearest_exemplars(problem: Problem, exemplars: np.ndarray) -> np.ndarray:
    """Return the most similar exemplar of each row; rows without an edge to any become one."""
    choice = np.empty(problem.n, dtype=np.int64)
    choose_exemplars(problem.edges, exemplars, np.empty(problem.n), choice)
    return choice


def reassign(problem: Problem, exemplars: np.ndarray) -> np.ndarray:
    """Assign rows, take the best exemplar of each cluster, and assign rows again."""
    groups, _ = group(problem, nearest_exemplars(problem, exemplars))
    return nearest_exemplars(problem, np.sort(groups.exemplar[groups.exemplar >= 0]))


def group(problem: Problem, label: np.ndarray) -> tuple[Groups, int]:
    """Return clusters with their best exemplars, and the number of clusters."""
    n = problem.n
    counts = [np.empty(n, dtype=np.int64) for _ in range(6)]
    size, exemplar, reach, head, after, before = counts
    label = label.astype(np.int64)
    groups = Groups(label, size, exemplar, np.empty(n), reach, head, after, before)

    def add_up(first: int, last: int) -> None:
        add_up_columns(problem.edges, label, first, last, groups.total, groups.reach)

    problem.each(add_up, steps(n, COLUMNS_AT_ONCE))
    return groups, link_rows(groups, n)


def improve(
    problem: Problem, label: np.ndarray, max_iter: int, on_pass: OnPass = ignore_pass
) -> tuple[np.ndarray, int, bool]:
    """Move rows one at a time, with the best exemplars of both clusters, while the objective grows.

    Each row in turn joins or opens the cluster that gains most (iterated conditional modes).
    Clusters without a row that all of their rows have an edge to are dissolved first.

    Returns
    -------
    choice, n_iter, converged
        The exemplar of each row, the number of sweeps, and whether the last one moved no row.
    """
    groups, n_clusters = group(problem, label)
    if (groups.exemplar[groups.label] < 0).any():
        apart = np.where(groups.exemplar[groups.label] < 0, np.arange(problem.n), -1)
        groups, n_clusters = group(problem, _rename(groups.label, apart))
    weights, least = problem.finite_weights, problem.rounding
    n_moves, n_iter = -1, 0
    while n_moves and n_iter < max_iter:
        n_clusters, n_moves = sweep_rows(
            problem.edges, weights.size, weights.number, n_clusters, least, groups
        )
        n_iter += 1
        choice = groups.exemplar[groups.label]
        on_pass(worth(problem, choice), n_clusters)
    return groups.exemplar[groups.label], n_iter, n_moves == 0


def _rename(label: np.ndarray, apart: np.ndarray) -> np.ndarray:
    """Return labels in which each row marked in ``apart`` is a singleton."""
    joined = np.where(apart >= 0, len(label) + apart, label)
    return np.unique(joined, return_inverse=True)[1]
