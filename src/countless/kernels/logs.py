"""Logarithms of many numbers at once, in steps that a processor takes for several side by side."""

import math

import numpy as np
from numba import njit

_LOG_2 = math.log(2.0)
_SQRT_HALF_BITS = np.uint64(np.array(math.sqrt(0.5)).view(np.uint64))
_FRACTION_BITS = np.uint64(52)


@njit(nogil=True, cache=True, error_model="numpy", inline="always")
def log_of(x):
    """Return the logarithm of a positive number, in steps that loops can take side by side.

    A number is 2^e m with m about 1, and log m = 2 artanh s of s = (m - 1) / (m + 1), |s| < 0.18.
    The coefficients are of the polynomial that meets it at Chebyshev's points of s^2: right to the
    last bit or two.
    """
    bits = np.float64(x).view(np.uint64)
    exponent = np.int64(bits - _SQRT_HALF_BITS) >> np.int64(_FRACTION_BITS)
    m = np.uint64(bits - (np.uint64(exponent) << _FRACTION_BITS)).view(np.float64)
    s = (m - 1.0) / (m + 1.0)
    z = s * s
    p = 0.15331721600556042 + z * 0.14616449685043406
    p = 0.2222221113479508 + z * (0.18182889125261723 + z * p)
    p = 0.39999999999899505 + z * (0.28571428625975487 + z * p)
    p = z * (0.666666666666667 + z * p)
    log = exponent * _LOG_2 + (2.0 * s + s * p)
    return log if x < math.inf else x


@njit(nogil=True, cache=True, error_model="numpy")
def take_logs(
    values,  # IN and OUT, positive
    n_values,  # IN
):
    """Replace the first of some positive numbers by their logarithms."""
    for place in range(n_values):
        values[place] = log_of(values[place])
