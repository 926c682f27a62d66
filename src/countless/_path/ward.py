"""Ward's linkage for weighted items and any Bregman divergence.

Merging clusters a and b raises the cost of their rows by ``energy(W_a + W_b, S_a + S_b) -
energy(W_a, S_a) - energy(W_b, S_b)``. For squared Euclidean distances that is Ward's ``W_a W_b /
(W_a + W_b) ||mu_a - mu_b||^2``, and the costs of the joined cluster follow from the old ones (Lance
and Williams), so a merge costs O(m) whatever the dimension.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from countless._labels import number_by_appearance
from countless.divergences import Divergence
from countless.kernels.path import replace_pair


class WardTree(NamedTuple):
    """A dendrogram: merges of m items in the order in which they were made.

    Merge i joins the nodes ``children[i]``, where node j < m is item j and node m + j is the result
    of merge j.
    """

    children: np.ndarray  # (m - 1, 2)
    cost: np.ndarray  # (m - 1,)

    @property
    def n_items(self) -> int:
        return len(self.cost) + 1

    @property
    def height(self) -> np.ndarray:
        """The height of each merge in the dendrogram: the running maximum of the costs."""
        return np.maximum.accumulate(self.cost)

    def cut(self, n_merges: int) -> np.ndarray:
        """Return the cluster of each item after the first merges, numbered by first appearance."""
        return number_by_appearance(self.nodes(n_merges))[1]

    def nodes(self, n_merges: int) -> np.ndarray:
        """Return the node that each item belongs to after the first merges."""
        m = self.n_items
        root = np.arange(m + n_merges)
        for i in range(n_merges - 1, -1, -1):  # parents first: their root is known
            root[self.children[i]] = root[m + i]
        return root[:m]


def ward_tree(weight: np.ndarray, total: np.ndarray, divergence: Divergence) -> WardTree:
    """Merge the cheapest pair of clusters until one is left.

    Exact: every cluster's cheapest partner is cached, and searched again only when it has been
    merged.

    Parameters
    ----------
    weight : ndarray of shape (m,)
        Positive weights of the items.
    total : ndarray of shape (m, n_features)
        Weighted sums of the items' rows.
    divergence : Divergence
        Defines the cost of merges.

    Returns
    -------
    WardTree

    Examples
    --------
    >>> import numpy as np
    >>> from countless.divergences import get_divergence
    >>> tree = ward_tree(np.ones(3), np.array([[0.0], [5.0], [6.0]]), get_divergence("sqeuclidean"))
    >>> tree.children.tolist(), tree.cost.round(2).tolist()
    ([[1, 2], [0, 3]], [0.5, 20.17])
    """
    costs = divergence.merge_costs(weight, total)
    m = len(weight)
    matrix = costs.matrix
    np.fill_diagonal(matrix, np.inf)
    node = np.arange(m)
    partner = matrix.argmin(axis=1)
    lowest = matrix[node, partner]
    children = np.empty((m - 1, 2), dtype=np.int64)
    cost = np.empty(m - 1)
    for step in range(m - 1):
        alive = m - step
        cheapest = int(lowest[:alive].argmin())
        a, b = sorted((cheapest, int(partner[cheapest])))
        children[step] = sorted((node[a], node[b]))
        cost[step] = matrix[a, b]
        row = costs.join(a, b, alive)
        replace_pair(matrix, partner, lowest, a, b, row, alive)
        costs.move(alive - 1, b)
        node[a], node[b] = m + step, node[alive - 1]
    return WardTree(children, np.maximum(cost, 0.0))
