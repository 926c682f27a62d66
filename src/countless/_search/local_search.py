"""Local search over clusterings: the schedule of moves, the same for rows, groups and kernels.

A clustering offers moves whose change of the objective is exact, and makes them only where they
lower it. The search is a variable neighbourhood descent, from cheap moves to costly ones:

1. *split* clusters in two; while many are split, reassign the rows and split again;
2. *merge* pairs of clusters, and *reassign* rows until a pass gains little;
3. where that gains little: *move* single rows, or other parts of clusters;
4. where there is no such move: *over-split and repair*. Split clusters at a share of the penalty,
   reassign, merge, and undo all of it unless the objective is lower. This finds what no single move
   does: a split that gains only after the rows around it are reassigned, or a center that moves
   from one region to another.

It ends when none of these lowers the objective by more than a tolerance, which the objective of a
round is multiplied by.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from countless._compat import OnPass, ignore_pass


@dataclass(frozen=True)
class Schedule:
    """Constants of the schedule, chosen by ``benchmarks/dp_means.py`` and ``benchmarks/hdp.py``."""

    # While more than this share of the clusters is split in a round, merging and reassigning to
    # convergence is wasted: the next round follows after this many passes.
    growth_share: float = 0.05
    growth_passes: int = 2
    # Minimum gain of a pass, as a share of the minimum gain of a round; smaller for the last
    # passes: a pass is cheap, and many small gains add up.
    pass_share: float = 0.3
    last_pass_share: float = 0.03
    # Share of the penalty at which clusters are split in over-split and repair: reassigning the
    # rows around a split adds to its gain.
    over_split_share: float = 0.7
    # Number of clusters that the largest over-split makes: this multiple of the present number, or
    # at least this many where each has some rows.
    over_split_factor: int = 4
    over_split_clusters: int = 256
    over_split_rows: int = 4
    # Passes after the merges of over-split and repair.
    repair_passes: int = 4
    # Passes of 2-means inside each cluster that is split; later ones change little.
    halving_passes: int = 3
    # Largest number of Hartigan moves between two passes over the table; the largest gains first.
    moves_at_once: int = 2048
    # Gains below this share of the total cost are attributed to rounding.
    rounding: float = 1e-12


SCHEDULE = Schedule()


class OverSplit(NamedTuple):
    """One way of splitting at a price below the penalty."""

    share: float  # of the penalty
    enough: int  # number of clusters from which no further one is split


def over_splits(n_clusters: int, n_rows: int) -> list[OverSplit]:
    """Return the ways of over-splitting: to one more cluster, then to many."""
    many = min(SCHEDULE.over_split_clusters, n_rows // SCHEDULE.over_split_rows)
    many = max(SCHEDULE.over_split_factor * n_clusters, many)
    return [OverSplit(SCHEDULE.over_split_share, n_clusters + 1), OverSplit(0.0, many)]


class ClusterState(Protocol):
    """A clustering and its objective, as far as local search needs to know it.

    Attributes
    ----------
    n_passes
        Passes over the rows made so far.
    rounding
        Gains below this are attributed to rounding.
    is_large
        Whether there are so many clusters that over-split and repair is all that is tried when
        passes and merges gain little.
    """

    is_large: bool
    n_passes: int

    @property
    def n_clusters(self) -> int: ...

    @property
    def objective(self) -> float: ...

    @property
    def rounding(self) -> float: ...

    def reassign(self, share: float = 1.0) -> bool:
        """Assign rows to clusters of fixed means, then update these; return if a label changed.

        ``share`` is that of the penalties at which clusters are being split.
        """

    def split(self, share: float = 1.0) -> int:
        """Split clusters that gain more than this share of the penalties; return how many."""

    def merge(self) -> int:
        """Merge pairs of clusters while that lowers the objective; return how many."""

    def moves(self) -> Sequence[Callable[[], int]]:
        """Return the moves of parts of clusters; each returns how many it has made."""

    def over_splits(self) -> Sequence[OverSplit]:
        """Return the ways of over-splitting that are tried in turn until one gains."""

    def save(self) -> Any:
        """Save the clustering before a trial."""

    def accept(self, saved: Any) -> None:
        """Discard what was saved."""

    def restore(self, saved: Any) -> None:
        """Undo everything since `save`."""


class LocalSearch:
    """A run of local search: the state, the history of its objective, and the schedule."""

    def __init__(
        self, state: ClusterState, *, tol: float, max_iter: int, on_pass: OnPass = ignore_pass
    ):
        self.state = state
        self.tol, self.max_iter = tol, max_iter
        self.on_pass = on_pass
        self.history: list[float] = []
        self.converged = False
        self.little = 0.0  # minimum gain of the last round

    @property
    def has_passes(self) -> bool:
        """Whether there are passes left of ``max_iter``."""
        return self.state.n_passes < self.max_iter

    def note(self) -> float:
        """Record the objective; return its decrease since the last record."""
        self.history.append(self.state.objective)
        self.on_pass(self.history[-1], self.state.n_clusters)
        return self.history[-2] - self.history[-1] if len(self.history) > 1 else 0.0

    def run(self, on_round: Callable[[], None] = lambda: None) -> None:
        """Search until no move lowers the objective by more than a share ``tol`` of it.

        ``on_round`` is called before each round.
        """
        if not self.history:
            self.note()
        while not self.converged and self.has_passes:
            on_round()
            self.little = self.tol * abs(self.history[-1]) + self.state.rounding * (self.tol > 0)
            self.converged = self.improve(self.little)

    def finish(self) -> None:
        """Do the last passes, down to smaller gains than in rounds."""
        if self.tol > 0:  # with tol = 0 no further pass lowers the objective
            self.reassign_until(SCHEDULE.last_pass_share * self.little)

    def improve(self, little: float) -> bool:
        """Do one round; return whether no move gains more than ``little``."""
        state, before = self.state, self.history[-1]
        if state.split() > SCHEDULE.growth_share * state.n_clusters:
            for _ in range(SCHEDULE.growth_passes):
                state.reassign()
            self.note()
            return False
        state.merge()
        self.reassign_until(SCHEDULE.pass_share * little)
        if before - self.history[-1] > little:
            return False
        if state.is_large:
            return self._over_split_repeatedly(little)
        return not self.escape() or before - self.history[-1] <= little

    def reassign_until(self, least_gain: float) -> None:
        """Reassign until no label changes, or a pass does not gain more than this."""
        changed = True
        while changed and self.has_passes:
            changed = self.state.reassign()
            changed = self.note() > least_gain and changed

    def escape(self) -> bool:
        """Move parts of clusters, else over-split; return whether either was of use."""
        found = sum(move() for move in self.state.moves()) > 0
        found = found or any(self.over_split(way) for way in self.state.over_splits())
        self.note()
        return found

    def over_split(self, way: OverSplit) -> bool:
        """Over-split and repair; return whether that has lowered the objective."""
        state, before = self.state, self.state.objective
        saved, n_before = state.save(), 0
        while n_before < state.n_clusters < way.enough:  # reassigning may empty a half
            n_before = state.n_clusters
            if state.split(way.share):
                state.reassign(way.share)
        self.repair(before)
        if state.objective < before - state.rounding:
            state.accept(saved)
            return True
        state.restore(saved)
        return False

    def repair(self, before: float) -> None:
        """Reassign and merge after an over-split of clusters whose objective was ``before``."""
        self.state.reassign()
        self.state.merge()
        for _ in range(SCHEDULE.repair_passes):
            if not self.state.reassign():
                break

    def _over_split_repeatedly(self, little: float) -> bool:
        """Over-split and repair until that gains little; return whether it does.

        With many clusters hardly any other move lowers the objective after it.
        """
        while self.has_passes:
            for way in self.state.over_splits():
                self.over_split(way)
            if self.note() <= little:
                return True
        return False
