"""Sampling of all hyperparameters of the normal-inverse-Wishart model, at low cost.

The parameters of the clusters are drawn from their posterior as auxiliary variables, and discarded
afterwards. Given them, the hyperparameters are independent of the rows: the prior mean is normal,
and the densities of the others depend on a few sums, so that slice sampling is cheap. Together this
leaves the posterior of the hyperparameters invariant.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from countless.models.hyper import Hyper
from countless.priors.hyper import slice_sample

# Initial width of the slice sampler, for logarithms.
WIDTH = 0.5


class Parameters(NamedTuple):
    """Means and precisions of clusters, drawn given their rows."""

    means: np.ndarray  # (n_clusters, d)
    roots: np.ndarray  # (n_clusters, d, d), K of the precisions K K'
    log_dets: np.ndarray  # (n_clusters,) of the precisions


def draw_parameters(clusters, rng: np.random.Generator) -> Parameters:
    """Draw the parameters of clusters, by the kernels' Cholesky factors, robust to rounding."""
    count = clusters.statistics[:, 0]
    strength, freedom = clusters.prior[0] + count, clusters.prior[1] + count
    d = clusters.mean.shape[1]
    diagonal = np.arange(d)
    bartlett = np.tril(rng.standard_normal(clusters.factor.shape), -1)
    bartlett[:, diagonal, diagonal] = np.sqrt(rng.chisquare(freedom[:, None] - diagonal))
    upper = np.triu(clusters.factor)
    roots = np.linalg.solve(upper, bartlett)
    noise = rng.standard_normal(clusters.mean.shape)
    noise = np.linalg.solve(np.swapaxes(roots, -1, -2), noise[..., None])[..., 0]
    pivots = bartlett[:, diagonal, diagonal] / upper[:, diagonal, diagonal]
    return Parameters(
        clusters.mean + noise / np.sqrt(strength)[:, None],
        roots,
        2.0 * np.log(pivots).sum(axis=1),
    )


def move_given(
    drawn: Parameters,
    base_scale: np.ndarray,
    origin: np.ndarray,
    hyper: Hyper,
    places: np.ndarray,
    rng: np.random.Generator,
) -> np.ndarray:
    """Return the hyperparameters after sampling those at ``places``, given parameters."""
    d = len(origin)
    value = hyper.value.copy()
    moved = np.zeros(len(value), dtype=bool)
    moved[places] = True
    precisions = np.einsum("cij,ckj->ik", drawn.roots, drawn.roots)
    if moved[:d].any():
        _move_mean(drawn, precisions, origin, hyper, np.flatnonzero(moved[:d]), value, rng)
    if moved[d]:
        apart = drawn.means - (value[:d] - origin)
        squared = float((np.einsum("cij,ci->cj", drawn.roots, apart) ** 2).sum())
        _move_strength(len(apart) * d, squared, hyper, value, rng)
    if moved[d + 1 :].any():
        _move_shape(drawn, precisions, base_scale, hyper, moved[d + 1 :], value, rng)
    return value


def _move_mean(drawn, precisions, origin, hyper, places, value, rng) -> None:
    """Draw the prior mean, or some entries given the others, from its normal conditional."""
    d = len(origin)
    strength, spread = math.exp(value[d]), hyper.spread[:d]
    turned = np.einsum("ckj,ck->cj", drawn.roots, drawn.means)
    weighted = np.einsum("cij,cj->i", drawn.roots, turned)
    precision = np.diag(spread**-2.0) + strength * precisions
    pull = (hyper.center[:d] - value[:d]) / spread**2
    pull += strength * (weighted - precisions @ (value[:d] - origin))
    root = np.linalg.cholesky(precision[np.ix_(places, places)])
    step = np.linalg.solve(root, pull[places]) + rng.standard_normal(len(places))
    value[places] += np.linalg.solve(root.T, step)


def _move_strength(count: int, squared: float, hyper: Hyper, value, rng) -> None:
    """Sample the strength, given ``count`` numbers with this sum of squared distances."""
    place = (len(value) - 2) // 2
    center, spread = float(hyper.center[place]), float(hyper.spread[place])

    def log_joint(x: float) -> float:
        prior = -0.5 * ((x - center) / spread) ** 2
        return prior + 0.5 * (count * x - squared * math.exp(x))

    value[place] = slice_sample(log_joint, float(value[place]), rng, WIDTH)


def _move_shape(drawn, precisions, base_scale, hyper, moved, value, rng) -> None:
    """Sample the degrees of freedom and the scales: one by one, then jointly as they correlate."""
    d = len(base_scale)
    # Scales are free only if no scale was given, and then the base scale matrix is diagonal.
    traces = np.diagonal(base_scale) * np.diagonal(precisions)
    log_det_base = float(np.linalg.slogdet(base_scale)[1])
    shape = _Shape(d, len(drawn.means), log_det_base, float(drawn.log_dets.sum()))
    every = np.arange(d)
    lines = [(False, every[j : j + 1]) for j in np.flatnonzero(moved[1:])]
    if moved[0]:
        lines.append((True, every[:0]))
    if d > 1 and moved[1:].all():
        lines.append((False, every))
    if moved.all():
        lines.append((True, every))  # keeps their ratio: the covariance, nearly
    for with_freedom, scales in lines:
        _move_along(with_freedom, scales, shape, traces, hyper, value, rng)


class _Shape(NamedTuple):
    """Sufficient statistics of the precisions for the degrees of freedom and the scales."""

    d: int
    n_clusters: int
    log_det_base: float
    log_dets: float  # sum over the precisions

    def log_density(self, log_freedom: float, sum_of_scales: float) -> float:
        """Return the log density of covariances, up to a constant and without the trace."""
        freedom = math.exp(log_freedom) + self.d - 1
        log_det = self.log_det_base + sum_of_scales - self.d * math.log(2.0)
        gammas = sum(math.lgamma(0.5 * (freedom - j)) for j in range(self.d))
        return self.n_clusters * (0.5 * freedom * log_det - gammas) + 0.5 * freedom * self.log_dets


def _move_along(with_freedom, scales, shape: _Shape, traces, hyper: Hyper, value, rng) -> None:
    """Shift some log scales, and optionally the log freedom, by one common slice-sampled step."""
    d = shape.d
    places = np.append(scales + d + 2, [d + 1] * with_freedom).astype(int)
    weight = hyper.spread[places] ** -2.0
    curve, slope = float(weight.sum()), float((weight * (value - hyper.center)[places]).sum())
    half_trace = 0.5 * float(traces[scales] @ np.exp(value[d + 2 + scales]))
    log_freedom, sum_of_scales = float(value[d + 1]), float(value[d + 2 :].sum())
    half_freedom = 0.5 * (math.exp(log_freedom) + d - 1) * shape.n_clusters

    least = float((hyper.low[places] - value[places]).max())

    def log_joint(step: float) -> float:
        if step < least:
            return -math.inf
        prior = -step * (0.5 * curve * step + slope)
        trace = half_trace * math.exp(step)
        if with_freedom:
            total = sum_of_scales + len(scales) * step
            return prior - trace + shape.log_density(log_freedom + step, total)
        return prior - trace + half_freedom * len(scales) * step

    value[places] += slice_sample(log_joint, 0.0, rng, WIDTH)
