"""Dirichlet-multinomial model of rows of counts of outcomes, such as words of documents."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import digamma, gammaln, xlogy

from countless.kernels.models_multinomial import MultinomialClusters
from countless.models.checks import columns_of, integers, per_column, refuse
from countless.models.families import Category, add_slopes, draw_dirichlet
from countless.models.hyper import Hyper, make_hyper
from countless.models.protocol import BoundModel, Model


class Multinomial(Model):
    """Multinomial rows of counts; proportions of a cluster have a Dirichlet prior.

    The model is conditional on the total of a row: clusters differ only in their proportions.

    Parameters
    ----------
    concentration : float or array-like of shape (n_features,), default=None
        Dirichlet parameters, as pseudo-counts of each outcome; by default 1.

    Examples
    --------
    >>> from countless.models import Multinomial
    >>> X = [[2, 0], [1, 1]]
    >>> model = Multinomial(concentration=1).bind(X)
    >>> print(round(model.log_marginal(model.statistics(model.rows(X))), 3))  # log(2 * 1/20)
    -2.303
    """

    allow_nan = False

    def __init__(self, concentration=None):
        self.concentration = concentration

    def bind(self, X: Any) -> BoundMultinomial:
        """Return the model of the columns of ``X``, all hyperparameters set."""
        d = _counts(X).shape[1]
        free = self.concentration is None
        weights = per_column("concentration", 1.0 if free else self.concentration, d)
        if free:
            return BoundMultinomial(make_hyper(["log weight"], [0.0], [True]), np.zeros(d, int))
        names = [f"log weight[{j}]" for j in range(d)]
        return BoundMultinomial(make_hyper(names, np.log(weights), [False] * d), np.arange(d))


class BoundMultinomial(BoundModel):
    """The Dirichlet-multinomial model of given outcomes."""

    def __init__(self, hyper: Hyper, index: np.ndarray):
        self.hyper = hyper
        self.index = index  # (n_features,): index of the hyperparameter of each outcome
        self.n_features = len(index)
        self.width = 2 + self.n_features
        self._prepare()

    def _prepare(self) -> None:
        weights = np.exp(self.hyper.value[self.index])
        self.prior = np.concatenate([[weights.sum(), 0.0], weights])

    def rows(self, X: Any) -> np.ndarray:
        """Return the counts as floats."""
        counts = _counts(X)
        if counts.shape[1] != self.n_features:
            raise ValueError(f"X has {counts.shape[1]} columns; the model has {self.n_features}")
        return counts

    def table(self, rows: np.ndarray) -> np.ndarray:
        """Decode rows to the values of the input table."""
        return rows

    def _allocate(self, capacity: int) -> MultinomialClusters:
        return MultinomialClusters(np.zeros((capacity, self.width)), self.prior)

    def log_marginal_gradient(self, statistics: np.ndarray) -> np.ndarray:
        """Return the gradient of each log marginal by the hyperparameters, (..., n_hyper)."""
        statistics = np.asarray(statistics, dtype=np.float64)
        slopes = Category(self.n_features).gradient(*map(_as_category, (statistics, self.prior)))
        out = np.zeros((*statistics.shape[:-1], len(self.hyper.value)))
        add_slopes(slopes, self.index, out)
        return out

    def row_statistics(self, rows: np.ndarray) -> np.ndarray:
        """Return the statistics of each row, (n_rows, width)."""
        total = rows.sum(axis=1)
        coefficients = gammaln(total + 1.0) - gammaln(rows + 1.0).sum(axis=1)
        return np.column_stack([total, coefficients, rows])

    def expected_parameters(self, statistics: np.ndarray) -> np.ndarray:
        """Return the expected natural parameters of clusters, (..., width)."""
        found = digamma(self.prior + np.asarray(statistics, dtype=np.float64))
        found[..., 0] *= -1.0
        found[..., 1] = 1.0  # of the multinomial coefficients, which have no parameter
        return found

    def draw_parameters(
        self, statistics: np.ndarray, rng: np.random.Generator
    ) -> dict[str, np.ndarray]:
        """Draw the ``probability`` of each outcome, (n_clusters, n_features)."""
        statistics = np.atleast_2d(statistics)
        return {"probability": draw_dirichlet(self.prior[2:] + statistics[:, 2:], rng)}

    def draw_rows(
        self, parameters: dict[str, np.ndarray], rng: np.random.Generator, total: int = 1
    ) -> np.ndarray:
        """Draw a row of a given total for each set of parameters; totals are not modelled."""
        return rng.multinomial(total, parameters["probability"]).astype(np.float64)

    def log_density(self, rows: np.ndarray, parameters: dict[str, np.ndarray]) -> np.ndarray:
        """Return the log density of rows given parameters, (n_rows, n_clusters)."""
        same = gammaln(rows.sum(axis=1) + 1.0) - gammaln(rows + 1.0).sum(axis=1)
        return same[:, None] + xlogy(rows[:, None], parameters["probability"]).sum(axis=-1)


def _as_category(stretch: np.ndarray) -> np.ndarray:
    """Return the sum and the counts of outcomes, in the layout of a categorical column."""
    return np.concatenate([stretch[..., :1], stretch[..., 2:]], axis=-1)


def _counts(X: Any) -> np.ndarray:
    columns = [integers(values, j) for j, values in enumerate(columns_of(X))]
    for j, values in enumerate(columns):
        refuse(np.isnan(values), values, j, "contains a missing value, which the model refuses")
    return np.ascontiguousarray(np.stack(columns, axis=1))
