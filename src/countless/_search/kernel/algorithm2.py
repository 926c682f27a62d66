"""Algorithm 2 of Kulis and Jordan, the hard Gaussian HDP, in the feature space of a kernel.

What the paper leaves open is decided as in `countless._search.groups.algorithm2`: on rows of a
table and their linear kernel both give the same labels.
"""

from __future__ import annotations

import numpy as np

from countless._compat import OnPass, ignore_pass
from countless._labels import number_by_appearance
from countless._search.kernel.clusters import KernelClustering, KernelClusters, KernelTable, Prices


class Locals:
    """Local clusters: the group and the global cluster of each, and the local cluster of a row."""

    def __init__(self, table: KernelTable):
        self.table = table
        self.labels = table.group.copy()
        self.group = np.arange(table.n_groups)
        self.cluster = np.zeros(table.n_groups, dtype=np.int64)

    def follow(self, labels: np.ndarray, n_clusters: int) -> None:
        """Step 4: rows join the first local cluster of their group at a global, or open one."""
        table = self.table
        first = np.full((table.n_groups, n_clusters), -1)
        pairs, place = np.unique(self.group * n_clusters + self.cluster, return_index=True)
        first.ravel()[pairs] = place
        opens = np.flatnonzero((first[table.group, labels] < 0) & (table.weight > 0))
        pairs, _ = number_by_appearance(table.group[opens] * n_clusters + labels[opens])
        group, cluster = np.divmod(pairs, n_clusters)
        first[group, cluster] = len(self.group) + np.arange(len(pairs))
        self.group, self.cluster = np.append(self.group, group), np.append(self.cluster, cluster)
        self.labels = first[table.group, labels]
        used = np.unique(self.labels[table.weight > 0])
        number = np.full(len(self.group) + 1, -1)  # the last is for rows of zero weight
        number[used] = np.arange(len(used))
        self.labels = number[self.labels]
        self.group, self.cluster = self.group[used], self.cluster[used]

    def choose(self, clusters: KernelClusters, labels: np.ndarray, price: float) -> int:
        """Step 5: local clusters join the nearest global, or open one; return how many there are.

        Means are fixed: those of the globals before step 4, of rows that opened one in step 4, and
        of local clusters that open one here.
        """
        table, n_local = self.table, len(self.group)
        counted = self.labels >= 0
        place, weight = self.labels[counted], table.weight[counted]

        def with_locals(sums: np.ndarray) -> np.ndarray:
            """Return the inner products of the local means with a sum of rows."""
            return np.bincount(place, weight * sums[counted], minlength=n_local) / local_weight

        local_weight = np.bincount(place, weight, minlength=n_local)
        shared = table.within(self.labels, np.where(counted, table.weight, 0.0))
        length = with_locals(shared) / local_weight
        # Squared distances of the local means from each global mean, minus their own squared norm.
        away = [
            clusters.offset[c] - 2 * with_locals(clusters.sums[c]) / clusters.weight[c]
            for c in range(clusters.n_clusters)
        ]
        for c in range(clusters.n_clusters, int(labels.max()) + 1):
            row = np.flatnonzero(counted & (labels == c))[0]
            away.append(table.diagonal[row] - 2 * with_locals(table.kernel[row]))
        for local in np.argsort(self.group, kind="stable"):
            distance = length[local] + np.array([to_mean[local] for to_mean in away])
            best = int(distance.argmin())
            if local_weight[local] * distance[best] > price:
                best = len(away)
                members = np.flatnonzero(self.labels == local)
                sums = np.zeros((1, table.n_rows))
                table.add(members, table.weight[members], np.zeros(len(members), int), sums)
                away.append(length[local] - 2 * with_locals(sums[0]) / local_weight[local])
            self.cluster[local] = best
        return len(away)

    def pass_over(self, clusters: KernelClusters) -> bool:
        """Make a pass of Algorithm 2; return if any row's local or global cluster changed."""
        counted = self.table.weight > 0
        before = self.labels, clusters.labels
        labels, n_clusters = clusters.visit(clusters.prices.local + clusters.prices.cluster)
        self.follow(labels, n_clusters)
        n_clusters = self.choose(clusters, labels, clusters.prices.cluster)
        labels = np.where(self.labels >= 0, self.cluster[self.labels], labels)
        clusters.adopt(labels.astype(np.int32), n_clusters)
        one_row = np.zeros(len(self.group), dtype=np.int64)
        one_row[self.labels[counted]] = np.flatnonzero(counted)
        self.cluster = clusters.labels[one_row].astype(np.int64)
        now = self.labels, clusters.labels
        return any((a[counted] != b[counted]).any() for a, b in zip(before, now, strict=True))


def kernel_algorithm2(
    table: KernelTable, prices: Prices, *, max_iter: int, on_pass: OnPass = ignore_pass
) -> tuple[KernelClustering, np.ndarray]:
    """Run Algorithm 2 until nothing changes; return the clustering and each row's local cluster.

    A row of zero weight whose global is used by no local cluster of its group has the label -1.
    """
    clusters = KernelClusters(table, prices, np.zeros(table.n_rows, dtype=np.int32))
    local = Locals(table)
    history: list[float] = []
    changed = True
    while changed and len(history) < max_iter:
        changed = local.pass_over(clusters)
        globals_price = prices.cluster * clusters.n_clusters
        history.append(clusters.cost + globals_price + prices.local * len(local.group))
        on_pass(history[-1], clusters.n_clusters)
    return KernelClustering(clusters, history, len(history), not changed), local.labels
