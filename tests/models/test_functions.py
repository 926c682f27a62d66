"""Compiled logarithms and gamma functions, beside NumPy's and SciPy's."""

import numpy as np
from scipy.special import gammaln

from countless.kernels.gamma import LARGE, log_half_step, log_rising, stirling_rest
from countless.kernels.logs import take_logs

STARTS = [1e-6, 0.3, 1.0, LARGE - 1e-9, LARGE, 40.0, 1e4]


def test_logarithms_of_many_numbers():
    random = np.random.default_rng(0)
    values = np.concatenate([np.exp(random.uniform(-700, 700, 999)), 1 + 1e-3 * random.random(999)])
    found = np.append(values, [np.inf, np.nan, 2.0])
    take_logs(found, len(found) - 1)
    np.testing.assert_allclose(found[:-3], np.log(values), rtol=1e-15, atol=2e-16)
    assert found[-3] == np.inf
    assert np.isnan(found[-2])
    assert found[-1] == 2.0  # beyond what was asked for


def test_ratios_of_gamma_functions():
    for x in STARTS:
        ratio = gammaln(x + 0.5) - gammaln(x) + 0.5 * np.log(3.0)
        np.testing.assert_allclose(log_half_step(x, 3.0), ratio, rtol=1e-11, atol=1e-12)
        for steps in (0.0, 1.0, 7.0, 8.0, 9.0, 500.0):
            rising = np.log(x + np.arange(steps)).sum()
            np.testing.assert_allclose(log_rising(x, steps), rising, rtol=1e-13, atol=1e-12)
    for x in (LARGE, 40.0, 1e3):
        whole = (x - 0.5) * np.log(x) - x + 0.5 * np.log(2 * np.pi) + stirling_rest(x)
        np.testing.assert_allclose(whole, gammaln(x), rtol=1e-15)
