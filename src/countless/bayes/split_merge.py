"""Whole clusters split in two or joined, accepted so that the posterior stays as it is.

A split of the cluster of rows i and j shares its other rows out between the two, one by one in
random order, each by its probability given those before it [2]_. Mostly this is the proposal: as
the pieces grow their own way, it comes back to clusters that overlap. One time in ten it is where
some Gibbs scans start, the last of which is the proposal [1]_: this sorts out clusters that lie
apart. A merge asks how probable the present two clusters would have been as a split.

Which two rows is ours. Half of the time they are of one cluster: any i, and any j of its cluster.
Half of the time the second is of another cluster, chosen by the square root of what joining the two
clusters would multiply the posterior by, so that hopeless pairs are rare. The probability of the
way back is at most 1, which refuses most merges before any row is looked at.

Most proposals come to nothing, and mostly the first few rows tell. So but for some proposals that
are seen through, after some rows, twice as many, and so on, one asks how much more probable these
rows are as two clusters than as one, beside the probability of having shared them out like this. A
split goes on by chance, as often as it would be accepted with these rows alone (or e times as
often), and a merge likewise by the inverse. What goes on against the odds is accepted the more
readily, so that each split happens about as often as it would, at a small part of the cost: the
chances of going on are part of the proposal, both ways.

References
----------
.. [1] S. Jain and R. M. Neal, "A split-merge Markov chain Monte Carlo procedure for the Dirichlet
   process mixture model", JCGS 13, 2004.
.. [2] D. B. Dahl, "Sequentially-allocated merge-split sampler for conjugate and nonconjugate
   Dirichlet process mixture models", 2005.
"""

from __future__ import annotations

import numpy as np

from countless.bayes.collapsed import NO_TARGET, NOTHING, Partition, Setting, without_gaps
from countless.kernels import split_merge as kernels
from countless.kernels.gibbs import sweep

# The share of the proposals that are never given up half way that scans go before.
LAUNCHES = 0.1
# Rows of others that are shared out before one first asks whether to go on: so many for each number
# that a cluster is known by, and at least so many.
PART_PER_NUMBER, LEAST_PART = 1, 16


def split_and_merge(
    partition: Partition, setting: Setting, n_tries: int, n_whole: int | None = None
) -> Partition:
    """Propose so many splits and merges, and take those that are accepted.

    So many of them, by default all, are never given up half way.
    """
    return _try(partition, setting, n_tries, n_tries if n_whole is None else n_whole, False)


def settle(partition: Partition, setting: Setting, n_tries: int) -> Partition:
    """Look for where a chain belongs, by moves of which nothing may be kept.

    Two clusters are joined more readily: it is asked how probable they are as a split that begins
    with themselves. Halves of one cluster, which a split finds in one of many ways, would else stay
    apart for long. Two clusters that are not joined are shared out anew, which is kept if it makes
    the partition more probable: where clusters overlap, a border in the wrong place moves by little
    with each sweep. Last, the chain tries to do without some cluster.
    """
    return _dissolve(_try(partition, setting, n_tries, n_tries, True), setting)


def _dissolve(partition: Partition, setting: Setting) -> Partition:
    """Give the rows of any cluster to the others, if that is the more probable way to have them.

    So ends a cluster between two that overlap, made of rows of both: it can be joined with neither.
    Partitions into fewer clusters are more probable one by one, but there are fewer of them: one
    over the probability of the choices of a scan says how many.
    """
    _, _, tables, random = setting
    k = len(partition.sizes)
    if k == 1:
        return partition
    lost = random.integers(k)
    labels, sizes, statistics = (array.copy() for array in partition)
    own = random.permutation(np.flatnonzero(labels == lost))
    labels[own], sizes[lost], statistics[lost] = -1, 0, 0.0
    without, _ = _scan(Partition(labels, sizes, statistics), setting, own)
    involved = np.isin(partition.labels, np.append(without.labels[own], lost))
    order = random.permutation(np.flatnonzero(involved))
    without, log_without = _scan(without, setting, order)
    _, log_with = _scan(partition, setting, order)
    opening = tables.open[k - 1] - tables.size[1]
    return without_gaps(*without) if log_without > log_with + opening else partition


def _scan(partition: Partition, setting: Setting, order: np.ndarray) -> tuple[Partition, float]:
    """Draw the clusters of some rows, none of which may open one; clusters may become empty.

    Returns them, and the log of the joint density over the probability of these choices.
    """
    model, rows, tables, random = setting
    labels, sizes = partition.labels.copy(), partition.sizes.copy()
    clusters = model.clusters(len(sizes), partition.statistics)
    _, log_chosen, _ = sweep(
        clusters, sizes, rows, order, 0, labels, NO_TARGET, tables.join, NOTHING, random, NOTHING
    )
    log_joint = model.log_marginal(clusters.statistics).sum() + tables.size[sizes].sum()
    return Partition(labels, sizes, clusters.statistics), log_joint - log_chosen


def _try(
    partition: Partition, setting: Setting, n_tries: int, n_whole: int, settles: bool
) -> Partition:
    model, rows, tables, random = setting
    n, k = len(rows), len(partition.sizes)
    pieces, clusters = model.pieces(rows, kernels.ROOM)
    sizes, statistics = np.empty(k + n_tries, dtype=np.int64), model.empty(k + n_tries)
    sizes[:k], statistics[:k] = partition.sizes, partition.statistics
    state = kernels.State(
        rows,
        partition.labels.copy(),
        sizes,
        statistics,
        marginals=np.empty(k + n_tries),
        members=np.empty(n, dtype=np.int64),
        order=np.empty(n, dtype=np.int64),
        side=np.empty(n, dtype=np.int32),
        target=np.empty(n, dtype=np.int32),
        counts=np.empty(2, dtype=np.int64),
        gains=np.empty(k + n_tries),
    )
    first_part = max(LEAST_PART, PART_PER_NUMBER * model.width)
    k = kernels.split_and_merge(
        pieces, clusters, state, k, tables, n_tries, n_whole, LAUNCHES, first_part, settles, random
    )
    return Partition(state.labels, sizes[:k].copy(), statistics[:k].copy())
