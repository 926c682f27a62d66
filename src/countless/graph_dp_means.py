"""Graph DP-means: normalised and ratio cuts that need no k.

They minimise ``Cut + penalty * k``, where ``Cut`` sums, over clusters, the links to other clusters
divided by the cluster's degree (normalised cut) or size (ratio cut). The cut of one cluster is 0,
so that only negative penalties give more than one.

By theorem 5.3 of Kulis and Jordan, *Revisiting k-means: new algorithms via Bayesian
nonparametrics*, ICML 2012, this is weighted kernel DP-means. With ``L`` the Laplacian of the graph,
``W`` the diagonal of node weights and ``K = s W^-1 - W^-1 L W^-1``, the kernel objective at penalty
``l`` is ``s n - tr(W^-1 L) + Cut + (l - s) k``. For the normalised cut ``W`` is ``D`` and ``s`` is
the paper's sigma plus one.
"""

from __future__ import annotations

import warnings
from math import isfinite
from numbers import Real
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from countless._compat import (
    CallbackSupportMixin,
    OnPass,
    ignore_pass,
    report_passes,
    with_callbacks,
)
from countless._graph.corners import starts_at
from countless._graph.input import CUTS, as_matrix, build_graph, check_links, check_node_weight
from countless._graph.moves import Clusters, Graph, Partition, lower_objective
from countless._graph.path import NULLS, NeckPath, graph_path, spread_labels
from countless._labels import number_by_appearance
from countless._numbers import validate_numbers
from countless._parameters import check_counts, check_flags, check_tol, is_auto
from countless._path.layers import LayeredMixin
from countless.kernels.graph import kernel_pass

# Up to this many links the local search runs until no move lowers the objective (tol = 0); above,
# it stops at this tolerance.
SMALL_LINKS = 200_000
LARGE_GRAPH_TOL = 1e-3

Start = tuple[np.ndarray, np.ndarray | None]


def kernel_dp_means(
    graph: Graph,
    penalty: float,
    start: np.ndarray,
    *,
    max_iter: int = 100,
    on_pass: OnPass = ignore_pass,
) -> Partition:
    """Run Algorithm 1 of Kulis and Jordan with the kernel of a cut, from a given clustering.

    The shift is the smallest that makes the kernel positive semi-definite for every graph with
    these degrees; the larger it is, the more a node tends to stay in its cluster.
    """
    n = graph.n_nodes
    shift = 2.0 * float((graph.out / graph.weight).max())
    clusters = Clusters(graph, start)
    history = [clusters.objective(penalty)]
    out, weight = np.empty(2 * n), np.empty(2 * n)
    converged = False
    while len(history) <= max_iter and not converged:
        k = clusters.n_clusters
        out[:k], weight[:k] = clusters.out[:k], clusters.weight[:k]
        labels = clusters.labels.copy()
        kernel_pass(*graph, shift, penalty, labels, out, weight, k)
        labels = number_by_appearance(labels)[1]
        converged = np.array_equal(labels, number_by_appearance(clusters.labels)[1])
        clusters = Clusters(graph, labels)
        history.append(min(history[-1], clusters.objective(penalty)))
        on_pass(history[-1], clusters.n_clusters)
    return Partition(clusters.compact(), clusters.cut(), clusters.n_clusters, history, converged)


def graph_dp_means(
    graph: Graph,
    penalty: float,
    random: np.random.RandomState,
    *,
    start: Start | None = None,
    tol: float = 0.0,
    max_iter: int = 100,
    on_pass: OnPass = ignore_pass,
) -> Partition:
    """Find clusters with a low penalised cut.

    Parameters
    ----------
    graph : Graph
        The nodes that have links.
    penalty : float
        The penalty of one cluster, negative.
    random : RandomState
        The order in which nodes are visited.
    start : (labels, groups), optional
        Initial clusters, and None or groups of nodes that are likely to move together. By default
        several are tried, and the best result is kept.
    tol, max_iter, on_pass
        As in `lower_objective`.
    """
    settings: dict[str, Any] = {"tol": tol, "max_iter": max_iter, "on_pass": on_pass}
    starts = [start] if start else starts_at(graph, graph.unit + penalty, random)
    ends = (
        lower_objective(graph, labels, penalty, random, groups=groups, **settings)
        for labels, groups in starts
    )
    return min(ends, key=lambda end: end.history[-1])


class GraphDPMeans(LayeredMixin, CallbackSupportMixin, ClusterMixin, BaseEstimator):
    """Cluster the nodes of a graph without choosing the number of clusters.

    Minimises the normalised or the ratio cut plus a penalty for each cluster. One cluster has no
    cut: the penalty is negative, a reward, and the closer to 0 the fewer the clusters.

    Parameters
    ----------
    penalty : 'auto' or float, default='auto'
        The penalty added for each cluster. Useful values lie between -1 and 0 for the normalised
        cut, and between minus the mean degree and 0 for the ratio cut (in general, minus the sum of
        links to other nodes over the sum of node weights). From 0 on the result is one cluster;
        close to the lower end clusters are pairs and triples. 'auto' takes it from the plateau of
        `path_` that most exceeds the null reference (see ``null``).
    cut : {'normalized', 'ratio'}, default='normalized'
        Whether links to other clusters are divided by the degree of a cluster or by its size.
    refine : bool, default=True
        Local search: move nodes, parts of clusters and whole clusters as long as that lowers the
        objective. False is the batch algorithm of the paper, kernel DP-means from one cluster or
        from ``init``; from one cluster it opens no other at useful penalties of the normalised cut.
    symmetrize : 'auto' or bool, default='auto'
        Whether to take the mean of both directions of a directed graph, which is an error
        otherwise. 'auto' does so if every node has the same out-degree of at least two: a
        nearest-neighbour graph, as returned by `sklearn.neighbors.kneighbors_graph`.
    null : {'auto', 'degrees', 'neighbors'}, default='auto'
        The null reference of ``penalty='auto'``. 'degrees' are random graphs with the same degrees.
        They have hardly any triangles, so that any graph that was built from points looks clustered
        by comparison. 'neighbors' are neighbour graphs of clouds without clusters, with the same
        number of neighbours and the same intrinsic dimension: then clusters are separated by necks
        (sparse cuts) that are deeper than theirs, and a component without such a neck is not cut.
        'auto' uses 'neighbors' if the degree distribution ends as abruptly, and the clustering
        coefficient is as high, as in a nearest-neighbour graph; it does not detect radius graphs.
    init : array-like of shape (n_nodes,), optional
        Initial labels of the nodes, with a given penalty.
    n_init : int, default=1
        Number of runs; the one with the lowest objective is kept.
    max_iter : int, default=100
        Maximum number of passes.
    tol : float, optional
        Stop when moving parts of clusters lowers the objective by less than this share of it. 0
        continues until no move lowers it. The default is 0 up to 200,000 links, each counted both
        ways, and 1e-3 beyond.
    random_state : int, RandomState instance or None, default=None
        Determines the order in which nodes are visited. The null reference of 'auto' and the
        clusters of a neighbour graph do not depend on it.

    Attributes
    ----------
    labels_ : ndarray of shape (n_nodes,)
        The cluster of each node, numbered by first appearance. Clusters do not extend across
        components, and a node without links is a singleton cluster.
    n_clusters_ : int
    cut_ : float
        The cut, without the penalty.
    penalty_ : float
        The penalty used.
    path_ : GraphPath or NeckPath
        The path from which ``penalty='auto'`` chose; its ``confidence`` is that of the number of
        clusters. The path of a neighbour graph, a `NeckPath`, has only clusterings that are
        separated by deep necks; a fit with its penalty given may cut more.
    objective_ : float
        The cut plus the penalty for each cluster.
    objective_history_ : ndarray
        The objective at the start and after each pass; it never increases.
    n_iter_ : int
        Number of passes.
    converged_ : bool
        Whether it ended before ``max_iter``.
    n_features_in_ : int
        The number of nodes.

    See Also
    --------
    DPMeans : The same for the rows of a table.

    Notes
    -----
    A self-loop adds to the degree of its node. The time of a pass is linear in the links.

    Examples
    --------
    >>> import networkx as nx
    >>> from countless import GraphDPMeans
    >>> ring = nx.ring_of_cliques(num_cliques=6, clique_size=5)
    >>> model = GraphDPMeans(random_state=0).fit(ring)
    >>> model.n_clusters_
    6
    >>> round(model.cut_, 3)  # each clique has 2 links out, and 22 ends of links
    0.545
    """

    def __init__(
        self,
        penalty="auto",
        *,
        cut="normalized",
        refine=True,
        symmetrize="auto",
        null="auto",
        init=None,
        n_init=1,
        max_iter=100,
        tol=None,
        random_state=None,
    ):
        self.penalty = penalty
        self.cut = cut
        self.refine = refine
        self.symmetrize = symmetrize
        self.null = null
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

    @with_callbacks
    def fit(self, X, y=None, node_weight=None):
        """Cluster the nodes of a graph.

        Parameters
        ----------
        X : sparse matrix or array of shape (n_nodes, n_nodes), networkx or igraph graph
            The weights of the links, none negative; symmetric, or see ``symmetrize``.
        y : ignored
        node_weight : array-like of shape (n_nodes,), optional
            The sizes of the nodes, for the ratio cut.

        Returns
        -------
        self
        """
        self._check_parameters()
        self._forget_path()
        X = validate_numbers(self, as_matrix(X, self.symmetrize), accept_sparse="csr")
        links = check_links(X, self.symmetrize)
        weight = check_node_weight(node_weight, links.shape[0], self.cut)
        graph, linked = build_graph(links, self.cut, weight)
        start = self._check_init(len(linked), linked)
        random = check_random_state(self.random_state)
        penalty, start = self._resolve_penalty(graph, linked, start, random)
        with report_passes(self, X) as on_pass:
            self._store(self._run(graph, penalty, start, random, on_pass), linked, penalty)
        return self

    def fit_predict(self, X, y=None, node_weight=None):
        """Cluster the nodes of a graph and return their labels."""
        return self.fit(X, node_weight=node_weight).labels_

    def _check_parameters(self) -> None:
        auto = is_auto(self.penalty)
        if not auto and not _is_finite(self.penalty):
            raise ValueError(f"penalty must be 'auto' or a number; got {self.penalty!r}")
        if self.cut not in CUTS:
            known = ", ".join(repr(cut) for cut in CUTS)
            raise ValueError(f"cut must be one of {known}; got {self.cut!r}")
        if self.null not in NULLS:
            known = ", ".join(repr(null) for null in NULLS)
            raise ValueError(f"null must be one of {known}; got {self.null!r}")
        check_flags(self, "refine")
        if not is_auto(self.symmetrize) and not isinstance(self.symmetrize, bool | np.bool_):
            raise ValueError(f"symmetrize must be 'auto', True or False; got {self.symmetrize!r}")
        check_counts(self, "n_init", "max_iter")
        check_tol(self)
        if self.init is not None and auto:
            raise ValueError("init needs a penalty: 'auto' finds clusters to start from itself")

    def _check_init(self, n_nodes: int, linked: np.ndarray) -> Start | None:
        """Return the initial clusters of the nodes that have links."""
        if self.init is None:
            return None
        labels = np.asarray(self.init)
        if labels.shape != (n_nodes,):
            raise ValueError(
                f"init must hold a label for each of {n_nodes} nodes; got shape {labels.shape}"
            )
        return number_by_appearance(labels[linked])[1], None

    def _resolve_penalty(self, graph: Graph, linked, start, random):
        """Return the penalty and, if it was chosen from the path, the initial clusters."""
        if not isinstance(self.penalty, str):
            return float(self.penalty), start
        self.path_ = graph_path(graph, linked, random, self.null)
        penalty = self.path_.penalty
        if not self.refine:
            return penalty, None
        return penalty, self.path_.start_at(penalty)

    def _run(self, graph: Graph, penalty: float, start, random, on_pass) -> Partition | None:
        """Return the best of ``n_init`` runs; None means one cluster of all nodes."""
        if penalty >= 0:
            return None
        if not graph.n_nodes:
            return Partition(np.empty(0, dtype=np.int32), 0.0, 0, [0.0], True)
        if not self.refine:
            whole = np.zeros(graph.n_nodes, dtype=np.int32) if start is None else start[0]
            return kernel_dp_means(graph, penalty, whole, max_iter=self.max_iter, on_pass=on_pass)
        if is_auto(self.penalty) and isinstance(self.path_, NeckPath):
            # The clusters are final: single nodes have been moved already, and further splits would
            # lower the objective without a neck.
            clusters = Clusters(graph, start[0])
            history = [clusters.objective(penalty)]
            on_pass(history[0], clusters.n_clusters)
            return Partition(start[0], clusters.cut(), clusters.n_clusters, history, True)
        tol = self.tol
        if tol is None:
            tol = 0.0 if len(graph.links) <= SMALL_LINKS else LARGE_GRAPH_TOL
        settings: dict[str, Any] = {"tol": tol, "max_iter": self.max_iter, "on_pass": on_pass}
        best = graph_dp_means(graph, penalty, random, start=start, **settings)
        for _ in range(self.n_init - 1):
            run = graph_dp_means(graph, penalty, random, **settings)
            best = min(best, run, key=lambda found: found.history[-1])
        return best

    def _store(self, found: Partition | None, linked: np.ndarray, penalty: float) -> None:
        n_alone = int(np.count_nonzero(~linked))
        if found is None:
            self.labels_ = np.zeros(len(linked), dtype=np.int32)
            self.n_clusters_, self.cut_, history, self.converged_ = 1, 0.0, [penalty], True
        else:
            self.labels_ = spread_labels(found.labels, linked)
            self.n_clusters_ = found.n_clusters + n_alone
            self.cut_, self.converged_ = found.cut, found.converged
            history = [value + penalty * n_alone for value in found.history]
        self.penalty_ = penalty
        self.objective_ = self.cut_ + penalty * self.n_clusters_
        self.objective_history_ = np.array(history)
        self.n_iter_ = max(1, len(history) - 1)
        if not self.converged_:
            warnings.warn(
                f"GraphDPMeans stopped at max_iter={self.max_iter} passes before it had converged; "
                "raise max_iter or tol",
                ConvergenceWarning,
                stacklevel=4,  # store, fit, scikit-learn's wrapper: the caller
            )

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = True
        tags.input_tags.positive_only = True
        return tags


def _is_finite(value) -> bool:
    if isinstance(value, bool) or not isinstance(value, Real):
        return False
    return isfinite(float(value))
