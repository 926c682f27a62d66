"""Clusters of the normal-inverse-Wishart model, with Cholesky factors updated row by row.

Statistics of a cluster: the number of rows, their sum, and the lower triangle of the sum of their
outer products. The posterior has strength ``kappa = kappa0 + n``, mean ``m``, degrees of freedom
``nu0 + n`` and scale ``Psi``; adding a row ``x`` adds ``kappa / (kappa + 1) (x - m) (x - m)'`` to
``Psi``.
"""

import math
from typing import NamedTuple

import numpy as np
from numba import njit

from countless.kernels import models
from countless.kernels.cholesky import downdate, factorize, squared_length, squared_lengths, update
from countless.kernels.logs import log_of
from countless.kernels.models_gaussian_marginals import (
    count_term,
    fill_tables,
    log_marginals_together,
    set_scale,
)

# After this many rank-one updates a factor is recomputed from the sums.
CHANGES_BEFORE_REFRESH = 256
# A downdate that leaves less of a squared pivot than this would lose half of the digits.
LEAST_SHARE = 1e-7

# With this many columns, consecutive rows are processed together, BLOCK at a time.
WIDE, BLOCK = 6, 64
# Arrays over clusters are padded to a multiple of this, so that loops vectorize fully.
LANES = 8
# Terms that depend only on the number of rows are cached up to this number.
SIZES = 8192

_FAST = {"reassoc", "contract", "nsz"}
_LOG_PI = math.log(math.pi)
# Cached terms of the predictive densities, with all rows and with one row less.
_CONSTANT, _POWER, _RATIO, _CONSTANT_WITHOUT, _POWER_WITHOUT, _RATIO_WITHOUT, _LOG_DET = range(7)


class GaussianClusters(NamedTuple):
    """Clusters with full covariances."""

    statistics: np.ndarray  # (capacity, 1 + d + d (d + 1) / 2)
    prior_mean: np.ndarray  # (d,)
    prior_scale: np.ndarray  # (d, d)
    prior_pivots: np.ndarray  # (d,) the diagonal of its Cholesky factor
    prior: np.ndarray  # (3,) kappa0, nu0, log |Psi0|
    mean: np.ndarray  # (capacity, d)
    factor: np.ndarray  # (capacity, d, d), see cholesky.py
    side_means: np.ndarray  # (d, places) the means, clusters contiguous
    side_factors: np.ndarray  # (d (d + 1) / 2, places) the factors, with reciprocal diagonals
    terms: np.ndarray  # (7, places)
    size_terms: np.ndarray  # (SIZES,) terms of the number of rows, NaN where not computed yet
    marginal_terms: np.ndarray  # (SIZES,) the same for marginals
    changes: np.ndarray  # (capacity,) int64, rank-one changes since the last refresh
    block: np.ndarray  # (2 d + capacity, BLOCK) next rows, workspace, and squared distances
    block_state: np.ndarray  # (2 + capacity,) int64: first row, last row queried, what is known
    work: np.ndarray  # (d,)
    side_work: np.ndarray  # (d + 1, places)


class WideGaussianClusters(GaussianClusters):
    """The same for wide rows, which are processed BLOCK at a time."""


@njit(nogil=True, cache=True, forceinline=True)
def _size_term(clusters, n):
    """Return the term of a log predictive density that depends only on the number of rows.

    Rows may be weighted: only integers are cached.
    """
    place = int(n)
    known = clusters.size_terms
    cached = place < known.shape[0] and n == place
    if cached and not math.isnan(known[place]):
        return known[place]
    d = clusters.mean.shape[1]
    kappa = clusters.prior[0] + n
    half = 0.5 * (clusters.prior[1] + n + 1.0)
    term = math.lgamma(half) - math.lgamma(half - 0.5 * d)
    term += 0.5 * d * (math.log(kappa / (kappa + 1.0)) - _LOG_PI)
    if cached:
        known[place] = term
    return term


@njit(nogil=True, cache=True, forceinline=True)
def _set_terms(clusters, c):
    """Update the cached terms after a change of the factor, the mean and the number of rows."""
    clusters.block_state[2 + c] = False
    d = clusters.mean.shape[1]
    n = clusters.statistics[c, 0]
    kappa = clusters.prior[0] + n
    nu = clusters.prior[1] + n
    factor, side = clusters.factor, clusters.side_factors
    half_log_det, product = 0.0, 1.0
    place = 0
    for j in range(d):
        pivot = factor[c, j, j]
        clusters.side_means[j, c] = clusters.mean[c, j]
        product *= pivot
        if not 1e-100 < product < 1e100:  # few logarithms, without overflow
            half_log_det += math.log(product)
            product = 1.0
        side[place, c] = 1.0 / pivot
        for i in range(j + 1, d):
            side[place + i - j, c] = factor[c, j, i]
        place += d - j
    half_log_det += math.log(product)
    terms = clusters.terms
    terms[_CONSTANT, c] = _size_term(clusters, n) - half_log_det
    terms[_POWER, c] = 0.5 * (nu + 1.0)
    terms[_RATIO, c] = kappa / (kappa + 1.0)
    terms[_LOG_DET, c] = 2.0 * half_log_det
    if n >= 1.0:
        terms[_CONSTANT_WITHOUT, c] = _size_term(clusters, n - 1.0) - half_log_det
        terms[_POWER_WITHOUT, c] = 0.5 * (nu - 1.0)
        terms[_RATIO_WITHOUT, c] = kappa / (kappa - 1.0)


@njit(nogil=True, cache=True)
def _refresh(clusters, c):
    factor = clusters.factor[c]
    set_scale(
        clusters.statistics[c],
        clusters.prior[0],
        clusters.prior_mean,
        clusters.prior_scale,
        clusters.mean[c],
        factor,
    )
    factorize(factor, clusters.prior_pivots)
    clusters.changes[c] = 0
    _set_terms(clusters, c)


@njit(nogil=True, cache=True, fastmath=_FAST)
def _add_to_sums(sums, row, sign):
    d = row.shape[0]
    sums[0] += sign
    place = 1 + d
    for i in range(d):
        value = sign * row[i]
        sums[1 + i] += value
        for j in range(i + 1):
            sums[place + j] += value * row[j]
        place += i + 1


# Functions of the sweep are inlined: a call would pass every array of the clusters, 130 numbers.
@njit(nogil=True, cache=True, forceinline=True)
def _add_row(clusters, c, rows, i):
    d = rows.shape[1]
    kappa = clusters.prior[0] + clusters.statistics[c, 0]
    _add_to_sums(clusters.statistics[c], rows[i], 1.0)
    if clusters.changes[c] >= CHANGES_BEFORE_REFRESH:
        _refresh(clusters, c)
        return
    stretch = math.sqrt(kappa / (kappa + 1.0))
    for j in range(d):
        difference = rows[i, j] - clusters.mean[c, j]
        clusters.work[j] = stretch * difference
        clusters.mean[c, j] += difference / (kappa + 1.0)
    update(clusters.factor[c], clusters.work)
    clusters.changes[c] += 1
    _set_terms(clusters, c)


@njit(nogil=True, cache=True, forceinline=True)
def _remove_row(clusters, c, rows, i):
    d = rows.shape[1]
    kappa = clusters.prior[0] + clusters.statistics[c, 0]
    if clusters.statistics[c, 0] < 1.5:
        clusters.statistics[c] = 0.0
        _refresh(clusters, c)
        return
    _add_to_sums(clusters.statistics[c], rows[i], -1.0)
    if clusters.changes[c] >= CHANGES_BEFORE_REFRESH:
        _refresh(clusters, c)
        return
    stretch = math.sqrt(kappa / (kappa - 1.0))
    for j in range(d):
        difference = rows[i, j] - clusters.mean[c, j]
        clusters.work[j] = stretch * difference
        clusters.mean[c, j] -= difference / (kappa - 1.0)
    if not downdate(clusters.factor[c], clusters.work, LEAST_SHARE):
        _refresh(clusters, c)
        return
    clusters.changes[c] += 1
    _set_terms(clusters, c)


@njit(nogil=True, cache=True)
def _squared_distance(mean, factor, work, c, rows, i):
    for j in range(rows.shape[1]):
        work[j] = rows[i, j] - mean[c, j]
    return squared_length(factor[c], work)


@njit(nogil=True, cache=True)
def _log_predictive(clusters, c, rows, i):
    squared = _squared_distance(clusters.mean, clusters.factor, clusters.work, c, rows, i)
    terms = clusters.terms
    return terms[_CONSTANT, c] - terms[_POWER, c] * math.log(1.0 + terms[_RATIO, c] * squared)


@njit(nogil=True, cache=True)
def _log_predictive_after_removal(clusters, c, rows, i):
    _remove_row(clusters, c, rows, i)
    result = _log_predictive(clusters, c, rows, i)
    _add_row(clusters, c, rows, i)
    return result


@njit(nogil=True, cache=True, forceinline=True)
def _own_density(terms, c, count, squared):
    """Return the log density of a row given the other rows of its cluster, from that with the row.

    NaN where the difference would lose too much precision.
    """
    remaining = 1.0 - terms[_RATIO_WITHOUT, c] * squared
    if count > 1.5 and remaining > LEAST_SHARE:
        return terms[_CONSTANT_WITHOUT, c] + terms[_POWER_WITHOUT, c] * math.log(remaining)
    return math.nan


@njit(nogil=True, cache=True)
def _log_predictive_without(clusters, c, rows, i):
    squared = _squared_distance(clusters.mean, clusters.factor, clusters.work, c, rows, i)
    density = _own_density(clusters.terms, c, clusters.statistics[c, 0], squared)
    if math.isnan(density):
        density = _log_predictive_after_removal(clusters, c, rows, i)
    return density


@njit(nogil=True, cache=True, forceinline=True, fastmath=_FAST)
def _squared_distances(means, factors, work, n, rows, i, out):
    """Solve the triangular systems of all clusters in one vectorized loop."""
    d = rows.shape[1]
    for c in range(n):
        out[c] = 0.0
    for j in range(d):
        for c in range(n):
            work[j, c] = rows[i, j] - means[j, c]
    place = 0
    for j in range(d):
        for c in range(n):
            solved = work[j, c] * factors[place, c]
            work[j, c] = solved
            out[c] += solved * solved
        place += 1
        for k in range(j + 1, d):
            for c in range(n):
                work[k, c] -= work[j, c] * factors[place, c]
            place += 1


@njit(nogil=True, cache=True, forceinline=True, error_model="numpy")
def _to_log_densities(terms, n, squared):
    """Replace squared distances from clusters by log predictive densities."""
    for c in range(n):
        log = log_of(1.0 + terms[_RATIO, c] * squared[c])
        squared[c] = terms[_CONSTANT, c] - terms[_POWER, c] * log


@njit(nogil=True, cache=True, forceinline=True, error_model="numpy")
def _log_densities_in_the_plane(means, factors, terms, n, rows, i, own, out):
    """Compute the log densities of a row of two columns; return its own squared distance.

    One loop fills one array, so that it vectorizes. Fastmath is off, because it would reassociate
    the logarithm, which depends on the order of its operations.
    """
    x, y = rows[i, 0], rows[i, 1]
    for c in range(n):
        first = (x - means[0, c]) * factors[0, c]
        second = (y - means[1, c] - first * factors[1, c]) * factors[2, c]
        log = log_of(1.0 + terms[_RATIO, c] * (first * first + second * second))
        out[c] = terms[_CONSTANT, c] - terms[_POWER, c] * log
    c = max(own, 0)
    first = (x - means[0, c]) * factors[0, c]
    second = (y - means[1, c] - first * factors[1, c]) * factors[2, c]
    return first * first + second * second


@njit(nogil=True, cache=True)
def _place_in_block(block, state, rows, i):
    """Return the position of row i in the block, or -1; rows with equal values are accepted."""
    place = i - state[0]
    if not 0 <= place < BLOCK:
        return -1
    for j in range(rows.shape[1]):
        if block[j, place] != rows[i, j]:
            return -1
    return place


@njit(nogil=True, cache=True)
def _look_ahead(means, factors, n_clusters, rows, i, block, state):
    """Compute the distances of the next rows from the current clusters."""
    d = rows.shape[1]
    for r in range(BLOCK):
        at = min(i + r, rows.shape[0] - 1)
        for j in range(d):
            block[j, r] = rows[at, j]
    state[:] = False
    state[0] = i
    work = block[d : 2 * d]
    for c in range(n_clusters):
        for j in range(d):
            mean = means[c, j]
            for r in range(BLOCK):
                work[j, r] = block[j, r] - mean
        squared_lengths(factors[c], work, block[2 * d + c])
        state[2 + c] = True


@njit(nogil=True, cache=True)
def _distances_from_block(clusters, n_clusters, rows, i, out):
    """Fill ``out`` with squared distances of consecutive rows; return whether that was possible."""
    d = rows.shape[1]
    block, state = clusters.block, clusters.block_state
    mean, factor, work = clusters.mean, clusters.factor, clusters.work
    place = _place_in_block(block, state, rows, i)
    if place < 0 and i == state[1] + 1:
        _look_ahead(mean, factor, n_clusters, rows, i, block, state)
        place = 0
    state[1] = i
    if place < 0:
        return False
    for c in range(n_clusters):
        if state[2 + c]:
            out[c] = block[2 * d + c, place]
        else:  # the cluster has changed since
            out[c] = _squared_distance(mean, factor, work, c, rows, i)
    return True


@njit(nogil=True, cache=True, forceinline=True)
def _log_predictive_row(clusters, n_clusters, rows, i, own, out):
    d = rows.shape[1]
    n_places = (n_clusters + LANES - 1) // LANES * LANES
    means, factors, terms = clusters.side_means, clusters.side_factors, clusters.terms
    found = clusters.side_work[d]
    if d == 2:
        of_own = _log_densities_in_the_plane(means, factors, terms, n_places, rows, i, own, found)
    else:
        _squared_distances(means, factors, clusters.side_work, n_places, rows, i, found)
        of_own = found[max(own, 0)]
        _to_log_densities(terms, n_places, found)
    for c in range(n_clusters):
        out[c] = found[c]
    if own >= 0:
        out[own] = _own_density(terms, own, clusters.statistics[own, 0], of_own)


@njit(nogil=True, cache=True)
def _log_predictive_wide_row(clusters, n_clusters, rows, i, own, out):
    d = rows.shape[1]
    n_places = (n_clusters + LANES - 1) // LANES * LANES
    terms, side_work = clusters.terms, clusters.side_work
    found = side_work[d]
    if not _distances_from_block(clusters, n_clusters, rows, i, found):
        means, factors = clusters.side_means, clusters.side_factors
        _squared_distances(means, factors, side_work, n_places, rows, i, found)
    of_own = found[max(own, 0)]
    _to_log_densities(terms, n_places, found)
    for c in range(n_clusters):
        out[c] = found[c]
    if own >= 0:
        out[own] = _own_density(terms, own, clusters.statistics[own, 0], of_own)


@njit(nogil=True, cache=True, forceinline=True)
def _log_marginal(clusters, c):
    n = clusters.statistics[c, 0]
    place, known = int(n), clusters.marginal_terms
    cached = place < known.shape[0] and n == place
    term = known[place] if cached else math.nan
    if math.isnan(term):
        term = count_term(clusters, n)
        if cached:
            known[place] = term
    return term - 0.5 * (clusters.prior[1] + n) * clusters.terms[_LOG_DET, c]


for _kind, _row in (
    (GaussianClusters, _log_predictive_row),
    (WideGaussianClusters, _log_predictive_wide_row),
):
    models.implement(
        _kind,
        refresh=_refresh,
        add_row=_add_row,
        remove_row=_remove_row,
        log_predictive=_log_predictive,
        log_predictive_row=_row,
        log_predictive_without=_log_predictive_without,
        log_marginal=_log_marginal,
        fill_tables=fill_tables,
        log_marginals_together=log_marginals_together,
    )
