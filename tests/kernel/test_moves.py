"""Every move in feature space costs what the objective says it does, local penalties included."""

import numpy as np
import pytest
from sklearn.metrics.pairwise import rbf_kernel

from countless import GraphDPMeans, KernelDPMeans
from countless._search.kernel.clusters import KernelClusters, KernelTable, Prices
from countless._search.kernel.refine import MovableClusters
from countless._search.local_search import LocalSearch, OverSplit
from countless._threads import open_threads
from countless.kernels.gram import exchange_changes

PRICES = Prices(0.7, 0.3)


def draw(seed, prices=PRICES, n_rows=40, n_clusters=4):
    """A clustering of random rows in three groups, of which none uses all clusters."""
    random = np.random.RandomState(seed)
    X = random.standard_normal((n_rows, 2))
    group = random.randint(3, size=n_rows)
    labels = np.array([random.choice([c for c in range(n_clusters) if c != g]) for g in group])
    labels[:n_clusters] = np.arange(n_clusters)
    with open_threads(1) as each:
        weight = random.uniform(0.5, 2, n_rows)
        table = KernelTable(rbf_kernel(X), weight, group.astype(np.int64), each)
    return MovableClusters(table, prices, labels)


def objective(clusters, labels):
    """The objective of some labels, made from scratch."""
    labels = np.unique(labels, return_inverse=True)[1]
    return KernelClusters(clusters.table, clusters.prices, labels).objective


def scratch_objective(clusters):
    """The objective of a clustering, from the rows of the kernel alone."""
    table, labels = clusters.table, clusters.labels
    value = clusters.prices.cluster * len(np.unique(labels))
    value += clusters.prices.local * len(np.unique(table.group * 1000 + labels))
    for c in np.unique(labels):
        own = np.flatnonzero(labels == c)
        w, K = table.weight[own], table.kernel[np.ix_(own, own)]
        value += w @ np.diag(K) - w @ K @ w / w.sum()
    return value


@pytest.mark.parametrize("seed", range(4))
def test_rows_know_what_their_best_move_changes(seed):
    clusters = draw(seed)
    table = clusters.table
    changes = np.zeros(table.n_rows)
    exchange_changes(
        table.diagonal, table.weight, table.group, PRICES.local, clusters.labels, clusters.sums,
        clusters.weight, clusters.square, clusters.count, 0, table.n_rows, changes,
    )  # fmt: skip
    opening = clusters.opening_changes()
    for i in range(table.n_rows):
        if (clusters.labels == clusters.labels[i]).sum() == 1:
            continue
        after = []
        for c in range(clusters.n_clusters + 1):
            labels = clusters.labels.copy()
            labels[i] = c
            after.append(objective(clusters, labels) - clusters.objective)
        assert changes[i] == pytest.approx(min(0.0, *after[:-1]), abs=1e-9)
        assert opening[i] == pytest.approx(after[-1], abs=1e-9)


@pytest.mark.parametrize("move", ["split", "merge", "move_rows", "move_groups"])
@pytest.mark.parametrize("seed", range(4))
def test_moves_lower_the_objective_and_keep_sums_in_step(move, seed):
    low = Prices(0.05, 0.02) if move == "split" else PRICES
    clusters = draw(seed, low)
    before = clusters.objective
    assert getattr(clusters, move)() > 0
    assert clusters.objective < before
    assert clusters.objective == pytest.approx(scratch_objective(clusters), rel=1e-10)
    fresh = KernelClusters(clusters.table, clusters.prices, clusters.labels)
    np.testing.assert_allclose(clusters.sums, fresh.sums, atol=1e-9)
    assert np.array_equal(clusters.count, fresh.count)


@pytest.mark.parametrize("seed", range(4))
def test_groups_move_until_no_group_gains(seed):
    clusters = draw(seed)
    while clusters.move_groups():
        pass
    table = clusters.table
    for g in range(3):
        for a in range(clusters.n_clusters):
            rows = (table.group == g) & (clusters.labels == a)
            if not rows.any() or np.array_equal(rows, clusters.labels == a):
                continue
            for b in range(clusters.n_clusters + 1):
                labels = np.where(rows, b, clusters.labels)
                assert objective(clusters, labels) >= clusters.objective - 1e-9


@pytest.mark.parametrize("seed", range(4))
def test_merges_leave_no_pair_that_pays(seed):
    clusters = draw(seed, Prices(0.3, 0.1), n_clusters=8)
    assert clusters.merge() > 0
    for b in range(clusters.n_clusters):
        for a in range(b):
            labels = np.where(clusters.labels == b, a, clusters.labels)
            assert objective(clusters, labels) >= clusters.objective - 1e-9


@pytest.mark.parametrize("seed", range(4))
def test_over_splits_are_undone_unless_they_lower_the_objective(seed):
    clusters = draw(seed)
    search = LocalSearch(clusters, tol=0.0, max_iter=1000)
    while search.over_split(OverSplit(0.0, 10)):
        pass
    labels, before = clusters.labels.copy(), clusters.objective
    assert not search.over_split(OverSplit(0.0, 10))
    assert np.array_equal(clusters.labels, labels)
    assert clusters.objective == before == pytest.approx(scratch_objective(clusters))


def graph_kernel(adjacency):
    """The kernel of the normalised cut, the weights, and the penalty that is added to it."""
    degree = adjacency.sum(axis=1)
    laplacian = np.diag(degree) - adjacency
    return 2 * np.diag(1 / degree) - laplacian / np.outer(degree, degree), degree, 2.0


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("penalty", [-0.6, -0.7])
def test_a_graph_kernel_is_searched_as_well_as_the_graph(seed, penalty):
    random = np.random.RandomState(seed)
    block = np.repeat(np.arange(6), 25)
    links = np.triu(random.uniform(size=(150, 150)) < np.where(block[:, None] == block, 0.3, 0.02))
    adjacency = np.triu(links, 1) + np.triu(links, 1).T.astype(float)
    kernel, degree, shift = graph_kernel(adjacency)
    graph = GraphDPMeans(penalty, random_state=0).fit(adjacency)
    model = KernelDPMeans(penalty + shift, kernel="precomputed").fit(kernel, sample_weight=degree)
    again = GraphDPMeans(penalty, init=model.labels_, refine=False, max_iter=1).fit(adjacency)
    assert again.objective_ <= graph.objective_ + 0.01 * abs(graph.objective_)


def test_only_kernels_of_as_many_dimensions_as_rows_are_flat():
    X = np.random.RandomState(0).standard_normal((60, 3))
    one, group = np.ones(60), np.zeros(60, dtype=np.int64)
    with open_threads(1) as each:
        flat = [
            KernelTable(kernel, one, group, each).is_flat
            for kernel in (X @ X.T + 100, rbf_kernel(X), np.eye(60), np.eye(60) + 5, 0 * X @ X.T)
        ]
    assert flat == [False, False, True, True, False]
