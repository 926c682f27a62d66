"""A tree of Bayesian hierarchical clustering: grown, evaluated, weighted and cut.

All partitions into clusters that are nodes of the tree are summed, with the prior of a Dirichlet
process. See ``kernels/bhc.py`` for the sums.

Heller and Ghahramani, *Bayesian hierarchical clustering*, ICML 2005; Murphy, *Machine Learning: a
Probabilistic Perspective*, section 25.5.4.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import betaln, gammaln, log_expit

from countless._data.backend import threads
from countless.kernels import bhc as kernels
from countless.models.protocol import BoundModel


@dataclass(frozen=True)
class TreeSearch:
    """Constants of growing a tree; ``benchmarks/bhc.py`` has its time."""

    # Number of pairs in one task of a thread, and of those whose log marginals are computed at
    # once.
    task_pairs: int = 2**16
    pairs_at_once: int = 128
    # Most nodes have no more rows than this: the terms of their counts are tabulated.
    tabulated_rows: int = 63
    # Competing trees with ``refine``: the share of log Gamma(n) that guides their merges.
    shares: tuple[float, ...] = (1.0, 0.75, 0.5)


TREE_SEARCH = TreeSearch()
# The height of a merge of probability 1/2.
CUT = float(np.log(2.0))


class Leaves(NamedTuple):
    """The leaves of the tree: rows, or groups of rows that are never separated."""

    statistics: np.ndarray  # (n_leaves, width)
    size: np.ndarray  # (n_leaves,) int64, rows of each

    @property
    def n_rows(self) -> int:
        return int(self.size.sum())


class Tree(NamedTuple):
    """A tree and its leaves; node i below n_leaves is leaf i, and n_leaves + i is merge i."""

    children: np.ndarray  # (n_leaves - 1, 2), in the order of merges
    statistics: np.ndarray  # (n_nodes, width)
    size: np.ndarray  # (n_nodes,) int64
    share: float = 1.0  # the share that it was grown with, see `grow_tree`

    @property
    def n_leaves(self) -> int:
        return len(self.children) + 1

    @property
    def n_rows(self) -> int:
        return int(self.size[-1])


class Evaluation(NamedTuple):
    """The evidence of a tree given a model and a concentration."""

    log_evidence: float  # a lower bound on that of the Dirichlet process mixture
    log_odds: np.ndarray  # (n_leaves - 1,) of one cluster against all finer partitions


def grow_tree(
    model: BoundModel,
    alpha: float,
    leaves: Leaves,
    n_threads: int = 1,
    shares: Sequence[float] = (1.0,),
) -> Tree:
    """Merge the two clusters whose merge has the best odds until one is left.

    The prior favors large clusters by ``Gamma(n)``. Greedy merges overuse that factor: large
    clusters absorb their neighbors before these are complete. So several trees may be grown, each
    with a share of the log of that factor; the one with the highest (full) evidence is returned.

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
        clusters = model.clusters(TREE_SEARCH.pairs_at_once)
        kernels.fill_pairs(clusters, tables, leaves.statistics, first, last, together)

    def grow(share: float) -> Tree:
        log_weight = log_weights(alpha, leaves.n_rows, share)
        log_sum = alone + log_weight[leaves.size]
        odds = together if len(shares) == 1 else np.empty_like(together)
        kernels.odds_of_pairs(together, leaves.size, log_weight, log_sum, odds)
        children = np.empty((n - 1, 2), dtype=np.int64)
        worn = leaves.statistics.copy(), leaves.size.copy()
        clusters = model.clusters(TREE_SEARCH.pairs_at_once)
        kernels.grow(clusters, tables, *worn, log_weight, log_sum, odds, children)
        return tree_of(children, leaves)._replace(share=share)

    with threads(n_threads) as pool:
        each = map if pool is None else pool.map
        list(each(fill, *zip(*_spans(n), strict=True)))
        trees = list(each(grow, shares))
    return max(trees, key=lambda tree: evaluate(model, alpha, tree).log_evidence)


def log_marginals(model: BoundModel, statistics: np.ndarray) -> np.ndarray:
    """Return ``model.log_marginal``, without the terms that only predictions need."""
    out = np.empty(len(statistics))
    places = np.vstack([statistics, model.empty()])
    kernels.fill_marginals(
        model.clusters(TREE_SEARCH.pairs_at_once),
        model.tables(TREE_SEARCH.tabulated_rows),
        places,
        out,
    )
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
    """Return the log prior weights of a cluster of 0, 1, ... rows; the first is never used."""
    return np.log(alpha) + share * np.append(0.0, gammaln(np.arange(1.0, n_rows + 1)))


def log_normalizer(alpha: float, n_rows: int) -> float:
    """Return the log of the summed weights of all partitions of ``n_rows`` rows."""
    return float(gammaln(n_rows) - betaln(alpha, n_rows))  # avoids cancellation of large numbers


def evaluate(model: BoundModel, alpha: float, tree: Tree) -> Evaluation:
    """Compute the odds of every merge, and the evidence of the rows.

    The evidence leaves out partitions that are not in the tree: it is a lower bound.
    """
    n = tree.n_leaves
    log_joint = log_weights(alpha, tree.n_rows)[tree.size] + log_marginals(model, tree.statistics)
    log_sum, log_odds = np.empty(2 * n - 1), np.empty(n - 1)
    kernels.sum_up(tree.children, log_joint, log_sum, log_odds)
    return Evaluation(float(log_sum[-1]) - log_normalizer(alpha, tree.n_rows), log_odds)


def node_weights(tree: Tree, log_odds: np.ndarray) -> np.ndarray:
    """Return the probability that each node is a cluster, given the rows and the tree.

    A node is a cluster when it is merged and none of its ancestors is.
    """
    weight = np.empty(len(tree.size))
    kernels.weigh_nodes(tree.children, log_odds, weight)
    return weight


def cut(children: np.ndarray, log_odds: np.ndarray) -> np.ndarray:
    """Return the cluster of each node as its top node; a node above all clusters is its own.

    From the root down, clusters are the first nodes whose merge has a probability above 1/2: the
    odds of a merge compare one cluster with all finer partitions of the same rows at once. Merges
    further down were judged on fewer rows: an uncertain one may become certain with more rows, and
    a cut from the leaves up would split a clear cluster.
    """
    n = len(children) + 1
    top = np.arange(2 * n - 1)
    for step in range(n - 2, -1, -1):  # parents first
        if top[n + step] != n + step or log_odds[step] >= 0:
            top[children[step]] = top[n + step]
    return top


def heights(children: np.ndarray, log_odds: np.ndarray) -> np.ndarray:
    """Return heights of merges, minus the log of their probability, made monotone.

    A merge is at least as high as its children; in a cluster none is higher than log 2, and all
    above clusters are: a cut of the dendrogram at log 2 gives the clusters.
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
    """Return ranges of places with about equal numbers of pairs."""
    pairs = np.cumsum(np.arange(n - 1, -1, -1))
    n_tasks = max(1, int(pairs[-1] // TREE_SEARCH.task_pairs))
    ends = np.searchsorted(pairs, pairs[-1] * np.arange(1, n_tasks + 1) / n_tasks) + 1
    edges = np.unique(np.concatenate([[0], np.minimum(ends, n)]))
    edges[-1] = n
    return list(zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True))
