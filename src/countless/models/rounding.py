"""Dithering: spread rounded numbers over their rounding interval.

A rounded value stands for an interval as wide as the rounding step. If rounded values are taken as
exact, the likelihood is unbounded: a cluster of equal values may have an arbitrarily small
variance.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from countless.models.checks import is_constant, log_rounding_variances

# Width of a uniform distribution of variance 1.
CONSTANT_STEP = 12.0**0.5


def spread_rounding(
    rows: np.ndarray, columns: Sequence[int] | np.ndarray, random: np.random.Generator
) -> np.ndarray:
    """Spread equal numbers evenly over a rounding step, in random order.

    The step of a column is the smallest difference between its values. Spread over it, three or
    more equal numbers have the variance step^2 / 12 of rounding. A constant column has no step; it
    is given the variance 1 that models assume for it, and is then uninformative about clusters.

    Parameters
    ----------
    rows : ndarray of shape (n_rows, n_columns)
    columns : sequence of int
        Columns of numbers whose variance is estimated.
    random : numpy.random.Generator

    Returns
    -------
    ndarray of shape (n_rows, n_columns)
        The mean of equal numbers is unchanged, as are numbers that occur once.
    """
    spread = rows.copy()
    steps = np.sqrt(12.0 * np.exp(log_rounding_variances(rows[:, columns])))
    for j, step in zip(columns, steps, strict=True):
        seen = np.flatnonzero(~np.isnan(rows[:, j]))
        if len(seen) > 1 and is_constant(rows[seen, j]):
            step = CONSTANT_STEP
        if step == 0:  # all values are distinct
            continue
        _, value, count = np.unique(rows[seen, j], return_inverse=True, return_counts=True)
        order = np.lexsort((random.random(len(seen)), value))
        rank = np.empty(len(seen))
        rank[order] = np.arange(len(seen)) - np.repeat(np.cumsum(count) - count, count)
        spread[seen, j] += step * ((rank + 0.5) / count[value] - 0.5)
    return spread
