"""Numbers that were rounded, spread over what rounding took from them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from countless.models.checks import log_rounding_variances


def spread_rounding(
    rows: np.ndarray, columns: Sequence[int] | np.ndarray, random: np.random.Generator
) -> np.ndarray:
    """Return rows whose equal numbers lie evenly within a step of rounding, in random order.

    The density of equal numbers has no bound: it pays to give a column of few values a view of its
    own, with a cluster of no width for each, whatever the other columns have to say about it.
    Spread over the step that separates values, clusters are as wide as what is known of them.

    Parameters
    ----------
    rows : ndarray of shape (n_rows, n_columns)
    columns : sequence of int
        Those that hold numbers.
    random : numpy.random.Generator

    Returns
    -------
    ndarray of shape (n_rows, n_columns)
        The mean of equal numbers is as before, and a number that occurs once stays.
    """
    spread = rows.copy()
    steps = np.sqrt(12.0 * np.exp(log_rounding_variances(rows[:, columns])))
    for j, step in zip(columns, steps, strict=True):
        if step == 0:  # nothing repeats
            continue
        seen = np.flatnonzero(~np.isnan(rows[:, j]))
        _, value, count = np.unique(rows[seen, j], return_inverse=True, return_counts=True)
        order = np.lexsort((random.random(len(seen)), value))
        rank = np.empty(len(seen))
        rank[order] = np.arange(len(seen)) - np.repeat(np.cumsum(count) - count, count)
        spread[seen, j] += step * ((rank + 0.5) / count[value] - 0.5)
    return spread
