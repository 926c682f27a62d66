"""Clusters of the Dirichlet-multinomial model: a row has the count of each outcome.

Statistics of a cluster: the number of trials, the sum of the log multinomial coefficients of the
rows, and the number of trials of each outcome. Nothing else is stored.
"""

import math
from typing import NamedTuple

import numpy as np
from numba import njit

from countless.kernels import models
from countless.kernels.gamma import log_factorial, log_rising


class MultinomialClusters(NamedTuple):
    """Clusters of rows of counts with common outcome probabilities."""

    statistics: np.ndarray  # (capacity, 2 + n_outcomes)
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
    """Return the log density of a row; ``own`` is 1 when the cluster contains the row, else 0."""
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
def _rising(prior, w, count):
    if count == 0.0:
        return 0.0
    return math.lgamma(prior[w] + count) - math.lgamma(prior[w])


@njit(nogil=True, cache=True)
def _of_sums(prior, s):
    total = s[1] - _rising(prior, 0, s[0])
    for w in range(2, s.shape[0]):
        total += _rising(prior, w, s[w])
    return total


@njit(nogil=True, cache=True)
def _log_marginal(clusters, c):
    return _of_sums(clusters.prior, clusters.statistics[c])


@njit(nogil=True, cache=True)
def _fill_tables(clusters, tables):
    for w in range(2, tables.shape[0]):
        for count in range(tables.shape[1]):
            tables[w, count] = _rising(clusters.prior, w, float(count))


@njit(nogil=True, cache=True)
def _log_marginals_together(clusters, tables, statistics, x, others, n_others, out):
    prior, s = clusters.prior, clusters.statistics[0]
    for m in range(n_others):
        y = others[m]
        looked_up = models.look_up_counts(tables, statistics, x, y, 2)
        if math.isnan(looked_up):
            for w in range(s.shape[0]):
                s[w] = statistics[x, w] + statistics[y, w]
            out[m] = _of_sums(prior, s)
        else:
            total = statistics[x, 0] + statistics[y, 0]
            coefficients = statistics[x, 1] + statistics[y, 1]
            out[m] = coefficients - _rising(prior, 0, total) + looked_up


models.implement(
    MultinomialClusters,
    refresh=_refresh,
    add_row=_add_row,
    remove_row=_remove_row,
    log_predictive=_log_predictive,
    log_predictive_without=_log_predictive_without,
    log_marginal=_log_marginal,
    fill_tables=_fill_tables,
    log_marginals_together=_log_marginals_together,
)
