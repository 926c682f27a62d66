"""Clusters whose rows are statistics already: a bundle of them, one for each part of the row.

Where columns of a table fall into clusters, a row says as much as the statistics of its cells in
each of these. So rows can be clustered by their bundles, with any model of one cell.
"""

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from countless.kernels import models


class BundleClusters(NamedTuple):
    """Clusters of bundles of statistics."""

    statistics: np.ndarray  # (room, n_parts * width)
    marginals: np.ndarray  # (room, n_parts) the log marginal of each part
    cell: Any  # clusters of the model of one cell: a place to work


@njit(nogil=True, cache=True)
def _of_part(clusters, c, p, rows, i, sign):
    """Return the log marginal of part p of cluster c, with so many times row i."""
    width = clusters.cell.statistics.shape[1]
    s = clusters.cell.statistics[0]
    for w in range(width):
        s[w] = clusters.statistics[c, p * width + w]
        if sign != 0.0:
            s[w] += sign * rows[i, p * width + w]
    models.refresh(clusters.cell, 0)
    return models.log_marginal(clusters.cell, 0)


@njit(nogil=True, cache=True)
def _has_part(clusters, p, rows, i):
    """Tell whether row i has any cell in part p."""
    width = clusters.cell.statistics.shape[1]
    return np.any(rows[i, p * width : (p + 1) * width] != 0.0)


@njit(nogil=True, cache=True)
def _refresh(clusters, c):
    for p in range(clusters.marginals.shape[1]):
        clusters.marginals[c, p] = _of_part(clusters, c, p, clusters.statistics, c, 0.0)


@njit(nogil=True, cache=True)
def _change(clusters, c, rows, i, sign):
    width = clusters.cell.statistics.shape[1]
    for p in range(clusters.marginals.shape[1]):
        if _has_part(clusters, p, rows, i):
            clusters.marginals[c, p] = _of_part(clusters, c, p, rows, i, sign)
            for w in range(p * width, (p + 1) * width):
                clusters.statistics[c, w] += sign * rows[i, w]


@njit(nogil=True, cache=True)
def _add_row(clusters, c, rows, i):
    _change(clusters, c, rows, i, 1.0)


@njit(nogil=True, cache=True)
def _remove_row(clusters, c, rows, i):
    _change(clusters, c, rows, i, -1.0)


@njit(nogil=True, cache=True)
def _log_predictive(clusters, c, rows, i):
    total = 0.0
    for p in range(clusters.marginals.shape[1]):
        if _has_part(clusters, p, rows, i):
            total += _of_part(clusters, c, p, rows, i, 1.0) - clusters.marginals[c, p]
    return total


@njit(nogil=True, cache=True)
def _log_predictive_without(clusters, c, rows, i):
    total = 0.0
    for p in range(clusters.marginals.shape[1]):
        if _has_part(clusters, p, rows, i):
            total += clusters.marginals[c, p] - _of_part(clusters, c, p, rows, i, -1.0)
    return total


@njit(nogil=True, cache=True)
def _log_marginal(clusters, c):
    return clusters.marginals[c].sum()


models.implement(
    BundleClusters,
    refresh=_refresh,
    add_row=_add_row,
    remove_row=_remove_row,
    log_predictive=_log_predictive,
    log_predictive_without=_log_predictive_without,
    log_marginal=_log_marginal,
)
