"""Progress of a fit, pass by pass, through scikit-learn's callbacks where it has them."""

import math
import time
from collections.abc import Callable
from itertools import pairwise
from typing import Any

from .._data.table import counted
from .._report.plain import number

SHOWN_GAINS = 3  # number of passes whose gains predict the convergence of the objective


class Listener:
    """A scikit-learn callback with empty methods, to be overridden."""

    def setup(self, estimator: Any, context: Any) -> None:
        """Nothing is needed before a fit."""

    def teardown(self, estimator: Any, context: Any) -> None:
        """Nothing is left after a fit."""

    def on_fit_task_begin(self, estimator: Any, context: Any, **details: Any) -> None:
        """Nothing is known at the start of a pass."""

    def on_fit_task_end(
        self, estimator: Any, context: Any, *, metadata: Any = None, **details: Any
    ) -> None:
        """Report the end of a pass; other tasks have no number."""
        if metadata and "pass" in metadata:
            self.on_pass(metadata)

    def on_pass(self, found: Any) -> None:
        """Receive the number, the objective and the clusters of a pass."""
        raise NotImplementedError


class PassProgress(Listener):
    """A scikit-learn callback that reports the progress of a fit after each pass.

    Parameters
    ----------
    say : callable
        Called with a line after each pass.
    n_rows : int
        Number of rows in a pass.
    max_iter : int, optional
        Maximum number of passes.
    tol : float, default=0.0
        Relative gain of the objective below which passes stop.
    clock : callable
        The time in seconds.

    Examples
    --------
    >>> times = iter([7.0, 9.0])
    >>> progress = PassProgress(print, n_rows=3_000_000, max_iter=5, clock=lambda: next(times))
    >>> for n, objective in ((1, 14.5), (2, 12.5)):
    ...     found = {"pass": n, "n_clusters": 3, "objective": objective}
    ...     progress.on_fit_task_end(None, None, metadata=found)
    pass 1, 3 clusters, objective 14.5
    pass 2, 3 clusters, objective 12.5, 2.0 s a pass, 1.5 M rows/s, at most 6 s left
    """

    def __init__(
        self,
        say: Callable[[str], None],
        *,
        n_rows: int,
        max_iter: int | None = None,
        tol: float = 0.0,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self.say = say
        self._n_rows, self._max_iter, self._tol, self._clock = n_rows, max_iter, tol, clock
        self._last = self._seconds = 0.0
        self._objectives: list[float] = []

    def on_pass(self, found: Any) -> None:
        """Report the result of a pass."""
        now = self._clock()
        took, self._last = now - self._last, now
        line = (
            f"pass {found['pass']}, {counted(found['n_clusters'], 'cluster')}, "
            f"objective {number(found['objective'])}"
        )
        # The time before the first pass is left out: it includes the choice of the penalty.
        if self._objectives:
            self._seconds = (self._seconds + took) / 2 if self._seconds else took
            rate = _rate(self._n_rows / max(took, 1e-9))
            line += f", {self._seconds:.1f} s a pass, {rate} rows/s"
        self._objectives = [*self._objectives[-SHOWN_GAINS:], found["objective"]]
        if self._seconds:
            line += f", {self._time_left(found['pass'])}"
        self.say(line)

    def _time_left(self, n_passes: int) -> str:
        passes = passes_left(self._objectives, self._tol)
        most = math.inf if self._max_iter is None else max(0, self._max_iter - n_passes)
        if passes is not None and passes < most:
            return f"about {duration(passes * self._seconds)} left"
        if math.isinf(most):
            return "time left unknown"
        return f"at most {duration(most * self._seconds)} left"


class SweepProgress(Listener):
    """A scikit-learn callback that reports the progress of all chains after each sweep.

    Parameters
    ----------
    say : callable
        Called with a line after each sweep.
    n_sweeps, n_chains : int
        Number of sweeps of each chain, and of chains.
    at_most : bool
        Whether chains may stop earlier.
    clock : callable
        The time in seconds.

    Examples
    --------
    >>> times = iter([7.0, 9.0])
    >>> progress = SweepProgress(print, n_sweeps=10, n_chains=2, clock=lambda: next(times))
    >>> for n in (1, 2):
    ...     progress.on_pass({"pass": n, "n_clusters": 3, "objective": -14.5})
    sweep 1 of 20 in 2 chains, 3 clusters, log joint -14.5
    sweep 2 of 20 in 2 chains, 3 clusters, log joint -14.5, about 36 s left
    """

    def __init__(
        self,
        say: Callable[[str], None],
        *,
        n_sweeps: int,
        n_chains: int,
        at_most: bool = False,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self.say = say
        self._n_in_all, self._n_chains, self._clock = n_sweeps * n_chains, n_chains, clock
        self._about = "at most" if at_most else "about"
        self._begun: float | None = None

    def on_pass(self, found: Any) -> None:
        """Report the progress of the chains."""
        n_done, now = found["pass"], self._clock()
        line = (
            f"sweep {n_done} of {self._n_in_all} in {counted(self._n_chains, 'chain')}, "
            f"{counted(found['n_clusters'], 'cluster')}, log joint {number(found['objective'])}"
        )
        if self._begun is None:
            self._begun = now
        else:
            seconds = (now - self._begun) / (n_done - 1)
            line += f", {self._about} {duration(seconds * (self._n_in_all - n_done))} left"
        self.say(line)


def passes_left(objectives: list[float], tol: float) -> int | None:
    """Predict how many passes are left until one gains less than ``tol``; None if unknown.

    Gains are extrapolated geometrically; if they do not shrink, or without a ``tol``, there is no
    prediction.

    Examples
    --------
    >>> passes_left([180.0, 140.0, 120.0, 110.0], tol=0.03)
    2
    >>> passes_left([130.0, 120.0, 110.0, 100.0], tol=0.001) is None
    True
    """
    gains = [before - after for before, after in pairwise(objectives)]
    if tol <= 0 or len(gains) < 2 or min(gains) <= 0 or gains[-1] >= gains[0]:
        return None
    enough = tol * abs(objectives[-1])
    factor = (gains[-1] / gains[0]) ** (1 / (len(gains) - 1))
    return max(1, math.ceil(math.log(enough / gains[-1]) / math.log(factor)))


def duration(seconds: float) -> str:
    """Format a duration.

    Examples
    --------
    >>> duration(0.2), duration(70), duration(600), duration(9000)
    ('1 s', '70 s', '10 min', '2.5 h')
    """
    if seconds <= 90:
        return f"{max(1, math.ceil(seconds))} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def _rate(per_second: float) -> str:
    for size, unit in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if per_second >= size:
            return f"{per_second / size:.3g}{unit}"
    return f"{per_second:.3g}"


def follow(estimator: Any, say: Callable[[str], None], shape: tuple[int, int]) -> None:
    """Attach a progress callback to an estimator if it supports one.

    Examples
    --------
    >>> from sklearn.cluster import HDBSCAN
    >>> follow(HDBSCAN(), print, (10, 2))
    """
    if not hasattr(estimator, "set_callbacks"):
        return
    if hasattr(estimator, "n_sweeps"):
        from .._mcmc.sampled import most_sweeps

        n_sweeps, n_chains = most_sweeps(estimator), estimator.n_chains
        may_end = n_sweeps != estimator.n_sweeps
        estimator.set_callbacks(
            SweepProgress(say, n_sweeps=n_sweeps, n_chains=n_chains, at_most=may_end)
        )
        return
    from .._search.dp_means import default_tol

    tol = getattr(estimator, "tol", 0.0)
    if tol is None:  # the default of DPMeans
        tol = default_tol(*shape)
    max_iter = getattr(estimator, "max_iter", None)
    estimator.set_callbacks(PassProgress(say, n_rows=shape[0], max_iter=max_iter, tol=tol))
