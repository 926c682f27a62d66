"""Communities of neighbour graphs: modularity against networkx, optima against all partitions."""

from itertools import product

import networkx as nx
import numpy as np
import pytest
from sklearn.datasets import make_blobs

from countless._graph.communities import attained, choose_resolution, communities
from countless._spectral.affinity import NEIGHBORS, Affinity
from countless._spectral.necks import as_graph

LINKED = Affinity(NEIGHBORS, n_neighbors=15, parameters={}, n_jobs=None).between_rows


def weighted_graph(seed, n=9):
    random = np.random.RandomState(seed)
    links = np.triu(random.uniform(size=(n, n)) * (random.uniform(size=(n, n)) < 0.5), 1)
    links += np.diag(np.ones(n - 1), 1)  # no node without links
    return links + links.T


@pytest.mark.parametrize("resolution", [0.3, 1.0])
def test_attained_share_is_networkx_modularity(resolution):
    links = weighted_graph(0)
    labels = np.array([0, 0, 1, 1, 2, 2, 0, 1, 2], dtype=np.int32)
    whole = nx.from_numpy_array(links)
    parts = [set(np.flatnonzero(labels == c)) for c in range(3)]
    modularity = nx.community.modularity(whole, parts, resolution=resolution)
    found = attained(as_graph(links), labels, resolution)
    assert found * resolution + (1 - resolution) == pytest.approx(modularity)


@pytest.mark.parametrize("seed", range(5))
def test_communities_are_about_the_best_of_all_partitions(seed):
    graph = as_graph(weighted_graph(seed, n=7))
    partitions = (np.array([0, *rest], dtype=np.int32) for rest in product(range(4), repeat=6))
    best = max(attained(graph, labels, 0.8) for labels in partitions)
    found = attained(graph, communities(graph, 0.8), 0.8)
    assert best - 0.03 <= found <= best + 1e-9


def test_no_single_move_gains():
    X, _ = make_blobs(150, n_features=20, centers=4, cluster_std=4.0, random_state=1)
    graph = as_graph(LINKED(X))
    labels = communities(graph, 0.7)
    own = attained(graph, labels, 0.7)
    for row in range(0, 150, 7):
        for other in range(labels.max() + 1):
            moved = labels.copy()
            moved[row] = other
            assert attained(graph, moved, 0.7) <= own + 1e-9


@pytest.mark.parametrize("kind", ["normal", "sphere", "lognormal", "grid", "equal"])
def test_clouds_have_no_significant_resolution(kind):
    random = np.random.default_rng(3)
    rows = random.normal(size=(400, 30))
    if kind == "sphere":
        rows /= np.linalg.norm(rows, axis=1)[:, None]
    elif kind == "lognormal":
        rows = np.exp(0.7 * rows)
    elif kind == "grid":
        rows = random.integers(0, 4, size=(400, 30)).astype(float)
    elif kind == "equal":
        rows[:] = rows[0]
    found = choose_resolution(rows, LINKED, is_directional=kind == "sphere")
    assert not found.is_significant
