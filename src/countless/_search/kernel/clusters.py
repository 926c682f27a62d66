"""A clustering in the feature space of a kernel, and the passes of Algorithm 1 and step 4 of 2.

Means are never computed explicitly. The state is every cluster's sum of kernel rows (see
`countless.kernels.gram`); a pass reads the kernel rows of points that changed their cluster, and so
costs at most one pass over the kernel. The objective is

``sum_i w_i ||psi(x_i) - mean of its cluster||^2 + local * n_local + global * n_clusters``

where ``n_local`` counts the pairs of a group and a cluster that it uses. DP-means has one group and
no local penalty.
"""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np

from countless._search.kernel.matrix import TILES
from countless._search.local_search import SCHEDULE
from countless._threads import Each, steps
from countless.kernels.gram import add_rows, add_within, visit_rows
from countless.kernels.hdp import choose_globals

# From this many dimensions for each row on, a kernel is flat: that of a graph has about one, a
# linear kernel or one of a few length scales hardly any.
FLAT_SHARE = 0.5


class Prices(NamedTuple):
    """The penalty of a cluster, and that of a group for each cluster that it uses."""

    cluster: float
    local: float = 0.0


class KernelTable:
    """A kernel matrix, the weights and groups of its rows, and a thread pool."""

    def __init__(self, kernel: np.ndarray, weight: np.ndarray, group: np.ndarray, each: Each):
        self.kernel = kernel
        self.diagonal = np.ascontiguousarray(np.diagonal(kernel), dtype=np.float64)
        self.weight = weight
        self.group = group
        self.n_rows = len(kernel)
        self.n_groups = int(group.max()) + 1
        self.total = float(weight @ self.diagonal)
        self.rounding = SCHEDULE.rounding * float(weight @ np.abs(self.diagonal))
        self._each = each

    def each_stretch(self, function, size: int) -> list:
        """Call ``function(start, stop)`` for ranges of rows or columns, on the threads."""
        return self._each(function, steps(self.n_rows, size))

    @cached_property
    def is_flat(self) -> bool:
        """Whether rows lie in about as many dimensions as there are rows.

        Then a row is near the mean of its cluster mainly because it is a part of it, so that passes
        hardly move any, and all directions of a cluster are about as long as its first. The
        dimension is the participation ratio of the eigenvalues of the weighted, centred kernel.
        """
        if not self.total > 0:
            return False
        root = np.sqrt(self.weight)
        s = root / np.linalg.norm(root)

        def look(start, stop):
            # In units of the trace, so that squares do not overflow.
            block = self.kernel[start:stop] / self.total * np.outer(root[start:stop], root)
            return np.vdot(block, block), block @ s

        square, products = zip(*self.each_stretch(look, TILES.rows), strict=True)
        along = np.concatenate(products)
        offset = float(s @ along)
        scatter = 1.0 - offset
        energy = float(sum(square)) - 2 * float(along @ along) + offset**2
        return bool(scatter**2 > FLAT_SHARE * np.count_nonzero(self.weight) * energy > 0)

    def add(self, ids, coefficient, slot, sums: np.ndarray) -> None:
        """Add some rows of the kernel, times a coefficient, to sums."""
        order = np.argsort(slot, kind="stable")
        ids, coefficient, slot = ids[order], coefficient[order], slot[order]
        self.each_stretch(
            lambda a, b: add_rows(self.kernel, ids, coefficient, slot, a, b, sums), TILES.columns
        )

    def within(self, labels: np.ndarray, coefficient: np.ndarray) -> np.ndarray:
        """Return each row's kernel with the rows of its label, summed with coefficients."""
        listed = np.flatnonzero(coefficient != 0)
        listed = listed[np.argsort(labels[listed], kind="stable")]
        first = np.searchsorted(labels[listed], np.arange(labels.max() + 2))
        totals = np.zeros(self.n_rows)

        def add(start, stop):
            add_within(self.kernel, labels, listed, first, coefficient, start, stop, totals)

        self.each_stretch(add, TILES.rows)
        return totals


class KernelClusters:
    """Labels and the sums of their clusters, kept consistent."""

    def __init__(self, table: KernelTable, prices: Prices, labels: np.ndarray):
        self.table = table
        self.prices = prices
        self.labels = labels.astype(np.int32)
        self.sums = np.zeros((int(labels.max()) + 1, table.n_rows))
        table.add(np.arange(table.n_rows), table.weight, self.labels, self.sums)
        self.recount()

    def copy(self) -> KernelClusters:
        """Return a copy on which a move can be tried."""
        other = object.__new__(KernelClusters)
        other.table, other.prices = self.table, self.prices
        for name in ("labels", "sums", "weight", "square", "count"):
            setattr(other, name, getattr(self, name).copy())
        return other

    def become(self, other: KernelClusters) -> None:
        """Replace this clustering by another of the same rows."""
        self.__dict__.update(other.__dict__)

    @property
    def n_clusters(self) -> int:
        return len(self.sums)

    @property
    def n_local(self) -> int:
        """The number of clusters used by a group, summed over groups."""
        return int(np.count_nonzero(self.count))

    @property
    def cost(self) -> float:
        """The cost of all rows at the means of their clusters."""
        return self.table.total - float((self.square / self.weight).sum())

    @property
    def objective(self) -> float:
        price = self.prices.cluster * self.n_clusters + self.prices.local * self.n_local
        return self.cost + price

    @property
    def offset(self) -> np.ndarray:
        """The squared norm of each mean."""
        return self.square / self.weight**2

    def distances(self) -> np.ndarray:
        """Return the squared distance of each row from the mean of its cluster."""
        own = self.sums[self.labels, np.arange(self.table.n_rows)]
        distance = self.table.diagonal - 2 * own / self.weight[self.labels]
        return np.maximum(distance + self.offset[self.labels], 0.0)

    def products(self) -> np.ndarray:
        """Return the inner products of the clusters' weighted sums."""
        value = np.zeros((self.n_clusters, self.n_clusters))
        for c in range(self.n_clusters):
            value[c] = np.bincount(
                self.labels, self.table.weight * self.sums[c], minlength=self.n_clusters
            )
        return (value + value.T) / 2

    def visit(self, price: float = np.inf) -> tuple[np.ndarray, int]:
        """Visit the rows in order; return their new labels and how many clusters there are.

        Means are fixed; a row whose cheapest cluster costs more than the price opens one.
        """
        table = self.table
        labels = np.empty(table.n_rows, dtype=np.int32)
        opened = np.empty(table.n_rows, dtype=np.int64)
        used, row, n_opened = self.count > 0, 0, 0
        while row < table.n_rows:
            row, n_opened = visit_rows(
                table.kernel, table.diagonal, table.weight, table.group, self.sums, self.weight,
                self.offset, self.prices.local, price, row, n_opened, used, opened, labels,
            )  # fmt: skip
            if row < table.n_rows:
                more = np.zeros((table.n_groups, max(TILES.more_clusters, n_opened)), dtype=bool)
                used = np.hstack([used, more])
        return labels, self.n_clusters + n_opened

    def choose(self) -> np.ndarray:
        """Return a label for each row by choosing jointly the clusters that each group uses.

        Means are fixed; a group adds, drops or swaps clusters for all its rows at once (facility
        location by local search).
        """
        table = self.table
        away = self.offset[:, None] - 2.0 * self.sums / self.weight[:, None] + table.diagonal
        labels = away.argmin(axis=0).astype(np.int32)  # for rows of zero weight
        counted = table.weight > 0
        cost = (away[:, counted] * table.weight[counted]).T
        group, used = table.group[counted], self.count > 0
        labels[counted] = choose_for_groups(
            cost, group, np.zeros_like(used), self.prices.local, used, table.rounding
        )
        return labels

    def adopt(self, labels: np.ndarray, n_clusters: int) -> bool:
        """Set labels, old clusters first, and drop empty ones; return if anything changed."""
        table = self.table
        moved = np.flatnonzero((labels != self.labels) & (table.weight > 0))
        if 2 * len(moved) >= table.n_rows:
            self.sums = np.zeros((n_clusters, table.n_rows))
            table.add(np.arange(table.n_rows), table.weight, labels, self.sums)
        elif len(moved):
            if n_clusters > self.n_clusters:
                more = np.zeros((n_clusters - self.n_clusters, table.n_rows))
                self.sums = np.vstack([self.sums, more])
            w = table.weight[moved]
            slots = np.concatenate([self.labels[moved], labels[moved]])
            table.add(np.tile(moved, 2), np.concatenate([-w, w]), slots, self.sums)
        self.labels = labels
        self.recount()
        return len(moved) > 0

    def one_pass(self, price: float = np.inf) -> bool:
        """Make a pass, undone if it raises the objective; return if anything changed.

        It cannot raise it if the kernel is positive semi-definite.
        """
        before, labels = self.objective, self.labels
        if price == np.inf and self.prices.local and self.table.n_groups > 1:
            trial, n_clusters = self.choose(), self.n_clusters
        else:
            trial, n_clusters = self.visit(price)
        if n_clusters == self.n_clusters and np.array_equal(trial, labels):
            return False
        back = self.copy()
        changed = self.adopt(trial, n_clusters)
        if self.objective > before + self.table.rounding:
            self.become(back)
            return False
        return changed

    def open(self, ids: np.ndarray) -> None:
        """Make each of some rows, all of different clusters, a singleton cluster."""
        labels = self.labels.copy()
        labels[ids] = self.n_clusters + np.arange(len(ids))
        self.adopt(labels, self.n_clusters + len(ids))

    def detach(self, far: np.ndarray, clusters: np.ndarray) -> None:
        """Split the marked rows off some clusters, into a new cluster each."""
        k, ids = self.n_clusters, np.flatnonzero(far)
        new_label = np.full(k, -1, dtype=np.int32)
        new_label[clusters] = np.arange(len(clusters))
        slot = new_label[self.labels[ids]]
        new_sums = np.zeros((len(clusters), self.table.n_rows))
        self.table.add(ids, self.table.weight[ids], slot, new_sums)
        self.sums[clusters] -= new_sums
        self.sums = np.vstack([self.sums, new_sums])
        self.labels = self.labels.copy()
        self.labels[ids] = k + slot
        self.recount()

    def join(self, new_label: np.ndarray) -> None:
        """Relabel the clusters; those with the same new label are merged."""
        sums = np.zeros((int(new_label.max()) + 1, self.table.n_rows))
        for label, part in zip(new_label, self.sums, strict=True):
            sums[label] += part
        self.sums = sums
        self.labels = new_label.astype(np.int32)[self.labels]
        self.recount()

    def recount(self) -> None:
        """Recompute statistics from labels and sums; drop clusters of zero weight."""
        table, k = self.table, len(self.sums)
        weight = np.bincount(self.labels, table.weight, minlength=k)
        if not weight.all():
            kept = weight > 0
            new_label = np.cumsum(kept, dtype=np.int32) - 1
            # Rows of zero weight get an arbitrary label until the next visit.
            self.labels = np.where(kept, new_label, 0).astype(np.int32)[self.labels]
            self.sums, weight, k = self.sums[kept], weight[kept], int(kept.sum())
        own = self.sums[self.labels, np.arange(table.n_rows)]
        self.weight = weight
        self.square = np.bincount(self.labels, table.weight * own, minlength=k)
        counted = table.weight > 0
        pair = table.group[counted] * k + self.labels[counted]
        self.count = np.bincount(pair, minlength=table.n_groups * k).reshape(table.n_groups, k)


def choose_for_groups(
    cost: np.ndarray,
    group: np.ndarray,
    paid: np.ndarray,
    price: float,
    used: np.ndarray,
    rounding: float,
) -> np.ndarray:
    """Return the cluster of each row, where groups pay a price for each cluster they use.

    Parameters
    ----------
    cost : ndarray of shape (n_rows, n_clusters)
        The cost of each row at each cluster.
    group : ndarray of int of shape (n_rows,)
    paid : ndarray of bool of shape (n_groups, n_clusters)
        Clusters that a group uses without paying.
    price : float
    used : ndarray of bool of shape (n_groups, n_clusters)
        Clusters that a group uses initially.
    rounding : float
        Gains below this are ignored.
    """
    order = np.argsort(group, kind="stable")
    starts = np.searchsorted(group[order], np.arange(len(used) + 1))
    labels = np.empty(len(cost), dtype=np.int32)
    # Groups without rows are left out.
    has_rows = np.flatnonzero(np.diff(starts))
    starts = np.append(starts[has_rows], len(cost))
    choose_globals(cost[order], starts, paid[has_rows], price, rounding, used[has_rows], labels)
    chosen = np.empty_like(labels)
    chosen[order] = labels
    return chosen


class KernelClustering(NamedTuple):
    """The result of a fit."""

    clusters: KernelClusters
    history: list[float]  # the objective after each pass
    n_iter: int
    converged: bool
