"""DP-means on a stream: a bounded set of weighted micro-clusters summarises all rows seen so far.

Each batch is reduced to some items (micro-clusters); if there are more than `MOST_ITEMS`, items are
merged, the cheapest merges first. The clusters are those of DP-means on the items. Weights and sums
of items are exact, and so are the clusters' means and the objective. Clusters keep their ids: when
two clusters merge, the result has the id of the heavier one and the other id is never used again; a
new cluster gets a new id.

With a price, items farther than it from every cluster are background, without an id. They are
kept, because they become a cluster when enough rows arrive near them; the oldest are dropped.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from countless._data import Backend, open_rows
from countless._data.fixed_point import Sums
from countless._data.open import reweigh
from countless._path.micro import assign_to, micro_clusters
from countless._path.ward import ward_tree
from countless._search.algorithm1 import Clustering
from countless._search.assignment import Assignment
from countless._search.background import alternate, nearest
from countless._search.refine import refine
from countless.divergences import Divergence

MOST_ITEMS = 1024
# Items of the background that are kept.
MOST_FAR = MOST_ITEMS // 4


class Stream(NamedTuple):
    """The summary of a stream."""

    items: Sums  # weights and sums of the micro-clusters, in the table's coordinates
    item_id: np.ndarray  # (n_items,) the id of each item's cluster; -1 for background
    next_id: int
    within: float  # cost of all rows at their items' means
    dropped: float = 0.0  # weight of background that is no longer in the items

    @property
    def seen(self) -> float:
        """The weight of all rows."""
        return self.items.weight.sum() + self.dropped


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


def resume_stream(
    weight: np.ndarray, total: np.ndarray, within: float, dropped: float = 0.0
) -> Stream:
    """Return a stream that continues from clusters already found; their ids are 0, 1, ..."""
    return Stream(Sums(weight, total), np.arange(len(weight)), len(weight), within, dropped)


def update_stream(
    stream: Stream, rows: Backend, penalty: float, *, seed: int, price: float = np.inf
) -> tuple[Stream, StreamClusters]:
    """Add a batch of rows and cluster again."""
    divergence = rows.fixed_point.divergence
    stream = _drop_oldest(stream, price)
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
    labels, centers, cluster_weight, objective = _cluster(
        items, item_id, divergence, penalty, price
    )
    ids, next_id = _name_clusters(labels, items.weight, item_id, len(centers), stream.next_id)
    oldest = np.argsort(ids)
    clusters = StreamClusters(
        ids[oldest], centers[oldest], cluster_weight[oldest], within + objective
    )
    # Background has the label -1, which is the last place.
    item_id = np.append(ids, -1)[labels]
    return Stream(items, item_id, next_id, within, stream.dropped), clusters


def _drop_oldest(stream: Stream, price: float) -> Stream:
    """Return a stream of which the oldest background is only known by its cost."""
    gone = np.flatnonzero(stream.item_id < 0)[:-MOST_FAR]
    if not len(gone):
        return stream
    kept = np.ones(len(stream.item_id), dtype=bool)
    kept[gone] = False
    weight = float(stream.items.weight[gone].sum())
    return stream._replace(
        items=Sums(stream.items.weight[kept], stream.items.total[kept]),
        item_id=stream.item_id[kept],
        within=stream.within + weight * price,
        dropped=stream.dropped + weight,
    )


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


def _cluster(
    items: Sums, item_id: np.ndarray, divergence: Divergence, penalty: float, price: float
):
    """Cluster the items, starting from their present clusters; new items from the nearest."""
    means = items.total / items.weight[:, None]
    with open_rows(means, items.weight, divergence) as rows:
        fixed_point, old = rows.fixed_point, item_id >= 0
        _, start = np.unique(item_id[old], return_inverse=True)
        labels = np.zeros(len(item_id), dtype=np.int32)
        labels[old] = start
        centers = np.empty((0, rows.n_features))
        if old.any():
            n_clusters = int(start.max()) + 1
            weight, total = np.zeros(n_clusters), np.zeros((n_clusters, rows.n_features))
            np.add.at(weight, start, items.weight[old])
            np.add.at(total, start, items.total[old])
            centers = divergence.means(weight, total)
            labels[~old] = assign_to(rows, centers).labels[~old]
        far = np.zeros(len(labels), dtype=bool)
        if np.isfinite(price):
            centers = np.vstack([centers, _dense_background(rows, items, centers, penalty, price)])
            _, near = nearest(rows, centers, items.weight)
            far = near.distance > price
            reweigh(rows, np.where(far, 0.0, items.weight))
            around = assign_to(rows, centers)
            around.drop_empty()
            labels = around.labels

        def fit(labels: np.ndarray) -> Clustering:
            assignment = Assignment(rows)
            assignment.set_labels(labels)
            return refine(assignment, penalty, tol=0.0, max_iter=300)

        found = fit(labels)
        if np.isfinite(price):
            found, near, _ = alternate(rows, items.weight, found, far, price, penalty, fit)
            far = near.distance > price
        assignment, fixed_point = found.assignment, rows.fixed_point
        # The cost within items is counted already (zero here, except for the cosine).
        seen = items.total - items.weight[:, None] * fixed_point.origin
        energy = divergence.energy(items.weight[~far], seen[~far])
        own = fixed_point.total_cost + float(energy.sum())
        weight = fixed_point.weights(assignment.summary)
        labels = np.where(far, -1, assignment.labels)
    return labels, assignment.centers, weight, found.objective - own


def _dense_background(
    rows: Backend, items: Sums, centers: np.ndarray, penalty: float, price: float
) -> np.ndarray:
    """Return the centers of clusters of background items that cost less than background."""
    far = np.arange(rows.n_rows)
    if len(centers):
        _, near = nearest(rows, centers, items.weight)
        far = np.flatnonzero(near.distance > price)
    if not len(far):
        return centers[:0]
    block = rows.pick(far)
    with open_rows(block.values, block.weight, rows.fixed_point.divergence) as far_rows:
        assignment = Assignment(far_rows)
        found = refine(assignment, penalty, tol=0.0, max_iter=300)
        _, near = nearest(far_rows, found.centers, block.weight)
    saved = near.sums(price - np.minimum(near.distance, price))
    return found.centers[saved > penalty]


def _name_clusters(labels, weight, item_id, n_clusters: int, next_id: int):
    """Assign ids greedily by shared weight with old clusters, each id once; else new ids."""
    ids = np.full(n_clusters, -1, dtype=np.int64)
    old = item_id >= 0
    known, place = np.unique(item_id[old], return_inverse=True)
    shared = np.zeros((len(known), n_clusters))
    inside = labels[old] >= 0  # an item may have become background
    np.add.at(shared, (place[inside], labels[old][inside]), weight[old][inside])
    for flat in np.argsort(-shared, axis=None, kind="stable")[: np.count_nonzero(shared)]:
        row, cluster = np.unravel_index(flat, shared.shape)
        if ids[cluster] < 0 and known[row] not in ids:
            ids[cluster] = known[row]
    fresh = np.flatnonzero(ids < 0)
    ids[fresh] = next_id + np.arange(len(fresh))
    return ids, next_id + len(fresh)
