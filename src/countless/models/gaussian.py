"""Gaussian clusters with full covariances: the normal-inverse-Wishart model.

``Sigma ~ IW(freedom, scale)``, ``mu | Sigma ~ N(mean, Sigma / strength)``, rows ``~ N(mu, Sigma)``
(Murphy, Machine Learning: a Probabilistic Perspective, section 4.6.3).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.special import digamma

from countless.kernels.models_gaussian import (
    BLOCK,
    LANES,
    SIZES,
    WIDE,
    GaussianClusters,
    WideGaussianClusters,
)
from countless.models import gaussian_hyper
from countless.models.checks import (
    cluster_share,
    columns_of,
    means_and_variances,
    numbers,
    per_column,
    refuse,
)
from countless.models.hyper import make_hyper
from countless.models.protocol import BoundModel, Model

# Default weight of the prior mean, as a number of pseudo-observations.
STRENGTH = 0.05
# Lower bound of scales relative to their initial values: with collinear columns the density is
# unbounded, and below this sums of squares have lost all digits.
LOG_LEAST_STRETCH = math.log(1e-11)


class Gaussian(Model):
    """Normal clusters with full covariances, under a normal-inverse-Wishart prior.

    Parameters
    ----------
    mean : array-like of shape (n_features,) or float, default=None
        Prior mean of cluster means; by default the mean of the data.
    strength : float, default=None
        Weight of the prior mean, as a number of pseudo-observations; by default 0.05.
    freedom : float, default=None
        Degrees of freedom of the covariances, above ``n_features - 1``; by default
        ``n_features + 2``, the least integer for which covariances have an expectation.
    scale : array-like of shape (n_features, n_features), default=None
        The expected covariance times ``freedom - n_features - 1``; by default a diagonal matrix
        with a tenth of the variances of the data, or with these variances if there are fewer rows
        than columns.

    Notes
    -----
    Given hyperparameters are fixed; those that are None may be optimised or sampled.

    Examples
    --------
    >>> import numpy as np
    >>> from countless.models import Gaussian
    >>> X = np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 2.0]])
    >>> model = Gaussian().bind(X)
    >>> rows = model.rows(X)
    >>> print(round(model.log_marginal(model.statistics(rows)), 3))
    -20.51
    """

    allow_nan = False
    scalable = True

    def __init__(self, mean=None, strength=None, freedom=None, scale=None):
        self.mean = mean
        self.strength = strength
        self.freedom = freedom
        self.scale = scale

    def bind(self, X: Any) -> BoundGaussian:
        """Return the model of the columns of ``X``, all hyperparameters set."""
        values = _complete_table(X)
        d = values.shape[1]
        origin, variance = means_and_variances(values)
        mean = origin if self.mean is None else per_column("mean", self.mean, d, positive=False)
        strength = _positive("strength", STRENGTH if self.strength is None else self.strength)
        freedom = _positive("freedom", d + 2.0 if self.freedom is None else self.freedom)
        if not d - 1 < freedom:
            raise ValueError(f"freedom must be above n_features - 1 = {d - 1}; got {self.freedom}")
        if self.scale is None:
            scale = np.diag(cluster_share(values.T) * variance)
        else:
            scale = _positive_definite(self.scale, d)
        names = [f"mean[{j}]" for j in range(d)]
        names += ["log strength", "log (freedom - n_features + 1)"]
        names += [f"log scale[{j}]" for j in range(d)]
        free = np.repeat(
            [value is None for value in (self.mean, self.strength, self.freedom, self.scale)],
            [d, 1, 1, d],
        )
        value = np.concatenate([mean, np.log([strength, freedom - d + 1]), np.zeros(d)])
        spread = np.concatenate([np.sqrt(variance), np.ones(2 + d)])
        low = np.concatenate([np.full(d + 2, -np.inf), np.full(d, LOG_LEAST_STRETCH)])
        return BoundGaussian(origin, scale, make_hyper(names, value, free, spread, low=low))

    def check_shape(self, n_rows: int, n_columns: int) -> None:
        """Raise a ValueError if covariances would be estimated from fewer rows than columns.

        With so few rows, one cluster per row is as probable as any other partition. Two rows are
        accepted.
        """
        if self.scale is None and 2 < n_rows < n_columns:
            raise ValueError(
                f"X has {n_rows} rows and {n_columns} columns, too few rows for full covariances; "
                "use model='diagonal' or fewer columns"
            )

    def bind_packed(self, table: np.ndarray, levels: list[list | None]) -> BoundModel:
        """Return the model of what ``BoundGaussian.packed_table`` returned."""
        self.refuse_levels(levels)
        return Gaussian(scale=table[1:]).bind(table[:1])


class BoundGaussian(BoundModel):
    """The normal-inverse-Wishart model of given columns."""

    moved_at_once = None

    def __init__(self, origin, base_scale, hyper):
        self.origin = origin
        self.base_scale = base_scale
        self.hyper = hyper
        self.n_features = len(origin)
        self.width = 1 + self.n_features + self.n_features * (self.n_features + 1) // 2
        self._prepare()

    def _prepare(self) -> None:
        d = self.n_features
        value = self.hyper.value
        self.mean = value[:d] - self.origin
        self.strength = math.exp(value[d])
        self.freedom = math.exp(value[d + 1]) + d - 1
        stretch = np.exp(0.5 * value[d + 2 :])
        self.scale = self.base_scale * np.outer(stretch, stretch)
        self._pivots = np.diagonal(np.linalg.cholesky(self.scale)).copy()
        self._size_terms = np.full((2, SIZES), np.nan)  # cache, filled on first use

    def rows(self, X: Any) -> np.ndarray:
        """Return the rows minus the mean of the data that the model was bound to."""
        values = _complete_table(X)
        if values.shape[1] != self.n_features:
            raise ValueError(f"X has {values.shape[1]} columns; the model has {self.n_features}")
        return np.ascontiguousarray((values - self.origin).astype(values.dtype, copy=False))

    def table(self, rows: np.ndarray) -> np.ndarray:
        """Decode rows to the values of the input table."""
        return rows + self.origin

    def packed_table(self) -> np.ndarray:
        """Return the origin, and the base scale matrix below it."""
        return np.vstack([self.origin, self.base_scale])

    def rounded_columns(self) -> np.ndarray:
        """Return the columns of numbers whose variances are estimated from the rows."""
        d = self.n_features
        return np.flatnonzero(self.hyper.free[d + 2 :])

    def _allocate(self, capacity: int) -> GaussianClusters:
        d = self.n_features
        triangle = d * (d + 1) // 2
        places = -(-capacity // LANES) * LANES
        kind = WideGaussianClusters if d >= WIDE else GaussianClusters
        return kind(
            statistics=np.zeros((capacity, self.width)),
            prior_mean=self.mean,
            prior_scale=self.scale,
            prior_pivots=self._pivots,
            prior=np.array([self.strength, self.freedom, 2.0 * np.log(self._pivots).sum()]),
            mean=np.empty((capacity, d)),
            factor=np.zeros((capacity, d, d)),
            side_means=np.zeros((d, places)),
            side_factors=np.zeros((triangle, places)),
            terms=np.zeros((7, places)),
            size_terms=self._size_terms[0],
            marginal_terms=self._size_terms[1],
            changes=np.zeros(capacity, dtype=np.int64),
            block=np.empty((2 * d + capacity, BLOCK)),
            block_state=np.full(2 + capacity, -BLOCK, dtype=np.int64),
            work=np.empty(d),
            side_work=np.zeros((d + 1, places)),
        )

    def _posterior(self, statistics: np.ndarray):
        """Return posterior strength, freedom, mean and scale given each set of statistics."""
        d = self.n_features
        count = statistics[..., 0]
        total = statistics[..., 1 : 1 + d]
        squares = np.empty((*statistics.shape[:-1], d, d))
        lower = np.tril_indices(d)
        squares[..., lower[0], lower[1]] = statistics[..., 1 + d :]
        squares[..., lower[1], lower[0]] = statistics[..., 1 + d :]
        strength = self.strength + count
        mean = (self.strength * self.mean + total) / strength[..., None]
        crossed = total[..., :, None] * mean[..., None, :]
        scale = self.scale + squares - crossed - np.swapaxes(crossed, -1, -2)
        scale += count[..., None, None] * _outer(mean) + self.strength * _outer(self.mean - mean)
        return strength, self.freedom + count, mean, scale

    def log_marginal_gradient(self, statistics: np.ndarray) -> np.ndarray:
        """Return the gradient of each log marginal by the hyperparameters, (..., n_hyper)."""
        statistics = np.asarray(statistics, dtype=np.float64)
        d = self.n_features
        strength, freedom, mean, scale = self._posterior(statistics)
        precision = np.linalg.inv(scale)
        apart = self.mean - mean
        pull = np.einsum("...ij,...j->...i", precision, apart)
        out = np.empty((*statistics.shape[:-1], 2 * d + 2))
        out[..., :d] = -(freedom * self.strength)[..., None] * pull
        squared = np.einsum("...i,...i->...", pull, apart)
        out[..., d] = 0.5 * d * (1.0 - self.strength / strength)
        out[..., d] -= 0.5 * freedom * self.strength * squared
        halves = 0.5 * np.arange(d)
        gammas = digamma(0.5 * freedom[..., None] - halves) - digamma(0.5 * self.freedom - halves)
        log_dets = np.linalg.slogdet(self.scale)[1] - np.linalg.slogdet(scale)[1]
        out[..., d + 1] = 0.5 * (self.freedom - d + 1) * (log_dets + gammas.sum(axis=-1))
        share = np.einsum("...ij,ij->...i", precision, self.scale)
        out[..., d + 2 :] = 0.5 * (self.freedom - freedom[..., None] * share)
        return out

    def row_statistics(self, rows: np.ndarray) -> np.ndarray:
        """Return the statistics of each row, (n_rows, width)."""
        values = rows.astype(np.float64)
        first, second = np.tril_indices(self.n_features)
        return np.hstack([np.ones((len(rows), 1)), values, values[:, first] * values[:, second]])

    def expected_parameters(self, statistics: np.ndarray) -> np.ndarray:
        """Return the expected natural parameters of clusters, (n_clusters, width)."""
        d = self.n_features
        clusters = self.clusters(len(statistics), statistics)  # factors robust to rounding
        strength, freedom = self.strength + statistics[:, 0], self.freedom + statistics[:, 0]
        upper = np.triu(clusters.factor)
        roots = np.linalg.inv(upper) * np.sqrt(freedom)[:, None, None]
        pull = np.einsum("cij,ci->cj", roots, clusters.mean)
        precision = roots @ np.swapaxes(roots, -1, -2)
        pivots = np.log(np.diagonal(upper, axis1=1, axis2=2)).sum(axis=1)
        log_dets = digamma(0.5 * (freedom[:, None] - np.arange(d))).sum(axis=1) - 2.0 * pivots
        out = np.empty(statistics.shape)
        out[:, 0] = 0.5 * (log_dets - d * (math.log(math.pi) + 1.0 / strength))
        out[:, 0] -= 0.5 * (pull**2).sum(axis=1)
        out[:, 1 : 1 + d] = np.einsum("cij,cj->ci", roots, pull)
        first, second = np.tril_indices(d)  # each entry off the diagonal stands for two
        out[:, 1 + d :] = np.where(first == second, -0.5, -1.0) * precision[:, first, second]
        return out

    def _moved_hyper(
        self, statistics: np.ndarray, rng: np.random.Generator, places: np.ndarray
    ) -> np.ndarray:
        sets = np.atleast_2d(statistics)
        drawn = gaussian_hyper.draw_parameters(self.clusters(len(sets), sets), rng)
        state = (self.base_scale, self.origin, self.hyper)
        return gaussian_hyper.move_given(drawn, *state, places, rng)

    def draw_parameters(
        self, statistics: np.ndarray, rng: np.random.Generator
    ) -> dict[str, np.ndarray]:
        """Draw ``mean`` and ``covariance`` of each cluster from their posterior."""
        statistics = np.atleast_2d(statistics)
        d = self.n_features
        strength, freedom, mean, scale = self._posterior(statistics)
        # Bartlett: the precision is R R' with R = L'^-1 A; so the covariance is M' M, A M = L'.
        bartlett = np.tril(rng.standard_normal(scale.shape), -1)
        diagonal = np.arange(d)
        bartlett[:, diagonal, diagonal] = np.sqrt(rng.chisquare(freedom[:, None] - diagonal))
        root = np.linalg.solve(bartlett, np.swapaxes(np.linalg.cholesky(scale), -1, -2))
        noise = np.einsum("cij,ci->cj", root, rng.standard_normal(mean.shape))
        return {
            "mean": self.origin + mean + noise / np.sqrt(strength)[:, None],
            "covariance": np.einsum("cki,ckj->cij", root, root),
        }

    def draw_rows(self, parameters: dict[str, np.ndarray], rng: np.random.Generator) -> np.ndarray:
        """Draw one row for each set of parameters, in the kernels' encoding."""
        # With few degrees of freedom, drawn covariances may be singular up to rounding.
        lengths, axes = np.linalg.eigh(parameters["covariance"])
        noise = np.sqrt(np.maximum(lengths, 0.0)) * rng.standard_normal(lengths.shape)
        noise = np.einsum("cij,cj->ci", axes, noise)
        return parameters["mean"] - self.origin + noise

    def log_density(self, rows: np.ndarray, parameters: dict[str, np.ndarray]) -> np.ndarray:
        """Return the log density of rows given parameters, (n_rows, n_clusters)."""
        factor = np.linalg.cholesky(parameters["covariance"])
        apart = rows.T[None] - (parameters["mean"] - self.origin)[:, :, None]
        squared = (np.linalg.solve(factor, apart) ** 2).sum(axis=1)
        log_dets = 2.0 * np.log(np.diagonal(factor, axis1=1, axis2=2)).sum(axis=1)
        constant = log_dets + self.n_features * math.log(2.0 * math.pi)
        return -0.5 * (squared + constant[:, None]).T


def _outer(x: np.ndarray) -> np.ndarray:
    return x[..., :, None] * x[..., None, :]


def _complete_table(X: Any) -> np.ndarray:
    """Return a table of numbers; missing values are an error."""
    columns = [numbers(values, j) for j, values in enumerate(columns_of(X))]
    for j, values in enumerate(columns):
        refuse(np.isnan(values), values, j, "contains a missing value, which the model refuses")
    return np.stack(columns, axis=1)


def _positive(name: str, value: Any) -> float:
    return float(per_column(name, value, 1)[0])


def _positive_definite(scale: Any, d: int) -> np.ndarray:
    try:
        scale = np.asarray(scale, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"scale must be a finite {d} x {d} matrix; got {scale!r}") from None
    if scale.shape != (d, d) or not np.isfinite(scale).all():
        raise ValueError(f"scale must be a finite {d} x {d} matrix; its shape is {scale.shape}")
    if not np.allclose(scale, scale.T, rtol=1e-10, atol=0.0):
        raise ValueError("scale must be symmetric")
    eigenvalues = np.linalg.eigvalsh(scale)
    if eigenvalues[0] <= 1e-14 * eigenvalues[-1]:
        raise ValueError(
            f"scale must be positive definite; its least eigenvalue is {eigenvalues[0]:.3g}"
        )
    return (scale + scale.T) / 2.0
