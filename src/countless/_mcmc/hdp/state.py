"""The state of the HDP mixture, and its Gibbs moves: clusters of rows and shared weights.

The state is the cluster of each row and the weight of each cluster; parameters of clusters and the
weights of clusters within groups are integrated out. With K clusters of weights b, the remaining
weight u, n(j, k) rows of group j in cluster k, and the rising factorial x^(n), which is
x (x + 1) ... (x + n - 1), its prior density is

    u^(gamma + K d - 1) * product over k of b(k)^(-1 - d) / B(1 - d, gamma + k d)
    * product over groups j of  (product over k of (alpha b(k))^(n(j, k))) / alpha^(n(j))

where d is the discount of the shared weights, a Pitman-Yor process; for a Dirichlet process it is
0, and the first line is gamma^K u^(gamma - 1) / (b(1) ... b(K)).

A sweep draws the cluster of each row given all others: direct assignment [1]_. Then the numbers of
tables of the Chinese restaurant franchise are drawn as auxiliary variables. Given these, the
weights are Dirichlet distributed, the tables of all groups are a partition by the shared prior, and
the concentration of the groups is a mixture of gamma distributions. Then they are discarded.

References
----------
.. [1] Y. W. Teh, M. I. Jordan, M. J. Beal and D. M. Blei, "Hierarchical Dirichlet processes",
   JASA 101, 2006, section 5.3 and appendix A.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import betaln, gammaln

from countless._mcmc.gibbs import NO_TARGET
from countless.kernels import hdp_gibbs as kernels
from countless.kernels.hdp_gibbs import LEAST_WEIGHT, draw_tables, sweep_groups
from countless.models import BoundModel
from countless.priors import DirichletProcess, PitmanYor
from countless.priors.hyper import Beta, Gamma, Hyperprior, draw_concentration
from countless.priors.restaurant import Restaurant


class HDPState(NamedTuple):
    """A partition of the rows of all groups into nonempty clusters, with their weights."""

    labels: np.ndarray  # (n_rows,) int32
    counts: np.ndarray  # (n_groups, n_clusters) int64
    weights: np.ndarray  # (n_clusters + 1,); the last is that of all empty clusters
    statistics: np.ndarray  # (n_clusters, width)

    @property
    def n_clusters(self) -> int:
        return len(self.statistics)

    @property
    def sizes(self) -> np.ndarray:
        return self.counts.sum(axis=0)


class Concentrations(NamedTuple):
    """Concentrations: ``alpha`` of the weights within groups, ``gamma`` of the shared weights.

    The shared weights may have a discount, too.
    """

    alpha: float
    gamma: float
    discount: float = 0.0


class PriorSpec(NamedTuple):
    """Prior specification: each parameter as a number or as its own prior."""

    alpha: float | Gamma
    gamma: float | Gamma
    discount: float | Beta = 0.0

    def shared(self, gamma: float | Gamma, discount: float | Beta) -> Restaurant:
        """Return the prior of shared clusters with these parameters."""
        if isinstance(self.discount, Beta) or self.discount:
            return PitmanYor(gamma, discount)
        return DirichletProcess(gamma)

    def draw(self, random: np.random.Generator) -> Concentrations:
        """Draw the parameters that have a prior."""
        return Concentrations(
            *(value.draw(random) if isinstance(value, Hyperprior) else value for value in self)
        )

    def log_density(self, drawn: Concentrations) -> float:
        """Return the log prior density of the parameters that have a prior."""
        pairs = zip(self, drawn, strict=True)
        return sum(value.log_density(at) for value, at in pairs if isinstance(value, Hyperprior))


def count_cells(group: np.ndarray, labels: np.ndarray, n_groups: int) -> np.ndarray:
    """Return the number of rows of each group in each cluster, (n_groups, n_clusters)."""
    n_clusters = int(labels.max()) + 1
    cell = group.astype(np.int64) * n_clusters + labels
    return np.bincount(cell, minlength=n_groups * n_clusters).reshape(n_groups, n_clusters)


def state_of(
    model: BoundModel, rows: np.ndarray, group: np.ndarray, labels: np.ndarray, n_groups: int
) -> HDPState:
    """Return the state given by labels 0, 1, ..., all of which occur, with equal weights."""
    labels = np.array(labels, dtype=np.int32)
    statistics = model.statistics(rows, labels)
    weights = np.full(len(statistics) + 1, 1.0 / (len(statistics) + 1))
    return HDPState(labels, count_cells(group, labels, n_groups), weights, statistics)


def assign_rows(
    state: HDPState,
    model: BoundModel,
    rows: np.ndarray,
    group: np.ndarray,
    concentrations: Concentrations,
    random: np.random.Generator,
) -> HDPState:
    """Draw the cluster of each row in turn, given all others."""
    order = np.arange(len(rows))
    visit = 0
    while visit < len(rows):
        labels, counts, weights, statistics = _with_capacity(state)
        clusters = model.clusters(len(statistics), statistics)
        visit, _ = sweep_groups(
            clusters, counts, counts.sum(axis=0), weights, rows, group, order, visit, labels,
            NO_TARGET, *concentrations, random,
        )  # fmt: skip
        state = _drop_empty_clusters(HDPState(labels, counts, weights, clusters.statistics))
    return state


def move_local_clusters(
    state: HDPState,
    model: BoundModel,
    rows: np.ndarray,
    group: np.ndarray,
    concentrations: Concentrations,
    random: np.random.Generator,
    n_local_moves: int,
) -> HDPState:
    """Draw the global cluster of local clusters, given all others.

    The local clusters are those of ``n_local_moves`` random rows of each group. All rows of a group
    in one global cluster move jointly, to a cluster without rows of their group. Moves of single
    rows would hardly ever change the global cluster of them all.
    """
    sizes = state.counts.sum(axis=1)
    starts = np.concatenate([[0], np.cumsum(sizes)])
    members = np.argsort(group, kind="stable")
    groups = np.tile(np.arange(len(sizes)), n_local_moves)
    visited = members[starts[groups] + random.integers(sizes[groups])]
    visits = np.column_stack([groups, visited])
    visit = 0
    while visit < len(visits):
        labels, counts, weights, statistics = _with_capacity(state)
        statistics = np.pad(statistics, ((0, 1), (0, 0)))
        visit = kernels.move_local_clusters(
            model.clusters(1), statistics, counts, weights, rows, members, starts, visits, visit,
            labels, *concentrations, random,
        )  # fmt: skip
        state = _drop_empty_clusters(HDPState(labels, counts, weights, statistics[:-1]))
    return state


def _with_capacity(state: HDPState) -> HDPState:
    """Return a copy of the state with empty slots for new clusters."""
    labels, counts, weights, statistics = state
    added = len(statistics) + 6
    weights = np.concatenate([weights[:-1], np.zeros(added), weights[-1:]])
    statistics = np.pad(statistics, ((0, added), (0, 0)))
    return HDPState(labels.copy(), np.pad(counts, ((0, 0), (0, added))), weights, statistics)


def _drop_empty_clusters(state: HDPState) -> HDPState:
    """Drop empty clusters and renumber the others."""
    used = state.counts.any(axis=0)
    number = np.cumsum(used, dtype=np.int32) - np.int32(1)
    weights = np.append(state.weights[:-1][used], state.weights[-1])
    counts = np.compress(used, state.counts, axis=1)  # C order, unlike fancy indexing
    statistics = state.statistics[used]
    return HDPState(number[state.labels], counts, weights, statistics)


def draw_weights(
    state: HDPState,
    given_prior: PriorSpec,
    concentrations: Concentrations,
    random: np.random.Generator,
) -> tuple[HDPState, Concentrations]:
    """Draw the weights of clusters and both concentrations, given the clusters of rows."""
    tables = np.empty(state.n_clusters, dtype=np.int64)
    draw_tables(state.counts, concentrations.alpha * state.weights[:-1], random, tables)
    alpha, gamma, discount = concentrations
    given = given_prior.shared(given_prior.gamma, given_prior.discount)
    if given.hyperpriors:
        now = given.update_parameters(given_prior.shared(gamma, discount), tables, random)
        gamma, discount = now.known_parameters()
    if isinstance(given_prior.alpha, Gamma):
        group_sizes, n_tables = state.counts.sum(axis=1), int(tables.sum())
        alpha = draw_concentration(alpha, given_prior.alpha, n_tables, group_sizes, random)
    rest = gamma + state.n_clusters * discount
    weights = random.standard_gamma(np.append(tables - discount, rest))
    weights = np.maximum(weights / weights.sum(), LEAST_WEIGHT)
    return state._replace(weights=weights), Concentrations(alpha, gamma, discount)


def log_rising(start: np.ndarray | float, steps: np.ndarray) -> np.ndarray:
    """Return the log rising factorial, of start (start + 1) ... (start + steps - 1)."""
    return gammaln(start + steps) - gammaln(start)


def log_prior_of_state(state: HDPState, concentrations: Concentrations) -> float:
    """Return the log prior density of the state."""
    (alpha, gamma, discount), weights = concentrations, state.weights
    rest = gamma + discount * np.arange(1, state.n_clusters + 1)
    total = (rest[-1] - 1.0) * np.log(weights[-1]) - betaln(1.0 - discount, rest).sum()
    total -= (1.0 + discount) * np.log(weights[:-1]).sum()
    total -= log_rising(alpha, state.counts.sum(axis=1)).sum()
    return float(total + log_rising(alpha * weights[:-1], state.counts).sum())
