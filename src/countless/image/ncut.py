"""Normalized cuts of scikit-image as an estimator."""

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.utils import check_random_state

from .._labels import number_by_appearance
from .._parameters import check_counts, is_number


class NormalizedCut(ClusterMixin, BaseEstimator):
    """Recursively bisect a graph as long as the normalized cut is below a threshold.

    Parameters
    ----------
    threshold : float, default=0.2
        The normalized cut above which a part is not divided.
    n_cuts : int, default=10
        Number of thresholds of an eigenvector that are tried.
    random_state : int, RandomState instance or None, default=None
        Seeds the eigenvector solver.

    Attributes
    ----------
    labels_ : ndarray of shape (n_nodes,)
    n_clusters_ : int

    Examples
    --------
    >>> import numpy as np
    >>> graph = np.kron(np.eye(2), np.ones((4, 4))) + 0.01
    >>> NormalizedCut(random_state=0).fit(graph).labels_.tolist()
    [0, 0, 0, 0, 1, 1, 1, 1]
    """

    def __init__(self, threshold=0.2, *, n_cuts=10, random_state=None):
        self.threshold = threshold
        self.n_cuts = n_cuts
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> "NormalizedCut":
        """Cluster the nodes of a graph, given as a symmetric matrix of edge weights."""
        import networkx as nx
        from skimage.graph import cut_normalized

        check_counts(self, "n_cuts")
        if not is_number(self.threshold):
            raise ValueError(f"threshold must be a number of at least 0; got {self.threshold!r}")
        upper = sp.triu(sp.csr_array(X), k=1).tocoo()
        graph = nx.Graph()
        graph.add_nodes_from((node, {"labels": [node]}) for node in range(X.shape[0]))
        graph.add_weighted_edges_from(
            zip(upper.row.tolist(), upper.col.tolist(), upper.data.tolist(), strict=True)
        )
        seed = check_random_state(self.random_state).randint(2**31 - 1)
        labels = cut_normalized(
            np.arange(X.shape[0]),
            graph,
            thresh=self.threshold,
            num_cuts=self.n_cuts,
            rng=int(seed),
        )
        names, self.labels_ = number_by_appearance(labels)
        self.n_clusters_ = len(names)
        return self
