"""The null reference of graphs: random graphs with the same degrees (configuration model).

Any graph can be partitioned at a low enough price: the fewer links a node has, the lower is the
optimised cut even of a random graph. So random graphs with the same degrees go through the same
optimisation, and only that part of a plateau counts which lies at prices where they have fewer
clusters. It must be wider than such parts are in almost all of the random graphs themselves.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from countless._graph.corners import CUT_SEARCH, Steps, find_corners, steps
from countless._graph.moves import Graph


@dataclass(frozen=True)
class RandomGraphs:
    """Constants of the null reference; ``benchmarks/graph.py`` shows what they are worth."""

    # Number of random graphs, and that for a graph of few nodes, whose random graphs vary more.
    n_graphs: int = 24
    n_graphs_of_few: int = 96
    few_nodes: int = 100
    # Least number of nodes of a random graph, and its largest number of links, counted both ways.
    n_nodes: int = 128
    n_links: int = 5_000
    # Robust standard deviations above the median price of random graphs, for each k.
    deviations: float = 2.0
    # Significance level over all k: a plateau must exceed those of all random graphs but this
    # share.
    significance: float = 1 / 12
    # Self-loops and multiple links are rewired at most this many times.
    rewirings: int = 30


RANDOM_GRAPHS = RandomGraphs()


class NullPrices(NamedTuple):
    """The prices, in shares of the unit, above which random graphs have fewer than k clusters."""

    price: np.ndarray  # for k = 2, 3, ...
    share: float  # the nodes of a random graph per node of the graph itself
    firmness: float  # its null quantile, which a plateau must exceed

    def of(self, n_clusters: np.ndarray) -> np.ndarray:
        """Return the prices at which random graphs have as many clusters, relative to size."""
        at = np.ceil(n_clusters * self.share).astype(np.int64) - 2
        return self.price[np.clip(at, 0, len(self.price) - 1)]

    def firmness_of(self, found: Steps) -> np.ndarray:
        """Return the width of each step but the first above the null prices, in shares of the unit.

        It is multiplied by ``1 - 1 / k``: plateaus of few clusters are wider in any graph.
        """
        k = found.n_clusters[1:]
        firm = np.maximum(found.low[1:], self.of(k))
        return (found.high[1:] - firm) * (1 - 1 / k)


NO_NULL_PRICES = NullPrices(np.zeros(1), 1.0, 0.0)


def null_prices(graph: Graph) -> NullPrices:
    """Partition random graphs with the same degrees, and return the null reference.

    The seed is fixed, so that the null reference does not depend on a random state. Some random
    graphs have pieces attached by a single link, so the median and the median absolute deviation
    are used. For k above the largest found in a random graph its last price is used: the resolution
    of the search is no evidence for clusters.
    """
    random = np.random.RandomState(0)
    n_random = _n_random(graph)
    n_clusters = np.arange(2, max(3, n_random))
    is_small = graph.n_nodes < RANDOM_GRAPHS.few_nodes
    n_graphs = RANDOM_GRAPHS.n_graphs_of_few if is_small else RANDOM_GRAPHS.n_graphs
    shown = [_random_steps(graph, random) for _ in range(n_graphs)]
    prices = np.full((n_graphs, len(n_clusters)), CUT_SEARCH.lowest_price)
    for row, found in zip(prices, shown, strict=True):
        place = np.searchsorted(found.n_clusters, n_clusters)
        known = place < len(found.high)
        row[known] = found.high[place[known]]
        if len(found.high) > 1:
            row[~known] = found.high[-1]
    null = NullPrices(_beyond(prices), 1.0, 0.0)
    widest = [null.firmness_of(found).max(initial=0.0) for found in shown]
    quantile = float(np.sort(widest)[-round(RANDOM_GRAPHS.significance * n_graphs)])
    return NullPrices(null.price, n_random / graph.n_nodes, quantile)


def _n_random(graph: Graph) -> int:
    """Return the number of nodes of a random graph: more if nodes have fewer links."""
    enough = max(RANDOM_GRAPHS.n_nodes, RANDOM_GRAPHS.n_links * graph.n_nodes // len(graph.links))
    return min(graph.n_nodes, enough)


def _beyond(values: np.ndarray) -> np.ndarray:
    """Return the median of each column plus some robust standard deviations."""
    usual = np.median(values, axis=0)
    # The median absolute deviation, scaled to the standard deviation of a normal distribution.
    return usual + RANDOM_GRAPHS.deviations * 1.4826 * np.median(np.abs(values - usual), axis=0)


def _random_steps(graph: Graph, random: np.random.RandomState) -> Steps:
    shuffled = random_graph(graph, random)
    return steps(find_corners(shuffled, random), shuffled.unit)


def random_graph(graph: Graph, random: np.random.RandomState) -> Graph:
    """Rewire the links of a graph, or of a sample of its nodes, at random (configuration model)."""
    n = _n_random(graph)
    chosen = np.sort(random.choice(graph.n_nodes, n, replace=False))
    degree = np.diff(graph.indptr)[chosen]
    node = np.repeat(np.arange(n), degree)
    first = np.cumsum(degree) - degree
    link = np.arange(len(node)) - first[node] + graph.indptr[chosen][node]
    # A node of a sampled graph cannot have more neighbors than there are other nodes.
    kept = random.random_sample(len(node)) * degree[node] < n - 1
    order = random.permutation(np.flatnonzero(kept))
    a, b = order[: len(order) // 2], order[len(order) // 2 : len(order) // 2 * 2]
    for _ in range(RANDOM_GRAPHS.rewirings):
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
    # Every node keeps its ratio of weight to degree, for either cut.
    weight = out * (graph.weight / graph.out)[chosen][largest]
    indices = tied.indices.astype(np.int32)
    return Graph(tied.indptr.astype(np.int64), indices, tied.data, out, weight)
