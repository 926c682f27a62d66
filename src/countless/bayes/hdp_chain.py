"""One Markov chain over clusters that groups share: direct assignment, with splits and merges.

The state is the cluster of each row, the weight of each cluster, both concentrations and, where
they are sampled, the hyperparameters of the model; parameters of clusters are integrated out.
One sweep (Teh et al., section 5.3 and appendix A)

1. tries some splits and merges, with an exact acceptance ratio given the weights,
2. draws the cluster of each row given all others,
3. draws the tables: how often each group chose each cluster from the shared weights,
4. draws both concentrations and the weights given the tables, which are then forgotten.

References
----------
.. [1] Y. W. Teh, M. I. Jordan, M. J. Beal and D. M. Blei, "Hierarchical Dirichlet processes",
   JASA 101, 2006.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from countless._labels import number_by_appearance
from countless.kernels.hdp_gibbs import (
    Seats,
    draw_tables,
    draw_weights,
    log_seating,
    sweep,
)
from countless.kernels.hdp_split_merge import split_or_merge
from countless.models import BoundModel
from countless.priors.hyper import Gamma, draw_concentration


class Concentrations(NamedTuple):
    """What is believed of alpha and gamma: numbers, or gamma priors."""

    alpha: float | Gamma
    gamma: float | Gamma

    def draw(self, rng: np.random.Generator) -> tuple[float, float]:
        """Draw both."""
        return tuple(
            value.draw(rng) if isinstance(value, Gamma) else float(value) for value in self
        )  # type: ignore[return-value]

    def log_density(self, alpha: float, gamma: float) -> float:
        """Return the log density of those that are not given."""
        return sum(
            value.log_density(at)
            for value, at in zip(self, (alpha, gamma), strict=True)
            if isinstance(value, Gamma)
        )


class SharedState(NamedTuple):
    """What a draw says besides the labels: everything that predictions need."""

    weights: np.ndarray  # (n_clusters + 1,), clusters by first appearance; the last: all others
    alpha: float
    gamma: float
    hyper: np.ndarray  # (n_hyper,) of the model


class HDPChain:
    """A chain that starts from given labels and moves by sweeps.

    Parameters
    ----------
    model : BoundModel
        What a cluster looks like.
    rows : ndarray of shape (n_rows, n_features)
        As ``model.rows`` makes them.
    group : ndarray of int of shape (n_rows,)
        The group of each row, 0, 1, ...
    labels : ndarray of int of shape (n_rows,)
        The clusters to start from, 0, 1, ...
    believed : Concentrations
        Both concentrations, or their priors.
    rng : numpy.random.Generator
        Where all draws come from.
    n_tries : int
        Splits and merges tried in a sweep.
    """

    def __init__(
        self,
        model: BoundModel,
        rows: np.ndarray,
        group: np.ndarray,
        labels: np.ndarray,
        believed: Concentrations,
        rng: np.random.Generator,
        *,
        n_tries: int = 5,
    ) -> None:
        self.model, self.rows, self.believed, self.rng = model, rows, believed, rng
        self.n_tries = n_tries
        self.alpha, self.gamma = believed.draw(rng)
        n_clusters, n_groups = int(labels.max()) + 1, int(group.max()) + 1
        self.group_sizes = np.bincount(group, minlength=n_groups)
        self._seats = _seat(group, labels, n_groups, n_clusters)
        self._clusters = model.clusters(n_clusters, model.statistics(rows, labels, n_clusters))
        self._fresh = self._log_fresh()
        self._make_room(8)
        self.draw_shared()

    @property
    def n_clusters(self) -> int:
        """How many clusters have rows."""
        return int(self._seats.n_clusters[0])

    @property
    def labels(self) -> np.ndarray:
        """The cluster of each row, numbered by first appearance."""
        return number_by_appearance(self._seats.labels)[1]

    def state(self) -> SharedState:
        """Return weights and parameters, clusters numbered by first appearance."""
        names, _ = number_by_appearance(self._seats.labels)
        weights = np.append(self._seats.weights[names], self._seats.weights[-1])
        return SharedState(weights, self.alpha, self.gamma, self.model.hyper.value)

    def log_joint(self) -> float:
        """Return the log density of rows, labels, weights and everything that is drawn."""
        total = log_seating(self._seats, self.alpha, self.gamma)
        total += float(self.model.log_marginal(self._statistics()).sum())
        total += self.believed.log_density(self.alpha, self.gamma)
        return total + self.model.hyper.log_prior(self.model.hyper.value)

    def sweep(self) -> None:
        """Move labels, weights and concentrations once."""
        self.split_and_merge()
        self.assign()
        self.draw_shared()

    def split_and_merge(self) -> int:
        """Try splits and merges; return how many were taken."""
        if not self.n_tries:
            return 0
        self._make_room(self.n_tries + 2)
        return split_or_merge(
            self.rows,
            self.alpha,
            self.gamma,
            self.n_tries,
            self.rng,
            self._seats,
            self._clusters,
        )

    def assign(self) -> None:
        """Draw the cluster of each row given all others."""
        row = 0
        while row < len(self.rows):
            self._make_room(1)
            row = sweep(
                self.rows,
                self._fresh,
                self.alpha,
                self.gamma,
                row,
                self.rng,
                self._seats,
                self._clusters,
            )

    def draw_shared(self) -> None:
        """Draw tables, then both concentrations and the weights of clusters."""
        tables = np.zeros(len(self._seats.sizes), dtype=np.int64)
        draw_tables(self._seats, self.alpha, self.rng, tables)
        n_tables = int(tables.sum())
        if isinstance(self.believed.gamma, Gamma):
            self.gamma = draw_concentration(
                self.gamma, self.believed.gamma, self.n_clusters, n_tables, self.rng
            )
        if isinstance(self.believed.alpha, Gamma):
            self.alpha = draw_concentration(
                self.alpha, self.believed.alpha, n_tables, self.group_sizes, self.rng
            )
        draw_weights(self._seats, tables, self.gamma, self.rng)

    def sample_hyper(self) -> None:
        """Move the hyperparameters of the model, given the clusters."""
        statistics = self._statistics()
        self.model = self.model.sample_hyper(statistics, self.rng)
        self._clusters = self.model.clusters(len(self._seats.sizes), statistics)
        self._fresh = self._log_fresh()

    def _statistics(self) -> np.ndarray:
        return self._clusters.statistics[: self.n_clusters]

    def _log_fresh(self) -> np.ndarray:
        """Return the log density of each row in a cluster of its own."""
        return self.model.log_predictive(self.rows, self.model.empty())[:, 0]

    def _make_room(self, n_more: int) -> None:
        """Have room for so many clusters more; it grows by half at least, so that it grows rarely."""
        old = self._seats
        room = len(old.sizes)
        if self.n_clusters + n_more <= room:
            return
        added = max(n_more, room // 2)
        more = np.arange(room, room + added)
        self._seats = old._replace(
            counts=np.pad(old.counts, ((0, 0), (0, added))),
            sizes=np.pad(old.sizes, (0, added)),
            weights=np.concatenate([old.weights[:-1], np.zeros(added), old.weights[-1:]]),
            names=np.concatenate([old.names, more]),
            places=np.concatenate([old.places, more]),
        )
        self._clusters = self.model.clusters(room + added, self._statistics())


def _seat(group: np.ndarray, labels: np.ndarray, n_groups: int, n_clusters: int) -> Seats:
    """Return rows at their clusters, which all have the same weight."""
    counts = np.zeros((n_groups, n_clusters), dtype=np.int64)
    np.add.at(counts, (group, labels), 1)
    return Seats(
        group=np.ascontiguousarray(group, dtype=np.int32),
        labels=np.array(labels, dtype=np.int32),
        counts=counts,
        sizes=counts.sum(axis=0),
        weights=np.full(n_clusters + 1, 1.0 / (n_clusters + 1)),
        names=np.arange(n_clusters),
        places=np.arange(n_clusters),
        n_clusters=np.array([n_clusters]),
    )
