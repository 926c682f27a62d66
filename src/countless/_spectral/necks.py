"""Clusters of a neighbour graph separated by necks (sparse cuts), tested against a null reference.

An eigengap compares the strongest link between clusters with the loosest of all clusters: clusters
of unequal size or density, and elongated ones, have none. Necks compare adjacent clusters only. The
graph is partitioned into many pieces, and pieces are merged, the shallowest neck first. The *depth*
of a neck is the log ratio of the cut just inside the two pieces to the cut between them: along a
line segment, across a box or a bell-shaped cloud the cut has no minimum except by chance, for any
shape and density.

The null distribution of depths is simulated: clouds with the data's variance and skewness along its
principal axes go through the same graph construction and the same merges; and, where rows lie close
to curves or surfaces, also points on a line. Above a few hundred rows these depths hardly grow.
"""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from countless._graph.corners import merge_tree
from countless._graph.moves import Clusters, Graph, dense_groups
from countless._path.null_reference import bells_and_boxes, principal_axes
from countless._path.path import Calibration
from countless.divergences import get_divergence
from countless.kernels.necks import neck_depth


@dataclass(frozen=True)
class NeckTest:
    """Constants of necks; ``benchmarks/default_answer.py`` shows what they are worth."""

    # Average rows per piece, and the least and largest number of pieces.
    rows_a_piece: int = 30
    fewest_pieces: int = 4
    most_pieces: int = 200
    # Rows per group of the coarse graph that pieces are made of; above so many rows groups are the
    # nodes.
    rows_a_group: int = 10
    most_nodes: int = 4000
    # The screened potential extends about ``1 / sqrt(screening)`` = 10 links beyond a border.
    screening: float = 1e-2
    most_steps: int = 400
    # Least number of nodes on either side of a neck.
    least_nodes: int = 5
    # Null samples of each kind, and their largest number of rows.
    n_clouds: int = 10
    cloud_rows: int = 500
    # A neck must exceed the mean null depth by this many standard deviations. With two draws of the
    # 92 structureless clouds of the default-answer benchmark, 1 in 92 had such a neck each time.
    deviations: float = 3.0
    # A neck reduces the cut by at least a quarter: in many dimensions null samples have hardly any.
    # Below half of that the order of merges does not matter.
    least_depth: float = math.log(4 / 3)
    # Up to this intrinsic dimension rows may lie along curves.
    curve_dimension: float = 2.5
    # Rows from which the principal axes are estimated.
    sampled_rows: int = 2000


NECK_TEST = NeckTest()
# The probability that the number of clusters is right, by the lead of necks, as printed by
# `benchmarks/path_evidence.py --spectra`.
NECK_CALIBRATION = Calibration(intercept=0.22, slope=0.99)


class Necks(NamedTuple):
    """Clusters separated by necks, and the depths of the necks."""

    labels: np.ndarray  # (n,)
    n_clusters: int
    depths: np.ndarray  # of all merges, deepest first; the k-th ends k + 1 clusters a component
    null_depth: float  # threshold from the null reference

    @property
    def lead(self) -> float:
        """By how much the shallowest neck that is cut exceeds the null depth.

        If none is cut, by how much the deepest falls short of it.
        """
        accepted = self.depths[self.depths > self.null_depth]
        if len(accepted):
            return float(accepted[-1]) - self.null_depth
        return self.null_depth - float(self.depths.max(initial=0.0))


class PieceMerges(NamedTuple):
    """Pieces of a graph, and their merges in order: a dendrogram."""

    pieces: np.ndarray  # (n,)
    pairs: list[tuple[int, int]]  # merge i makes piece ``n_pieces + i``
    depths: np.ndarray  # running maximum, so that cutting at a depth keeps a prefix of the merges

    def labels_below(self, depth: float) -> np.ndarray:
        """Cut the dendrogram at a depth; return the clusters."""
        n_pieces = int(self.pieces.max()) + 1
        n_merges = int(np.count_nonzero(self.depths <= depth))
        parent = np.arange(n_pieces + n_merges)
        for i, (a, b) in enumerate(self.pairs[:n_merges]):
            parent[[a, b]] = n_pieces + i
        for node in range(n_pieces + n_merges - 1, -1, -1):
            parent[node] = parent[parent[node]]
        return np.unique(parent[self.pieces], return_inverse=True)[1]


def find_necks(affinity: Any, X: np.ndarray, linked: Any) -> Necks:
    """Partition a neighbour graph at the necks that exceed the null depth.

    Parameters
    ----------
    affinity : CSR matrix of shape (n, n)
        The symmetric neighbour graph.
    X : ndarray of shape (n, d)
        The rows it was made from.
    linked : callable
        Returns the symmetric neighbour graph of other rows, constructed in the same way.
    """
    merges = merge_pieces(affinity)
    null = null_depth(X, linked)
    labels = merges.labels_below(null)
    return Necks(labels, int(labels.max()) + 1, merges.depths[::-1], null)


def merge_pieces(affinity: Any) -> PieceMerges:
    """Split a graph into pieces and merge them, the shallowest neck first.

    Examples
    --------
    >>> import numpy as np
    >>> from countless._spectral.affinity import Affinity
    >>> near = Affinity("nearest_neighbors", n_neighbors=10, parameters={}, n_jobs=None)
    >>> x = np.random.default_rng(0).uniform(size=(400, 2))
    >>> x[200:, 0] += 1.15  # two squares with a gap between them
    >>> merges = merge_pieces(near.between_rows(x))
    >>> np.bincount(merges.labels_below(1.0)).tolist()
    [200, 200]
    """
    graph = as_graph(affinity)
    n = graph.n_nodes
    random = np.random.RandomState(0)
    n_pieces = int(
        np.clip(n // NECK_TEST.rows_a_piece, NECK_TEST.fewest_pieces, NECK_TEST.most_pieces)
    )
    n_pieces = max(n_pieces, connected_components(affinity, directed=False)[0])
    rows_a_group = max(NECK_TEST.rows_a_group, 2 * n // NECK_TEST.most_nodes)
    group, coarse = dense_groups(graph, n / (2 * rows_a_group), random)
    tree = merge_tree(coarse, graph.unit)
    n_merges = max(coarse.n_nodes - n_pieces, 0)
    price = float(tree.height[n_merges - 1]) if n_merges else 0.0
    level, member = (
        (graph, group) if n <= NECK_TEST.most_nodes else (coarse, np.arange(coarse.n_nodes))
    )
    clusters = Clusters(level, tree.cut(n_merges)[member])
    clusters.move(random, graph.unit, penalty=price - graph.unit)
    labels = clusters.compact()
    pairs, depths = _merge_by_depth(level, labels)
    return PieceMerges(labels if n <= NECK_TEST.most_nodes else labels[group], pairs, depths)


def _merge_by_depth(graph: Graph, labels: np.ndarray) -> tuple[list[tuple[int, int]], np.ndarray]:
    """Merge the adjacent pieces with the shallowest neck until none are adjacent.

    The recorded depth of a merge is the running maximum. So any neck below that maximum, or too
    shallow to separate clusters, may be merged next. Depths are therefore updated lazily: a merged
    piece first inherits the smaller depth of its parts; it is recomputed when it reaches the top of
    the heap, or when every known neck would raise the maximum.
    """
    n_pieces = int(labels.max()) + 1
    order = np.argsort(labels, kind="stable")
    members = dict(enumerate(np.split(order, np.cumsum(np.bincount(labels))[:-1])))
    place = np.full(graph.n_nodes, -1, dtype=np.int64)
    least_cut = float(np.median(graph.out))

    def depth(a: int, b: int) -> float:
        nodes = np.concatenate([members[a], members[b]])
        settings = (NECK_TEST.screening, NECK_TEST.most_steps, least_cut, NECK_TEST.least_nodes)
        rows = (graph.indptr, graph.neighbor, graph.links)
        return float(neck_depth(*rows, nodes, len(members[a]), place, *settings))

    source = labels[np.repeat(np.arange(graph.n_nodes), np.diff(graph.indptr))]
    beside: dict[int, set[int]] = {piece: set() for piece in members}
    for a, b in np.unique(np.c_[source, labels[graph.neighbor]], axis=0).tolist():
        if a != b:
            beside[a].add(b)
    known = {(a, b): depth(a, b) for a in beside for b in sorted(beside[a]) if a < b}
    heap = [(measured, *pair, True) for pair, measured in known.items()]
    heapq.heapify(heap)
    pairs: list[tuple[int, int]] = []
    depths: list[float] = []
    deepest = NECK_TEST.least_depth / 2
    while heap:
        shallowest, a, b, is_measured = heapq.heappop(heap)
        if a not in members or b not in members:
            continue
        if not is_measured:
            shallowest = known[a, b] = depth(a, b)
        if shallowest > deepest:
            heap = [entry for entry in heap if entry[1] in members and entry[2] in members]
            if is_measured and all(entry[3] for entry in heap):
                deepest = shallowest
            else:
                if is_measured:  # before the maximum rises, compute all others
                    known |= {(c, d): depth(c, d) for _, c, d, done in heap if not done}
                    heap = [(known[c, d], c, d, True) for _, c, d, _ in heap]
                heap.append((shallowest, a, b, True))
                heapq.heapify(heap)
                continue
        merged = n_pieces + len(pairs)
        pairs.append((a, b))
        depths.append(max(shallowest, depths[-1]) if depths else shallowest)
        members[merged] = np.concatenate([members.pop(a), members.pop(b)])
        beside[merged] = (beside.pop(a) | beside.pop(b)) - {a, b}
        for other in sorted(beside[merged]):
            before = (
                known[min(part, other), max(part, other)]
                for part in (a, b)
                if part in beside[other]
            )
            known[other, merged] = min(before)
            beside[other] = (beside[other] - {a, b}) | {merged}
            heapq.heappush(heap, (known[other, merged], other, merged, False))
    return pairs, np.array(depths)


def null_depth(X: np.ndarray, linked: Any) -> float:
    """Return the depth that necks of the null reference seldom exceed."""
    random = np.random.default_rng(0)
    kinds = _clouds(X, random)
    if local_dimension(X, linked) <= NECK_TEST.curve_dimension:
        n = min(len(X), NECK_TEST.cloud_rows)
        kinds.append([random.uniform(size=(n, 1)) for _ in range(NECK_TEST.n_clouds)])
    found = []
    for kind in kinds:
        depths = [merge_pieces(linked(cloud)).depths.max(initial=0.0) for cloud in kind]
        found.append(np.mean(depths) + NECK_TEST.deviations * np.std(depths, ddof=1))
    return float(max(NECK_TEST.least_depth, *found))


def _clouds(X: np.ndarray, random: np.random.Generator) -> list[list[np.ndarray]]:
    """Draw null samples: permuted columns if values repeat, else gamma and uniform clouds."""
    rows = X
    if len(X) > NECK_TEST.sampled_rows:
        rows = X[random.choice(len(X), NECK_TEST.sampled_rows, replace=False)]
    rows = rows.astype(np.float64)
    n = min(len(X), NECK_TEST.cloud_rows)
    distinct = np.mean([len(np.unique(column)) for column in rows.T])
    if distinct < len(rows) / 2 or distinct == 1:  # identical rows have no principal axes
        chosen = (random.permuted(rows, axis=0)[:n] for _ in range(NECK_TEST.n_clouds))
        return [list(chosen)]
    scale = np.abs(rows).max()
    rows = rows / scale if scale > 0 else rows
    share = np.full(len(rows), 1 / len(rows))
    axes = principal_axes(rows, share, share @ rows, get_divergence("sqeuclidean"))
    return [list(kind) for kind in bells_and_boxes(axes, n, random, NECK_TEST.n_clouds)]


def local_dimension(X: np.ndarray, linked: Any) -> float:
    """Estimate the intrinsic dimension of the rows from neighbours (Levina and Bickel, 2004).

    Examples
    --------
    >>> import numpy as np
    >>> from countless._spectral.affinity import Affinity
    >>> linked = Affinity("nearest_neighbors", n_neighbors=10, parameters={}, n_jobs=None)
    >>> turn = np.random.default_rng(0).uniform(0, 2 * np.pi, 500)
    >>> bool(local_dimension(np.c_[np.cos(turn), np.sin(turn)], linked.between_rows) < 1.1)
    True
    """
    rows = X[:: max(1, len(X) // NECK_TEST.cloud_rows)][: NECK_TEST.cloud_rows].astype(np.float64)
    graph = sp.coo_array(linked(rows))
    near, far = graph.coords
    distance = np.linalg.norm(rows[near] - rows[far], axis=1)
    largest = np.zeros(len(rows))
    np.maximum.at(largest, near, distance)
    inside = (distance > 0) & (distance < largest[near])
    if not inside.any():
        return np.inf
    return float(1 / np.mean(np.log(largest[near[inside]] / distance[inside])))


def as_graph(affinity: Any) -> Graph:
    """Return a symmetric matrix without diagonal as a graph."""
    matrix = sp.csr_array(affinity)
    out = np.asarray(matrix.sum(axis=1), dtype=np.float64).ravel()
    neighbor = matrix.indices.astype(np.int32)
    return Graph(matrix.indptr.astype(np.int64), neighbor, matrix.data.astype(float), out, out)
