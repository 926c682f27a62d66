"""Local search on the DP-means objective, from where Algorithm 1 stops.

Algorithm 1 never merges clusters, and opens one only where the divergence of a single row exceeds
the penalty. The change of the objective ``sum_i w_i d(x_i, center) + penalty * n_clusters`` under
each move here is computed exactly from the clusters' weights and sums, and only moves that lower it
are accepted:

* *assign* rows to the nearest center, then move centers to the means (Lloyd's iteration);
* *split* a cluster in two, by 2-means along its first principal direction: accepted when the
  within-cluster cost falls by more than the penalty;
* *merge* two clusters: accepted when the within-cluster cost rises by less than the penalty;
* *move* one row to another cluster, or to a new singleton, with the change of both means included
  (Hartigan's method).

*Over-split and repair* combines them: split clusters at a price below the penalty, reassign, merge,
and undo all of it unless the objective is lower.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from countless._compat import OnPass, ignore_pass
from countless._data import Block, Frame, Rows, Summary
from countless._search.algorithm1 import Clustering
from countless._search.assignment import Nearest, Relabelling
from countless._search.checkpoint import NO_CHECKPOINT, Checkpoint, NoCheckpoint, Progress
from countless._search.merge import profitable_merges
from countless._search.nearest import Products
from countless._search.split import Halves, halve, worth_halving
from countless.kernels.moves import pick_moves

# Above this many clusters, rows are compared only with the centers near their own (local passes),
# until that changes nothing.
MANY_CLUSTERS = 256
# Largest number of Hartigan moves between two passes over the table; the largest gains first.
MOVES_AT_ONCE = 2048
# If more than this share of the clusters is split in a round, the next round follows after two
# assignment passes, without merges.
GROWING = 0.05
# Price of a split in over-split and repair, as a share of the penalty: reassigning the rows around
# a split adds to its gain.
BOLD = 0.7
# With very many clusters reassignment adds still more; then this share of the clusters is split at
# a lower price.
BOLDER = 0.5
BOLDER_SHARE = 0.07
# Number of clusters that the largest over-split makes: this multiple of the present number, or at
# least this many where there are enough rows. Then the assignment passes after its merges.
DEEP_FACTOR = 4
DEEP_CLUSTERS = 256
VENTURE_PASSES = 4
# Cluster arrays, halves included, take at most 1 / CLUSTER_ROOM of the table's memory, unless that
# needs more than MOST_HALVINGS batches; halving a cluster takes the memory of HALVING_ARRAYS
# clusters.
CLUSTER_ROOM = 16
HALVING_ARRAYS = 8
MOST_HALVINGS = 16
# Minimum gain of an assignment pass, as a share of the minimum gain of a round; smaller for the
# last passes: a pass is cheap, and many small gains add up.
PATIENCE = 0.3
LAST_PATIENCE = 0.03
# Gains below this share of the total cost are attributed to rounding.
ROUNDING = 1e-12


class Refiner:
    """State of the local search: labels, cluster sums and the objective, kept consistent."""

    def __init__(self, nearest: Nearest, penalty: float):
        self.nearest = nearest
        self.rows = nearest.rows
        self.frame = nearest.rows.frame
        self.penalty = penalty
        self.rounding = ROUNDING * abs(self.frame.total_cost)
        self.n_passes = 0

    @property
    def n_clusters(self) -> int:
        return self.nearest.n_clusters

    @property
    def objective(self) -> float:
        return self.frame.objective(self.nearest.summary, self.penalty)

    def settle_rows(self, *, local: bool = False) -> bool:
        """Do one Lloyd iteration and drop empty clusters; return whether a label changed."""
        self.n_passes += 1
        self.nearest.settle(local=local)
        self.nearest.drop_empty()
        return self.nearest.n_changed > 0

    def split(self, price: float | None = None, most: int | None = None) -> np.ndarray:
        """Split clusters where that gains more than the price (None: the penalty); return which.

        With ``most``, only the ``most`` clusters of highest cost are tried. New clusters are
        appended, in the order of the clusters returned.
        """
        price = self.penalty if price is None else price
        self.nearest.forget_lists()
        cluster, farthest = worth_halving(self.nearest, price, most)
        # In batches, to bound the memory.
        room = self.frame.n_bytes // (CLUSTER_ROOM * 8 * self.frame.n_features)
        room = (room - self.n_clusters) // HALVING_ARRAYS
        at_once = max(1, room, -(-len(cluster) // MOST_HALVINGS))
        split = [np.empty(0, dtype=np.int64)]
        for at in range(0, len(cluster), at_once):
            part = slice(at, at + at_once)
            split.append(
                self._take_splits(halve(self.nearest, cluster[part], farthest[part]), price)
            )
        self.nearest.forget_marks()
        return np.concatenate(split)

    def _take_splits(self, halves: Halves, price: float) -> np.ndarray:
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
            self.nearest.adopt(Relabelling(new_label, far_label), ancestor)
        return split

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
            self.nearest.adopt(Relabelling(label), heir)
        return n_merged

    def venture(self, price: float, enough: int, *, local: bool, most: int | None = None) -> bool:
        """Over-split and repair: split at a price below the penalty, reassign, merge.

        Accepted if the objective is lower, otherwise undone. Clusters are split until there are
        ``enough``; ``most`` as in `split`. This finds moves that no single split or merge does: a
        split that gains only after the rows around it are reassigned, or a center that moves from
        one region to another.
        """
        before, n_before = self.objective, self.n_clusters
        split = self.split(price, most)
        # After the split has freed its marks; the old label of every row is still known.
        self.nearest.keep(np.append(np.arange(n_before), split))
        while len(split):
            self.settle_rows(local=local)
            split = self.split(price, most) if self.n_clusters < enough else split[:0]
        self.settle_rows(local=local)
        self.merge()
        for _ in range(VENTURE_PASSES):
            if not self.settle_rows(local=local):
                break
        if self.objective < before - self.rounding:
            self.nearest.forget_kept()
            return True
        self.nearest.take_back(n_before)
        return False

    def deep(self) -> int:
        """Return how many clusters the largest over-split makes, within the table's memory."""
        many = max(DEEP_FACTOR * self.n_clusters, min(DEEP_CLUSTERS, self.frame.n_counted // 4))
        room = self.frame.n_bytes // (8 * self.frame.n_features)
        return min(many, max(2 * self.n_clusters, room))

    def move_rows(self) -> int:
        """Make Hartigan moves of single rows, largest gains first; return how many."""
        ids, target, gain = self._promising_rows()
        if not len(ids):
            return 0
        order = np.lexsort((ids, -gain))[:MOVES_AT_ONCE]
        ids, target = ids[order], target[order]
        picked = self.rows.pick(ids)
        steps = self.frame.steps(picked.weight, picked.points() - self.frame.origin)
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
            self.nearest.adopt(change_, np.array(ancestor))
        return len(moved)

    def finish(self) -> float:
        """Assign every row to the nearest of the final centers, and return the objective.

        It is computed from the exact sums; stored centers are rounded where data are far from 0.
        """
        self.settle_rows()
        return self.objective

    def _energies(self, clusters) -> float:
        weight, total = zip(*clusters, strict=True)
        return float(self.frame.energy(Summary(np.array(weight), np.array(total))).sum())

    def _promising_rows(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the rows with a positive gain, their target clusters (-1: a new one), and gains.

        Gains are exact for squared Euclidean distance, and of second order otherwise.
        """
        nearest, frame = self.nearest, self.frame
        message = MoveSearch(
            frame,
            frame.centers(nearest.centers),
            Products(frame, nearest.centers),
            frame.weights(nearest.summary),
            self.penalty * frame.divergence.scale,
        )
        found = self.rows.run(promising_block, nearest.state, message)
        ids, target, gain = (np.concatenate(part) for part in zip(*found, strict=True))
        return ids, target, gain


class MoveSearch(NamedTuple):
    """Arguments of the search for Hartigan moves, the same for all blocks."""

    frame: Frame
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
    best = np.argsort(-gain, kind="stable")[:MOVES_AT_ONCE]
    best = best[gain[best] > 0]
    return block.start + ids[best], target[best], gain[best]


def picked_labels(rows: Rows, state, ids: np.ndarray) -> np.ndarray:
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
    nearest: Nearest,
    penalty: float,
    *,
    tol: float,
    max_iter: int,
    on_pass: OnPass = ignore_pass,
    checkpoint: Checkpoint | NoCheckpoint = NO_CHECKPOINT,
    start: Callable[[Nearest], None] = lambda nearest: None,
) -> Clustering:
    """Run the local search until no move lowers the objective by more than a share ``tol`` of it.

    A run saved in the checkpoint is resumed; otherwise ``start`` initialises the clustering.
    """
    saved = checkpoint.resume(nearest)
    if not saved:
        start(nearest)
    refiner = Refiner(nearest, penalty)
    history, refiner.n_passes = saved or ([], 0)

    def note(objective: float) -> None:
        history.append(objective)
        on_pass(objective, refiner.n_clusters)

    def settle(least_gain: float) -> None:
        changed = True
        while changed and refiner.n_passes < max_iter:
            changed = refiner.settle_rows(local=local)
            note(refiner.objective)
            changed = changed and history[-2] - history[-1] > least_gain

    if not saved:
        note(refiner.objective)
    converged, local, little = False, False, 0.0
    while not converged and refiner.n_passes < max_iter:
        nearest.forget_lists()  # a run resumed from here has none
        checkpoint.save(nearest, Progress(history, refiner.n_passes))
        before = history[-1]
        little = tol * abs(before) + refiner.rounding * (tol > 0)
        # With very many clusters rows are compared with nearby centers only, except in the last
        # pass.
        local = tol > 0 and refiner.n_clusters > MANY_CLUSTERS
        # While many clusters are still being split, merging or iterating to convergence is wasted.
        if len(refiner.split()) > GROWING * refiner.n_clusters:
            refiner.settle_rows(local=local)
            refiner.settle_rows(local=local)
            note(refiner.objective)
            continue
        refiner.merge()
        settle(PATIENCE * little)
        if before - history[-1] > little:
            continue
        if local:
            # After over-split and repair hardly any single split or merge lowers the objective.
            while not converged and refiner.n_passes < max_iter:
                k = refiner.n_clusters
                most = max(1, int(BOLDER_SHARE * k))
                refiner.venture(BOLDER * penalty, k + 1, local=True, most=most)
                note(refiner.objective)
                converged = history[-2] - history[-1] <= little
            continue
        k = refiner.n_clusters
        found = refiner.move_rows() > 0
        found = found or refiner.venture(BOLD * penalty, k + 1, local=False)
        found = found or refiner.venture(0.0, refiner.deep(), local=False)
        note(refiner.objective)
        converged = not found or before - history[-1] <= little
    if tol > 0:  # with tol = 0 no further pass lowers the objective
        settle(LAST_PATIENCE * little)
    note(refiner.finish())
    return Clustering(nearest, history[-1], history, 1 + refiner.n_passes, converged)
