"""Run several Markov chains in parallel on threads, with burn-in, thinning and early stopping.

Each chain has its own random generator, so that its draws do not depend on the number of threads or
on their scheduling. Chains run in short turns, so that an interrupted run has draws of all of them.
A run may stop early if the chains agree; this is tested after fixed numbers of sweeps.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import Any, NamedTuple, Protocol

from sklearn.exceptions import ConvergenceWarning

from countless._compat import OnPass, ignore_pass
from countless._threads import count_threads, one_library_thread

# Seconds that a chain runs before another one has its turn.
TURN = 0.05


class Chain(Protocol):
    """The interface of a chain."""

    @property
    def n_clusters(self) -> int:
        """Present number of clusters."""

    def sweep(self) -> None:
        """Update all parts of the state once."""

    def log_joint(self) -> float:
        """Return the log joint density of the data and of all sampled quantities."""

    def record(self) -> Any:
        """Return the present state as a draw, with its ``log_joint``.

        It must not share memory that later sweeps change.
        """


class Schedule(NamedTuple):
    """Length of each chain, burn-in, thinning and stopping rule."""

    n_sweeps: int  # at most, burn-in included
    burn_in: int  # first sweeps that are discarded
    thin: int = 1  # every thin-th sweep after burn-in is kept
    test_sweeps: tuple[int, ...] = ()  # sweeps after which the run stops if chains agree
    halve: bool = False  # burn-in is the first half of the sweeps made

    @property
    def ends(self) -> tuple[int, ...]:
        """The sweeps after which the run may stop."""
        return (*self.test_sweeps, self.n_sweeps)

    @property
    def least_burn_in(self) -> int:
        """The sweeps that are discarded even if the run stops as early as possible."""
        return self.ends[0] // 2 if self.halve else self.burn_in

    def keeps(self, sweep: int, end: int) -> bool:
        """Return whether a sweep, counted from 1, is kept in a run that stops after ``end``.

        A sweep that is not kept in a short run is not kept in a longer one either.
        """
        if self.halve:
            return sweep > end // 2 and sweep % self.thin == 0
        return sweep > self.burn_in and (sweep - self.burn_in) % self.thin == 0


class _Run:
    """A chain with the draws kept so far."""

    def __init__(self, chain: Chain, schedule: Schedule) -> None:
        self.chain, self.schedule = chain, schedule
        self.n_done = 0
        self._kept: dict[int, Any] = {}

    def advance(self, end: int) -> list[tuple[float, int]]:
        """Sweep until the turn is over; return log joint and number of clusters of each sweep."""
        passes = []
        limit = time.monotonic() + TURN
        while True:
            self.chain.sweep()
            self.n_done += 1
            if self.schedule.keeps(self.n_done, end):
                draw = self._kept[self.n_done] = self.chain.record()
                log_joint = draw.log_joint
            else:
                log_joint = self.chain.log_joint()
            passes.append((log_joint, self.chain.n_clusters))
            if self.n_done == end or time.monotonic() > limit:
                return passes

    def draws(self, end: int) -> list[Any]:
        """Return the draws of a run that stops after ``end``, and discard all others."""
        kept = self._kept.items()
        self._kept = {sweep: draw for sweep, draw in kept if self.schedule.keeps(sweep, end)}
        return list(self._kept.values())


def run_chains(
    chains: Sequence[Chain],
    schedule: Schedule,
    *,
    agree: Callable[[list[list[Any]]], bool] | None = None,
    n_jobs: int | None = None,
    on_pass: OnPass = ignore_pass,
) -> list[list[Any]]:
    """Run chains, and return their draws.

    Parameters
    ----------
    chains : sequence of Chain
        Each with its own random generator.
    schedule : Schedule
        Number of sweeps, burn-in and thinning.
    agree : callable, optional
        Stopping rule: called after each of ``schedule.test_sweeps`` with the draws of each chain,
        it returns whether they agree.
    n_jobs : int, optional
        Number of threads, as in scikit-learn; the draws do not depend on it.
    on_pass : callable
        Called with the log joint density and the number of clusters after each sweep, on the
        calling thread.

    Returns
    -------
    list of lists
        The draws of each chain, equally many of each. A run interrupted by Ctrl-C returns the draws
        so far, with a warning; without any draws KeyboardInterrupt is raised.
    """
    runs = [_Run(chain, schedule) for chain in chains]
    n_threads = min(count_threads(n_jobs), len(runs))
    with one_library_thread(), ThreadPoolExecutor(n_threads) as pool:
        for end in schedule.ends:
            try:
                _advance_all(pool, runs, end, on_pass)
            except KeyboardInterrupt as stopped:
                return _draws_so_far(runs, stopped)
            draws = [run.draws(end) for run in runs]
            if agree is not None and end < schedule.n_sweeps and agree(draws):
                break
    return draws


def _advance_all(pool: ThreadPoolExecutor, runs: Sequence[_Run], end: int, on_pass: OnPass) -> None:
    """Advance all chains to ``end`` sweeps."""
    waiting: dict[Future, _Run] = {pool.submit(run.advance, end): run for run in runs}
    try:
        while waiting:
            for future in wait(waiting, return_when=FIRST_COMPLETED).done:
                run = waiting.pop(future)
                for log_joint, n_clusters in future.result():
                    on_pass(log_joint, n_clusters)
                if run.n_done < end:
                    waiting[pool.submit(run.advance, end)] = run
    finally:
        for future in waiting:
            future.cancel()
        wait(waiting)  # a chain in the middle of a sweep finishes its turn


def _draws_so_far(runs: Sequence[_Run], stopped: KeyboardInterrupt) -> list[list[Any]]:
    """Return equally many draws of each chain that has any, or raise the interruption again."""
    fewest = min(run.n_done for run in runs)
    kept = [draws for run in runs if (draws := run.draws(run.n_done))]
    if not kept:
        raise stopped
    n_draws = min(map(len, kept))
    warnings.warn(
        f"stopped after {fewest} of {runs[0].schedule.n_sweeps} sweeps; "
        f"{n_draws} draws of {len(kept)} chains are kept",
        ConvergenceWarning,
        stacklevel=2,
    )
    return [draws[:n_draws] for draws in kept]
