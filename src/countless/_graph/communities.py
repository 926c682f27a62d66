"""Communities of a neighbour graph: modularity, at a resolution chosen against a null reference.

In many dimensions distances of rows differ little, and there are too few rows for a covariance per
cluster; but nearest neighbours still are mostly of one cluster. The graph of nearest neighbours is
partitioned by modularity (Reichardt and Bornholdt, 2006): with ``s_c`` the share of links that end
in cluster c, and ``gamma`` the resolution, the share of the modularity that is attained is ::

    1 - sum_c s_c^2 - (share of links between clusters) / gamma

It is 0 for one cluster and at most 1. Higher resolutions give more clusters, in any graph. So the
same is computed for neighbour graphs of clouds without clusters, of the data's kind, and the
resolution is one at which the data exceed them most. If they hardly do at any, there is one
cluster.

J. Reichardt and S. Bornholdt, *Statistical mechanics of community detection*, Physical Review E 74,
2006.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from countless._graph.moves import Clusters, Graph, dense_groups, regroup
from countless._path.null_reference import bells_and_boxes, principal_axes
from countless._spectral.necks import as_graph
from countless.divergences import get_divergence


@dataclass(frozen=True)
class CommunitySearch:
    """Constants of the search; ``benchmarks/auto_evidence.py --wide`` shows their worth."""

    # Resolutions: at higher ones than 1, as in plain modularity, most clouds are partitioned.
    least_resolution: float = 0.05
    n_resolutions: int = 12
    # Rows on which the resolution is chosen, and clouds of each kind.
    sampled_rows: int = 2000
    n_clouds: int = 4
    # Least excess over the clouds, for more than one cluster.
    least_excess: float = 0.08
    # Of the resolutions whose excess is within a fifth of the largest the highest is taken: they
    # are about as good, and show more.
    tolerance: float = 0.2
    # Rounds of moves of single rows after those of groups.
    n_rounds: int = 5

    @property
    def resolutions(self) -> np.ndarray:
        """The resolutions, lowest first."""
        return np.geomspace(self.least_resolution, 1.0, self.n_resolutions)


COMMUNITY_SEARCH = CommunitySearch()


class Resolution(NamedTuple):
    """A resolution, and by how much the data exceed structureless clouds there."""

    value: float
    excess: float

    @property
    def is_significant(self) -> bool:
        """Whether there is more than one cluster."""
        return self.excess >= COMMUNITY_SEARCH.least_excess


def communities(graph: Graph, resolution: float) -> np.ndarray:
    """Partition a graph by modularity, with a fixed order of visits.

    Examples
    --------
    >>> import networkx as nx
    >>> ring = nx.to_scipy_sparse_array(nx.ring_of_cliques(num_cliques=4, clique_size=5))
    >>> communities(as_graph(ring), 0.5).tolist()
    [0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 3, 3, 3, 3, 3]
    """
    random = np.random.RandomState(0)
    crowding = resolution * graph.unit / graph.weight.sum()
    labels, _ = dense_groups(graph, resolution, random)
    for _ in range(COMMUNITY_SEARCH.n_rounds):
        clusters = Clusters(graph, labels)
        if not clusters.move(random, graph.unit, crowding=np.full(graph.n_nodes, crowding)):
            break
        labels = regroup(graph, clusters.compact(), crowding, random)
    return labels


def attained(graph: Graph, labels: np.ndarray, resolution: float) -> float:
    """Return the share of the modularity that a partition attains, 0 for one cluster.

    Examples
    --------
    >>> import networkx as nx
    >>> ring = as_graph(nx.to_scipy_sparse_array(nx.ring_of_cliques(num_cliques=4, clique_size=5)))
    >>> round(attained(ring, communities(ring, 1.0), 1.0), 3)  # 40 links inside of 44
    0.659
    >>> attained(ring, np.zeros(20, dtype=np.int32), 1.0)
    0.0
    """
    clusters = Clusters(graph, labels)
    total = graph.out.sum()
    share = clusters.weight / total
    return float(1.0 - share @ share - clusters.out.sum() / total / resolution)


def choose_resolution(
    X: Any, linked: Callable[[Any], Any], *, is_directional: bool = False
) -> Resolution:
    """Return the resolution at which rows exceed clouds without clusters most.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n, d)
        A sample of the rows is used, which does not depend on a random state.
    linked : callable
        Returns the symmetric neighbour graph of rows.
    is_directional : bool
        Whether rows have unit length; then those of clouds have, too.
    """
    random = np.random.default_rng(0)
    rows = X
    if X.shape[0] > COMMUNITY_SEARCH.sampled_rows:
        chosen = random.permutation(X.shape[0])[: COMMUNITY_SEARCH.sampled_rows]
        rows = X[np.sort(chosen)]
    found = _profile(as_graph(linked(rows)))
    dense = (rows.toarray() if sp.issparse(rows) else rows).astype(np.float64)
    null = np.max(
        [
            np.mean([_profile(as_graph(linked(cloud))) for cloud in kind], axis=0)
            for kind in _clouds(dense, random, is_directional)
        ],
        axis=0,
    )
    excess = found - null
    good = np.flatnonzero(excess >= (1.0 - COMMUNITY_SEARCH.tolerance) * excess.max())
    best = int(good[-1])
    return Resolution(float(COMMUNITY_SEARCH.resolutions[best]), float(excess[best]))


def _profile(graph: Graph) -> np.ndarray:
    """Return the share of the modularity that is attained at each resolution."""
    return np.array(
        [attained(graph, communities(graph, at), at) for at in COMMUNITY_SEARCH.resolutions]
    )


def _clouds(
    rows: np.ndarray, random: np.random.Generator, is_directional: bool
) -> Iterator[list[np.ndarray]]:
    """Draw gamma and uniform clouds of the rows' covariance, and rows with columns permuted."""
    n_clouds = COMMUNITY_SEARCH.n_clouds
    scale = np.abs(rows).max() or 1.0
    rows = rows / scale
    center = rows.mean(axis=0)
    if np.ptp(rows, axis=0).any():  # equal rows have no principal axes
        ones = np.ones(len(rows))
        axes = principal_axes(rows, ones, center, get_divergence("sqeuclidean"))
        for kind in bells_and_boxes(axes, len(rows), random, n_clouds):
            clouds = [center + cloud @ axes.direction for cloud in kind]
            yield [_unit(cloud) for cloud in clouds] if is_directional else clouds
    permuted = [random.permuted(rows, axis=0) for _ in range(n_clouds)]
    yield [_unit(cloud) for cloud in permuted] if is_directional else permuted


def _unit(rows: np.ndarray) -> np.ndarray:
    length = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / np.where(length > 0, length, 1.0)
