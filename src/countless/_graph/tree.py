"""The dendrogram of a graph's nodes, by the change of the cut in each merge.

Merging a and b changes the cut by ``out_ab / w_ab - out_a / w_a - out_b / w_b``, which is never
below ``-unit`` by much and never above 0. The *price* of a merge is that change plus ``unit``, the
cut ratio of single nodes: a merge lowers the penalised cut when its price is below ``unit +
penalty``. So prices correspond to the penalties of tables: they are positive, and lower prices give
more clusters.
"""

from __future__ import annotations

import numpy as np

from countless._graph.moves import Graph
from countless._path.ward import WardTree
from countless.kernels.graph import merge_linked


def merge_tree(graph: Graph, unit: float) -> WardTree:
    """Merge the linked clusters that lower the cut most; components are merged last.

    Parameters
    ----------
    graph : Graph
        The nodes, which may be groups of nodes of another graph.
    unit : float
        The cut ratio of that graph's single nodes.

    Returns
    -------
    WardTree
        With the price of each merge as its cost.

    Examples
    --------
    >>> import numpy as np
    >>> pair = np.array([1.0, 1.0])
    >>> graph = Graph(np.array([0, 1, 2]), np.array([1, 0], dtype=np.int32), pair, pair, pair)
    >>> merge_tree(graph, graph.unit).children.tolist()
    [[0, 1]]
    """
    n = graph.n_nodes
    children = np.empty((n - 1, 2), dtype=np.int64)
    change = np.zeros(n - 1)  # merging whole components does not change the cut
    n_linked = merge_linked(*graph, children, change)
    roots = np.setdiff1d(np.arange(n + n_linked), children[:n_linked])
    for step, root in enumerate(roots[1:], start=n_linked):
        children[step] = sorted((roots[0] if step == n_linked else n + step - 1, root))
    return WardTree(children, unit + change)
