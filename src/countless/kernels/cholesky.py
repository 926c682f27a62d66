"""Cholesky factors under rank-one updates and downdates.

``factor[j, i]`` for ``i >= j`` is ``L[i, j]``: columns are contiguous, as are inner loops. The
rest of the array is never read.
"""

import math

from numba import njit

_FAST = {"reassoc", "contract", "nsz"}


@njit(nogil=True, cache=True, fastmath=_FAST)
def factorize(
    factor,  # IN the matrix in the same layout; OUT its factor (d, d)
    least,  # IN (d,) lower bounds of the pivots
):
    """Replace a symmetric matrix by its factor.

    Where the matrix is another one plus a sum of squares, the pivots of that other one are lower
    bounds, and with them the factor exists however inaccurate the sum is.
    """
    d = factor.shape[0]
    for j in range(d):
        pivot = max(math.sqrt(max(factor[j, j], 0.0)), least[j])
        factor[j, j] = pivot
        for i in range(j + 1, d):
            factor[j, i] /= pivot
        for k in range(j + 1, d):
            below = factor[j, k]
            for i in range(k, d):
                factor[k, i] -= below * factor[j, i]


@njit(nogil=True, cache=True, fastmath=_FAST)
def update(
    factor,  # IN and OUT (d, d), of A and then of A + x x'
    x,  # IN (d,), overwritten
):
    """Add the outer product of ``x``."""
    d = factor.shape[0]
    for j in range(d):
        old = factor[j, j]
        new = math.sqrt(old * old + x[j] * x[j])
        cosine = new / old
        sine = x[j] / old
        inverse = 1.0 / cosine
        factor[j, j] = new
        for i in range(j + 1, d):
            entry = (factor[j, i] + sine * x[i]) * inverse
            factor[j, i] = entry
            x[i] = cosine * x[i] - sine * entry


@njit(nogil=True, cache=True, fastmath=_FAST)
def downdate(
    factor,  # IN and OUT (d, d), of A and then of A - x x'
    x,  # IN (d,), overwritten
    least,  # IN in (0, 1): the smallest share of a squared pivot that may remain
):
    """Subtract the outer product of ``x``; return False (factor invalid) if precision is lost.

    A pivot that shrinks by a factor magnifies its relative rounding error by the same factor.
    """
    d = factor.shape[0]
    for j in range(d):
        old = factor[j, j]
        sine = x[j] / old
        share = 1.0 - sine * sine
        if not share > least:
            return False
        cosine = math.sqrt(share)
        inverse = 1.0 / cosine
        factor[j, j] = old * cosine
        for i in range(j + 1, d):
            entry = (factor[j, i] - sine * x[i]) * inverse
            factor[j, i] = entry
            x[i] = cosine * x[i] - sine * entry
    return True


@njit(nogil=True, cache=True, fastmath=_FAST)
def squared_length(
    factor,  # IN (d, d)
    x,  # IN (d,), overwritten
):
    """Return ``x' A^-1 x`` by one triangular solve."""
    d = factor.shape[0]
    total = 0.0
    for j in range(d):
        solved = x[j] / factor[j, j]
        total += solved * solved
        for i in range(j + 1, d):
            x[i] -= solved * factor[j, i]
    return total


@njit(nogil=True, cache=True, fastmath=_FAST)
def squared_lengths(
    factor,  # IN (d, d)
    x,  # IN (d, n), overwritten
    out,  # OUT (n,)
):
    """Compute ``x' A^-1 x`` for each column of ``x`` in one vectorized loop."""
    d, n = x.shape
    for r in range(n):
        out[r] = 0.0
    for j in range(d):
        inverse = 1.0 / factor[j, j]
        for r in range(n):
            solved = x[j, r] * inverse
            x[j, r] = solved
            out[r] += solved * solved
        for i in range(j + 1, d):
            below = factor[j, i]
            for r in range(n):
                x[i, r] -= below * x[j, r]
