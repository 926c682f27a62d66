"""Choosing both penalties of the hard HDP from the data alone.

The pairs of penalties that are tried form a one-parameter family, derived from a minimum
description length (MDL). Let rows have variance s per feature about their centers, and measure code
lengths in units of 2s. A center costs ``d/2 log n``; a group that uses one more of g globals
encodes which one, ``log g``, and how many of its rows, ``1/2 log n_j``. So

    global_penalty = s d log n,    local_penalty = s (2 log g + log(n / n_groups)).

As s decreases from the variance of all rows, the number of clusters grows. Each clustering is then
scored by its description length in nats: the negative log likelihood of the rows under the mixture
of Gaussians that their group uses, the centers, which globals each group uses, and the mixture
weights: equal ones or, where that is shorter, free ones (uniform Dirichlet prior). The shortest
description wins. Unlike the hard objective it allows for overlapping clusters.

The penalty path of all rows together decides instead, as it does for `DPMeans`, where its
confidence is high: then clusters are so well separated that groups with small shifts between them
still share them. It also decides where almost every group uses almost every global, so that groups
carry no information; noise in groups is then one cluster, too.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import gammaln

from countless._path.penalty import PenaltyPath, path_of
from countless._search.groups.penalties import HDPPenalties
from countless._search.groups.refine import refine
from countless._search.groups.rows import GroupedRows
from countless.kernels.hdp import mix_rows


@dataclass(frozen=True)
class DescriptionSearch:
    """Constants of the search; ``benchmarks/hdp.py`` shows what they are worth."""

    # The scale s is multiplied by this factor in each step; the search ends after so many different
    # clusterings without a shorter description.
    step: float = math.sqrt(0.5)
    patience: int = 4
    most_steps: int = 60
    # The penalty path decides when it finds clusters with this confidence, or when groups use this
    # share of all globals.
    path_confidence: float = 0.4
    shared_globals: float = 0.8
    # EM iterations for the variance of the Gaussians.
    em_iterations: int = 12
    # Tolerance and largest number of passes of the local search in one step.
    tol: float = 1e-3
    passes: int = 40


SEARCH = DescriptionSearch()


class Trial(NamedTuple):
    """One pair of penalties, and the clustering found with it."""

    penalties: HDPPenalties
    labels: np.ndarray  # (n_rows,) the global of each row
    n_globals: int
    n_locals: int
    nats: float  # description length


def choose_penalties(rows: GroupedRows, starts: np.ndarray) -> Trial:
    """Return the penalties whose clustering has the shortest description.

    Parameters
    ----------
    rows : GroupedRows
        Rows of a group are contiguous.
    starts : ndarray of int (n_groups + 1,)
        Where each group starts, and the number of rows.
    """
    n, d, n_groups = rows.n_rows, rows.n_features, len(starts) - 1
    path = path_of(rows.backend)
    if path.n_clusters > 1 and path.confidence >= SEARCH.path_confidence:
        return _together(rows, starts, path)
    best = last = _one_cluster(rows, starts)
    # No split can gain more than the total cost of all rows.
    scale = rows.total_cost / (d * np.log(max(n, 3)))
    others = 0
    for _ in range(SEARCH.most_steps):
        if others == SEARCH.patience or scale == 0 or last.n_globals > n / 4:
            break
        prices = HDPPenalties(
            scale * (2 * np.log(last.n_globals + 1) + np.log(max(n / n_groups, 2.0))),
            scale * d * np.log(max(n, 3)),
        )
        found = refine(
            rows, starts, last.labels, *prices, tol=SEARCH.tol, max_iter=SEARCH.passes,
            over_split=False,
        )  # fmt: skip
        labels = found.local_global[found.local_labels].astype(np.int32)
        nats = description(rows, starts, labels)
        trial = Trial(prices, labels, len(found.centers), len(found.local_group), nats)
        others += trial[2:4] != last[2:4]
        if nats < best.nats:
            best, others = trial, 0
        last = trial
        scale *= SEARCH.step
    if best.n_globals > 1 and best.n_locals > SEARCH.shared_globals * n_groups * best.n_globals:
        return _together(rows, starts, path)
    return best


def _one_cluster(rows: GroupedRows, starts: np.ndarray) -> Trial:
    """Return penalties at which a single cluster is optimal."""
    n_groups, price = len(starts) - 1, rows.total_cost or 1.0
    labels = np.zeros(rows.n_rows, dtype=np.int32)
    nats = description(rows, starts, labels)
    return Trial(HDPPenalties(price / n_groups, price), labels, 1, n_groups, nats)


def _together(rows: GroupedRows, starts: np.ndarray, path: PenaltyPath) -> Trial:
    """Return penalties at which a global used by all groups costs the path's penalty in all."""
    n_groups, labels = len(starts) - 1, path.labels_at(path.penalty)
    prices = HDPPenalties(path.penalty / (2 * n_groups), path.penalty / 2)
    nats = description(rows, starts, labels)
    return Trial(prices, labels, path.n_clusters, n_groups * path.n_clusters, nats)


def description(rows: GroupedRows, starts: np.ndarray, labels: np.ndarray) -> float:
    """Return the description length of a clustering in nats, up to a constant."""
    n, d, n_groups = rows.n_rows, rows.n_features, len(starts) - 1
    g = int(labels.max()) + 1
    group = np.repeat(np.arange(n_groups), np.diff(starts))
    cell_rows = np.bincount(group * g + labels, minlength=n_groups * g).reshape(n_groups, g)
    summary = rows.sums(labels, g)
    cost = rows.objective(summary, 0.0)
    tiny = 1e-12 * max(rows.total_cost, np.finfo(float).tiny)
    variance = max(cost, tiny) / (n * d)
    cell_group, cell_cluster = np.nonzero(cell_rows)
    first = np.searchsorted(cell_group, np.arange(n_groups + 1))
    n_used, size = np.diff(first), np.diff(starts)
    means = summary.total / summary.weight[:, None]
    equal = -np.log(n_used)[cell_group]
    counts = cell_rows[cell_group, cell_cluster]
    free = np.log(counts / size[cell_group])

    def mixed(shares: np.ndarray, variance: float) -> tuple[np.ndarray, float]:
        """Return each group's log likelihood, and the updated variance (an EM step)."""

        def work(start, stop):
            nats, spread = np.zeros(n_groups), np.zeros(1)
            block = rows.seen(start, stop)
            mix_rows(
                block, group[start:stop], first, cell_cluster, shares, means, variance, nats,
                spread,
            )  # fmt: skip
            return nats, spread

        parts = rows.each(work, rows.spans)
        nats, spread = (np.sum(part, axis=0) for part in zip(*parts, strict=True))
        return nats - 0.5 * size * d * np.log(2 * np.pi * variance), float(spread[0]) / (n * d)

    for _ in range(SEARCH.em_iterations):
        before, variance = variance, max(mixed(free, variance)[1], tiny / (n * d))
        if abs(variance - before) < 1e-4 * before:
            break
    likely_counts = np.bincount(cell_group, counts * free, minlength=n_groups)
    # Marginal likelihood of a group's counts under a uniform Dirichlet prior on mixture weights;
    # its difference from the maximised likelihood is the cost of the weights.
    log_evidence = gammaln(n_used) - gammaln(size + n_used)
    log_evidence = log_evidence + np.bincount(cell_group, gammaln(counts + 1), minlength=n_groups)
    with_free = mixed(free, variance)[0] - (likely_counts - log_evidence)
    with_equal = mixed(equal, variance)[0]
    which = gammaln(g + 1) - gammaln(n_used + 1) - gammaln(g - n_used + 1)
    choice = np.log(2.0) * (n_used > 1)
    told = np.maximum(with_free, with_equal) - which - choice
    return float(0.5 * (g * d + 1) * np.log(n) - told.sum())
