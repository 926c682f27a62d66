"""Clusterings of a graph that are optimal at some price, from few clusters to many.

Merging a and b changes the cut by ``out_ab / w_ab - out_a / w_a - out_b / w_b``, which is never
below ``-unit`` by much and never above 0. The *price* of a merge is that change plus ``unit``, the
cut ratio of single nodes: a merge lowers the penalised cut when its price is below ``unit +
penalty``. So prices correspond to the penalties of tables: they are positive, and lower prices give
more clusters.

Clusterings are searched at several prices between 0 and ``unit``. Which of these are optimal, and
on which interval of prices, follows from cut and number of clusters alone: they are the vertices of
the lower convex hull of all (k, cut) found.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from countless._graph.moves import Clusters, Graph, dense_groups
from countless._path.ward import WardTree
from countless.kernels.graph import merge_linked


@dataclass(frozen=True)
class CutSearch:
    """Constants of the search; ``benchmarks/graph.py`` shows what they are worth."""

    # Prices at which clusterings are searched, as shares of the unit: a geometric sequence.
    highest_price: float = 0.97
    lowest_price: float = 0.05
    n_prices: int = 20
    # Resolutions (as in modularity) of the dense groups from which clusterings of a small graph
    # start.
    resolutions: tuple[float, ...] = (3.0, 10.0, 30.0)
    # Above this many links only groups of nodes are moved, at a single resolution: at least this
    # one, and fine enough to separate clusters of this many nodes.
    fine_links: int = 50_000
    least_resolution: float = 10.0
    smallest_cluster: int = 13

    @property
    def prices(self) -> np.ndarray:
        """The prices, highest first."""
        return np.geomspace(self.highest_price, self.lowest_price, self.n_prices)


CUT_SEARCH = CutSearch()


class Corner(NamedTuple):
    """A clustering that is optimal at some prices: a vertex of the hull."""

    n_clusters: int
    cut: float
    labels: np.ndarray
    groups: np.ndarray | None = None  # the dense groups of nodes that it was made of


class Steps(NamedTuple):
    """The number of clusters on each interval of prices; the first is one per component."""

    n_clusters: np.ndarray
    low: np.ndarray
    high: np.ndarray


def steps(corners: list[Corner], unit: float) -> Steps:
    """Return the interval of prices, as shares of the unit, on which each clustering is optimal."""
    slopes = np.array([_slope(few, many) for few, many in pairwise(corners)])
    ends = np.concatenate([[1.0], 1 - slopes / unit])
    ends = np.append(ends, min(ends[-1], CUT_SEARCH.lowest_price))
    return Steps(np.array([corner.n_clusters for corner in corners]), ends[1:], ends[:-1])


def find_corners(graph: Graph, random: np.random.RandomState) -> list[Corner]:
    """Return the clusterings that are optimal at some price, from few clusters to many."""
    unit = graph.unit
    fine = len(graph.links) <= CUT_SEARCH.fine_links
    best: dict[int, Corner] = {}
    for resolution in _resolutions(graph):
        group, coarse = dense_groups(graph, resolution, random)
        tree = merge_tree(coarse, unit)
        level, member = (graph, group) if fine else (coarse, np.arange(coarse.n_nodes))
        for price in CUT_SEARCH.prices * unit:
            clusters = Clusters(level, _cut_tree(tree, price)[member])
            clusters.move(random, unit, penalty=price - unit)
            k, cut = clusters.n_clusters, clusters.cut()
            if k not in best or cut < best[k].cut:
                labels = clusters.compact()
                best[k] = Corner(k, cut, labels if fine else labels[group], group)
    n_whole, whole = connected_components(_as_matrix(graph), directed=False)
    hull = hull_of([Corner(n_whole, 0.0, whole), *(best[k] for k in sorted(best) if k > n_whole)])
    # The largest increase of the cut per cluster, at the lowest price.
    most = (1 - CUT_SEARCH.lowest_price) * unit
    return hull[:1] + [many for few, many in pairwise(hull) if _slope(few, many) < most]


def merge_tree(graph: Graph, unit: float) -> WardTree:
    """Merge the linked clusters that lower the cut most; components are merged last.

    Parameters
    ----------
    graph : Graph
        The nodes, which may be groups of nodes of another graph.
    unit : float
        The cut ratio of that graph's single nodes.

    Returns
    -------
    WardTree
        With the price of each merge as its cost.

    Examples
    --------
    >>> import numpy as np
    >>> pair = np.array([1.0, 1.0])
    >>> graph = Graph(np.array([0, 1, 2]), np.array([1, 0], dtype=np.int32), pair, pair, pair)
    >>> merge_tree(graph, graph.unit).children.tolist()
    [[0, 1]]
    """
    n = graph.n_nodes
    children = np.empty((n - 1, 2), dtype=np.int64)
    change = np.zeros(n - 1)  # merging whole components does not change the cut
    n_linked = merge_linked(*graph, children, change)
    roots = np.setdiff1d(np.arange(n + n_linked), children[:n_linked])
    for step, root in enumerate(roots[1:], start=n_linked):
        children[step] = sorted((roots[0] if step == n_linked else n + step - 1, root))
    return WardTree(children, unit + change)


def starts_at(
    graph: Graph, price: float, random: np.random.RandomState
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return initial clusterings for a price, each with the dense groups it consists of."""
    starts = []
    for resolution in _resolutions(graph):
        group, coarse = dense_groups(graph, resolution, random)
        starts.append((_cut_tree(merge_tree(coarse, graph.unit), price)[group], group))
    return starts


def _cut_tree(tree: WardTree, price: float) -> np.ndarray:
    return tree.cut(int(np.searchsorted(tree.height, price, side="right")))


def _resolutions(graph: Graph) -> tuple[float, ...]:
    """Return the resolutions of the dense groups that clusters consist of."""
    if len(graph.links) <= CUT_SEARCH.fine_links:
        return CUT_SEARCH.resolutions
    links_a_node = len(graph.links) / graph.n_nodes
    finest = graph.n_nodes / (CUT_SEARCH.smallest_cluster**2 * links_a_node)
    return (max(CUT_SEARCH.least_resolution, finest),)


def hull_of(points: list[Corner]) -> list[Corner]:
    """Keep the clusterings that are optimal at some price: the vertices of the lower hull."""
    hull = points[:1]
    for point in points[1:]:
        while len(hull) > 1 and _slope(hull[-2], hull[-1]) >= _slope(hull[-1], point):
            hull.pop()
        hull.append(point)
    return hull


def _slope(few: Corner, many: Corner) -> float:
    return (many.cut - few.cut) / (many.n_clusters - few.n_clusters)


def _as_matrix(graph: Graph) -> sp.csr_array:
    shape = (graph.n_nodes, graph.n_nodes)
    return sp.csr_array((graph.links, graph.neighbor, graph.indptr), shape=shape)
