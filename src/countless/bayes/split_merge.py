"""Whole clusters split in two or joined, accepted so that the posterior stays as it is.

A split of the cluster of rows i and j shares its other rows out between the two, one by one in
random order, each by its probability given those before it [2]_. Half of the time this is the
proposal: as the pieces grow their own way, it comes back to clusters that overlap. Half of the time
it is where some Gibbs scans start, the last of which is the proposal [1]_: this sorts out clusters
that lie apart. A merge asks how probable the present two clusters would have been as a split.

Which two rows is ours. Half of the time they are of one cluster: any i, and any j of its cluster.
Half of the time the second is of another cluster, chosen by the square root of what joining the two
clusters would multiply the posterior by, so that hopeless pairs are rare. The probability of the
way back is at most 1, which refuses most merges before any row is looked at.

A chain that settles, of which nothing is kept, joins two clusters more readily: it asks how
probable they are as a split that begins with themselves. Halves of one cluster, which a split
finds in one of many ways, would else stay apart for hundreds of sweeps.

References
----------
.. [1] S. Jain and R. M. Neal, "A split-merge Markov chain Monte Carlo procedure for the Dirichlet
   process mixture model", JCGS 13, 2004.
.. [2] D. B. Dahl, "Sequentially-allocated merge-split sampler for conjugate and nonconjugate
   Dirichlet process mixture models", 2005.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from countless.bayes.collapsed import NO_TARGET, Partition
from countless.models.protocol import ClusterModel
from countless.priors import Tables

# Scans between the first sharing out and the proposal, where it is not the proposal itself.
LAUNCH_SCANS = 2


class _Data(NamedTuple):
    model: ClusterModel
    rows: np.ndarray
    tables: Tables
    random: np.random.Generator
    settles: bool


class _Pieces(NamedTuple):
    """A cluster in two."""

    side: np.ndarray  # (n_rows,) int32, 0 or 1 for its rows
    sizes: np.ndarray  # (2,)
    statistics: np.ndarray  # (2, width)
    log_proposed: float


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
    data = _Data(model, rows, tables, random, settles)
    marginals = model.log_marginal(partition.statistics)
    for _ in range(n_tries):
        move = _split if random.random() < 0.5 else _merge
        moved = move(data, partition, marginals)
        if moved is not None:
            partition = moved
            marginals = model.log_marginal(partition.statistics)
    return partition


def _split(data: _Data, old: Partition, marginals: np.ndarray) -> Partition | None:
    """Propose to split the cluster of a row; return what it becomes, or None."""
    size, _, opening = data.tables
    k = len(old.sizes)
    i = data.random.integers(len(data.rows))
    whole = old.labels[i]
    count = old.sizes[whole]
    if count < 2 or opening[k] == -np.inf:
        return None
    members = np.flatnonzero(old.labels == whole)
    others = members[members != i]
    j = others[data.random.integers(len(others))]
    pieces = _share_out(data, i, j, members)
    own = data.model.log_marginal(pieces.statistics)
    joined = marginals[whole] - own.sum() + size[count] - size[pieces.sizes].sum()
    first = (pieces.statistics[0], pieces.sizes[0], own[0])
    gains = _gains(data, old, marginals, whole, first)
    gains[whole] = joined  # in place of the cluster there would be the other piece
    log_ratio = opening[k] - size[1] - joined - pieces.log_proposed
    log_ratio += 0.5 * joined - _log_sum(0.5 * gains)
    log_ratio += np.log((count - 1) / pieces.sizes[1])
    if not _log_uniform(data.random) < log_ratio:
        return None
    labels = old.labels.copy()
    labels[members[pieces.side[members] == 1]] = k
    sizes = np.append(old.sizes, pieces.sizes[1])
    sizes[whole] = pieces.sizes[0]
    statistics = np.concatenate([old.statistics, pieces.statistics[1:]])
    statistics[whole] = pieces.statistics[0]
    return Partition(labels, sizes, statistics)


def _merge(data: _Data, old: Partition, marginals: np.ndarray) -> Partition | None:
    """Propose to join the cluster of a row and another one; return what they become, or None."""
    size, _, opening = data.tables
    k = len(old.sizes)
    i = data.random.integers(len(data.rows))
    a = old.labels[i]
    gains = _gains(data, old, marginals, a, (old.statistics[a], old.sizes[a], marginals[a]))
    if np.isneginf(gains).all():
        return None
    log_sum = _log_sum(0.5 * gains)
    b = int(np.searchsorted(np.cumsum(np.exp(0.5 * gains - log_sum)), data.random.random()))
    b = min(b, k - 1)
    count = old.sizes[a] + old.sizes[b]
    log_ratio = gains[b] - (opening[k - 1] - size[1])
    log_ratio += np.log(old.sizes[b] / (count - 1)) - (0.5 * gains[b] - log_sum)
    log_mark = _log_uniform(data.random)
    if not log_mark < log_ratio:
        return None
    partners = np.flatnonzero(old.labels == b)
    j = partners[data.random.integers(len(partners))]
    members = np.flatnonzero((old.labels == a) | (old.labels == b))
    second = (old.labels == b).astype(np.int32)
    if data.settles:
        present = _Pieces(second, old.sizes[[a, b]], old.statistics[[a, b]], 0.0)
        log_ratio += _scan(data, _rest(data, i, j, members), present).log_proposed
    else:
        log_ratio += _share_out(data, i, j, members, second).log_proposed
    if not log_mark < log_ratio:
        return None
    labels = old.labels.copy()
    labels[partners] = a
    labels[labels > b] -= 1
    sizes, statistics = old.sizes.copy(), old.statistics.copy()
    sizes[a] = count
    statistics[a] += statistics[b]
    return Partition(labels, np.delete(sizes, b), np.delete(statistics, b, axis=0))


def _gains(data, old, marginals, own, piece) -> np.ndarray:
    """Return the log of what joining a piece of cluster ``own`` with each other one would gain.

    The weight of having one cluster less is left out; ``own`` itself is no partner.
    """
    statistics, count, marginal = piece
    size = data.tables.size
    partners = np.delete(np.arange(len(old.sizes)), own)
    together = data.model.log_marginal(old.statistics[partners] + statistics)
    sizes = old.sizes[partners]
    gains = np.full(len(old.sizes), -np.inf)
    gains[partners] = together - marginals[partners] - marginal
    gains[partners] += size[sizes + count] - size[sizes] - size[count]
    return gains


def _share_out(data: _Data, i, j, members: np.ndarray, second: np.ndarray = NO_TARGET) -> _Pieces:
    """Share out rows between i and j; in the last scan as ``second`` says, where it is given."""
    rest = _rest(data, i, j, members)
    side = np.full(len(data.rows), -1, dtype=np.int32)
    side[i], side[j] = 0, 1
    statistics = data.model.statistics(data.rows[[i, j]], np.array([0, 1]))
    pieces = _Pieces(side, np.ones(2, dtype=np.int64), statistics, 0.0)
    if data.random.random() >= 0.5:
        for _ in range(1 + LAUNCH_SCANS):
            pieces = _scan(data, rest, pieces)
    return _scan(data, rest, pieces, second)


def _rest(data: _Data, i, j, members: np.ndarray) -> np.ndarray:
    """Return the rows that go to i or to j, in random order."""
    return data.random.permutation(members[(members != i) & (members != j)])


def _scan(data: _Data, rest: np.ndarray, pieces: _Pieces, target=NO_TARGET) -> _Pieces:
    """Draw the piece of each row in turn; ``side`` and ``sizes`` follow in place."""
    model, rows, tables, random, _ = data
    side, sizes, statistics, _ = pieces
    state = (side, sizes, statistics, target)
    statistics, log_proposed = model.scan(rows, rest, *state, tables.join, random)
    return _Pieces(side, sizes, statistics, log_proposed)


def _log_sum(logs: np.ndarray) -> float:
    highest = logs.max()
    return float(highest + np.log(np.exp(logs - highest).sum()))


def _log_uniform(random: np.random.Generator) -> float:
    return float(np.log1p(-random.random()))
