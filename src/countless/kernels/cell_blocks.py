"""Log predictive densities of rows in clusters of cell models, computed for blocks of rows.

With few clusters, a loop over clusters does not fill SIMD registers; a loop over the rows of a
block does. When a cluster changes, its densities are invalidated for the remaining rows of the
block, and recomputed row by row.
"""

import math
from typing import NamedTuple

import numpy as np
from numba import njit

from countless.kernels.logs import NEAR_ONE, log_near_one, log_of
from countless.kernels.models_cells import (
    CONSTANT,
    CONSTANT_WITHOUT,
    LEAST_SHARE,
    MEAN,
    POWER,
    SLOPE,
    SLOPE_WITHOUT,
    CellClusters,
    count_cells,
    count_density,
    find_without,
    predict,
    refresh_cells,
)
from countless.kernels.models_cells_marginals import CATEGORY, COUNT, FIXED, NUMBER

BLOCK_ROWS = 64
# Densities of counts below this are tabulated.
MOST_COUNTS = 64


class CellBlocks(NamedTuple):
    """Clusters of cell models, and the log densities of a block of rows in them."""

    cells: CellClusters
    start: np.ndarray  # (n_columns + 1,) int64, where each column begins in the tables
    known: np.ndarray  # (capacity, n_known) log densities of categories and small counts; the last
    known_without: np.ndarray  # of a column is 0, for NaN; and the same without the row itself
    density: np.ndarray  # (capacity, BLOCK_ROWS), NaN where it is invalid
    untabled: np.ndarray  # (capacity,) bool, whether a cluster changed since its tables were filled
    values: np.ndarray  # (BLOCK_ROWS,), workspace
    rests: np.ndarray  # (BLOCK_ROWS,), workspace
    own: np.ndarray  # (BLOCK_ROWS,) int64, workspace
    places: np.ndarray  # (BLOCK_ROWS,) uint64, workspace


@njit(nogil=True, cache=True, error_model="numpy")
def _fill_tables(blocks, c):
    """Tabulate the log densities of all categories and small counts in a cluster."""
    cells, known = blocks.cells, blocks.known[c]
    statistics, prior, terms = cells.statistics[c], cells.prior, cells.terms
    for j in cells.columns:
        kind, first, begin, missing = (
            cells.kind[j],
            cells.start[j],
            blocks.start[j],
            blocks.start[j + 1] - 1,
        )
        if kind == CATEGORY:
            for place in range(begin, missing):
                known[place] = terms[first + 1 + place - begin, c] - terms[first, c]
        elif kind == COUNT:
            shape, rate = prior[first] + statistics[first + 1], prior[first + 1] + statistics[first]
            known[begin] = count_density(shape, rate, 0.0)
            for x in range(missing - begin - 1):
                step = math.log((shape + x) / ((x + 1.0) * (rate + 1.0)))
                known[begin + x + 1] = known[begin + x] + step


@njit(nogil=True, cache=True, error_model="numpy")
def _fill_own_tables(blocks, c):
    """Tabulate the log densities of cells given the other rows of their own cluster."""
    cells, known = blocks.cells, blocks.known_without[c]
    statistics, prior = cells.statistics[c], cells.prior
    for j in cells.columns:
        kind, first, begin, missing = (
            cells.kind[j],
            cells.start[j],
            blocks.start[j],
            blocks.start[j + 1] - 1,
        )
        if kind == NUMBER:
            find_without(prior[first + 1] + statistics[first], cells.terms, first, c)
        elif kind == CATEGORY:
            others = prior[first] + statistics[first] - 1.0
            for place in range(begin, missing):
                level = first + 1 + place - begin
                if statistics[level] > 0.5:
                    known[place] = math.log((prior[level] + statistics[level] - 1.0) / others)
        elif kind == COUNT and statistics[first] > 0.5:
            shape, rate = prior[first] + statistics[first + 1], prior[first + 1] + statistics[first]
            known[begin] = count_density(shape, rate - 1.0, 0.0)
            for x in range(min(missing - begin - 1, int(statistics[first + 1]))):
                step = math.log((shape - x - 1.0) / ((x + 1.0) * (rate - 1.0)))
                known[begin + x + 1] = known[begin + x] + step


@njit(nogil=True, cache=True, error_model="numpy", fastmath={"contract"})
def _add_numbers(kind, count, terms, first, c, values, own, n_rows, rests, out):
    """Add the log densities of numbers; NaN where a row's own cluster would lose precision."""
    mean, constant = terms[first + MEAN, c], terms[first + CONSTANT, c]
    slope, slope_own = terms[first + SLOPE, c], terms[first + SLOPE_WITHOUT, c]
    constant_own = terms[first + CONSTANT_WITHOUT, c]
    if kind == FIXED:
        for t in range(n_rows):
            apart = values[t] - mean
            mine = own[t] == c
            density = constant_own if mine else constant
            density -= (slope_own if mine else slope) * (apart * apart)
            out[t] += density if values[t] == values[t] else 0.0
        return
    power = terms[first + POWER, c]
    if count < 1.5:
        slope_own = math.nan
    n_far = 0
    for t in range(n_rows):
        apart = values[t] - mean
        rest = (-slope_own if own[t] == c else slope) * (apart * apart)
        rests[t] = rest
        n_far += abs(rest) > NEAR_ONE
    if n_far == 0:  # as in large clusters
        for t in range(n_rows):
            rests[t] = log_near_one(rests[t])
    else:
        for t in range(n_rows):
            rests[t] = log_of(1.0 + rests[t]) if rests[t] > LEAST_SHARE - 1.0 else math.nan
    for t in range(n_rows):
        mine = own[t] == c
        density = constant_own if mine else constant
        density += (power - 1.0 if mine else -power) * rests[t]
        out[t] += density if values[t] == values[t] else 0.0


@njit(nogil=True, cache=True, error_model="numpy")
def _add_known(known, known_without, places, own, n_clusters, n_rows, out):
    """Add tabulated log densities."""
    for c in range(n_clusters):
        of_cluster, sums = known[c], out[c]
        for t in range(n_rows):
            sums[t] += of_cluster[places[t]]
    for t in range(n_rows):
        c, place = own[t], places[t]
        if c >= 0:
            out[c, t] += known_without[c, place] - known[c, place]


@njit(nogil=True, cache=True)
def _add_large_counts(cells, first, n_tabled, values, own, n_clusters, n_rows, out):
    """Add the log densities of counts beyond the tables."""
    prior, statistics = cells.prior, cells.statistics
    for t in range(n_rows):
        if values[t] >= n_tabled:
            for c in range(n_clusters):
                shape = prior[first] + statistics[c, first + 1]
                rate = prior[first + 1] + statistics[c, first]
                if own[t] == c:
                    shape, rate = shape - values[t], rate - 1.0
                out[c, t] += count_density(shape, rate, values[t])


@njit(nogil=True, cache=True)
def fill_block(
    blocks,  # IN and OUT
    n_clusters,  # IN
    rows,  # IN (n_rows, n_columns)
    begin,  # IN, the first row of the block
    n_rows,  # IN, at most BLOCK_ROWS
    labels,  # IN (n_rows,) the cluster of each row, which is predicted from its other rows; or -1
    seated,  # IN, whether any row is assigned to a cluster
):
    """Compute the log densities of a block of rows in each of the first clusters."""
    cells, out = blocks.cells, blocks.density
    values, own, places = blocks.values, blocks.own, blocks.places
    out[n_clusters:] = math.nan
    for c in range(n_clusters):
        out[c, :n_rows] = 0.0
        if blocks.untabled[c]:
            refresh_cells(cells, c)
            _fill_tables(blocks, c)
            if seated:
                _fill_own_tables(blocks, c)
            blocks.untabled[c] = False
    for t in range(n_rows):
        own[t] = labels[begin + t]
    for j in cells.columns:
        kind, first = cells.kind[j], cells.start[j]
        for t in range(n_rows):
            values[t] = rows[begin + t, j]
        if kind in (NUMBER, FIXED):
            for c in range(n_clusters):
                count = cells.statistics[c, first]
                own_terms = (kind, count, cells.terms, first, c)
                _add_numbers(*own_terms, values, own, n_rows, blocks.rests, out[c])
            continue
        first_place, missing = blocks.start[j], blocks.start[j + 1] - 1
        n_tabled = missing - first_place
        for t in range(n_rows):
            known = values[t] < n_tabled  # False for NaN
            places[t] = first_place + int(values[t]) if known else missing
        _add_known(blocks.known, blocks.known_without, places, own, n_clusters, n_rows, out)
        if kind == COUNT:
            _add_large_counts(cells, first, n_tabled, values, own, n_clusters, n_rows, out)


@njit(nogil=True, cache=True)
def recompute_row(
    blocks,  # IN and OUT
    n_clusters,  # IN
    rows,  # IN (n_rows, n_columns)
    i,  # IN
    t,  # IN, the position of row i in the block
    own,  # IN, the cluster of row i, or -1
    found,  # workspace, (capacity,)
):
    """Recompute the invalidated log densities of a row."""
    out, n_invalid = blocks.density[:, t], 0
    for c in range(n_clusters):
        n_invalid += math.isnan(out[c])
    if 2 * n_invalid > n_clusters:
        predict(blocks.cells, np.int64(0), n_clusters, rows, i, own, found)
        out[:n_clusters] = found[:n_clusters]
        return
    for c in range(n_clusters):
        if math.isnan(out[c]):
            predict(blocks.cells, c, c + 1, rows, i, own if own == c else -1, found)
            out[c] = found[0]


@njit(nogil=True, cache=True)
def invalidate(
    blocks,  # IN and OUT
    c,  # IN
    t,  # IN
):
    """Invalidate the densities of a changed cluster, from a position in the block on."""
    blocks.untabled[c] = True
    blocks.density[c, t:] = math.nan


@njit(nogil=True, cache=True)
def apply_moves(
    blocks,  # IN and OUT
    rows,  # IN (n_rows, n_columns)
    begin,  # IN, the first row of the block
    end,  # IN, the row after the last one sampled
    labels,  # IN (n_rows,), the current clusters of rows
):
    """Update the statistics of clusters with the moves of a block of rows at once."""
    cells, own = blocks.cells, blocks.own
    for i in range(begin, end):
        old, new = own[i - begin], labels[i]
        if new != old:
            count_cells(cells, new, rows, i, 1.0)
            blocks.untabled[new] = True
            if old >= 0:
                count_cells(cells, old, rows, i, -1.0)
                blocks.untabled[old] = True
