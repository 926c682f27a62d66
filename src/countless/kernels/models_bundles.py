"""Clusters whose rows are bundles of sufficient statistics, one for each part of the row.

Where the columns of a table are clustered, the likelihood of a row depends only on the statistics
of its cells in each column cluster. So rows can be clustered by these bundles, with any model of
one cell. The first statistic of a cell is the count.
"""

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from countless.kernels import models


class BundleClusters(NamedTuple):
    """Clusters of bundles of statistics, with capacity for one bundle more."""

    statistics: np.ndarray  # (capacity, n_parts * width), shares its memory with ``parts``
    parts: np.ndarray  # ((capacity + 1) * n_parts, width)
    marginals: np.ndarray  # (capacity, n_parts) the log marginal of each part
    found: np.ndarray  # (2, capacity) log marginals of one part in all clusters, workspace
    chosen: np.ndarray  # (capacity,) int64, indices into ``parts``, workspace
    tables: np.ndarray  # (width, n_counts) terms of log marginals by count
    cell: Any  # clusters of the model of one cell, workspace


@njit(nogil=True, cache=True)
def add_bundles(
    statistics,  # IN (n_values, width), C-ordered, of each value that occurs
    value,  # IN (n_cells,) the index of each cell's value
    item,  # IN (n_cells,)
    other,  # IN (n_cells,) index on the other side
    part,  # IN (n_others,) the part of each; negative: left out
    out,  # IN and OUT (n_items, n_parts * width), C-ordered
):
    """Add each cell to the part of its item that it belongs to.

    Flat arrays and unsigned indices, for speed: every cell is visited twice in a sweep.
    """
    width, stride = np.uint64(statistics.shape[1]), np.uint64(out.shape[1])
    added, flat = statistics.ravel(), out.ravel()
    for cell in range(value.shape[0]):
        p = part[other[cell]]
        if p >= 0:
            source = np.uint64(value[cell]) * width
            target = np.uint64(item[cell]) * stride + np.uint64(p) * width
            for w in range(width):
                flat[target + np.uint64(w)] += added[source + np.uint64(w)]


@njit(nogil=True, cache=True)
def _count(clusters, p, rows, i):
    """Return the number of cells of row i in part p."""
    return rows[i, p * clusters.parts.shape[1]]


@njit(nogil=True, cache=True)
def _put_aside(clusters, p, rows, i, sign):
    """Copy part p of row i behind the parts of the clusters; return its index there."""
    width, n_parts = clusters.parts.shape[1], clusters.marginals.shape[1]
    aside = clusters.marginals.shape[0] * n_parts + p
    for w in range(width):
        clusters.parts[aside, w] = sign * rows[i, p * width + w]
    return aside


@njit(nogil=True, cache=True)
def _with_aside(clusters, begin, end, p, aside, out):
    """Fill ``out`` with the log marginal of part p plus the copied one, in each cluster."""
    n_parts = clusters.marginals.shape[1]
    for c in range(begin, end):
        clusters.chosen[c - begin] = c * n_parts + p
    models.log_marginals_together(
        clusters.cell, clusters.tables, clusters.parts, aside, clusters.chosen, end - begin, out
    )


@njit(nogil=True, cache=True)
def _predict(clusters, begin, end, rows, i, sign, out):
    """Fill ``out`` with the change of each cluster's log marginal by adding (1) or removing row i.

    ``sign`` is 1 to add and -1 to remove.
    """
    found = clusters.found[0]
    out[: end - begin] = 0.0
    for p in range(clusters.marginals.shape[1]):
        if _count(clusters, p, rows, i) > 0.0:
            _with_aside(clusters, begin, end, p, _put_aside(clusters, p, rows, i, sign), found)
            for c in range(begin, end):
                out[c - begin] += found[c - begin] - clusters.marginals[c, p]


@njit(nogil=True, cache=True)
def _refresh(clusters, c):
    marginal = clusters.found[0]
    for p in range(clusters.marginals.shape[1]):
        aside = _put_aside(clusters, p, clusters.statistics, c, 0.0)
        _with_aside(clusters, c, c + 1, p, aside, marginal)
        clusters.marginals[c, p] = marginal[0]


@njit(nogil=True, cache=True)
def _change(clusters, c, rows, i, sign):
    marginal = clusters.found[0]
    n_parts = clusters.marginals.shape[1]
    for p in range(n_parts):
        if _count(clusters, p, rows, i) > 0.0:
            aside = _put_aside(clusters, p, rows, i, sign)
            own = clusters.parts[c * n_parts + p]
            if own[0] + clusters.parts[aside, 0] < 0.5:  # exactly empty, no rounding residue
                own[:] = 0.0
                clusters.parts[aside] = 0.0
            _with_aside(clusters, c, c + 1, p, aside, marginal)
            clusters.marginals[c, p] = marginal[0]
            own += clusters.parts[aside]


@njit(nogil=True, cache=True)
def _add_row(clusters, c, rows, i):
    _change(clusters, c, rows, i, 1.0)


@njit(nogil=True, cache=True)
def _remove_row(clusters, c, rows, i):
    _change(clusters, c, rows, i, -1.0)


@njit(nogil=True, cache=True)
def _log_predictive(clusters, c, rows, i):
    gained = clusters.found[1]
    _predict(clusters, c, c + 1, rows, i, 1.0, gained)
    return gained[0]


@njit(nogil=True, cache=True)
def _log_predictive_without(clusters, c, rows, i):
    lost = clusters.found[1]
    _predict(clusters, c, c + 1, rows, i, -1.0, lost)
    return -lost[0]


@njit(nogil=True, cache=True)
def _log_predictive_row(clusters, n_clusters, rows, i, own, out):
    _predict(clusters, np.int64(0), n_clusters, rows, i, 1.0, out)
    if own >= 0:
        out[own] = _log_predictive_without(clusters, own, rows, i)


@njit(nogil=True, cache=True)
def _log_marginal(clusters, c):
    return clusters.marginals[c].sum()


models.implement(
    BundleClusters,
    refresh=_refresh,
    add_row=_add_row,
    remove_row=_remove_row,
    log_predictive=_log_predictive,
    log_predictive_row=_log_predictive_row,
    log_predictive_without=_log_predictive_without,
    log_marginal=_log_marginal,
)
