"""Many partitions of the same rows: relabelling, co-clustering frequencies, and their consensus.

The consensus is found by local search over contingency tables against the draws. With ``n_a`` rows
in cluster a of the partition, of which ``n_ab`` are in cluster b of a draw, both the variation of
information and Binder's loss are, up to constants, sums of one function ``f`` of these counts:
``sum_a f(n_a) - 2 mean over draws of sum_ab f(n_ab)``, where ``f(x) = x log x`` or ``f(x) = x x``.
The tables are updated with every move of a block of rows.
"""

import numpy as np
from numba import njit


@njit(nogil=True, cache=True)
def number_draws(
    labels,  # IN (n_draws, n_rows), not negative
    n_names,  # IN, above every label
    numbered,  # OUT (n_draws, n_rows)
    n_clusters,  # OUT (n_draws,)
):
    """Relabel the clusters of each draw 0, 1, ... in order of first appearance."""
    number = np.empty(n_names, dtype=np.int64)
    for draw in range(labels.shape[0]):
        number[:] = -1
        count = 0
        for row in range(labels.shape[1]):
            name = labels[draw, row]
            if number[name] < 0:
                number[name] = count
                count += 1
            numbered[draw, row] = number[name]
        n_clusters[draw] = count


@njit(nogil=True, cache=True)
def count_together(
    profiles,  # IN (n_rows, n_draws), the labels of each row
    others,  # IN (n_others, n_draws)
    share,  # OUT (n_rows, n_others)
):
    """Compute the share of draws in which two rows have the same label, for every pair."""
    n_draws = profiles.shape[1]
    for row in range(profiles.shape[0]):
        for other in range(others.shape[0]):
            together = 0
            for draw in range(n_draws):
                together += profiles[row, draw] == others[other, draw]
            share[row, other] = together / n_draws


@njit(nogil=True, cache=True)
def mix_profiles(
    draws,  # IN (n_draws, n_rows)
    factors,  # IN (n_draws,), random odd numbers, uint64
    mixed,  # OUT (n_rows,), uint64
):
    """Hash the labels of each row in all draws to one number."""
    mixed[:] = 0
    for draw in range(draws.shape[0]):
        for row in range(draws.shape[1]):
            mixed[row] += factors[draw] * np.uint64(draws[draw, row])


@njit(nogil=True, cache=True)
def are_alike(
    draws,  # IN (n_draws, n_rows)
    model,  # IN (n_rows,), another row for each row
):
    """Return whether every row has the same labels as its model in all draws."""
    for draw in range(draws.shape[0]):
        for row in range(draws.shape[1]):
            if draws[draw, row] != draws[draw, model[row]]:
                return False
    return True


@njit(nogil=True, cache=True)
def fill_tables(
    labels,  # IN (n_items,), not negative
    profiles,  # IN (n_items, n_draws), the labels of each item in the draws
    offsets,  # IN (n_draws,), where the cells of each draw begin
    weight,  # IN (n_items,), number of rows that an item represents
    sizes,  # OUT (capacity,), rows of each cluster
    cells,  # OUT (n_cells, capacity), rows that a cluster of a draw shares with a cluster
):
    """Count the rows of each cluster, and those it shares with each cluster of each draw."""
    sizes[:] = 0
    cells[:] = 0
    for item in range(labels.shape[0]):
        cluster = labels[item]
        sizes[cluster] += weight[item]
        for draw in range(offsets.shape[0]):
            cells[offsets[draw] + profiles[item, draw], cluster] += weight[item]


@njit(nogil=True, cache=True)
def sum_tables(
    sizes,  # IN (capacity,)
    cells,  # IN (n_cells, capacity)
    share,  # IN (n_cells,), twice the weight of the draw of each cell
    f,  # IN (n_rows + 1,)
):
    """Return the loss of the contingency tables."""
    loss = 0.0
    for cluster in range(sizes.shape[0]):
        loss += f[sizes[cluster]]
    for cell in range(cells.shape[0]):
        inside = 0.0
        for cluster in range(sizes.shape[0]):
            inside += f[cells[cell, cluster]]
        loss -= share[cell] * inside
    return loss


@njit(nogil=True, cache=True)
def move_blocks(
    members,  # IN (n_members,), items sorted by block
    starts,  # IN (n_blocks + 1,), where blocks begin in ``members``
    profiles,  # IN (n_items, n_draws)
    offsets,  # IN (n_draws,)
    weight,  # IN (n_items,)
    share,  # IN (n_cells,)
    f,  # IN (n_rows + 1,)
    least,  # IN, smaller gains are rounding errors
    labels,  # OUT (n_items,), updated; -1: not assigned yet
    sizes,  # OUT (capacity,), updated
    cells,  # OUT (n_cells, capacity), updated
    margin,  # OUT (n_blocks,), how much more the second best cluster would cost
):
    """Move each block of items to the cluster, existing or new, where the loss is least.

    Returns the decrease of the loss; items that had no cluster before do not count.
    """
    part = np.zeros(cells.shape[0], dtype=np.int64)  # rows of the block in each cell
    touched = np.empty(cells.shape[0], dtype=np.int64)  # cells with any of these rows
    cost = np.empty(sizes.shape[0])
    looked_at = 1
    for cluster in range(sizes.shape[0]):
        if sizes[cluster] > 0:
            looked_at = min(cluster + 2, sizes.shape[0])
    gained = 0.0
    for block in range(starts.shape[0] - 1):
        n_touched, n_rows = 0, 0
        for item in members[starts[block] : starts[block + 1]]:
            n_rows += weight[item]
            for draw in range(offsets.shape[0]):
                cell = offsets[draw] + profiles[item, draw]
                if part[cell] == 0:
                    touched[n_touched] = cell
                    n_touched += 1
                part[cell] += weight[item]
        own = labels[members[starts[block]]]
        if own >= 0:
            sizes[own] -= n_rows
            for cell in touched[:n_touched]:
                cells[cell, own] -= part[cell]
        for cluster in range(looked_at):
            cost[cluster] = f[sizes[cluster] + n_rows] - f[sizes[cluster]]
        for cell in touched[:n_touched]:
            more = part[cell]
            for cluster in range(looked_at):
                there = cells[cell, cluster]
                cost[cluster] -= share[cell] * (f[there + more] - f[there])
        best, second = 0, np.inf
        for cluster in range(1, looked_at):
            if cost[cluster] < cost[best]:
                best, second = cluster, cost[best]
            else:
                second = min(second, cost[cluster])
        margin[block] = second - cost[best]
        if own >= 0:
            if cost[best] < cost[own] - least:
                gained += cost[own] - cost[best]
            else:
                best = own
        sizes[best] += n_rows
        for cell in touched[:n_touched]:
            cells[cell, best] += part[cell]
            part[cell] = 0
        if best != own:
            for item in members[starts[block] : starts[block + 1]]:
                labels[item] = best
            looked_at = min(max(looked_at, best + 2), sizes.shape[0])
    return gained
