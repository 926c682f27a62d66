"""Valid clusterings by exemplars: assignment of rows, the best exemplar of a cluster, and moves.

In a valid clustering the exemplar of a cluster is one of its rows. For row j of cluster c,
``total[j]`` is the sum of its rows' similarities to j, with j's preference, and ``reach[j]`` counts
the rows that have an edge to j: with sparse similarities only a row that all others have an edge to
can be the exemplar. Moving a row changes both only along the row's own edges.
"""

from typing import NamedTuple

import numpy as np
from numba import njit


class Groups(NamedTuple):
    """Clusters numbered from 0 to n - 1, and their rows in linked lists."""

    label: np.ndarray  # (n,), of each row
    size: np.ndarray  # (n,), of each cluster; 0 for an unused number
    exemplar: np.ndarray  # (n,), of each cluster
    total: np.ndarray  # (n,), for each row as exemplar of its cluster
    reach: np.ndarray  # (n,)
    head: np.ndarray  # (n,), the first row of each cluster
    after: np.ndarray  # (n,), the next row of the same cluster, or -1
    before: np.ndarray  # (n,)


class Offers(NamedTuple):
    """Workspace of one row's moves; a mark says that an entry belongs to the current row."""

    here: np.ndarray  # (n,), the row whose similarity to j is in `to`
    to: np.ndarray  # (n,)
    mark: np.ndarray  # (n,), the row that a cluster's entries belong to
    touched: np.ndarray  # (n,), the clusters that are marked
    joined: np.ndarray  # (n,), the total with the row, under the best exemplar other than the row
    joined_as: np.ndarray  # (n,), and that exemplar
    served: np.ndarray  # (n,), sum of similarities of the cluster's rows to the row
    n_served: np.ndarray  # (n,), and their number


@njit(nogil=True, cache=True)
def choose_exemplars(edges, exemplars, best, choice):
    """Assign each row to its most similar exemplar; best and choice are # OUT.

    Exemplars are assigned to themselves, and so is a row without an edge to any of them.
    """
    value, start, row_of, _, _, _, _ = edges
    n = choice.shape[0]
    best[:] = -np.inf
    for row in range(n):
        choice[row] = row
    for exemplar in exemplars:
        begin, end = start[exemplar], start[exemplar + 1]
        if row_of.shape[0] == 0:
            similarity = value[begin:end]
            for row in range(n):
                better = similarity[row] > best[row]
                best[row] = similarity[row] if better else best[row]
                choice[row] = exemplar if better else choice[row]
        else:
            for edge in range(begin, end):
                row = row_of[edge]
                if value[edge] > best[row]:
                    best[row], choice[row] = value[edge], exemplar
    for exemplar in exemplars:
        choice[exemplar] = exemplar


@njit(nogil=True, cache=True)
def add_up_columns(edges, label, first, last, total, reach):
    """Compute total and reach of the rows from first to last as exemplars; both are # OUT."""
    value, start, row_of, _, _, _, _ = edges
    for j in range(first, last):
        begin, mine = start[j], label[j]
        added, count = 0.0, 0
        for k in range(start[j + 1] - begin):
            row = k if row_of.shape[0] == 0 else row_of[begin + k]
            if label[row] == mine:
                added += value[begin + k]
                count += 1
        total[j], reach[j] = added, count


@njit(nogil=True, cache=True)
def serve_clusters(edges, label, first, last, served, reached):
    """Sum the similarities of every cluster to the rows from first to last, and count them.

    served and reached, (n, n_clusters), are # OUT and zeros on input.
    """
    value, start, row_of, _, _, _, _ = edges
    for j in range(first, last):
        begin = start[j]
        for k in range(start[j + 1] - begin):
            row = k if row_of.shape[0] == 0 else row_of[begin + k]
            served[j, label[row]] += value[begin + k]
            reached[j, label[row]] += 1


@njit(nogil=True, cache=True)
def net_of_choice(edges, choice, size):
    """Return the sum of all rows' similarities to the exemplars they chose, or minus infinity."""
    value, start, row_of, _, _, _, _ = edges
    net = 0.0
    for j in range(choice.shape[0]):
        if size[j] == 0:
            continue
        begin, count = start[j], 0
        for k in range(start[j + 1] - begin):
            row = k if row_of.shape[0] == 0 else row_of[begin + k]
            if choice[row] == j:
                net += value[begin + k]
                count += 1
        if count < size[j]:
            return -np.inf
    return net


@njit(nogil=True, cache=True)
def link_rows(groups, n):
    """Fill sizes, lists and exemplars from labels, totals and reach; return the cluster count.

    The exemplar is the row with the largest total among those that all others have an edge to. A
    cluster without such a row gets -1.
    """
    label, size, exemplar, total, reach, head, _, _ = groups
    size[:] = 0
    exemplar[:] = -1
    head[:] = -1
    for row in range(n - 1, -1, -1):
        _link(groups, row, label[row])
    count = 0
    for row in range(n):
        cluster = label[row]
        if head[cluster] == row:
            count += 1
        if reach[row] == size[cluster]:
            known = exemplar[cluster]
            if known < 0 or total[row] > total[known]:
                exemplar[cluster] = row
    return count


@njit(nogil=True, cache=True)
def _link(groups, row, cluster):
    first = groups.head[cluster]
    groups.before[row], groups.after[row] = -1, first
    if first >= 0:
        groups.before[first] = row
    groups.head[cluster] = row
    groups.label[row] = cluster
    groups.size[cluster] += 1


@njit(nogil=True, cache=True)
def _unlink(groups, row):
    cluster, ahead, behind = groups.label[row], groups.before[row], groups.after[row]
    if ahead >= 0:
        groups.after[ahead] = behind
    else:
        groups.head[cluster] = behind
    if behind >= 0:
        groups.before[behind] = ahead
    groups.size[cluster] -= 1


@njit(nogil=True, cache=True)
def _count_edges(edges, row):
    if edges.row_of.shape[0] == 0:
        return edges.own.shape[0]
    return edges.row_start[row + 1] - edges.row_start[row]


@njit(nogil=True, cache=True)
def _row_edge(edges, row, k):
    """Return the column and the number of a row's k-th edge."""
    if edges.row_of.shape[0] == 0:
        return k, edges.start[k] + row
    at = edges.row_start[row] + k
    return edges.column_of[at], edges.edge_of[at]


@njit(nogil=True, cache=True)
def _touch(offers, cluster, row, n_touched):
    if offers.mark[cluster] == row:
        return n_touched
    offers.mark[cluster] = row
    offers.touched[n_touched] = cluster
    offers.joined[cluster], offers.served[cluster], offers.n_served[cluster] = -np.inf, 0.0, 0
    return n_touched + 1


@njit(nogil=True, cache=True)
def _ask_clusters(edges, groups, row, offers):
    """Compute the total with the row of each cluster that it has an edge with; count these."""
    label, size, _, total, reach, _, _, _ = groups
    full = edges.row_of.shape[0] == 0
    n_touched = 0
    for k in range(_count_edges(edges, row)):
        j, edge = _row_edge(edges, row, k)
        if j == row:
            continue
        similarity, cluster = edges.value[edge], label[j]
        offers.here[j], offers.to[j] = row, similarity
        n_touched = _touch(offers, cluster, row, n_touched)
        if reach[j] == size[cluster] and total[j] + similarity > offers.joined[cluster]:
            offers.joined[cluster], offers.joined_as[cluster] = total[j] + similarity, j
    begin = edges.start[row]
    for k in range(edges.start[row + 1] - begin):
        i = k if full else edges.row_of[begin + k]
        if i != row:
            n_touched = _touch(offers, label[i], row, n_touched)
            offers.served[label[i]] += edges.value[begin + k]
            offers.n_served[label[i]] += 1
    return n_touched


@njit(nogil=True, cache=True)
def _without(groups, row, offers):
    """Return the total of the row's cluster without it, and the exemplar it would have."""
    _, size, _, total, reach, head, after, _ = groups
    old = groups.label[row]
    left, left_as = -np.inf, -1
    j = head[old]
    while j >= 0:
        if j != row:
            linked = offers.here[j] == row
            rest = total[j] - offers.to[j] if linked else total[j]
            if reach[j] - linked == size[old] - 1 and rest > left:
                left, left_as = rest, j
        j = after[j]
    return left, left_as


@njit(nogil=True, cache=True)
def _move(edges, groups, row, cluster, joins, offers):
    """Move the row from its cluster to another, existing or, under an unused number, new."""
    label, _, _, total, reach, _, _, _ = groups
    old = label[row]
    _unlink(groups, row)
    total[row], reach[row] = edges.value[edges.own[row]], 1
    if joins:
        total[row] += offers.served[cluster]
        reach[row] += offers.n_served[cluster]
    for k in range(_count_edges(edges, row)):
        j, edge = _row_edge(edges, row, k)
        if j == row:
            continue
        if label[j] == old:
            total[j] -= edges.value[edge]
            reach[j] -= 1
        elif joins and label[j] == cluster:
            total[j] += edges.value[edge]
            reach[j] += 1
    _link(groups, row, cluster)


@njit(nogil=True, cache=True)
def sweep_rows(
    edges,  # IN
    gain,  # IN (n + 1,), the weight of a cluster by its size
    opened,  # IN (n + 1,), the weight of each number of clusters
    n_clusters,  # IN
    least,  # IN, smaller gains are rounding errors
    groups,  # OUT
):
    """Move every row to the cluster that gains most, with the best exemplars of both clusters.

    Returns the number of clusters, and the number of rows that moved.
    """
    label, size, exemplar, total, _, _, _, _ = groups
    n = label.shape[0]
    offers = Offers(
        np.full(n, -1),
        np.empty(n),
        np.full(n, -1),
        np.empty(n, dtype=np.int64),
        np.empty(n),
        np.empty(n, dtype=np.int64),
        np.empty(n),
        np.empty(n, dtype=np.int64),
    )
    n_moves, free = 0, 0
    for row in range(n):
        n_touched = _ask_clusters(edges, groups, row, offers)
        old, preference = label[row], edges.value[edges.own[row]]
        lonely = size[old] == 1
        left, left_as = (0.0, -1) if lonely else _without(groups, row, offers)
        if left == -np.inf:
            continue
        if not lonely:
            left += gain[size[old] - 1]
        stays = total[exemplar[old]] + gain[size[old]] + opened[n_clusters]
        fewer = n_clusters - lonely
        best_gain, best_cluster, best_exemplar = least, -1, -1
        if not lonely:
            alone = left + preference + gain[1] + opened[n_clusters + 1] - stays
            if alone > best_gain:
                best_gain, best_exemplar = alone, row
        for k in range(n_touched):
            cluster = offers.touched[k]
            if cluster == old:
                continue
            with_row, under = offers.joined[cluster], offers.joined_as[cluster]
            served = offers.served[cluster] + preference
            if offers.n_served[cluster] == size[cluster] and served > with_row:
                with_row, under = served, row
            now = total[exemplar[cluster]] + gain[size[cluster]]
            change = left + with_row + gain[size[cluster] + 1] + opened[fewer] - stays - now
            if change > best_gain:
                best_gain, best_cluster, best_exemplar = change, cluster, under
        if best_exemplar < 0:
            continue
        joins = best_cluster >= 0
        if not joins:
            while size[free] > 0:  # the row's cluster has other rows, so that some number is unused
                free = (free + 1) % n
            best_cluster = free
        _move(edges, groups, row, best_cluster, joins, offers)
        exemplar[old], exemplar[best_cluster] = left_as, best_exemplar
        n_clusters = fewer if joins else n_clusters + 1
        n_moves += 1
    return n_clusters, n_moves
