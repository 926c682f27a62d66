"""Log marginals of columns that are modelled one by one, from their statistics.

Kinds of columns, statistics and priors are laid out as ``models_cells.py`` says.
"""

import math

import numpy as np
from numba import njit

from countless.kernels import models

NUMBER, FIXED, CATEGORY, COUNT = range(4)

_NO_TABLES = np.empty((0, 0))
_LOG_2PI = math.log(2.0 * math.pi)


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
def fill_tables(clusters, tables):
    """Answer ``models.fill_tables``."""
    for j in clusters.columns:
        kind, first, last = clusters.kind[j], clusters.start[j], clusters.start[j + 1]
        n_places = last - first if kind == CATEGORY else 2 if kind == COUNT else 1
        for place in range(n_places):
            for count in range(tables.shape[1]):
                term = _count_term(kind, clusters.prior, first, place, float(count))
                tables[first + place, count] = term


@njit(nogil=True, cache=True)
def log_marginals_together(clusters, tables, statistics, x, others, n_others, out):
    """Answer ``models.log_marginals_together``."""
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
