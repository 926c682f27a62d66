"""One Markov chain of the HDP mixture: shared clusters, concentrations and hyperparameters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from countless._mcmc.gibbs import SWEEPS_BEFORE_REFRESH, move_hyper
from countless._mcmc.hdp.split_merge import split_and_merge
from countless._mcmc.hdp.state import (
    Concentrations,
    PriorSpec,
    assign_rows,
    draw_shared,
    log_seating,
    move_local_clusters,
    seating_of,
)
from countless.models import BoundModel

# Which groups use a cluster mixes slowly. The moves that change it cost less than the others of a
# sweep: they are made N_PASSES times, with N_VISITS local clusters of each group.
N_PASSES, N_VISITS = 3, 2
# Split-merge proposals after each sweep: EARLY_TRIES in the first EARLY_SWEEPS, then N_TRIES.
N_TRIES, EARLY_TRIES, EARLY_SWEEPS = 4, 16, 20


class SharedDraw(NamedTuple):
    """One posterior draw: the stored part of a chain's state."""

    labels: np.ndarray  # (n_rows,), of the smallest sufficient integer type
    log_joint: float
    weights: np.ndarray  # (n_clusters + 1,); the last is that of all empty clusters
    at: Concentrations
    hyper: np.ndarray  # (n_hyper,), of the model


class SharedChain:
    """A Markov chain that starts from given labels.

    Parameters
    ----------
    model : BoundModel
        Component model of a cluster.
    given_prior : PriorSpec
        Both concentrations; those given as priors are sampled, too.
    rows : ndarray of shape (n_rows, n_features)
        As returned by ``model.rows``.
    group : ndarray of int32 of shape (n_rows,)
        The group of each row, 0, 1, ..., all of which occur.
    labels : ndarray of int of shape (n_rows,)
        Initial clusters, 0, 1, ...
    random : numpy.random.Generator
        Source of all random numbers.
    split_merge : bool
        Whether split-merge proposals are made after each sweep.
    sample_hyper : bool
        Whether hyperparameters of the model that were not given are sampled.
    """

    def __init__(
        self,
        model: BoundModel,
        given_prior: PriorSpec,
        rows: np.ndarray,
        group: np.ndarray,
        labels: np.ndarray,
        random: np.random.Generator,
        *,
        split_merge: bool = True,
        sample_hyper: bool = True,
    ) -> None:
        self.model, self.given_prior, self.rows, self.random = model, given_prior, rows, random
        self.group = np.ascontiguousarray(group, dtype=np.int32)
        self._split_merge, self.n_swept = split_merge, 0
        self._free = np.flatnonzero(model.hyper.free) if sample_hyper else np.empty(0, dtype=int)
        self.seating = seating_of(model, rows, self.group, labels, int(group.max()) + 1)
        self.at = given_prior.draw(random)
        self.draw_shared()

    @property
    def n_clusters(self) -> int:
        """Number of nonempty clusters."""
        return self.seating.n_clusters

    def sweep(self) -> None:
        """Update the clusters of rows, weights, both concentrations and hyperparameters."""
        self.n_swept += 1
        if self.n_swept % SWEEPS_BEFORE_REFRESH == 0:
            self._sum_afresh()
        for _ in range(N_PASSES):
            self.assign_rows()
            self.move_local_clusters(N_VISITS)
            self.draw_shared()
        if self._split_merge:
            self.split_and_merge(EARLY_TRIES if self.n_swept <= EARLY_SWEEPS else N_TRIES)
            self.draw_shared()
        if len(self._free):
            self.move_hyper()

    def assign_rows(self) -> None:
        """Draw the cluster of each row in turn, given all others."""
        self.seating = assign_rows(
            self.seating, self.model, self.rows, self.group, self.at, self.random
        )

    def move_local_clusters(self, n_visits: int) -> None:
        """Draw the global cluster of ``n_visits`` local clusters of each group."""
        self.seating = move_local_clusters(
            self.seating, self.model, self.rows, self.group, self.at, self.random, n_visits
        )

    def split_and_merge(self, n_tries: int) -> None:
        """Make ``n_tries`` split-merge proposals."""
        self.seating = split_and_merge(
            self.seating, self.model, self.rows, self.group, self.at, self.random, n_tries
        )

    def draw_shared(self) -> None:
        """Draw the weights of clusters and both concentrations."""
        self.seating, self.at = draw_shared(self.seating, self.given_prior, self.at, self.random)

    def move_hyper(self) -> None:
        """Sample some hyperparameters of the model, given the clusters."""
        self.model = move_hyper(self.model, self.seating.statistics, self._free, self.random)

    def log_joint(self) -> float:
        """Return the log joint density of rows, clusters, weights and all sampled parameters.

        The density of the weights is that of their log ratios, which is bounded.
        """
        total = float(self.model.log_marginal(self.seating.statistics).sum())
        total += np.log(self.seating.weights).sum()
        total += log_seating(self.seating, self.at) + self.given_prior.log_density(self.at)
        return total + self.model.hyper.log_prior(self.model.hyper.value)

    def record(self) -> SharedDraw:
        """Return the present state as a draw."""
        labels = self.seating.labels.astype(np.min_scalar_type(self.n_clusters - 1))
        weights = self.seating.weights
        return SharedDraw(labels, self.log_joint(), weights, self.at, self.model.hyper.value)

    def _sum_afresh(self) -> None:
        statistics = self.model.statistics(self.rows, self.seating.labels)
        self.seating = self.seating._replace(statistics=statistics)


def concentrations_of(draws: Sequence[Sequence[SharedDraw]]) -> dict[str, np.ndarray]:
    """Return both concentrations in each draw of each chain, (n_chains, n_draws)."""
    at = np.array([[draw.at for draw in chain] for chain in draws])
    return {name: at[:, :, place] for place, name in enumerate(Concentrations._fields)}
