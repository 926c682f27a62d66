"""The four families of columns, vectorised: priors, gradients, draws and densities.

The last axis of statistics and priors has the entries of one column, in the order of
``kernels/models_cells.py``; the axis before it is columns, the first one is clusters. ``hyper`` has
shape (n_columns, n_hyper of a column), with logarithms of positive hyperparameters.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import digamma, gammaln

from countless.kernels.models_cells_marginals import CATEGORY, COUNT, FIXED, NUMBER

Parameters = dict[str, np.ndarray]
_LOG_2PI = math.log(2.0 * math.pi)


def _posterior_mean(s, prior):
    """Return the posterior strength and mean, and the sum of squares about that mean."""
    strength = prior[..., 1] + s[..., 0]
    mean = (prior[..., 1] * prior[..., 0] + s[..., 1]) / strength
    squares = s[..., 2] - 2.0 * mean * s[..., 1] + s[..., 0] * mean**2
    squares = np.maximum(squares, 0.0) + prior[..., 1] * (prior[..., 0] - mean) ** 2
    return strength, mean, squares


def _normal_log_density(values, parameters):
    variance = parameters["variance"]
    return -0.5 * ((values - parameters["mean"]) ** 2 / variance + np.log(variance) + _LOG_2PI)


def _normal_parameters(strength, mean, precision, log_precision):
    """Return expected natural parameters from expectations of the precision and its logarithm."""
    constant = log_precision - _LOG_2PI - 1.0 / strength - precision * mean**2
    return np.stack([0.5 * constant, precision * mean, -0.5 * precision], axis=-1)


class Number:
    """Normal with unknown mean and variance: normal-inverse-gamma prior."""

    kind = NUMBER
    categorical = False  # whether values are levels
    centered = True  # whether kernels subtract an origin from the values
    integer = False
    variance_place: int | None = 3  # of the hyperparameter that scales variances; None if none does
    own_variance = True  # whether each cluster has a variance of its own
    hyper_names: tuple[str, ...] = ("mean", "log strength", "log shape", "log scale")

    def prior(self, hyper):
        padding = np.zeros((len(hyper), 2))
        return np.concatenate([hyper[:, :1], np.exp(hyper[:, 1:]), padding], axis=1)

    def gradient(self, s, prior):
        strength, mean, squares = _posterior_mean(s, prior)
        shape, scale = prior[..., 2] + 0.5 * s[..., 0], prior[..., 3] + 0.5 * squares
        apart = prior[..., 0] - mean
        ratio = shape / scale
        by_strength = 1.0 - prior[..., 1] / strength - ratio * prior[..., 1] * apart**2
        by_shape = digamma(shape) - digamma(prior[..., 2]) + np.log(prior[..., 3] / scale)
        return np.stack(
            [
                -ratio * prior[..., 1] * apart,
                0.5 * by_strength,
                prior[..., 2] * by_shape,
                prior[..., 2] - prior[..., 3] * ratio,
            ],
            axis=-1,
        )

    def row_statistics(self, values):
        seen = ~np.isnan(values)
        values = np.where(seen, values, 0.0)
        return np.stack([seen, values, values**2], axis=-1)

    def expected_parameters(self, s, prior):
        strength, mean, squares = _posterior_mean(s, prior)
        shape, scale = prior[..., 2] + 0.5 * s[..., 0], prior[..., 3] + 0.5 * squares
        return _normal_parameters(strength, mean, shape / scale, digamma(shape) - np.log(scale))

    def draw_parameters(self, s, prior, rng) -> Parameters:
        strength, mean, squares = _posterior_mean(s, prior)
        shape, scale = prior[..., 2] + 0.5 * s[..., 0], prior[..., 3] + 0.5 * squares
        variance = scale / rng.standard_gamma(shape)
        noise = np.sqrt(variance / strength) * rng.standard_normal(mean.shape)
        return {"mean": mean + noise, "variance": variance}

    def draw(self, parameters, rng):
        spread = np.sqrt(parameters["variance"])
        return parameters["mean"] + spread * rng.standard_normal(spread.shape)

    def predictive_moments(self, s, prior):
        strength, mean, squares = _posterior_mean(s, prior)
        shape, scale = prior[..., 2] + 0.5 * s[..., 0], prior[..., 3] + 0.5 * squares
        # For a shape of 1 or less the variance is infinite; the squared scale is used instead.
        variance = scale / np.where(shape > 1.0, shape - 1.0, shape)
        return mean, variance * (1.0 + 1.0 / strength)

    def log_density(self, values, parameters):
        return _normal_log_density(values, parameters)


class Fixed(Number):
    """Normal with the variance as a hyperparameter, and a normal prior of the mean."""

    kind = FIXED
    variance_place = 1
    own_variance = False
    hyper_names = ("mean", "log variance", "log prior_variance")

    def prior(self, hyper):
        strength = np.exp(hyper[:, 1] - hyper[:, 2])
        padding = np.zeros(len(hyper))
        stretch = [hyper[:, 0], strength, np.exp(hyper[:, 1]), padding, padding]
        return np.stack(stretch, axis=1)

    def gradient(self, s, prior):
        strength, mean, squares = _posterior_mean(s, prior)
        variance, apart = prior[..., 2], prior[..., 0] - mean
        by_strength = 1.0 - prior[..., 1] / strength - prior[..., 1] * apart**2 / variance
        by_variance = squares / variance - s[..., 0]
        slopes = [
            -prior[..., 1] * apart / variance,
            0.5 * (by_variance + by_strength),
            -0.5 * by_strength,
        ]
        return np.stack(slopes, axis=-1)

    def expected_parameters(self, s, prior):
        strength, mean, _ = _posterior_mean(s, prior)
        precision = np.broadcast_to(1.0 / prior[..., 2], mean.shape)
        return _normal_parameters(strength, mean, precision, np.log(precision))

    def draw_parameters(self, s, prior, rng) -> Parameters:
        strength, mean, _ = _posterior_mean(s, prior)
        variance = np.broadcast_to(prior[..., 2], mean.shape)
        noise = np.sqrt(variance / strength) * rng.standard_normal(mean.shape)
        return {"mean": mean + noise, "variance": variance}

    def predictive_moments(self, s, prior):
        strength, mean, _ = _posterior_mean(s, prior)
        return mean, prior[..., 2] * (1.0 + 1.0 / strength)


class Category:
    """Categorical with a Dirichlet prior; the weights of the levels are the hyperparameters."""

    kind = CATEGORY
    categorical = True
    centered, integer, variance_place, own_variance = False, False, None, False

    def __init__(self, n_levels: int):
        self.hyper_names = tuple(f"log weight[{level}]" for level in range(n_levels))

    def prior(self, hyper):
        weights = np.exp(hyper)
        return np.concatenate([weights.sum(axis=1, keepdims=True), weights], axis=1)

    def gradient(self, s, prior):
        shared = digamma(prior[..., :1]) - digamma(prior[..., :1] + s[..., :1])
        own = digamma(prior[..., 1:] + s[..., 1:]) - digamma(prior[..., 1:])
        return prior[..., 1:] * (shared + own)

    def row_statistics(self, values):
        seen = ~np.isnan(values)
        levels = np.arange(len(self.hyper_names))
        return np.concatenate([seen[..., None], values[..., None] == levels], axis=-1).astype(float)

    def expected_parameters(self, s, prior):
        found = digamma(prior + s)
        found[..., 0] *= -1.0
        return found

    def draw_parameters(self, s, prior, rng) -> Parameters:
        return {"probability": draw_dirichlet(prior[..., 1:] + s[..., 1:], rng)}

    def predictive_shares(self, s, prior):
        return (prior[..., 1:] + s[..., 1:]) / (prior[..., :1] + s[..., :1])

    def draw(self, parameters, rng):
        below = np.cumsum(parameters["probability"], axis=-1)
        return np.sum(rng.random(below.shape[:-1])[..., None] >= below[..., :-1], axis=-1)

    def log_density(self, values, parameters):
        # values (n, 1, columns), probability (clusters, columns, levels)
        level = np.where(np.isnan(values), 0, values).astype(np.intp)
        clusters, columns = np.indices(parameters["probability"].shape[:2])
        with np.errstate(divide="ignore"):
            return np.log(parameters["probability"][clusters, columns, level])


class Count:
    """Poisson counts with a gamma prior of the rate."""

    kind = COUNT
    categorical = False
    centered, integer, variance_place, own_variance = False, True, None, False
    hyper_names = ("log shape", "log rate")

    def prior(self, hyper):
        return np.concatenate([np.exp(hyper), np.zeros((len(hyper), 1))], axis=1)

    def gradient(self, s, prior):
        shape, rate = prior[..., 0] + s[..., 1], prior[..., 1] + s[..., 0]
        by_shape = digamma(shape) - digamma(prior[..., 0]) + np.log(prior[..., 1] / rate)
        by_rate = prior[..., 0] - prior[..., 1] * shape / rate
        return np.stack([prior[..., 0] * by_shape, by_rate], axis=-1)

    def row_statistics(self, values):
        seen = ~np.isnan(values)
        values = np.where(seen, values, 0.0)
        return np.stack([seen, values, gammaln(values + 1.0)], axis=-1)

    def expected_parameters(self, s, prior):
        shape, rate = prior[..., 0] + s[..., 1], prior[..., 1] + s[..., 0]
        return np.stack(
            [-shape / rate, digamma(shape) - np.log(rate), np.full_like(shape, -1.0)], axis=-1
        )

    def draw_parameters(self, s, prior, rng) -> Parameters:
        shape, rate = prior[..., 0] + s[..., 1], prior[..., 1] + s[..., 0]
        return {"rate": rng.standard_gamma(shape) / rate}

    def predictive_moments(self, s, prior):
        shape, rate = prior[..., 0] + s[..., 1], prior[..., 1] + s[..., 0]
        return shape / rate, shape / rate * (1.0 + 1.0 / rate)

    def draw(self, parameters, rng):
        return rng.poisson(parameters["rate"])

    def log_density(self, values, parameters):
        rate = np.maximum(parameters["rate"], np.finfo(float).tiny)
        return values * np.log(rate) - rate - gammaln(values + 1.0)


Family = Number | Category | Count


def add_slopes(slopes: np.ndarray, index: np.ndarray, out: np.ndarray) -> None:
    """Add partial derivatives (..., *index.shape) to those of the hyperparameters at ``index``."""
    flat = slopes.reshape(*out.shape[:-1], index.size)
    for place, hyper in enumerate(index.ravel()):
        out[..., hyper] += flat[..., place]


def draw_dirichlet(weights: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Draw from Dirichlet distributions, in logs, as small weights make gamma draws underflow."""
    # A gamma draw of weight a is one of weight a + 1 times a uniform to the power 1 / a.
    logs = (
        np.log(rng.standard_gamma(weights + 1.0))
        - rng.standard_exponential(weights.shape) / weights
    )
    shares = np.exp(logs - logs.max(axis=-1, keepdims=True))
    return shares / shares.sum(axis=-1, keepdims=True)
