"""Lowering the DP-means objective beyond where Algorithm 1 stops.

Algorithm 1 never merges clusters, and opens one only where a single row pays for it. The moves here
have exact costs in the clusters' weights and sums, and only those that lower ``sum_i w_i d(x_i,
center) + penalty * n_clusters`` are taken:

* *rows to the nearest center*, then centers to the means (Lloyd's step);
* *split* a cluster in two, by 2-means from its main direction: worth it when the clusters' energy
  falls by more than the penalty;
* *merge* two clusters: worth it when the energy rises by less;
* *move* one row to another cluster, or to one of its own, counting what that does to both means
  (Hartigan's move).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from countless._compat import OnPass, ignore_pass
from countless.hard.algorithm1 import Clustering
from countless.hard.blocks import Relabelling
from countless.hard.checkpoint import NO_CHECKPOINT, Checkpoint, NoCheckpoint, Progress
from countless.hard.merge import profitable_merges
from countless.hard.nearest import Nearest
from countless.hard.products import Products
from countless.hard.split import Halves, halve, worth_halving
from countless.kernels.moves import pick_moves
from countless.rows import Block, Frame, Rows, Summary

# Above this many clusters, rows look for a nearer center among those around their own until that
# finds no more.
MANY_CLUSTERS = 256
# Single rows moved between two looks at the whole table, the most profitable ones first.
MOVES_AT_ONCE = 2048
# Above this share of clusters split in a round, the next round comes after two passes.
GROWING = 0.05
# A split is worth trying at this share of the penalty: when rows around it settle it gains more
# than by itself.
BOLD = 0.7
# Among very many clusters splits gain still more when all around them settle; then a share of the
# clusters is split for less.
BOLDER = 0.5
BOLDER_SHARE = 0.07
# How many times as many clusters the deepest venture makes, or this many where rows suffice; passes
# after its merges.
DEEP_FACTOR = 4
DEEP_CLUSTERS = 256
VENTURE_PASSES = 4
# Clusters and halves of them take one part in so many of the table's room, if not in more than so
# many goes; each half takes that of so many clusters.
CLUSTER_ROOM = 16
HALVING_ARRAYS = 8
MOST_HALVINGS = 16
# Rows settle while a pass gains this share of what a round must, and a smaller one at the end:
# passes are cheap, and many small gains add up.
PATIENCE = 0.3
LAST_PATIENCE = 0.03
# Gains below this share of the objective are rounding.
ROUNDING = 1e-12


class Refiner:
    """A clustering under refinement: labels, sums and the objective, kept in step."""

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
        """Move rows to their nearest center and centers to their mean; tell if a label changed."""
        self.n_passes += 1
        self.nearest.settle(local=local)
        self.nearest.drop_empty()
        return self.nearest.n_changed > 0

    def split(self, price: float | None = None, most: int | None = None) -> np.ndarray:
        """Split clusters that gain more than the price (None: the penalty); return which.

        With ``most``, of so many that cost most. New clusters come after the old, in the order of
        those returned.
        """
        price = self.penalty if price is None else price
        self.nearest.forget_lists()
        cluster, farthest = worth_halving(self.nearest, price, most)
        # Some clusters at a time where those of all would take much room.
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
            self.nearest.summary.resize(k + n_new)
            for sums, part in zip(self.nearest.summary, far, strict=True):
                sums[k:] = part
                sums[split] -= part
            ancestor = np.append(np.arange(k), split)
            self.nearest.adopt(Relabelling(new_label, far_label), ancestor)
        return split

    def merge(self) -> int:
        """Merge pairs of clusters for as long as that pays; return how many."""
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
            summary.keep(stays)
        lists = listed = None  # their room is wanted
        n_merged = k - len(heir)
        if n_merged:
            self.nearest.adopt(Relabelling(label), heir)
        return n_merged

    def venture(self, price: float, enough: int, *, local: bool, most: int | None = None) -> bool:
        """Split clusters (at most so many) below the penalty's worth, settle, merge.

        What is better is kept, all else taken back. This finds what no single split or merge does:
        a split that pays once the rows around it have settled, a center to be taken from one place
        and needed in another.
        """
        before, n_before = self.objective, self.n_clusters
        split = self.split(price, most)
        # Only now: the marks of the split are gone, and labels still tell where rows came from.
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
        """Return how many clusters the deepest venture makes, within the room of the table."""
        many = max(DEEP_FACTOR * self.n_clusters, min(DEEP_CLUSTERS, self.frame.n_counted // 4))
        room = self.frame.n_bytes // (8 * self.frame.n_features)
        return min(many, max(2 * self.n_clusters, room))

    def move_rows(self) -> int:
        """Move single rows, the most profitable ones first; return how many."""
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
        """Leave every row with the nearest of the final centers, and return the objective.

        It is that of the means to the last digit: far from 0, stored centers are rounded.
        """
        self.n_passes += 1
        self.nearest.settle_for_good()
        return self.objective

    def _energies(self, clusters) -> float:
        weight, total = zip(*clusters, strict=True)
        return float(self.frame.energy(Summary(np.array(weight), np.array(total))).sum())

    def _promising_rows(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return rows that may gain by moving, where to (-1: their own cluster), and how much."""
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
    """What every block must know to tell which of its rows gain by moving."""

    frame: Frame
    form: Any
    products: Products
    weight: np.ndarray  # (n_clusters,)
    price: float


def promising_block(block: Block, held, m: MoveSearch) -> tuple[np.ndarray, ...]:
    """Return the rows that gain most by moving, where to (-1: their own cluster), and how much."""
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
    """Take moves until none lowers the objective by more than ``tol`` times itself.

    A run that the checkpoint has saved goes on from there; any other begins with ``start``.
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
        nearest.forget_lists()  # a run that goes on from here has none
        checkpoint.save(nearest, Progress(history, refiner.n_passes))
        before = history[-1]
        little = tol * abs(before) + refiner.rounding * (tol > 0)
        # Rows of very many clusters look around their own cluster only; the last pass looks
        # everywhere.
        local = tol > 0 and refiner.n_clusters > MANY_CLUSTERS
        # While clusters still come in numbers it is too early to merge, or to settle rows to the
        # last one.
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
            # What a venture leaves has hardly a cluster that pays to be split or merged by itself.
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
    if tol > 0:  # else no pass gains anything
        settle(LAST_PATIENCE * little)
    note(refiner.finish())
    return Clustering(nearest, history[-1], history, 1 + refiner.n_passes, converged)
