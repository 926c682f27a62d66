"""Divisive trees, and trees of SciPy's linkages, cut where the data indicate."""

from __future__ import annotations

import numpy as np

from countless._path.penalty import PenaltyPath, penalty_path
from countless._tree.base import TreeEstimator
from countless._tree.divide import bisecting_tree, diana, linkage_of_edges, spanning_tree
from countless._tree.gap import compare_with_null, grow_linkage
from countless._tree.pairs import Pairs
from countless._tree.splits import linkage_of_splits
from countless._tree.stop import by_saving

# Number of leaves of bisecting k-means: at least this, or this multiple of the wanted clusters.
LEAVES, LEAVES_TIMES = 64, 2
LINKAGES = ("average", "complete", "single", "ward", "weighted")


class DivisiveClustering(TreeEstimator):
    """Divisive (top-down) hierarchical clustering.

    Parameters
    ----------
    method : {'diana', 'mst', 'bisecting'}, default='diana'
        ``'diana'`` splits off the rows that are most dissimilar to the others (divisive analysis),
        ``'mst'`` cuts the longest edges of the minimum spanning tree, and ``'bisecting'`` is
        bisecting k-means, on Euclidean rows.
    metric : str, default='euclidean'
        The dissimilarity of rows: 'euclidean', 'sqeuclidean', 'cityblock', 'correlation',
        'hamming', 'mixed' (columns of any kind, with missing values), or 'precomputed'.
    metric_params : dict, optional
        ``weights`` of the columns, ``kinds`` of columns for 'mixed', and ``dtype``, as in
        `countless.dissimilarity.dissimilarities`.
    n_clusters : int, optional
        The number of clusters. If this and the next two are None, the tree is cut at the gap that
        stands out from the null reference.
    max_diameter : float, optional
        Split clusters whose largest dissimilarity exceeds this.
    max_dissimilarity : float, optional
        Split clusters whose average dissimilarity exceeds this.
    min_cluster_size : int, default=1
        Minimum number of rows in a cluster: those of smaller ones, mostly outliers of ``'mst'``,
        join the cluster of the nearest row in one that is large enough.
    random_state : int, RandomState instance or None, default=None
        Seeds bisecting k-means; nothing else is random.
    n_jobs : int, optional
        Threads for dissimilarities; the result does not depend on them.

    Attributes
    ----------
    labels_ : ndarray of int of shape (n_samples,)
        The cluster of each row, numbered by first appearance.
    n_clusters_ : int
        The number of clusters.
    linkage_matrix_ : ndarray of shape (n_samples - 1, 4)
        The whole tree in SciPy's format. The height of a cluster is its diameter (``'diana'``),
        its longest edge (``'mst'``), or its inertia (``'bisecting'``; rows of clusters that are
        not split further join at the height of their cluster).
    path_ : TreeCut or PenaltyPath
        Number of clusters and labels at every height, and how clearly a gap stands out; only if
        the gap decides and no cluster was below ``min_cluster_size``. Its heights are the decrease
        of cost by splits (``'diana'``, on Ward's scale) or those of the tree (``'mst'``).
        Bisecting k-means and DP-means have the same objective, so that for ``'bisecting'`` it is
        the `penalty_path`.
    n_iter_ : int
        Number of splits of the tree.
    converged_ : bool
        Whether every k-means of bisecting k-means converged.
    X_fit_, column_weights_ : ndarray or data frame
        The rows, and the weights of their columns, that new rows are compared with.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from countless import DivisiveClustering
    >>> X, _ = make_blobs(120, centers=4, cluster_std=0.5, random_state=3)
    >>> model = DivisiveClustering(random_state=0).fit(X)
    >>> model.n_clusters_
    4
    >>> DivisiveClustering(n_clusters=2).fit(X).linkage_matrix_.shape
    (119, 4)
    >>> bool((model.predict(X + 0.01) == model.labels_).all())
    True
    """

    _methods = ("diana", "mst", "bisecting")

    def __init__(
        self,
        method="diana",
        *,
        metric="euclidean",
        metric_params=None,
        n_clusters=None,
        max_diameter=None,
        max_dissimilarity=None,
        min_cluster_size=1,
        random_state=None,
        n_jobs=None,
    ):
        self.method = method
        self.metric = metric
        self.metric_params = metric_params
        self.n_clusters = n_clusters
        self.max_diameter = max_diameter
        self.max_dissimilarity = max_dissimilarity
        self.min_cluster_size = min_cluster_size
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.method == "bisecting" and self.metric not in ("euclidean", "sqeuclidean"):
            raise ValueError(f"bisecting k-means needs Euclidean rows; got metric={self.metric!r}")

    def _grow(self, pairs: Pairs, seed: int) -> np.ndarray:
        if self.method == "diana":
            return linkage_of_splits(diana(pairs.matrix))
        if self.method == "mst":
            return linkage_of_edges(*spanning_tree(pairs.row, pairs.n_rows))
        n_leaves = max(LEAVES, LEAVES_TIMES * (self.n_clusters or 1))
        if self.max_diameter is not None or self.max_dissimilarity is not None:
            n_leaves = pairs.n_rows  # any cluster may need a split
        splits, self.converged_ = bisecting_tree(pairs.weighted_rows, n_leaves, seed)
        return linkage_of_splits(splits)

    def _choose(self, pairs: Pairs, seed: int) -> tuple[PenaltyPath, np.ndarray]:
        if self.method == "mst":
            return super()._choose(pairs, seed)
        if self.method == "bisecting":
            path = penalty_path(pairs.weighted_rows, random_state=seed, n_jobs=self.n_jobs)
            return path, self.linkage_matrix_
        # A diameter depends on the two most distant rows, the decrease of cost on all of them.
        linkage = by_saving(self.linkage_matrix_, pairs.matrix)

        def grow(cloud: Pairs) -> np.ndarray:
            return by_saving(linkage_of_splits(diana(cloud.matrix)), cloud.matrix)

        return compare_with_null(linkage, grow, pairs.clouds, "ward", pairs), linkage


class LinkageClustering(TreeEstimator):
    """SciPy's linkage, cut where the data indicate.

    Parameters
    ----------
    method : {'average', 'complete', 'single', 'ward', 'weighted'}, default='average'
        As in `scipy.cluster.hierarchy.linkage`; ``'ward'`` is for Euclidean rows.
    engine : {'scipy', 'fastcluster'}, default='scipy'
        Which library grows the tree; fastcluster (``pip install 'countless[fastcluster]'``) is
        faster, and the tree is the same.
    metric, metric_params, n_clusters, max_diameter, max_dissimilarity
        As in `DivisiveClustering`.
    min_cluster_size, random_state, n_jobs
        As in `DivisiveClustering`.

    Attributes
    ----------
    labels_, n_clusters_, linkage_matrix_, path_, n_iter_, converged_, X_fit_, column_weights_
        As in `DivisiveClustering`; the tree is SciPy's.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from countless import LinkageClustering
    >>> X, _ = make_blobs(120, centers=4, cluster_std=0.5, random_state=3)
    >>> LinkageClustering("complete", random_state=0).fit(X).n_clusters_
    4
    """

    _methods = LINKAGES

    def __init__(
        self,
        method="average",
        *,
        engine="scipy",
        metric="euclidean",
        metric_params=None,
        n_clusters=None,
        max_diameter=None,
        max_dissimilarity=None,
        min_cluster_size=1,
        random_state=None,
        n_jobs=None,
    ):
        self.method = method
        self.engine = engine
        self.metric = metric
        self.metric_params = metric_params
        self.n_clusters = n_clusters
        self.max_diameter = max_diameter
        self.max_dissimilarity = max_dissimilarity
        self.min_cluster_size = min_cluster_size
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.engine not in ("scipy", "fastcluster"):
            raise ValueError(f"engine must be 'scipy' or 'fastcluster'; got {self.engine!r}")
        if self.method == "ward" and self.metric not in ("euclidean", "precomputed"):
            raise ValueError(f"Ward's method needs Euclidean rows; got metric={self.metric!r}")

    def _grow(self, pairs: Pairs, seed: int) -> np.ndarray:
        if pairs.n_rows == 1:
            return np.empty((0, 4))
        return grow_linkage(pairs, self.method, self.engine)
