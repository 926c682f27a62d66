"""Clusters of models that treat every column on its own, so that a gap (NaN) just drops out.

Each column is of a kind and owns a stretch of every vector: of the statistics, of the prior and of
the terms kept for predictive densities, all of one width:

============  =================================  ============================  ==================
kind          statistics                         prior                         likelihood
============  =================================  ============================  ==================
``NUMBER``    count, sum, sum of squares         mean, strength, shape, scale  normal
``FIXED``     count, sum, sum of squares         mean, strength, variance      normal
``CATEGORY``  count, count of each level         sum, weight of each level     categorical
``COUNT``     count, sum, sum of log factorials  shape, rate                   Poisson
============  =================================  ============================  ==================

``strength`` counts the rows that the prior is worth: a cluster's mean has variance
``variance / strength`` about the prior's.
"""

import math
from typing import NamedTuple

import numpy as np
from numba import njit

from countless.kernels import models
from countless.kernels.gamma import log_factorial, log_rising

NUMBER, FIXED, CATEGORY, COUNT = range(4)
# Where less than this share remains, a difference would have lost half of its digits.
LEAST_SHARE = 1e-7

_NO_TABLES = np.empty((0, 0))
_LOG_PI = math.log(math.pi)
_LOG_2PI = math.log(2.0 * math.pi)
# Terms of numbers; those of fixed variances have no power.
_MEAN, _CONSTANT, _SLOPE, _CONSTANT_WITHOUT, _SLOPE_WITHOUT, _POWER = range(6)


class CellClusters(NamedTuple):
    """Clusters of rows whose columns are independent given the cluster."""

    statistics: np.ndarray  # (room, width)
    prior: np.ndarray  # (width,)
    terms: np.ndarray  # (width, room), clusters side by side
    kind: np.ndarray  # (n_columns,) int64
    start: np.ndarray  # (n_columns + 1,) int64, the stretch of each column
    columns: np.ndarray  # (n_used,) int64, the columns that count


@njit(nogil=True, cache=True)
def _number_density(prior, count, total, squares, value):
    """Return the log density of a value given sums, without terms kept."""
    strength = prior[1] + count
    mean = (prior[1] * prior[0] + total) / strength
    shape = prior[2] + 0.5 * count
    scale = prior[3] + 0.5 * _squares_about(prior, mean, count, total, squares)
    slope = strength / (strength + 1.0) / (2.0 * scale)
    constant = math.lgamma(shape + 0.5) - math.lgamma(shape)
    constant += 0.5 * (math.log(slope) - _LOG_PI)
    return constant - (shape + 0.5) * math.log(1.0 + slope * (value - mean) ** 2)


@njit(nogil=True, cache=True)
def _squares_about(prior, mean, count, total, squares):
    """Return the squared distances of the rows, and of the prior's mean, from the mean."""
    of_rows = squares - 2.0 * mean * total + count * mean * mean
    return max(of_rows, 0.0) + prior[1] * (prior[0] - mean) ** 2


@njit(nogil=True, cache=True)
def _refresh_number(s, prior, terms, first, c):
    strength = prior[1] + s[0]
    mean = (prior[1] * prior[0] + s[1]) / strength
    shape = prior[2] + 0.5 * s[0]
    double_scale = 2.0 * prior[3] + _squares_about(prior, mean, s[0], s[1], s[2])
    same = math.lgamma(shape)
    slope = strength / (strength + 1.0) / double_scale
    constant = math.lgamma(shape + 0.5) - same + 0.5 * (math.log(slope) - _LOG_PI)
    terms[first + _MEAN, c] = mean
    terms[first + _CONSTANT, c] = constant
    terms[first + _SLOPE, c] = slope
    terms[first + _POWER, c] = shape + 0.5
    if s[0] > 0.5:
        ratio = strength / (strength - 1.0)
        constant = same - math.lgamma(shape - 0.5)
        constant -= 0.5 * (math.log(ratio * double_scale) + _LOG_PI)
        terms[first + _CONSTANT_WITHOUT, c] = constant
        terms[first + _SLOPE_WITHOUT, c] = ratio / double_scale


@njit(nogil=True, cache=True)
def _refresh_fixed(s, prior, terms, first, c):
    strength = prior[1] + s[0]
    slope = strength / (strength + 1.0) / (2.0 * prior[2])
    terms[first + _MEAN, c] = (prior[1] * prior[0] + s[1]) / strength
    terms[first + _SLOPE, c] = slope
    terms[first + _CONSTANT, c] = 0.5 * (math.log(slope) - _LOG_PI)
    if s[0] > 0.5:
        ratio = strength / (strength - 1.0)
        constant = -0.5 * (math.log(2.0 * prior[2] * ratio) + _LOG_PI)
        terms[first + _CONSTANT_WITHOUT, c] = constant
        terms[first + _SLOPE_WITHOUT, c] = ratio / (2.0 * prior[2])


@njit(nogil=True, cache=True)
def refresh_cell(
    clusters,  # IN and OUT
    c,  # IN
    j,  # IN
):
    """Recompute the terms of column ``j`` of cluster ``c`` from its statistics."""
    first, last = clusters.start[j], clusters.start[j + 1]
    s = clusters.statistics[c, first:last]
    prior = clusters.prior[first:last]
    terms = clusters.terms
    kind = clusters.kind[j]
    if kind == NUMBER:
        _refresh_number(s, prior, terms, first, c)
    elif kind == FIXED:
        _refresh_fixed(s, prior, terms, first, c)
    elif kind == COUNT:
        shape, rate = prior[0] + s[1], prior[1] + s[0]
        terms[first, c] = shape
        terms[first + 1, c] = shape * math.log(rate / (rate + 1.0))
        terms[first + 2, c] = -math.log(rate + 1.0)
    else:
        for w in range(last - first):
            terms[first + w, c] = math.log(prior[w] + s[w])


@njit(nogil=True, cache=True)
def change_cell(
    clusters,  # IN and OUT
    c,  # IN
    j,  # IN
    value,  # IN not a gap
    sign,  # IN 1 to add, -1 to take away
):
    """Add the value of a cell to column ``j`` of cluster ``c``, or take it away."""
    first = clusters.start[j]
    s = clusters.statistics[c]
    kind = clusters.kind[j]
    s[first] += sign
    if s[first] < 0.5:  # nothing of the values, not even a rounding error, stays behind
        s[first : clusters.start[j + 1]] = 0.0
    elif kind == CATEGORY:
        level = first + 1 + int(value)
        s[level] += sign
        clusters.terms[first, c] = math.log(clusters.prior[first] + s[first])
        clusters.terms[level, c] = math.log(clusters.prior[level] + s[level])
        return
    elif kind == COUNT:
        s[first + 1] += sign * value
        s[first + 2] += sign * log_factorial(value)
    else:
        s[first + 1] += sign * value
        s[first + 2] += sign * value * value
    refresh_cell(clusters, c, j)


@njit(nogil=True, cache=True)
def predict_cells(
    clusters,  # IN
    begin,  # IN
    end,  # IN
    j,  # IN
    value,  # IN not a gap
    out,  # IN and OUT, out[0] belongs to cluster begin
):
    """Add the log density of a value in column ``j`` given each cluster from begin up to end."""
    first = clusters.start[j]
    terms = clusters.terms
    kind = clusters.kind[j]
    if kind == NUMBER:
        for c in range(begin, end):
            squared = (value - terms[first + _MEAN, c]) ** 2
            power = terms[first + _POWER, c]
            falling = power * math.log(1.0 + terms[first + _SLOPE, c] * squared)
            out[c - begin] += terms[first + _CONSTANT, c] - falling
    elif kind == FIXED:
        for c in range(begin, end):
            falling = terms[first + _SLOPE, c] * (value - terms[first + _MEAN, c]) ** 2
            out[c - begin] += terms[first + _CONSTANT, c] - falling
    elif kind == CATEGORY:
        level = first + 1 + int(value)
        for c in range(begin, end):
            out[c - begin] += terms[level, c] - terms[first, c]
    else:
        same = -log_factorial(value)
        for c in range(begin, end):
            rising = log_rising(terms[first, c], value)
            out[c - begin] += rising + terms[first + 1, c] + (value * terms[first + 2, c] + same)


@njit(nogil=True, cache=True)
def predict_cell_without(clusters, c, j, value):
    """Return the log density of a value given the other values of its own cluster."""
    first = clusters.start[j]
    terms, prior, statistics = clusters.terms, clusters.prior, clusters.statistics
    kind = clusters.kind[j]
    count, total = statistics[c, first], statistics[c, first + 1]
    if kind == NUMBER:
        own_prior = prior[first : first + 4]
        if count < 1.5:
            return _number_density(own_prior, 0.0, 0.0, 0.0, value)
        squared = (value - terms[first + _MEAN, c]) ** 2
        remaining = 1.0 - terms[first + _SLOPE_WITHOUT, c] * squared
        if remaining > LEAST_SHARE:
            power = terms[first + _POWER, c] - 1.0
            return terms[first + _CONSTANT_WITHOUT, c] + power * math.log(remaining)
        squares = statistics[c, first + 2] - value * value
        return _number_density(own_prior, count - 1.0, total - value, squares, value)
    if kind == FIXED:
        squared = (value - terms[first + _MEAN, c]) ** 2
        return terms[first + _CONSTANT_WITHOUT, c] - terms[first + _SLOPE_WITHOUT, c] * squared
    if kind == CATEGORY:
        level = first + 1 + int(value)
        share = prior[level] + statistics[c, level] - 1.0
        return math.log(share / (prior[first] + count - 1.0))
    shape, rate = prior[first] + total - value, prior[first + 1] + count - 1.0
    constant = shape * math.log(rate / (rate + 1.0)) - value * math.log(rate + 1.0)
    return log_rising(shape, value) + constant - log_factorial(value)


@njit(nogil=True, cache=True)
def _count_term(kind, prior, first, place, count):
    """Return what the count at a place of a column's statistics adds to its log marginal.

    For ``COUNT`` the sum (place 1) adds so much, and the count (place 0) the logarithm of its rate.
    """
    if kind == CATEGORY:
        if count == 0.0:
            return 0.0
        weight = prior[first + place]
        rising = math.lgamma(weight + count) - math.lgamma(weight)
        return -rising if place == 0 else rising
    if kind == COUNT:
        shape, rate = prior[first], prior[first + 1]
        if place == 0:
            return math.log(rate + count)
        return math.lgamma(shape + count) - math.lgamma(shape) + shape * math.log(rate)
    strength = prior[first + 1]
    total = 0.5 * math.log(strength / (strength + count)) - 0.5 * count * _LOG_2PI
    if kind == FIXED:
        return total - 0.5 * count * math.log(prior[first + 2])
    shape, scale = prior[first + 2], prior[first + 3]
    return total + math.lgamma(shape + 0.5 * count) - math.lgamma(shape) + shape * math.log(scale)


@njit(nogil=True, cache=True, inline="always")
def _look_up(tables, kind, prior, first, place, count):
    if count < tables.shape[1]:
        return tables[first + place, int(count)]
    return _count_term(kind, prior, first, place, count)


@njit(nogil=True, cache=True, inline="always")
def _cell_of_sums(kind, prior, s, first, last, tables):
    """Return the log marginal of one column; whole vectors and places, as slices are slow."""
    count = s[first]
    total = _look_up(tables, kind, prior, first, 0, count)
    if kind == CATEGORY:
        for place in range(1, last - first):
            total += _look_up(tables, kind, prior, first, place, s[first + place])
        return total
    if kind == COUNT:
        of_sum = _look_up(tables, kind, prior, first, 1, s[first + 1])
        return of_sum - s[first + 2] - (prior[first] + s[first + 1]) * total
    center, strength = prior[first], prior[first + 1]
    mean = (strength * center + s[first + 1]) / (strength + count)
    squares = s[first + 2] - 2.0 * mean * s[first + 1] + count * mean * mean
    squares = max(squares, 0.0) + strength * (center - mean) ** 2
    if kind == FIXED:
        return total - 0.5 * squares / prior[first + 2]
    shape = prior[first + 2] + 0.5 * count
    return total - shape * math.log(prior[first + 3] + 0.5 * squares)


@njit(nogil=True, cache=True)
def log_marginal_cell(clusters, c, j):
    """Return the log density of all values of column ``j`` in cluster ``c``."""
    s, first, last = clusters.statistics[c], clusters.start[j], clusters.start[j + 1]
    return _cell_of_sums(clusters.kind[j], clusters.prior, s, first, last, _NO_TABLES)


@njit(nogil=True, cache=True)
def _fill_tables(clusters, tables):
    for j in clusters.columns:
        kind, first, last = clusters.kind[j], clusters.start[j], clusters.start[j + 1]
        n_places = last - first if kind == CATEGORY else 2 if kind == COUNT else 1
        for place in range(n_places):
            for count in range(tables.shape[1]):
                term = _count_term(kind, clusters.prior, first, place, float(count))
                tables[first + place, count] = term


@njit(nogil=True, cache=True)
def _log_marginals_together(clusters, tables, statistics, x, others, n_others, out):
    kind, start, prior, columns = clusters.kind, clusters.start, clusters.prior, clusters.columns
    s = clusters.statistics[0]
    only_categories = columns.shape[0] == kind.shape[0]
    for j in columns:
        only_categories = only_categories and kind[j] == CATEGORY
    for m in range(n_others):
        y = others[m]
        if only_categories:
            out[m] = models.look_up_counts(tables, statistics, x, y, 0)
            if not math.isnan(out[m]):
                continue
        for w in range(s.shape[0]):
            s[w] = statistics[x, w] + statistics[y, w]
        total = 0.0
        for used in range(columns.shape[0]):
            j = columns[used]
            total += _cell_of_sums(kind[j], prior, s, start[j], start[j + 1], tables)
        out[m] = total


@njit(nogil=True, cache=True)
def _refresh(clusters, c):
    for j in clusters.columns:
        refresh_cell(clusters, c, j)


@njit(nogil=True, cache=True)
def _add_row(clusters, c, rows, i):
    for j in clusters.columns:
        value = rows[i, j]
        if not math.isnan(value):
            change_cell(clusters, c, j, value, 1.0)


@njit(nogil=True, cache=True)
def _remove_row(clusters, c, rows, i):
    for j in clusters.columns:
        value = rows[i, j]
        if not math.isnan(value):
            change_cell(clusters, c, j, value, -1.0)


@njit(nogil=True, cache=True)
def _log_predictive(clusters, c, rows, i):
    density = np.zeros(1)
    for j in clusters.columns:
        value = rows[i, j]
        if not math.isnan(value):
            predict_cells(clusters, c, c + 1, j, value, density)
    return density[0]


@njit(nogil=True, cache=True)
def _log_predictive_without(clusters, c, rows, i):
    total = 0.0
    for j in clusters.columns:
        value = rows[i, j]
        if not math.isnan(value):
            total += predict_cell_without(clusters, c, j, value)
    return total


@njit(nogil=True, cache=True)
def _log_predictive_row(clusters, n_clusters, rows, i, own, out):
    out[:n_clusters] = 0.0
    for j in clusters.columns:
        value = rows[i, j]
        if not math.isnan(value):
            predict_cells(clusters, 0, n_clusters, j, value, out)
    if own >= 0:
        out[own] = _log_predictive_without(clusters, own, rows, i)


@njit(nogil=True, cache=True)
def _log_marginal(clusters, c):
    total = 0.0
    for j in clusters.columns:
        total += log_marginal_cell(clusters, c, j)
    return total


models.implement(
    CellClusters,
    refresh=_refresh,
    add_row=_add_row,
    remove_row=_remove_row,
    log_predictive=_log_predictive,
    log_predictive_row=_log_predictive_row,
    log_predictive_without=_log_predictive_without,
    log_marginal=_log_marginal,
    fill_tables=_fill_tables,
    log_marginals_together=_log_marginals_together,
)
