"""Giving rows of cells to clusters in their order, a block of rows at a time.

The same draws as ``gibbs.sweep``, of which only those rows cost much whose clusters have changed.
For proposals clusters may lag: the rows of a block are foretold by those before it, and a cluster
that opens ends the block. Blocks are then a share of the rows that were seated since the last one
opened, or of all rows where each has a cluster already.
"""

import math

import numpy as np
from numba import njit

from countless.kernels.arrays import borrowed
from countless.kernels.cell_blocks import BLOCK_ROWS, find_again, find_block, follow, lose
from countless.kernels.gibbs import draw_slot, look_at
from countless.kernels.models_cells import add_cells, remove_cells

# A block of lagging clusters is this part of the rows since one opened.
_LAGGING = 16
_STAYS, _LOST = -1, -2


@njit(nogil=True, cache=True)
def _draw_rows(
    density,  # IN (room, n_rows of the block)
    i,  # IN, the row to begin with
    begin,  # IN, the first row of the block
    end,  # IN, the row after the last one of the block
    lags,  # IN
    slots,  # IN: how many there are, how many have rows, and the lowest that has none
    sizes,  # IN and OUT (room,)
    labels,  # IN and OUT (n_rows,)
    target,  # IN
    join,  # IN
    opening,  # IN
    random,  # IN
    weights,  # a place to work, (room,)
    sums,  # a place to work, (room,)
):
    """Draw rows until one changes a cluster.

    Returns the row after the last one drawn; the slot that it had and the one that it went to, or
    what else there is to say; and the log probability of what was chosen.
    """
    n_slots, n_clusters, empty = slots
    may_open, log_chosen = opening.shape[0] > 0, 0.0
    while i < end:
        own = labels[i]
        alone = own >= 0 and sizes[own] == 1
        opened = own if alone else empty
        reach = max(n_slots, opened + 1) if may_open else n_slots
        n_lost = 0
        for c in range(reach):
            weights[c] = density[c, i - begin]
            n_lost += math.isnan(weights[c])
        if n_lost > 0:
            return i, own, _LOST, log_chosen
        forced = target[i] if target.shape[0] > 0 else -1
        log_opening = opening[n_clusters - alone] if may_open else -math.inf
        asked = lags or own < 0 or not may_open
        new, log_total, _ = draw_slot(
            weights, reach, sizes, own, opened, join, log_opening, forced, asked, random, sums
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
    lags,  # IN, whether clusters have the rows of a block at its end only
    sizes,  # IN and OUT (room,) int64, how many rows each slot has
    rows,  # IN (n_rows, n_columns)
    i,  # IN, the row to begin with
    labels,  # IN and OUT (n_rows,) int32, the slot of each row; negative where it has none yet
    target,  # IN (n_rows,) int32, the slot that each row must go to; empty where chance decides
    join,  # IN (n,) log weights of joining a cluster by its size
    opening,  # IN (n,) log weights of a new one by how many there are; empty where none may open
    random,  # IN, a numpy Generator
):
    """Draw the slot of each row in turn.

    Returns the row at which slots ran out, or the number of rows, and the log probability of what
    was chosen.
    """
    blocks = borrowed(blocks)
    cells, density, room, may_open = (
        blocks.cells,
        blocks.density,
        sizes.shape[0],
        opening.shape[0] > 0,
    )
    weights, sums = np.empty(room), np.empty(room)
    slots, log_chosen, since = look_at(sizes), 0.0, i
    while i < rows.shape[0] and (slots[2] < room or not may_open):
        begin, n_rows = i, min(BLOCK_ROWS, rows.shape[0] - i)
        if lags:
            n_informed = rows.shape[0] if labels[i] >= 0 else i - since
            n_rows = min(n_rows, max(1, n_informed // _LAGGING))
        end = begin + n_rows
        reach = min(max(slots[0], slots[2] + 1), room)
        find_block(blocks, reach, rows, begin, n_rows, labels, not lags or labels[i] >= 0)
        while i < end and (slots[2] < room or not may_open):
            state = (i, begin, end, lags, slots, sizes, labels)
            i, own, new, chosen = _draw_rows(
                density, *state, target, join, opening, random, weights, sums
            )
            log_chosen += chosen
            if new == _LOST:
                reach = min(max(slots[0], slots[2] + 1), room)
                find_again(blocks, reach, rows, i, i - begin, own, weights)
            elif new != _STAYS:
                slots = look_at(sizes)
                if lags:
                    since = end = i
                else:
                    add_cells(cells, new, rows, i - 1)
                    lose(blocks, new, i - begin)
                    if own >= 0:
                        remove_cells(cells, own, rows, i - 1)
                        lose(blocks, own, i - begin)
        if lags:
            follow(blocks, rows, begin, i, labels)
    return i, log_chosen
