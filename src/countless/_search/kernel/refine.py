"""The moves of local search in the feature space of a kernel, by inner products alone.

Merges, splits by 2-means, moves of groups of rows and of single rows. If a move makes a group use
one cluster more or less, the local penalty is added or subtracted.
`countless._search.local_search` has the schedule.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from countless._compat import OnPass, ignore_pass
from countless._search.kernel.clusters import KernelClustering, KernelClusters
from countless._search.kernel.matrix import TILES
from countless._search.local_search import SCHEDULE, LocalSearch, OverSplit, over_splits
from countless.kernels.gram import exchange_changes, exchange_rows

# Least weight of a half, as a share of its cluster's: less may be rounding of a difference.
LEAST_SHARE = 1e-9
# Further steps of power iteration in a flat kernel.
FLAT_STEPS = 10


class Halves(NamedTuple):
    """The result of splitting some clusters."""

    cluster: np.ndarray  # (m,) the clusters
    gain: np.ndarray  # (m,) decrease of the within-cluster cost, without penalties
    far: np.ndarray  # (n_rows,) bool, True in the second half, which gets a new label


def halve(clusters: KernelClusters, least: float) -> Halves:
    """Split clusters that cost more than ``least``, by 2-means along the principal direction.

    A direction is a weighted sum of rows, and projections on it need the kernel within clusters
    only: for k clusters of equal size one k-th of the kernel is read.
    """
    table, labels = clusters.table, clusters.labels
    k, weight = clusters.n_clusters, clusters.table.weight
    distance = clusters.distances()
    tried = np.bincount(labels, weight * distance, minlength=k) > least
    inside = tried[labels] & (weight > 0)
    if not tried.any():
        return Halves(np.empty(0, dtype=np.intp), np.empty(0), inside)

    def within(coefficient: np.ndarray) -> np.ndarray:
        return table.within(labels, np.where(inside, coefficient, 0.0))

    def by_cluster(values: np.ndarray) -> np.ndarray:
        return np.bincount(labels[inside], values[inside], minlength=k)

    def about_mean(values: np.ndarray) -> np.ndarray:
        return values - (by_cluster(weight * values) / clusters.weight)[labels]

    # Start from the direction of the farthest row; a step of power iteration turns it towards the
    # first principal direction.
    everyone = np.arange(table.n_rows)
    own = clusters.sums[labels, everyone]
    farthest = _farthest(labels, inside, distance, k)
    along = about_mean(table.kernel[farthest[labels], everyone] - own / clusters.weight[labels])
    along = about_mean(within(weight * along))
    if table.is_flat:
        # More steps, on the kernel without its mean eigenvalue, which hides the direction.
        size = np.maximum(by_cluster(np.ones(table.n_rows)), 2)
        mean = np.bincount(labels, weight * distance, minlength=k) / (size - 1)
        for _ in range(FLAT_STEPS):
            length = np.sqrt(by_cluster(weight * along**2))
            along /= np.where(length > 0, length, 1.0)[labels]
            along = about_mean(within(weight * along)) - mean[labels] * along
    far = inside & (along > 0)
    shared = within(weight * far)  # each row's kernel sum with the second half of its cluster
    for last in (False,) * SCHEDULE.halving_passes + (True,):
        far_weight, far_square = by_cluster(weight * far), by_cluster(weight * far * shared)
        near_weight = clusters.weight - far_weight
        near_square = clusters.square - 2 * by_cluster(weight * far * own) + far_square
        proper = np.minimum(near_weight, far_weight) > LEAST_SHARE * clusters.weight
        # Empty halves get dummy weights, so that no division by zero occurs.
        near_weight, far_weight = (np.where(proper, w, 1.0) for w in (near_weight, far_weight))
        if last:
            break
        near_length, far_length = near_square / near_weight**2, far_square / far_weight**2
        to_near = near_length[labels] - 2 * (own - shared) / near_weight[labels]
        to_far = far_length[labels] - 2 * shared / far_weight[labels]
        before, far = far, inside & proper[labels] & (to_near > to_far)
        shared += within(weight * (far.astype(np.float64) - before))
    gain = near_square / near_weight + far_square / far_weight - clusters.square / clusters.weight
    kept = tried & proper
    return Halves(np.flatnonzero(kept), gain[kept], far & kept[labels])


def _farthest(labels: np.ndarray, inside: np.ndarray, distance: np.ndarray, k: int) -> np.ndarray:
    """Return the first of the farthest rows of each cluster; 0 for clusters not tried."""
    ids = np.flatnonzero(inside)
    ids = ids[np.lexsort((-distance[ids], labels[ids]))]
    found, first = np.unique(labels[ids], return_index=True)
    farthest = np.zeros(k, dtype=np.int64)
    farthest[found] = ids[first]
    return farthest


class MovableClusters(KernelClusters):
    """A clustering with the moves of local search."""

    is_large = False
    n_passes = 0

    @property
    def rounding(self) -> float:
        return self.table.rounding

    def reassign(self, share: float = 1.0) -> bool:
        self.n_passes += 1
        return self.one_pass() or (self.table.is_flat and self.move_rows() > 0)

    def split(self, share: float = 1.0) -> int:
        """Split clusters that gain more than a share of the added penalties; return how many."""
        prices, table = self.prices, self.table
        halves = halve(self, share * prices.cluster)
        k = self.n_clusters
        price = np.full(len(halves.cluster), prices.cluster)
        if prices.local and len(price):
            far = halves.far
            far_count = np.bincount(
                table.group[far] * k + self.labels[far], minlength=table.n_groups * k
            ).reshape(table.n_groups, k)
            in_both = (far_count > 0) & (self.count > far_count)
            price += prices.local * in_both.sum(axis=0)[halves.cluster]
        pays = halves.gain > share * price + table.rounding
        if pays.any():
            chosen = np.zeros(k, dtype=bool)
            chosen[halves.cluster[pays]] = True
            self.detach(halves.far & chosen[self.labels], np.flatnonzero(chosen))
        return int(pays.sum())

    def merge(self) -> int:
        """Merge the cheapest pair of clusters while that lowers the objective; return how many."""
        prices, k = self.prices, self.n_clusters
        products, weight = self.products(), self.weight.copy()
        uses = (self.count > 0).astype(np.float64)
        label = np.arange(k)

        def changes(a):
            """Return the change of the objective by merging cluster a with each other."""
            square = np.diagonal(products)
            joined = (square[a] + square + 2 * products[a]) / (weight[a] + weight)
            energy = square[a] / weight[a] + square / weight - joined
            return energy - prices.cluster - prices.local * (uses[:, a] @ uses)

        alive = np.ones(k, dtype=bool)
        change = np.stack([changes(a) for a in range(k)])
        np.fill_diagonal(change, np.inf)
        n_merged = 0
        while n_merged < k - 1:
            a, b = sorted(np.unravel_index(change.argmin(), change.shape))
            if not change[a, b] < -self.table.rounding:
                break
            products[a] += products[b]
            products[:, a] += products[:, b]
            weight[a] += weight[b]
            uses[:, a] = np.maximum(uses[:, a], uses[:, b])
            label[label == b] = a
            alive[b] = False
            change[a] = change[:, a] = np.where(alive, changes(a), np.inf)
            change[a, a] = np.inf
            change[b] = change[:, b] = np.inf
            n_merged += 1
        if n_merged:
            self.join((np.cumsum(alive) - 1)[label])
        return n_merged

    def move_rows(self) -> int:
        """Make Hartigan moves of single rows, largest gains first, or open singletons; return n."""
        table, prices = self.table, self.prices
        changes = np.zeros(table.n_rows)
        state = (self.labels, self.sums, self.weight, self.square, self.count)

        def look(start, stop):
            exchange_changes(
                table.diagonal,
                table.weight,
                table.group,
                prices.local,
                *state,
                start,
                stop,
                changes,
            )

        table.each_stretch(look, TILES.rows)
        opening = self.opening_changes()
        ids = np.flatnonzero(changes < -table.rounding)
        ids = ids[np.argsort(changes[ids], kind="stable")][: SCHEDULE.moves_at_once]
        if opening.min() < min(-table.rounding, changes.min()):
            best = np.flatnonzero(opening < -table.rounding)
            best = best[np.argsort(opening[best], kind="stable")]
            _, first = np.unique(self.labels[best], return_index=True)
            self.open(best[first])
            return len(first)
        n_moved = exchange_rows(
            table.kernel, ids, table.diagonal, table.weight, table.group, prices.local,
            table.rounding, *state,
        )  # fmt: skip
        if n_moved:
            self.recount()
        return n_moved

    def opening_changes(self) -> np.ndarray:
        """Return the change of the objective if each row became a singleton cluster."""
        table, prices, labels = self.table, self.prices, self.labels
        w, whole = table.weight, self.weight[labels]
        own = self.sums[labels, np.arange(table.n_rows)]
        movable = (w > 0) & (whole - w > 1e-9 * whole)
        left = np.where(movable, whole - w, 1.0)
        square = self.square[labels]
        change = square / whole - (square - 2 * w * own + w**2 * table.diagonal) / left
        change += prices.cluster - w * table.diagonal
        # No local penalty is added if the row was its group's only one in the cluster.
        change += prices.local * (self.count[table.group, labels] > 1)
        return np.where(movable, change, np.inf)

    def move_groups(self) -> int:
        """Move all rows that a group has in a cluster to another, or a new one; return how many.

        Largest gains first; each cluster takes part in at most one move, as source or target.
        """
        table, prices = self.table, self.prices
        k = self.n_clusters
        if table.n_groups == 1:
            return 0
        counted = table.weight > 0
        pairs, pair = np.unique(
            table.group[counted] * k + self.labels[counted], return_inverse=True
        )
        local = np.full(table.n_rows, -1)
        local[counted] = pair
        group, own = pairs // k, pairs % k
        weight = np.bincount(pair, table.weight[counted])
        # The pairs as separate clusters: their squared sums, and inner products with all self.
        square, products = self._pair_products(local, len(pairs))
        left = self.weight[own] - weight
        movable = left > 1e-9 * self.weight[own]
        left = np.where(movable, left, 1.0)
        energy = self.square / self.weight
        at = np.arange(len(pairs))
        leaving = energy[own] - (self.square[own] - 2 * products[at, own] + square) / left
        joined = self.square + 2 * products + square[:, None]
        joining = energy - joined / (self.weight + weight[:, None])
        joining -= prices.local * (self.count[group] > 0)
        joining[at, own] = np.inf
        opening = prices.cluster - square / weight
        change = np.column_stack([leaving[:, None] + joining, leaving + opening])
        change[~movable] = np.inf
        target = change.argmin(axis=1)
        best = change[at, target]
        labels, n_new, touched = self.labels.copy(), 0, set()
        for p in np.argsort(best, kind="stable"):
            if not best[p] < -table.rounding:
                break
            to = k + n_new if target[p] == k else int(target[p])
            if own[p] in touched or to in touched:
                continue
            touched |= {int(own[p]), to}
            labels[local == p] = to
            n_new += target[p] == k
        if touched:
            self.adopt(labels, k + n_new)
        return len(touched) // 2

    def _pair_products(self, local: np.ndarray, n_pairs: int):
        """Return the pairs' squared norms, and their inner products with the clusters."""
        table = self.table
        counted = local >= 0
        weight, place = table.weight[counted], local[counted]
        products = np.stack(
            [np.bincount(place, weight * part[counted], minlength=n_pairs) for part in self.sums],
            axis=1,
        )
        shared = table.within(local, np.where(counted, table.weight, 0.0))
        return np.bincount(place, weight * shared[counted], minlength=n_pairs), products

    def moves(self) -> tuple[Callable[[], int], ...]:
        return self.move_groups, self.move_rows

    def over_splits(self) -> list[OverSplit]:
        return over_splits(self.n_clusters, self.table.n_rows)

    def save(self) -> KernelClusters:
        return self.copy()

    def accept(self, saved: KernelClusters) -> None:
        """Do nothing: a copy takes no part in the search."""

    def restore(self, saved: KernelClusters) -> None:
        self.become(saved)


def refine(
    clusters: MovableClusters, *, tol: float, max_iter: int, on_pass: OnPass = ignore_pass
) -> KernelClustering:
    """Run the local search until no move lowers the objective by more than a share ``tol``."""
    search = LocalSearch(clusters, tol=tol, max_iter=max_iter, on_pass=on_pass)
    search.run()
    search.finish()
    return KernelClustering(clusters, search.history, 1 + clusters.n_passes, search.converged)
