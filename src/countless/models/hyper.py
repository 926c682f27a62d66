"""Hyperparameters as one unconstrained vector with a prior, to be optimised or sampled.

A positive hyperparameter is represented by its logarithm. Those given by the user are fixed; those
set from the data are free and have a normal prior centered at that value, and a variance may have
an inverse-gamma prior.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import minimize
from scipy.special import gammaln

from countless.models.checks import LARGEST
from countless.priors.hyper import slice_sample

# Bound of an optimised hyperparameter, in standard deviations from the center of its prior.
FARTHEST = 20.0
# Largest absolute value whose exponential and its reciprocal do not overflow.
LARGEST_LOG = 700.0
# The optimiser rescales standard deviations beyond this or its inverse, and shifts centers that are
# more standard deviations from 0.
EXTREME = 1e6


class InverseGamma(NamedTuple):
    """An inverse-gamma prior of a variance: its reciprocal is gamma distributed.

    Examples
    --------
    >>> from countless.models import FixedGaussian, InverseGamma
    >>> FixedGaussian(variance=InverseGamma(shape=3.0, scale=2.0))
    FixedGaussian(variance=InverseGamma(shape=3.0, scale=2.0))
    """

    shape: float
    scale: float


class Hyper(NamedTuple):
    """The hyperparameters of a model: their values, which are free, and their prior."""

    names: tuple[str, ...]
    value: np.ndarray  # (n_hyper,)
    free: np.ndarray  # (n_hyper,) bool
    center: np.ndarray  # (n_hyper,) of the normal priors
    spread: np.ndarray  # (n_hyper,) standard deviations of the normal priors
    inverse_gamma: np.ndarray  # (n_hyper, 2) shape and scale, NaN where the prior is normal
    low: np.ndarray  # (n_hyper,) lower bounds, at which the prior is truncated; -inf for none

    def check(self, value: np.ndarray) -> None:
        """Raise a ValueError that names a value that would overflow."""
        for name, one in zip(self.names, value.tolist(), strict=True):
            largest = LARGEST_LOG if name.startswith("log ") else LARGEST
            if not abs(one) <= largest:
                raise ValueError(f"hyperparameter {name} must be within {largest:g}; got {one:g}")

    def log_prior(self, value: np.ndarray) -> float:
        """Return the log prior density of the free hyperparameters, up to a constant.

        The constant is the normalization of the truncation at ``low``.
        """
        if np.any(value < self.low):
            return -np.inf
        return float(_log_priors(self, value)[self.free].sum())

    def log_prior_gradient(self, value: np.ndarray) -> np.ndarray:
        """Return the gradient of `log_prior`; 0 for fixed hyperparameters."""
        shape, scale = self.inverse_gamma.T
        with np.errstate(over="ignore"):
            slope = np.where(
                np.isnan(shape),
                (self.center - value) / self.spread**2,
                scale * np.exp(-value) - shape,
            )
        return np.where(self.free, slope, 0.0)

    def draw(self, rng: np.random.Generator) -> np.ndarray:
        """Draw the free hyperparameters from their prior; the others are unchanged."""
        shape, scale = np.where(np.isnan(self.inverse_gamma), 1.0, self.inverse_gamma).T
        drawn = self.value
        wanted = self.free
        while wanted.any():
            normal = self.center + self.spread * rng.standard_normal(len(self.value))
            variance = np.log(scale / rng.standard_gamma(shape))
            found = np.where(np.isnan(self.inverse_gamma[:, 0]), normal, variance)
            drawn = np.where(wanted, found, drawn)
            wanted = wanted & (drawn < self.low)
        return drawn


def make_hyper(
    names: Sequence[str],
    value: ArrayLike,
    free: ArrayLike,
    spread: ArrayLike = 1.0,
    inverse_gamma: np.ndarray | None = None,
    low: ArrayLike = -np.inf,
) -> Hyper:
    """Return hyperparameters with normal priors centered at their values.

    Free values below their lower bound are set to the bound.
    """
    free = np.asarray(free, dtype=bool)
    low = np.where(free, low, -np.inf)
    value = np.maximum(np.asarray(value, dtype=np.float64), low)
    if inverse_gamma is None:
        inverse_gamma = np.full((len(value), 2), np.nan)
    spread = np.broadcast_to(np.asarray(spread, dtype=np.float64), value.shape)
    return Hyper(tuple(names), value, free, value, spread, inverse_gamma, low)


def join_hypers(parts: Sequence[Hyper]) -> Hyper:
    """Concatenate several sets of hyperparameters."""
    arrays = [np.concatenate(field) for field in list(zip(*parts, strict=True))[1:]]
    return Hyper(tuple(name for part in parts for name in part.names), *arrays)


def climb(
    hyper: Hyper,
    log_joint: Callable[[np.ndarray], tuple[float, np.ndarray]],
    max_iter: int = 200,
    use_prior: bool = True,
) -> np.ndarray:
    """Maximise ``log_joint`` (value and gradient), by default plus the log prior, by L-BFGS-B."""
    if not hyper.free.any():
        return hyper.value

    start, spread = hyper.value[hyper.free], hyper.spread[hyper.free]
    center = hyper.center[hyper.free]
    # L-BFGS-B assumes variables of unit scale, and tolerances relative to their values.
    unit = np.where((spread > 1 / EXTREME) & (spread < EXTREME), 1.0, spread)
    origin = np.where(np.abs(center) > EXTREME * spread, center, 0.0)

    def downhill(moved):
        value = _with_free(hyper, origin + unit * moved)
        height, slope = log_joint(value)
        if use_prior:
            height, slope = height + hyper.log_prior(value), slope + hyper.log_prior_gradient(value)
        return -height, -slope[hyper.free] * unit

    # Bounds, so that no step overshoots to a scale of 0 or infinity.
    reach = FARTHEST * spread
    lowest = np.maximum(np.minimum(center - reach, start), hyper.low[hyper.free])
    highest = np.maximum(center + reach, start)
    found = minimize(
        downhill,
        (start - origin) / unit,
        jac=True,
        method="L-BFGS-B",
        bounds=(np.column_stack([lowest, highest]) - origin[:, None]) / unit[:, None],
        options={"maxiter": max_iter},
    )
    return _with_free(hyper, origin + unit * found.x)


def sample_each(
    hyper: Hyper,
    log_likelihood: Callable[[np.ndarray], float],
    rng: np.random.Generator,
    places: np.ndarray,
) -> np.ndarray:
    """Sample each hyperparameter at ``places`` given the others, by slice sampling."""
    value = hyper.value.copy()
    for place in places:

        def log_joint(x, place=place):
            value[place] = x
            return log_likelihood(value) + hyper.log_prior(value)

        value[place] = slice_sample(log_joint, value[place], rng, width=hyper.spread[place])
    return value


def _with_free(hyper: Hyper, moved: np.ndarray) -> np.ndarray:
    value = hyper.value.copy()
    value[hyper.free] = moved
    return value


def _log_priors(hyper: Hyper, value: np.ndarray) -> np.ndarray:
    """Return the log prior density of each; for inverse-gamma, that of the log variance."""
    shape, scale = np.where(np.isnan(hyper.inverse_gamma), 1.0, hyper.inverse_gamma).T
    normal = -0.5 * ((value - hyper.center) / hyper.spread) ** 2
    normal -= np.log(hyper.spread) + 0.5 * np.log(2.0 * np.pi)
    with np.errstate(over="ignore"):
        variance = shape * np.log(scale) - gammaln(shape) - shape * value - scale * np.exp(-value)
    return np.where(np.isnan(hyper.inverse_gamma[:, 0]), normal, variance)
