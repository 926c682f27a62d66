"""Maximum a posteriori (MAP) partition by a deterministic search: reassign, merge, split, repeat.

The objective is the log joint density of rows, partition and parameters that `PartitionChain`
samples from, parameters of clusters integrated out. Every move raises it or is not taken:

- a sweep moves each row to the cluster of highest conditional probability, which may be a new one;
- an agglomeration merges the two clusters of highest gain while there is a gain: statistics add, so
  that a merge of a and b costs one marginal likelihood, ``log m(a + b) - log m(a) - log m(b)`` and
  the change of the prior;
- a repartition splits one cluster, or two neighbours together, into more pieces than can be right,
  and agglomerates these;
- hyperparameters of the model and parameters of the prior go to their conditional optimum.

A parameter of the prior is optimised on the scale on which it is sampled, transformed to the real
line (the logarithm of a concentration): for one cluster the density of the concentration itself is
highest at 0, where no other cluster can ever open.

The search starts from many small pieces, found by bisection along principal axes, which are then
agglomerated. It draws no random numbers.

References
----------
.. [1] K. Kurihara and M. Welling, "Bayesian k-means as a maximization-expectation algorithm",
   Neural Computation 21, 2009.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeVar

import numpy as np
from scipy.optimize import minimize_scalar

from countless._compat import OnPass, ignore_pass
from countless._mcmc.gibbs import NOTHING, Partition, drop_empty_clusters, partition_of
from countless._mcmc.partition_chain import log_joint
from countless._mcmc.pieces import cut, principal_halves, standardize
from countless._threads import one_library_thread
from countless.kernels import map_search as kernels
from countless.models import BoundModel
from countless.priors import PartitionPrior, Tables


@dataclass(frozen=True)
class Limits:
    """Constants of the search; they bound its cost and do not change the objective."""

    first_pieces: int = 256  # pieces of the first agglomeration, at most
    rows_per_piece: int = 10  # mean number of rows of each of them, at least
    local_pieces: int = 8  # pieces of a cluster, or of two neighbours, when repartitioned
    bisecting_sweeps: int = 3  # sweeps after a bisection, between its halves
    local_sweeps: int = 5  # sweeps before and after a local agglomeration
    path_ratio: float = 0.9  # ratio of consecutive numbers of clusters that `coarsen` evaluates
    coarse_trials: int = 3  # the best of those, which are then improved by sweeps
    full_sweeps: int = 10  # sweeps over all rows in one round
    rounds: int = 50
    new_slots: int = 8  # empty slots for new clusters in a sweep
    pairs_at_once: int = 64  # whose marginal likelihoods are computed in one loop
    farthest: float = 30.0  # bound of a parameter of the prior on the real line
    least_gain: float = 1e-2  # tolerance in log density: the search stops below it


LIMITS = Limits()


Prior = TypeVar("Prior", bound=PartitionPrior)


class MapResult(NamedTuple):
    """The result of the search: a partition and its parameters, a local optimum if converged."""

    labels: np.ndarray  # (n_rows,) int32
    model: BoundModel  # with its hyperparameters at their optimum
    prior: PartitionPrior  # with numeric parameters
    log_joint: float
    history: list[float]  # the objective after each round, never decreasing
    converged: bool


def most_probable_partition(
    model: BoundModel,
    prior: PartitionPrior,
    rows: np.ndarray,
    *,
    labels: np.ndarray | None = None,
    fit_hyper: bool = True,
    max_rounds: int | None = None,
    on_pass: OnPass = ignore_pass,
) -> MapResult:
    """Search the partition of highest log joint density.

    Parameters
    ----------
    model : BoundModel
        Component model of a cluster.
    prior : PartitionPrior
        Prior of the partition; parameters given as distributions are optimised.
    rows : ndarray of shape (n_rows, n_features)
        As returned by ``model.rows``.
    labels : ndarray of int of shape (n_rows,), optional
        Initial partition, 0, 1, ...; by default the search finds one.
    fit_hyper : bool, default=True
        Whether hyperparameters of the model that were not given are optimised.
    max_rounds : int, optional
        Largest number of rounds; by default 50.
    on_pass : callable
        Called with the objective and the number of clusters after each round.

    Returns
    -------
    MapResult

    Examples
    --------
    >>> import numpy as np
    >>> from countless._mcmc.map_search import most_probable_partition
    >>> from countless.models import Gaussian
    >>> from countless.priors import DirichletProcess
    >>> X = np.array([[0.0], [0.2], [0.1], [5.0], [5.1], [5.3]])
    >>> model = Gaussian().bind(X)
    >>> found = most_probable_partition(model, DirichletProcess(1.0), model.rows(X))
    >>> found.labels, round(found.log_joint, 2)
    (array([0, 0, 0, 1, 1, 1], dtype=int32), -15.74)
    """
    with one_library_thread():
        search = _Search(model, prior, rows, fit_hyper)
        if labels is None:
            search.start()
        else:
            search.set_labels(labels)
        history = search.run(LIMITS.rounds if max_rounds is None else max_rounds, on_pass)
    return MapResult(
        search.partition.labels,
        search.model,
        search.prior,
        log_joint(search.model, prior, search.prior, search.partition),
        history,
        search.converged,
    )


class _State(NamedTuple):
    """A state of the search with its objective."""

    objective: float
    partition: Partition
    model: BoundModel
    prior: PartitionPrior

    @property
    def n_clusters(self) -> int:
        """How many clusters there are."""
        return len(self.partition.sizes)


class _Search:
    """A partition with its parameters, and the moves that raise their log joint density."""

    def __init__(
        self, model: BoundModel, prior: PartitionPrior, rows: np.ndarray, fit_hyper: bool
    ) -> None:
        self.model, self.given_prior, self.rows = model, prior, rows
        self.converged = False
        self._fits_hyper = fit_hyper and bool(model.hyper.free.any())
        self._scaled = standardize(rows)
        self._no_tables = np.empty((model.width, 0))
        self._failed: set[bytes] = set()  # sets of rows that no repartition has improved
        self._set_prior(optimal_parameters(prior, prior.draw_parameters(0)))
        self.set_labels(np.zeros(len(rows), dtype=np.int32))

    @property
    def n_clusters(self) -> int:
        """How many clusters there are."""
        return len(self.partition.sizes)

    def objective(self) -> float:
        """Return the log joint density, the prior's parameters transformed to the real line."""
        joint = log_joint(self.model, self.given_prior, self.prior, self.partition)
        return joint + log_jacobians(self.given_prior, self.prior)

    def set_labels(self, labels: np.ndarray) -> None:
        """Set the partition."""
        self.partition = partition_of(self.model, self.rows, labels)

    def start(self) -> None:
        """Split all rows into many pieces and agglomerate these; keep the best level."""
        n = len(self.rows)
        n_pieces = min(LIMITS.first_pieces, max(2, n // LIMITS.rows_per_piece), n)
        self.update_parameters()
        one = self.state()
        self.partition = self._pieces(self.rows, self._scaled, n_pieces)
        self.restore(max([one, *self._coarser()], key=lambda state: state.objective))

    def state(self) -> _State:
        """Return the present state."""
        return _State(self.objective(), self.partition, self.model, self.prior)

    def restore(self, state: _State) -> None:
        """Go back to a state."""
        _, self.partition, self.model, prior = state
        self._set_prior(prior)
        self._failed.clear()

    def _coarser(self) -> list[_State]:
        """Return states with fewer and fewer clusters by greedy merges, parameters refitted.

        Parameters that are optimal for many clusters give each single merge a low gain.
        """
        start, pairs = self.state(), self._merges(self.partition, 0, to_one=True).pairs
        found = []
        k = self.n_clusters - 1
        while k > 0:
            self.partition = _merged(start.partition, pairs[: start.n_clusters - k])
            self.update_parameters()
            found.append(self.state())
            k = min(k - 1, int(LIMITS.path_ratio * k))
        self.restore(start)
        return found

    def coarsen(self) -> bool:
        """Try fewer clusters with refitted parameters; return whether the objective improved."""
        if self.n_clusters == 1:
            return False
        start = self.state()
        ranked = sorted(self._coarser(), key=lambda state: -state.objective)
        for candidate in ranked[: LIMITS.coarse_trials]:
            self.restore(candidate)
            self.reassign()
            self.update_parameters()
            if self.objective() > start.objective + LIMITS.least_gain:
                return True
        self.restore(start)
        return False

    def run(self, max_rounds: int, on_pass: OnPass) -> list[float]:
        """Make rounds of all moves until a round gains less than the tolerance."""
        history: list[float] = []
        for _ in range(max_rounds):
            self.reassign()
            self.partition = self._agglomerate(self.partition, 0)
            self.update_parameters()
            self.repartition()
            self.set_labels(self.partition.labels)  # sums again: no accumulated rounding errors
            history.append(self.objective())
            on_pass(history[-1], self.n_clusters)
            still = len(history) > 1 and history[-1] - history[-2] < LIMITS.least_gain
            if still and not self.coarsen():
                self.converged = True
                break
        return history

    def reassign(self) -> None:
        """Move rows one by one to their most probable clusters, or to new ones."""
        self.partition = self._sweeps(
            self.rows, self.partition, LIMITS.full_sweeps, self.tables.open
        )

    def update_parameters(self) -> None:
        """Move the parameters of prior and model to their optimum given the partition."""
        if self.given_prior.hyperpriors:
            sizes = self.partition.sizes
            found = optimal_parameters(
                self.given_prior, self.prior, lambda prior: prior.log_prob(sizes=sizes)
            )
            self._set_prior(found)
        if self._fits_hyper:
            self.model = self.model.fit_hyper(self.partition.statistics)
        self._failed.clear()

    def repartition(self) -> None:
        """Repartition each cluster alone, and together with its best merge partner."""
        labels = self.partition.labels
        partner = self._merges(self.partition, 0, to_one=False).partner
        clusters = [np.flatnonzero(labels == c) for c in range(self.n_clusters)]
        changed = np.zeros(len(clusters), dtype=bool)
        for c, members in enumerate(clusters):
            changed[c] = self._repartition(members)
        for c, other in enumerate(partner):
            if len(clusters) > 1 and not changed[c] and not changed[other]:
                members = np.sort(np.append(clusters[c], clusters[other]))
                changed[c] = changed[other] = self._repartition(members)

    def _set_prior(self, prior: PartitionPrior) -> None:
        self.prior = prior
        self.tables: Tables = prior.tables(len(self.rows))

    def _weight(self, partition: Partition, n_others: int) -> float:
        """Return the terms of the objective of some clusters, given ``n_others`` other clusters."""
        size, _, opening = self.tables
        k = len(partition.sizes)
        weight = float(self.model.log_marginal(partition.statistics).sum())
        weight += float(size[partition.sizes].sum()) - k * size[1]
        return weight + float(opening[n_others : n_others + k].sum())

    def _sweeps(
        self, rows: np.ndarray, partition: Partition, n_sweeps: int, opening: np.ndarray = NOTHING
    ) -> Partition:
        """Move rows one by one to their most probable clusters until none moves."""
        order, margins = np.arange(len(rows)), np.empty(len(rows))
        labels, sizes, statistics = (array.copy() for array in partition)
        spare = LIMITS.new_slots if len(opening) else 0
        for _ in range(n_sweeps):
            visit, n_moved = 0, 0
            while visit < len(rows):
                clusters = self.model.clusters(len(sizes) + spare, statistics)
                sizes = np.append(sizes, np.zeros(spare, dtype=np.int64))
                visit, _, moved = kernels.hard_sweep(
                    clusters, sizes, rows, order, visit, labels, self.tables.join, opening, margins
                )
                labels, sizes, statistics = drop_empty_clusters(labels, sizes, clusters.statistics)
                n_moved += moved
            if n_moved == 0:
                break
        return Partition(labels, sizes, statistics)

    def _merges(self, partition: Partition, n_others: int, to_one: bool) -> _Merges:
        """Find greedy merges of some clusters, given ``n_others`` others, best first."""
        _, sizes, statistics = (array.copy() for array in partition)
        partner = np.empty(len(sizes), dtype=np.int64)
        pairs = np.empty((len(sizes) - 1, 2), dtype=np.int64)
        n_merges = kernels.agglomerate(
            self.model.clusters(min(LIMITS.pairs_at_once, len(sizes))),
            self._no_tables,
            statistics,
            sizes,
            self.model.log_marginal(statistics),
            self.tables.size,
            self.tables.open,
            n_others,
            to_one,
            partner,
            pairs,
        )
        return _Merges(pairs[:n_merges], partner)

    def _agglomerate(self, partition: Partition, n_others: int) -> Partition:
        """Merge some clusters greedily, given ``n_others`` others, while the objective rises."""
        return _merged(partition, self._merges(partition, n_others, to_one=False).pairs)

    def _repartition(self, members: np.ndarray) -> bool:
        """Split the rows of some clusters into pieces, agglomerate them, and keep improvements.

        Two pieces are tried first, which is cheap and usually sufficient.
        """
        key = members.tobytes()
        if len(members) < 2 or key in self._failed:
            return False
        replaced = np.unique(self.partition.labels[members])
        n_others = self.n_clusters - len(replaced)
        labels, sizes, statistics = self.partition
        present = Partition(labels[:0], sizes[replaced], statistics[replaced])
        least = self._weight(present, n_others) + kernels.LEAST_GAIN
        rows, scaled = self.rows[members], self._scaled[members]
        for n_pieces in (2, LIMITS.local_pieces):
            found = self._pieces(rows, scaled, min(n_pieces, len(rows)))
            found = self._sweeps(rows, found, LIMITS.local_sweeps)
            found = self._agglomerate(found, n_others)
            found = self._sweeps(rows, found, LIMITS.local_sweeps)
            if self._weight(found, n_others) > least:
                self._replace(members, replaced, found)
                return True
        self._failed.add(key)
        return False

    def _replace(self, members: np.ndarray, replaced: np.ndarray, found: Partition) -> None:
        """Replace some clusters by a new partition of their rows."""
        labels, sizes, statistics = (array.copy() for array in self.partition)
        labels[members] = found.labels + np.int32(len(sizes))
        sizes[replaced] = 0
        sizes = np.append(sizes, found.sizes)
        self.partition = drop_empty_clusters(
            labels, sizes, np.append(statistics, found.statistics, 0)
        )

    def _pieces(self, rows: np.ndarray, scaled: np.ndarray, n_pieces: int) -> Partition:
        """Split rows into pieces by repeated bisection, each followed by sweeps."""

        def halve(own: np.ndarray) -> np.ndarray | None:
            side = principal_halves(scaled[own])
            if side is None:
                return None
            halves = partition_of(self.model, rows[own], side)
            return self._sweeps(rows[own], halves, LIMITS.bisecting_sweeps).labels == 1

        return partition_of(self.model, rows, cut(scaled, n_pieces, halve))


class _Merges(NamedTuple):
    """A sequence of merges of clusters."""

    pairs: np.ndarray  # (n_merges, 2), the cluster that remains, and the one merged into it
    partner: np.ndarray  # (n_clusters,), best merge partner of each before the first merge


def _merged(partition: Partition, pairs: np.ndarray) -> Partition:
    """Return the partition after some merges."""
    labels, sizes, statistics = partition
    parent = np.arange(len(sizes), dtype=np.int32)
    for a, b in pairs:
        parent[parent == b] = a
    of_pieces, n = sizes, len(sizes)
    sizes = np.bincount(parent, weights=of_pieces, minlength=n).astype(np.int64)
    summed = np.zeros_like(statistics)
    np.add.at(summed, parent, statistics)
    return drop_empty_clusters(parent[labels], sizes, summed)


def log_jacobians(given: PartitionPrior, current: PartitionPrior) -> float:
    """Return the log Jacobian of transforming the prior's free parameters to the real line."""
    return sum(
        hyperprior.constrain(hyperprior.unconstrain(getattr(current, name)))[1]
        for name, hyperprior in given.hyperpriors.items()
    )


def optimal_parameters(
    given: Prior, current: Prior, log_prob: Callable[[Prior], float] | None = None
) -> Prior:
    """Return the prior with its free parameters optimised one by one.

    ``log_prob`` is what a prior with numeric parameters says of the partition; None is nothing.
    """
    for name, hyperprior in given.hyperpriors.items():

        def cost(
            place: float, name: str = name, hyperprior: Any = hyperprior, current: Any = current
        ) -> float:
            value, log_jacobian = hyperprior.constrain(place)
            density = hyperprior.log_density(value) + log_jacobian
            if log_prob is not None:
                density += log_prob(replace(current, **{name: value}))
            return -density

        place = hyperprior.unconstrain(getattr(current, name))
        found = minimize_scalar(cost, bounds=(-LIMITS.farthest, LIMITS.farthest), method="bounded")
        if found.fun < cost(place):
            place = float(found.x)
        current = replace(current, **{name: hyperprior.constrain(place)[0]})
    return current
