"""Grouping rows into leaves where there are more rows than leaves.

Rows of one leaf are never separated. All of them are counted, so that the evidence is that of the
whole table, summed over fewer partitions.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from countless._data import open_rows
from countless._data.backend import threads
from countless._path.micro import micro_clusters
from countless._tree.bhc_learn import Fit
from countless._tree.bhc_tree import Leaves, cut
from countless.divergences import get_divergence
from countless.kernels.bhc import walk_down
from countless.models.protocol import BoundModel

WAYS = ("auto", "sample", "micro")
# Number of rows in one task of a thread.
TASK_ROWS = 2**13


def leaves_of(model: BoundModel, rows: np.ndarray, labels: np.ndarray) -> Leaves:
    """Return the leaves, given the leaf of each row."""
    return Leaves(model.statistics(rows, labels), np.bincount(labels).astype(np.int64))


def why_not_micro(model: BoundModel, rows: np.ndarray) -> str:
    """Return why rows have no distances, or an empty string where they have."""
    if any(block.levels is not None for block in getattr(model, "blocks", ())):
        return "numbers, not categories"
    return "a table without gaps" if np.isnan(rows).any() else ""


def leaves_of_micro_clusters(
    model: BoundModel, rows: np.ndarray, n_leaves: int, seed: int, n_jobs: int | None
) -> np.ndarray:
    """Return the leaf of each row: micro-clusters, in units of the columns' deviations."""
    if why := why_not_micro(model, rows):
        raise ValueError(f"leaves='micro' needs {why}; 'sample' takes them")
    spread = rows.std(axis=0, dtype=np.float64)
    scaled = rows / np.where(spread > 0, spread, 1.0)
    with open_rows(scaled, None, get_divergence("sqeuclidean"), n_jobs) as opened:
        return np.asarray(
            micro_clusters(opened, seed=seed, n_micro=n_leaves).labels, dtype=np.int64
        )


def leaves_of_sample(
    model: BoundModel,
    rows: np.ndarray,
    n_leaves: int,
    random: np.random.RandomState,
    fit: Callable[[Leaves], Fit],
    n_threads: int,
) -> np.ndarray:
    """Return the leaf of each row: the sampled row that it reaches in a tree of the sample.

    A row starts at its most probable cluster, and goes to the more probable child of each node.
    """
    sample = np.sort(random.choice(len(rows), n_leaves, replace=False))
    found = fit(leaves_of(model, rows[sample], np.arange(n_leaves))).best
    tree, learned = found.tree, found.model
    tops = np.unique(cut(tree.children, found.evaluation.log_odds)[:n_leaves])
    log_size = np.log(tree.size)

    def fall(first: int) -> np.ndarray:
        block = np.ascontiguousarray(rows[first : first + TASK_ROWS])
        densities = learned.log_predictive(block, tree.statistics[tops]) + log_size[tops]
        at = tops[densities.argmax(axis=1)]
        nodes = learned.clusters(len(tree.size), tree.statistics)
        walk_down(nodes, tree.children, log_size, block, at)
        return at

    starts = range(0, len(rows), TASK_ROWS)
    with threads(n_threads) as pool:
        labels = np.concatenate(list((map if pool is None else pool.map)(fall, starts)))
    labels[sample] = np.arange(n_leaves)  # a sampled row is its own leaf
    return labels
