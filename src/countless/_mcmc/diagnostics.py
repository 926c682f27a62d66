"""Convergence diagnostics of chains: split R-hat and effective sample size, by ArviZ.

R-hat compares the variance within chains with that of all draws [1]_. ``arviz-stats`` needs only
numpy and SciPy, so that these diagnostics are always available.

References
----------
.. [1] A. Vehtari, A. Gelman, D. Simpson, B. Carpenter and P.-C. Buerkner, "Rank-normalization,
   folding, and localization: an improved R-hat", Bayesian Analysis 16, 2021.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

# Least number of draws of a chain: each of its halves must have a variance.
FEWEST = 4


class Diagnostic(NamedTuple):
    """Convergence diagnostics of one scalar."""

    r_hat: float  # 1 where chains agree; NaN for one chain, or fewer than four draws
    effective_size: float  # bulk effective sample size


def diagnose(draws: np.ndarray) -> Diagnostic:
    """Return split R-hat and bulk effective sample size of one scalar, (n_chains, n_draws).

    Examples
    --------
    >>> diagnose(np.ones((4, 100)))
    Diagnostic(r_hat=1.0, effective_size=400.0)
    >>> diagnose(np.ones((2, 100)) * [[1.0], [2.0]])
    Diagnostic(r_hat=inf, effective_size=2.0)
    """
    from arviz_stats.base.array import array_stats

    n_chains, n_draws = draws.shape
    if n_draws < FEWEST:
        return Diagnostic(np.nan, np.nan)
    if np.all(draws == draws[:, :1]):  # no variance within chains
        agreed = bool(np.all(draws == draws[0, 0]))
        r_hat = np.nan if n_chains == 1 else 1.0 if agreed else np.inf
        return Diagnostic(r_hat, float(draws.size if agreed else n_chains))
    with np.errstate(divide="ignore", invalid="ignore"):  # constant halves: infinite
        size = float(array_stats.ess(draws, chain_axis=0, draw_axis=1))
        r_hat = array_stats.rhat(draws, chain_axis=0, draw_axis=1) if n_chains > 1 else np.nan
    return Diagnostic(float(r_hat), size)
