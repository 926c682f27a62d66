"""Clusters of models with independent columns, so that a missing value (NaN) just drops out.

Each column has a kind and a range of every vector: of the statistics, of the prior and of the
cached terms of predictive densities, all of one width:

============  =================================  ============================  ==================
kind          statistics                         prior                         likelihood
============  =================================  ============================  ==================
``NUMBER``    count, sum, sum of squares         mean, strength, shape, scale  normal
``FIXED``     count, sum, sum of squares         mean, strength, variance      normal
``CATEGORY``  count, count of each level         sum, weight of each level     categorical
``COUNT``     count, sum, sum of log factorials  shape, rate                   Poisson
============  =================================  ============================  ==================

``strength`` is the number of rows that the prior is equivalent to: a cluster's mean has variance
``variance / strength`` about the prior mean.
"""

import math
from typing import NamedTuple

import numpy as np
from numba import njit

from countless.kernels import models
from countless.kernels.gamma import LARGE, log_factorial, log_half_step, log_rising, stirling_rest
from countless.kernels.logs import take_logs
from countless.kernels.models_cells_marginals import (
    CATEGORY,
    COUNT,
    FIXED,
    NUMBER,
    fill_tables,
    log_marginal_cell,
    log_marginals_together,
)

# Where less than this share remains, a difference has lost half of its digits.
LEAST_SHARE = 1e-7

# Products are converted to logarithms before they underflow.
_LEAST_PRODUCT = 1e-200
_LOG_PI, _PER_PI = math.log(math.pi), 1.0 / math.pi
# Cached terms of numbers; those with a fixed variance have no power.
MEAN, CONSTANT, SLOPE, CONSTANT_WITHOUT, SLOPE_WITHOUT, POWER = range(6)


class CellClusters(NamedTuple):
    """Clusters of rows whose columns are independent given the cluster."""

    statistics: np.ndarray  # (capacity, width)
    prior: np.ndarray  # (width,)
    terms: np.ndarray  # (width, capacity), contiguous over clusters
    kind: np.ndarray  # (n_columns,) int64
    start: np.ndarray  # (n_columns + 1,) int64, where the range of each column begins
    columns: np.ndarray  # (n_used,) int64, the columns that are used
    logs: np.ndarray  # (n_columns * capacity,), workspace


# Functions of single cells take and return scalars: passing arrays costs more than the cell.
@njit(nogil=True, cache=True, error_model="numpy")
def _number_terms(mean, strength, shape, scale, count, total, squares):
    """Return the mean, constant, slope and power of numbers from a prior and statistics."""
    stronger = strength + count
    middle = (strength * mean + total) / stronger
    of_rows = max(squares - 2.0 * middle * total + count * middle * middle, 0.0)
    double_scale = 2.0 * scale + of_rows + strength * (mean - middle) ** 2
    slope = stronger / ((stronger + 1.0) * double_scale)
    shape += 0.5 * count
    return middle, log_half_step(shape, slope * _PER_PI), slope, shape + 0.5


@njit(nogil=True, cache=True, error_model="numpy", inline="always")
def find_without(stronger, terms, first, c):
    """Compute the constant and slope of numbers given the other rows of their cluster c.

    From the posterior strength of the cluster, and its terms with all rows.
    """
    ratio = (stronger - 1.0) / stronger
    without = terms[first + SLOPE, c] * (stronger + 1.0) / (stronger - 1.0)
    terms[first + SLOPE_WITHOUT, c] = without
    of_share = without * ratio * ratio * _PER_PI
    terms[first + CONSTANT_WITHOUT, c] = log_half_step(terms[first + POWER, c] - 1.0, of_share)


@njit(nogil=True, cache=True, error_model="numpy")
def _number_density(mean, strength, shape, scale, count, total, squares, value):
    """Return the log density of a value from the sums, without cached terms."""
    terms = _number_terms(mean, strength, shape, scale, count, total, squares)
    middle, constant, slope, power = terms
    return constant - power * math.log(1.0 + slope * (value - middle) ** 2)


@njit(nogil=True, cache=True)
def _number_density_without(statistics, prior, first, c, value):
    """Return the log density of a value that dominates its cluster, given the other values."""
    count, total, squares = 0.0, 0.0, 0.0
    if statistics[c, first] > 1.5:
        count, total = statistics[c, first] - 1.0, statistics[c, first + 1] - value
        squares = statistics[c, first + 2] - value * value
    mean, strength = prior[first], prior[first + 1]
    shape, scale = prior[first + 2], prior[first + 3]
    return _number_density(mean, strength, shape, scale, count, total, squares, value)


@njit(nogil=True, cache=True, error_model="numpy")
def _fixed_terms(mean, strength, variance, count, total):
    """Return the first terms of numbers of fixed variance, in their order."""
    stronger = strength + count
    slope = stronger / (stronger + 1.0) / (2.0 * variance)
    slope_without, constant_without = 0.0, 0.0
    if count > 0.5:
        ratio = stronger / (stronger - 1.0)
        slope_without = ratio / (2.0 * variance)
        constant_without = -0.5 * (math.log(2.0 * variance * ratio) + _LOG_PI)
    middle = (strength * mean + total) / stronger
    constant = 0.5 * (math.log(slope) - _LOG_PI)
    return middle, constant, slope, constant_without, slope_without


@njit(nogil=True, cache=True, error_model="numpy")
def _count_terms(shape, rate):
    """Return the shape, and the constant and linear coefficients of a count's log density.

    They include the terms of Stirling's series for a large shape.
    """
    constant, linear = -shape * math.log1p(1.0 / rate), -math.log(rate + 1.0)
    if shape >= LARGE:
        constant -= stirling_rest(shape)
        linear += math.log(shape) - 1.0
    return shape, constant, linear


@njit(nogil=True, cache=True, error_model="numpy")
def count_density(shape, rate, value):
    constant = -shape * math.log1p(1.0 / rate) - value * math.log(rate + 1.0)
    return log_rising(shape, value) + constant - log_factorial(value)


@njit(nogil=True, cache=True, inline="always")
def _refresh_cell(kind, statistics, prior, terms, first, last, c):
    """Recompute the terms of one column of cluster ``c`` from its statistics."""
    count, total = statistics[c, first], statistics[c, first + 1]
    if kind == NUMBER:
        mean, strength, squares = prior[first], prior[first + 1], statistics[c, first + 2]
        found = _number_terms(
            mean, strength, prior[first + 2], prior[first + 3], count, total, squares
        )
        for w in range(3):
            terms[first + w, c] = found[w]
        terms[first + POWER, c] = found[3]
        terms[first + SLOPE_WITHOUT, c] = math.nan  # computed on demand
    elif kind == FIXED:
        of_fixed = _fixed_terms(prior[first], prior[first + 1], prior[first + 2], count, total)
        for w in range(5):
            terms[first + w, c] = of_fixed[w]
    elif kind == COUNT:
        of_count = _count_terms(prior[first] + total, prior[first + 1] + count)
        for w in range(3):
            terms[first + w, c] = of_count[w]
    else:
        for w in range(first, last):
            terms[w, c] = math.log(prior[w] + statistics[c, w])


@njit(nogil=True, cache=True)
def refresh_cells(clusters, c):
    statistics, prior, terms = clusters.statistics, clusters.prior, clusters.terms
    kind, start = clusters.kind, clusters.start
    for j in clusters.columns:
        _refresh_cell(kind[j], statistics, prior, terms, start[j], start[j + 1], c)


@njit(nogil=True, cache=True)
def _change(clusters, c, rows, i, sign):
    """Add row ``i`` to cluster ``c`` (sign 1), or remove it (-1)."""
    statistics, prior, terms = clusters.statistics, clusters.prior, clusters.terms
    kind, start = clusters.kind, clusters.start
    for j in clusters.columns:
        value = float(rows[i, j])
        if math.isnan(value):
            continue
        first, last = start[j], start[j + 1]
        statistics[c, first] += sign
        if statistics[c, first] < 0.5:  # exactly empty, without residual rounding errors
            for w in range(first, last):
                statistics[c, w] = 0.0
        elif kind[j] == CATEGORY:
            level = first + 1 + int(value)
            statistics[c, level] += sign
            terms[first, c] = math.log(prior[first] + statistics[c, first])
            terms[level, c] = math.log(prior[level] + statistics[c, level])
            continue
        else:
            square = log_factorial(value) if kind[j] == COUNT else value * value
            statistics[c, first + 1] += sign * value
            statistics[c, first + 2] += sign * square
        _refresh_cell(kind[j], statistics, prior, terms, first, last, c)


@njit(nogil=True, cache=True)
def count_cells(clusters, c, rows, i, sign):
    """Add row ``i`` to the statistics of cluster ``c`` alone (sign 1), or remove it (-1)."""
    statistics, kind, start = clusters.statistics, clusters.kind, clusters.start
    for j in clusters.columns:
        value = float(rows[i, j])
        if math.isnan(value):
            continue
        first = start[j]
        statistics[c, first] += sign
        if statistics[c, first] < 0.5:
            statistics[c, first : start[j + 1]] = 0.0
        elif kind[j] == CATEGORY:
            statistics[c, first + 1 + int(value)] += sign
        else:
            statistics[c, first + 1] += sign * value
            square = log_factorial(value) if kind[j] == COUNT else value * value
            statistics[c, first + 2] += sign * square


@njit(nogil=True, cache=True, inline="always")
def add_cells(clusters, c, rows, i):
    _change(clusters, c, rows, i, 1.0)


@njit(nogil=True, cache=True, inline="always")
def remove_cells(clusters, c, rows, i):
    _change(clusters, c, rows, i, -1.0)


@njit(nogil=True, cache=True, error_model="numpy")
def predict(clusters, begin, end, rows, i, own, out):
    """Compute the log density of row ``i`` given each cluster from begin (``out[0]``) up to end.

    ``own`` is the cluster that contains the row, whose density is given its other rows; or
    negative. The logarithms of all cells are collected and computed in one loop; a NaN among them
    is not needed.
    """
    statistics, prior, terms = clusters.statistics, clusters.prior, clusters.terms
    kind, start, columns = clusters.kind, clusters.start, clusters.columns
    logs, n_logs, n_clusters = clusters.logs, 0, end - begin
    own_density, own_share = 0.0, 1.0
    for c in range(n_clusters):
        out[c] = 0.0
    for j in columns:
        value = float(rows[i, j])
        if math.isnan(value):
            continue
        first = start[j]
        if kind[j] == NUMBER:
            for c in range(n_clusters):
                apart = value - terms[first + MEAN, begin + c]
                logs[n_logs + c] = 1.0 + terms[first + SLOPE, begin + c] * (apart * apart)
            if own >= 0:
                if math.isnan(terms[first + SLOPE_WITHOUT, own]):
                    find_without(prior[first + 1] + statistics[own, first], terms, first, own)
                apart = value - terms[first + MEAN, own]
                share = 1.0 - terms[first + SLOPE_WITHOUT, own] * (apart * apart)
                if share < LEAST_SHARE or statistics[own, first] < 1.5:
                    share = math.nan
                    own_density += _number_density_without(statistics, prior, first, own, value)
                logs[n_logs + own - begin] = share
            n_logs += n_clusters
        elif kind[j] == COUNT:
            for c in range(n_clusters):
                logs[n_logs + c] = 1.0 + value / terms[first, begin + c]
            if own >= 0:
                shape = prior[first] + statistics[own, first + 1] - value
                rate = prior[first + 1] + statistics[own, first] - 1.0
                own_density += count_density(shape, rate, value)
            n_logs += n_clusters
        elif kind[j] == CATEGORY:
            level = first + 1 + int(value)
            for c in range(n_clusters):
                out[c] += terms[level, begin + c] - terms[first, begin + c]
            if own >= 0:
                total = prior[first] + statistics[own, first] - 1.0
                own_share *= (prior[level] + statistics[own, level] - 1.0) / total
                if own_share < _LEAST_PRODUCT:
                    own_density += math.log(own_share)
                    own_share = 1.0
        else:
            for c in range(n_clusters):
                apart = value - terms[first + MEAN, begin + c]
                falling = terms[first + SLOPE, begin + c] * (apart * apart)
                out[c] += terms[first + CONSTANT, begin + c] - falling
            if own >= 0:
                apart = value - terms[first + MEAN, own]
                own_density += terms[first + CONSTANT_WITHOUT, own]
                own_density -= terms[first + SLOPE_WITHOUT, own] * (apart * apart)
    take_logs(logs, n_logs)
    n_logs = 0
    for j in columns:
        value = float(rows[i, j])
        if math.isnan(value) or kind[j] == CATEGORY or kind[j] == FIXED:
            continue
        first = start[j]
        if kind[j] == NUMBER:
            for c in range(n_clusters):
                falling = terms[first + POWER, begin + c] * logs[n_logs + c]
                out[c] += terms[first + CONSTANT, begin + c] - falling
            if own >= 0 and not math.isnan(logs[n_logs + own - begin]):
                own_density += terms[first + CONSTANT_WITHOUT, own]
                own_density += (terms[first + POWER, own] - 1.0) * logs[n_logs + own - begin]
        else:
            same = -log_factorial(value)
            for c in range(n_clusters):
                shape = terms[first, begin + c]
                if shape >= LARGE:
                    rising = (shape + value - 0.5) * logs[n_logs + c] + stirling_rest(shape + value)
                else:
                    rising = log_rising(shape, value)
                linear = terms[first + 1, begin + c] + (value * terms[first + 2, begin + c] + same)
                out[c] += rising + linear
        n_logs += n_clusters
    if own >= 0:
        out[own - begin] = own_density + math.log(own_share)


@njit(nogil=True, cache=True)
def _log_predictive(clusters, c, rows, i):
    density = np.empty(1)
    predict(clusters, c, c + 1, rows, i, np.int64(-1), density)
    return density[0]


@njit(nogil=True, cache=True)
def _log_predictive_without(clusters, c, rows, i):
    density = np.empty(1)
    predict(clusters, c, c + 1, rows, i, c, density)
    return density[0]


@njit(nogil=True, cache=True, inline="always")
def _log_predictive_row(clusters, n_clusters, rows, i, own, out):
    predict(clusters, np.int64(0), n_clusters, rows, i, own, out)


@njit(nogil=True, cache=True)
def log_marginal_of_cells(clusters, c):
    total = 0.0
    for j in clusters.columns:
        total += log_marginal_cell(clusters, c, j)
    return total


models.implement(
    CellClusters,
    refresh=refresh_cells,
    add_row=add_cells,
    remove_row=remove_cells,
    log_predictive=_log_predictive,
    log_predictive_row=_log_predictive_row,
    log_predictive_without=_log_predictive_without,
    log_marginal=log_marginal_of_cells,
    fill_tables=fill_tables,
    log_marginals_together=log_marginals_together,
)
