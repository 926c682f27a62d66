"""Columns of a table given partitions of its rows: marginals, views and hyperparameters.

``clusters`` is a ``CellClusters`` for all columns, used for its prior and as workspace: the
statistics of one column under one partition fill that column's range.
"""

import math
from typing import NamedTuple

import numpy as np
from numba import njit

from countless.kernels.gamma import log_factorial
from countless.kernels.models import log_predictive_without
from countless.kernels.models_cells_marginals import (
    CATEGORY,
    COUNT,
    FIXED,
    NUMBER,
    log_marginal_cell,
)

_LOG_2PI = math.log(2.0 * math.pi)
_FEW_ROWS = 256


class HyperTable(NamedTuple):
    """Hyperparameters of all columns and their priors; see `countless.models.hyper`."""

    value: np.ndarray  # (n_hyper,)
    center: np.ndarray  # (n_hyper,)
    spread: np.ndarray  # (n_hyper,)
    inverse_gamma: np.ndarray  # (n_hyper, 2)
    low: np.ndarray  # (n_hyper,), lower bounds


@njit(nogil=True, cache=True)
def _count_column(kind, first, values, labels, statistics):
    """Sum the statistics of one column under one partition into cleared statistics."""
    if kind == CATEGORY:
        for i in range(values.shape[0]):
            if not math.isnan(values[i]):
                c = labels[i]
                statistics[c, first] += 1.0
                statistics[c, first + 1 + int(values[i])] += 1.0
    else:
        for i in range(values.shape[0]):
            value = float(values[i])
            if not math.isnan(value):
                c = labels[i]
                statistics[c, first] += 1.0
                statistics[c, first + 1] += value
                square = log_factorial(value) if kind == COUNT else value * value
                statistics[c, first + 2] += square


@njit(nogil=True, cache=True)
def count_columns(
    kind,  # IN (n_columns,)
    start,  # IN (n_columns + 1,)
    values,  # IN (n_columns, n_rows)
    labels,  # IN (n_rows,)
    statistics,  # IN and OUT (n_clusters, width)
):
    """Sum the statistics of columns under one partition, without the cached terms of samplers."""
    # In chunks of rows, which stay in the CPU cache whatever the memory layout of the table.
    for begin in range(0, labels.shape[0], _FEW_ROWS):
        some = labels[begin : begin + _FEW_ROWS]
        for j in range(kind.shape[0]):
            own = values[j, begin : begin + _FEW_ROWS]
            _count_column(kind[j], start[j], own, some, statistics)


@njit(nogil=True, cache=True)
def _log_marginal_of_column(clusters, j, n_clusters):
    total = 0.0
    for c in range(n_clusters):
        total += log_marginal_cell(clusters, c, j)
    return total


@njit(nogil=True, cache=True)
def column_marginals(
    clusters,  # IN and OUT, workspace
    values,  # IN (n_columns, n_rows)
    j,  # IN
    labels,  # IN (n_views, n_rows)
    n_clusters,  # IN (n_views,)
    out,  # OUT (n_views,)
):
    """Compute the log marginal likelihood of column ``j`` under each partition."""
    first, last = clusters.start[j], clusters.start[j + 1]
    for v in range(labels.shape[0]):
        clusters.statistics[: n_clusters[v], first:last] = 0.0
        _count_column(clusters.kind[j], first, values[j], labels[v], clusters.statistics)
        out[v] = _log_marginal_of_column(clusters, j, n_clusters[v])


@njit(nogil=True, cache=True)
def draw_log(weights, random):
    """Sample an index in proportion to exp(weights); return it and its log probability."""
    highest = weights.max()
    total = 0.0
    for v in range(weights.shape[0]):
        total += math.exp(weights[v] - highest)
    mark = random.random() * total
    chosen = 0
    below = math.exp(weights[0] - highest)
    while below <= mark and chosen < weights.shape[0] - 1:
        chosen += 1
        below += math.exp(weights[chosen] - highest)
    while weights[chosen] == -math.inf:  # rounding may have gone past the last index
        chosen -= 1
    return chosen, weights[chosen] - highest - math.log(total)


@njit(nogil=True, cache=True)
def move_columns(
    clusters,  # IN and OUT, workspace
    values,  # IN (n_columns, n_rows)
    order,  # IN (n_columns,), the columns in the order in which they move
    labels,  # IN (n_views, n_rows)
    n_clusters,  # IN (n_views,)
    join,  # IN (n_columns,), log prior weights of joining a view, by its other columns
    random,  # IN, a numpy Generator
    view_of,  # IN and OUT (n_columns,)
):
    """Resample the view of each column in turn, given all others; return how many moved.

    A column that is alone keeps its view: another move removes such a view.
    """
    n_views = labels.shape[0]
    sizes = np.zeros(n_views, dtype=np.int64)
    for j in range(view_of.shape[0]):
        sizes[view_of[j]] += 1
    weights = np.empty(n_views)
    n_moved = 0
    for j in order:
        own = view_of[j]
        if sizes[own] == 1:
            continue
        column_marginals(clusters, values, j, labels, n_clusters, weights)
        for v in range(n_views):
            weights[v] += join[sizes[v] - (v == own)]
        new, _ = draw_log(weights, random)
        if new != own:
            sizes[own] -= 1
            sizes[new] += 1
            view_of[j] = new
            n_moved += 1
    return n_moved


@njit(nogil=True, cache=True)
def set_prior(
    kind,  # IN
    origin,  # IN, subtracted from values by the kernels
    hyper,  # IN (n_hyper of the column,) as in ``models/families.py``
    prior,  # OUT (width,), the range of the column
):
    """Convert the hyperparameters of one column to its prior."""
    if kind == NUMBER:
        prior[0] = hyper[0] - origin
        for place in range(1, 4):
            prior[place] = math.exp(hyper[place])
    elif kind == FIXED:
        prior[0] = hyper[0] - origin
        prior[1] = math.exp(hyper[1] - hyper[2])
        prior[2] = math.exp(hyper[1])
    elif kind == COUNT:
        prior[0] = math.exp(hyper[0])
        prior[1] = math.exp(hyper[1])
    else:
        total = 0.0
        for level in range(hyper.shape[0]):
            prior[1 + level] = math.exp(hyper[level])
            total += prior[1 + level]
        prior[0] = total


@njit(nogil=True, cache=True)
def _log_hyperprior(value, center, spread, shape, scale):
    if math.isnan(shape):
        return -0.5 * ((value - center) / spread) ** 2 - math.log(spread) - 0.5 * _LOG_2PI
    return shape * math.log(scale) - math.lgamma(shape) - shape * value - scale * math.exp(-value)


@njit(nogil=True, cache=True)
def _log_joint_of_hyper(clusters, j, n_clusters, origin, table, h, value, own, places):
    """Return the log joint density of a column and hyperparameter ``h`` at a value."""
    if value < table.low[h]:
        return -math.inf
    table.value[h] = value
    for place in range(places.shape[0]):
        own[place] = table.value[places[place]]
    first = clusters.start[j]
    set_prior(clusters.kind[j], origin, own, clusters.prior[first : clusters.start[j + 1]])
    shape, scale = table.inverse_gamma[h, 0], table.inverse_gamma[h, 1]
    density = _log_hyperprior(value, table.center[h], table.spread[h], shape, scale)
    return density + _log_marginal_of_column(clusters, j, n_clusters)


@njit(nogil=True, cache=True)
def move_hypers(
    clusters,  # IN and OUT: its prior is updated with the hyperparameters
    values,  # IN (n_columns, n_rows)
    order,  # IN, the columns whose hyperparameters are updated
    labels,  # IN (n_views, n_rows)
    n_clusters,  # IN (n_views,)
    view_of,  # IN (n_columns,)
    origin,  # IN (n_columns,)
    starts,  # IN (n_columns + 1,), where the places of each column begin
    places,  # IN (n_places,), indices of the hyperparameters of each column's prior
    free,  # IN (n_free,), the hyperparameters that are not fixed
    free_starts,  # IN (n_columns + 1,), where those of each column begin
    table,  # IN and OUT, a HyperTable
    random,  # IN, a numpy Generator
):
    """Update each free hyperparameter of some columns once, by slice sampling."""
    for j in order:
        first, last = clusters.start[j], clusters.start[j + 1]
        v = view_of[j]
        clusters.statistics[: n_clusters[v], first:last] = 0.0
        _count_column(clusters.kind[j], first, values[j], labels[v], clusters.statistics)
        own_places = places[starts[j] : starts[j + 1]]
        own = np.empty(own_places.shape[0])
        for which in range(free_starts[j], free_starts[j + 1]):
            h = free[which]
            begin, width = table.value[h], table.spread[h]
            state = (clusters, j, n_clusters[v], origin[j], table, h)
            level = _log_joint_of_hyper(*state, begin, own, own_places)
            level += math.log(1.0 - random.random())
            low = begin - width * random.random()
            high = low + width
            # A width below the floating-point spacing of the value cannot extend the interval.
            while low - width < low:
                if not _log_joint_of_hyper(*state, low, own, own_places) > level:
                    break
                low -= width
            while (
                high < high + width and _log_joint_of_hyper(*state, high, own, own_places) > level
            ):
                high += width
            value = low + (high - low) * random.random()
            while not _log_joint_of_hyper(*state, value, own, own_places) >= level:
                if value < begin:
                    low = value
                else:
                    high = value
                value = low + (high - low) * random.random()
                if not low < value < high:  # the interval has shrunk to nothing
                    _log_joint_of_hyper(*state, begin, own, own_places)
                    break


@njit(nogil=True, cache=True)
def add_surprises(
    clusters,  # IN, the clusters of a view, with one column in use
    rows,  # IN (n_rows, n_columns of the view)
    labels,  # IN (n_rows,)
    out,  # IN and OUT (n_rows,)
):
    """Add minus the log density of each cell given the other cells of its column and cluster."""
    for i in range(rows.shape[0]):
        out[i] -= log_predictive_without(clusters, labels[i], rows, i)
