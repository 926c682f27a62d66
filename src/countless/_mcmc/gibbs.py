"""One Markov chain over partitions, parameters of their prior and hyperparameters of the model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields
from functools import partial
from numbers import Real
from typing import Any, NamedTuple

import numpy as np

from countless._mcmc.collapsed import Partition, Setting, Visits, collapsed_sweep, partition_of
from countless._mcmc.split_merge import settle, split_and_merge
from countless._mcmc.uncollapsed import uncollapsed_sweep
from countless.models import BoundModel
from countless.priors import PartitionPrior, Tables

SWEEPS: dict[str, Callable[..., Partition]] = {
    "collapsed": collapsed_sweep,
    "uncollapsed": uncollapsed_sweep,
}
# Statistics are updated as rows move; this often they are summed again, against rounding errors.
SWEEPS_BEFORE_REFRESH = 100
# Split-merge proposals after each sweep: more where sufficient statistics have few entries, as a
# proposal then costs little. NUMBERS_TRIED is the number of entries per sweep.
FEWEST_TRIES, MOST_TRIES, NUMBERS_TRIED = 12, 90, 540
# Of these the number without early rejection: one, and one more for each NUMBERS_PER_WHOLE entries
# of the statistics. Clusters with many parameters look improbable until they have enough rows.
NUMBERS_PER_WHOLE, MOST_WHOLE = 8, 8
# Warm-up sweeps, at most as many as are discarded, and the extra moves (`settle`) in each of them.
SETTLING, SETTLING_TRIES = 20, 8


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
    n_forgotten : int
        Length of the burn-in. Its first sweeps are warm-up sweeps, with moves that do not leave the
        posterior invariant: see `settle` and `Visits`.
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
        n_forgotten: int = 0,
    ) -> None:
        self.model, self.given_prior, self.rows, self.random = model, prior, rows, random
        self._n_settling = min(SETTLING, n_forgotten)
        self._sweep, self._split_merge = SWEEPS[sampler], split_merge
        self._n_tries = max(FEWEST_TRIES, min(MOST_TRIES, NUMBERS_TRIED // model.width))
        self._n_whole = min(MOST_WHOLE, 1 + model.width // NUMBERS_PER_WHOLE)
        if sampler == "collapsed":
            self._sweep = partial(collapsed_sweep, visits=Visits(len(rows), self._n_settling))
        self._free = np.flatnonzero(model.hyper.free) if sample_hyper else np.empty(0, dtype=int)
        self.n_swept = 0
        self.partition = partition_of(model, rows, labels)
        self._set_prior(prior.draw_parameters(random))

    @property
    def n_clusters(self) -> int:
        """Number of nonempty clusters."""
        return len(self.partition.sizes)

    @property
    def setting(self) -> Setting:
        """The target of the moves of the partition, given the present parameters."""
        return Setting(self.model, self.rows, self.tables, self.random)

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
        setting = self.setting
        self.partition = self._sweep(self.partition, setting)
        if self._split_merge:
            if self.n_swept <= self._n_settling:
                self.partition = settle(self.partition, setting, SETTLING_TRIES)
            tries = self._n_tries, self._n_whole
            self.partition = split_and_merge(self.partition, setting, *tries)

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
