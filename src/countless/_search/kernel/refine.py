"""Local search on the objective in the feature space of a kernel, by moves of exact cost.

Merges, splits, moves of groups of rows and of single rows, and over-split and repair: the moves of
`countless._search.refine`, by inner products alone. If a move makes a group use one cluster
more or less, the local penalty is added or subtracted.
"""

from __future__ import annotations

import numpy as np

from countless._compat import OnPass, ignore_pass
from countless._search.kernel.clusters import STRETCH, KernelClustering, KernelClusters
from countless._search.kernel.split import halve
from countless._search.refine import (
    BOLD,
    DEEP_CLUSTERS,
    DEEP_FACTOR,
    GROWING,
    MOVES_AT_ONCE,
    VENTURE_PASSES,
)
from countless.kernels.gram import exchange_changes, exchange_rows


def split(clusters: KernelClusters, share: float = 1.0) -> int:
    """Split clusters that gain more than a share of the added penalties; return how many."""
    prices, table = clusters.prices, clusters.table
    halves = halve(clusters, share * prices.cluster)
    k = clusters.n_clusters
    price = np.full(len(halves.cluster), prices.cluster)
    if prices.local and len(price):
        far = halves.far
        far_count = np.bincount(
            table.group[far] * k + clusters.labels[far], minlength=table.n_groups * k
        ).reshape(table.n_groups, k)
        in_both = (far_count > 0) & (clusters.count > far_count)
        price += prices.local * in_both.sum(axis=0)[halves.cluster]
    pays = halves.gain > share * price + table.rounding
    if pays.any():
        chosen = np.zeros(k, dtype=bool)
        chosen[halves.cluster[pays]] = True
        clusters.detach(halves.far & chosen[clusters.labels], np.flatnonzero(chosen))
    return int(pays.sum())


def merge(clusters: KernelClusters) -> int:
    """Merge the cheapest pair of clusters while that lowers the objective; return how many."""
    prices, k = clusters.prices, clusters.n_clusters
    products, weight = clusters.products(), clusters.weight.copy()
    uses = (clusters.count > 0).astype(np.float64)
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
        if not change[a, b] < -clusters.table.rounding:
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
        clusters.join((np.cumsum(alive) - 1)[label])
    return n_merged


def move_rows(clusters: KernelClusters) -> int:
    """Make Hartigan moves of single rows, largest gains first, or open singletons; return n."""
    table, prices = clusters.table, clusters.prices
    changes = np.zeros(table.n_rows)
    state = (clusters.labels, clusters.sums, clusters.weight, clusters.square, clusters.count)

    def look(start, stop):
        exchange_changes(
            table.diagonal, table.weight, table.group, prices.local, *state, start, stop, changes
        )

    table.each_stretch(look, STRETCH)
    opening = _opening_changes(clusters)
    ids = np.flatnonzero(changes < -table.rounding)
    ids = ids[np.argsort(changes[ids], kind="stable")][:MOVES_AT_ONCE]
    if opening.min() < min(-table.rounding, changes.min()):
        best = np.flatnonzero(opening < -table.rounding)
        best = best[np.argsort(opening[best], kind="stable")]
        _, first = np.unique(clusters.labels[best], return_index=True)
        clusters.open(best[first])
        return len(first)
    n_moved = exchange_rows(
        table.kernel, ids, table.diagonal, table.weight, table.group, prices.local, table.rounding,
        *state,
    )  # fmt: skip
    if n_moved:
        clusters.recount()
    return n_moved


def _opening_changes(clusters: KernelClusters) -> np.ndarray:
    """Return the change of the objective if each row became a singleton cluster."""
    table, prices, labels = clusters.table, clusters.prices, clusters.labels
    w, whole = table.weight, clusters.weight[labels]
    own = clusters.sums[labels, np.arange(table.n_rows)]
    movable = (w > 0) & (whole - w > 1e-9 * whole)
    left = np.where(movable, whole - w, 1.0)
    square = clusters.square[labels]
    change = square / whole - (square - 2 * w * own + w**2 * table.diagonal) / left
    change += prices.cluster - w * table.diagonal
    # No local penalty is added if the row was its group's only one in the cluster.
    change += prices.local * (clusters.count[table.group, labels] > 1)
    return np.where(movable, change, np.inf)


def move_groups(clusters: KernelClusters) -> int:
    """Move all rows that a group has in a cluster to another, or a new one; return how many.

    Largest gains first; each cluster takes part in at most one move, as source or target.
    """
    table, prices = clusters.table, clusters.prices
    k = clusters.n_clusters
    if table.n_groups == 1:
        return 0
    counted = table.weight > 0
    pairs, pair = np.unique(
        table.group[counted] * k + clusters.labels[counted], return_inverse=True
    )
    local = np.full(table.n_rows, -1)
    local[counted] = pair
    group, own = pairs // k, pairs % k
    weight = np.bincount(pair, table.weight[counted])
    # The pairs as separate clusters: their squared sums, and inner products with all clusters.
    square, products = _pair_products(clusters, local, len(pairs))
    left = clusters.weight[own] - weight
    movable = left > 1e-9 * clusters.weight[own]
    left = np.where(movable, left, 1.0)
    energy = clusters.square / clusters.weight
    at = np.arange(len(pairs))
    leaving = energy[own] - (clusters.square[own] - 2 * products[at, own] + square) / left
    joined = clusters.square + 2 * products + square[:, None]
    joining = energy - joined / (clusters.weight + weight[:, None])
    joining -= prices.local * (clusters.count[group] > 0)
    joining[at, own] = np.inf
    opening = prices.cluster - square / weight
    change = np.column_stack([leaving[:, None] + joining, leaving + opening])
    change[~movable] = np.inf
    target = change.argmin(axis=1)
    best = change[at, target]
    labels, n_new, touched = clusters.labels.copy(), 0, set()
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
        clusters.adopt(labels, k + n_new)
    return len(touched) // 2


def _pair_products(clusters: KernelClusters, local: np.ndarray, n_pairs: int):
    """Return the squared norms of the pairs' sums, and inner products with the clusters' sums."""
    table = clusters.table
    counted = local >= 0
    weight, place = table.weight[counted], local[counted]
    products = np.stack(
        [np.bincount(place, weight * part[counted], minlength=n_pairs) for part in clusters.sums],
        axis=1,
    )
    shared = table.within(local, np.where(counted, table.weight, 0.0))
    return np.bincount(place, weight * shared[counted], minlength=n_pairs), products


def venture(clusters: KernelClusters, share: float, enough: int) -> bool:
    """Over-split and repair: split at a share of the penalties, reassign, merge.

    Accepted if the objective is lower, otherwise undone.
    """
    trial, n_before = clusters.copy(), 0
    # Stop if the number of clusters no longer grows, because reassignment empties new ones.
    while n_before < trial.n_clusters < enough:
        n_before = trial.n_clusters
        if split(trial, share):
            trial.settle()
    trial.settle()
    merge(trial)
    for _ in range(VENTURE_PASSES):
        if not trial.settle():
            break
    if trial.objective < clusters.objective - clusters.table.rounding:
        clusters.become(trial)
        return True
    return False


def refine(
    clusters: KernelClusters, *, tol: float, max_iter: int, on_pass: OnPass = ignore_pass
) -> KernelClustering:
    """Run the local search until no move lowers the objective by more than a share ``tol``."""
    history: list[float] = []
    n_passes = 0

    def note() -> None:
        history.append(clusters.objective)
        on_pass(history[-1], clusters.n_clusters)

    def settle(little: float) -> None:
        """Make assignment passes until one gains no more than ``little``."""
        nonlocal n_passes
        changed = True
        while changed and n_passes < max_iter:
            changed = clusters.settle()
            n_passes += 1
            note()
            changed = changed and history[-2] - history[-1] > little

    note()
    converged = False
    while not converged and n_passes < max_iter:
        start = history[-1]
        little = tol * abs(start)
        # While many clusters are still being split, merging or iterating to convergence is wasted.
        if split(clusters) > GROWING * clusters.n_clusters:
            clusters.settle()
            clusters.settle()
            n_passes += 2
            note()
            continue
        merge(clusters)
        settle(little)
        if start - history[-1] > little:
            continue
        found = move_groups(clusters) > 0
        found = move_rows(clusters) > 0 or found
        found = found or venture(clusters, BOLD, clusters.n_clusters + 1)
        if not found:
            n_deep = min(DEEP_CLUSTERS, clusters.table.n_rows // 4)
            found = venture(clusters, 0.0, max(DEEP_FACTOR * clusters.n_clusters, n_deep))
        note()
        converged = not found or start - history[-1] <= little
    settle(-np.inf)
    return KernelClustering(clusters, history, 1 + n_passes, converged)
