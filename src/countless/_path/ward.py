"""Ward's linkage for weighted items and any Bregman divergence.

Merging clusters a and b raises the cost of their rows by ``energy(W_a + W_b, S_a + S_b) -
energy(W_a, S_a) - energy(W_b, S_b)``. For squared Euclidean distances that is Ward's ``W_a W_b /
(W_a + W_b) ||mu_a - mu_b||^2``, and the costs of the joined cluster follow from the old ones (Lance
and Williams), so a merge costs O(m) whatever the dimension.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.spatial.distance import cdist

from countless._labels import number_by_appearance
from countless.divergences import Divergence
from countless.kernels.ward import replace_pair


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
    costs: _Euclidean | _Cosine | _Bregman
    if divergence.name == "sqeuclidean":
        costs = _Euclidean(weight, total)
    elif divergence.name == "cosine":
        costs = _Cosine(total)
    else:
        costs = _Bregman(weight, total, divergence)
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


class _Euclidean:
    """Ward's costs, updated by the Lance-Williams recurrence."""

    def __init__(self, weight, total):
        self.weight = weight.astype(np.float64)
        means = total / weight[:, None]
        share = self.weight[:, None] * self.weight / (self.weight[:, None] + self.weight)
        self.matrix = share * cdist(means, means, "sqeuclidean")

    def join(self, a, b, alive):
        weight = self.weight[:alive]
        heavier_a, heavier_b = weight + weight[a], weight + weight[b]
        row = heavier_a * self.matrix[a, :alive] + heavier_b * self.matrix[b, :alive]
        row -= weight * self.matrix[a, b]
        row /= heavier_a + weight[b]
        weight[a] += weight[b]
        return row

    def move(self, origin, place):
        self.weight[place] = self.weight[origin]


class _Cosine:
    """Merge costs from the inner products of sums, which are additive like the sums."""

    def __init__(self, total):
        self.product = total @ total.T
        square = np.diag(self.product)
        joint = square[:, None] + square + 2 * self.product
        self.length = np.sqrt(square)
        self.matrix = self.length[:, None] + self.length - np.sqrt(np.maximum(joint, 0.0))

    def join(self, a, b, alive):
        product = self.product
        product[a, :alive] += product[b, :alive]
        product[:alive, a] += product[:alive, b]
        square = product[a, a]
        self.length[a] = np.sqrt(square)
        length = self.length[:alive]
        joint = square + length**2 + 2 * product[a, :alive]
        return length + length[a] - np.sqrt(np.maximum(joint, 0.0))

    def move(self, origin, place):
        self.product[place] = self.product[origin]
        self.product[:, place] = self.product[:, origin]
        self.length[place] = self.length[origin]


class _Bregman:
    """Merge costs from the energies of weights and sums."""

    def __init__(self, weight, total, divergence):
        self.divergence = divergence
        self.weight = weight.astype(np.float64)
        self.total = total.astype(np.float64)
        self.energy = divergence.energy(self.weight, self.total)
        self.matrix = np.stack([self._row(item, len(weight)) for item in range(len(weight))])

    def _row(self, item, alive):
        joint = self.divergence.energy(
            self.weight[:alive] + self.weight[item], self.total[:alive] + self.total[item]
        )
        return joint - self.energy[:alive] - self.energy[item]

    def join(self, a, b, alive):
        self.weight[a] += self.weight[b]
        self.total[a] += self.total[b]
        self.energy[a] = self.divergence.energy(self.weight[[a]], self.total[[a]])[0]
        return self._row(a, alive)

    def move(self, origin, place):
        for values in (self.weight, self.total, self.energy):
            values[place] = values[origin]
