"""A tree of Bayesian hierarchical clustering: grown, evaluated, weighted and cut.

All partitions into clusters that are nodes of the tree compete, with the prior of a Dirichlet
process. See ``kernels/bhc.py`` for the sums over them.

Heller and Ghahramani, *Bayesian hierarchical clustering*, ICML 2005; Murphy, *Machine Learning: a
Probabilistic Perspective*, section 25.5.4.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import betaln, gammaln, log_expit

from countless.kernels import bhc as kernels
from countless.models.protocol import BoundModel
from countless.rows.home import threads

# Pairs that one task of a thread looks at.
TASK_PAIRS = 2**16
# Pairs whose log marginals are found side by side.
SIDE_BY_SIDE = 128
# Most nodes have no more rows than this: what their counts add is worth a table.
FEW_ROWS = 63
# Trees that compete when all is tried: what share of the log of Gamma(n) guides their merges.
SHARES = (1.0, 0.75, 0.5)
# The height of a merge that is as likely as not.
CUT = float(np.log(2.0))


class Leaves(NamedTuple):
    """What the tree is made of: rows, or groups of rows that stay together."""

    statistics: np.ndarray  # (n_leaves, width)
    size: np.ndarray  # (n_leaves,) int64, rows of each

    @property
    def n_rows(self) -> int:
        return int(self.size.sum())


class Tree(NamedTuple):
    """A tree and its leaves; node i below n_leaves is leaf i, and n_leaves + i is merge i."""

    children: np.ndarray  # (n_leaves - 1, 2), merges in the order in which they were made
    statistics: np.ndarray  # (n_nodes, width)
    size: np.ndarray  # (n_nodes,) int64
    share: float = 1.0  # what it was grown with, see `grow_tree`

    @property
    def n_leaves(self) -> int:
        return len(self.children) + 1

    @property
    def n_rows(self) -> int:
        return int(self.size[-1])


class Evaluation(NamedTuple):
    """What a model and a concentration say of a tree."""

    log_evidence: float  # a lower bound on that of the Dirichlet process mixture
    log_odds: np.ndarray  # (n_leaves - 1,) of one cluster against all finer partitions, by merge


def grow_tree(
    model: BoundModel,
    alpha: float,
    leaves: Leaves,
    n_threads: int = 1,
    shares: Sequence[float] = (1.0,),
) -> Tree:
    """Merge the two clusters whose merge has the best odds until one is left.

    The prior favours large clusters by ``Gamma(n)``. Greedy merges take more of that than is good
    for the whole: large clusters swallow their neighbours before all rows are in. So several trees
    may be grown, each with its share of the log of that factor; the evidence, in full, decides.

    Parameters
    ----------
    model : BoundModel
    alpha : float
        The concentration of the Dirichlet process.
    leaves : Leaves
    n_threads : int
        The tree does not depend on it.
    shares : sequence of float
        One tree for each; 1 is Heller and Ghahramani's.

    Returns
    -------
    Tree

    Examples
    --------
    >>> import numpy as np
    >>> from countless.models import FixedGaussian
    >>> X = np.array([[0.0], [0.1], [9.0]])
    >>> model = FixedGaussian(variance=1.0).bind(X)
    >>> leaves = Leaves(model.statistics(model.rows(X), np.arange(3)), np.ones(3, dtype=np.int64))
    >>> grow_tree(model, 1.0, leaves).children.tolist()
    [[0, 1], [2, 3]]
    """
    n = len(leaves.size)
    tables = model.tables(leaves.n_rows)
    alone = log_marginals(model, leaves.statistics)
    together = np.empty(n * (n - 1) // 2)

    def fill(first: int, last: int) -> None:
        clusters = model.clusters(SIDE_BY_SIDE)
        kernels.fill_pairs(clusters, tables, leaves.statistics, first, last, together)

    def grow(share: float) -> Tree:
        log_weight = log_weights(alpha, leaves.n_rows, share)
        log_sum = alone + log_weight[leaves.size]
        odds = together if len(shares) == 1 else np.empty_like(together)
        kernels.odds_of_pairs(together, leaves.size, log_weight, log_sum, odds)
        children = np.empty((n - 1, 2), dtype=np.int64)
        worn = leaves.statistics.copy(), leaves.size.copy()
        clusters = model.clusters(SIDE_BY_SIDE)
        kernels.grow(clusters, tables, *worn, log_weight, log_sum, odds, children)
        return tree_of(children, leaves)._replace(share=share)

    with threads(n_threads) as pool:
        each = map if pool is None else pool.map
        list(each(fill, *zip(*_spans(n), strict=True)))
        trees = list(each(grow, shares))
    return max(trees, key=lambda tree: evaluate(model, alpha, tree).log_evidence)


def log_marginals(model: BoundModel, statistics: np.ndarray) -> np.ndarray:
    """Return what ``model.log_marginal`` does, without what only predictions need."""
    out = np.empty(len(statistics))
    places = np.vstack([statistics, model.empty()])
    kernels.fill_marginals(model.clusters(SIDE_BY_SIDE), model.tables(FEW_ROWS), places, out)
    return out


def tree_of(children: np.ndarray, leaves: Leaves) -> Tree:
    """Return a tree of given merges with the statistics of all its nodes."""
    n = len(leaves.size)
    statistics = np.empty((2 * n - 1, leaves.statistics.shape[1]))
    statistics[:n] = leaves.statistics
    kernels.add_up(children, statistics)
    size = np.empty((2 * n - 1, 1), dtype=np.int64)
    size[:n, 0] = leaves.size
    kernels.add_up(children, size)
    return Tree(children, statistics, size[:, 0])


def log_weights(alpha: float, n_rows: int, share: float = 1.0) -> np.ndarray:
    """Return what a cluster of 0, 1, ... rows weighs in the prior; the first is never asked for."""
    return np.log(alpha) + share * np.append(0.0, gammaln(np.arange(1.0, n_rows + 1)))


def log_normalizer(alpha: float, n_rows: int) -> float:
    """Return the log of the weight of all partitions of so many rows."""
    return float(gammaln(n_rows) - betaln(alpha, n_rows))  # of no two large numbers alike


def evaluate(model: BoundModel, alpha: float, tree: Tree) -> Evaluation:
    """Find the odds of every merge, and the evidence of the rows.

    The evidence leaves out partitions that are not in the tree: it is a lower bound.
    """
    n = tree.n_leaves
    log_joint = log_weights(alpha, tree.n_rows)[tree.size] + log_marginals(model, tree.statistics)
    log_sum, log_odds = np.empty(2 * n - 1), np.empty(n - 1)
    kernels.sum_up(tree.children, log_joint, log_sum, log_odds)
    return Evaluation(float(log_sum[-1]) - log_normalizer(alpha, tree.n_rows), log_odds)


def node_weights(tree: Tree, log_odds: np.ndarray) -> np.ndarray:
    """Return the probability that each node is a cluster, given the rows and the tree.

    A node is one when its own merge is taken and none above it is.
    """
    weight = np.empty(len(tree.size))
    kernels.weigh_nodes(tree.children, log_odds, weight)
    return weight


def cut(children: np.ndarray, log_odds: np.ndarray) -> np.ndarray:
    """Return the cluster that each node is in, named by its top node; a node above all its own.

    From the top down, clusters are the first nodes whose merge is likelier than not: the odds of a
    merge weigh one cluster against all finer partitions of the same rows at once. Those further
    down were found on fewer rows: a merge doubted there may be sure once more rows are seen, and
    a cut from the bottom up would tear a sure cluster apart.
    """
    n = len(children) + 1
    top = np.arange(2 * n - 1)
    for step in range(n - 2, -1, -1):  # parents first
        if top[n + step] != n + step or log_odds[step] >= 0:
            top[children[step]] = top[n + step]
    return top


def heights(children: np.ndarray, log_odds: np.ndarray) -> np.ndarray:
    """Return heights of merges, minus the log of their probability, that never fall on the way up.

    A merge is at least as high as its children; in a cluster none is higher than log 2, and above
    all are: a cut of the drawn tree at log 2 gives the clusters.
    """
    n = len(children) + 1
    top = cut(children, log_odds)
    within = (top[n:] != np.arange(n, 2 * n - 1)) | (log_odds >= 0)
    height = np.append(np.zeros(n), -log_expit(log_odds))
    for step, pair in enumerate(children):
        highest = max(height[n + step], *height[pair])
        bound = min if within[step] else max
        height[n + step] = bound(highest, CUT if within[step] else np.nextafter(CUT, np.inf))
    return height[n:]


def _spans(n: int) -> list[tuple[int, int]]:
    """Return stretches of places with about as many pairs each."""
    pairs = np.cumsum(np.arange(n - 1, -1, -1))
    n_tasks = max(1, int(pairs[-1] // TASK_PAIRS))
    ends = np.searchsorted(pairs, pairs[-1] * np.arange(1, n_tasks + 1) / n_tasks) + 1
    edges = np.unique(np.concatenate([[0], np.minimum(ends, n)]))
    edges[-1] = n
    return list(zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True))
