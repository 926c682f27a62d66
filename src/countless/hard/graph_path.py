"""Choosing the penalty of a graph: k for every penalty, and the plateau that stands out.

The *price* ``unit + penalty`` of a cluster runs from 0 to ``unit`` (see `graph_tree`). Clusterings
are sought at some prices between; each is best on an interval of prices, which follows from its cut
and its number of clusters alone: it is a corner of the hull of all (k, cut) found.

Any graph can be cut at a low enough price: the fewer links a node has, the more of them a clever
cut of even a random graph can spare. So random graphs with the same degrees go through the same
steps, and only prices at which they stay whole say something about structure.
"""

from __future__ import annotations

from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from countless._labels import number_by_appearance
from countless.hard.graph_moves import Clusters, Graph, dense_groups
from countless.hard.graph_tree import merge_tree
from countless.hard.penalty import Plateau
from countless.hard.ward import WardTree

# Prices at which clusterings are sought, as shares of the unit.
SHARES = np.geomspace(0.97, 0.05, 20)
# How much denser than chance the groups are that clusterings of a small graph are made of.
RESOLUTIONS = (3.0, 10.0, 30.0)
# Beyond so many links nodes are moved in groups only, from one set of groups ...
FINE_LINKS = 50_000
# ... which are fine enough to keep clusters of so many nodes apart.
SMALLEST_CLUSTER = 13
# Random graphs: how many, how many nodes at most, and how far beyond their mean chance may go.
N_RANDOM = 24
RANDOM_NODES = 256
DEVIATIONS = 2.0
# Links from a node to itself, or to the same node twice, are tied anew so many times.
RETIES = 30


class Corner(NamedTuple):
    """A clustering that is best at some prices."""

    n_clusters: int
    cut: float
    labels: np.ndarray


class GraphPath:
    """Clusters, objective and labels of a graph at every penalty.

    Attributes
    ----------
    breakpoints : ndarray
        Penalties at which the number of clusters changes, ascending.
    plateaus : list of Plateau
        The chosen one, then the others by score. Their width is the logarithm of the ratio of the
        prices ``unit + penalty`` at both ends; the part at prices where random graphs of the same
        degrees are cut as well does not count, nor does a width that such graphs show at that
        number of clusters. One cluster for each component has no upper end, so its score is what
        the best of the others lacks. Of scores within a fifth of the best the fewest clusters are
        chosen.
    penalty, n_clusters : float, int
        Those of the chosen plateau.
    confidence : float
        From 0 (a tie) to 1 (no rival), as for a `PenaltyPath`.
    unit : float
        The cut ratio of single nodes: useful penalties lie between minus this and 0.
    """

    def __init__(self, corners: list[Corner], unit: float, chance: float, linked: np.ndarray):
        self.unit = unit
        self._corners = corners
        self._linked = linked
        self._n_alone = int(np.count_nonzero(~linked))
        k = np.array([corner.n_clusters for corner in corners])
        cut = np.array([corner.cut for corner in corners])
        # At these prices a corner and the next, which has more clusters, cost the same.
        self._prices = unit - np.diff(cut) / np.diff(k)
        self._chance = chance * unit

    def __repr__(self) -> str:
        return (
            f"GraphPath(n_clusters={self.n_clusters}, penalty={self.penalty:.6g}, "
            f"confidence={self.confidence:.2f})"
        )

    @property
    def breakpoints(self) -> np.ndarray:
        return self._prices[::-1] - self.unit

    def n_clusters_at(self, penalty: float) -> int:
        """Return how many clusters a penalty gives."""
        corner = self._corner_at(penalty)
        return 1 if corner is None else corner.n_clusters + self._n_alone

    def objective_at(self, penalty: float) -> float:
        """Return the cut plus the penalty for each cluster."""
        corner = self._corner_at(penalty)
        cut = 0.0 if corner is None else corner.cut
        return cut + penalty * self.n_clusters_at(penalty)

    def labels_at(self, penalty: float) -> np.ndarray:
        """Return the cluster of each node at a penalty, numbered by first appearance."""
        corner = self._corner_at(penalty)
        if corner is None:
            return np.zeros(len(self._linked), dtype=np.int32)
        return spread_labels(corner.labels, self._linked)

    def penalty_for(self, n_clusters: int) -> float:
        """Return a penalty amid those that give this many clusters."""
        for place, corner in enumerate(self._corners):
            if corner.n_clusters + self._n_alone == n_clusters:
                low, high = self._ends(place)
                # Where a random graph would be cut as well, so may be this one, given more time.
                firm = max(low, min(self._chance, high))
                amid = np.sqrt((firm if firm < high else low) * high)
                return float(min(amid, 0.999 * self.unit)) - self.unit
        found = sorted(corner.n_clusters + self._n_alone for corner in self._corners)
        raise ValueError(f"n_clusters={n_clusters} is not on the path, which has {found}")

    @cached_property
    def plateaus(self) -> list[Plateau]:
        found = []
        for place in range(1, len(self._corners) - 1):
            low, high = self._ends(place)
            k = self._corners[place].n_clusters
            width = float(np.log(high / low))
            firm = float(np.log(high / max(low, self._chance))) * (1 - 1 / k)
            ends = (low - self.unit, high - self.unit)
            found.append(Plateau(k + self._n_alone, *ends, width, width - firm, firm))
        lacking = -max((plateau.score for plateau in found), default=-np.inf)
        whole = self._corners[0].n_clusters + self._n_alone
        low = self._ends(0)[0] - self.unit
        one = Plateau(whole, low, 0.0, np.inf, np.inf, lacking)
        return sorted([one, *found], key=lambda plateau: -plateau.score)

    @property
    def n_clusters(self) -> int:
        return self.plateaus[0].n_clusters

    @property
    def penalty(self) -> float:
        return self.penalty_for(self.n_clusters)

    @property
    def confidence(self) -> float:
        best, *others = self.plateaus
        if not others:
            return 1.0
        if not np.isfinite(best.width):
            return 1.0 - max(other.width / other.null_width for other in others)
        rival = max(other.score for other in others) / best.score
        return max(0.0, 1.0 - max(best.null_width / best.width, rival))

    def _corner_at(self, penalty: float) -> Corner | None:
        """Return the best clustering at a penalty; None is one cluster for all."""
        if penalty >= 0:
            return None
        return self._corners[int(np.count_nonzero(self._prices > self.unit + penalty))]

    def _ends(self, place: int) -> tuple[float, float]:
        """Return the lowest and the highest price of a corner."""
        lowest = SHARES[-1] * self.unit
        ends = np.concatenate([[self.unit], self._prices, [lowest]])
        return float(ends[place + 1]), float(ends[place])


def spread_labels(labels: np.ndarray, linked: np.ndarray) -> np.ndarray:
    """Return labels for all nodes, those without links alone, numbered by first appearance."""
    full = np.empty(len(linked), dtype=np.int64)
    full[linked] = labels
    n_clusters = int(labels.max()) + 1 if len(labels) else 0
    full[~linked] = n_clusters + np.arange(np.count_nonzero(~linked))
    return number_by_appearance(full)[1]


def graph_path(graph: Graph, linked: np.ndarray, random: np.random.RandomState) -> GraphPath:
    """Find what every penalty gives, and the plateau that stands out.

    Parameters
    ----------
    graph : Graph
        The nodes that have links.
    linked : ndarray of bool
        Which nodes of the whole graph these are.
    random : RandomState
        The order of visits, and the random graphs.
    """
    corners = find_corners(graph, random)
    chance = random_chance(graph, random) if len(corners) > 1 else 0.0
    return GraphPath(corners, graph.unit, chance, linked)


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
                best[k] = Corner(k, cut, labels if fine else labels[group])
    n_whole, whole = connected_components(_as_matrix(graph), directed=False)
    hull = _hull([Corner(n_whole, 0.0, whole), *(best[k] for k in sorted(best) if k > n_whole)])
    most = (1 - SHARES[-1]) * unit  # what a cluster may add to the cut at the lowest price
    return hull[:1] + [many for few, many in pairwise(hull) if _slope(few, many) < most]


def cuts_at_price(graph: Graph, price: float, random: np.random.RandomState) -> list[np.ndarray]:
    """Return clusterings that are a good start at a price."""
    cuts = []
    for resolution in _resolutions(graph):
        group, coarse = dense_groups(graph, resolution, random)
        cuts.append(_cut_tree(merge_tree(coarse, graph.unit), price)[group])
    return cuts


def _cut_tree(tree: WardTree, price: float) -> np.ndarray:
    return tree.cut(int(np.searchsorted(tree.height, price, side="right")))


def _resolutions(graph: Graph) -> tuple[float, ...]:
    """Return how many times denser than chance the groups should be that clusters are made of."""
    if len(graph.links) <= FINE_LINKS:
        return RESOLUTIONS
    links_a_node = len(graph.links) / graph.n_nodes
    finest = graph.n_nodes / (SMALLEST_CLUSTER**2 * links_a_node)
    return (max(RESOLUTIONS[1], finest),)


def _hull(points: list[Corner]) -> list[Corner]:
    """Keep the clusterings that are best at some price: the corners of the lower hull."""
    hull = points[:1]
    for point in points[1:]:
        while len(hull) > 1 and _slope(hull[-2], hull[-1]) >= _slope(hull[-1], point):
            hull.pop()
        hull.append(point)
    return hull


def _slope(few: Corner, many: Corner) -> float:
    return (many.cut - few.cut) / (many.n_clusters - few.n_clusters)


def random_chance(graph: Graph, random: np.random.RandomState) -> float:
    """Return the price, as a share of the unit, at which random graphs of these degrees stay whole.

    A few random graphs have a piece that hangs by a single link; the median and the median
    deviation tell what is usual.
    """
    first = []
    for _ in range(N_RANDOM):
        shuffled = random_graph(graph, random)
        corners = find_corners(shuffled, random)
        whole = len(corners) == 1
        first.append(0.0 if whole else 1 - _slope(*corners[:2]) / shuffled.unit)
    usual = np.median(first)
    deviation = 1.4826 * np.median(np.abs(first - usual))  # the standard one, for a bell
    return float(usual + DEVIATIONS * deviation)


def random_graph(graph: Graph, random: np.random.RandomState) -> Graph:
    """Tie the ends of a graph's links, or those at some of its nodes, together at random."""
    n = min(graph.n_nodes, RANDOM_NODES)
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
    # What a node weighs beside its links, such as a loop, it keeps.
    ratio = (graph.weight / graph.out)[chosen][largest]
    same = np.allclose(ratio, ratio[0])
    weight = out * ratio if same else graph.weight[chosen][largest]
    indices = tied.indices.astype(np.int32)
    return Graph(tied.indptr.astype(np.int64), indices, tied.data, out, weight)


def _as_matrix(graph: Graph) -> sp.csr_array:
    shape = (graph.n_nodes, graph.n_nodes)
    return sp.csr_array((graph.links, graph.neighbor, graph.indptr), shape=shape)
