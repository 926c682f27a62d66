"""Split-merge moves: Metropolis-Hastings proposals that leave the posterior invariant.

A split of the cluster of rows i and j allocates its other rows to two pieces that start from i and
j, sequentially in random order, each row by its conditional probability given the rows allocated
before it [2]_. Usually this allocation is the proposal; it mixes well between overlapping clusters.
In a tenth of the proposals without early rejection it is the launch state of restricted Gibbs
scans, the last of which is the proposal [1]_; these separate clusters that lie apart. For a merge
the proposal probability of the reverse move is that of splitting into the present two clusters.

How the pair of rows is chosen is specific to this library. With probability 1/2 a split is
proposed: i is any row, and j any other row of its cluster. Otherwise a merge is proposed: the
cluster of j is drawn with probability proportional to the square root of the factor by which
joining the two clusters multiplies the posterior, so that improbable merges are seldom proposed.
The proposal probability of the reverse split is at most 1; this bound on the acceptance ratio
rejects most merges before any row is visited.

Most proposals are rejected, and usually the first few rows show it. So all but some proposals are
subject to early rejection. After a first part of the rows, twice as many, and so on, the partial
acceptance ratio is computed: the density of these rows as two clusters over that as one, and over
the probability of their allocation. A split continues with the probability with which it would be
accepted given these rows alone (or e times that), and a merge with that of the inverse ratio. The
continuation probabilities are part of the proposal and enter the acceptance ratio in both
directions, so that the move is exact. Each split is accepted about as often as without early
rejection, at a small part of the cost.

References
----------
.. [1] S. Jain and R. M. Neal, "A split-merge Markov chain Monte Carlo procedure for the Dirichlet
   process mixture model", JCGS 13, 2004.
.. [2] D. B. Dahl, "Sequentially-allocated merge-split sampler for conjugate and nonconjugate
   Dirichlet process mixture models", 2005.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from countless._mcmc.gibbs import NO_TARGET, NOTHING, Partition, Target, drop_empty_clusters
from countless.kernels import split_merge as kernels
from countless.kernels.gibbs import sweep


@dataclass(frozen=True)
class Tuning:
    """Constants of the moves; they change how fast a chain mixes, but not its posterior.

    Proposals are more where sufficient statistics have few entries, as each then costs little.
    Clusters with many parameters look improbable until they have enough rows, so that there more
    proposals are made without early rejection. ``benchmarks/mixture.py`` chose the values.
    """

    fewest_proposals: int = 12  # after each sweep
    most_proposals: int = 90
    entries_per_sweep: int = 540  # of statistics, over all proposals of a sweep
    entries_per_full: int = 8  # one more proposal without early rejection for each of these
    most_full: int = 8  # proposals without early rejection, at most
    launch_share: float = 0.1  # of these, those that start with Gibbs scans (Jain and Neal)
    tested_entries: int = 1  # rows before the first early-rejection test, by entry of statistics
    tested_rows: int = 16  # and at least this many
    warm_up_sweeps: int = 20  # at most as many as are discarded
    warm_up_proposals: int = 8  # of the moves of `warm_up` in each of them

    def n_proposals(self, width: int) -> int:
        """Return the number of proposals after each sweep."""
        return max(self.fewest_proposals, min(self.most_proposals, self.entries_per_sweep // width))

    def n_full(self, width: int) -> int:
        """Return how many of them are made without early rejection."""
        return min(self.most_full, 1 + width // self.entries_per_full)


TUNING = Tuning()


def split_and_merge(
    partition: Partition, target: Target, n_proposals: int, n_full: int | None = None
) -> Partition:
    """Make ``n_proposals`` split or merge proposals, and return the resulting partition.

    The first ``n_full`` of them, by default all, are made without early rejection.
    """
    n_full = n_proposals if n_full is None else n_full
    return _propose(partition, target, n_proposals, n_full, False)


def warm_up(partition: Partition, target: Target, n_proposals: int) -> Partition:
    """Move a chain towards high density during burn-in.

    These moves do not leave the posterior invariant, so that no draw may be kept before they end.

    - Merges are accepted more easily: the probability of the reverse split is taken from a scan
      that starts at the two clusters themselves. Two halves of one cluster would otherwise remain
      separate for long, as there are many ways to split it.
    - The rows of two clusters are allocated again, and the result is taken if its density is
      higher. Between overlapping clusters a misplaced boundary moves little in each sweep.
    - Last, one cluster is dissolved; see `_dissolve`.
    """
    return _dissolve(_propose(partition, target, n_proposals, n_proposals, True), target)


def _dissolve(partition: Partition, target: Target) -> Partition:
    """Assign the rows of a random cluster to the other clusters, if that is more probable.

    This removes a cluster between two overlapping ones that took rows from both, which cannot be
    merged with either. A single partition into fewer clusters has a higher density, but there are
    fewer such partitions. So both densities are divided by the probability of the choices of a
    Gibbs scan, an estimate of one over the number of comparable partitions.
    """
    _, _, tables, random = target
    k = len(partition.sizes)
    if k == 1:
        return partition
    lost = random.integers(k)
    labels, sizes, statistics = (array.copy() for array in partition)
    own = random.permutation(np.flatnonzero(labels == lost))
    labels[own], sizes[lost], statistics[lost] = -1, 0, 0.0
    without, _ = _scan(Partition(labels, sizes, statistics), target, own)
    involved = np.isin(partition.labels, np.append(without.labels[own], lost))
    order = random.permutation(np.flatnonzero(involved))
    without, log_without = _scan(without, target, order)
    _, log_with = _scan(partition, target, order)
    opening = tables.open[k - 1] - tables.size[1]
    return drop_empty_clusters(*without) if log_without > log_with + opening else partition


def _scan(partition: Partition, target: Target, order: np.ndarray) -> tuple[Partition, float]:
    """Draw the clusters of some rows; no new cluster may open, and clusters may become empty.

    Returns the partition, and the log of its joint density over the probability of these choices.
    """
    model, rows, tables, random = target
    labels, sizes = partition.labels.copy(), partition.sizes.copy()
    clusters = model.clusters(len(sizes), partition.statistics)
    _, log_chosen, _ = sweep(
        clusters, sizes, rows, order, 0, labels, NO_TARGET, tables.join, NOTHING, random, NOTHING
    )
    log_joint = model.log_marginal(clusters.statistics).sum() + tables.size[sizes].sum()
    return Partition(labels, sizes, clusters.statistics), log_joint - log_chosen


def _propose(
    partition: Partition, target: Target, n_proposals: int, n_full: int, warms_up: bool
) -> Partition:
    model, rows, tables, random = target
    n, k = len(rows), len(partition.sizes)
    pieces, clusters = model.pieces(rows, kernels.CAPACITY)
    sizes, statistics = np.empty(k + n_proposals, dtype=np.int64), model.empty(k + n_proposals)
    sizes[:k], statistics[:k] = partition.sizes, partition.statistics
    state = kernels.State(
        rows,
        partition.labels.copy(),
        sizes,
        statistics,
        marginals=np.empty(k + n_proposals),
        members=np.empty(n, dtype=np.int64),
        order=np.empty(n, dtype=np.int64),
        side=np.empty(n, dtype=np.int32),
        target=np.empty(n, dtype=np.int32),
        counts=np.empty(2, dtype=np.int64),
        gains=np.empty(k + n_proposals),
    )
    counts = (n_proposals, n_full, TUNING.launch_share)
    first_rows = max(TUNING.tested_rows, TUNING.tested_entries * model.width)
    k = kernels.split_and_merge(
        pieces, clusters, state, k, tables, *counts, first_rows, warms_up, random
    )
    return Partition(state.labels, sizes[:k].copy(), statistics[:k].copy())
