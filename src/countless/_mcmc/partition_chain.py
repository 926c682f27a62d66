"""One Markov chain over partitions, parameters of their prior and hyperparameters of the model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields
from functools import partial
from numbers import Real
from typing import Any, NamedTuple

import numpy as np

from countless._mcmc.gibbs import (
    Partition,
    ScanOrder,
    Target,
    collapsed_sweep,
    partition_of,
    uncollapsed_sweep,
)
from countless._mcmc.split_merge import TUNING, split_and_merge, warm_up
from countless.models import BoundModel
from countless.priors import PartitionPrior, Tables

SWEEPS: dict[str, Callable[..., Partition]] = {
    "collapsed": collapsed_sweep,
    "uncollapsed": uncollapsed_sweep,
}
# Statistics are updated as rows move; this often they are summed again, against rounding errors.
SWEEPS_BEFORE_REFRESH = 100


class Draw(NamedTuple):
    """One posterior draw: the stored part of a chain's state."""

    labels: np.ndarray  # (n_rows,), of the smallest sufficient integer type
    log_joint: float
    prior: PartitionPrior  # with numeric parameters
    hyper: np.ndarray  # (n_hyper,), of the model


class PartitionChain:
    """A Markov chain that starts from given labels.

    Parameters
    ----------
    model : BoundModel
        Component model of a cluster.
    prior : PartitionPrior
        Prior of the partition; parameters given as distributions are sampled, too.
    rows : ndarray of shape (n_rows, n_features)
        As returned by ``model.rows``.
    labels : ndarray of int of shape (n_rows,)
        Initial clusters, 0, 1, ...
    random : numpy.random.Generator
        Source of all random numbers.
    sampler : {'collapsed', 'uncollapsed'}
        Whether a sweep integrates the parameters of clusters out or draws them.
    split_merge : bool
        Whether split-merge proposals are made after each sweep.
    sample_hyper : bool
        Whether hyperparameters of the model that were not given are sampled.
    n_burn_in : int
        Length of the burn-in. Its first sweeps are warm-up sweeps, with moves that do not leave the
        posterior invariant: see `warm_up` and `ScanOrder`.
    """

    def __init__(
        self,
        model: BoundModel,
        prior: PartitionPrior,
        rows: np.ndarray,
        labels: np.ndarray,
        random: np.random.Generator,
        *,
        sampler: str = "collapsed",
        split_merge: bool = True,
        sample_hyper: bool = True,
        n_burn_in: int = 0,
    ) -> None:
        self.model, self.given_prior, self.rows, self.random = model, prior, rows, random
        self._n_warm_up = min(TUNING.warm_up_sweeps, n_burn_in)
        self._sweep, self._split_merge = SWEEPS[sampler], split_merge
        self._n_proposals = TUNING.n_proposals(model.width)
        self._n_full = TUNING.n_full(model.width)
        if sampler == "collapsed":
            self._sweep = partial(collapsed_sweep, scan_order=ScanOrder(len(rows), self._n_warm_up))
        self._free = np.flatnonzero(model.hyper.free) if sample_hyper else np.empty(0, dtype=int)
        self.n_swept = 0
        self.partition = partition_of(model, rows, labels)
        self._set_prior(prior.draw_parameters(random))

    @property
    def n_clusters(self) -> int:
        """Number of nonempty clusters."""
        return len(self.partition.sizes)

    @property
    def target(self) -> Target:
        """The target of the moves of the partition, given the present parameters."""
        return Target(self.model, self.rows, self.tables, self.random)

    def sweep(self) -> None:
        """Update the partition, the parameters of its prior, and the model's hyperparameters."""
        self.move_partition()
        if self.given_prior.hyperpriors:
            sizes = self.partition.sizes
            self._set_prior(self.given_prior.update_parameters(self.prior, sizes, self.random))
        if len(self._free):
            self.move_hyper()

    def move_partition(self) -> None:
        """Draw the cluster of each row in turn, then make split-merge proposals."""
        self.n_swept += 1
        if self.n_swept % SWEEPS_BEFORE_REFRESH == 0:
            self.partition = partition_of(self.model, self.rows, self.partition.labels)
        target = self.target
        self.partition = self._sweep(self.partition, target)
        if self._split_merge:
            if self.n_swept <= self._n_warm_up:
                self.partition = warm_up(self.partition, target, TUNING.warm_up_proposals)
            n_proposals = self._n_proposals, self._n_full
            self.partition = split_and_merge(self.partition, target, *n_proposals)

    def move_hyper(self) -> None:
        """Sample some hyperparameters of the model, given the clusters."""
        self.model = move_hyper(self.model, self.partition.statistics, self._free, self.random)

    def log_joint(self) -> float:
        """Return the log joint density of rows, partition and all sampled parameters.

        The normalizing constant of a prior without sampled parameters may be omitted.
        """
        return log_joint(self.model, self.given_prior, self.prior, self.partition)

    def record(self) -> Draw:
        """Return the present state as a draw."""
        kind = np.min_scalar_type(self.n_clusters - 1)
        labels = self.partition.labels.astype(kind)
        return Draw(labels, self.log_joint(), self.prior, self.model.hyper.value)

    def _set_prior(self, prior: PartitionPrior) -> None:
        self.prior = prior
        self.tables: Tables = prior.tables(len(self.rows))


def log_joint(
    model: BoundModel, given: PartitionPrior, prior: PartitionPrior, partition: Partition
) -> float:
    """Return the log joint density of rows, partition, hyperparameters and the prior's parameters.

    ``given`` has the distributions of the free parameters, and ``prior`` their present values. The
    normalizing constant of a prior without free parameters may be omitted.
    """
    total = float(model.log_marginal(partition.statistics).sum())
    total += prior.log_weight(partition.sizes)
    if prior.consistent:  # for others it is expensive, and constant
        total -= prior.log_normalizer(int(partition.sizes.sum()))
    total += given.log_prob_parameters(prior)
    return total + model.hyper.log_prior(model.hyper.value)


def move_hyper(
    model: BoundModel, statistics: np.ndarray, free: np.ndarray, random: np.random.Generator
) -> BoundModel:
    """Return the model after sampling some of its free hyperparameters, given the clusters."""
    at_once = model.moved_at_once
    if at_once is not None and len(free) > at_once:
        free = random.choice(free, at_once, replace=False)
    return model.sample_hyper(statistics, random, free)


def parameters_of(draws: Sequence[Sequence[Any]]) -> dict[str, np.ndarray]:
    """Return the parameters of the prior in each draw of each chain, (n_chains, n_draws)."""
    first = draws[0][0].prior
    names = [f.name for f in fields(first) if isinstance(getattr(first, f.name), Real)]
    return {
        name: np.array([[float(getattr(draw.prior, name)) for draw in chain] for chain in draws])
        for name in names
        if name != "n_components"
    }
