"""Split-merge moves of the HDP mixture: Metropolis-Hastings proposals for shared clusters.

The moves are those of `countless._mcmc.split_merge`, with the weights of clusters as part of the
state: a cluster of weight w is split into two of weights s w and (1 - s) w, and a merge adds the
weights. Given the allocation of the rows, s is drawn from a beta distribution whose parameters
approximate the expected number of tables of each piece. The proposal densities of s and of the
allocation are known, so that the acceptance ratio is exact and the posterior invariant; no tables
are drawn.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import betaln

from countless._mcmc.gibbs import NO_TARGET
from countless._mcmc.hdp.state import Concentrations, HDPState, count_cells, log_rising
from countless.kernels.hdp_gibbs import sweep_groups
from countless.kernels.split_merge import LAUNCH_SCANS
from countless.models import BoundModel

# The share s of a weight is clipped this far from 0 and from 1, so that its logarithm is finite.
LEAST_SHARE = 1e-12


class _Data(NamedTuple):
    model: BoundModel
    rows: np.ndarray
    group: np.ndarray
    concentrations: Concentrations
    random: np.random.Generator


class _Pieces(NamedTuple):
    """A cluster split into two pieces."""

    side: np.ndarray  # (n_rows,) int32, 0 or 1 for rows of the cluster
    counts: np.ndarray  # (n_groups, 2)
    statistics: np.ndarray  # (2, width)
    log_proposal: float


class _Rest(NamedTuple):
    """What a split leaves: the number of clusters before it, and the weight of empty clusters."""

    n_clusters: int
    unseen: float


def split_and_merge(
    state: HDPState,
    model: BoundModel,
    rows: np.ndarray,
    group: np.ndarray,
    concentrations: Concentrations,
    random: np.random.Generator,
    n_proposals: int,
) -> HDPState:
    """Make ``n_proposals`` split or merge proposals, and return the resulting state."""
    data = _Data(model, rows, group, concentrations, random)
    marginals = model.log_marginal(state.statistics)
    for _ in range(n_proposals):
        move = _split if random.random() < 0.5 else _merge
        moved = move(data, state, marginals)
        if moved is not None:
            state = moved
            marginals = model.log_marginal(state.statistics)
    return state


def _split(data: _Data, old: HDPState, marginals: np.ndarray) -> HDPState | None:
    """Propose to split the cluster of a random row; return the new state, None if rejected."""
    i = data.random.integers(len(data.rows))
    whole = old.labels[i]
    members = np.flatnonzero(old.labels == whole)
    if len(members) < 2:
        return None
    others = members[members != i]
    j = others[data.random.integers(len(others))]
    weight = old.weights[whole]
    pieces = _allocate(data, np.array([i, j]), members, weight, None)
    share = data.random.beta(*_share_parameters(data, pieces.counts, weight))
    share = np.clip(share, LEAST_SHARE, 1.0 - LEAST_SHARE)
    own = data.model.log_marginal(pieces.statistics)
    joined = marginals[whole] - own.sum()
    log_merge_ratios = _log_merge_ratios(data, old, marginals, whole, pieces.statistics[0], own[0])
    log_merge_ratios[whole] = joined  # after the split this slot has the other piece
    rest = _Rest(old.n_clusters, old.weights[-1])
    log_acceptance = _log_ratio_of_two(data, pieces.counts, weight, share, rest) - joined
    log_acceptance -= pieces.log_proposal
    log_acceptance += 0.5 * joined - np.logaddexp.reduce(0.5 * log_merge_ratios)
    log_acceptance += np.log((len(members) - 1) / pieces.counts[:, 1].sum())
    if not -data.random.exponential() < log_acceptance:
        return None
    labels = old.labels.copy()
    labels[members[pieces.side[members] == 1]] = old.n_clusters
    counts = np.column_stack([old.counts, pieces.counts[:, 1]])
    counts[:, whole] = pieces.counts[:, 0]
    weights = np.insert(old.weights, old.n_clusters, (1.0 - share) * weight)
    weights[whole] = share * weight
    statistics = np.concatenate([old.statistics, pieces.statistics[1:]])
    statistics[whole] = pieces.statistics[0]
    return HDPState(labels, counts, weights, statistics)


def _merge(data: _Data, old: HDPState, marginals: np.ndarray) -> HDPState | None:
    """Propose to merge a random row's cluster with another; return the state, None if rejected."""
    if old.n_clusters == 1:
        return None
    i = data.random.integers(len(data.rows))
    a = old.labels[i]
    log_merge_ratios = _log_merge_ratios(data, old, marginals, a, old.statistics[a], marginals[a])
    log_sum = np.logaddexp.reduce(0.5 * log_merge_ratios)
    below = np.cumsum(np.exp(0.5 * log_merge_ratios - log_sum))
    b = int(np.searchsorted(below, data.random.random(), side="right"))
    b = min(b, old.n_clusters - 1)
    counts, weight = old.counts[:, [a, b]], old.weights[a] + old.weights[b]
    sizes = counts.sum(axis=0)
    share = np.clip(old.weights[a] / weight, LEAST_SHARE, 1.0 - LEAST_SHARE)
    rest = _Rest(old.n_clusters - 1, old.weights[-1])
    log_acceptance = log_merge_ratios[b] - _log_ratio_of_two(data, counts, weight, share, rest)
    log_acceptance += np.log(sizes[1] / (sizes.sum() - 1)) - (0.5 * log_merge_ratios[b] - log_sum)
    # The allocation probability is at most 1: this bound rejects most merges before any scan.
    log_uniform = -data.random.exponential()
    if not log_uniform < log_acceptance:
        return None
    partners = np.flatnonzero(old.labels == b)
    j = partners[data.random.integers(len(partners))]
    members = np.flatnonzero((old.labels == a) | (old.labels == b))
    pair = np.array([i, j])
    log_acceptance += _allocate(data, pair, members, weight, old.labels == b).log_proposal
    if not log_uniform < log_acceptance:
        return None
    labels = old.labels.copy()
    labels[partners] = a
    labels[labels > b] -= 1
    joined, weights, statistics = old.counts.copy(), old.weights.copy(), old.statistics.copy()
    joined[:, a] += joined[:, b]
    weights[a] = weight
    statistics[a] += statistics[b]
    return HDPState(
        labels, np.delete(joined, b, axis=1), np.delete(weights, b), np.delete(statistics, b, 0)
    )


def _log_ratio_of_two(
    data: _Data, counts: np.ndarray, weight: float, share: float, rest: _Rest
) -> float:
    """Return the log prior ratio of two clusters to one, over the proposal density of the share.

    Without a discount d the factor ``gamma / (share (1 - share))`` is the prior ratio of the
    weights times the Jacobian of the change of variables from the two weights to their sum and the
    share; with one it is ``(unseen / weight)^d (share (1 - share))^(-1 - d) / B(1 - d, gamma +
    (K + 1) d)``, where K is the number of clusters before the split.
    """
    opening = data.concentrations.alpha * weight
    log_share, log_rest = np.log(share), np.log1p(-share)
    total = log_rising(opening * share, counts[:, 0]) + log_rising(
        opening * (1.0 - share), counts[:, 1]
    )
    total -= log_rising(opening, counts.sum(axis=1))
    a, b = _share_parameters(data, counts, weight)
    log_drawn = (a - 1.0) * log_share + (b - 1.0) * log_rest - betaln(a, b)
    _, gamma, discount = data.concentrations
    opened = discount * np.log(rest.unseen / weight) - (1.0 + discount) * (log_share + log_rest)
    opened -= betaln(1.0 - discount, gamma + (rest.n_clusters + 1) * discount)
    return float(opened + total.sum() - log_drawn)


def _share_parameters(data: _Data, counts: np.ndarray, weight: float) -> np.ndarray:
    """Return the parameters of the beta distribution that a share is drawn from."""
    concentrations = data.concentrations
    return _expected_tables(counts, concentrations.alpha * weight) - concentrations.discount


def _expected_tables(counts: np.ndarray, opening: float) -> np.ndarray:
    """Return the approximate expected number of tables of each piece of a cluster, at least 1."""
    half = 0.5 * opening
    more = half * np.log((half + np.maximum(counts, 1) - 0.5) / (half + 0.5))
    return np.where(counts > 0, 1.0 + more, 0.0).sum(axis=0)


def _log_merge_ratios(data, old, marginals, own, statistics, marginal) -> np.ndarray:
    """Return the log marginal likelihood ratio of merging a piece of ``own`` with each cluster.

    The prior is not included; the entry of ``own`` itself is -inf.
    """
    partners = np.delete(np.arange(old.n_clusters), own)
    together = data.model.log_marginal(old.statistics[partners] + statistics)
    log_merge_ratios = np.full(old.n_clusters, -np.inf)
    log_merge_ratios[partners] = together - marginals[partners] - marginal
    return log_merge_ratios


def _allocate(
    data: _Data, pair: np.ndarray, members: np.ndarray, weight: float, second: np.ndarray | None
) -> _Pieces:
    """Allocate rows to two pieces; if ``second`` is given, the last scan is forced to it.

    The forced scan gives the proposal probability of the reverse split of a merge.
    """
    rest = data.random.permutation(members[~np.isin(members, pair)])
    side = np.full(len(data.rows), -1, dtype=np.int32)
    side[pair] = 0, 1
    clusters = data.model.clusters(2, data.model.statistics(data.rows[pair], np.arange(2)))
    counts = count_cells(data.group[pair], np.arange(2), int(data.group.max()) + 1)
    sizes = np.ones(2, dtype=np.int64)
    log_proposal = 0.0
    n_scans = 1 if data.random.random() < 0.5 else 2 + LAUNCH_SCANS
    for scan in range(1, n_scans + 1):
        tables = _expected_tables(counts, data.concentrations.alpha * weight)
        forced = second is not None and scan == n_scans
        target = second.astype(np.int32) if forced else NO_TARGET  # type: ignore[union-attr]
        _, log_proposal = sweep_groups(
            clusters, counts, sizes, np.append(weight * tables / tables.sum(), 0.0), data.rows,
            data.group, rest, 0, side, target, data.concentrations.alpha, 0.0, 0.0, data.random,
        )  # fmt: skip
    return _Pieces(side, counts, clusters.statistics, log_proposal)
