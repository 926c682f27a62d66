"""Multilevel local search on a penalised cut: moves of nodes and of groups of nodes.

On one level, nodes change clusters one by one until no move gains. Groups of nodes are the nodes of
a coarser graph, whose moves change, merge and split clusters; whole clusters are the coarsest
level. The gain of every move is exact, so that the objective never increases.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np

from countless._compat import OnPass, ignore_pass
from countless.kernels.graph import join_nodes, move_nodes, sum_clusters

# Minimum gain of a move, as a share of the cut ratio of single nodes: less may be rounding.
LEAST_GAIN = 1e-10
ANYWHERE = np.empty(0, dtype=np.int32)
NONE = np.empty(0)


class Graph(NamedTuple):
    """Links both ways, without self-loops, in compressed sparse rows; every node has some."""

    indptr: np.ndarray  # (n_nodes + 1,) int64
    neighbor: np.ndarray  # (n_links,) int32
    links: np.ndarray  # (n_links,)
    out: np.ndarray  # (n_nodes,), the sum of each node's links
    weight: np.ndarray  # (n_nodes,), what the cut divides by

    @property
    def n_nodes(self) -> int:
        return len(self.out)

    @property
    def unit(self) -> float:
        """The cut ratio of single nodes, on average: 1 for the normalised cut without loops."""
        return float(self.out.sum() / self.weight.sum())

    def joined(self, labels: np.ndarray) -> Graph:
        """Return the graph whose nodes are the clusters."""
        rows = (self.indptr, self.neighbor, self.links)
        return Graph(*join_nodes(*rows, self.weight, labels, labels.max() + 1))


class Clusters:
    """The clusters of a graph's nodes, with the sums from which the objective is computed."""

    def __init__(self, graph: Graph, labels: np.ndarray | None = None):
        n = graph.n_nodes
        self.graph = graph
        if labels is None:
            self.labels = np.arange(n, dtype=np.int32)
            self.out, self.weight = graph.out.copy(), graph.weight.copy()
            self.count = np.ones(n, dtype=np.int32)
        else:
            self.labels = labels.astype(np.int32)
            self.out, self.weight = np.empty(n), np.empty(n)
            self.count = np.empty(n, dtype=np.int32)
            rows = (graph.indptr, graph.neighbor, graph.links)
            sum_clusters(*rows, graph.weight, self.labels, self.out, self.weight, self.count)

    @property
    def n_clusters(self) -> int:
        return int(np.count_nonzero(self.count))

    def cut(self) -> float:
        """Return the sum of the clusters' cut ratios."""
        used = self.count > 0
        return float((self.out[used] / self.weight[used]).sum())

    def objective(self, penalty: float) -> float:
        return self.cut() + penalty * self.n_clusters

    def compact(self) -> np.ndarray:
        """Return the labels renumbered consecutively."""
        number = np.cumsum(self.count > 0, dtype=np.int32) - 1
        return number[self.labels]

    def move(
        self,
        random: np.random.RandomState,
        unit: float,
        *,
        penalty: float = 0.0,
        crowding: np.ndarray = NONE,
        pen: np.ndarray = ANYWHERE,
    ) -> int:
        """Move nodes, in random order, until none gains; return how many moves were made.

        With ``crowding`` the objective is not the penalised cut but an additive one, as modularity
        is: the links between clusters plus ``crowding`` times the squared weight of each cluster.
        With ``pen`` nodes only join clusters with the same value of ``pen``.
        """
        queue = random.permutation(self.graph.n_nodes).astype(np.int32)
        least_gain = LEAST_GAIN * (1.0 if len(crowding) else unit)
        sums = (self.labels, self.out, self.weight, self.count)
        return move_nodes(*self.graph, penalty, crowding, pen, least_gain, queue, *sums)


class Partition(NamedTuple):
    """Clusters of the nodes, the objective after each pass, and whether it converged."""

    labels: np.ndarray  # (n_nodes,), consecutive
    cut: float
    n_clusters: int
    history: list[float]
    converged: bool


def dense_groups(
    graph: Graph, resolution: float, random: np.random.RandomState
) -> tuple[np.ndarray, Graph]:
    """Find groups of nodes with more links inside than ``resolution`` times the expected number.

    Unlike a cut, which is a sum of ratios, this objective is additive (as modularity): single nodes
    can join a large group directly, without intermediate pairs and triples.

    Returns
    -------
    group : ndarray of int
        The group of each node.
    graph : Graph
        The graph of the groups.
    """
    unit, total = graph.unit, graph.weight.sum()
    return _climb(graph, random, unit, crowding=np.full(graph.n_nodes, resolution * unit / total))


def regroup(
    graph: Graph, labels: np.ndarray, crowding: float, random: np.random.RandomState
) -> np.ndarray:
    """Merge clusters, and clusters of clusters, as long as that gains; return the new labels."""
    joined = graph.joined(labels)
    group, _ = _climb(joined, random, graph.unit, crowding=np.full(joined.n_nodes, crowding))
    return group[labels]


def _climb(
    graph: Graph,
    random: np.random.RandomState,
    unit: float,
    *,
    penalty: float = 0.0,
    crowding: np.ndarray = NONE,
    pen: np.ndarray = ANYWHERE,
) -> tuple[np.ndarray, Graph]:
    """Move single nodes, then the groups they form, until no group moves (as in Louvain)."""
    group = np.arange(graph.n_nodes, dtype=np.int32)
    while True:
        parts = Clusters(graph)
        if not parts.move(random, unit, penalty=penalty, crowding=crowding, pen=pen):
            return group, graph
        labels = parts.compact()
        group = labels[group]
        graph = graph.joined(labels)
        crowding, pen = (_of_groups(value, labels) for value in (crowding, pen))


def _of_groups(values: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Return the value that the nodes of each group share."""
    if not len(values):
        return values
    shared = np.empty(labels.max() + 1, dtype=values.dtype)
    shared[labels] = values
    return shared


def lower_objective(
    graph: Graph,
    labels: np.ndarray,
    penalty: float,
    random: np.random.RandomState,
    *,
    groups: np.ndarray | None = None,
    tol: float = 0.0,
    max_iter: int = 100,
    on_pass: OnPass = ignore_pass,
) -> Partition:
    """Lower the penalised cut from a given clustering until no move on any level gains.

    Parameters
    ----------
    graph : Graph
    labels : ndarray of int
        The initial clusters.
    penalty : float
        The penalty of one cluster, usually negative.
    random : RandomState
        The order in which nodes are visited.
    groups : ndarray of int, optional
        Groups of nodes that are likely to move together; they are tried first.
    tol : float
        Stop when moving parts of clusters gains less than this share of the objective; 0 continues
        until no move gains.
    max_iter : int
        Maximum number of passes.
    on_pass : callable
        Called with the objective and the number of clusters after each pass.
    """
    unit = graph.unit
    clusters = Clusters(graph, labels)
    history = [clusters.objective(penalty)]

    def note(found: Clusters) -> None:
        # Sums updated by moves and sums computed from scratch differ by rounding.
        history.append(min(history[-1], found.objective(penalty)))
        on_pass(history[-1], found.n_clusters)

    kinds = [_dense_parts, _cut_parts]
    if groups is not None:
        kinds.insert(0, partial(_known_parts, groups))
    idle = 0  # consecutive rounds without gain, one with each kind of parts
    while len(history) <= max_iter and idle < len(kinds):
        before = history[-1]
        clusters.move(random, unit, penalty=penalty)
        labels = clusters.compact()
        # Moves of whole clusters merge them; moves of parts also split them.
        labels = _move_groups(graph, labels, labels, penalty, unit, random)
        note(Clusters(graph, labels))
        settled = history[-1]
        parts = kinds[0](Clusters(graph, labels), penalty, unit, random)
        labels = _move_groups(graph, parts, labels, penalty, unit, random)
        clusters = Clusters(graph, labels)
        note(clusters)
        idle = idle + 1 if before - history[-1] <= LEAST_GAIN * unit else 0
        if tol and settled - history[-1] <= tol * abs(settled):
            break
        kinds = [*kinds[1:], kinds[0]]
    converged = len(history) <= max_iter
    return Partition(clusters.compact(), clusters.cut(), clusters.n_clusters, history, converged)


def _move_groups(graph, group, labels, penalty, unit, random) -> np.ndarray:
    """Move groups of nodes between clusters; return the clusters of the nodes."""
    moved = Clusters(graph.joined(group), _of_groups(labels, group))
    moved.move(random, unit, penalty=penalty)
    return moved.compact()[group]


def _known_parts(groups: np.ndarray, clusters: Clusters, penalty, unit, random) -> np.ndarray:
    """Return the intersections of groups and clusters."""
    pairs = groups.astype(np.int64) * clusters.n_clusters + clusters.labels
    return np.unique(pairs, return_inverse=True)[1].astype(np.int32)


def _dense_parts(clusters: Clusters, penalty, unit, random) -> np.ndarray:
    """Return parts of clusters that are denser than the cluster."""
    k = clusters.n_clusters
    inside = np.bincount(clusters.labels, clusters.graph.out) - clusters.out[:k]
    density = inside / clusters.weight[:k] ** 2
    # Parts that are half as dense again are tried as separate clusters.
    crowding = (1.5 * density)[clusters.labels]
    return _climb(clusters.graph, random, unit, crowding=crowding, pen=clusters.labels)[0]


def _cut_parts(clusters: Clusters, penalty, unit, random) -> np.ndarray:
    """Return parts of clusters found by minimising the penalised cut inside each cluster."""
    return _climb(clusters.graph, random, unit, penalty=penalty, pen=clusters.labels)[0]
