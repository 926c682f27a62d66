"""Several Markov chains side by side on threads, and what is kept of them when time runs out.

A chain has a generator of its own, so that its draws do not depend on how many threads there are or
on who is served first. Chains take turns, so that a run that is stopped has draws of all of them.
A run may end early, after numbers of sweeps that are fixed beforehand, where chains agree.
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

# A chain is left alone for so many seconds; then another one has its turn.
TURN = 0.05


class Chain(Protocol):
    """What every chain offers."""

    @property
    def n_clusters(self) -> int:
        """How many clusters there are now."""

    def sweep(self) -> None:
        """Move everything once."""

    def log_joint(self) -> float:
        """Return the log density of the data and of everything that is drawn."""

    def record(self) -> Any:
        """Return what is kept of the present state, with its ``log_joint``.

        Later sweeps must not change it.
        """


class Schedule(NamedTuple):
    """How long each chain runs, and what is kept."""

    n_sweeps: int  # in all
    burn_in: int  # of them nothing is kept of the first ones
    thin: int = 1  # and then one in so many is kept
    looks: tuple[int, ...] = ()  # sweeps after which the run ends, if chains agree
    halve: bool = False  # forget the first half, wherever the run ends

    @property
    def ends(self) -> tuple[int, ...]:
        """The sweeps after which the run may end."""
        return (*self.looks, self.n_sweeps)

    @property
    def n_forgotten(self) -> int:
        """The sweeps of which nothing is kept, wherever the run ends."""
        return self.ends[0] // 2 if self.halve else self.burn_in

    def keeps(self, sweep: int, end: int) -> bool:
        """Tell whether the state after a sweep, counted from 1, is kept of a run that ends there.

        A run that ends later keeps no more of what lies before.
        """
        if self.halve:
            return sweep > end // 2 and sweep % self.thin == 0
        return sweep > self.burn_in and (sweep - self.burn_in) % self.thin == 0


class _Run:
    """A chain on its way."""

    def __init__(self, chain: Chain, schedule: Schedule) -> None:
        self.chain, self.schedule = chain, schedule
        self.n_done = 0
        self._kept: dict[int, Any] = {}

    def advance(self, end: int) -> list[tuple[float, int]]:
        """Sweep until the turn is over; return the log joint and the clusters after each sweep."""
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
        """Return what is kept of a run that ends there, and forget the rest."""
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
    """Run chains, and return what they recorded.

    Parameters
    ----------
    chains : sequence of Chain
        Each with its own generator.
    schedule : Schedule
        How many sweeps, and which are kept.
    agree : callable, optional
        Tells from the draws of each chain whether they agree; asked at ``schedule.looks``.
    n_jobs : int, optional
        Threads, as in scikit-learn; they do not change the draws.
    on_pass : callable
        Told the log joint and the number of clusters after each sweep, on the calling thread.

    Returns
    -------
    list of lists
        The draws of each chain, as many of each. A run that is stopped by Ctrl-C returns what it
        has, with a warning, unless that is nothing.
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
    """Let all chains come to the same number of sweeps."""
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
        wait(waiting)  # a chain that is in the middle of a sweep


def _draws_so_far(runs: Sequence[_Run], stopped: KeyboardInterrupt) -> list[list[Any]]:
    """Return as many draws of each chain that has any, or let the interruption through."""
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
