"""Clusters of the Dirichlet-multinomial model: a row is how often each outcome was seen.

Statistics of a cluster: the number of draws, the sum of the log multinomial coefficients of the
rows, and the number of draws of each outcome. Nothing else is kept.
"""

import math
from typing import NamedTuple

import numpy as np
from numba import njit

from countless.kernels import models
from countless.kernels.gamma import log_factorial, log_rising


class MultinomialClusters(NamedTuple):
    """Clusters of rows of counts that share their proportions."""

    statistics: np.ndarray  # (room, 2 + n_outcomes)
    prior: np.ndarray  # (2 + n_outcomes,) the sum of the weights, 0, the weight of each outcome


@njit(nogil=True, cache=True)
def _refresh(clusters, c):
    pass


@njit(nogil=True, cache=True)
def _change(clusters, c, rows, i, sign):
    s = clusters.statistics[c]
    total = 0.0
    coefficient = 0.0
    for j in range(rows.shape[1]):
        value = rows[i, j]
        if value > 0.0:
            s[2 + j] += sign * value
            total += value
            coefficient -= log_factorial(value)
    s[0] += sign * total
    s[1] += sign * (coefficient + log_factorial(total))


@njit(nogil=True, cache=True)
def _add_row(clusters, c, rows, i):
    _change(clusters, c, rows, i, 1.0)


@njit(nogil=True, cache=True)
def _remove_row(clusters, c, rows, i):
    _change(clusters, c, rows, i, -1.0)


@njit(nogil=True, cache=True)
def _density(clusters, c, rows, i, own):
    """Return the log density of a row; ``own`` is 1 when the cluster has the row, else 0."""
    s = clusters.statistics[c]
    total = 0.0
    density = 0.0
    for j in range(rows.shape[1]):
        value = rows[i, j]
        if value > 0.0:
            density += log_rising(clusters.prior[2 + j] + s[2 + j] - own * value, value)
            density -= log_factorial(value)
            total += value
    start = clusters.prior[0] + s[0] - own * total
    return density + log_factorial(total) - log_rising(start, total)


@njit(nogil=True, cache=True)
def _log_predictive(clusters, c, rows, i):
    return _density(clusters, c, rows, i, 0.0)


@njit(nogil=True, cache=True)
def _log_predictive_without(clusters, c, rows, i):
    return _density(clusters, c, rows, i, 1.0)


@njit(nogil=True, cache=True)
def _log_marginal(clusters, c):
    s = clusters.statistics[c]
    total = s[1] + math.lgamma(clusters.prior[0]) - math.lgamma(clusters.prior[0] + s[0])
    for w in range(2, s.shape[0]):
        if s[w] > 0.0:
            total += math.lgamma(clusters.prior[w] + s[w]) - math.lgamma(clusters.prior[w])
    return total


models.implement(
    MultinomialClusters,
    refresh=_refresh,
    add_row=_add_row,
    remove_row=_remove_row,
    log_predictive=_log_predictive,
    log_predictive_without=_log_predictive_without,
    log_marginal=_log_marginal,
)
