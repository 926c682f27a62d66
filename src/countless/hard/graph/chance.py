"""What random graphs show: how many clusters a clever cut finds where there are none.

Any graph can be cut at a low enough price: the fewer links a node has, the more of them a clever
cut of even a random graph can spare. So random graphs with the same degrees go through the same
steps, and a plateau counts only as far as it lies at prices where they have fewer clusters. How far
the plateaus of lucky random graphs go beyond what is usual for them is what a plateau must exceed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from countless.hard.graph.corners import SHARES, Steps, find_corners, steps
from countless.hard.graph.moves import Graph

# Random graphs: how many, and how many for a graph of few nodes, whose random graphs differ more.
N_RANDOM = 24
N_RANDOM_OF_FEW, FEW_NODES = 96, 100
# The nodes of each at least, and its links, both ways, at most.
RANDOM_NODES = 128
RANDOM_LINKS = 5_000
# Deviations beyond the usual that chance may go at one number of clusters.
DEVIATIONS = 2.0
# Of all numbers, a plateau must beat those of all random graphs but this share: if the graph was
# one of them, that would happen about as often.
LUCKY = 1 / 12
# Links from a node to itself, or to the same node twice, are tied anew so many times.
RETIES = 30


class Chance(NamedTuple):
    """The prices, as shares of the unit, that keep random graphs below 2, 3, ... clusters."""

    price: np.ndarray
    share: float  # the nodes of a random graph per node of the graph itself
    luck: float  # what a plateau must exceed beyond these prices

    def of(self, n_clusters: np.ndarray) -> np.ndarray:
        """Return the prices at which random graphs have as many clusters for their size."""
        at = np.ceil(n_clusters * self.share).astype(np.int64) - 2
        return self.price[np.clip(at, 0, len(self.price) - 1)]

    def firmness(self, found: Steps) -> np.ndarray:
        """Return how wide each step but the first is beyond chance, in shares of the unit.

        The width counts for ``1 - 1 / k`` of itself: few clusters are wide by nature.
        """
        k = found.n_clusters[1:]
        firm = np.maximum(found.low[1:], self.of(k))
        return (found.high[1:] - firm) * (1 - 1 / k)


NO_CHANCE = Chance(np.zeros(1), 1.0, 0.0)


def random_chance(graph: Graph) -> Chance:
    """Cut random graphs with the same degrees, and tell what it takes.

    They are the same whenever this is asked, so that no seed decides what counts as chance.
    Some of them have pieces that hang by a single link; the median and the median deviation tell
    what is usual. Numbers of clusters beyond the most that were found in one are taken to be there
    at the same price: how fine the search goes is no sign of clusters.
    """
    random = np.random.RandomState(0)
    n_random = _n_random(graph)
    n_clusters = np.arange(2, max(3, n_random))
    n_graphs = N_RANDOM_OF_FEW if graph.n_nodes < FEW_NODES else N_RANDOM
    shown = [_random_steps(graph, random) for _ in range(n_graphs)]
    prices = np.full((n_graphs, len(n_clusters)), SHARES[-1])
    for row, found in zip(prices, shown, strict=True):
        place = np.searchsorted(found.n_clusters, n_clusters)
        known = place < len(found.high)
        row[known] = found.high[place[known]]
        if len(found.high) > 1:
            row[~known] = found.high[-1]
    chance = Chance(_beyond(prices), 1.0, 0.0)
    lucky = [chance.firmness(found).max(initial=0.0) for found in shown]
    luck = float(np.sort(lucky)[-round(LUCKY * n_graphs)])
    return Chance(chance.price, n_random / graph.n_nodes, luck)


def _n_random(graph: Graph) -> int:
    """Return how many nodes a random graph has: the fewer links each, the more."""
    enough = max(RANDOM_NODES, RANDOM_LINKS * graph.n_nodes // len(graph.links))
    return min(graph.n_nodes, enough)


def _beyond(values: np.ndarray) -> np.ndarray:
    """Return the median of each column and some deviations more."""
    usual = np.median(values, axis=0)
    # The median deviation, in units of the standard one of a bell.
    return usual + DEVIATIONS * 1.4826 * np.median(np.abs(values - usual), axis=0)


def _random_steps(graph: Graph, random: np.random.RandomState) -> Steps:
    shuffled = random_graph(graph, random)
    return steps(find_corners(shuffled, random), shuffled.unit)


def random_graph(graph: Graph, random: np.random.RandomState) -> Graph:
    """Tie the ends of a graph's links, or those at some of its nodes, together at random."""
    n = _n_random(graph)
    chosen = np.sort(random.choice(graph.n_nodes, n, replace=False))
    degree = np.diff(graph.indptr)[chosen]
    node = np.repeat(np.arange(n), degree)
    first = np.cumsum(degree) - degree
    link = np.arange(len(node)) - first[node] + graph.indptr[chosen][node]
    # A node of a small graph cannot have more neighbors than there are other nodes.
    kept = random.random_sample(len(node)) * degree[node] < n - 1
    order = random.permutation(np.flatnonzero(kept))
    a, b = order[: len(order) // 2], order[len(order) // 2 : len(order) // 2 * 2]
    for _ in range(RETIES):
        pair = np.minimum(node[a], node[b]) * n + np.maximum(node[a], node[b])
        again = np.ones(len(pair), dtype=bool)
        again[np.unique(pair, return_index=True)[1]] = False
        again |= node[a] == node[b]
        if not again.any():
            break
        mixed = again | (random.random_sample(len(pair)) < 2 * again.mean())
        b[mixed] = random.permutation(b[mixed])
    apart = node[a] != node[b]
    a, b = a[apart], b[apart]
    links = (graph.links[link[a]] + graph.links[link[b]]) / 2
    tied = sp.coo_array((links, (node[a], node[b])), shape=(n, n)).tocsr()
    tied = (tied + tied.T).tocsr()
    component = connected_components(tied, directed=False)[1]
    largest = np.flatnonzero(component == np.bincount(component).argmax())
    tied = tied[largest][:, largest].tocsr()
    out = np.asarray(tied.sum(axis=1)).ravel()
    # Every node keeps its ratio of weight to links, whatever the cut divides by.
    weight = out * (graph.weight / graph.out)[chosen][largest]
    indices = tied.indices.astype(np.int32)
    return Graph(tied.indptr.astype(np.int64), indices, tied.data, out, weight)
