"""Graphs built from points: how they are recognised, and clusters that necks part."""

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components
from sklearn.metrics import adjusted_rand_score
from sklearn.neighbors import kneighbors_graph, radius_neighbors_graph

from countless import GraphDPMeans
from countless._graph.input import build_graph
from countless._graph.neighbors import (
    assume_neighborhoods,
    find_neighborhoods,
    mean_clustering,
    null_depth,
)
from countless._graph.path import NeckPath

pytestmark = pytest.mark.slow

SYMMETRIC = {
    "union": lambda near: near.maximum(near.T),
    "mutual": lambda near: near.minimum(near.T),
    "mean": lambda near: (near + near.T) / 2,
}


def near_graph(X, n_neighbors, form="union", *, weighted=False):
    """Link each row to its nearest neighbours, by 1 or by a weight that falls with distance."""
    near = kneighbors_graph(X, n_neighbors, mode="distance" if weighted else "connectivity")
    if weighted:
        near.data = np.exp(-((near.data / np.median(near.data)) ** 2))
    links = sp.csr_array(SYMMETRIC[form](near))
    links.eliminate_zeros()
    return links


def squares(size=250, distance=12.0, seed=0):
    """Draw four round clusters at the corners of a square."""
    truth = np.repeat(np.arange(4), size)
    corners = distance * np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
    return np.random.default_rng(seed).normal(size=(4 * size, 2)) + corners[truth], truth


def cell_types(seed, n=2400, n_features=20):
    """Draw eight types of unequal sizes and spreads, each shifted a bit in each of 3 batches."""
    random = np.random.default_rng(seed)
    share = 0.04 + random.dirichlet(np.full(8, 3.0))
    truth = random.choice(8, n, p=share / share.sum())
    center = 2.5 * random.normal(size=(8, n_features))
    shift = 0.3 * random.normal(size=(3, n_features))
    spread = random.uniform(0.7, 1.3, 8)[truth, None]
    noise = spread * random.normal(size=(n, n_features))
    return center[truth] + shift[random.integers(3, size=n)] + noise, truth


def neighborhoods_of(links):
    return find_neighborhoods(build_graph(sp.csr_array(links, dtype=float), "normalized", None)[0])


@pytest.mark.parametrize("form", SYMMETRIC)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_features", [2, 5, 20, 50])
def test_graphs_of_nearest_neighbors_are_recognised(form, weighted, n_features):
    X = np.random.default_rng(n_features).normal(size=(600, n_features))
    X[:300, 0] += 8.0
    found = neighborhoods_of(near_graph(X, 12, form, weighted=weighted))
    assert found is not None
    assert found[1:3] == (12, form == "mutual")


@pytest.mark.parametrize(
    "G",
    [
        nx.karate_club_graph(),
        nx.les_miserables_graph(),
        nx.barabasi_albert_graph(1000, 5, seed=0),
        nx.powerlaw_cluster_graph(1000, 5, 0.8, seed=0),
        nx.gnm_random_graph(500, 3000, seed=0),
        nx.gnp_random_graph(200, 0.5, seed=0),
        nx.random_regular_graph(8, 500, seed=0),
        nx.planted_partition_graph(10, 40, 0.4, 0.02, seed=0),
        nx.relaxed_caveman_graph(20, 10, 0.1, seed=0),
        nx.ring_of_cliques(8, 6),
        nx.windmill_graph(10, 6),
        nx.grid_2d_graph(30, 30),
        nx.complete_graph(40),
        nx.random_labeled_tree(300, seed=0),
    ],
)
def test_other_graphs_are_not_recognised_as_neighbor_graphs(G):
    assert neighborhoods_of(nx.to_scipy_sparse_array(G, weight=None)) is None


@pytest.mark.parametrize("name", ["football", "karate", "dolphins", "polbooks", "email_eu_core"])
def test_published_graphs_are_not_recognised_as_neighbor_graphs(published, name):
    edges = np.loadtxt(
        published("graphs", name) / "edges.csv", delimiter=",", skiprows=1, dtype=int
    )
    links = sp.coo_array((np.ones(len(edges)), edges[:, :2].T), shape=(edges.max() + 1,) * 2)
    links = (links + links.T).tolil()
    links.setdiag(0)
    assert neighborhoods_of(links) is None


def test_clustering_coefficient_equals_networkx():
    G = nx.watts_strogatz_graph(200, 8, 0.2, seed=0)
    graph, _ = build_graph(nx.to_scipy_sparse_array(G, dtype=float), "normalized", None)
    assert mean_clustering(graph) == pytest.approx(nx.average_clustering(G))


@pytest.mark.parametrize("form", SYMMETRIC)
@pytest.mark.parametrize("weighted", [False, True])
def test_four_components_are_not_cut(form, weighted):
    X, truth = squares()
    links = near_graph(X, 10, form, weighted=weighted)
    model = GraphDPMeans(random_state=0).fit(links)
    # Mutual links leave single rows and pairs of rows apart.
    assert model.n_clusters_ == connected_components(links, directed=False)[0]
    large = np.bincount(model.labels_)[model.labels_] > 10
    assert len(np.unique(model.labels_[large])) == 4
    assert adjusted_rand_score(truth[large], model.labels_[large]) == 1.0


@pytest.mark.parametrize("seed", range(3))
def test_clusters_that_touch_are_separated(seed):
    X, truth = squares(distance=6.0, seed=seed)
    links = near_graph(X, 10)
    assert connected_components(links, directed=False)[0] < 4
    model = GraphDPMeans(random_state=0).fit(links)
    assert model.n_clusters_ == 4
    assert adjusted_rand_score(truth, model.labels_) > 0.95


@pytest.mark.parametrize("n", [500, 3000])
@pytest.mark.parametrize("n_features", [2, 10, 50])
@pytest.mark.parametrize("kind", ["normal", "uniform"])
def test_a_cloud_is_one_cluster(n, n_features, kind):
    X = getattr(np.random.default_rng(n + n_features), kind)(size=(n, n_features))
    for n_neighbors in (10, 15):
        links = near_graph(X, n_neighbors)
        n_components = connected_components(links, directed=False)[0]
        model = GraphDPMeans(random_state=0).fit(links)
        assert isinstance(model.path_, NeckPath)
        assert model.n_clusters_ == n_components
    assert model.path_.plateaus[0].score == 0  # no neck is cut
    assert 0 < model.path_.confidence <= 1


@pytest.mark.parametrize("seed", range(3))
def test_cell_types_are_found_whatever_the_batches(seed):
    X, truth = cell_types(seed)
    for form in ("union", "mean"):
        model = GraphDPMeans(random_state=seed).fit(near_graph(X, 15, form))
        assert model.n_clusters_ == 8
        assert adjusted_rand_score(truth, model.labels_) > 0.95


def test_a_small_cluster_beside_a_large_one_is_found():
    random = np.random.default_rng(0)
    X = random.normal(size=(2100, 2))
    X[2000:] = 0.3 * X[2000:] + [3.6, 0.0]
    links = near_graph(X, 10)
    assert connected_components(links, directed=False)[0] == 1
    model = GraphDPMeans(random_state=0).fit(links)
    assert model.n_clusters_ == 2
    assert adjusted_rand_score(np.arange(2100) >= 2000, model.labels_) > 0.95


def test_the_answer_does_not_depend_on_the_seed():
    X, _ = squares(size=120, distance=5.5)
    links = near_graph(X, 10)
    first, *others = (GraphDPMeans(random_state=seed).fit(links) for seed in range(4))
    for other in others:
        np.testing.assert_array_equal(first.labels_, other.labels_)


def test_a_directed_graph_of_neighbors_is_made_symmetric():
    X, truth = squares(size=100)
    near = kneighbors_graph(X, 10)
    model = GraphDPMeans(random_state=0).fit(near)
    mean = GraphDPMeans(random_state=0).fit((near + near.T) / 2)
    np.testing.assert_array_equal(model.labels_, mean.labels_)
    assert adjusted_rand_score(truth, model.labels_) == 1.0
    directed = nx.from_scipy_sparse_array(near, create_using=nx.DiGraph)
    np.testing.assert_array_equal(GraphDPMeans().fit(directed).labels_, mean.labels_)
    with pytest.raises(ValueError, match=r"the graph is directed.*symmetrize=True"):
        GraphDPMeans(symmetrize=False).fit(near)
    near[0, near[[0]].indices[0]] = 0
    near.eliminate_zeros()
    with pytest.raises(ValueError, match=r"the graph is directed.*symmetrize=True"):
        GraphDPMeans().fit(near)


def test_the_null_can_be_given():
    X, _ = squares(size=100)
    within = radius_neighbors_graph(X, 0.8)
    assert not isinstance(GraphDPMeans().fit(within).path_, NeckPath)
    model = GraphDPMeans(null="neighbors").fit(within)
    assert isinstance(model.path_, NeckPath)
    large = np.bincount(model.labels_)[model.labels_] > 10
    assert len(np.unique(model.labels_[large])) == 4
    near = near_graph(X, 10)
    assert not isinstance(GraphDPMeans(null="degrees").fit(near).path_, NeckPath)
    for name, value in (("null", "random"), ("symmetrize", "yes")):
        with pytest.raises(ValueError, match=f"{name} must be .*; got '{value}'"):
            GraphDPMeans(**{name: value}).fit(near)


@pytest.mark.parametrize("cut", ["normalized", "ratio"])
def test_path_holds_clusterings_between_components_and_the_finest(cut):
    X, _ = squares(distance=6.0)
    model = GraphDPMeans(cut=cut, random_state=0).fit(near_graph(X, 10))
    path = model.path_
    assert path.n_clusters == model.n_clusters_ == path.n_clusters_at(model.penalty_) == 4
    np.testing.assert_array_equal(path.labels_at(path.penalty), model.labels_)
    assert path.objective_at(path.penalty) == pytest.approx(model.objective_)
    assert model.objective_ == pytest.approx(model.cut_ + 4 * model.penalty_)
    assert (np.diff(path.breakpoints) > 0).all()
    for plateau in path.plateaus[1:]:
        k = plateau.n_clusters
        assert k < 4
        assert len(np.unique(path.labels_at(path.penalty_for(k)))) == k
    assert path.plateaus[0].width > path.necks.null_depth


def test_tiny_graphs_may_be_called_neighbor_graphs():
    for links in (np.zeros((3, 3)), np.ones((2, 2)), nx.path_graph(4), nx.complete_graph(5)):
        model = GraphDPMeans(null="neighbors").fit(links)
        assert model.n_clusters_ in (1, 3)


def test_null_depth_falls_with_the_dimension():
    depths = []
    for n_features in (1, 3, 20):
        X = np.random.default_rng(0).normal(size=(500, n_features))
        near = assume_neighborhoods(build_graph(near_graph(X, 15), "normalized", None)[0])
        depths.append(null_depth(near))
    assert depths == sorted(depths, reverse=True)
