"""Ratios of gamma functions at the whole numbers that counts are."""

import math

import numpy as np
from numba import njit

_LOG_FACTORIAL = np.array([math.lgamma(x + 1.0) for x in range(256)])
# Products of so few factors below this neither overflow nor lose more than a few last bits.
_FEW, _SMALL = 8, 1e30


@njit(nogil=True, cache=True)
def log_factorial(x):
    """Return log x! of a whole number x >= 0."""
    if x < 256:
        return _LOG_FACTORIAL[int(x)]
    return math.lgamma(x + 1.0)


@njit(nogil=True, cache=True)
def log_rising(start, x):
    """Return log of start (start + 1) ... (start + x - 1) for a whole number x >= 0."""
    if x <= _FEW and start < _SMALL:
        product = 1.0
        for step in range(int(x)):
            product *= start + step
        return math.log(product)
    return math.lgamma(start + x) - math.lgamma(start)
