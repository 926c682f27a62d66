"""Log marginal likelihoods of the normal-inverse-Wishart model, for many pairs of clusters at once.

Statistics and clusters are laid out as in ``models_gaussian.py``.
"""

import math

import numpy as np
from numba import njit

from countless.kernels.cholesky import factorize

_LOG_PI = math.log(math.pi)
# Rows of ``terms`` used as workspace for pairs.
_COUNT, _PRODUCT, _LOG = range(3)


@njit(nogil=True, cache=True)
def set_scale(
    sums,  # IN (width,)
    kappa0,  # IN
    prior_mean,  # IN (d,)
    prior_scale,  # IN (d, d)
    mean,  # OUT (d,)
    scale,  # OUT (d, d)
):
    """Compute the posterior mean and scale, the latter in the layout of factors."""
    d = mean.shape[0]
    kappa = kappa0 + sums[0]
    for j in range(d):
        mean[j] = (kappa0 * prior_mean[j] + sums[1 + j]) / kappa
    # Centered at the posterior mean, to avoid cancellation between large squares.
    place = 1 + d
    for i in range(d):
        for j in range(i + 1):
            from_rows = (
                sums[place]
                - sums[1 + i] * mean[j]
                - mean[i] * sums[1 + j]
                + sums[0] * mean[i] * mean[j]
            )
            from_prior = kappa0 * (prior_mean[i] - mean[i]) * (prior_mean[j] - mean[j])
            scale[j, i] = prior_scale[i, j] + from_rows + from_prior
            place += 1


@njit(nogil=True, cache=True)
def count_term(clusters, n):
    """Return the term of a log marginal that depends only on the number of rows."""
    d = clusters.mean.shape[1]
    kappa0, nu0, log_det0 = clusters.prior[0], clusters.prior[1], clusters.prior[2]
    total = -0.5 * n * d * _LOG_PI + 0.5 * d * math.log(kappa0 / (kappa0 + n))
    total += 0.5 * nu0 * log_det0
    for j in range(d):
        total += math.lgamma(0.5 * (nu0 + n - j)) - math.lgamma(0.5 * (nu0 - j))
    return total


@njit(nogil=True, cache=True)
def fill_tables(clusters, tables):
    """Implement ``models.fill_tables``."""
    for count in range(tables.shape[1]):
        tables[0, count] = count_term(clusters, float(count))


@njit(nogil=True, cache=True, error_model="numpy")
def _set_scales(clusters, statistics, x, others, n):
    """Compute the posterior scales of many pairs, and in ``terms`` their numbers of rows.

    As `set_scale` does for one; entry (i, j) of all of them is one row of ``side_factors``.
    """
    d = clusters.mean.shape[1]
    kappa0, center = clusters.prior[0], clusters.prior_mean
    count, total, mean = clusters.terms[_COUNT], clusters.side_work, clusters.side_means
    for m in range(n):
        count[m] = statistics[x, 0] + statistics[others[m], 0]
    for j in range(d):
        for m in range(n):
            total[j, m] = statistics[x, 1 + j] + statistics[others[m], 1 + j]
        for m in range(n):
            mean[j, m] = (kappa0 * center[j] + total[j, m]) / (kappa0 + count[m])
    for i in range(d):
        for j in range(i + 1):
            scale = clusters.side_factors[j * d - j * (j - 1) // 2 + i - j]
            w = 1 + d + i * (i + 1) // 2 + j
            start = clusters.prior_scale[i, j]
            for m in range(n):
                scale[m] = statistics[x, w] + statistics[others[m], w]
            for m in range(n):
                a, b = mean[i, m], mean[j, m]
                from_rows = scale[m] - total[i, m] * b - a * total[j, m] + count[m] * a * b
                scale[m] = start + from_rows + kappa0 * (center[i] - a) * (center[j] - b)


@njit(nogil=True, cache=True, error_model="numpy")
def _set_log_dets(clusters, n):
    """Factorize many scales at once, as ``factorize`` does one, for the logs of their pivots."""
    d = clusters.mean.shape[1]
    factor, least = clusters.side_factors, clusters.prior_pivots
    total, product, pivot = (
        clusters.terms[_LOG],
        clusters.terms[_PRODUCT],
        clusters.side_work[0],
    )
    total[:n], product[:n] = 0.0, 1.0
    place = 0
    for j in range(d):
        for m in range(n):
            pivot[m] = max(math.sqrt(max(factor[place, m], 0.0)), least[j])
        for m in range(n):
            product[m] *= pivot[m]
            if not 1e-100 < product[m] < 1e100:  # few logarithms, without overflow
                total[m] += math.log(product[m])
                product[m] = 1.0
        for i in range(1, d - j):
            for m in range(n):
                factor[place + i, m] /= pivot[m]
        below = place + d - j
        for k in range(1, d - j):
            for i in range(k, d - j):
                for m in range(n):
                    factor[below, m] -= factor[place + k, m] * factor[place + i, m]
                below += 1
        place += d - j
    for m in range(n):
        total[m] += math.log(product[m])


@njit(nogil=True, cache=True, error_model="numpy")
def _set_log_dets_with_rows(clusters, statistics, x, others, n):
    """Compute the log pivots of x with single rows, by the matrix determinant lemma."""
    d = clusters.mean.shape[1]
    mean, factor, work = clusters.mean[0], clusters.factor[0], clusters.side_work
    squared, total = clusters.terms[_PRODUCT], clusters.terms[_LOG]
    own = 0.0
    for j in range(d):
        own += math.log(factor[j, j])
        for m in range(n):
            work[j, m] = statistics[others[m], 1 + j] - mean[j]
    squared[:n] = 0.0
    for j in range(d):
        for m in range(n):
            work[j, m] /= factor[j, j]
            squared[m] += work[j, m] * work[j, m]
        for i in range(j + 1, d):
            for m in range(n):
                work[i, m] -= work[j, m] * factor[j, i]
    kappa = clusters.prior[0] + statistics[x, 0]
    for m in range(n):
        clusters.terms[_COUNT, m] = statistics[x, 0] + 1.0
        total[m] = own + 0.5 * math.log(1.0 + kappa / (kappa + 1.0) * squared[m])


@njit(nogil=True, cache=True)
def log_marginals_together(clusters, tables, statistics, x, others, n_others, out):
    """Implement ``models.log_marginals_together``, for as many pairs at once as fit the capacity.

    Most of the others are single rows, and these take d^2 steps; others take d^3.
    """
    factor, capacity = clusters.factor[0], clusters.terms.shape[1]
    prior, center, scale = clusters.prior, clusters.prior_mean, clusters.prior_scale
    set_scale(statistics[x], prior[0], center, scale, clusters.mean[0], factor)
    factorize(factor, clusters.prior_pivots)
    some, place = np.empty(capacity, dtype=np.int64), np.empty(capacity, dtype=np.int64)
    for single in (True, False):
        n = 0
        for m in range(n_others):
            if (statistics[others[m], 0] == 1.0) == single:
                some[n], place[n] = others[m], m
                n += 1
            if n < capacity and m < n_others - 1:
                continue
            if single:
                _set_log_dets_with_rows(clusters, statistics, x, some, n)
            else:
                _set_scales(clusters, statistics, x, some, n)
                _set_log_dets(clusters, n)
            for i in range(n):
                count = clusters.terms[_COUNT, i]
                known = count < tables.shape[1]
                constant = tables[0, int(count)] if known else count_term(clusters, count)
                out[place[i]] = constant - (prior[1] + count) * clusters.terms[_LOG, i]
            n = 0
