"""One Markov chain of the HDP mixture: shared clusters, concentrations and hyperparameters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from countless._mcmc.hdp.split_merge import split_and_merge
from countless._mcmc.hdp.state import (
    Concentrations,
    PriorSpec,
    assign_rows,
    draw_weights,
    log_prior_of_state,
    move_local_clusters,
    state_of,
)
from countless._mcmc.partition_chain import SWEEPS_BEFORE_REFRESH, move_hyper
from countless.models import BoundModel


@dataclass(frozen=True)
class Tuning:
    """Constants of a sweep; they change how fast the chain mixes, but not its posterior.

    Which groups use a cluster mixes slowly. The moves that change it cost less than the others, and
    are made several times in each sweep. The values were chosen by ``benchmarks/hdp.py``.
    """

    passes: int = 3  # of Gibbs moves in each sweep
    local_moves: int = 2  # local clusters of each group that move in each pass
    proposals: int = 4  # split-merge proposals after each sweep
    early_proposals: int = 16  # the same in the first sweeps
    early_sweeps: int = 20


TUNING = Tuning()


class HDPDraw(NamedTuple):
    """One posterior draw: the stored part of a chain's state."""

    labels: np.ndarray  # (n_rows,), of the smallest sufficient integer type
    log_joint: float
    weights: np.ndarray  # (n_clusters + 1,); the last is that of all empty clusters
    concentrations: Concentrations
    hyper: np.ndarray  # (n_hyper,), of the model


class HDPChain:
    """A Markov chain that starts from given labels.

    Parameters
    ----------
    model : BoundModel
        Component model of a cluster.
    given_prior : PriorSpec
        Concentrations and discount; those given as priors are sampled, too.
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
        self.state = state_of(model, rows, self.group, labels, int(group.max()) + 1)
        self.concentrations = given_prior.draw(random)
        self.draw_weights()

    @property
    def n_clusters(self) -> int:
        """Number of nonempty clusters."""
        return self.state.n_clusters

    def sweep(self) -> None:
        """Update the clusters of rows, weights, both concentrations and hyperparameters."""
        self.n_swept += 1
        if self.n_swept % SWEEPS_BEFORE_REFRESH == 0:
            self._sum_afresh()
        for _ in range(TUNING.passes):
            self.assign_rows()
            self.move_local_clusters(TUNING.local_moves)
            self.draw_weights()
        if self._split_merge:
            early = self.n_swept <= TUNING.early_sweeps
            self.split_and_merge(TUNING.early_proposals if early else TUNING.proposals)
            self.draw_weights()
        if len(self._free):
            self.move_hyper()

    def assign_rows(self) -> None:
        """Draw the cluster of each row in turn, given all others."""
        self.state = assign_rows(
            self.state, self.model, self.rows, self.group, self.concentrations, self.random
        )

    def move_local_clusters(self, n_local_moves: int) -> None:
        """Draw the global cluster of ``n_local_moves`` local clusters of each group."""
        self.state = move_local_clusters(
            self.state,
            self.model,
            self.rows,
            self.group,
            self.concentrations,
            self.random,
            n_local_moves,
        )

    def split_and_merge(self, n_proposals: int) -> None:
        """Make ``n_proposals`` split-merge proposals."""
        self.state = split_and_merge(
            self.state,
            self.model,
            self.rows,
            self.group,
            self.concentrations,
            self.random,
            n_proposals,
        )

    def draw_weights(self) -> None:
        """Draw the weights of clusters and both concentrations."""
        self.state, self.concentrations = draw_weights(
            self.state, self.given_prior, self.concentrations, self.random
        )

    def move_hyper(self) -> None:
        """Sample some hyperparameters of the model, given the clusters."""
        self.model = move_hyper(self.model, self.state.statistics, self._free, self.random)

    def log_joint(self) -> float:
        """Return the log joint density of rows, clusters, weights and all sampled parameters.

        The density of the weights is that of their log ratios, which is bounded.
        """
        total = float(self.model.log_marginal(self.state.statistics).sum())
        total += np.log(self.state.weights).sum()
        total += log_prior_of_state(self.state, self.concentrations) + self.given_prior.log_density(
            self.concentrations
        )
        return total + self.model.hyper.log_prior(self.model.hyper.value)

    def record(self) -> HDPDraw:
        """Return the present state as a draw."""
        labels = self.state.labels.astype(np.min_scalar_type(self.n_clusters - 1))
        weights = self.state.weights
        return HDPDraw(
            labels, self.log_joint(), weights, self.concentrations, self.model.hyper.value
        )

    def _sum_afresh(self) -> None:
        statistics = self.model.statistics(self.rows, self.state.labels)
        self.state = self.state._replace(statistics=statistics)


def concentrations_of(draws: Sequence[Sequence[HDPDraw]]) -> dict[str, np.ndarray]:
    """Return concentrations in each draw of each chain, (n_chains, n_draws); a discount if any."""
    values = np.array([[draw.concentrations for draw in chain] for chain in draws])
    named = {name: values[:, :, place] for place, name in enumerate(Concentrations._fields)}
    if not named["discount"].any():
        del named["discount"]
    return named
