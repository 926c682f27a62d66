"""Local moves of nodes between clusters of a graph, and the coarse graph of the clusters.

A graph is in compressed sparse row form, without self-loops, and stores every edge in both
directions: the neighbors of node i are ``neighbor[indptr[i]:indptr[i + 1]]``, ``links`` has the
edge weights, ``node_out`` their sums (degrees), and ``node_weight`` the denominators of the cut.
A cluster c whose edges to other clusters weigh ``out[c]`` costs ``out[c] / weight[c] + penalty``.
"""

import heapq

import numpy as np
from numba import njit

LIGHTEST_REST = 1e-12  # relative to a cluster's weight


@njit(nogil=True, cache=True, inline="always")
def cost(out, weight, penalty, crowding):
    """Return a cluster's cost: the penalized cut ratio, or its cut plus its squared weight."""
    return out + crowding * weight * weight if crowding > 0.0 else out / weight + penalty


@njit(nogil=True, cache=True)
def move_nodes(
    indptr,
    neighbor,
    links,
    node_out,
    node_weight,
    penalty,
    crowding,  # (n_nodes,) or empty: coefficient of the squared cluster weight at this node
    pen,  # (n_nodes,) or empty: a node may only join neighbors with the same value
    least_gain,
    queue,  # OUT (n_nodes,), the order of the first visits; overwritten
    labels,  # OUT (n_nodes,)
    out,  # OUT (n_nodes,), an entry for every label
    weight,  # OUT (n_nodes,)
    count,  # OUT (n_nodes,)
):
    """Move each node to the cluster that lowers the objective most, until no node moves.

    A node may join a cluster that it shares an edge with, or open a new one. With ``crowding`` a
    cluster costs its cut plus ``crowding`` times its squared weight, instead of the penalized cut
    ratio. Nodes are visited in queue order; when one moves, its neighbors in other clusters are
    queued again. Returns the number of moves.
    """
    n = labels.shape[0]
    penned = pen.shape[0] > 0
    crowded = crowding.shape[0] > 0
    square = 0.0
    shared = np.zeros(n)  # weight of the edges from the visited node to each cluster
    seen = np.empty(n, dtype=np.int32)
    waiting = np.ones(n, dtype=np.bool_)
    empty = np.empty(n, dtype=np.int32)
    n_empty = 0
    for c in range(n - 1, -1, -1):
        if count[c] == 0:
            empty[n_empty] = c
            n_empty += 1
    head, n_waiting, n_moves = 0, n, 0
    while n_waiting:
        i = queue[head]
        head = head + 1 if head + 1 < n else 0
        n_waiting -= 1
        waiting[i] = False
        own = labels[i]
        n_seen = 0
        for e in range(indptr[i], indptr[i + 1]):
            j = neighbor[e]
            if penned and pen[j] != pen[i]:
                continue
            c = labels[j]
            if shared[c] == 0.0:
                seen[n_seen] = c
                n_seen += 1
            shared[c] += links[e]
        own_out, own_weight = node_out[i], node_weight[i]
        if crowded:
            square = crowding[i]
        leave = -cost(out[own], weight[own], penalty, square)
        best, best_change = own, -least_gain
        # A node does not leave if the remaining weight of its cluster would be lost to rounding.
        stays = count[own] > 1 and weight[own] - own_weight <= LIGHTEST_REST * weight[own]
        if count[own] > 1 and not stays:
            left = out[own] - own_out + 2 * shared[own]
            leave += cost(left, weight[own] - own_weight, penalty, square)
            alone = leave + cost(own_out, own_weight, penalty, square)
            if alone < best_change:
                best, best_change = empty[n_empty - 1], alone
        for s in range(0 if stays else n_seen):
            c = seen[s]
            if c != own:
                joined = out[c] + own_out - 2 * shared[c]
                change = leave - cost(out[c], weight[c], penalty, square)
                change += cost(joined, weight[c] + own_weight, penalty, square)
                if change < best_change:
                    best, best_change = c, change
        if best != own:
            n_moves += 1
            if count[own] == 1:
                out[own] = 0.0
                weight[own] = 0.0
                empty[n_empty] = own
                n_empty += 1
            else:
                out[own] += 2 * shared[own] - own_out
                weight[own] -= own_weight
            if count[best] == 0:
                n_empty -= 1
            count[own] -= 1
            count[best] += 1
            out[best] += own_out - 2 * shared[best]
            weight[best] += own_weight
            labels[i] = best
            for e in range(indptr[i], indptr[i + 1]):
                j = neighbor[e]
                if not waiting[j] and labels[j] != best:
                    waiting[j] = True
                    tail = head + n_waiting
                    queue[tail if tail < n else tail - n] = j
                    n_waiting += 1
        for s in range(n_seen):
            shared[seen[s]] = 0.0
    return n_moves


@njit(nogil=True, cache=True)
def join_nodes(
    indptr,
    neighbor,
    links,
    node_weight,
    labels,
    n_clusters,
):
    """Contract clusters to nodes; return indptr, neighbor, links, node_out and node_weight."""
    n = labels.shape[0]
    first = np.zeros(n_clusters + 1, dtype=np.int64)
    for i in range(n):
        first[labels[i] + 1] += 1
    for c in range(n_clusters):
        first[c + 1] += first[c]
    member = np.empty(n, dtype=np.int32)
    at = first[:-1].copy()
    for i in range(n):
        member[at[labels[i]]] = i
        at[labels[i]] += 1
    new_indptr = np.zeros(n_clusters + 1, dtype=np.int64)
    new_neighbor = np.empty(neighbor.shape[0], dtype=np.int32)
    new_links = np.empty(neighbor.shape[0])
    new_out = np.zeros(n_clusters)
    new_weight = np.zeros(n_clusters)
    place = np.full(n_clusters, -1, dtype=np.int64)
    end = 0
    for c in range(n_clusters):
        start = end
        for m in range(first[c], first[c + 1]):
            i = member[m]
            new_weight[c] += node_weight[i]
            for e in range(indptr[i], indptr[i + 1]):
                other = labels[neighbor[e]]
                if other == c:
                    continue
                if place[other] < start:
                    place[other] = end
                    new_neighbor[end] = other
                    new_links[end] = 0.0
                    end += 1
                new_links[place[other]] += links[e]
        for e in range(start, end):
            new_out[c] += new_links[e]
        new_indptr[c + 1] = end
    return new_indptr, new_neighbor[:end].copy(), new_links[:end].copy(), new_out, new_weight


@njit(nogil=True, cache=True)
def sum_clusters(
    indptr,
    neighbor,
    links,
    node_weight,
    labels,
    out,  # OUT (n_labels,)
    weight,  # OUT (n_labels,)
    count,  # OUT (n_labels,)
):
    """Recompute each cluster's edge weight to other clusters, its weight and its node count."""
    out[:] = 0.0
    weight[:] = 0.0
    count[:] = 0
    for i in range(labels.shape[0]):
        c = labels[i]
        weight[c] += node_weight[i]
        count[c] += 1
        for e in range(indptr[i], indptr[i + 1]):
            if labels[neighbor[e]] != c:
                out[c] += links[e]


@njit(nogil=True, cache=True)
def find_root(parent, node):
    """Return the cluster that a node has been merged into, with path compression."""
    root = node
    while parent[root] != root:
        root = parent[root]
    while parent[node] != root:
        parent[node], node = root, parent[node]
    return root


@njit(nogil=True, cache=True)
def cheapest_partner(cluster, start, length, neighbor, links, parent, out, weight, shared, seen):
    """Return a cluster's cheapest merge and its change of the cut; combine merged neighbors.

    length, neighbor, links are # OUT; shared must be zeros and is reset to zeros.
    """
    n_seen = 0
    for e in range(start[cluster], start[cluster] + length[cluster]):
        other = find_root(parent, neighbor[e])
        if other == cluster:
            continue
        if shared[other] == 0.0:
            seen[n_seen] = other
            n_seen += 1
        shared[other] += links[e]
    best, lowest = -1, np.inf
    for s in range(n_seen):
        other = seen[s]
        neighbor[start[cluster] + s] = other
        links[start[cluster] + s] = shared[other]
        joined = (out[cluster] + out[other] - 2 * shared[other]) / (weight[cluster] + weight[other])
        change = joined - out[cluster] / weight[cluster] - out[other] / weight[other]
        if change < lowest or (change == lowest and other < best):
            best, lowest = other, change
        shared[other] = 0.0
    length[cluster] = n_seen
    return best, lowest


@njit(nogil=True, cache=True)
def merge_linked(indptr, neighbor, links, node_out, node_weight, children, change):
    """Merge the two adjacent clusters whose merge lowers the cut most, until none are adjacent.

    A heap has every cluster's cheapest merge; it is recomputed when the partner has been merged.
    Index j < n_nodes is a node, and n_nodes + j the cluster of merge j. Returns the number of
    merges; children, change are # OUT.
    """
    n = node_out.shape[0]
    n_all = 2 * n - 1
    parent = np.arange(n_all)
    out = np.zeros(n_all)
    weight = np.zeros(n_all)
    out[:n] = node_out
    weight[:n] = node_weight
    start = np.zeros(n_all, dtype=np.int64)
    length = np.zeros(n_all, dtype=np.int64)
    start[:n] = indptr[:-1]
    length[:n] = indptr[1:] - indptr[:-1]
    capacity = max(2 * neighbor.shape[0], 16)
    pool = np.empty(capacity, dtype=np.int32)
    pool_links = np.empty(capacity)
    end = neighbor.shape[0]
    pool[:end] = neighbor
    pool_links[:end] = links
    shared = np.zeros(n_all)
    seen = np.empty(n_all, dtype=np.int32)
    partner = np.full(n_all, -1, dtype=np.int64)
    heap = [(0.0, np.int64(0)) for _ in range(0)]
    for i in range(n):
        partner[i], lowest = cheapest_partner(
            i, start, length, pool, pool_links, parent, out, weight, shared, seen
        )
        if partner[i] >= 0:
            heapq.heappush(heap, (lowest, np.int64(i)))
    n_merges = 0
    while len(heap):
        lowest, a = heapq.heappop(heap)
        if parent[a] != a:
            continue
        b = partner[a]
        if parent[b] != b:
            partner[a], lowest = cheapest_partner(
                a, start, length, pool, pool_links, parent, out, weight, shared, seen
            )
            if partner[a] >= 0:
                heapq.heappush(heap, (lowest, a))
            continue
        c = n + n_merges
        children[n_merges, 0] = min(a, b)
        children[n_merges, 1] = max(a, b)
        change[n_merges] = lowest
        n_merges += 1
        joined = weight[a] + weight[b]
        out[c] = max(0.0, (lowest + out[a] / weight[a] + out[b] / weight[b]) * joined)
        weight[c] = joined
        parent[a] = c
        parent[b] = c
        needed = length[a] + length[b]
        if end + needed > capacity:
            capacity = 2 * (end + needed)
            longer = np.empty(capacity, dtype=np.int32)
            longer[:end] = pool[:end]
            pool = longer
            longer_links = np.empty(capacity)
            longer_links[:end] = pool_links[:end]
            pool_links = longer_links
        start[c] = end
        for side in (a, b):
            for e in range(start[side], start[side] + length[side]):
                pool[end] = pool[e]
                pool_links[end] = pool_links[e]
                end += 1
        length[c] = needed
        partner[c], lowest = cheapest_partner(
            c, start, length, pool, pool_links, parent, out, weight, shared, seen
        )
        end = start[c] + length[c]
        if partner[c] >= 0:
            heapq.heappush(heap, (lowest, np.int64(c)))
    return n_merges


@njit(nogil=True, cache=True)
def kernel_pass(
    indptr,
    neighbor,
    links,
    node_out,
    node_weight,
    shift,
    penalty,
    labels,  # OUT (n_nodes,)
    out,  # (2 * n_nodes,), sums of the clusters at the start; OUT for new ones
    weight,  # (2 * n_nodes,), likewise
    n_clusters,
):
    """Make one pass of Algorithm 1 with the kernel of a cut; return the number of clusters.

    Means are fixed during the pass: those of existing clusters from its start, that of a new
    cluster is the node that opened it. Weighted squared distances need only the edge weights.
    """
    n = labels.shape[0]
    old = labels.copy()
    opened = np.full(n, -1, dtype=np.int32)
    shared = np.zeros(2 * n)
    for i in range(n):
        own_out, own_weight, own = node_out[i], node_weight[i], old[i]
        for e in range(indptr[i], indptr[i + 1]):
            j = neighbor[e]
            shared[old[j]] += links[e]
            if opened[j] >= 0:
                shared[opened[j]] += links[e]
        best, nearest = -1, np.inf
        for c in range(n_clusters):
            distance = own_weight * (shift - out[c] / weight[c]) - 2 * shared[c]
            if c == own:
                distance += 2 * (own_out - shift * own_weight)
            distance /= weight[c]
            if distance < nearest:
                best, nearest = c, distance
        for e in range(indptr[i], indptr[i + 1]):
            j = neighbor[e]
            shared[old[j]] = 0.0
            if opened[j] >= 0:
                shared[opened[j]] = 0.0
        if shift - own_out / own_weight + nearest > shift + penalty:
            best = n_clusters
            opened[i] = best
            out[best] = own_out
            weight[best] = own_weight
            n_clusters += 1
        labels[i] = best
    return n_clusters
