"""Local search moves of the hard HDP: splits and merges of global clusters, and moves of items.

A local cluster, or cell, is the rows of one group in one global cluster ("global" for short).
"""

import numpy as np
from numba import njit

from countless.kernels.path import find_partner, replace_pair

# Where all rows of a cell go when its global cluster is split; 0: to both halves.
NEAR, FAR = 1, 2


@njit(nogil=True, cache=True)
def find_movers(
    distance, group, labels, weight, cell_rows, local_price, global_price, tolerance, moves
):  # fmt: skip
    """Mark the rows of a block that would gain by leaving their global. moves is # OUT."""
    join = weight / (weight + 1.0)
    for r in range(distance.shape[0]):
        j, p = group[r], labels[r]
        moves[r] = False
        if weight[p] <= 1.0:
            leaving = global_price
        else:
            leaving = distance[r, p] * weight[p] / (weight[p] - 1.0)
        if cell_rows[j, p] == 1:
            leaving += local_price
        leaving -= tolerance
        if local_price + global_price < leaving:
            moves[r] = True
            continue
        for q in range(distance.shape[1]):
            joining = distance[r, q] * join[q]
            if cell_rows[j, q] == 0:
                joining += local_price
            if joining < leaving and q != p:
                moves[r] = True
                break


@njit(nogil=True, cache=True)
def move_items(
    item_weight, item_mean, item_group, local_price, global_price, tolerance,
    labels, cell_items, n_items, weight, mean,
):  # fmt: skip
    """Move items (rows, local clusters or parts of them) to other globals, one at a time.

    Changes of the cost are exact: leaving p saves ``W_p w / (W_p - w)`` times the squared distance,
    and joining q costs ``W_q w / (W_q + w)`` times it. A local or global cluster that becomes empty
    saves its price, and a new one costs it. ``cell_items[j, p]`` counts the items of group j at p,
    and ``n_items[p]`` all of them; a global without items can be opened.

    Returns the number of moves; labels, cell_items, n_items, weight, mean are # OUT.
    """
    g, d = mean.shape
    n_moved = 0
    for i in range(len(labels)):
        j, p, w = item_group[i], labels[i], item_weight[i]
        leaving, rest = global_price, weight[p] - w
        if n_items[p] > 1:
            leaving = 0.0
            for f in range(d):
                leaving += (item_mean[i, f] - mean[p, f]) ** 2
            leaving *= weight[p] * w / rest
        if cell_items[j, p] == 1:
            leaving += local_price
        best, least, free = -1, leaving - tolerance, -1
        for q in range(g):
            if n_items[q] == 0:
                if free < 0:
                    free = q
                continue
            if q == p:
                continue
            joining = 0.0 if cell_items[j, q] > 0 else local_price
            share = weight[q] * w / (weight[q] + w)
            for f in range(d):
                if joining >= least:
                    break
                joining += share * (item_mean[i, f] - mean[q, f]) ** 2
            if joining < least:
                best, least = q, joining
        if free >= 0 and local_price + global_price < least:
            best = free
        if best < 0:
            continue
        n_moved += 1
        n_items[p] -= 1
        cell_items[j, p] -= 1
        for f in range(d):
            if n_items[p] > 0:
                mean[p, f] += (mean[p, f] - item_mean[i, f]) * w / rest
            if n_items[best] == 0:
                mean[best, f] = item_mean[i, f]
            else:
                mean[best, f] += (item_mean[i, f] - mean[best, f]) * w / (weight[best] + w)
        weight[p] = rest if n_items[p] > 0 else 0.0
        weight[best] = weight[best] + w if n_items[best] > 0 else w
        n_items[best] += 1
        cell_items[j, best] += 1
        labels[i] = best
    return n_moved


@njit(nogil=True, cache=True)
def count_cells(group, labels, cell_rows, place):
    """Count the rows of each group at each global, and number the globals that have any.

    Returns the number of these. cell_rows (zeros on input), place (-1: no rows) are # OUT.
    """
    place[:] = -1
    for i in range(len(labels)):
        cell_rows[group[i], labels[i]] += 1
        place[labels[i]] = 0
    n_used = 0
    for p in range(len(place)):
        if place[p] == 0:
            place[p] = n_used
            n_used += 1
    return n_used


@njit(nogil=True, cache=True)
def find_cells(group, labels, cell_rows):
    """Number the pairs of a group and a global that have rows, by group and then by global.

    Returns the group and the global of each cell, and the cell of each row.
    """
    n_groups, g = cell_rows.shape
    number = np.empty((n_groups, g), dtype=np.int32)
    n_cells = 0
    for j in range(n_groups):
        for p in range(g):
            number[j, p] = n_cells
            n_cells += cell_rows[j, p] > 0
    cell_group = np.empty(n_cells, dtype=np.int32)
    cell_cluster = np.empty(n_cells, dtype=np.int32)
    cell = np.empty(len(labels), dtype=np.int32)
    for i in range(len(labels)):
        c = number[group[i], labels[i]]
        cell[i], cell_group[c], cell_cluster[c] = c, group[i], labels[i]
    return cell_group, cell_cluster, cell


@njit(nogil=True, cache=True)
def _merge_costs(p, alive, weight, mean, used, local_price, global_price, cost):
    """Compute the change of cost by merging a global with each remaining one. cost is # OUT."""
    cost[:alive] = 0.0  # first the number of groups that use both
    for j in range(used.shape[0]):
        if used[j, p]:
            for q in range(alive):
                cost[q] += used[j, q]
    for q in range(alive):
        apart = 0.0
        for f in range(mean.shape[1]):
            apart += (mean[p, f] - mean[q, f]) ** 2
        share = weight[p] * weight[q] / (weight[p] + weight[q])
        cost[q] = share * apart - global_price - local_price * cost[q]
    cost[p] = np.inf


@njit(nogil=True, cache=True)
def merge_globals(weight, mean, used, local_price, global_price, tolerance, place):
    """Merge pairs of globals, the most profitable first, while the cost decreases.

    A merge saves the price of a global, and that of a local cluster for each group that uses both
    (``used[j, p]``). Returns the number of globals left; weight, mean and used are overwritten.

    place (the new index of each global) is # OUT.
    """
    alive = len(weight)
    matrix, cost = np.empty((alive, alive)), np.empty(alive)
    partner, lowest = np.empty(alive, dtype=np.int64), np.empty(alive)
    for p in range(alive):
        place[p] = p
        _merge_costs(p, alive, weight, mean, used, local_price, global_price, matrix[p])
        find_partner(matrix, p, alive, partner, lowest)
    while alive > 1:
        cheapest = lowest[:alive].argmin()
        if not lowest[cheapest] < -tolerance:
            break
        a, b = min(cheapest, partner[cheapest]), max(cheapest, partner[cheapest])
        last = alive - 1
        share = weight[b] / (weight[a] + weight[b])
        for f in range(mean.shape[1]):
            mean[a, f] += (mean[b, f] - mean[a, f]) * share
        weight[a] += weight[b]
        used[:, a] |= used[:, b]
        _merge_costs(a, alive, weight, mean, used, local_price, global_price, cost)
        replace_pair(matrix, partner, lowest, a, b, cost, alive)
        weight[b], mean[b], used[:, b] = weight[last], mean[last], used[:, last]
        for p in range(len(place)):
            if place[p] == b:
                place[p] = a
            elif place[p] == last:
                place[p] = b
        alive = last
    return alive


@njit(nogil=True, cache=True)
def sum_rows(values, labels, weight, total):
    """Sum rows by their labels. weight, total (added to) are # OUT."""
    for i in range(len(labels)):
        c = labels[i]
        weight[c] += 1.0
        for f in range(values.shape[1]):
            total[c, f] += values[i, f]


@njit(nogil=True, cache=True)
def halve_rows(
    values, labels, price, n_passes, side, near_weight, near_total, far_weight, far_total, gain
):  # fmt: skip
    """Halve each cluster that costs more than a price, by 2-means from its principal direction.

    Where it costs less, or a half would be empty, the gain is minus infinity.

    side (True in the far half), near and far weights and totals (zeros on input), gain are # OUT.
    """
    k, d = near_total.shape
    weight, total = np.zeros(k), np.zeros((k, d))
    sum_rows(values, labels, weight, total)
    mean = total / weight.reshape(-1, 1)
    cost, reach, farthest = np.zeros(k), np.full(k, -1.0), np.zeros(k, dtype=np.int64)
    for i in range(len(labels)):
        c, away = labels[i], 0.0
        for f in range(d):
            away += (values[i, f] - mean[c, f]) ** 2
        cost[c] += away
        if away > reach[c]:
            farthest[c], reach[c] = i, away
    # The direction to the farthest row starts one step of power iteration, which approximates the
    # principal direction.
    point, normal, threshold = np.zeros((k, d)), np.zeros((k, d)), np.zeros(k)
    for c in range(k):
        if cost[c] > price:
            for f in range(d):
                point[c, f] = (values[farthest[c], f] - mean[c, f]) / np.sqrt(reach[c])
    for i in range(len(labels)):
        c, along = labels[i], 0.0
        for f in range(d):
            along += (values[i, f] - mean[c, f]) * point[c, f]
        for f in range(d):
            normal[c, f] += along * (values[i, f] - mean[c, f])
    for c in range(k):
        for f in range(d):
            threshold[c] += normal[c, f] * mean[c, f]
    for _ in range(n_passes + 1):
        far_weight[:] = 0.0
        far_total[:] = 0.0
        for i in range(len(labels)):
            c = labels[i]
            excess = -threshold[c]
            for f in range(d):
                excess += normal[c, f] * values[i, f]
            side[i] = excess > 0.0
            if side[i]:
                far_weight[c] += 1.0
                for f in range(d):
                    far_total[c, f] += values[i, f]
        for c in range(k):
            # Rows go to the nearer half mean; the difference of squared distances is linear.
            near_weight[c] = weight[c] - far_weight[c]
            gain[c], threshold[c] = -np.inf, 0.0
            apart = 0.0
            for f in range(d):
                near_total[c, f] = total[c, f] - far_total[c, f]
                normal[c, f] = 0.0
                if near_weight[c] > 0.0 and far_weight[c] > 0.0:
                    near, far = near_total[c, f] / near_weight[c], far_total[c, f] / far_weight[c]
                    normal[c, f] = far - near
                    threshold[c] += 0.5 * (far - near) * (far + near)
                    apart += (far - near) ** 2
            if near_weight[c] > 0.0 and far_weight[c] > 0.0:
                gain[c] = apart * near_weight[c] * far_weight[c] / weight[c]


@njit(nogil=True, cache=True)
def split_cells(
    cell_weight, cell_total, cell_cluster, cluster, gain, near_weight, near_total, far_weight,
    far_total, local_price, global_price, tolerance, goes,
):  # fmt: skip
    """Split the globals that gain by it; each of their cells may go to one half as a whole.

    ``cell_weight[2 * c]`` and ``cell_total[2 * c]`` are the sums of cell c in the near half of its
    global, and those at ``2 * c + 1`` its sums in the far half. A cell with rows in both halves
    either pays for one more local cluster, or goes as a whole to the cheaper half. ``gain`` is the
    decrease of the rows' cost by splitting each ``cluster``; ``near`` and ``far`` are its halves.

    Returns the number of new globals; goes (the global of each half of a cell) is # OUT.
    """
    n_globals, d = cell_cluster.max() + 1, near_total.shape[1]
    place = np.full(n_globals, -1)
    left = gain - global_price  # the gain net of the prices of new globals and cells
    for s in range(len(cluster)):
        if left[s] > 0.0:
            place[cluster[s]] = s
    whole = np.zeros(len(cell_cluster), dtype=np.int8)
    for c in range(len(cell_cluster)):
        s = place[cell_cluster[c]]
        if s < 0:
            continue
        # The difference of squared distances is linear, so that sums of rows suffice.
        to_near, to_far = 0.0, 0.0
        for f in range(d):
            near, far = near_total[s, f] / near_weight[s], far_total[s, f] / far_weight[s]
            step, middle = near - far, 0.5 * (near + far)
            to_near += 2.0 * step * (cell_weight[2 * c + 1] * middle - cell_total[2 * c + 1, f])
            to_far += 2.0 * step * (cell_total[2 * c, f] - cell_weight[2 * c] * middle)
        least = min(to_near, to_far)
        if least < local_price:
            whole[c] = NEAR if to_near <= to_far else FAR
        left[s] -= max(min(least, local_price), 0.0)
    n_new = 0
    for p in range(n_globals):  # from here on the index of the new global
        s = place[p]
        place[p] = -1
        if s >= 0 and left[s] > tolerance:
            place[p] = n_globals + n_new
            n_new += 1
    for c in range(len(cell_cluster)):
        p = cell_cluster[c]
        new = place[p]
        goes[2 * c] = new if new >= 0 and whole[c] == FAR else p
        goes[2 * c + 1] = new if new >= 0 and whole[c] != NEAR else p
    return n_new
