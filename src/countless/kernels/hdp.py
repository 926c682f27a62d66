"""Loops of the hard HDP: rows and local clusters that look for a global cluster.

A group pays for every global cluster that it uses, so what a row costs depends on what the other
rows of its group use.
"""

import numpy as np
from numba import njit

from countless.kernels.rows import divergence

# Where the rows of a local cluster go as a whole when its global is split; 0: to both halves.
NEAR, FAR = 1, 2


@njit(nogil=True, cache=True)
def measure(rows, centers, distance):
    """Fill ``distance[i, p]`` with the squared distance of row i from center p # OUT."""
    for i in range(distance.shape[0]):
        for p in range(distance.shape[1]):
            distance[i, p] = divergence(rows, i, centers, p)


@njit(nogil=True, cache=True)
def visit_rows(
    rows, start, group, distance, centers, n_globals, n_locals, local_price, global_price,
    first_local, local_group, local_global, labels,
):  # fmt: skip
    """Take rows one after the other to a local cluster (step 4 of Algorithm 2), from one on.

    ``distance`` covers the globals known before the block; those opened since are measured here.
    ``first_local[j, p]`` is the first local cluster of group j at global p, or -1. Returns how many
    globals and locals there are then, or -1 and the row at which a table is full.

    centers, first_local, local_group, local_global, labels are # OUT.
    """
    stop, known = distance.shape
    for i in range(start, stop):
        if n_globals == first_local.shape[1] or n_locals == len(local_group):
            return -1, n_globals, n_locals, i
        j = group[i]
        best, least = -1, np.inf
        for p in range(n_globals):
            value = distance[i, p] if p < known else divergence(rows, i, centers, p)
            if first_local[j, p] < 0:
                value += local_price
            if value < least:
                best, least = p, value
        if least > local_price + global_price:
            best = n_globals
            for f in range(centers.values.shape[1]):
                centers.values[best, f] = rows.values[i, f]
            n_globals += 1
        if first_local[j, best] < 0:
            first_local[j, best] = n_locals
            local_group[n_locals] = j
            local_global[n_locals] = best
            n_locals += 1
        labels[i] = first_local[j, best]
    return 0, n_globals, n_locals, stop


@njit(nogil=True, cache=True)
def visit_locals(weight, means, centers, n_globals, global_price, order, local_global):
    """Take local clusters one after the other to a global one (step 5 of Algorithm 2).

    The scatter of a local cluster's rows about their own mean is the same at every global, so it is
    left out. Returns how many globals there are then. centers, local_global are # OUT.
    """
    for c in order:
        best, least = -1, np.inf
        for p in range(n_globals):
            value = 0.0
            for f in range(means.shape[1]):
                value += (means[c, f] - centers[p, f]) ** 2
            value *= weight[c]
            if value < least:
                best, least = p, value
        if least > global_price:
            best = n_globals
            centers[best] = means[c]
            n_globals += 1
        local_global[c] = best
    return n_globals


@njit(nogil=True, cache=True, fastmath={"nnan", "nsz", "contract"})
def _add_gains(distance, r, nearest, second, add, kept, p):
    """Add what row r, nearest to p, says to the gains of globals that its group might use."""
    for q in range(distance.shape[1]):
        add[q] += max(0.0, nearest - distance[r, q])
        kept[p, q] += max(0.0, second - max(nearest, distance[r, q]))


@njit(nogil=True, cache=True)
def weigh_changes(distance, used, add, drop, kept, labels, own):
    """Sum up over rows of a group what it would gain or lose by using other globals.

    ``add[q]`` is what rows save if q is used, too; ``drop[p]`` what they lose if p no longer is;
    and ``kept[p, q]`` what of that loss is spared when q takes p's place (Schubert and Rousseeuw's
    decomposition of swaps). A lone global has no second: the farthest one stands in for it.

    add, drop, kept (sums go on), labels, own are # OUT.
    """
    g = distance.shape[1]
    for r in range(distance.shape[0]):
        best, nearest, second = -1, np.inf, np.inf
        for p in range(g):
            if used[p]:
                value = distance[r, p]
                if value < nearest:
                    best, nearest, second = p, value, nearest
                elif value < second:
                    second = value
        if second == np.inf:
            second = distance[r].max()
        labels[r] = best
        own[r] = nearest
        drop[best] += second - nearest
        _add_gains(distance, r, nearest, second, add, kept, best)


@njit(nogil=True, cache=True)
def best_change(used, paid, price, add, drop, kept):
    """Find the addition, drop or swap that lowers a group's cost most.

    Returns the global to drop (-1: none), the one to add (-1: none), and the change. A global that
    is paid for costs nothing to use and saves nothing if dropped.
    """
    g = len(used)
    n_used = 0
    for p in range(g):
        n_used += used[p]
    gone, new, least = -1, -1, 0.0
    for q in range(g):
        if used[q]:
            change = drop[q] - (0.0 if paid[q] else price)
            if n_used > 1 and change < least:
                gone, new, least = q, -1, change
            continue
        joining = (0.0 if paid[q] else price) - add[q]
        if joining < least:
            gone, new, least = -1, q, joining
        for p in range(g):
            if used[p]:
                change = joining - (0.0 if paid[p] else price) + drop[p] - kept[p, q]
                if change < least:
                    gone, new, least = p, q, change
    return gone, new, least


@njit(nogil=True, cache=True)
def choose_globals(distance, starts, paid, price, tolerance, used, labels, own):
    """Choose for each group which globals it uses, by additions, drops and swaps that pay.

    Group ``t`` has the rows from ``starts[t]`` to ``starts[t + 1]``. used (where to start, and the
    answer), labels, own (each row's global and squared distance) are # OUT.
    """
    g = distance.shape[1]
    add, drop, kept = np.empty(g), np.empty(g), np.empty((g, g))
    for t in range(len(starts) - 1):
        rows = slice(starts[t], starts[t + 1])
        part = distance[rows]
        if not used[t].any():
            best, least = 0, np.inf
            for p in range(g):
                value = part[:, p].sum() + (0.0 if paid[t, p] else price)
                if value < least:
                    best, least = p, value
            used[t, best] = True
        while True:
            add[:] = 0.0
            drop[:] = 0.0
            for p in range(g):
                if used[t, p]:
                    kept[p] = 0.0
            weigh_changes(part, used[t], add, drop, kept, labels[rows], own[rows])
            gone, new, change = best_change(used[t], paid[t], price, add, drop, kept)
            if not change < -tolerance:
                break
            if gone >= 0:
                used[t, gone] = False
            if new >= 0:
                used[t, new] = True


@njit(nogil=True, cache=True)
def find_movers(
    distance, group, labels, weight, cell_rows, local_price, global_price, tolerance, moves
):  # fmt: skip
    """Mark the rows of a block that would gain by leaving their global. moves is # OUT."""
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
            joining = distance[r, q] * weight[q] / (weight[q] + 1.0)
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
    """Take items (rows, local clusters or parts of them) to other globals, one after the other.

    Costs are exact: leaving p gives back ``W_p w / (W_p - w)`` times the squared distance, joining
    q takes ``W_q w / (W_q + w)`` times it; a local cluster that ends gives back its price, one that
    begins takes it, and so with globals. ``cell_items[j, p]`` counts the items of group j at p, and
    ``n_items[p]`` all of them; a global without items is free to be opened.

    Returns how many moved; labels, cell_items, n_items, weight, mean are # OUT.
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

    Returns how many these are. cell_rows (zeros before), place (-1: no rows) are # OUT.
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
def sum_rows(values, labels, weight, total):
    """Add up rows by their labels. weight, total (sums go on) are # OUT."""
    for i in range(len(labels)):
        c = labels[i]
        weight[c] += 1.0
        for f in range(values.shape[1]):
            total[c, f] += values[i, f]


@njit(nogil=True, cache=True)
def halve_rows(
    values, labels, price, n_passes, side, near_weight, near_total, far_weight, far_total, gain
):  # fmt: skip
    """Halve each cluster that costs more than a price, by 2-means from its main direction.

    Where it costs less, or a half would be empty, the gain is minus infinity.

    side (True in the far half), near and far weights and totals (zeros before), gain are # OUT.
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
    # The farthest row points along the cluster; a step of power iteration turns that towards its
    # main direction.
    normal, threshold = np.zeros((k, d)), np.zeros(k)
    for i in range(len(labels)):
        c, along = labels[i], 0.0
        if cost[c] > price:
            for f in range(d):
                point = (values[farthest[c], f] - mean[c, f]) / np.sqrt(reach[c])
                along += (values[i, f] - mean[c, f]) * point
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
            # Halves' means attract rows as centers do; the difference of distances is linear.
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
def weigh_halves(weight, total, at, near, far, price, whole, loss):
    """Let local clusters of globals that are split go to one half as a whole, or pay for both.

    ``weight[c, h]`` and ``total[c, h]`` are what local cluster c has in the near and in the far
    half; ``at[c]`` is the place of its global among ``near`` and ``far``, the halves' means, or -1.

    whole, loss (what groups lose by that, for each global that is split) are # OUT.
    """
    for c in range(len(at)):
        s = at[c]
        if s < 0:
            continue
        # The difference of squared distances is linear, so that sums of rows are enough.
        to_near, to_far = 0.0, 0.0
        for f in range(near.shape[1]):
            step = near[s, f] - far[s, f]
            middle = 0.5 * (near[s, f] + far[s, f])
            to_near += 2.0 * step * (weight[c, 1] * middle - total[c, 1, f])
            to_far += 2.0 * step * (total[c, 0, f] - weight[c, 0] * middle)
        least = min(to_near, to_far)
        if least < price:
            whole[c] = NEAR if to_near <= to_far else FAR
        loss[s] += max(min(least, price), 0.0)


@njit(nogil=True, cache=True)
def mix_rows(block, group, first, cluster, share, means, variance, nats, spread):
    """Add up the log likelihood of rows under the Gaussians that their group uses.

    Group j uses ``cluster[first[j]:first[j + 1]]`` with log ``share`` each; constants are left out.
    ``spread`` gets the squared distances, each by the chance that the row belongs to that center.

    nats (a sum for each group), spread are # OUT.
    """
    most = 0
    for j in range(len(first) - 1):
        most = max(most, first[j + 1] - first[j])
    distance, score = np.empty(most), np.empty(most)
    for r in range(block.shape[0]):
        begin, end = first[group[r]], first[group[r] + 1]
        highest = -np.inf
        for c in range(begin, end):
            value = 0.0
            for f in range(block.shape[1]):
                value += (block[r, f] - means[cluster[c], f]) ** 2
            distance[c - begin] = value
            score[c - begin] = share[c] - value / (2.0 * variance)
            highest = max(highest, score[c - begin])
        total, weighted = 0.0, 0.0
        for c in range(end - begin):
            chance = np.exp(score[c] - highest)
            total += chance
            weighted += chance * distance[c]
        nats[group[r]] += highest + np.log(total)
        spread[0] += weighted / total
