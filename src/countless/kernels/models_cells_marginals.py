"""Log marginal likelihoods of independently modelled columns, from their statistics.

Kinds of columns, statistics and priors are laid out as in ``models_cells.py``.
"""

import math

import numpy as np
from numba import njit

from countless.kernels import models
from countless.kernels.logs import take_logs

NUMBER, FIXED, CATEGORY, COUNT = range(4)

_LOG_2PI = math.log(2.0 * math.pi)


@njit(nogil=True, cache=True)
def _count_term(kind, prior, first, place, count):
    """Return the term of a column's log marginal that depends on one of its counts.

    For ``COUNT`` this is the term of the sum (place 1), and the logarithm of the posterior rate for
    the count (place 0).
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


@njit(nogil=True, cache=True)
def _squares_about(center, strength, mean, count, total, squares):
    """Return the squared distances of values, and of the prior's center, from the mean."""
    of_values = squares - 2.0 * mean * total + count * mean * mean
    return max(of_values, 0.0) + strength * (center - mean) ** 2


@njit(nogil=True, cache=True)
def log_marginal_cell(clusters, c, j):
    """Return the log marginal likelihood of column ``j`` in cluster ``c``."""
    kind, prior, s = clusters.kind[j], clusters.prior, clusters.statistics[c]
    first, last = clusters.start[j], clusters.start[j + 1]
    total = _count_term(kind, prior, first, 0, s[first])
    if kind == CATEGORY:
        for place in range(1, last - first):
            total += _count_term(kind, prior, first, place, s[first + place])
        return total
    if kind == COUNT:
        of_sum = _count_term(kind, prior, first, 1, s[first + 1])
        return of_sum - s[first + 2] - (prior[first] + s[first + 1]) * total
    center, strength = prior[first], prior[first + 1]
    mean = (strength * center + s[first + 1]) / (strength + s[first])
    squares = _squares_about(center, strength, mean, s[first], s[first + 1], s[first + 2])
    if kind == FIXED:
        return total - 0.5 * squares / prior[first + 2]
    shape = prior[first + 2] + 0.5 * s[first]
    return total - shape * math.log(prior[first + 3] + 0.5 * squares)


@njit(nogil=True, cache=True)
def fill_tables(clusters, tables):
    """Implement ``models.fill_tables``."""
    for j in clusters.columns:
        kind, first, last = clusters.kind[j], clusters.start[j], clusters.start[j + 1]
        n_places = last - first if kind == CATEGORY else 2 if kind == COUNT else 1
        for place in range(n_places):
            for count in range(tables.shape[1]):
                term = _count_term(kind, clusters.prior, first, place, float(count))
                tables[first + place, count] = term


@njit(nogil=True, cache=True)
def _look_up(kind, prior, first, place, tables, counts, n):
    """Replace counts by their terms, from the tables as far as these go."""
    known = tables[first + place]
    for m in range(n):
        if counts[m] < known.shape[0]:
            counts[m] = known[np.uint64(np.int64(counts[m]))]
        else:
            counts[m] = _count_term(kind, prior, first, place, counts[m])


# Divisions are unchecked, so that loops vectorize; no prior is 0.
@njit(nogil=True, cache=True, error_model="numpy")
def _add_numbers(kind, prior, first, tables, counts, totals, squares, n, out):
    center, strength = prior[first], prior[first + 1]
    for m in range(n):
        mean = (strength * center + totals[m]) / (strength + counts[m])
        squares[m] = _squares_about(center, strength, mean, counts[m], totals[m], squares[m])
    if kind == FIXED:
        for m in range(n):
            out[m] -= 0.5 * squares[m] / prior[first + 2]
    else:
        shape, scale = prior[first + 2], prior[first + 3]
        for m in range(n):
            squares[m] = scale + 0.5 * squares[m]
        take_logs(squares, n)
        for m in range(n):
            out[m] -= (shape + 0.5 * counts[m]) * squares[m]
    _look_up(kind, prior, first, 0, tables, counts, n)
    for m in range(n):
        out[m] += counts[m]


@njit(nogil=True, cache=True)
def _add_counts(prior, first, tables, counts, totals, factorials, n, out):
    _look_up(COUNT, prior, first, 0, tables, counts, n)
    for m in range(n):
        out[m] -= factorials[m] + (prior[first] + totals[m]) * counts[m]
    _look_up(COUNT, prior, first, 1, tables, totals, n)
    for m in range(n):
        out[m] += totals[m]


@njit(nogil=True, cache=True)
def _by_columns(clusters, tables, statistics, x, others, n_others, out):
    """Compute log marginals column by column, for as many pairs at once as the capacity allows."""
    prior, sums, capacity = clusters.prior, clusters.terms, clusters.terms.shape[1]
    for begin in range(0, n_others, capacity):
        n = min(capacity, n_others - begin)
        some, found = others[begin : begin + n], out[begin : begin + n]
        found[:] = 0.0
        for j in clusters.columns:
            kind, first, last = clusters.kind[j], clusters.start[j], clusters.start[j + 1]
            last = last if kind == CATEGORY else first + 3
            for w in range(first, last):
                own, of_pairs = statistics[x, w], sums[w]
                for m in range(n):
                    of_pairs[m] = own + statistics[some[m], w]
            if kind == CATEGORY:
                for w in range(first, last):
                    _look_up(kind, prior, first, w - first, tables, sums[w], n)
                    for m in range(n):
                        found[m] += sums[w, m]
                continue
            a, b, c = sums[first], sums[first + 1], sums[first + 2]
            if kind == COUNT:
                _add_counts(prior, first, tables, a, b, c, n, found)
            else:
                _add_numbers(kind, prior, first, tables, a, b, c, n, found)


@njit(nogil=True, cache=True)
def _set_line(clusters, tables, own, slope):
    """Return the sum of the counts' terms, and fill ``slope`` with their increments by one."""
    base = 0.0
    for j in clusters.columns:
        first = clusters.start[j]
        for w in range(first, clusters.start[j + 1]):
            if own[w] + 1.0 < tables.shape[1]:
                low, high = tables[w, int(own[w])], tables[w, int(own[w]) + 1]
            else:
                low = _count_term(CATEGORY, clusters.prior, first, w - first, own[w])
                high = _count_term(CATEGORY, clusters.prior, first, w - first, own[w] + 1.0)
            slope[w] = high - low
            base += low
    return base


@njit(nogil=True, cache=True, fastmath={"reassoc", "contract", "nsz"})
def _follow_line(slope, counts):
    """Return the sum of slopes times counts, and 0 if no count is above 1."""
    rise, above = 0.0, 0.0
    for w in range(slope.shape[0]):
        rise += slope[w] * counts[w]
        above += counts[w] * (counts[w] - 1.0)
    return rise, above


@njit(nogil=True, cache=True)
def log_marginals_together(clusters, tables, statistics, x, others, n_others, out):
    """Implement ``models.log_marginals_together``.

    With categories only, adding a single row is linear: each level's count grows by one or not.
    """
    own, slope = statistics[x], clusters.statistics[0]
    on_line = n_others > 2 and clusters.columns.shape[0] == clusters.kind.shape[0]
    for j in clusters.columns:
        on_line = on_line and clusters.kind[j] == CATEGORY and own[clusters.start[j]] >= 0.0
    if not on_line:
        _by_columns(clusters, tables, statistics, x, others, n_others, out)
        return
    base = _set_line(clusters, tables, own, slope)
    for m in range(n_others):
        rise, above = _follow_line(slope, statistics[others[m]])
        out[m] = base + rise
        if above > 0.0:
            out[m] = models.look_up_counts(tables, statistics, x, others[m], 0)
            if math.isnan(out[m]):
                beyond, found = others[m : m + 1], out[m : m + 1]
                _by_columns(clusters, tables, statistics, x, beyond, 1, found)
