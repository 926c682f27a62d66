"""Hyperpriors of the parameters of partition priors, and their sampling given a partition.

A parameter is transformed from its domain to the real line, where it is sampled without
constraints. A slice sampler [2]_ serves every parameter; for a concentration with a gamma prior
there are auxiliary variables given which its conditional is a gamma distribution [1]_, here for any
number of groups that share it [3]_.

References
----------
.. [1] M. D. Escobar and M. West, "Bayesian density estimation and inference using mixtures",
   JASA 90, 1995.
.. [2] R. M. Neal, "Slice sampling", Annals of Statistics 31, 2003.
.. [3] Y. W. Teh, M. I. Jordan, M. J. Beal and D. M. Blei, "Hierarchical Dirichlet processes",
   JASA 101, 2006, appendix A.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betaln, expit, gammaln, logit, xlog1py, xlogy
from sklearn.utils import check_random_state

# Distance of draws from the end of an open domain, so that logarithms are finite.
TINY = float(np.finfo(np.float64).tiny)
# Largest number of steps of stepping out, and of shrinkages; after these the interval is narrower
# than the distance between two floats.
MOST_STEPS, MOST_SHRINKS = 64, 200
BELOW_ONE = 1.0 - float(np.finfo(np.float64).epsneg)


def check_number(name: str, value: Any) -> None:
    """Raise an error unless a parameter is a finite number."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"{name} must be a number; got {value!r}")
    if not np.isfinite(float(value)):
        raise ValueError(f"{name} must be finite; got {value}")


def check_positive(name: str, value: Any) -> None:
    """Raise an error unless a parameter is a finite number above 0."""
    check_number(name, value)
    if not value > 0:
        raise ValueError(f"{name} must be positive; got {value}")


def as_generator(random_state: Any) -> np.random.Generator:
    """Return a given generator, or one seeded by scikit-learn's ``random_state``."""
    if isinstance(random_state, np.random.Generator):
        return random_state
    seed = check_random_state(random_state).randint(2**32, size=4, dtype=np.uint32)
    return np.random.default_rng(seed)


class Hyperprior(ABC):
    """The prior of one parameter, and the transformation of its domain to the real line."""

    @abstractmethod
    def log_density(self, value: float) -> float:
        """Return the log density at a value inside the domain."""

    @abstractmethod
    def draw(self, random: np.random.Generator) -> float:
        """Draw a value."""

    @abstractmethod
    def unconstrain(self, value: float) -> float:
        """Transform a value to the real line."""

    @abstractmethod
    def constrain(self, place: float) -> tuple[float, float]:
        """Return the value at a point of the real line, and the log Jacobian there."""


@dataclass(frozen=True)
class Gamma(Hyperprior):
    """A gamma prior on a positive parameter, of mean ``shape / rate``.

    Parameters
    ----------
    shape : float, default=1.0
        Small values put more probability near 0.
    rate : float, default=1.0
        The inverse of the scale.

    Examples
    --------
    >>> from countless.priors import DirichletProcess, Gamma
    >>> prior = DirichletProcess(alpha=Gamma(2.0, 4.0))
    >>> draws = [prior.draw_parameters(seed).alpha for seed in range(500)]
    >>> 0.4 < sum(draws) / 500 < 0.6
    True
    """

    shape: float = 1.0
    rate: float = 1.0

    def __post_init__(self) -> None:
        check_positive("shape", self.shape)
        check_positive("rate", self.rate)

    def log_density(self, value: float) -> float:
        """Return the log density at a positive value."""
        constant = self.shape * np.log(self.rate) - gammaln(self.shape)
        return float(constant + xlogy(self.shape - 1, value) - self.rate * value)

    def draw(self, random: np.random.Generator) -> float:
        """Draw a positive value."""
        return max(float(random.gamma(self.shape) / self.rate), TINY)

    def unconstrain(self, value: float) -> float:
        """Return the logarithm."""
        return float(np.log(value))

    def constrain(self, place: float) -> tuple[float, float]:
        """Return the exponential, and its log derivative."""
        return max(float(np.exp(min(place, 700.0))), TINY), place


@dataclass(frozen=True)
class Beta(Hyperprior):
    """A beta prior on a parameter between 0 and 1, of mean ``a / (a + b)``.

    Parameters
    ----------
    a, b : float, default=1.0
        Both 1: the uniform distribution.

    Examples
    --------
    >>> from countless.priors import Beta, Gamma, PitmanYor
    >>> prior = PitmanYor(alpha=Gamma(), discount=Beta(1.0, 3.0))
    >>> 0 < prior.draw_parameters(0).discount < 1
    True
    """

    a: float = 1.0
    b: float = 1.0

    def __post_init__(self) -> None:
        check_positive("a", self.a)
        check_positive("b", self.b)

    def log_density(self, value: float) -> float:
        """Return the log density at a value between 0 and 1."""
        kernel = xlogy(self.a - 1, value) + xlog1py(self.b - 1, -value)
        return float(kernel - betaln(self.a, self.b))

    def draw(self, random: np.random.Generator) -> float:
        """Draw a value between 0 and 1."""
        return float(np.clip(random.beta(self.a, self.b), TINY, BELOW_ONE))

    def unconstrain(self, value: float) -> float:
        """Return the log odds."""
        return float(logit(value))

    def constrain(self, place: float) -> tuple[float, float]:
        """Return the logistic function, and its log derivative."""
        slope = -np.logaddexp(0, place) - np.logaddexp(0, -place)
        return float(np.clip(expit(place), TINY, BELOW_ONE)), float(slope)


def slice_sample(
    log_density: Callable[[float], float],
    start: float,
    random: np.random.Generator,
    width: float = 1.0,
) -> float:
    """Take one slice-sampling step, which leaves a density invariant: step out, then shrink.

    The interval has at most `MOST_STEPS` widths, divided at random between its two ends (Neal's
    section 4.1), so that the step ends for an improper density, too.
    """
    level = log_density(start) - random.exponential()
    if not np.isfinite(level):
        raise ValueError(f"the density at {start} is not a positive number")
    low = start - width * random.random()
    high = low + width
    below = int(MOST_STEPS * random.random())
    above = MOST_STEPS - 1 - below
    while below > 0 and log_density(low) > level:
        low -= width
        below -= 1
    while above > 0 and log_density(high) > level:
        high += width
        above -= 1
    for _ in range(MOST_SHRINKS):
        place = low + (high - low) * random.random()
        if log_density(place) >= level:
            return place
        if place < start:
            low = place
        else:
            high = place
    return start  # the interval has shrunk to the start, up to rounding


def slice_step(
    hyperprior: Hyperprior,
    log_likelihood: Callable[[float], float],
    value: float,
    random: np.random.Generator,
) -> float:
    """Take one slice-sampling step of a parameter, given its prior and log likelihood."""

    def log_density(place: float) -> float:
        value, log_jacobian = hyperprior.constrain(place)
        return log_likelihood(value) + hyperprior.log_density(value) + log_jacobian

    return hyperprior.constrain(slice_sample(log_density, hyperprior.unconstrain(value), random))[0]


def draw_concentration(
    alpha: float,
    hyperprior: Gamma,
    n_clusters: int,
    n_rows: ArrayLike,
    random: np.random.Generator,
) -> float:
    """Draw the concentration of a Dirichlet process, given its number of clusters.

    Parameters
    ----------
    alpha : float
        Present value.
    hyperprior : Gamma
        Its prior.
    n_clusters : int
        Total number of clusters of all groups.
    n_rows : int or array-like of shape (n_groups,)
        Number of rows of each group; each group has its own draw from the process.
    random : numpy.random.Generator
        Source of random numbers.

    Returns
    -------
    float
        The value after a Gibbs step that leaves the posterior of alpha invariant.

    Examples
    --------
    >>> import numpy as np
    >>> from countless.priors import Gamma
    >>> from countless.priors.hyper import draw_concentration
    >>> draw_concentration(1.0, Gamma(), 5, 100, np.random.default_rng(0)) > 0
    True
    """
    rows = np.atleast_1d(np.asarray(n_rows, dtype=np.float64))
    rows = rows[rows > 0]
    kept = random.beta(alpha + 1, rows)
    corrections = random.random(len(rows)) * (rows + alpha) < rows
    shape = hyperprior.shape + n_clusters - np.count_nonzero(corrections)
    rate = hyperprior.rate - np.log(kept).sum()
    return Gamma(float(shape), float(rate)).draw(random)
