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

import numpy as np

from countless.hard.algorithm1 import Clustering
from countless.hard.merge import profitable_merges
from countless.hard.nearest import LEAST_TILE_ROWS, TILE_VALUES, Nearest
from countless.hard.products import Products
from countless.hard.split import halve
from countless.kernels.moves import pick_moves
from countless.rows import MemoryRows, Summary

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
# How many times as many clusters the deepest venture makes, or this many where rows suffice; passes
# after its merges.
DEEP_FACTOR = 4
DEEP_CLUSTERS = 256
VENTURE_PASSES = 4
# Gains below this share of the objective are rounding.
ROUNDING = 1e-12


class Refiner:
    """A clustering under refinement: labels, sums and the objective, kept in step."""

    def __init__(self, rows: MemoryRows, nearest: Nearest, summary: Summary, penalty: float):
        self.rows = rows
        self.nearest = nearest
        self.summary = summary
        self.penalty = penalty
        self.rounding = ROUNDING * abs(rows.total_cost)
        self.n_passes = 0

    @property
    def n_clusters(self) -> int:
        return len(self.summary.weight)

    @property
    def objective(self) -> float:
        return self.rows.objective(self.summary, self.penalty)

    def settle_rows(self, *, local: bool = False) -> bool:
        """Move rows to their nearest center and centers to their mean; tell if a label changed."""
        self.n_passes += 1
        self.nearest.assign(self.rows.means(self.summary), local=local)
        self.summary = self.nearest.summarise(self.summary)
        return self.nearest.n_changed > 0

    def split(self, price: float | None = None) -> int:
        """Split clusters that gain more than the price (None: the penalty); return how many."""
        price = self.penalty if price is None else price
        halves = halve(self.rows, self.nearest.labels, self.nearest.upper, self.summary, price)
        pays = halves.gain > price + self.rounding
        n_new = int(pays.sum())
        if n_new:
            k, split = self.n_clusters, halves.cluster[pays]
            far_label = np.arange(k, dtype=np.int32)
            far_label[split] = k + np.arange(n_new)
            labels = np.where(halves.side, far_label[self.nearest.labels], self.nearest.labels)
            weight, total = (part.copy() for part in self.summary)
            weight[split], total[split] = halves.near.weight[pays], halves.near.total[pays]
            weight = np.append(weight, halves.far.weight[pays])
            total = np.vstack([total, halves.far.total[pays]])
            self._adopt(labels, Summary(weight, total), np.append(np.arange(k), split))
        return n_new

    def merge(self) -> int:
        """Merge pairs of clusters for as long as that pays; return how many."""
        n_merged = 0
        while self.n_clusters > 1:
            limit = self.penalty - self.rounding
            pairs = profitable_merges(self.rows, self.summary, limit)
            if not len(pairs):
                break
            kept, gone = pairs.T
            weight, total = (part.copy() for part in self.summary)
            weight[kept] += weight[gone]
            total[kept] += total[gone]
            stays = np.ones(self.n_clusters, dtype=bool)
            stays[gone] = False
            new_label = np.cumsum(stays, dtype=np.int32) - 1
            new_label[gone] = new_label[kept]
            labels = new_label[self.nearest.labels]
            self._adopt(labels, Summary(weight[stays], total[stays]), np.flatnonzero(stays))
            n_merged += len(pairs)
        return n_merged

    def venture(self, price: float, enough: int, *, local: bool) -> bool:
        """Split clusters below the penalty's worth, settle, merge; keep what is better.

        This finds what no single split or merge does: a split that pays once the rows around it
        have settled, a center to be taken from one place and needed in another.
        """
        before, labels, summary = self.objective, self.nearest.labels.copy(), self.summary
        while self.n_clusters < enough and self.split(price):
            self.settle_rows(local=local)
        self.settle_rows(local=local)
        self.merge()
        for _ in range(VENTURE_PASSES):
            if not self.settle_rows(local=local):
                break
        if self.objective < before - self.rounding:
            return True
        self.nearest.restart(labels, self.rows.means(summary))
        self.nearest.assign(self.nearest.centers, local=local)
        self.summary = self.nearest.summarise(summary)
        return False

    def deep(self) -> int:
        """Return how many clusters the deepest venture makes, within the room of the table."""
        many = max(DEEP_FACTOR * self.n_clusters, min(DEEP_CLUSTERS, self.rows.n_rows // 4))
        room = self.rows.n_bytes // (8 * self.rows.n_features)
        return min(many, max(2 * self.n_clusters, room))

    def move_rows(self) -> int:
        """Move single rows, the most profitable ones first; return how many."""
        ids, target, gain = self._promising_rows()
        order = np.argsort(-gain, kind="stable")[:MOVES_AT_ONCE]
        energy = self.rows.divergence.energy
        labels = self.nearest.labels.copy()
        weight, total = list(self.summary.weight), list(self.summary.total)
        ancestor = list(range(self.n_clusters))
        points = self.rows.take(ids[order]) - self.rows.origin
        n_moved = 0
        for i, to, point in zip(ids[order], target[order], points, strict=True):
            w, a = self.rows.weight[i], labels[i]
            left = (weight[a] - w, total[a] - w * point)
            if left[0] <= 0:
                continue
            opens = to < 0
            joined = (w, w * point) if opens else (weight[to] + w, total[to] + w * point)
            before = [(weight[a], total[a])] + ([] if opens else [(weight[to], total[to])])
            change = self.penalty if opens else 0.0
            change += _energies(energy, [left, joined]) - _energies(energy, before)
            if not change < -self.rounding:
                continue
            if opens:
                to = len(weight)
                weight.append(0.0)
                total.append(np.zeros_like(point))
                ancestor.append(ancestor[a])
            (weight[a], total[a]), (weight[to], total[to]) = left, joined
            labels[i] = to
            n_moved += 1
        if n_moved:
            self._adopt(labels, Summary(np.array(weight), np.array(total)), np.array(ancestor))
        return n_moved

    def finish(self) -> float:
        """Leave every row with the nearest of the final centers, and return the objective there."""
        self.settle_rows()
        return self.rows.objective(self.summary, self.penalty, self.nearest.centers)

    def _adopt(self, labels: np.ndarray, summary: Summary, ancestor: np.ndarray) -> None:
        self.nearest.adopt(labels, self.rows.means(summary), ancestor)
        self.summary = summary

    def _promising_rows(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return rows that may gain by moving, where to (-1: their own cluster), and how much."""
        rows, nearest = self.rows, self.nearest
        weight = self.summary.weight
        lightest = weight.min()
        price = self.penalty * rows.divergence.scale
        products = Products(rows, nearest.centers, sketch=False)
        unit = products.unit**2

        def look(start, stop):
            own, w = weight[nearest.labels[start:stop]], rows.weight[start:stop]
            movable = own > w * (1 + 1e-9)
            given_back = np.divide(own, own - w, out=np.zeros(stop - start), where=movable)
            given_back = given_back * nearest.upper[start:stop].astype(np.float64) ** 2
            least = nearest.lower[start:stop].astype(np.float64) ** 2 * lightest / (lightest + w)
            ids = start + np.flatnonzero(
                movable & ((given_back > least) | (w * given_back > price))
            )
            score, norm, _ = products.scores(ids)
            target, gain = np.empty(len(ids), dtype=np.int64), np.empty(len(ids))
            pick_moves(ids, rows.weight, weight, nearest.labels, score, norm, unit, target, gain)
            opening = given_back[ids - start] * rows.weight[ids] - price
            opens = opening > gain
            target[opens] = -1
            gain = np.maximum(gain, opening)
            return ids[gain > 0], target[gain > 0], gain[gain > 0]

        step = min(max(LEAST_TILE_ROWS, TILE_VALUES // self.n_clusters), rows.block_size)
        parts = [(at, min(at + step, rows.n_rows)) for at in range(0, rows.n_rows, step)]
        found = rows.each(look, parts)
        ids, target, gain = (np.concatenate(part) for part in zip(*found, strict=True))
        return ids, target, gain


def _energies(energy, clusters) -> float:
    weight, total = zip(*clusters, strict=True)
    return float(energy(np.array(weight), np.array(total)).sum())


def refine(
    rows: MemoryRows,
    nearest: Nearest,
    summary: Summary,
    penalty: float,
    *,
    tol: float,
    max_iter: int,
    on_pass: Callable[[float, int], None] = lambda objective, n_clusters: None,
) -> Clustering:
    """Take moves until none lowers the objective by more than ``tol`` times itself."""
    refiner = Refiner(rows, nearest, summary, penalty)
    history: list[float] = []

    def note(objective: float) -> None:
        history.append(objective)
        on_pass(objective, refiner.n_clusters)

    note(refiner.objective)
    converged = False
    while not converged and refiner.n_passes < max_iter:
        start = history[-1]
        little = tol * abs(start) + refiner.rounding * (tol > 0)
        # Rows of very many clusters look around their own cluster only; the last pass looks
        # everywhere.
        local = tol > 0 and refiner.n_clusters > MANY_CLUSTERS
        # While clusters still come in numbers it is too early to merge, or to settle rows to the
        # last one.
        if refiner.split() > GROWING * refiner.n_clusters:
            refiner.settle_rows(local=local)
            refiner.settle_rows(local=local)
            note(refiner.objective)
            continue
        refiner.merge()
        changed = True
        while changed and refiner.n_passes < max_iter:
            changed = refiner.settle_rows(local=local)
            note(refiner.objective)
            changed = changed and history[-2] - history[-1] > little
        if start - history[-1] > little:
            continue
        found = not local and refiner.move_rows() > 0
        found = found or refiner.venture(BOLD * penalty, refiner.n_clusters + 1, local=local)
        if not found and not local:
            found = refiner.venture(0.0, refiner.deep(), local=local)
        note(refiner.objective)
        converged = not found or start - history[-1] <= little
    note(refiner.finish())
    return Clustering(
        nearest.labels,
        nearest.centers,
        refiner.summary,
        history[-1],
        history,
        1 + refiner.n_passes,
        converged,
        nearest.n_computed / nearest.n_possible,
    )
