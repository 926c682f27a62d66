"""One Markov chain over clusters that groups share, with the concentrations and the model's own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from countless.bayes.gibbs import SWEEPS_BEFORE_REFRESH, move_hyper
from countless.bayes.hdp_seating import (
    Believed,
    Concentrations,
    assign_rows,
    draw_shared,
    log_seating,
    move_local_clusters,
    seating_of,
)
from countless.bayes.hdp_split_merge import split_and_merge
from countless.models import BoundModel

# Clusters of a few groups come and go slowly, by moves that cost less than the others of a sweep:
# these are made so many times, with local clusters of so many rows of each group.
N_PASSES, N_VISITS = 3, 2
# Splits and merges that are tried after each sweep: more of them while a chain finds its way.
N_TRIES, EARLY_TRIES, EARLY_SWEEPS = 4, 16, 20


class SharedDraw(NamedTuple):
    """What is kept of a state."""

    labels: np.ndarray  # (n_rows,), in the smallest type that holds them
    log_joint: float
    weights: np.ndarray  # (n_clusters + 1,); the last is that of all clusters without rows
    at: Concentrations
    hyper: np.ndarray  # (n_hyper,), of the model


class SharedChain:
    """A chain that starts from given labels.

    Parameters
    ----------
    model : BoundModel
        What a cluster looks like.
    believed : Believed
        Both concentrations, or their priors; those are drawn, too.
    rows : ndarray of shape (n_rows, n_features)
        As ``model.rows`` makes them.
    group : ndarray of int32 of shape (n_rows,)
        The group of each row, 0, 1, ..., all of which occur.
    labels : ndarray of int of shape (n_rows,)
        The clusters to start from, 0, 1, ...
    random : numpy.random.Generator
        Where all draws come from.
    split_merge : bool
        Whether splits and merges are tried after each sweep.
    sample_hyper : bool
        Whether hyperparameters of the model that were not given are drawn.
    """

    def __init__(
        self,
        model: BoundModel,
        believed: Believed,
        rows: np.ndarray,
        group: np.ndarray,
        labels: np.ndarray,
        random: np.random.Generator,
        *,
        split_merge: bool = True,
        sample_hyper: bool = True,
    ) -> None:
        self.model, self.believed, self.rows, self.random = model, believed, rows, random
        self.group = np.ascontiguousarray(group, dtype=np.int32)
        self._split_merge, self.n_swept = split_merge, 0
        self._free = np.flatnonzero(model.hyper.free) if sample_hyper else np.empty(0, dtype=int)
        self.seating = seating_of(model, rows, self.group, labels, int(group.max()) + 1)
        self.at = believed.draw(random)
        self.draw_shared()

    @property
    def n_clusters(self) -> int:
        """How many clusters have rows."""
        return self.seating.n_clusters

    def sweep(self) -> None:
        """Move rows, clusters, their weights, both concentrations and hyperparameters."""
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
        """Draw the clusters of local clusters, those of so many rows of each group."""
        self.seating = move_local_clusters(
            self.seating, self.model, self.rows, self.group, self.at, self.random, n_visits
        )

    def split_and_merge(self, n_tries: int) -> None:
        """Try so many splits and merges."""
        self.seating = split_and_merge(
            self.seating, self.model, self.rows, self.group, self.at, self.random, n_tries
        )

    def draw_shared(self) -> None:
        """Draw the weights of clusters and both concentrations."""
        self.seating, self.at = draw_shared(self.seating, self.believed, self.at, self.random)

    def move_hyper(self) -> None:
        """Move some hyperparameters of the model, given the clusters."""
        self.model = move_hyper(self.model, self.seating.statistics, self._free, self.random)

    def log_joint(self) -> float:
        """Return the log density of rows, clusters, weights and all parameters that are drawn.

        Weights are measured by the logs of their ratios, in which their density has no poles.
        """
        total = float(self.model.log_marginal(self.seating.statistics).sum())
        total += np.log(self.seating.weights).sum()
        total += log_seating(self.seating, self.at) + self.believed.log_density(self.at)
        return total + self.model.hyper.log_prior(self.model.hyper.value)

    def record(self) -> SharedDraw:
        """Return what is kept of the present state."""
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
