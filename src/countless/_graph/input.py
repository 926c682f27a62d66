"""Validation of graphs: SciPy matrices, arrays, networkx and igraph to symmetric adjacency."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from countless._graph.moves import Graph
from countless._numbers import check_entries_span

CUTS = ("normalized", "ratio")
SYMMETRIZE = "say symmetrize=True to use the mean of both directions"


def as_matrix(graph: Any, symmetrize: bool | str) -> Any:
    """Return the adjacency matrix of a networkx or igraph graph; anything else unchanged.

    The weight of an edge is its attribute ``weight``, or 1; parallel edges are summed.

    Examples
    --------
    >>> import networkx as nx
    >>> as_matrix(nx.path_graph(3), symmetrize=False).toarray().tolist()
    [[0.0, 1.0, 0.0], [1.0, 0.0, 1.0], [0.0, 1.0, 0.0]]
    """
    package = type(graph).__module__.partition(".")[0]
    if package not in ("networkx", "igraph") or isinstance(graph, type):
        return graph
    directed = graph.is_directed()
    if directed and symmetrize is False:
        raise ValueError(f"the graph is directed; {SYMMETRIZE}")
    if package == "networkx":
        import networkx

        return networkx.to_scipy_sparse_array(graph, dtype=np.float64, format="csr")
    n = graph.vcount()
    ends = np.array(graph.get_edgelist(), dtype=np.int64).reshape(-1, 2)
    weighted = "weight" in graph.es.attributes()
    weight = np.array(graph.es["weight"] if weighted else np.ones(len(ends)), dtype=np.float64)
    one_way = sp.coo_array((weight, (ends[:, 0], ends[:, 1])), shape=(n, n))
    if directed:
        return one_way.tocsr()
    loops = ends[:, 0] == ends[:, 1]
    back = sp.coo_array((weight[~loops], (ends[~loops, 1], ends[~loops, 0])), shape=(n, n))
    return (one_way + back).tocsr()


def check_links(matrix: Any, symmetrize: bool | str) -> sp.csr_array:
    """Return a symmetric adjacency matrix without stored zeros; errors name the invalid edge.

    With 'auto' a directed graph is symmetrized if it is a nearest-neighbour graph.
    """
    if matrix.shape[0] != matrix.shape[1]:
        raise ValueError(
            f"an adjacency matrix must be square; got {matrix.shape[0]} rows and "
            f"{matrix.shape[1]} columns"
        )
    links = sp.csr_array(matrix)
    if links is matrix or not links.has_canonical_format:
        links = links.copy()
    links.sum_duplicates()
    if len(links.data) and not links.data.min() >= 0:
        place = int(np.argmax(~(links.data >= 0)))
        a, b = _ends(links, place)
        raise ValueError(
            f"Negative values in data: the edge from node {a} to node {b} weighs "
            f"{links.data[place]:g}"
        )
    check_entries_span(links, "edge weights")
    links.eliminate_zeros()
    back = links.T.tocsr()
    if symmetrize is True:
        return ((links + back) / 2).tocsr()
    same = np.array_equal(links.indptr, back.indptr) and np.array_equal(links.indices, back.indices)
    if not same or not np.allclose(links.data, back.data, rtol=1e-6, atol=0.0):
        if symmetrize == "auto" and links_to_nearest(links):
            return ((links + back) / 2).tocsr()
        difference = abs(links - back).tocsr()
        a, b = _ends(difference, int(difference.data.argmax()))
        raise ValueError(
            f"the graph is directed: the edge from node {a} to node {b} weighs {links[a, b]:g} and "
            f"the one back {back[a, b]:g}; {SYMMETRIZE}"
        )
    return links


def links_to_nearest(links: sp.csr_array) -> bool:
    """Return whether all nodes have the same out-degree, without self-loops, of at least two.

    Examples
    --------
    >>> from sklearn.neighbors import kneighbors_graph
    >>> links_to_nearest(sp.csr_array(kneighbors_graph([[0.0], [1.0], [2.0], [4.0], [8.0]], 2)))
    True
    """
    out = np.diff(links.indptr) - (links.diagonal() != 0)
    # With one link out it may be any directed graph.
    return bool(len(out)) and bool(out[0] >= 2) and bool((out == out[0]).all())


def _ends(links: sp.csr_array, place: int) -> tuple[int, int]:
    """Return the nodes of a stored entry, counted from 0."""
    return int(np.searchsorted(links.indptr, place, side="right")) - 1, int(links.indices[place])


def build_graph(
    links: sp.csr_array, cut: str, node_weight: np.ndarray | None
) -> tuple[Graph, np.ndarray]:
    """Return the graph of the nodes that have links to others, and which nodes these are.

    A self-loop adds to the degree of its node, and so to its weight in the normalised cut.
    """
    n = links.shape[0]
    loops = links.diagonal().astype(np.float64)
    degree = np.asarray(links.sum(axis=1, dtype=np.float64)).ravel()
    size = np.ones(n) if node_weight is None else node_weight
    weight = degree if cut == "normalized" else size
    if loops.any():
        links = (links - sp.diags_array(links.diagonal(), format="csr")).tocsr()
        links.eliminate_zeros()
    linked = np.diff(links.indptr) > 0
    if not linked.all():
        links = links[linked][:, linked].tocsr()
    out = np.asarray(links.sum(axis=1, dtype=np.float64)).ravel()
    indices = links.indices.astype(np.int32, copy=False)
    indptr = links.indptr.astype(np.int64)
    return Graph(indptr, indices, links.data, out, weight[linked].astype(np.float64)), linked


def check_node_weight(node_weight: Any, n_nodes: int, cut: str) -> np.ndarray | None:
    """Return positive float64 node weights, which only the ratio cut uses."""
    if node_weight is None:
        return None
    if cut != "ratio":
        raise ValueError(
            "node_weight is for cut='ratio'; the normalised cut weighs nodes by degree"
        )
    weight = np.asarray(node_weight, dtype=np.float64)
    if weight.shape != (n_nodes,):
        raise ValueError(
            f"node_weight must hold a number for each of {n_nodes} nodes; got shape {weight.shape}"
        )
    bad = ~(np.isfinite(weight) & (weight > 0))
    if bad.any():
        node = int(np.argmax(bad))
        raise ValueError(
            f"node_weight must be finite and above 0; node {node} has {weight[node]:g}"
        )
    return weight
