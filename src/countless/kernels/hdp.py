"""Loops of the hard HDP: assignment of rows and local clusters to global clusters.

A group pays for every global cluster that it uses, so the cost of a row depends on the clusters
used by the other rows of its group.
"""

import numpy as np
from numba import njit

from countless.kernels.rows import divergence


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
    """Assign rows to local clusters one at a time (step 4 of Algorithm 2), from a given row on.

    ``distance`` covers the globals known before the block; distances to those opened since are
    computed here. ``first_local[j, p]`` is the first local cluster of group j at global p, or -1.
    Returns the numbers of globals and locals, or -1 and the row at which a table is full.

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
    """Assign local clusters to globals one at a time (step 5 of Algorithm 2).

    The scatter of a local cluster's rows about their own mean is the same at every global, so it is
    left out. Returns the number of globals. centers, local_global are # OUT.
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


# Fastmath turns minima and maxima, which are unpredictable here, into branch-free code.
@njit(nogil=True, cache=True, fastmath={"nnan", "nsz"})
def weigh_changes(distance, used, add, drop, kept, labels):
    """Sum over the rows of a group the change of cost by using other globals.

    ``add[q]`` is what rows save if q is also used; ``drop[p]`` what they lose if p is dropped; and
    ``kept[p, q]`` the part of that loss avoided when q replaces p (Schubert and Rousseeuw's
    decomposition of swaps). For a single global, the farthest one takes the place of the second.

    add, drop, kept (added to), labels are # OUT.
    """
    members = np.flatnonzero(used)
    for r in range(distance.shape[0]):
        best = members[0]
        nearest, second = distance[r, best], np.inf
        for p in members[1:]:
            value = distance[r, p]
            second = min(second, max(nearest, value))
            best = p if value < nearest else best
            nearest = min(nearest, value)
        if len(members) == 1:
            second = distance[r].max()
        labels[r] = best
        drop[best] += second - nearest
        spared = kept[best]
        for q in range(distance.shape[1]):
            value = distance[r, q]
            add[q] += max(0.0, nearest - value)
            spared[q] += max(0.0, second - max(nearest, value))


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
def choose_globals(distance, starts, paid, price, tolerance, used, labels):
    """Choose which globals each group uses, by additions, drops and swaps that lower its cost.

    Group ``t`` has the rows from ``starts[t]`` to ``starts[t + 1]``. used (initial and final
    choice), labels are # OUT.
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
            weigh_changes(part, used[t], add, drop, kept, labels[rows])
            gone, new, change = best_change(used[t], paid[t], price, add, drop, kept)
            if not change < -tolerance:
                break
            if gone >= 0:
                used[t, gone] = False
            if new >= 0:
                used[t, new] = True


@njit(nogil=True, cache=True)
def mix_rows(block, group, first, cluster, share, means, variance, nats, spread):
    """Sum the log likelihood of rows under the mixture of Gaussians that their group uses.

    Group j uses ``cluster[first[j]:first[j + 1]]`` with log ``share`` each; constants are left out.
    ``spread`` sums the squared distances, weighted by the responsibility of each center.

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
