"""Clusters in the feature space of a kernel: sums of kernel rows, and costs of visits and moves.

``sums[c, i]`` is the weighted sum of ``kernel[j, i]`` over the rows j of cluster c. With the weight
W and the square ``Q = sum_i w_i sums[c, i]`` of a cluster, the squared distance of row i from its
mean is ``kernel[i, i] - 2 sums[c, i] / W + Q / W^2``, and the cost of the cluster's rows is
``sum_i w_i kernel[i, i] - Q / W``.
"""

import numpy as np
from numba import njit


@njit(nogil=True, cache=True)
def add_rows(kernel, ids, coefficient, slot, start, stop, sums):
    """Add rows of the kernel, times a coefficient, to the sums of their slots; four at a time.

    Only columns from start to stop, so that threads can share the work: entry i of a sum is added
    in the order of ``ids`` whatever the columns. sums is # OUT.
    """
    n = ids.shape[0]
    at = 0
    while at < n:
        total = sums[slot[at]]
        if at + 3 < n and slot[at] == slot[at + 1] == slot[at + 2] == slot[at + 3]:
            first, second = kernel[ids[at]], kernel[ids[at + 1]]
            third, fourth = kernel[ids[at + 2]], kernel[ids[at + 3]]
            a, b, c, d = coefficient[at : at + 4]
            for i in range(start, stop):
                total[i] += (a * first[i] + b * second[i]) + (c * third[i] + d * fourth[i])
            at += 4
        else:
            row, a = kernel[ids[at]], coefficient[at]
            for i in range(start, stop):
                total[i] += a * row[i]
            at += 1


@njit(nogil=True, cache=True)
def add_within(kernel, labels, members, first, coefficient, start, stop, totals):
    """Compute for each row the sum of its kernel with the listed members of its own cluster.

    Those of cluster c are ``members[first[c]:first[c + 1]]``; a row of label -1 is skipped. totals
    is # OUT.
    """
    for i in range(start, stop):
        if labels[i] < 0:
            continue
        row = kernel[i]
        low, high = first[labels[i]], first[labels[i] + 1]
        # Four independent sums, so that additions overlap.
        a = b = c = d = 0.0
        at = low
        while at + 3 < high:
            a += coefficient[members[at]] * row[members[at]]
            b += coefficient[members[at + 1]] * row[members[at + 1]]
            c += coefficient[members[at + 2]] * row[members[at + 2]]
            d += coefficient[members[at + 3]] * row[members[at + 3]]
            at += 4
        while at < high:
            a += coefficient[members[at]] * row[members[at]]
            at += 1
        totals[i] += (a + b) + (c + d)


@njit(nogil=True, cache=True)
def visit_rows(
    kernel,
    diagonal,
    row_weight,
    group,
    sums,
    cluster_weight,
    offset,
    local_penalty,
    price,
    row,
    n_opened,
    used,
    opened,
    labels,
):
    """Visit rows from ``row`` on: each goes to its cheapest cluster, or opens one.

    A cluster that its group does not use yet costs a local penalty more, and a row whose cheapest
    cluster costs more than the price opens a new one, available to later rows. Returns the row to
    continue from when ``used`` has no column left for another cluster (n_rows: all are done), and
    the number of clusters.

    ``used[g, c]`` says whether group g uses cluster c, ``opened`` which row opened each new
    cluster. used, opened, labels are # OUT.
    """
    n_rows, n_old = kernel.shape[0], sums.shape[0]
    while row < n_rows:
        weight, at = row_weight[row], used[group[row]]
        best, least = -1, np.inf
        for c in range(n_old + n_opened):
            if c < n_old:
                cost = diagonal[row] + offset[c] - 2.0 * sums[c, row] / cluster_weight[c]
            else:
                other = opened[c - n_old]
                cost = diagonal[row] + diagonal[other] - 2.0 * kernel[other, row]
            # A row of weight 0 does not enter the objective: it is labelled by distance alone.
            if weight > 0.0:
                cost *= weight
                if not at[c]:
                    cost += local_penalty
            if cost < least:
                best, least = c, cost
        if weight > 0.0 and least > price:
            best = n_old + n_opened
            if best == used.shape[1]:
                return row, n_opened
            opened[n_opened] = row
            n_opened += 1
        if weight > 0.0:
            at[best] = True
        labels[row] = best
        row += 1
    return row, n_opened


@njit(nogil=True, cache=True)
def best_exchange(
    i, diagonal, row_weight, group, local_penalty, labels, sums, weight, square, count
):
    """Return the best other cluster of row i, and the change of the objective by the move."""
    own, w, g = labels[i], row_weight[i], group[i]
    own_square = w * w * diagonal[i]
    left = weight[own] - w
    target, change = own, 0.0
    # A singleton moves by a merge.
    if w <= 0.0 or left <= 1e-9 * weight[own]:
        return target, change
    leaving = square[own] / weight[own]
    leaving -= (square[own] - 2.0 * w * sums[own, i] + own_square) / left
    if count[g, own] == 1:
        leaving -= local_penalty
    for c in range(sums.shape[0]):
        if c != own:
            joining = square[c] / weight[c]
            joining -= (square[c] + 2.0 * w * sums[c, i] + own_square) / (weight[c] + w)
            if count[g, c] == 0:
                joining += local_penalty
            if leaving + joining < change:
                target, change = c, leaving + joining
    return target, change


@njit(nogil=True, cache=True)
def exchange_changes(
    diagonal, row_weight, group, local_penalty, labels, sums, weight, square, count, start, stop,
    changes,
):  # fmt: skip
    """Compute the change of the objective by the best move of every row. changes is # OUT."""
    for i in range(start, stop):
        changes[i] = best_exchange(
            i, diagonal, row_weight, group, local_penalty, labels, sums, weight, square, count
        )[1]


@njit(nogil=True, cache=True)
def exchange_rows(
    kernel, ids, diagonal, row_weight, group, local_penalty, rounding, labels, sums, weight, square,
    count,
):  # fmt: skip
    """Move rows one at a time where the objective decreases, updating the sums; count the moves.

    labels, sums, weight, square, count are # OUT.
    """
    n_moved = 0
    for i in ids:
        target, change = best_exchange(
            i, diagonal, row_weight, group, local_penalty, labels, sums, weight, square, count
        )
        if not change < -rounding:
            continue
        own, w, g = labels[i], row_weight[i], group[i]
        square[own] += w * (w * diagonal[i] - 2.0 * sums[own, i])
        square[target] += w * (w * diagonal[i] + 2.0 * sums[target, i])
        weight[own] -= w
        weight[target] += w
        count[g, own] -= 1
        count[g, target] += 1
        row, left, joined = kernel[i], sums[own], sums[target]
        for t in range(row.shape[0]):
            left[t] -= w * row[t]
            joined[t] += w * row[t]
        labels[i] = target
        n_moved += 1
    return n_moved


@njit(nogil=True, cache=True)
def first_asymmetry(kernel, start, stop, tolerance):
    """Return the first entry in rows start to stop that differs from its transpose.

    Compared in square tiles, so that both triangles are read along their rows. (-1, -1): none.
    """
    size = 64
    found_row, found_column = -1, -1
    for left in range(0, stop, size):
        for i in range(start, stop):
            for j in range(left, min(left + size, i)):
                difference = abs(kernel[i, j] - kernel[j, i])
                if not difference <= tolerance and (found_row < 0 or i < found_row):
                    found_row, found_column = i, j
    return found_row, found_column
