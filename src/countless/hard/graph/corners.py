"""Clusterings of a graph that are best at some price, from few clusters to many.

The *price* ``unit + penalty`` of a cluster runs from 0 to ``unit`` (see `graph_tree`). Clusterings
are sought at some prices between; each is best on an interval of prices, which follows from its cut
and its number of clusters alone: it is a corner of the lower hull of all (k, cut) found.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from countless.hard.graph.moves import Clusters, Graph, dense_groups
from countless.hard.graph.tree import merge_tree
from countless.hard.ward import WardTree

# Prices at which clusterings are sought, as shares of the unit.
SHARES = np.geomspace(0.97, 0.05, 20)
# How much denser than chance the groups are that clusterings of a small graph are made of.
RESOLUTIONS = (3.0, 10.0, 30.0)
# Beyond so many links nodes are moved in groups only, from one set of groups ...
FINE_LINKS = 50_000
# ... which are fine enough to keep clusters of so many nodes apart.
SMALLEST_CLUSTER = 13


class Corner(NamedTuple):
    """A clustering that is best at some prices."""

    n_clusters: int
    cut: float
    labels: np.ndarray
    groups: np.ndarray | None = None  # the dense groups of nodes that it was made of


class Steps(NamedTuple):
    """How many clusters each stretch of prices gives; the first, one a component, has no end."""

    n_clusters: np.ndarray
    low: np.ndarray
    high: np.ndarray


def steps(corners: list[Corner], unit: float) -> Steps:
    """Return the prices, as shares of the unit, between which each clustering is best."""
    slopes = np.array([_slope(few, many) for few, many in pairwise(corners)])
    ends = np.concatenate([[1.0], 1 - slopes / unit])
    ends = np.append(ends, min(ends[-1], SHARES[-1]))
    return Steps(np.array([corner.n_clusters for corner in corners]), ends[1:], ends[:-1])


def find_corners(graph: Graph, random: np.random.RandomState) -> list[Corner]:
    """Return the clusterings that are best at some price, from few clusters to many."""
    unit = graph.unit
    fine = len(graph.links) <= FINE_LINKS
    best: dict[int, Corner] = {}
    for resolution in _resolutions(graph):
        group, coarse = dense_groups(graph, resolution, random)
        tree = merge_tree(coarse, unit)
        level, member = (graph, group) if fine else (coarse, np.arange(coarse.n_nodes))
        for price in SHARES * unit:
            clusters = Clusters(level, _cut_tree(tree, price)[member])
            clusters.move(random, unit, penalty=price - unit)
            k, cut = clusters.n_clusters, clusters.cut()
            if k not in best or cut < best[k].cut:
                labels = clusters.compact()
                best[k] = Corner(k, cut, labels if fine else labels[group], group)
    n_whole, whole = connected_components(_as_matrix(graph), directed=False)
    hull = hull_of([Corner(n_whole, 0.0, whole), *(best[k] for k in sorted(best) if k > n_whole)])
    most = (1 - SHARES[-1]) * unit  # what a cluster may add to the cut at the lowest price
    return hull[:1] + [many for few, many in pairwise(hull) if _slope(few, many) < most]


def starts_at(
    graph: Graph, price: float, random: np.random.RandomState
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return clusterings that are a good start at a price, each with the groups it is made of."""
    starts = []
    for resolution in _resolutions(graph):
        group, coarse = dense_groups(graph, resolution, random)
        starts.append((_cut_tree(merge_tree(coarse, graph.unit), price)[group], group))
    return starts


def _cut_tree(tree: WardTree, price: float) -> np.ndarray:
    return tree.cut(int(np.searchsorted(tree.height, price, side="right")))


def _resolutions(graph: Graph) -> tuple[float, ...]:
    """Return how many times denser than chance the groups should be that clusters are made of."""
    if len(graph.links) <= FINE_LINKS:
        return RESOLUTIONS
    links_a_node = len(graph.links) / graph.n_nodes
    finest = graph.n_nodes / (SMALLEST_CLUSTER**2 * links_a_node)
    return (max(RESOLUTIONS[1], finest),)


def hull_of(points: list[Corner]) -> list[Corner]:
    """Keep the clusterings that are best at some price: the corners of the lower hull."""
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
