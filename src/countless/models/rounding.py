"""Numbers that were rounded, spread over what rounding took from them.

A rounded value stands for an interval as wide as the step of rounding, and the density of values
that are taken as exact has no bound: a cluster of equal values may be as narrow as it likes.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from countless.models.checks import is_constant, log_rounding_variances

# Uniform over this, values have variance 1.
CONSTANT_STEP = 12.0**0.5


def spread_rounding(
    rows: np.ndarray, columns: Sequence[int] | np.ndarray, random: np.random.Generator
) -> np.ndarray:
    """Return rows whose equal numbers lie evenly within a step of rounding, in random order.

    The step of a column is the smallest difference between its values. Spread over it, three or
    more equal numbers have the variance step^2 / 12 of rounding. A column that does not vary has no
    step, and gets the variance 1 that models give it: then it says nothing of any cluster.

    Parameters
    ----------
    rows : ndarray of shape (n_rows, n_columns)
    columns : sequence of int
        Those that hold numbers whose variance is to be found.
    random : numpy.random.Generator

    Returns
    -------
    ndarray of shape (n_rows, n_columns)
        The mean of equal numbers is as before, and a number that occurs once stays.
    """
    spread = rows.copy()
    steps = np.sqrt(12.0 * np.exp(log_rounding_variances(rows[:, columns])))
    for j, step in zip(columns, steps, strict=True):
        seen = np.flatnonzero(~np.isnan(rows[:, j]))
        if len(seen) > 1 and is_constant(rows[seen, j]):
            step = CONSTANT_STEP
        if step == 0:  # nothing repeats
            continue
        _, value, count = np.unique(rows[seen, j], return_inverse=True, return_counts=True)
        order = np.lexsort((random.random(len(seen)), value))
        rank = np.empty(len(seen))
        rank[order] = np.arange(len(seen)) - np.repeat(np.cumsum(count) - count, count)
        spread[seen, j] += step * ((rank + 0.5) / count[value] - 0.5)
    return spread
