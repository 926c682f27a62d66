"""Base class of priors over partitions: exchangeable partitions of product form.

A partition of n rows into k clusters of sizes s(1), ..., s(k) has the probability

    f(s(1)) ... f(s(k)) * h(0) ... h(k - 1) / Z(n)

where f is the weight of a size, h(j) that of opening a cluster when there are j, and Z(n) is the
normalizing constant over all partitions of n rows. So, given all other rows, a row joins a cluster
of s others with weight f(s + 1) / f(s) and opens one with weight f(1) h(k). These depend on s or k
alone and are stored in lookup tables.

References
----------
.. [1] A. Gnedin and J. Pitman, "Exchangeable Gibbs partitions and Stirling triangles",
   Journal of Mathematical Sciences 138, 2006.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields, replace
from numbers import Integral
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logsumexp

from countless._labels import check_labels
from countless.priors.hyper import Hyperprior, as_generator, slice_step


class Tables(NamedTuple):
    """The log weights of a prior as lookup tables for kernels, for partitions of n rows.

    Entries do not depend on n, so that tables for fewer rows are prefixes of those for more. If
    ``open`` is the same at every k, the prior depends on sizes alone.

    Examples
    --------
    >>> import numpy as np
    >>> from countless.priors import DirichletProcess
    >>> size, join, open = DirichletProcess(alpha=0.5).tables(4)
    >>> np.exp(size).round(2), np.exp(join).round(2), np.exp(open).round(2)
    (array([1., 1., 1., 2., 6.]), array([0., 1., 2., 3.]), array([0.5, 0.5, 0.5, 0.5]))
    """

    size: np.ndarray  # (n + 1,), log f(s), the weight of a cluster of s rows; 0 for no rows
    join: np.ndarray  # (n,), log weight of joining a cluster of s other rows; -inf for no rows
    open: np.ndarray  # (n,), log weight of a new cluster when the other rows have k clusters


def check_count(name: str, value: Any) -> int:
    """Validate a positive integer, such as a number of rows or components, and return it."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise TypeError(f"{name} must be an integer; got {value!r}")
    if int(value) < 1:
        raise ValueError(f"{name} must be at least 1; got {value}")
    return int(value)


def check_sizes(sizes: ArrayLike) -> np.ndarray:
    """Validate the sizes of clusters, positive integers, and return them as an array."""
    array = np.asarray(sizes)
    if array.ndim != 1:
        raise ValueError(f"sizes must have one dimension, got an array of shape {array.shape}")
    if array.dtype.kind not in "iuf":
        raise TypeError(f"sizes must be integers; got values of type {array.dtype}")
    good = np.isfinite(array) & (array >= 1) & (array == np.floor(array))
    if not good.all():
        first = int(good.argmin())
        raise ValueError(f"sizes must be integers from 1; cluster {first} has {array[first]}")
    return array.astype(np.int64)


@dataclass(frozen=True)
class PartitionPrior(ABC):
    """An exchangeable distribution of partitions: it depends on the sizes of clusters only.

    A prior is immutable and validated when constructed. A parameter may have a hyperprior,
    ``Gamma`` or ``Beta``; then ``draw_parameters`` and ``update_parameters`` return priors with
    numeric parameters, and only those have probabilities.

    ``consistent`` is True if the prior is consistent under marginalization: the distribution for n
    rows is that for n + 1 rows with one row removed, as for a stream of rows of one population.

    Examples
    --------
    >>> from countless.priors import DirichletProcess, PartitionPrior, UniformPartition
    >>> priors: list[PartitionPrior] = [DirichletProcess(), UniformPartition()]
    >>> [round(prior.expected_n_clusters(30), 1) for prior in priors]
    [4.0, 11.2]
    """

    consistent: ClassVar[bool]

    @abstractmethod
    def log_size(self, sizes: np.ndarray) -> np.ndarray:
        """Return log f, the weight of a cluster, for sizes from 1."""

    @abstractmethod
    def log_open(self, n_clusters: np.ndarray) -> np.ndarray:
        """Return log h, the weight of one more cluster, for numbers of clusters from 0."""

    @abstractmethod
    def log_normalizer(self, n: int) -> float:
        """Return log Z, the log of the sum of the weights of all partitions of n rows."""

    @abstractmethod
    def expected_n_clusters(self, n: int) -> float:
        """Return the expected number of clusters of n rows."""

    @abstractmethod
    def n_clusters_distribution(self, n: int) -> np.ndarray:
        """Return the probability of each number of clusters of n rows, from 0 to n."""

    @abstractmethod
    def sample(self, n: int, random_state: Any = None) -> np.ndarray:
        """Draw a partition of n rows: a label for each, numbered by first appearance."""

    def log_join(self, sizes: np.ndarray) -> np.ndarray:
        """Return log f(s + 1) / f(s), the weight of joining a cluster of s rows, from 1."""
        return self.log_size(sizes + 1) - self.log_size(sizes)

    def log_weight(self, sizes: ArrayLike) -> float:
        """Return the log weight of a partition: its log probability without ``log_normalizer``.

        It suffices to compare partitions of the same rows, and costs O(n_clusters).
        """
        sizes = check_sizes(sizes)
        return float(self.log_size(sizes).sum() + self.log_open(np.arange(len(sizes))).sum())

    def log_prob(self, labels: ArrayLike | None = None, *, sizes: ArrayLike | None = None) -> float:
        """Return the log probability of a partition of rows.

        Parameters
        ----------
        labels : array-like of shape (n_rows,), optional
            The cluster of each row, as arbitrary labels.
        sizes : array-like of shape (n_clusters,), optional
            The size of each cluster, instead of labels.

        Returns
        -------
        float
            Minus infinity if the prior excludes the partition.
        """
        if labels is not None and sizes is None:
            sizes = np.unique(check_labels("labels", labels), return_counts=True)[1]
        elif labels is not None or sizes is None:
            raise TypeError("give either labels or sizes")
        sizes = check_sizes(sizes)
        if not len(sizes):
            return 0.0
        return self.log_weight(sizes) - self.log_normalizer(int(sizes.sum()))

    def log_predictive(self, sizes: ArrayLike) -> np.ndarray:
        """Return the log probability that one more row joins each cluster, or opens one.

        Parameters
        ----------
        sizes : array-like of shape (n_clusters,)
            Number of the other rows in each cluster.

        Returns
        -------
        ndarray of shape (n_clusters + 1,)
            The last entry is that of a new cluster; probabilities sum to 1. This is the conditional
            distribution of the row's cluster under the prior of all rows, itself included.
        """
        sizes = check_sizes(sizes)
        alone = self.log_open(np.array([len(sizes)])) + self.log_size(np.array([1]))
        weights = np.concatenate([self.log_join(sizes), alone])
        return weights - logsumexp(weights)

    def tables(self, n: int) -> Tables:
        """Return the log weights of sizes, of joining and of opening, for a sampler of n rows.

        A Gibbs sampler that has removed one row adds ``join[s]`` to the log predictive of the row
        in a cluster of s others, and ``open[k]`` to that in a new cluster besides k others.
        """
        n = check_count("n", n)
        size = np.concatenate([[0.0], self.log_size(np.arange(1, n + 1))])
        join = np.concatenate([[-np.inf], self.log_join(np.arange(1, n))])
        return Tables(size, join, self.log_open(np.arange(n)) + size[1])

    @property
    def hyperpriors(self) -> dict[str, Hyperprior]:
        """The hyperpriors of parameters that are given as distributions, by name."""
        named = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: value for name, value in named.items() if isinstance(value, Hyperprior)}

    def draw_parameters(self, random_state: Any = None) -> Self:
        """Draw every parameter that has a hyperprior; return a prior with numeric parameters."""
        hyperpriors = self.hyperpriors
        if not hyperpriors:
            return self
        random = as_generator(random_state)
        drawn: dict[str, Any] = {name: prior.draw(random) for name, prior in hyperpriors.items()}
        return replace(self, **drawn)

    def update_parameters(self, current: Self, sizes: ArrayLike, random_state: Any = None) -> Self:
        """Take one step of a Markov chain on the parameters, given a partition.

        Parameters
        ----------
        current : a prior of the same kind
            With the present numeric parameters, from ``draw_parameters`` or an earlier step.
        sizes : array-like of shape (n_clusters,)
            The sizes of the clusters.
        random_state : int, RandomState, Generator or None
            Source of random numbers.

        Returns
        -------
        a prior of the same kind
            With parameters after a step that leaves their posterior invariant.
        """
        sizes = check_sizes(sizes)
        random = as_generator(random_state)
        for name, hyperprior in self.hyperpriors.items():

            def log_likelihood(value: float, name: str = name, held: Self = current) -> float:
                return replace(held, **{name: value}).log_prob(sizes=sizes)

            value = slice_step(hyperprior, log_likelihood, getattr(current, name), random)
            current = replace(current, **{name: value})
        return current

    def log_prob_parameters(self, current: Self) -> float:
        """Return the log density of the present parameters under their hyperpriors."""
        return sum(
            hyperprior.log_density(getattr(current, name))
            for name, hyperprior in self.hyperpriors.items()
        )
