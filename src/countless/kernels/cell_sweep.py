"""Gibbs sweeps over rows of cells in row order, a block of rows at a time.

Samples as ``gibbs.sweep`` does; only rows whose clusters have changed are expensive. In proposals
the clusters may lag: the rows of a block are predicted from the rows before the block, and a new
cluster ends the block. The block length is then a fraction of the rows assigned since a cluster was
last opened, or of all rows where every row has a cluster already.
"""

import math

import numpy as np
from numba import njit

from countless.kernels.arrays import borrowed
from countless.kernels.cell_blocks import (
    BLOCK_ROWS,
    apply_moves,
    fill_block,
    invalidate,
    recompute_row,
)
from countless.kernels.gibbs import count_slots, draw_slot
from countless.kernels.models_cells import add_cells, remove_cells

# With lagging clusters a block has at most one in this many of the rows since one opened.
_LAGGING = 16
_STAYS, _INVALID = -1, -2


@njit(nogil=True, cache=True)
def _draw_rows(
    density,  # IN (capacity, n_rows of the block)
    i,  # IN, first row to visit
    begin,  # IN, the first row of the block
    end,  # IN, the row after the last one of the block
    lags,  # IN
    slots,  # IN: number of slots in use, number of clusters, and the lowest empty slot
    sizes,  # IN and OUT (capacity,)
    labels,  # IN and OUT (n_rows,)
    target,  # IN
    join,  # IN
    opening,  # IN
    random,  # IN
    weights,  # workspace, (capacity,)
    sums,  # workspace, (capacity,)
):
    """Sample slots of rows until one changes a cluster.

    Returns the row after the last one sampled; its previous and its new slot, or a status code in
    their place; and the log probability of the choices.
    """
    n_slots, n_clusters, empty = slots
    may_open, log_chosen = opening.shape[0] > 0, 0.0
    while i < end:
        own = labels[i]
        alone = own >= 0 and sizes[own] == 1
        opened = own if alone else empty
        reach = max(n_slots, opened + 1) if may_open else n_slots
        n_invalid = 0
        for c in range(reach):
            weights[c] = density[c, i - begin]
            n_invalid += math.isnan(weights[c])
        if n_invalid > 0:
            return i, own, _INVALID, log_chosen
        forced = target[i] if target.shape[0] > 0 else -1
        log_opening = opening[n_clusters - alone] if may_open else -math.inf
        needs_total = lags or own < 0 or not may_open
        new, log_total, _ = draw_slot(
            weights, reach, sizes, own, opened, join, log_opening, forced, needs_total, random, sums
        )
        log_chosen += weights[new] - log_total
        i += 1
        if new != own:
            labels[i - 1] = new
            sizes[new] += 1
            if own >= 0:
                sizes[own] -= 1
            if not lags or sizes[new] == 1:
                return i, own, new, log_chosen
    return i, _STAYS, _STAYS, log_chosen


@njit(nogil=True, cache=True)
def sweep_cells(
    blocks,  # IN and OUT
    lags,  # IN, whether clusters are updated only at the end of a block
    sizes,  # IN and OUT (capacity,) int64, number of rows in each slot
    rows,  # IN (n_rows, n_columns)
    i,  # IN, first row to visit
    labels,  # IN and OUT (n_rows,) int32, slot of each row; negative: not assigned yet
    target,  # IN (n_rows,) int32, forced slot of each row; empty: slots are sampled
    join,  # IN (n,) log prior weights of joining a cluster, by its size
    opening,  # IN (n,) log prior weights of a new cluster, by cluster count; empty: none may open
    random,  # IN, a numpy Generator
):
    """Sample the slot of each row in turn.

    Returns the row at which no empty slot was left, or the number of rows; and the log probability
    of the choices.
    """
    blocks = borrowed(blocks)
    cells, density, capacity, may_open = (
        blocks.cells,
        blocks.density,
        sizes.shape[0],
        opening.shape[0] > 0,
    )
    weights, sums = np.empty(capacity), np.empty(capacity)
    slots, log_chosen, since = count_slots(sizes), 0.0, i
    while i < rows.shape[0] and (slots[2] < capacity or not may_open):
        begin, n_rows = i, min(BLOCK_ROWS, rows.shape[0] - i)
        if lags:
            n_allocated = rows.shape[0] if labels[i] >= 0 else i - since
            n_rows = min(n_rows, max(1, n_allocated // _LAGGING))
        end = begin + n_rows
        reach = min(max(slots[0], slots[2] + 1), capacity)
        fill_block(blocks, reach, rows, begin, n_rows, labels, not lags or labels[i] >= 0)
        while i < end and (slots[2] < capacity or not may_open):
            state = (i, begin, end, lags, slots, sizes, labels)
            i, own, new, chosen = _draw_rows(
                density, *state, target, join, opening, random, weights, sums
            )
            log_chosen += chosen
            if new == _INVALID:
                reach = min(max(slots[0], slots[2] + 1), capacity)
                recompute_row(blocks, reach, rows, i, i - begin, own, weights)
            elif new != _STAYS:
                slots = count_slots(sizes)
                if lags:
                    since = end = i
                else:
                    add_cells(cells, new, rows, i - 1)
                    invalidate(blocks, new, i - begin)
                    if own >= 0:
                        remove_cells(cells, own, rows, i - 1)
                        invalidate(blocks, own, i - begin)
        if lags:
            apply_moves(blocks, rows, begin, i, labels)
    return i, log_chosen
