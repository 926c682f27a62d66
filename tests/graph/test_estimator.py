"""Graph DP-means: its objective, theorem 5.3, and the estimator."""

import igraph
import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

from countless._graph.input import build_graph
from countless.graph_dp_means import GraphDPMeans, kernel_dp_means
from countless.kernels.graph import kernel_pass
from plain import all_partitions


def plain_cut(A, labels, cut="normalized", node_weight=None):
    """Sum links to other clusters over degree or size, cluster by cluster; 0 / 0 is 0."""
    A = np.asarray(A, dtype=float)
    total = 0.0
    for c in np.unique(labels):
        inside = labels == c
        out = A[inside][:, ~inside].sum()
        size = np.ones(len(A)) if node_weight is None else np.asarray(node_weight)
        total += (
            out / (A[inside].sum() if cut == "normalized" else size[inside].sum()) if out else 0
        )
    return total


def random_links(n, density, seed, *, weighted=True, loops=True):
    random = np.random.RandomState(seed)
    A = (random.random_sample((n, n)) < density) * (random.randint(1, 5, (n, n)) if weighted else 1)
    A = np.triu(A, 0 if loops else 1)
    return (A + np.triu(A, 1).T).astype(float)


def planted(n_clusters, size, degree, inside, seed=0):
    """Draw a graph whose nodes have so many links, a given share of them in their cluster."""
    random = np.random.RandomState(seed)
    n = n_clusters * size
    truth = np.repeat(np.arange(n_clusters), size)
    a = random.randint(n, size=n * degree // 2)
    at_home = random.random_sample(len(a)) < inside
    b = np.where(
        at_home, truth[a] * size + random.randint(size, size=len(a)), random.randint(n, size=len(a))
    )
    A = sp.coo_array((np.ones(len(a)), (a, b)), shape=(n, n))
    A = ((A + A.T) > 0).astype(float).tolil()
    A.setdiag(0)
    order = random.permutation(n)
    return sp.csr_array(A)[order][:, order], truth[order]


graphs = st.builds(
    random_links,
    st.integers(2, 12),
    st.sampled_from([0.2, 0.4, 0.8]),
    st.integers(0, 2**31 - 1),
)
penalties = st.floats(-1.5, 0.2)


@given(graphs, penalties, st.sampled_from(["normalized", "ratio"]), st.booleans())
def test_results_agree_with_the_labels(A, penalty, cut, refine):
    model = GraphDPMeans(penalty, cut=cut, refine=refine, random_state=0).fit(A)
    assert model.cut_ == pytest.approx(plain_cut(A, model.labels_, cut), abs=1e-9)
    assert model.n_clusters_ == len(np.unique(model.labels_))
    assert model.objective_ == pytest.approx(model.cut_ + penalty * model.n_clusters_)
    assert model.objective_ == pytest.approx(model.objective_history_[-1], abs=1e-9)
    assert (np.diff(model.objective_history_) <= 0).all()
    firsts = [np.argmax(model.labels_ == c) for c in range(model.n_clusters_)]
    assert firsts == sorted(firsts)


def test_small_graphs_reach_the_enumerated_optimum():
    reached, tried = 0, 0
    for seed in range(72):
        n = 4 + seed % 4
        cut = ("normalized", "ratio")[seed % 2]
        A = random_links(n, (0.3, 0.5, 0.8)[seed % 3], seed, loops=seed % 5 == 0)
        unit = 1.0 if cut == "normalized" else A.sum() / n
        penalty = -unit * (0.15, 0.4, 0.7, 0.9)[seed // 3 % 4]
        best = min(
            plain_cut(A, labels, cut) + penalty * (labels.max() + 1)
            for labels in map(np.array, all_partitions(n))
        )
        found = GraphDPMeans(penalty, cut=cut, random_state=0).fit(A).objective_
        assert found >= best - 1e-9
        reached += found <= best + 1e-9
        tried += 1
    assert reached >= 0.95 * tried, f"{reached} of {tried}"


def kernel_of(A, weight, shift):
    laplacian = np.diag(A.sum(axis=1)) - A
    return shift * np.diag(1 / weight) - laplacian / np.outer(weight, weight)


def kernel_cost(K, weight, labels):
    """Sum weighted squared distances to the means in feature space, from kernel entries."""
    total = float(weight @ np.diag(K))
    for c in np.unique(labels):
        inside = labels == c
        w = weight[inside]
        total -= w @ K[np.ix_(inside, inside)] @ w / w.sum()
    return total


@given(st.integers(3, 9), st.integers(0, 10**6), st.sampled_from(["normalized", "ratio"]))
def test_penalised_cut_equals_weighted_kernel_dp_means(n, seed, cut):
    random = np.random.RandomState(seed)
    A = random_links(n, 0.6, seed) + 0.1  # no node without links
    labels = random.randint(3, size=n)
    k = len(np.unique(labels))
    weight = A.sum(axis=1) if cut == "normalized" else random.randint(1, 4, n).astype(float)
    shift = 1.0 + 2 * (A.sum(axis=1) / weight).max()
    laplacian = np.diag(A.sum(axis=1)) - A
    left = kernel_cost(kernel_of(A, weight, shift), weight, labels)
    constant = shift * n - np.trace(laplacian / weight[:, None])
    node_weight = None if cut == "normalized" else weight
    right = constant - shift * k + plain_cut(A, labels, cut, node_weight)
    assert left == pytest.approx(right)
    if cut == "normalized":  # the paper's own form
        sigma = shift - 1
        paper = sigma * n + np.trace(A / weight) - (sigma + 1) * k + plain_cut(A, labels)
        assert left == pytest.approx(paper)


def plain_algorithm1(K, weight, labels, penalty, max_iter=100):
    """Algorithm 1 with weights, in kernel form; a mean is a row of weights over the nodes."""
    labels = np.array(labels)
    for _ in range(max_iter):
        means = []
        for c in range(labels.max() + 1):
            mean = np.where(labels == c, weight, 0.0)
            means.append(mean / mean.sum())
        new = np.empty_like(labels)
        for i in range(len(K)):
            distances = [K[i, i] - 2 * mean @ K[i] + mean @ K @ mean for mean in means]
            if weight[i] * min(distances) > penalty + 1e-9:
                means.append(np.eye(len(K))[i])
                new[i] = len(means) - 1
            else:
                new[i] = int(np.argmin(np.round(distances, 9)))
        new = np.unique(new, return_inverse=True)[1]
        if np.array_equal(new, labels):
            return new
        labels = new
    return labels


@given(st.integers(3, 9), st.integers(0, 10**6), st.floats(-1.9, -0.1), st.booleans())
def test_batch_form_is_algorithm_1_with_the_kernel(n, seed, penalty, ratio):
    random = np.random.RandomState(seed)
    A = np.triu(random.random_sample((n, n)), 1)
    A = A + A.T  # weights without ties
    cut = "ratio" if ratio else "normalized"
    degree = A.sum(axis=1)
    weight = np.ones(n) if ratio else degree
    start = np.unique(random.randint(3, size=n), return_inverse=True)[1]
    shift = 2 * (degree / weight).max()
    expected = plain_algorithm1(kernel_of(A, weight, shift), weight, start, penalty + shift)
    model = GraphDPMeans(penalty, cut=cut, refine=False, init=start).fit(A)
    assert adjusted_rand_score(expected, model.labels_) == 1.0


def test_batch_form_never_opens_a_cluster_from_one_at_useful_penalties():
    A, _ = planted(4, 30, 10, 0.9)
    assert GraphDPMeans(-0.9, refine=False).fit(A).n_clusters_ == 1
    assert GraphDPMeans(-1.5, refine=False).fit(A).n_clusters_ > 1


# A node of few links is cheap to cut off by the ratio cut, so that there clusters must be clearer.
@pytest.mark.parametrize(("cut", "inside"), [("normalized", 0.75), ("ratio", 0.95)])
def test_planted_clusters_are_found(cut, inside):
    A, truth = planted(8, 50, 16, inside, seed=1)
    model = GraphDPMeans(cut=cut, random_state=0).fit(A)
    assert model.n_clusters_ == 8
    assert normalized_mutual_info_score(truth, model.labels_) > 0.9
    penalty = model.path_.penalty
    assert model.penalty_ == penalty
    assert model.objective_ <= plain_cut(A.toarray(), truth, cut) + penalty * 8


@pytest.mark.parametrize(("n", "degree"), [(60, 6), (300, 8), (1000, 20)])
def test_a_random_graph_is_one_cluster(n, degree):
    A, _ = planted(1, n, degree, 1.0, seed=n)
    n_components = sp.csgraph.connected_components(A)[0]
    model = GraphDPMeans(random_state=0).fit(A)
    assert model.n_clusters_ == n_components


def test_same_seed_same_labels_and_other_node_order_same_clusters():
    A, _ = planted(5, 40, 10, 0.8, seed=2)
    first = GraphDPMeans(random_state=3).fit(A).labels_
    np.testing.assert_array_equal(first, GraphDPMeans(random_state=3).fit(A).labels_)
    order = np.random.RandomState(0).permutation(200)
    again = GraphDPMeans(random_state=3).fit(A[order][:, order]).labels_
    assert adjusted_rand_score(first[order], again) > 0.95


def test_components_and_lonely_nodes_stay_apart():
    A = sp.block_diag([np.ones((4, 4)) - np.eye(4), [[0.0]], np.ones((3, 3)), [[2.0]]]).tocsr()
    for cut in ("normalized", "ratio"):
        model = GraphDPMeans(-0.3, cut=cut).fit(A)
        assert model.labels_.tolist() == [0, 0, 0, 0, 1, 2, 2, 2, 3]
        assert model.cut_ == 0.0
    assert GraphDPMeans(0.1).fit(A).n_clusters_ == 1
    assert GraphDPMeans(random_state=0).fit(A).n_clusters_ == 4


def test_graph_without_links():
    model = GraphDPMeans().fit(np.zeros((3, 3)))
    assert model.labels_.tolist() == [0, 1, 2]
    assert model.path_.n_clusters == 3


def test_loops_weigh_in_the_normalized_cut_only():
    A, _ = planted(3, 20, 8, 0.7, seed=4)
    looped = (A + 3 * sp.eye_array(60)).tocsr()
    for cut, same in (("ratio", True), ("normalized", False)):
        without = GraphDPMeans(-0.4, cut=cut, random_state=0).fit(A)
        loops = GraphDPMeans(-0.4, cut=cut, random_state=0).fit(looped)
        assert (loops.cut_ == pytest.approx(without.cut_)) == same
        assert loops.cut_ == pytest.approx(plain_cut(looped.toarray(), loops.labels_, cut))


def test_node_weight_is_the_size_of_a_node():
    A = random_links(9, 0.5, 7, loops=False) + 0.05
    np.fill_diagonal(A, 0)
    weight = np.arange(1.0, 10.0)
    model = GraphDPMeans(-0.5, cut="ratio", random_state=0).fit(A, node_weight=weight)
    assert model.cut_ == pytest.approx(plain_cut(A, model.labels_, "ratio", weight))


def test_any_form_of_the_same_graph():
    G = nx.les_miserables_graph()
    A = nx.to_scipy_sparse_array(G, dtype=float)
    expected = GraphDPMeans(-0.4, random_state=0).fit(A).labels_
    edges = igraph.Graph.from_networkx(G)
    forms = [G, edges, A.tocoo(), A.tocsc(), A.tolil(), sp.csr_matrix(A), A.toarray()]
    for form in forms:
        labels = GraphDPMeans(-0.4, random_state=0).fit(form).labels_
        np.testing.assert_array_equal(labels, expected)
    single = GraphDPMeans(-0.4, random_state=0).fit(A.astype(np.float32))
    np.testing.assert_array_equal(single.labels_, expected)


def test_multigraph_edges_add_up_and_loops_count_once():
    links = [(0, 1), (0, 1), (1, 2), (2, 2)]
    G = nx.MultiGraph(links)
    edges = igraph.Graph(3, links)
    expected = GraphDPMeans(-0.5, random_state=0).fit([[0, 2, 0], [2, 0, 1], [0, 1, 1]])
    for form in (G, edges):
        assert GraphDPMeans(-0.5, random_state=0).fit(form).cut_ == pytest.approx(expected.cut_)


def test_directed_graphs_are_refused_or_made_symmetric():
    A = np.array([[0, 1, 0], [0, 0, 2.0], [0, 2, 0]])
    directed = [
        A,
        nx.from_numpy_array(A, create_using=nx.DiGraph),
        igraph.Graph.Weighted_Adjacency(A),
    ]
    for form in directed:
        with pytest.raises(ValueError, match=r"directed.*symmetrize=True"):
            GraphDPMeans().fit(form)
        model = GraphDPMeans(-0.5, symmetrize=True).fit(form)
        assert model.cut_ == GraphDPMeans(-0.5).fit((A + A.T) / 2).cut_
    with pytest.raises(ValueError, match="from node 0 to node 1 weighs 1 and the one back 0"):
        GraphDPMeans().fit(A)


@pytest.mark.parametrize(
    ("A", "message"),
    [
        ([[0, -1.0], [-1.0, 0]], "the edge from node 0 to node 1 weighs -1"),
        ([[0, np.nan], [np.nan, 0]], "X contains NaN: row 0, column 1"),
        ([[0, np.inf], [np.inf, 0]], "X contains infinity: row 0, column 1"),
        ([[0.0, 1, 0], [1, 0, 1]], "must be square; got 2 rows and 3 columns"),
    ],
)
def test_bad_links_are_named(A, message):
    with pytest.raises(ValueError, match=message):
        GraphDPMeans(-0.5).fit(A)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"penalty": "high"}, "penalty must be 'auto' or a number; got 'high'"),
        ({"penalty": np.nan}, "penalty must be 'auto' or a number; got nan"),
        ({"cut": "min"}, "cut must be one of 'normalized', 'ratio'; got 'min'"),
        ({"refine": 1}, "refine must be True or False; got 1"),
        ({"n_init": 0}, "n_init must be an integer of at least 1; got 0"),
        ({"tol": -1.0}, "tol must be None or a number of at least 0; got -1.0"),
        ({"init": [0, 1, 1]}, "init needs a penalty"),
        ({"init": [0, 1], "penalty": -0.5}, "a label for each of 3 nodes; got shape"),
    ],
)
def test_bad_parameters_are_named(parameters, message):
    with pytest.raises(ValueError, match=message):
        GraphDPMeans(**parameters).fit(np.ones((3, 3)))


@pytest.mark.parametrize(
    ("cut", "weight", "message"),
    [
        ("normalized", [1, 1, 1], "node_weight is for cut='ratio'"),
        ("ratio", [1, 1], "a number for each of 3 nodes; got shape"),
        ("ratio", [1, 0, 1], "finite and above 0; node 1 has 0"),
    ],
)
def test_bad_node_weights_are_named(cut, weight, message):
    with pytest.raises(ValueError, match=message):
        GraphDPMeans(-0.5, cut=cut).fit(np.ones((3, 3)), node_weight=weight)


def test_init_is_where_the_fit_starts_and_n_init_never_hurts():
    A, truth = planted(6, 30, 10, 0.7, seed=5)
    model = GraphDPMeans(-0.5, init=truth, random_state=0).fit(A)
    start = plain_cut(A.toarray(), truth) - 0.5 * 6
    assert model.objective_history_[0] == pytest.approx(start)
    assert model.objective_ <= start
    one = GraphDPMeans(-0.3, random_state=0).fit(A).objective_
    assert GraphDPMeans(-0.3, n_init=3, random_state=0).fit(A).objective_ <= one


def test_too_few_passes_give_a_warning():
    A, _ = planted(6, 30, 10, 0.6, seed=6)
    with pytest.warns(ConvergenceWarning, match="max_iter=1 passes"):
        model = GraphDPMeans(-0.5, max_iter=1, random_state=0).fit(A)
    assert not model.converged_


def test_input_is_not_changed():
    A = sp.csr_array(random_links(8, 0.6, 3))
    before = A.copy()
    GraphDPMeans(-0.5).fit(A)
    assert (before != A).nnz == 0


def test_batch_kernel_sees_clusters_opened_in_the_same_pass():
    A = sp.csr_array(np.ones((4, 4)) - np.eye(4))
    graph, _ = build_graph(A, "ratio", None)
    labels = np.zeros(4, dtype=np.int32)
    out, weight = np.zeros(8), np.zeros(8)
    weight[0] = 4.0
    n_known = kernel_pass(*graph, 6.0, -5.0, labels, out, weight, 1)
    assert n_known == len(set(labels) | {0})
    assert kernel_dp_means(graph, -20.0, np.zeros(4, dtype=np.int32)).n_clusters == 4


@pytest.mark.parametrize(
    ("name", "n_clusters", "least"),
    [("football", 11, 0.88), ("karate", 2, 0.8), ("dolphins", 2, 0.85), ("polbooks", 2, 0.55)],
)
def test_real_graphs_by_any_seed(published, name, n_clusters, least):
    folder = published("graphs", name)
    edges = np.loadtxt(folder / "edges.csv", delimiter=",", skiprows=1, dtype=int)
    nodes = (folder / "nodes.csv").read_text().splitlines()[1:]
    truth = [line.rpartition(",")[2] for line in nodes]
    n = len(truth)
    weight = edges[:, 2] if edges.shape[1] > 2 else np.ones(len(edges))
    A = sp.coo_array((weight.astype(float), edges[:, :2].T), shape=(n, n))
    for seed in range(2):
        model = GraphDPMeans(random_state=seed).fit(A + A.T)
        assert model.n_clusters_ == n_clusters
        assert normalized_mutual_info_score(truth, model.labels_) > least


def test_links_that_differ_by_more_than_rounding_are_no_trouble():
    # A heavy node that leaves light ones behind: their weight is lost in the difference.
    random = np.random.RandomState(47)
    links = np.exp(-random.gamma(1.0, 25.0, size=(40, 40)))
    links = np.triu(links * (random.random_sample((40, 40)) < 0.15), 1)
    model = GraphDPMeans(-0.3, random_state=0).fit(links + links.T)
    assert np.isfinite(model.objective_)
    assert (np.diff(model.objective_history_) <= 0).all()
