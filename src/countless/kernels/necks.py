"""The bottleneck between two groups of nodes: how much a sweep cut narrows between them.

Nodes are ordered from one group to the other by a screened potential, and the cut weight after each
node of this order is computed. Two clusters show a minimum between two maxima; a shape without
clusters, whatever its form, shows one maximum.
"""

import numpy as np
from numba import njit

# Share of the potential's range at either end that is constant up to rounding, without an order.
FLAT = 1e-4
# The squared residual, relative to the first, at which the potential is accurate enough.
RESIDUAL = 1e-14


@njit(nogil=True, cache=True)
def subgraph(indptr, neighbor, links, nodes, place):
    """Return the edges among some nodes, renumbered; place has -1 before and after."""
    n = nodes.shape[0]
    for i in range(n):
        place[nodes[i]] = i
    count = 0
    for i in range(n):
        for e in range(indptr[nodes[i]], indptr[nodes[i] + 1]):
            count += place[neighbor[e]] >= 0
    start = np.zeros(n + 1, dtype=np.int64)
    to = np.empty(count, dtype=np.int64)
    weight = np.empty(count)
    end = 0
    for i in range(n):
        for e in range(indptr[nodes[i]], indptr[nodes[i] + 1]):
            j = place[neighbor[e]]
            if j >= 0:
                to[end] = j
                weight[end] = links[e]
                end += 1
        start[i + 1] = end
    for i in range(n):
        place[nodes[i]] = -1
    return start, to, weight


@njit(nogil=True, cache=True)
def screened_potential(start, to, weight, n_first, screening, max_steps):
    """Solve ``((1 + screening) D - W) x = D s`` by conjugate gradients; s is a contrast.

    s is one over the degree of the first group, and minus one over that of the second.
    """
    n = start.shape[0] - 1
    root = np.empty(n)
    first, second = 0.0, 0.0
    for i in range(n):
        degree = 0.0
        for e in range(start[i], start[i + 1]):
            degree += weight[e]
        root[i] = np.sqrt(max(degree, 1e-12))
        if i < n_first:
            first += degree
        else:
            second += degree
    x = np.zeros(n)
    residual = np.empty(n)
    for i in range(n):
        residual[i] = root[i] / first if i < n_first else -root[i] / second
    direction = residual.copy()
    square = (residual * residual).sum()
    enough = RESIDUAL * square
    image = np.empty(n)
    for _ in range(max_steps):
        if square <= enough:
            break
        curvature = 0.0
        for i in range(n):
            total = 0.0
            for e in range(start[i], start[i + 1]):
                total += weight[e] * direction[to[e]] / root[to[e]]
            image[i] = (1 + screening) * direction[i] - total / root[i]
            curvature += direction[i] * image[i]
        step = square / curvature
        before, square = square, 0.0
        for i in range(n):
            x[i] += step * direction[i]
            residual[i] -= step * image[i]
            square += residual[i] * residual[i]
        for i in range(n):
            direction[i] = residual[i] + square / before * direction[i]
    return x / root


@njit(nogil=True, cache=True)
def cut_profile(start, to, weight, order):
    """Return the cut between the first 1, 2, ... nodes of an order and the other nodes."""
    n = order.shape[0]
    position = np.empty(n, dtype=np.int64)
    for t in range(n):
        position[order[t]] = t
    change = np.zeros(n)
    for i in range(n):
        for e in range(start[i], start[i + 1]):
            if position[i] < position[to[e]]:
                change[position[i]] += weight[e]
                change[position[to[e]]] -= weight[e]
    cut = np.empty(n)
    total = 0.0
    for t in range(n):
        total += change[t]
        cut[t] = max(total, 0.0)
    return cut


@njit(nogil=True, cache=True)
def neck_depth(
    indptr,
    neighbor,
    links,
    nodes,  # IN, the first group, then the second
    n_first,
    place,  # (n_nodes,), all -1
    screening,
    max_steps,
    least_cut,  # added to every cut: what a single node may change
    least_nodes,  # minimum number of nodes on either side of the bottleneck
):
    """Return the log ratio of the lower maximum of the cut to the minimum between the two."""
    n = nodes.shape[0]
    start, to, weight = subgraph(indptr, neighbor, links, nodes, place)
    if start[n_first] == 0 or start[n_first] == start[n]:  # one group has no edges at all
        return 0.0
    x = screened_potential(start, to, weight, n_first, screening, max_steps)
    order = np.argsort(x, kind="mergesort")
    cut = cut_profile(start, to, weight, order)
    lowest, highest = x[order[0]], x[order[n - 1]]
    flat = FLAT * (highest - lowest)
    first, last = 0, n - 2
    while first < n - 2 and x[order[first + 1]] < lowest + flat:
        first += 1
    while last > first and x[order[last]] > highest - flat:
        last -= 1
    before = np.zeros(n)
    largest = 0.0
    for t in range(first, last + 1):
        largest = max(largest, cut[t])
        before[t] = largest
    best, largest = 1.0, 0.0
    for t in range(last, first - 1, -1):
        largest = max(largest, cut[t])
        if least_nodes <= t + 1 <= n - least_nodes:
            ratio = (min(before[t], largest) + least_cut) / (cut[t] + least_cut)
            best = max(best, ratio)
    return np.log(best)
