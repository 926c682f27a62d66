"""Affinity propagation: max-product message passing on the exemplar model, with any size prior.

Iterations alternate between rows and columns (see `countless.kernels.messages`). Without a prior
both kinds of messages are damped, as in Frey and Dueck; with one only those of columns, as in
Tarlow, Zemel and Frey. Damping is raised when messages oscillate.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from countless._compat import OnPass, ignore_pass
from countless._exemplar.clustering import Problem, nearest_exemplars, reassign, worth
from countless._exemplar.local_search import iterated_local_search, local_optimum
from countless._exemplar.weights import Weights
from countless.kernels.counts import best_of_others, new_bins
from countless.kernels.messages import Maxima, Rows, Sizes, follow_rows, merge_maxima, pass_columns

logger = logging.getLogger("countless")


@dataclass(frozen=True)
class MaxProduct:
    """Constants of message passing; ``benchmarks/affinity.py`` shows what they are worth."""

    # Maximum number of column blocks, and minimum number of edges in each; a block stores maxima of
    # all rows, so that it must have several edges for each row.
    blocks: int = 16
    block_edges: int = 2**16
    edges_a_row: int = 8
    # Exemplars that repeat with one period over this many iterations are oscillating.
    watched: int = 60
    longest_period: int = 20
    # Exemplars that changed in the last iteration are evaluated only after this many iterations,
    # and then once in every so many.
    unsettled: int = 30
    evaluated_every: int = 4
    # Share of the messages implied by a starting clustering: the full ones would seldom leave it.
    start_share: float = 0.5
    # Maximum number of times that damping is raised, each time half of the way to 1.
    raises: int = 3


MAX_PRODUCT = MaxProduct()


class Found(NamedTuple):
    """A valid clustering, and how it was found."""

    choice: np.ndarray  # (n,), the exemplar of each row
    n_iter: int
    converged: bool
    damping: float  # the final one


class Snapshot(NamedTuple):
    """The messages after an iteration, of all pairs of rows; NaN where there is no similarity."""

    responsibility: np.ndarray  # (n, n), from row i to exemplar j, given these availabilities
    availability: np.ndarray  # (n, n), from exemplar j to row i
    evidence: np.ndarray  # (n,), the sum of both from a row to itself; above 0 for an exemplar


class Messages:
    """The messages of all edges, and an iteration that updates them.

    They start at 0 or, given a clustering, at a share of the weight that the last row of each
    cluster adds to it.
    """

    def __init__(self, problem: Problem, start: np.ndarray | None = None):
        self.edges, self.each = problem.edges, problem.each
        self.weights = problem.finite_weights
        n, n_edges = problem.n, len(self.edges.value)
        size = np.zeros(n, dtype=np.int64) if start is None else np.bincount(start, minlength=n)
        added = self.weights.size[size] - self.weights.size[np.maximum(size - 1, 0)]
        told = (MAX_PRODUCT.start_share * added).astype(self.edges.value.dtype)
        self.availability = np.repeat(told, np.diff(self.edges.start))
        self.belief = np.zeros(n)
        self.opens_alike = self.weights.opens_alike
        self.gap_alone = problem.price
        self.negligible = 1e-18 * problem.price / n
        self.sizes = size_table(self.weights)
        self.preference = self.edges.value[self.edges.own].astype(np.float64)
        self.opening = np.full(n, self.weights.number[1])
        least_edges = max(MAX_PRODUCT.edges_a_row * n, MAX_PRODUCT.block_edges)
        count = max(1, min(MAX_PRODUCT.blocks, n_edges // least_edges))
        ends = np.searchsorted(self.edges.start, np.linspace(0, n_edges, count + 1))
        self.blocks = [(first, last, _new_maxima(n)) for first, last in pairwise(ends)]
        no_start, nowhere = np.zeros(n + 1, dtype=np.int64), np.empty(0, dtype=np.int32)
        self.rows = Rows(0.0, np.zeros(n), no_start, nowhere, np.empty(0))
        self._put_preferences()
        # With damping 1 no message changes: only the maxima of each row are computed.
        self._pass(1.0)

    def update(self, damping: float) -> None:
        """Make one iteration."""
        row_damping = 0.0 if len(self.sizes.weight) else damping
        self.rows = follow_rows(
            self.rows, self.maxima, row_damping, self.gap_alone, self.negligible
        )
        self._pass(damping)
        if not self.opens_alike:
            self._count_exemplars(damping)

    @contextmanager
    def given_preferences(self) -> Iterator[None]:
        """Restore the given preferences while clusterings are compared."""
        self.edges.value[self.edges.own] = self.preference
        yield
        self._put_preferences()

    def snapshot(self) -> Snapshot:
        """Return the present messages as matrices."""
        n, edges = len(self.belief), self.edges
        row = edges.row_of if len(edges.row_of) else np.tile(np.arange(n), n)
        column = np.repeat(np.arange(n), np.diff(edges.start))
        similarity, availability = np.full((2, n, n), np.nan)
        similarity[row, column] = edges.value
        availability[row, column] = self.availability
        total = np.where(np.isnan(similarity), -np.inf, availability + similarity)
        best = np.repeat(total.max(axis=1, keepdims=True), n, axis=1)
        place = np.arange(n), total.argmax(axis=1)
        total[place] = -np.inf
        best[place] = total.max(axis=1)
        return Snapshot(similarity - best, availability, self.belief.copy())

    def close(self) -> None:
        """Restore the given preferences."""
        self.edges.value[self.edges.own] = self.preference

    @property
    def maxima(self) -> Maxima:
        return self.blocks[0][2]

    def _pass(self, damping: float) -> None:
        def update_block(first: int, last: int, maxima: Maxima) -> None:
            pass_columns(
                self.edges,
                first,
                last,
                self.rows,
                damping,
                self.sizes,
                self.availability,
                maxima,
                self.belief,
            )

        self.each(update_block, self.blocks)
        for _, _, part in self.blocks[1:]:
            merge_maxima(self.maxima, part)

    def _put_preferences(self) -> None:
        self.edges.value[self.edges.own] = self.preference + self.opening

    def _count_exemplars(self, damping: float) -> None:
        """Update the messages from the factor of the number of clusters to each exemplar."""
        n = len(self.belief)
        when_on, when_off = np.empty(n), np.empty(n)
        value, table = self.belief - self.opening, _count_table(self.weights.number)
        best_of_others(value, n, table, new_bins(n), when_on, when_off)
        fresh = when_on - when_off
        self.opening = damping * self.opening + (1.0 - damping) * fresh
        self._put_preferences()


def max_product(
    problem: Problem,
    *,
    damping: float,
    max_iter: int,
    convergence_iter: int,
    refine: bool = False,
    start: np.ndarray | None = None,
    on_pass: OnPass = ignore_pass,
) -> Found:
    """Cluster by message passing; the result is valid whether messages converge or not.

    Parameters
    ----------
    problem : Problem
    damping : float
        The initial share of the old message in the new one.
    max_iter : int
        Iterations at each damping.
    convergence_iter : int
        Number of iterations without a change of the exemplars after which they are final.
    refine : bool
        Without a prior: continue with local search where messages have converged; otherwise local
        search follows in any case. With a prior: move rows before, from one cluster and from
        singletons. Messages then start from the better clustering: that saves most iterations,
        and they still find clusterings that moves do not.
    start : ndarray of int, optional
        Labels of a clustering that is refined as well, and returned if its objective is higher.
    on_pass : callable
        Called with the objective of the best clustering so far and the number of exemplars.
    """
    first = None
    # No swaps with size weights: moves start from both extremes.
    if refine and problem.weights.counts_sizes:
        ends = np.zeros(problem.n, dtype=np.int64), np.arange(problem.n)
        first = _best(problem, [local_optimum(problem, end) for end in ends])
    messages = Messages(problem, first)
    try:
        watch = _iterate(problem, messages, damping, max_iter, convergence_iter, on_pass)
    finally:
        messages.close()
    steady = watch.converged and watch.damping == damping
    if steady and not problem.weights.counts_sizes:
        choice = reassign(problem, np.flatnonzero(watch.exemplars))
    else:
        choice, steady = watch.best, False
    if refine or start is not None or not steady:
        starts = [choice, *([] if start is None else [start])]
        found = [local_optimum(problem, one) for one in starts]
        choice = _best(problem, found if first is None else [*found, first])
    if refine:
        choice = iterated_local_search(problem, choice)
    return Found(choice, watch.n_iter, watch.converged, watch.damping)


def snapshots(problem: Problem, *, damping: float, n_iter: int) -> Iterator[Snapshot]:
    """Yield the messages after each iteration, for display."""
    messages = Messages(problem)
    try:
        for _ in range(n_iter):
            messages.update(damping)
            yield messages.snapshot()
    finally:
        messages.close()


def _best(problem: Problem, choices: list[np.ndarray]) -> np.ndarray:
    return max(choices, key=partial(worth, problem))


class _Watch:
    """History of the iterations: exemplars, convergence, and the best clustering so far."""

    def __init__(self, problem: Problem, damping: float):
        self.problem = problem
        self.damping = damping
        self.converged = False
        self.n_iter = 0
        self.exemplars = np.zeros(problem.n, dtype=bool)
        self.stays = True  # whether the extrapolated beliefs give the same exemplars
        self._belief = np.zeros(problem.n)
        self.best = np.zeros(problem.n, dtype=np.int64)  # one cluster, until there are exemplars
        self.best_worth = worth(problem, self.best)
        self.unchanged = 0
        self.recent: list[int] = []
        self._seen: set[int] = set()

    def look(self, messages: Messages, last: bool) -> None:
        """Record the exemplars after an iteration, and evaluate their clustering."""
        self.n_iter += 1
        exemplars = messages.belief > 0
        same = np.array_equal(exemplars, self.exemplars)
        self.unchanged = self.unchanged + 1 if same else 1
        self.exemplars = exemplars
        if self.problem.weights.counts_sizes:
            self.stays = np.array_equal(self._ahead(messages.belief) > 0, exemplars)
        self.recent.append(hash(exemplars.tobytes()))
        # Early exemplars are many, change in every iteration, and are seldom good.
        is_late, every = self.n_iter > MAX_PRODUCT.unsettled, MAX_PRODUCT.evaluated_every
        its_turn = is_late and self.n_iter % every == 0
        if not exemplars.any() or not (same or its_turn or last):
            return
        column = messages.maxima.column
        key = hash(column.tobytes()) if self.problem.weights.counts_sizes else self.recent[-1]
        if key in self._seen:
            return
        self._seen.add(key)
        choice = nearest_exemplars(self.problem, np.flatnonzero(exemplars))
        if self.problem.weights.counts_sizes:
            chosen = np.where(exemplars[column], column, choice)
            choice = np.where(exemplars, choice, chosen)
        with messages.given_preferences():
            value = worth(self.problem, choice)
        if value > self.best_worth:
            self.best, self.best_worth = choice, value

    def _ahead(self, belief: np.ndarray) -> np.ndarray:
        """Extrapolate beliefs to their limit if each step is the damping times the previous one."""
        step = belief - self._belief
        self._belief = belief.copy()
        return belief + step * self.damping / (1.0 - self.damping)

    def swings(self) -> bool:
        """Return whether exemplars oscillate with a constant period."""
        recent = self.recent[-MAX_PRODUCT.watched :]
        if len(recent) < MAX_PRODUCT.watched or self.unchanged > MAX_PRODUCT.longest_period:
            return False
        return any(recent[p:] == recent[:-p] for p in range(2, MAX_PRODUCT.longest_period + 1))


def _iterate(problem, messages, damping, max_iter, convergence_iter, on_pass) -> _Watch:
    """Update messages until the exemplars are constant; raise damping where they oscillate."""
    watch = _Watch(problem, damping)
    for raised in range(MAX_PRODUCT.raises + 1):
        if raised:
            watch.damping = (1.0 + watch.damping) / 2
            watch.recent.clear()
            logger.info("messages swing: damping raised to %.3g", watch.damping)
        for left in reversed(range(max_iter)):
            messages.update(watch.damping)
            watch.look(messages, last=left == 0)
            on_pass(watch.best_worth, int(watch.exemplars.sum()))
            settled = watch.unchanged >= convergence_iter and watch.n_iter > convergence_iter
            if settled and watch.stays and watch.exemplars.any():
                watch.converged = True
                return watch
            if watch.swings():
                break
    return watch


def size_table(weights: Weights) -> Sizes:
    """Return the log weights of cluster sizes, without the exemplar."""
    if not weights.counts_sizes:
        return Sizes(np.empty(0), np.empty(0), np.empty(0))
    step = np.diff(weights.size[1:])
    if not len(step):  # a single row
        step = np.zeros(1)
    least = np.minimum.accumulate(step[::-1])[::-1].copy()
    return Sizes(_count_table(weights.size[1:]), least, np.maximum.accumulate(step))


def _count_table(weight: np.ndarray) -> np.ndarray:
    """Return weights of counts, padded for one count below 0 and two above all."""
    return np.concatenate([[-np.inf], weight, [weight[-1]] * 2])


def _new_maxima(n: int) -> Maxima:
    return Maxima(np.zeros(n), np.zeros(n), np.zeros(n, dtype=np.int64), np.arange(n))
