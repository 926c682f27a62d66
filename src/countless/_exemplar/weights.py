"""Log weights of a partition prior in the exemplar model: of cluster sizes, and of their number.

The exemplar is uniform over the rows of its cluster, so that a cluster of s rows has the log weight
``log f(s) - log s``: for a Dirichlet process ``log Gamma(s) - log s`` (Tarlow, Zemel and Frey 2008,
section 3). If the weight of a new cluster does not depend on the number of clusters, it is added to
the preference of its exemplar; otherwise it is a separate factor of the number of exemplars.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from countless.priors import DirichletProcess, PartitionPrior, UniformPartition

NAMED = {"dirichlet-process": DirichletProcess, "uniform": UniformPartition}


class Weights(NamedTuple):
    """The log weight of every size and number of clusters of n rows; all zeros for no prior."""

    size: np.ndarray  # (n + 1,), 0 at 0
    number: np.ndarray  # (n + 1,), 0 at 0
    constant: float  # log normalizing constant over all partitions

    @property
    def counts_sizes(self) -> bool:
        return bool(self.size.any())

    @property
    def is_flat(self) -> bool:
        """Whether the objective consists of similarities only."""
        return not self.counts_sizes and not self.number.any()

    @property
    def opens_alike(self) -> bool:
        """Whether each cluster adds the same log weight, whatever their number."""
        step = np.diff(self.number)
        return bool(np.allclose(step, step[0], rtol=1e-12, atol=1e-12))

    @property
    def spread(self) -> float:
        """Range of the finite weights."""
        finite = [part[np.isfinite(part)] for part in (self.size, self.number)]
        return float(sum(np.ptp(part) for part in finite))

    def of(self, sizes: np.ndarray) -> float:
        """Return the log probability of clusters of these sizes and of their exemplars."""
        return float(self.size[sizes].sum() + self.number[len(sizes)] + self.constant)

    def bounded(self, price: float) -> Weights:
        """Return the weights with a finite price for each excess row or cluster."""
        return Weights(_bounded(self.size, price), _bounded(self.number, price), self.constant)


def _bounded(weight: np.ndarray, price: float) -> np.ndarray:
    allowed = np.flatnonzero(np.isfinite(weight))[-1]
    excess = np.maximum(np.arange(len(weight)) - allowed, 0)
    return np.where(excess > 0, weight[allowed] - price * excess, weight)


def check_prior(prior: Any) -> PartitionPrior | None:
    """Return a prior, or raise an error that says what is accepted."""
    if prior is None or isinstance(prior, PartitionPrior):
        return prior
    if isinstance(prior, str) and prior in NAMED:
        return NAMED[prior]()
    known = ", ".join(repr(name) for name in NAMED)
    raise ValueError(f"prior must be None, {known} or one of countless.priors; got {prior!r}")


def weights_of(prior: PartitionPrior | None, n: int) -> Weights:
    """Return the log weights of a prior for n rows, with one exemplar in each cluster.

    Examples
    --------
    >>> from countless.priors import DirichletProcess
    >>> weights = weights_of(DirichletProcess(alpha=2.0), 3)
    >>> np.exp(weights.size).round(2).tolist(), np.exp(weights.number).round(2).tolist()
    ([1.0, 1.0, 0.5, 0.67], [1.0, 2.0, 4.0, 8.0])
    """
    if prior is None:
        return Weights(np.zeros(n + 1), np.zeros(n + 1), 0.0)
    sizes = np.arange(1, n + 1)
    size = np.concatenate([[0.0], prior.log_size(sizes) - np.log(sizes)])
    number = np.concatenate([[0.0], np.cumsum(prior.log_open(np.arange(n)))])
    return Weights(size, number, -prior.log_normalizer(n))
