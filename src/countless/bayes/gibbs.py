"""One Markov chain over partitions, with the parameters of their prior and of the model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields
from functools import partial
from numbers import Real
from typing import Any, NamedTuple

import numpy as np

from countless.bayes.collapsed import Partition, Setting, Visits, collapsed_sweep, partition_of
from countless.bayes.split_merge import settle, split_and_merge
from countless.bayes.uncollapsed import uncollapsed_sweep
from countless.models import BoundModel
from countless.priors import PartitionPrior, Tables

SWEEPS: dict[str, Callable[..., Partition]] = {
    "collapsed": collapsed_sweep,
    "uncollapsed": uncollapsed_sweep,
}
# Statistics follow rows that come and go; after so many sweeps they are summed afresh.
SWEEPS_BEFORE_REFRESH = 100
# Splits and merges that are tried after each sweep: more where they cost little, as clusters are
# known by few numbers.
FEWEST_TRIES, MOST_TRIES, NUMBERS_TRIED = 12, 90, 540
# Of these so many are never given up half way: one, and one more for so many numbers, as clusters
# that are known by many look hopeless until they have rows enough.
NUMBERS_PER_WHOLE, MOST_WHOLE = 8, 8
# A chain settles for so many sweeps, if so many are forgotten, and tries these as well meanwhile.
SETTLING, SETTLING_TRIES = 20, 8


class Draw(NamedTuple):
    """What is kept of a state."""

    labels: np.ndarray  # (n_rows,), in the smallest type that holds them
    log_joint: float
    prior: PartitionPrior  # all parameters numbers
    hyper: np.ndarray  # (n_hyper,), of the model


class PartitionChain:
    """A chain that starts from given labels.

    Parameters
    ----------
    model : BoundModel
        What a cluster looks like.
    prior : PartitionPrior
        Of the partition; parameters that are distributions are drawn, too.
    rows : ndarray of shape (n_rows, n_features)
        As ``model.rows`` makes them.
    labels : ndarray of int of shape (n_rows,)
        The clusters to start from, 0, 1, ...
    random : numpy.random.Generator
        Where all draws come from.
    sampler : {'collapsed', 'uncollapsed'}
        Whether a sweep integrates the parameters of clusters out or draws them.
    split_merge : bool
        Whether splits and merges are tried after each sweep.
    sample_hyper : bool
        Whether hyperparameters of the model that were not given are drawn.
    n_forgotten : int
        Of how many sweeps nothing is kept. In the first of them the chain only looks for where it
        belongs: see `settle` and `Visits`.
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
        self.model, self.believed, self.rows, self.random = model, prior, rows, random
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
        """How many clusters have rows."""
        return len(self.partition.sizes)

    @property
    def setting(self) -> Setting:
        """What the partition is moved in now."""
        return Setting(self.model, self.rows, self.tables, self.random)

    def sweep(self) -> None:
        """Move the partition, the parameters of its prior, and hyperparameters of the model."""
        self.move_partition()
        if self.believed.believed:
            sizes = self.partition.sizes
            self._set_prior(self.believed.update_parameters(self.prior, sizes, self.random))
        if len(self._free):
            self.move_hyper()

    def move_partition(self) -> None:
        """Draw the cluster of each row in turn, then try splits and merges."""
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
        """Move some hyperparameters of the model, given the clusters."""
        self.model = move_hyper(self.model, self.partition.statistics, self._free, self.random)

    def log_joint(self) -> float:
        """Return the log density of the rows, the partition and all parameters that are drawn.

        The normalising constant of a prior without parameters to draw may be left out.
        """
        return log_joint(self.model, self.believed, self.prior, self.partition)

    def record(self) -> Draw:
        """Return what is kept of the present state."""
        kind = np.min_scalar_type(self.n_clusters - 1)
        labels = self.partition.labels.astype(kind)
        return Draw(labels, self.log_joint(), self.prior, self.model.hyper.value)

    def _set_prior(self, prior: PartitionPrior) -> None:
        self.prior = prior
        self.tables: Tables = prior.tables(len(self.rows))


def log_joint(
    model: BoundModel, given: PartitionPrior, prior: PartitionPrior, partition: Partition
) -> float:
    """Return the log density of rows, partition, hyperparameters and free parameters of the prior.

    ``given`` has the distributions of those that are free, and ``prior`` their present values. The
    normalising constant of a prior without free parameters may be left out.
    """
    total = float(model.log_marginal(partition.statistics).sum())
    total += prior.log_weight(partition.sizes)
    if prior.consistent:  # others take long over a number that never changes
        total -= prior.log_normalizer(int(partition.sizes.sum()))
    total += given.log_prob_parameters(prior)
    return total + model.hyper.log_prior(model.hyper.value)


def move_hyper(
    model: BoundModel, statistics: np.ndarray, free: np.ndarray, random: np.random.Generator
) -> BoundModel:
    """Return the model after a move of some of its free hyperparameters, given the clusters."""
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
