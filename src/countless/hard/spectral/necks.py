"""Clusters of a neighbour graph that are parted by necks, judged by clouds without clusters.

A plateau of the spectrum compares the worst link between clusters with the loosest cluster of all:
clusters of unequal size or density, and long ones, have none. Necks compare neighbours only. The
graph is split into many pieces, and pieces are merged, those first whose neck narrows the cut least
(see `countless.kernels.necks`): along a string, across a box or a bell the cut has no minimum but
for chance, whatever the shape and the density.

How deep chance makes necks is read from clouds with the data's spread and skewness along its
principal axes, and with its local dimension, sent through the same graph and the same merges. A
partition is accepted where at most a small share of its necks would be there by chance: the false
discovery rate (Benjamini and Hochberg, 1995). One neck must so be deeper than any of a cloud; of
many clusters each neck may be shallower.
"""

from __future__ import annotations

import heapq
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components
from scipy.spatial import KDTree

from countless.hard.axes import principal_axes
from countless.hard.divergence import get_divergence
from countless.hard.graph.moves import Clusters, Graph, dense_groups
from countless.hard.graph.tree import merge_tree
from countless.hard.null_reference import SKEWNESS
from countless.kernels.necks import neck_depth, nodes_near

# Rows of a piece on average, and pieces at least and at most.
ROWS_A_PIECE, FEWEST_PIECES, MOST_PIECES = 30, 4, 200
# Rows of the groups that pieces are made of; on larger graphs groups are the nodes.
ROWS_A_GROUP, MOST_NODES = 10, 4000
# Pieces that are tried as partners of a piece: in the plane it has about six neighbours.
MOST_PARTNERS = 8
# Of the larger of two pieces, so many times the nodes of the smaller are looked at.
REACH = 8
# The potential reaches about ``1 / sqrt(screening)`` = 10 links beyond a border.
SCREENING, MAX_STEPS = 1e-2, 400
# Nodes on either side of a neck.
LEAST_NODES = 5
# A neck narrows the cut by a quarter at least: in many dimensions clouds hardly have any.
LEAST_RATIO = 4 / 3
# Three standard deviations of the difference of the square roots of two Poisson counts.
LEAST_DEPTH = 3 / np.sqrt(2)
# Clouds of each kind, and their rows at most; where values repeat, fewer that have more rows.
N_CLOUDS, CLOUD_ROWS = 20, 400
FEWEST_CLOUDS, MOST_SAMPLED = 5, 2000
# The share of the deepest necks of clouds whose tail is fitted.
TAIL = 0.1
# The share of accepted necks that may be there by chance.
FALSE_SHARE = 0.03
# Neighbours that give the local dimension.
DIMENSION_NEIGHBORS = 10


class Tail(NamedTuple):
    """How the depths of chance end: the square exceeds ``start + scale * x`` in ``TAIL e^-x``."""

    start: float
    scale: float

    def depth(self, share: float) -> float:
        """Return the depth that this share of the necks exceeds, for shares up to `TAIL`."""
        square = self.start + self.scale * max(np.log(TAIL / share), 0.0)
        return max(LEAST_DEPTH, float(np.sqrt(square)))


class Necks(NamedTuple):
    """Clusters that necks part, and how deep the necks are."""

    labels: np.ndarray  # (n,)
    n_clusters: int
    depths: np.ndarray  # of all merges, deepest first
    null_depth: float  # what a neck must exceed, given how many others do

    @property
    def n_accepted(self) -> int:
        """How many necks part clusters."""
        return int(np.count_nonzero(self.depths > self.null_depth))

    @property
    def confidence(self) -> float:
        """From 0 (a neck as deep as the null allows) to 1, for any number of clusters."""
        if self.n_accepted:
            return 1.0 - self.null_depth / float(self.depths[self.n_accepted - 1])
        return 1.0 - float(self.depths.max(initial=0.0)) / self.null_depth


class Merges(NamedTuple):
    """Pieces of a graph, and their merges in order."""

    pieces: np.ndarray  # (n,)
    links: np.ndarray  # (n_pieces, n_pieces), the weight of the links between pieces
    pairs: list[tuple[int, int]]  # merge i makes piece ``n_pieces + i``
    depths: np.ndarray  # (n_merges,)

    def labels_below(self, depth: float) -> np.ndarray:
        """Return the clusters that deeper necks leave: each such neck makes one more.

        Where a piece has been cut, what it merges with joins the part with the most links to it.
        """
        links = self.links.copy()
        cluster = np.arange(len(links))
        inside = [[piece] for piece in range(len(links))]
        for (a, b), own in zip(self.pairs, self.depths, strict=True):
            some, others = inside[a], inside[b]
            if own <= depth:
                strongest = int(links[np.ix_(some, others)].argmax())
                kept, joined = some[strongest // len(others)], others[strongest % len(others)]
                links[kept] += links[joined]
                links[:, kept] += links[:, joined]
                cluster[cluster == joined] = kept
                others = [other for other in others if other != joined]
            inside.append(some + others)
        return np.unique(cluster[self.pieces], return_inverse=True)[1]


def find_necks(affinity: Any, labels: np.ndarray, X: np.ndarray, linked: Any) -> Necks:
    """Cut the parts of a neighbour graph at their necks.

    Parameters
    ----------
    affinity : CSR matrix of shape (n, n)
        The symmetric neighbour graph.
    labels : ndarray of shape (n,)
        Parts that are clusters or several; all zeros for one part. What is not linked within a
        part moves to the part that it is linked to.
    X : ndarray of shape (n, d)
        The rows it was made from.
    linked : callable
        Returns the symmetric neighbour graph of other rows, made in the same way.
    """
    merges = merge_pieces(within(affinity, connected_parts(affinity, labels)))
    depths = np.sort(merges.depths)[::-1]
    null = accepted_depth(depths, chance_tails(X, linked))
    found = merges.labels_below(null)
    return Necks(found, int(found.max()) + 1, depths, null)


def accepted_depth(depths: np.ndarray, tails: list[Tail]) -> float:
    """Return the depth above which at most a share of `FALSE_SHARE` of the necks is chance.

    Parameters
    ----------
    depths : ndarray
        Of all merges, deepest first.
    tails : list of Tail
        Of the kinds of clouds; the one with the deepest necks decides.

    Examples
    --------
    >>> tails = [Tail(start=4.0, scale=2.0)]
    >>> one = accepted_depth(np.array([5.0, 2.7, 1.0, 1.0]), tails)
    >>> many = accepted_depth(np.array([5.0, 2.7, 2.7, 2.7]), tails)
    >>> 2.7 < one < 5.0, many < 2.7
    (True, True)
    """
    n_merges = max(len(depths), 1)
    null = np.array(
        [
            max(tail.depth(FALSE_SHARE * (count + 1) / n_merges) for tail in tails)
            for count in range(n_merges)
        ]
    )
    accepted = np.flatnonzero(depths > null[: len(depths)])
    return float(null[accepted[-1] if len(accepted) else 0])


def within(affinity: Any, labels: np.ndarray) -> Any:
    """Return a graph without the links between different labels."""
    links = sp.coo_array(affinity)
    near, far = links.coords
    kept = labels[near] == labels[far]
    return sp.csr_array((links.data[kept], (near[kept], far[kept])), links.shape)


def connected_parts(affinity: Any, labels: np.ndarray) -> np.ndarray:
    """Return parts that are connected: what is cut off from most of its part joins another.

    Parts have two rows at least, if all rows are linked to others.

    Examples
    --------
    >>> path = sp.csr_array(np.diag(np.ones(4), 1) + np.diag(np.ones(4), -1))
    >>> connected_parts(path, np.array([0, 0, 1, 1, 0])).tolist()
    [0, 0, 1, 1, 1]
    """
    fragment = connected_components(within(affinity, labels), directed=False)[1]
    size = np.bincount(fragment)
    part_of = np.empty(len(size), dtype=np.int64)
    part_of[fragment] = labels
    order = np.lexsort((-size, part_of))
    largest = order[np.flatnonzero(np.diff(part_of[order], prepend=-1))]
    largest = largest[size[largest] > 1]
    kept = np.full(len(size), -1)
    kept[largest] = np.arange(len(largest))
    parts = spread_labels(affinity, kept[fragment])
    alone = parts < 0  # in a component of the graph that has no such fragment
    parts[alone] = len(largest) + connected_components(affinity, directed=False)[1][alone]
    return np.unique(parts, return_inverse=True)[1]


def spread_labels(affinity: Any, labels: np.ndarray) -> np.ndarray:
    """Give rows of label -1 that of the most alike row that has one, round by round.

    Rows that are linked to no label, not even through others, keep -1.

    Examples
    --------
    >>> path = sp.csr_array(np.array([[0, 2, 0, 0], [2, 0, 1, 0], [0, 1, 0, 3], [0, 0, 3, 0.0]]))
    >>> spread_labels(path, np.array([0, -1, -1, 1])).tolist()
    [0, 0, 1, 1]
    """
    labels = labels.copy()
    affinity = sp.csr_array(affinity)
    rows = np.repeat(np.arange(len(labels)), np.diff(affinity.indptr))
    columns, values = affinity.indices, affinity.data
    while True:
        left = labels[rows] < 0
        rows, columns, values = rows[left], columns[left], values[left]
        ready = labels[columns] >= 0
        if not ready.any():
            return labels
        at, to = rows[ready], columns[ready]
        order = np.lexsort((-values[ready], at))
        at, to = at[order], to[order]
        nearest = np.flatnonzero(np.diff(at, prepend=-1))
        labels[at[nearest]] = labels[to[nearest]]


def merge_pieces(affinity: Any) -> Merges:
    """Split a graph into pieces and merge them, the widest neck first.

    Examples
    --------
    >>> import numpy as np
    >>> from countless.hard.spectral.affinity import Affinity
    >>> near = Affinity("nearest_neighbors", n_neighbors=10, parameters={}, n_jobs=None)
    >>> x = np.random.default_rng(0).uniform(size=(400, 2))
    >>> x[200:, 0] += 1.15  # two squares with a gap between them
    >>> merges = merge_pieces(near.between_rows(x))
    >>> np.bincount(merges.labels_below(5.0)).tolist()
    [200, 200]
    """
    graph = _as_graph(affinity)
    n = graph.n_nodes
    random = np.random.RandomState(0)
    n_pieces = int(np.clip(n // ROWS_A_PIECE, FEWEST_PIECES, MOST_PIECES))
    rows_a_group = max(ROWS_A_GROUP, 2 * n // MOST_NODES)
    group, coarse = dense_groups(graph, n / (2 * rows_a_group), random)
    tree = merge_tree(coarse, graph.unit)
    n_merges = max(coarse.n_nodes - n_pieces, 0)
    price = float(tree.height[n_merges - 1]) if n_merges else 0.0
    level, member = (graph, group) if n <= MOST_NODES else (coarse, np.arange(coarse.n_nodes))
    clusters = Clusters(level, tree.cut(n_merges)[member])
    clusters.move(random, graph.unit, penalty=price - graph.unit)
    labels = clusters.compact()
    return _merge_linked(level, labels, labels if n <= MOST_NODES else labels[group])


def _merge_linked(graph: Graph, labels: np.ndarray, pieces: np.ndarray) -> Merges:
    """Merge the linked pieces with the widest neck until none are linked.

    Only the most strongly linked partners of a piece are looked at while there are any.
    """
    n_pieces = int(labels.max()) + 1
    order = np.argsort(labels, kind="stable")
    members = dict(enumerate(np.split(order, np.cumsum(np.bincount(labels))[:-1])))
    place = np.full(graph.n_nodes, -1, dtype=np.int64)
    least_cut = float(np.median(graph.out))
    settings = (SCREENING, MAX_STEPS, least_cut, LEAST_NODES, LEAST_RATIO)
    source = labels[np.repeat(np.arange(graph.n_nodes), np.diff(graph.indptr))]
    ends = (source, labels[graph.neighbor])
    links = sp.coo_array((graph.links, ends), (n_pieces, n_pieces)).toarray()
    np.fill_diagonal(links, 0.0)
    between = {
        piece: dict(zip(np.flatnonzero(row).tolist(), row[row > 0].tolist(), strict=True))
        for piece, row in enumerate(links)
    }

    def neck(a: int, b: int) -> tuple[float, int, int, float]:
        some, others = sorted((members[a], members[b]), key=len)
        limit = REACH * len(some)
        others = nodes_near(graph.indptr, graph.neighbor, some, others, place, limit)
        nodes = np.concatenate([some, others])
        rows = (graph.indptr, graph.neighbor, graph.links)
        ratio, depth = neck_depth(*rows, nodes, len(some), place, *settings)
        return ratio, a, b, depth

    def partners(a: int) -> list[int]:
        return heapq.nsmallest(MOST_PARTNERS, between[a], key=lambda b: (-between[a][b], b))

    heap: list[tuple[float, int, int, float]] = []
    pairs: list[tuple[int, int]] = []
    depths: list[float] = []
    while True:
        while heap and not (heap[0][1] in members and heap[0][2] in members):
            heapq.heappop(heap)
        if not heap:
            linked = {(min(a, b), max(a, b)) for a in members for b in partners(a)}
            if not linked:
                break
            heap = [neck(a, b) for a, b in sorted(linked)]
            heapq.heapify(heap)
        _, a, b, depth = heapq.heappop(heap)
        merged = n_pieces + len(pairs)
        pairs.append((a, b))
        depths.append(depth)
        members[merged] = np.concatenate([members.pop(a), members.pop(b)])
        between[merged] = beside = between.pop(a)
        for other, weight in between.pop(b).items():
            beside[other] = beside.get(other, 0.0) + weight
        del beside[a], beside[b]
        for other, weight in beside.items():
            between[other].pop(a, None)
            between[other].pop(b, None)
            between[other][merged] = weight
        for other in partners(merged):
            heapq.heappush(heap, neck(other, merged))
    return Merges(pieces, links, pairs, np.array(depths))


def chance_tails(X: np.ndarray, linked: Any) -> list[Tail]:
    """Return how deep necks of clouds like the data are, for each kind of cloud."""
    kinds = _clouds(X, np.random.default_rng(0))
    return [fit_tail([merge_pieces(linked(cloud)).depths for cloud in kind]) for kind in kinds]


def fit_tail(depths: list[np.ndarray]) -> Tail:
    """Describe how the depths of all necks of some clouds end."""
    squares = np.concatenate(depths) ** 2
    start = float(np.quantile(squares, 1 - TAIL)) if len(squares) else 0.0
    excess = squares[squares > start] - start
    return Tail(start, float(excess.mean()) if len(excess) else 0.0)


def _clouds(X: np.ndarray, random: np.random.Generator) -> list[list[np.ndarray]]:
    """Draw clouds without clusters: columns shuffled if their values repeat, else bells and boxes.

    Bells and boxes have the spread of the data along its principal axes, and bells its skewness.
    Where rows lie along curves or surfaces, or in a thin stripe, there are also boxes of the
    dimension that they have near each other.
    """
    rows = X
    if len(X) > MOST_SAMPLED:
        rows = X[random.choice(len(X), MOST_SAMPLED, replace=False)]
    rows = rows.astype(np.float64)
    n = min(len(X), CLOUD_ROWS)
    distinct = np.mean([len(np.unique(column)) for column in rows.T])
    if distinct < len(rows) / 2:
        # How many rows are equal depends on how many there are.
        n_clouds = max(FEWEST_CLOUDS, N_CLOUDS * n // len(rows))
        return [[random.permuted(rows, axis=0) for _ in range(n_clouds)]]
    scale = np.abs(rows).max()
    rows = rows / scale if scale > 0 else rows
    share = np.full(len(rows), 1 / len(rows))
    axes = principal_axes(rows, share, share @ rows, get_divergence("sqeuclidean"))
    spread = np.sqrt(axes.variance)
    form = 4 / np.clip(np.abs(axes.skewness), *SKEWNESS) ** 2
    shape = (n, len(spread))
    bells = [
        (random.standard_gamma(form, shape) - form) / np.sqrt(form) * spread
        for _ in range(N_CLOUDS)
    ]
    boxes = [random.uniform(-1.0, 1.0, shape) * spread for _ in range(N_CLOUDS)]
    kinds = [bells, boxes]
    dimension = local_dimension(rows)
    if dimension != len(spread):
        kinds.append([random.uniform(size=(n, dimension)) for _ in range(N_CLOUDS)])
    return kinds


def local_dimension(rows: np.ndarray) -> int:
    """Estimate the dimension in which rows spread near each other (Levina and Bickel, 2004).

    Examples
    --------
    >>> import numpy as np
    >>> random = np.random.default_rng(0)
    >>> turn = random.uniform(0, 2 * np.pi, 500)
    >>> local_dimension(np.c_[np.cos(turn), np.sin(turn)])
    1
    >>> local_dimension(random.uniform(size=(500, 3)))
    3
    """
    count = min(DIMENSION_NEIGHBORS, len(rows) - 1)
    distance = KDTree(rows).query(rows, count + 1)[0][:, 1:]
    distance = distance[distance[:, 0] > 0]
    growth = np.log(distance[:, -1:] / distance[:, :-1])
    if not growth.sum() > 0:
        return rows.shape[1]
    return int(np.clip(np.round(1 / growth.mean()), 1, rows.shape[1]))


def _as_graph(affinity: Any) -> Graph:
    matrix = sp.csr_array(affinity)
    out = np.asarray(matrix.sum(axis=1), dtype=np.float64).ravel()
    neighbor = matrix.indices.astype(np.int32)
    return Graph(matrix.indptr.astype(np.int64), neighbor, matrix.data.astype(float), out, out)
