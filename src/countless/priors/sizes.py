"""Priors that are a product of weights of cluster sizes: product partition models.

The probability of a partition is a product of f(size) over its clusters, divided by the sum Z(n) of
that product over all partitions. The first row's cluster has s rows with probability
binomial(n - 1, s - 1) f(s) Z(n - s) / Z(n); removing it leaves a partition of n - s rows under the
same prior. This recursion gives Z, exact draws and the expected number of clusters in O(n^2), and
the distribution of the number of clusters in O(n^3).

Except for the f of a Chinese restaurant process these priors are not consistent under
marginalization: the distribution for n rows is not that for n + 1 rows with one removed, and there
is no sequential construction. The conditional distribution of a row's cluster given all others,
which samplers use, still has a closed form.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gammaln, logsumexp

from countless._labels import number_by_appearance
from countless.kernels.partitions import count_by_sizes, draw_sizes, log_stirling, sum_partitions
from countless.priors.base import PartitionPrior, check_count
from countless.priors.hyper import as_generator


class SizeWeights(PartitionPrior):
    """A normalized product of weights of cluster sizes."""

    consistent: ClassVar[bool] = False

    def log_open(self, n_clusters: np.ndarray) -> np.ndarray:
        """Return zeros: there is no weight for the number of clusters."""
        return np.zeros(np.shape(n_clusters))

    def _sums(self, n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return log terms, log sums over partitions, and expected k, for up to n rows."""
        sizes = np.arange(1, check_count("n", n) + 1)
        log_terms = np.concatenate([[-np.inf], self.log_size(sizes) - gammaln(sizes)])
        log_sums, expected = np.empty(n + 1), np.empty(n + 1)
        sum_partitions(log_terms, log_sums, expected)
        return log_terms, log_sums, expected

    def log_normalizer(self, n: int) -> float:
        """Return log Z, the log of the sum of the weights of all partitions of n rows."""
        _, log_sums, _ = self._sums(n)
        return float(log_sums[n] + gammaln(n + 1))

    def expected_n_clusters(self, n: int) -> float:
        """Return the expected number of clusters of n rows."""
        _, _, expected = self._sums(n)
        return float(expected[n])

    def n_clusters_distribution(self, n: int) -> np.ndarray:
        """Return the probability of each number of clusters of n rows, from 0 to n."""
        log_terms, log_sums, _ = self._sums(n)
        return count_by_sizes(log_terms, log_sums)

    def sample(self, n: int, random_state: Any = None) -> np.ndarray:
        """Draw a partition of n rows: the sizes first, then a random allocation of rows.

        Parameters
        ----------
        n : int
            Number of rows.
        random_state : int, RandomState, Generator or None
            Source of random numbers.

        Returns
        -------
        ndarray of int32 of shape (n,)
            The cluster of each row, numbered by first appearance.
        """
        log_terms, log_sums, _ = self._sums(n)
        random = as_generator(random_state)
        sizes = np.empty(n, dtype=np.int64)
        n_clusters = draw_sizes(log_terms, log_sums, random, sizes)
        labels = np.repeat(np.arange(n_clusters), sizes[:n_clusters])
        return number_by_appearance(random.permutation(labels))[1]


@dataclass(frozen=True)
class SizePrior(SizeWeights):
    """A user-defined prior: a log weight for each size of a cluster.

    Parameters
    ----------
    log_size_weight : callable
        Takes an array of sizes, as floats, and returns the log weight of each. Minus infinity
        excludes sizes above some size; small sizes need finite, if low, log weights, so that a
        Gibbs sampler can move single rows.

    Examples
    --------
    Clusters of at most three rows, and otherwise a uniform distribution:

    >>> import numpy as np
    >>> from countless.priors import SizePrior
    >>> prior = SizePrior(lambda size: np.where(size <= 3, 0.0, -np.inf))
    >>> prior.expected_n_clusters(3)
    2.0
    >>> prior.log_prob([0, 0, 0, 0])
    -inf

    The Dirichlet process of alpha = 1 is a special case:

    >>> from scipy.special import gammaln
    >>> round(SizePrior(gammaln).expected_n_clusters(100), 2)
    5.19
    """

    log_size_weight: Callable[[np.ndarray], ArrayLike]

    def __post_init__(self) -> None:
        if not callable(self.log_size_weight):
            raise TypeError(f"log_size_weight must be a function; got {self.log_size_weight!r}")

    def log_size(self, sizes: np.ndarray) -> np.ndarray:
        """Return log f, the weight of a cluster, for sizes from 1."""
        # As floats, for which negative powers are defined.
        given = np.asarray(self.log_size_weight(sizes.astype(np.float64)), dtype=np.float64)
        if given.shape not in ((), sizes.shape):
            raise ValueError(
                f"log_size_weight must return one log weight for each size; "
                f"for {len(sizes)} sizes it returned an array of shape {given.shape}"
            )
        weights = np.broadcast_to(given, sizes.shape)
        wrong = np.isnan(weights) | (weights == np.inf)
        if wrong.any():
            at = int(wrong.argmax())
            raise ValueError(f"log_size_weight of size {sizes[at]} is {weights[at]}")
        forbidden = np.isneginf(weights)
        if forbidden.any():
            lowest = sizes[forbidden].min()
            if lowest < sizes[~forbidden].max(initial=1):
                raise ValueError(
                    f"log_size_weight forbids size {lowest} and allows larger ones: give it a low "
                    "finite log weight instead"
                )
            if lowest == 1:
                raise ValueError("log_size_weight forbids size 1: give it a low finite log weight")
        return weights

    def log_join(self, sizes: np.ndarray) -> np.ndarray:
        """Return log f(s + 1) / f(s), the weight of joining a cluster of s rows, from 1."""
        joined = self.log_size(sizes + 1)
        allowed = ~np.isneginf(joined)
        return np.where(allowed, joined - np.where(allowed, self.log_size(sizes), 0.0), -np.inf)


@dataclass(frozen=True)
class UniformPartition(SizeWeights):
    """The uniform distribution of partitions: each has probability one over the Bell number.

    It has no parameter and favours about n / log(n) clusters; joining any cluster and opening one
    have equal weight. It is not consistent under marginalization: rows assigned one by one with
    these weights would not give equally probable partitions.

    Examples
    --------
    >>> import numpy as np
    >>> from countless.priors import UniformPartition
    >>> prior = UniformPartition()
    >>> round(np.exp(-prior.log_prob([0, 0, 1, 2, 1])))  # partitions of five rows
    52
    >>> np.exp(prior.log_predictive([3, 1])).round(2)
    array([0.33, 0.33, 0.33])
    """

    def log_size(self, sizes: np.ndarray) -> np.ndarray:
        """Return zeros: all sizes have equal weight."""
        return np.zeros(np.shape(sizes))

    def n_clusters_distribution(self, n: int) -> np.ndarray:
        """Return the probability of each number of clusters of n rows, from 0 to n.

        These are Stirling numbers of the second kind over the Bell number: one more row can join
        one of k clusters in k ways and open one in one way.
        """
        counts = log_stirling(check_count("n", n))
        return np.exp(counts - logsumexp(counts))
