"""Vectorizable logarithms of many numbers."""

import math

import numpy as np
from numba import njit

_LOG_2 = math.log(2.0)
_SQRT_HALF_BITS = np.uint64(np.array(math.sqrt(0.5)).view(np.uint64))
_FRACTION_BITS = np.uint64(52)
_ONE_BITS = np.uint64(np.array(1.0).view(np.uint64))
# The bits of 2^52, whose ulp is 1: adding a small integer to the bits adds it to the number.
_WHOLE_BITS = np.uint64(np.array(2.0**52).view(np.uint64))
_WHOLE_ONE = 2.0**52 + 1023.0
# Up to this distance from 1 the next term of the series of the logarithm is below one ulp.
NEAR_ONE = 1.0 / 32.0


@njit(nogil=True, cache=True, error_model="numpy", forceinline=True)
def log_of(x):
    """Return the logarithm of a positive number, by operations that vectorize.

    A number is 2^e m with m about 1, and log m = 2 artanh s of s = (m - 1) / (m + 1), |s| < 0.18.
    The polynomial in s^2 interpolates it at Chebyshev nodes, accurate to one or two ulps. Callers
    must not let LLVM reassociate, since it would expand the products with 2^52.
    """
    bits = np.float64(x).view(np.uint64)
    biased = np.uint64(bits - _SQRT_HALF_BITS + _ONE_BITS) >> _FRACTION_BITS
    exponent = np.uint64(biased | _WHOLE_BITS).view(np.float64) - _WHOLE_ONE
    m = np.uint64(bits - (biased << _FRACTION_BITS) + _ONE_BITS).view(np.float64)
    s = (m - 1.0) / (m + 1.0)
    z = s * s
    p = 0.15331721600556042 + z * 0.14616449685043406
    p = 0.2222221113479508 + z * (0.18182889125261723 + z * p)
    p = 0.39999999999899505 + z * (0.28571428625975487 + z * p)
    p = z * (0.666666666666667 + z * p)
    log = exponent * _LOG_2 + (2.0 * s + s * p)
    return log if x < math.inf else x


@njit(nogil=True, cache=True, error_model="numpy", forceinline=True)
def log_near_one(rest):
    """Return log(1 + rest) for a rest of up to NEAR_ONE, by the first ten terms of its series."""
    p = 1.0 / 9.0 - rest * 0.1
    p = 1.0 / 7.0 - rest * (1.0 / 8.0 - rest * p)
    p = 1.0 / 5.0 - rest * (1.0 / 6.0 - rest * p)
    p = 1.0 / 3.0 - rest * (1.0 / 4.0 - rest * p)
    return rest * (1.0 - rest * (0.5 - rest * p))


@njit(nogil=True, cache=True, error_model="numpy")
def take_logs(
    values,  # IN and OUT, positive
    n_values,  # IN
):
    """Replace the first of some positive numbers by their logarithms."""
    for place in range(n_values):
        values[place] = log_of(values[place])
