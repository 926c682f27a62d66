"""Chinese restaurant processes: Dirichlet process, Pitman-Yor process and finite Dirichlet.

All three are one family with concentration alpha and discount d: a row joins a cluster of s others
with weight s - d and opens one besides k others with weight alpha + k d. So
f(s) = Gamma(s - d) / Gamma(1 - d), h(k) = alpha + k d, Z(n) = Gamma(alpha + n) / Gamma(alpha), and
by stick breaking the k-th mixture weight is a Beta(1 - d, alpha + k d) share of the remaining
stick. The Dirichlet process has d = 0, and a Dirichlet distribution over K components
d = -alpha / K, so that there are at most K clusters.

References
----------
.. [1] K. P. Murphy, "Machine Learning: A Probabilistic Perspective", section 25.2, 2012.
.. [2] J. Pitman, "Combinatorial Stochastic Processes", section 3.2, 2006.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betaln, digamma, gammaln

from countless.kernels.partitions import count_seated, seat_rows
from countless.priors.base import PartitionPrior, Tables, check_count, check_sizes
from countless.priors.hyper import (
    Beta,
    Gamma,
    as_generator,
    check_number,
    check_positive,
    draw_concentration,
)


def _log_size(sizes: np.ndarray, discount: float) -> np.ndarray:
    return gammaln(sizes - discount) - gammaln(1 - discount)


@lru_cache(maxsize=2)  # independent of alpha, which changes with every sweep of a chain
def _size_tables(discount: float, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the log weights of sizes up to n, and of joining clusters of fewer rows."""
    sizes = np.arange(1, n + 1)
    join = np.log(sizes[:-1] - discount)
    return np.append(0.0, _log_size(sizes, discount)), np.append(-np.inf, join)


def _sums_after(sizes: np.ndarray) -> np.ndarray:
    """Return the sum of the sizes after each, which cancellation cannot make negative."""
    sums = np.cumsum(sizes[..., ::-1], axis=-1)[..., ::-1]
    return np.concatenate([sums[..., 1:], np.zeros((*sizes.shape[:-1], 1))], axis=-1)


class Restaurant(PartitionPrior):
    """The Chinese restaurant process with a concentration and a discount."""

    consistent: ClassVar[bool] = True
    alpha: float | Gamma

    @abstractmethod
    def _discount(self) -> float:
        """Return the discount: subtracted from the weight of each cluster, added to a new one's."""

    def most_clusters(self) -> float:
        """Return the largest number of clusters."""
        return np.inf

    def known_parameters(self) -> tuple[float, float]:
        """Return alpha and the discount; raise a ValueError if one has a hyperprior."""
        if self.hyperpriors:
            name, hyperprior = next(iter(self.hyperpriors.items()))
            raise ValueError(f"{name} is {hyperprior}, not a number: call draw_parameters() first")
        return float(self.alpha), self._discount()  # type: ignore[arg-type]

    def log_size(self, sizes: np.ndarray) -> np.ndarray:
        """Return log f, the weight of a cluster, for sizes from 1."""
        _, discount = self.known_parameters()
        return _log_size(sizes, discount)

    def log_join(self, sizes: np.ndarray) -> np.ndarray:
        """Return log f(s + 1) / f(s), the weight of joining a cluster of s rows, from 1."""
        _, discount = self.known_parameters()
        return np.log(sizes - discount)

    def log_open(self, n_clusters: np.ndarray) -> np.ndarray:
        """Return log h, the weight of one more cluster, for numbers of clusters from 0.

        The first row always opens a cluster, so that its weight is set to 1 if alpha is not
        positive.
        """
        alpha, discount = self.known_parameters()
        weight = np.where(n_clusters < self.most_clusters(), alpha + discount * n_clusters, 0.0)
        weight = np.where((n_clusters == 0) & (alpha <= 0), 1.0, weight)
        with np.errstate(divide="ignore"):
            return np.log(weight)

    def tables(self, n: int) -> Tables:
        """Return the log weights of sizes, of joining and of opening, for a sampler of n rows."""
        n = check_count("n", n)
        _, discount = self.known_parameters()
        opening = self.log_open(np.arange(n if discount else 1))  # constant without a discount
        return Tables(*_size_tables(discount, n), opening.repeat(1 if discount else n))

    def log_normalizer(self, n: int) -> float:
        """Return log Z, the log of the sum of the weights of all partitions of n rows."""
        n = check_count("n", n)
        alpha, _ = self.known_parameters()
        first = self.log_open(np.array([0]))[0]
        return float(gammaln(alpha + n) - gammaln(alpha + 1) + first)

    def expected_n_clusters(self, n: int) -> float:
        """Return the expected number of clusters of n rows.

        It is the sum over rows of the probability of opening a cluster. No term is negative, so
        that there is no cancellation, however small the discount.
        """
        n = check_count("n", n)
        alpha, discount = self.known_parameters()
        row = np.arange(1, n)
        return float(1 + np.cumprod((alpha + discount + row - 1) / (alpha + row)).sum())

    def n_clusters_distribution(self, n: int) -> np.ndarray:
        """Return the probability of each number of clusters of n rows, from 0 to n."""
        n = check_count("n", n)
        _, discount = self.known_parameters()
        shares = np.empty(n + 1)
        count_seated(discount, np.exp(self.log_open(np.arange(n))), shares)
        return shares

    def sample(self, n: int, random_state: Any = None) -> np.ndarray:
        """Draw a partition of n rows sequentially, by the Chinese restaurant process.

        Parameters
        ----------
        n : int
            Number of rows.
        random_state : int, RandomState, Generator or None
            Source of random numbers. Parameters with a hyperprior are drawn first.

        Returns
        -------
        ndarray of int32 of shape (n,)
            The cluster of each row, numbered by first appearance.
        """
        labels = np.empty(check_count("n", n), dtype=np.int32)
        random = as_generator(random_state)
        drawn = self.draw_parameters(random)
        alpha, discount = drawn.known_parameters()
        seat_rows(alpha, discount, min(drawn.most_clusters(), len(labels)), random, labels)
        return labels

    def log_prob_ordered(self, sizes: np.ndarray) -> np.ndarray:
        """Return the log probability that rows are in the first components, by stick breaking.

        Here components have an order and may share rows: sizes are sums of their weights.

        Parameters
        ----------
        sizes : ndarray of shape (..., n_components)
            The size of each component, 0 or more.

        Returns
        -------
        ndarray of shape (...,)
            Minus infinity if there are more components than the prior allows.
        """
        if sizes.shape[-1] > self.most_clusters():
            return np.full(sizes.shape[:-1], -np.inf)
        piece, rest = self._sticks(sizes.shape[-1])
        after = _sums_after(sizes)
        broken = rest > 0  # the last of finitely many takes all that is left
        found = betaln(piece + sizes, rest + after)[..., broken] - betaln(piece, rest[broken])
        return found.sum(axis=-1)

    def expected_log_weights(self, sizes: np.ndarray) -> np.ndarray:
        """Return the posterior expectation of each component's log weight, by stick breaking."""
        first, others = self._sticks(len(sizes))
        piece, rest = first + sizes, others + _sums_after(sizes)
        with np.errstate(divide="ignore"):
            left = np.where(rest > 0, digamma(rest) - digamma(piece + rest), 0.0)
        taken = digamma(piece) - digamma(piece + rest)
        return taken + np.concatenate([[0.0], np.cumsum(left[:-1])])

    def expected_weights(self, sizes: np.ndarray) -> np.ndarray:
        """Return the posterior mean of each component's weight, and of all others together."""
        piece, rest = self._sticks(len(sizes))
        share = (piece + sizes) / (piece + sizes + rest + _sums_after(sizes))
        left = np.concatenate([[1.0], np.cumprod(1.0 - share)])
        return np.append(share, 1.0) * left

    def _sticks(self, n: int) -> tuple[float, np.ndarray]:
        """Return the parameters of the beta shares of the first components."""
        alpha, discount = self.known_parameters()
        number = np.arange(1, n + 1)
        rest = np.where(number < self.most_clusters(), alpha + discount * number, 0.0)
        return 1.0 - discount, rest

    def weights(self, n: int, random_state: Any = None) -> np.ndarray:
        """Draw the first n mixture weights by stick breaking.

        Parameters
        ----------
        n : int
            Number of weights; the remainder to 1 is the weight of all others.
        random_state : int, RandomState, Generator or None
            Source of random numbers. Parameters with a hyperprior are drawn first.

        Returns
        -------
        ndarray of shape (n,)
            In the order of first appearance among rows (size-biased): large ones tend to be first.
        """
        n = check_count("n", n)
        random = as_generator(random_state)
        drawn = self.draw_parameters(random)
        weights = np.zeros(n)
        broken = int(min(n, drawn.most_clusters()))
        first, left = drawn._sticks(broken)
        # A beta draw as a ratio of two gamma draws, which allows a parameter of 0 for the rest.
        piece, rest = random.gamma(first, size=broken), random.gamma(left)
        share = piece / (piece + rest)
        weights[:broken] = share * np.concatenate([[1.0], np.cumprod(1 - share[:-1])])
        return weights


@dataclass(frozen=True)
class DirichletProcess(Restaurant):
    """The Dirichlet process: rich get richer, with about alpha log(n) clusters.

    Parameters
    ----------
    alpha : float or Gamma, default=1.0
        The concentration: the larger, the more clusters are expected. With a ``Gamma`` hyperprior
        it is inferred from the data.

    Examples
    --------
    >>> from countless.priors import DirichletProcess
    >>> prior = DirichletProcess(alpha=1.0)
    >>> round(prior.expected_n_clusters(100), 2)
    5.19
    >>> prior.sample(10, random_state=0)
    array([0, 1, 1, 0, 0, 1, 1, 1, 1, 0], dtype=int32)
    >>> import numpy as np
    >>> np.exp(prior.log_predictive([3, 1])).round(2)
    array([0.6, 0.2, 0.2])
    """

    alpha: float | Gamma = 1.0

    def __post_init__(self) -> None:
        if not isinstance(self.alpha, Gamma):
            check_positive("alpha", self.alpha)

    def _discount(self) -> float:
        return 0.0

    def update_parameters(self, current: Self, sizes: ArrayLike, random_state: Any = None) -> Self:
        """Draw alpha given a partition, by the auxiliary variables of Escobar and West.

        Parameters
        ----------
        current : DirichletProcess
            With the present numeric alpha.
        sizes : array-like of shape (n_clusters,)
            The sizes of the clusters.
        random_state : int, RandomState, Generator or None
            Source of random numbers.

        Returns
        -------
        DirichletProcess
            With alpha after a step that leaves its posterior invariant.
        """
        if not isinstance(self.alpha, Gamma):
            return current
        sizes = check_sizes(sizes)
        alpha, _ = current.known_parameters()
        random = as_generator(random_state)
        drawn = draw_concentration(alpha, self.alpha, len(sizes), sizes.sum(), random)
        return type(self)(drawn)


@dataclass(frozen=True)
class PitmanYor(Restaurant):
    """The Pitman-Yor process: the number of clusters grows as n^discount, and most are small.

    Parameters
    ----------
    alpha : float or Gamma
        The concentration, above minus the discount.
    discount : float or Beta
        The power-law exponent, from 0, the Dirichlet process, to below 1, where nearly every row
        opens a cluster.

    Examples
    --------
    >>> from countless.priors import PitmanYor
    >>> prior = PitmanYor(alpha=1.0, discount=0.5)
    >>> round(prior.expected_n_clusters(10_000))
    224
    >>> prior.weights(3, random_state=2).round(2).tolist()
    [0.49, 0.24, 0.06]
    """

    alpha: float | Gamma
    discount: float | Beta

    def __post_init__(self) -> None:
        if not isinstance(self.discount, Beta):
            check_number("discount", self.discount)
            if not 0 <= self.discount < 1:
                raise ValueError(f"discount must be from 0 to below 1; got {self.discount}")
        if isinstance(self.alpha, Gamma):
            return
        check_number("alpha", self.alpha)
        if isinstance(self.discount, Beta):
            if self.alpha < 0:
                raise ValueError(
                    f"alpha must not be negative where the discount is unknown; got {self.alpha}"
                )
        elif not self.alpha > -self.discount:
            raise ValueError(
                f"alpha must be above minus the discount, {-self.discount}; got {self.alpha}"
            )

    def _discount(self) -> float:
        return float(self.discount)  # type: ignore[arg-type]


@dataclass(frozen=True)
class FiniteDirichlet(Restaurant):
    """Finite mixtures of K components with symmetric Dirichlet weights, alpha / K for each.

    As K grows it converges to the Dirichlet process of the same alpha.

    Parameters
    ----------
    alpha : float or Gamma
        The total concentration of all components.
    n_components : int
        Number of components; some of them may be empty.

    Examples
    --------
    >>> from countless.priors import FiniteDirichlet
    >>> prior = FiniteDirichlet(alpha=1.0, n_components=4)
    >>> prior.n_clusters_distribution(100).round(2)[:6].tolist()
    [0.0, 0.03, 0.23, 0.46, 0.27, 0.0]
    """

    alpha: float | Gamma
    n_components: int

    def __post_init__(self) -> None:
        if not isinstance(self.alpha, Gamma):
            check_positive("alpha", self.alpha)
        check_count("n_components", self.n_components)

    def _discount(self) -> float:
        return -float(self.alpha) / self.n_components  # type: ignore[arg-type]

    def most_clusters(self) -> float:
        return self.n_components
