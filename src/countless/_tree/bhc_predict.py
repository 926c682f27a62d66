"""Prediction of new rows from the tree.

Given a partition, a new row joins a cluster of n_k rows with probability ``n_k / (n + alpha)``, or
opens a new one. Averaged over the partitions of the tree, the density of a row is a mixture over
nodes: node k has the weight ``q_k n_k / (n + alpha)``, where ``q_k`` is the probability that it is
a cluster. These weights, and that of a new cluster, sum to one. (Heller and Ghahramani leave out
the sizes and the new cluster; their weights do not sum to one.)
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp

from countless._tree.bhc_tree import Tree, node_weights
from countless.kernels.bhc import add_up
from countless.models.protocol import BoundModel


class NodeMixture(NamedTuple):
    """The nodes that new rows may belong to; the first is a new cluster, without rows."""

    statistics: np.ndarray  # (n_nodes, width)
    weight: np.ndarray  # (n_nodes,), sums to one
    share: np.ndarray  # (n_nodes, n_clusters), of a node's rows in each cluster; 0 for the new one


def node_mixture(tree: Tree, log_odds: np.ndarray, alpha: float, labels: np.ndarray) -> NodeMixture:
    """Return the predictive mixture, given the cluster of each leaf."""
    n, total = tree.n_leaves, tree.n_rows + alpha
    share = node_weights(tree, log_odds) * tree.size / tree.n_rows
    kept = np.flatnonzero(share > 1e-12)  # most nodes have less
    counts = np.zeros((2 * n - 1, int(labels.max()) + 1))
    counts[np.arange(n), labels] = tree.size[:n]
    add_up(tree.children, counts)
    weight = np.append(alpha / total, share[kept] * (tree.n_rows / total))
    return NodeMixture(
        np.vstack([np.zeros(tree.statistics.shape[1]), tree.statistics[kept]]),
        weight / weight.sum(),
        np.vstack([np.zeros(counts.shape[1]), counts[kept] / tree.size[kept, None]]),
    )


def log_densities(model: BoundModel, mixture: NodeMixture, rows: np.ndarray) -> np.ndarray:
    """Return the log density of each row."""
    blocks = [logsumexp(terms, axis=1) for terms in _terms(model, mixture, rows)]
    return np.concatenate(blocks)


def probabilities(model: BoundModel, mixture: NodeMixture, rows: np.ndarray) -> np.ndarray:
    """Return the probability of each cluster for each row, (n_rows, n_clusters).

    A node that contains several clusters counts for each in proportion to its size; a new cluster
    does not count.
    """
    blocks = []
    for terms in _terms(model, mixture, rows):
        known = terms[:, 1:]
        share = np.exp(known - known.max(axis=1, keepdims=True)) @ mixture.share[1:]
        blocks.append(share / share.sum(axis=1, keepdims=True))
    return np.concatenate(blocks)


def _terms(model: BoundModel, mixture: NodeMixture, rows: np.ndarray) -> Iterator[np.ndarray]:
    """Yield the sums of log weights and log densities of blocks of rows, (block size, n_nodes)."""
    log_weight = np.log(mixture.weight)
    step = max(1, 2**20 // len(log_weight))  # densities in memory at once
    for first in range(0, len(rows), step):
        block = np.ascontiguousarray(rows[first : first + step])
        yield log_weight + model.log_predictive(block, mixture.statistics)
