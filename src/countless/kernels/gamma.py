"""Ratios of gamma functions at integer steps, as counts need them."""

import math

import numpy as np
from numba import njit

_LOG_FACTORIAL = np.array([math.lgamma(x + 1.0) for x in range(256)])
# Products of this many factors below this bound do not overflow and lose only a few last bits.
_FEW, _SMALL = 8, 1e30
# From here on Stirling's series with the terms below is accurate to the last bit.
LARGE = 12.0


@njit(nogil=True, cache=True)
def log_factorial(x):
    """Return log x! of an integer x >= 0."""
    if x < 256:
        return _LOG_FACTORIAL[int(x)]
    return math.lgamma(x + 1.0)


@njit(nogil=True, cache=True, error_model="numpy")
def stirling_rest(x):
    """Return log Gamma(x) - (x - 1/2) log x + x - log(2 pi) / 2 of x >= LARGE."""
    r = 1.0 / x
    z = r * r
    rest = 1.0 / 1188.0 - z * (691.0 / 360360.0)
    rest = 1.0 / 360.0 - z * (1.0 / 1260.0 - z * (1.0 / 1680.0 - z * rest))
    return r * (1.0 / 12.0 - z * rest)


@njit(nogil=True, cache=True, error_model="numpy")
def log_half_step(x, square):
    """Return the log of Gamma(x + 1/2) / Gamma(x), x > 0, times the square root of ``square``."""
    if x < LARGE:
        return math.lgamma(x + 0.5) - math.lgamma(x) + 0.5 * math.log(square)
    r = 1.0 / x
    z = r * r
    rest = 31.0 / 18432.0 - z * (691.0 / 180224.0)
    rest = 1.0 / 192.0 - z * (1.0 / 640.0 - z * (17.0 / 14336.0 - z * rest))
    return 0.5 * math.log(x * square) - r * (1.0 / 8.0 - z * rest)


@njit(nogil=True, cache=True, error_model="numpy")
def log_rising(start, x):
    """Return the log of start (start + 1) ... (start + x - 1) for an integer x >= 0."""
    if x <= _FEW and start < _SMALL:
        product = 1.0
        for step in range(int(x)):
            product *= start + step
        return math.log(product)
    if start < LARGE:
        return math.lgamma(start + x) - math.lgamma(start)
    rising = x * (math.log(start) - 1.0) + (start + x - 0.5) * math.log1p(x / start)
    return rising + (stirling_rest(start + x) - stirling_rest(start))
