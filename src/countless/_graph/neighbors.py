"""Nearest-neighbour graphs of points: detection, null reference, and clusters between necks.

Nearby points have common neighbours, so such a graph has a high clustering coefficient everywhere,
and random graphs with the same degrees, which have hardly any triangles, are no suitable null
reference. Its null reference are neighbour graphs of clouds without clusters, with the same number
of neighbours and the same intrinsic dimension.

The test is local: two clusters are separated by a *neck*, whose depth is the log ratio of the cut
just inside them to the cut between them (see `countless._spectral.necks`). The null depth
depends on the number of neighbours and on the dimension, and hardly on the number of nodes. A
component is cut only at its necks that are deeper than that.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.neighbors import NearestNeighbors

from countless._graph.corners import Corner, hull_of
from countless._graph.moves import Clusters, Graph
from countless._spectral.necks import NECK_TEST, Necks, merge_pieces


@dataclass(frozen=True)
class Detection:
    """What is taken for a neighbour graph; ``tests/graph/test_neighbors.py`` has graphs of both."""

    # The degree distribution ends abruptly: at the least (or largest) degree there are at least
    # this many nodes, as a count and as a share, and at least this share of those at the adjacent
    # degree. Other graphs have thin tails.
    end_nodes: int = 5
    end_share: float = 1 / 200
    end_ratio: float = 1 / 4
    # The least share of links to neighbours that are mutual. Graphs of preferential attachment have
    # a least degree too, but hardly any mutual links. In 50 dimensions 0.3 are.
    least_mutual: float = 0.1
    # Bounds on the clustering coefficient: above that expected from the degrees alone, by this
    # factor; and not above that of points on a line, 3/4, or slightly more at its ends. Cliques
    # have more.
    more_than_degrees: float = 1.2
    most_clustering: float = 0.8
    # Nodes from which the clustering coefficient is estimated.
    sampled_nodes: int = 2000


@dataclass(frozen=True)
class CloudGraphs:
    """Constants of the null reference; ``benchmarks/graph.py`` shows what they are worth."""

    # Candidate dimensions, the number of each kind, and the largest number of nodes, unless that is
    # fewer than so many per neighbour.
    dimensions: tuple[int, ...] = (1, 2, 3, 4, 6, 10, 20)
    n_clouds: int = 20
    n_nodes: int = 500
    nodes_a_neighbor: int = 10
    # Length over width: random necks are deeper where the cut is small. With round clouds 16 % of
    # structureless clouds in 2 to 10 dimensions are cut (most often bars and cigars six times as
    # long as wide), with these 1 of 360 (round, skewed, heavy-tailed and long ones).
    elongation: float = 4.0
    # The highest dimension is used whose clouds have the same clustering coefficient, up to this
    # slack, which is the variation between clouds of one dimension. Strips have more than clouds in
    # the plane, and count as lines.
    clustering_slack: float = 0.02
    # More neighbours make random necks shallower still; clouds have no more than this.
    most_neighbors: int = 100


DETECTION = Detection()
CLOUD_GRAPHS = CloudGraphs()
KINDS = ("bell", "box")


class Neighborhoods(NamedTuple):
    """The construction of a neighbour graph."""

    n_nodes: int
    n_neighbors: int
    mutual: bool  # whether only mutual nearest neighbours are linked
    clustering: float  # the average clustering coefficient


def find_neighborhoods(graph: Graph) -> Neighborhoods | None:
    """Detect a nearest-neighbour graph and return its construction, or None.

    With m neighbours each, a graph that links two points if either is among the other's nearest has
    least degree m and mean degree at most 2 m; a graph that links mutual neighbours has largest
    degree m. Either way the clustering coefficient is high.

    Parameters
    ----------
    graph : Graph
        Weights of links do not matter.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.neighbors import kneighbors_graph
    >>> from countless._graph.input import build_graph
    >>> points = np.random.default_rng(0).normal(size=(300, 2))
    >>> near = kneighbors_graph(points, 10)
    >>> find_neighborhoods(build_graph(sp.csr_array(near.maximum(near.T)), "ratio", None)[0])[:3]
    (300, 10, False)
    """
    degree = np.diff(graph.indptr)
    ends = _ends(degree)
    if ends is None:
        return None
    n_neighbors, mutual = ends
    clustering = mean_clustering(graph)
    mean = degree.mean()
    by_degrees = (np.mean(degree.astype(float) ** 2) - mean) ** 2 / (len(degree) * mean**3)
    if DETECTION.more_than_degrees * by_degrees <= clustering <= DETECTION.most_clustering:
        return Neighborhoods(graph.n_nodes, n_neighbors, mutual, clustering)
    return None


def assume_neighborhoods(graph: Graph) -> Neighborhoods:
    """Return the construction of a graph that is assumed to be a neighbour graph.

    If the degree distribution does not end abruptly, as in a radius graph, the number of neighbours
    is the median degree.
    """
    degree = np.diff(graph.indptr)
    n_neighbors, mutual = _ends(degree) or (int(np.median(degree)), False)
    return Neighborhoods(graph.n_nodes, n_neighbors, mutual, mean_clustering(graph))


def _ends(degree: np.ndarray) -> tuple[int, bool] | None:
    """Return the degree at which the distribution ends abruptly, and whether it is the largest."""
    count = np.bincount(degree)
    least, most, mean = int(degree.min()), int(degree.max()), float(degree.mean())
    enough = max(DETECTION.end_nodes, DETECTION.end_share * len(degree))
    beyond_least = count[least + 1] if least < most else 0
    if (
        count[least] >= max(enough, DETECTION.end_ratio * beyond_least)
        and least > 1
        and mean <= (2 - DETECTION.least_mutual) * least
    ):
        return least, False
    if (
        count[most] >= max(enough, DETECTION.end_ratio * count[most - 1])
        and mean >= DETECTION.least_mutual * most
    ):
        return most, True
    return None


def mean_clustering(graph: Graph) -> float:
    """Return the average clustering coefficient, of a sample of nodes if there are many."""
    links = _presence(graph)
    nodes = np.flatnonzero(np.diff(graph.indptr) > 1)
    if not len(nodes):
        return 0.0
    if len(nodes) > DETECTION.sampled_nodes:
        nodes = np.random.RandomState(0).choice(nodes, DETECTION.sampled_nodes, replace=False)
    some = links[nodes]
    degree = np.diff(some.indptr)
    linked = np.asarray((some @ links).multiply(some).sum(axis=1)).ravel()
    return float(np.mean(linked / (degree * (degree - 1))))


def neck_corners(graph: Graph, near: Neighborhoods) -> tuple[list[Corner], list[float], Necks]:
    """Return the clusterings of a neighbour graph that are separated by deep necks.

    Parameters
    ----------
    graph : Graph
        The nodes that have links.
    near : Neighborhoods
        How the graph was built.

    Returns
    -------
    corners : list of Corner
        From one cluster per component to the largest number separated by deep necks; in between,
        those that are optimal at some price.
    depths : list of float
        The shallowest neck of each.
    necks : Necks
        The finest clustering, the depths of all necks, and the null depth.
    """
    merges = merge_pieces(_presence(graph))
    null = null_depth(near)
    raw = merges.labels_below(null)
    labels = _settled(graph, raw)
    k = int(labels.max()) + 1
    necks = Necks(labels, k, merges.depths[::-1], null)
    joined = graph.joined(labels)
    corners, depths = [], {}
    shallowest = np.unique(merges.depths[merges.depths > null])
    for last, depth in zip([null, *shallowest], [*shallowest, np.inf], strict=True):
        merged = np.empty(k, dtype=np.int32)
        merged[raw] = merges.labels_below(last)
        clusters = Clusters(joined, merged)
        corners.append(Corner(clusters.n_clusters, clusters.cut(), merged[labels]))
        depths[clusters.n_clusters] = float(depth)
    corners = hull_of(corners[::-1])
    return corners, [depths[corner.n_clusters] for corner in corners], necks


def _settled(graph: Graph, labels: np.ndarray) -> np.ndarray:
    """Move nodes between clusters while the cut falls; undone if a cluster becomes empty."""
    labels = labels.astype(np.int32)
    clusters = Clusters(graph, labels)
    clusters.move(np.random.RandomState(0), graph.unit)
    return clusters.labels if clusters.n_clusters == labels.max() + 1 else labels


def null_depth(near: Neighborhoods) -> float:
    """Return the depth that necks of neighbour graphs of clouds without clusters seldom exceed.

    Examples
    --------
    >>> plane, space = (null_depth(Neighborhoods(400, 15, False, c)) for c in (0.58, 0.44))
    >>> bool(plane > space)
    True
    """
    n_neighbors = min(near.n_neighbors, CLOUD_GRAPHS.most_neighbors)
    n_nodes = max(
        min(near.n_nodes, CLOUD_GRAPHS.n_nodes), CLOUD_GRAPHS.nodes_a_neighbor * n_neighbors
    )
    clouds = _clustering_of_clouds(n_nodes, n_neighbors, near.mutual)
    dimension = max(
        (
            d
            for d, c in zip(CLOUD_GRAPHS.dimensions, clouds, strict=True)
            if c + CLOUD_GRAPHS.clustering_slack >= near.clustering
        ),
        default=CLOUD_GRAPHS.dimensions[0],
    )
    return _null_depth_in(n_nodes, n_neighbors, near.mutual, dimension)


@cache
def _clustering_of_clouds(n_nodes: int, n_neighbors: int, mutual: bool) -> np.ndarray:
    """Return the clustering coefficient of null neighbour graphs in each dimension."""
    random = np.random.default_rng(0)
    found = []
    for dimension in CLOUD_GRAPHS.dimensions:
        shape = (n_nodes, dimension)
        graphs = [_cloud_graph(kind, shape, n_neighbors, mutual, random) for kind in KINDS]
        found.append(np.mean([mean_clustering(graph) for graph in graphs]))
    return np.array(found)


@cache
def _null_depth_in(n_nodes: int, n_neighbors: int, mutual: bool, dimension: int) -> float:
    """Simulate the null depth, with a fixed seed; cached for graphs of the same construction."""
    random = np.random.default_rng(0)
    shape = (n_nodes, dimension)
    found = [NECK_TEST.least_depth]
    for kind in KINDS:
        graphs = (
            _cloud_graph(kind, shape, n_neighbors, mutual, random)
            for _ in range(CLOUD_GRAPHS.n_clouds)
        )
        depths = [merge_pieces(_presence(graph)).depths.max(initial=0.0) for graph in graphs]
        found.append(np.mean(depths) + NECK_TEST.deviations * np.std(depths, ddof=1))
    return float(max(found))


def _cloud_graph(
    kind: str, shape: tuple[int, int], n_neighbors: int, mutual: bool, random: np.random.Generator
) -> Graph:
    """Return the neighbour graph of a cloud without clusters."""
    cloud = random.standard_normal(shape) if kind == "bell" else random.uniform(size=shape)
    cloud[:, 0] *= CLOUD_GRAPHS.elongation
    search = NearestNeighbors(n_neighbors=n_neighbors, algorithm="kd_tree")
    near = search.fit(cloud).kneighbors_graph()
    links = sp.csr_array(near.minimum(near.T) if mutual else near.maximum(near.T))
    links.eliminate_zeros()
    linked = np.diff(links.indptr) > 0
    links = links[linked][:, linked].tocsr()
    out = np.asarray(links.sum(axis=1)).ravel()
    return Graph(links.indptr.astype(np.int64), links.indices, links.data, out, out)


def _presence(graph: Graph) -> sp.csr_array:
    """Return the unweighted adjacency matrix, as null clouds have no weights."""
    shape = (graph.n_nodes, graph.n_nodes)
    return sp.csr_array((np.ones(len(graph.links)), graph.neighbor, graph.indptr), shape=shape)
