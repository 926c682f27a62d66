"""The path of a graph's penalties, the tree of merges, and what random graphs show."""

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from countless._graph.corners import CUT_SEARCH, find_corners, merge_tree, steps
from countless._graph.input import build_graph
from countless._graph.moves import Clusters, dense_groups, lower_objective
from countless._graph.null_reference import null_prices, random_graph
from countless.graph_dp_means import GraphDPMeans


def graph_of(A, cut="normalized"):
    return build_graph(sp.csr_array(A), cut, None)[0]


def random_weights(n, seed, density=0.6):
    """Draw a connected graph with weights that have no ties."""
    random = np.random.RandomState(seed)
    A = np.triu(random.random_sample((n, n)) * (random.random_sample((n, n)) < density), 1)
    A[np.arange(n - 1), np.arange(1, n)] += 0.1
    return A + A.T


@given(st.integers(2, 10), st.integers(0, 10**6), st.sampled_from(["normalized", "ratio"]))
def test_tree_merges_the_cheapest_pair_each_time(n, seed, cut):
    A = random_weights(n, seed)
    graph = graph_of(A, cut)
    tree = merge_tree(graph, graph.unit)
    clusters = [frozenset([i]) for i in range(n)]

    def ratio(members):
        inside = np.isin(np.arange(n), list(members))
        return A[inside][:, ~inside].sum() / graph.weight[inside].sum()

    for cost in tree.cost:
        linked = [
            (ratio(a | b) - ratio(a) - ratio(b), a, b)
            for i, a in enumerate(clusters)
            for b in clusters[:i]
            if A[np.ix_(list(a), list(b))].any()
        ]
        change, a, b = min(linked, key=lambda merge: merge[0])
        assert cost == pytest.approx(graph.unit + change, abs=1e-9)
        clusters = [c for c in clusters if c not in (a, b)] + [a | b]
    assert len(clusters) == 1


def test_tree_joins_components_last_at_the_price_of_a_unit():
    A = sp.block_diag([random_weights(4, 0), random_weights(3, 1), random_weights(5, 2)])
    graph = graph_of(A)
    tree = merge_tree(graph, graph.unit)
    assert tree.cost[-2:].tolist() == [graph.unit] * 2
    assert len(np.unique(tree.cut(9))) == 3
    assert tree.cut(9)[[0, 4, 7]].tolist() == [0, 1, 2]


@given(st.integers(3, 14), st.integers(0, 10**6), st.floats(-0.95, -0.05))
def test_updated_sums_equal_recomputed_sums(n, seed, penalty):
    graph = graph_of(random_weights(n, seed, 0.4))
    random = np.random.RandomState(seed)
    clusters = Clusters(graph)
    before = clusters.objective(penalty)
    clusters.move(random, graph.unit, penalty=penalty)
    fresh = Clusters(graph, clusters.labels)
    np.testing.assert_allclose(clusters.out, fresh.out, atol=1e-9)
    np.testing.assert_allclose(clusters.weight, fresh.weight, atol=1e-9)
    np.testing.assert_array_equal(clusters.count, fresh.count)
    assert clusters.objective(penalty) <= before
    joined = graph.joined(clusters.compact())
    assert Clusters(joined).objective(penalty) == pytest.approx(clusters.objective(penalty))


def test_moves_inside_given_parts_keep_nodes_in_their_cluster():
    graph = graph_of(random_weights(30, 3, 0.3))
    pen = (np.arange(30) % 3).astype(np.int32)
    clusters = Clusters(graph)
    clusters.move(np.random.RandomState(0), graph.unit, penalty=-0.4, pen=pen)
    for c in np.unique(clusters.labels):
        assert len(np.unique(pen[clusters.labels == c])) == 1


def test_dense_groups_of_a_ring_of_cliques_are_the_cliques():
    graph = graph_of(nx.to_scipy_sparse_array(nx.ring_of_cliques(8, 6), dtype=float))
    group, coarse = dense_groups(graph, 3.0, np.random.RandomState(0))
    assert coarse.n_nodes == 8
    assert all(len(np.unique(part)) == 1 for part in group.reshape(8, 6))


def test_a_merged_pair_of_clusters_is_split_again():
    graph = graph_of(nx.to_scipy_sparse_array(nx.ring_of_cliques(8, 6), dtype=float))
    merged = np.repeat(np.arange(4), 12)
    found = lower_objective(graph, merged, -0.5, np.random.RandomState(0))
    assert found.n_clusters == 8


def test_path_steps_are_where_the_objectives_cross():
    model = GraphDPMeans(random_state=0).fit(nx.les_miserables_graph())
    path = model.path_
    assert (np.diff(path.breakpoints) > 0).all()
    for penalty in path.breakpoints:
        below, above = penalty - 1e-7, penalty + 1e-7
        assert path.n_clusters_at(below) > path.n_clusters_at(above)
        assert path.objective_at(below) == pytest.approx(path.objective_at(above), abs=1e-4)
    labels = path.labels_at(path.penalty)
    assert labels.max() + 1 == path.n_clusters == path.n_clusters_at(path.penalty)
    for plateau in path.plateaus[1:]:
        assert path.n_clusters_at(path.penalty_for(plateau.n_clusters)) == plateau.n_clusters
    with pytest.raises(ValueError, match="n_clusters=76 is not on the path"):
        path.penalty_for(76)


def test_path_counts_nodes_without_links():
    A = sp.block_diag([nx.to_numpy_array(nx.ring_of_cliques(6, 5)), np.zeros((2, 2))])
    path = GraphDPMeans(random_state=0).fit(A.tocsr()).path_
    assert path.n_clusters == 8
    assert path.n_clusters_at(-0.001) == 3
    assert path.n_clusters_at(0.5) == 1
    assert path.labels_at(0.5).tolist() == [0] * 32
    assert repr(path).startswith("GraphPath(n_clusters=8, penalty=-0.")


@pytest.mark.parametrize("cut", ["normalized", "ratio"])
def test_random_graphs_keep_the_degrees(cut):
    G = nx.barabasi_albert_graph(120, 4, seed=0)
    graph = graph_of(nx.to_scipy_sparse_array(G, dtype=float), cut)
    tied = random_graph(graph, np.random.RandomState(0))
    assert tied.n_nodes == graph.n_nodes
    lost = np.abs(np.sort(tied.out) - np.sort(graph.out)).sum() / graph.out.sum()
    assert lost < 0.02
    if cut == "normalized":
        np.testing.assert_allclose(tied.weight, tied.out)


def test_the_resolution_of_the_search_is_no_evidence_in_random_graphs():
    graph = graph_of(nx.to_scipy_sparse_array(nx.gnm_random_graph(200, 500, seed=0), dtype=float))
    null = null_prices(graph)
    assert null.price[-1] > 1.5 * CUT_SEARCH.lowest_price
    assert 0 <= null.firmness < 0.1


def test_many_small_communities_of_a_sparse_graph_are_found(published):
    folder = published("graphs", "dblp_sample")
    G = nx.Graph()
    G.add_edges_from(
        line.split(",")[:2] for line in (folder / "edges.csv").read_text().splitlines()[1:]
    )
    assert 50 <= GraphDPMeans(random_state=0).fit(G).n_clusters_ <= 70


def test_corners_get_cheaper_with_more_clusters():
    graph = graph_of(nx.to_scipy_sparse_array(nx.les_miserables_graph(), dtype=float))
    corners = find_corners(graph, np.random.RandomState(0))
    found = steps(corners, graph.unit)
    assert (np.diff(found.n_clusters) > 0).all()
    assert (np.diff(found.high) < 0).all()
    assert found.n_clusters[0] == 1
