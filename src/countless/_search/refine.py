"""The moves of local search over rows, from where Algorithm 1 stops.

Algorithm 1 never merges clusters, and opens one only where the divergence of a single row exceeds
the penalty. The change of the objective ``sum_i w_i d(x_i, center) + penalty * n_clusters`` under
each move here is computed exactly from the clusters' weights and sums, and only moves that lower it
are accepted:

* *reassign* rows to the nearest center, then move centers to the means (Lloyd's iteration);
* *split* a cluster in two, by 2-means along its first principal direction: accepted when the
  within-cluster cost falls by more than the penalty;
* *merge* two clusters: accepted when the within-cluster cost rises by less than the penalty;
* *move* one row to another cluster, or to a new singleton, with the change of both means included
  (Hartigan's method).

`countless._search.local_search` has the schedule.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from countless._compat import OnPass, ignore_pass
from countless._data import Backend, Block, FixedPoint, Summary
from countless._search.algorithm1 import Clustering
from countless._search.assignment import Assignment, Relabelling
from countless._search.checkpoint import NO_CHECKPOINT, Checkpoint, NoCheckpoint, Progress
from countless._search.local_search import SCHEDULE, LocalSearch, OverSplit, over_splits
from countless._search.merge import profitable_merges
from countless._search.nearest_centers import Products
from countless._search.split import Halves, halve, worth_halving
from countless.kernels.moves import pick_moves


@dataclass(frozen=True)
class ManyClusters:
    """Constants of the search with very many clusters, chosen by ``benchmarks/dp_means.py``."""

    # Above this many clusters, rows are compared only with the centers near their own (local
    # passes), until that changes nothing.
    n_clusters: int = 256
    # Over-split and repair splits this share of them, those of highest cost, at this share of the
    # penalty.
    split_share: float = 0.07
    over_split_share: float = 0.5
    # Arrays of clusters, halves included, take at most one in ``memory_share`` parts of the table's
    # memory, unless that needs more than ``most_batches``; halving a cluster takes the memory of
    # ``halving_arrays`` clusters.
    memory_share: int = 16
    halving_arrays: int = 8
    most_batches: int = 16


MANY = ManyClusters()


class RowClusters:
    """The clusters of a table's rows: labels, cluster sums and the objective, kept consistent."""

    def __init__(self, nearest: Assignment, penalty: float):
        self.nearest = nearest
        self.rows = nearest.rows
        self.fixed_point = nearest.rows.fixed_point
        self.penalty = penalty
        self.rounding = SCHEDULE.rounding * abs(self.fixed_point.total_cost)
        self.n_passes = 0
        # Whether rows are compared with nearby centers only.
        self.is_large = False

    @property
    def n_clusters(self) -> int:
        return self.nearest.n_clusters

    @property
    def objective(self) -> float:
        return self.fixed_point.objective(self.nearest.summary, self.penalty)

    def reassign(self, share: float = 1.0) -> bool:
        """Do one Lloyd iteration and drop empty clusters; return whether a label changed."""
        self.n_passes += 1
        self.nearest.lloyd_step(local=self.is_large)
        self.nearest.drop_empty()
        return self.nearest.n_changed > 0

    def split(self, share: float = 1.0) -> int:
        """Split clusters where that gains more than a share of the penalty; return how many."""
        price, most = share * self.penalty, None
        if self.is_large and share < 1:
            most = max(1, int(MANY.split_share * self.n_clusters))
        self.nearest.forget_lists()
        cluster, farthest = worth_halving(self.nearest, price, most)
        # In batches, to bound the memory.
        capacity = self.fixed_point.n_bytes // (MANY.memory_share * 8 * self.fixed_point.n_features)
        capacity = (capacity - self.n_clusters) // MANY.halving_arrays
        at_once = max(1, capacity, -(-len(cluster) // MANY.most_batches))
        n_before = self.n_clusters
        for at in range(0, len(cluster), at_once):
            part = slice(at, at + at_once)
            self._take_splits(halve(self.nearest, cluster[part], farthest[part]), price)
        self.nearest.forget_marks()
        return self.n_clusters - n_before

    def _take_splits(self, halves: Halves, price: float) -> None:
        pays = halves.gain > price + self.rounding
        split, n_new = halves.cluster[pays], int(pays.sum())
        if n_new:
            k, far = self.n_clusters, halves.far.take(pays)
            new_label = np.arange(k, dtype=np.int32)
            far_label = new_label.copy()
            far_label[split] = k + np.arange(n_new)
            summary = self.nearest.summary = self.nearest.summary.with_empty(n_new)
            for sums, part in zip(summary, far, strict=True):
                sums[k:] = part
                sums[split] -= part
            ancestor = np.append(np.arange(k), split)
            self.nearest.relabel(Relabelling(new_label, far_label), ancestor)

    def merge(self) -> int:
        """Merge pairs of clusters while that lowers the objective; return how many."""
        lists = self.nearest.local_lists
        self.nearest.forget_lists()
        summary, k = self.nearest.summary, self.n_clusters
        label = np.arange(k, dtype=np.int32)
        heir = np.arange(k)
        while len(heir) > 1:
            listed = None if lists is None else lists.columns(heir, label)
            pairs = profitable_merges(self.rows, summary, self.penalty - self.rounding, listed)
            if not len(pairs):
                break
            kept, gone = pairs.T
            for part in summary:
                part[kept] += part[gone]
            stays = np.ones(len(heir), dtype=bool)
            stays[gone] = False
            number = np.cumsum(stays, dtype=np.int32) - 1
            number[gone] = number[kept]
            label, heir = number[label], heir[stays]
            summary = summary.take(stays)
        n_merged = k - len(heir)
        if n_merged:
            self.nearest.summary = summary
            self.nearest.relabel(Relabelling(label), heir)
        return n_merged

    def moves(self) -> tuple[Callable[[], int], ...]:
        return (self.move_rows,)

    def over_splits(self) -> list[OverSplit]:
        k = self.n_clusters
        if self.is_large:
            return [OverSplit(MANY.over_split_share, k + 1)]
        few, many = over_splits(k, self.fixed_point.n_counted)
        capacity = self.fixed_point.n_bytes // (8 * self.fixed_point.n_features)
        return [few, many._replace(enough=min(many.enough, max(2 * k, capacity)))]

    def save(self) -> int:
        """Save the labels; return the number of clusters."""
        self.nearest.save_labels(np.arange(self.n_clusters))
        return self.n_clusters

    def accept(self, saved: int) -> None:
        """Discard the saved labels."""
        self.nearest.forget_saved_labels()

    def restore(self, saved: int) -> None:
        """Restore the saved labels, of so many clusters."""
        self.nearest.restore_labels(saved)

    def move_rows(self) -> int:
        """Make Hartigan moves of single rows, largest gains first; return how many."""
        ids, target, gain = self._promising_rows()
        if not len(ids):
            return 0
        order = np.lexsort((ids, -gain))[: SCHEDULE.moves_at_once]
        ids, target = ids[order], target[order]
        picked = self.rows.pick(ids)
        steps = self.fixed_point.to_steps(picked.weight, picked.points() - self.fixed_point.origin)
        label = picked_labels(self.rows, self.nearest.state, ids)
        weight, total = list(self.nearest.summary.weight), list(self.nearest.summary.total)
        ancestor = list(range(self.n_clusters))
        moved = {}
        for i, own, to, w, row in zip(ids, label, target, *steps, strict=True):
            left = (weight[own] - w, total[own] - row)
            if left[0] <= 0:
                continue
            opens = to < 0
            joined = (w, row) if opens else (weight[to] + w, total[to] + row)
            before = [(weight[own], total[own])] + ([] if opens else [(weight[to], total[to])])
            change = self.penalty if opens else 0.0
            change += self._energies([left, joined]) - self._energies(before)
            if not change < -self.rounding:
                continue
            if opens:
                to = len(weight)
                weight.append(0)
                total.append(np.zeros_like(row))
                ancestor.append(ancestor[own])
            (weight[own], total[own]), (weight[to], total[to]) = left, joined
            moved[int(i)] = to
        if moved:
            places = np.array(sorted(moved))
            labels = np.array([moved[place] for place in places], dtype=np.int32)
            same = np.arange(self.n_clusters, dtype=np.int32)
            change_ = Relabelling(same, None, places, labels)
            self.nearest.summary = Summary(np.array(weight), np.array(total))
            self.nearest.relabel(change_, np.array(ancestor))
        return len(moved)

    def _energies(self, clusters) -> float:
        weight, total = zip(*clusters, strict=True)
        return float(self.fixed_point.energy(Summary(np.array(weight), np.array(total))).sum())

    def _promising_rows(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the rows with a positive gain, their target clusters (-1: a new one), and gains.

        Gains are exact for squared Euclidean distance, and of second order otherwise.
        """
        nearest, fixed_point = self.nearest, self.fixed_point
        message = MoveSearch(
            fixed_point,
            fixed_point.centers(nearest.centers),
            Products(fixed_point, nearest.centers),
            fixed_point.weights(nearest.summary),
            self.penalty * fixed_point.divergence.scale,
        )
        found = self.rows.run(promising_block, nearest.state, message)
        ids, target, gain = (np.concatenate(part) for part in zip(*found, strict=True))
        return ids, target, gain


class MoveSearch(NamedTuple):
    """Arguments of the search for Hartigan moves, the same for all blocks."""

    fixed_point: FixedPoint
    form: Any
    products: Products
    weight: np.ndarray  # (n_clusters,)
    price: float


def promising_block(block: Block, held, m: MoveSearch) -> tuple[np.ndarray, ...]:
    """Return a block's rows with the largest gains, their targets (-1: a new cluster), and gains.

    Bounds exclude most rows before any divergence is computed.
    """
    w, own = block.weight, m.weight[held["labels"]]
    lightest = m.weight.min()
    movable = own > w * (1 + 1e-9)
    given_back = np.divide(own, own - w, out=np.zeros(block.n_rows), where=movable)
    given_back *= held["upper"].astype(np.float64) ** 2
    least = held["lower"].astype(np.float64) ** 2 * lightest / (lightest + w)
    ids = np.flatnonzero((w > 0) & movable & ((given_back > least) | (w * given_back > m.price)))
    target, gain = np.empty(len(ids), dtype=np.int64), np.empty(len(ids))
    for part, (score, norm, error) in m.products.tiles(block, ids):
        pick_moves(
            block.form, ids[part], w, m.weight, m.form, held["labels"], score, norm, error,
            m.products.unit**2, m.price, target[part], gain[part],
        )  # fmt: skip
    best = np.argsort(-gain, kind="stable")[: SCHEDULE.moves_at_once]
    best = best[gain[best] > 0]
    return block.start + ids[best], target[best], gain[best]


def picked_labels(rows: Backend, state, ids: np.ndarray) -> np.ndarray:
    """Return the labels of some rows."""
    order = np.argsort(ids)
    found = np.concatenate(rows.run(labels_block, state, ids[order], data=False))
    labels = np.empty(len(ids), dtype=np.int64)
    labels[order] = found
    return labels


def labels_block(block: Block, held, places: np.ndarray) -> np.ndarray:
    """Return the labels of those rows that are in this block."""
    first, last = np.searchsorted(places, [block.start, block.start + block.n_rows])
    return held["labels"][places[first:last] - block.start]


def refine(
    nearest: Assignment,
    penalty: float,
    *,
    tol: float,
    max_iter: int,
    on_pass: OnPass = ignore_pass,
    checkpoint: Checkpoint | NoCheckpoint = NO_CHECKPOINT,
    start: Callable[[Assignment], None] = lambda nearest: None,
) -> Clustering:
    """Run the local search until no move lowers the objective by more than a share ``tol`` of it.

    A run saved in the checkpoint is resumed; otherwise ``start`` initialises the clustering.
    """
    saved = checkpoint.resume(nearest)
    if not saved:
        start(nearest)
    clusters = RowClusters(nearest, penalty)
    search = LocalSearch(clusters, tol=tol, max_iter=max_iter, on_pass=on_pass)
    search.history, clusters.n_passes = saved or ([], 0)

    def prepare_round() -> None:
        nearest.forget_lists()  # a run resumed from here has none
        checkpoint.save(nearest, Progress(search.history, clusters.n_passes))
        # With very many clusters rows are compared with nearby centers only, until the last pass.
        clusters.is_large = tol > 0 and clusters.n_clusters > MANY.n_clusters

    search.run(prepare_round)
    search.finish()
    # Every row to the nearest of all centers.
    clusters.is_large = False
    clusters.reassign()
    search.note()
    return Clustering(
        nearest, search.history[-1], search.history, 1 + clusters.n_passes, search.converged
    )
