"""DP-means on a stream: a bounded set of weighted micro-clusters summarises all rows seen so far.

Each batch is reduced to some items (micro-clusters); if there are more than `MOST_ITEMS`, items are
merged, the cheapest merges first. The clusters are those of DP-means on the items. Weights and sums
of items are exact, and so are the clusters' means and the objective. Clusters keep their ids: when
two clusters merge, the result has the id of the heavier one and the other id is never used again; a
new cluster gets a new id.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from countless._data import Backend, open_rows
from countless._data.fixed_point import Sums
from countless._path.micro import assign_to, micro_clusters
from countless._path.ward import ward_tree
from countless._search.assignment import Assignment
from countless._search.refine import refine
from countless.divergences import Divergence

MOST_ITEMS = 1024


class Stream(NamedTuple):
    """The summary of a stream."""

    items: Sums  # weights and sums of the micro-clusters, in the table's coordinates
    item_id: np.ndarray  # (n_items,) the id of each item's cluster
    next_id: int
    within: float  # cost of all rows at their items' means


class StreamClusters(NamedTuple):
    """The clusters of a stream, oldest first."""

    ids: np.ndarray  # (n_clusters,)
    centers: np.ndarray  # (n_clusters, n_features)
    weight: np.ndarray  # (n_clusters,)
    objective: float


def start_stream(n_features: int) -> Stream:
    """Return the summary of an empty stream."""
    empty = Sums(np.empty(0), np.empty((0, n_features)))
    return Stream(empty, np.empty(0, dtype=np.int64), 0, 0.0)


def resume_stream(weight: np.ndarray, total: np.ndarray, within: float) -> Stream:
    """Return a stream that continues from clusters already found; their ids are 0, 1, ..."""
    return Stream(Sums(weight, total), np.arange(len(weight)), len(weight), within)


def update_stream(
    stream: Stream, rows: Backend, penalty: float, *, seed: int
) -> tuple[Stream, StreamClusters]:
    """Add a batch of rows and cluster again."""
    divergence = rows.fixed_point.divergence
    batch = micro_clusters(rows, seed=seed)
    batch_total = batch.total + batch.weight[:, None] * batch.origin
    items = Sums(
        np.append(stream.items.weight, batch.weight), np.vstack([stream.items.total, batch_total])
    )
    item_id = np.append(stream.item_id, np.full(len(batch.weight), -1))
    within = stream.within + batch.within
    if len(items.weight) > MOST_ITEMS:
        items, item_id, lost = _join_cheapest(items, item_id, divergence)
        within += lost
    labels, centers, cluster_weight, objective = _cluster(items, item_id, divergence, penalty)
    ids, next_id = _name_clusters(labels, items.weight, item_id, len(centers), stream.next_id)
    oldest = np.argsort(ids)
    clusters = StreamClusters(
        ids[oldest], centers[oldest], cluster_weight[oldest], within + objective
    )
    return Stream(items, ids[labels], next_id, within), clusters


def _join_cheapest(items: Sums, item_id: np.ndarray, divergence: Divergence):
    """Merge items until `MOST_ITEMS` / 2 are left; a merged item has its heaviest part's id."""
    tree = ward_tree(*items, divergence)
    n_joins = len(items.weight) - MOST_ITEMS // 2
    group = tree.cut(n_joins)
    heaviest = np.lexsort((items.weight, item_id >= 0, group))
    n_groups = group.max() + 1
    joined_id = np.empty(n_groups, dtype=np.int64)
    joined_id[group[heaviest]] = item_id[heaviest]
    weight, total = np.zeros(n_groups), np.zeros((n_groups, items.total.shape[1]))
    np.add.at(weight, group, items.weight)
    np.add.at(total, group, items.total)
    return Sums(weight, total), joined_id, float(tree.cost[:n_joins].sum())


def _cluster(items: Sums, item_id: np.ndarray, divergence: Divergence, penalty: float):
    """Cluster the items, starting from their present clusters; new items from the nearest."""
    means = items.total / items.weight[:, None]
    with open_rows(means, items.weight, divergence) as rows:
        fixed_point, old = rows.fixed_point, item_id >= 0
        _, start = np.unique(item_id[old], return_inverse=True)
        labels = np.zeros(len(item_id), dtype=np.int32)
        labels[old] = start
        if old.any():
            n_clusters = int(start.max()) + 1
            weight, total = np.zeros(n_clusters), np.zeros((n_clusters, rows.n_features))
            np.add.at(weight, start, items.weight[old])
            np.add.at(total, start, items.total[old])
            labels[~old] = assign_to(rows, divergence.means(weight, total)).labels[~old]
        assignment = Assignment(rows)
        assignment.set_labels(labels)
        found = refine(assignment, penalty, tol=0.0, max_iter=300)
        # The cost within items is counted already (zero here, except for the cosine).
        seen = items.total - items.weight[:, None] * fixed_point.origin
        own = fixed_point.total_cost + float(divergence.energy(items.weight, seen).sum())
        weight = fixed_point.weights(assignment.summary)
    return assignment.labels, assignment.centers, weight, found.objective - own


def _name_clusters(labels, weight, item_id, n_clusters: int, next_id: int):
    """Assign ids greedily by shared weight with old clusters, each id once; else new ids."""
    ids = np.full(n_clusters, -1, dtype=np.int64)
    old = item_id >= 0
    known, place = np.unique(item_id[old], return_inverse=True)
    shared = np.zeros((len(known), n_clusters))
    np.add.at(shared, (place, labels[old]), weight[old])
    for flat in np.argsort(-shared, axis=None, kind="stable")[: np.count_nonzero(shared)]:
        row, cluster = np.unravel_index(flat, shared.shape)
        if ids[cluster] < 0 and known[row] not in ids:
            ids[cluster] = known[row]
    fresh = np.flatnonzero(ids < 0)
    ids[fresh] = next_id + np.arange(len(fresh))
    return ids, next_id + len(fresh)
