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

A chain that settles, of which nothing is kept, joins two clusters more readily: it asks how
probable they are as a split that begins with themselves. Halves of one cluster, which a split
finds in one of many ways, would else stay apart for hundreds of sweeps. Two clusters that it does
not join it shares out anew, and keeps that if it makes the partition more probable: where clusters
overlap, a border in the wrong place moves by little with each sweep.

References
----------
.. [1] S. Jain and R. M. Neal, "A split-merge Markov chain Monte Carlo procedure for the Dirichlet
   process mixture model", JCGS 13, 2004.
.. [2] D. B. Dahl, "Sequentially-allocated merge-split sampler for conjugate and nonconjugate
   Dirichlet process mixture models", 2005.
"""

from __future__ import annotations

import numpy as np

from countless.bayes.collapsed import Partition
from countless.kernels import split_merge as kernels
from countless.models.protocol import ClusterModel
from countless.priors import Tables

# The share of proposals that scans go before.
LAUNCHES = 0.1


def split_and_merge(
    partition: Partition,
    model: ClusterModel,
    rows: np.ndarray,
    tables: Tables,
    random: np.random.Generator,
    n_tries: int,
    *,
    settles: bool = False,
) -> Partition:
    """Propose so many splits and merges, and take those that are accepted."""
    n, k = len(rows), len(partition.sizes)
    pieces, clusters = model.pieces(rows, kernels.ROOM)
    sizes, statistics = np.empty(k + n_tries, dtype=np.int64), model.empty(k + n_tries)
    sizes[:k], statistics[:k] = partition.sizes, partition.statistics
    state = kernels.State(
        rows,
        partition.labels.copy(),
        sizes,
        statistics,
        np.empty(k + n_tries),
        np.empty(n, dtype=np.int64),
        np.empty(n, dtype=np.int32),
        np.empty(n, dtype=np.int32),
        np.empty(2, dtype=np.int64),
        np.empty(k + n_tries),
    )
    k = kernels.split_and_merge(
        pieces, clusters, state, k, tables, n_tries, LAUNCHES, settles, random
    )
    return Partition(state.labels, sizes[:k].copy(), statistics[:k].copy())
