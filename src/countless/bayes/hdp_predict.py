"""What shared clusters say of new rows, of groups that were there and of others.

Given clusters and their weights b, the next row of a group with n rows is at a cluster that has c
of them with probability ``(c + alpha b) / (n + alpha)``, and at a new one with that of what the
weights leave. The rows of a group that was not there have the weights themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from countless.bayes.hdp_seating import Believed, Concentrations, Seating, draw_shared
from countless.bayes.predictive import BLOCK, Mixture, log_weighted
from countless.models import BoundModel

# Draws of the weights that those of given clusters are averaged over.
N_WEIGHTS = 100


def shares(counts: np.ndarray, weights: np.ndarray, alpha: float) -> np.ndarray:
    """Return where the next row of each group is, (n_groups + 1, n_clusters + 1).

    The last group is any that was not there, the last cluster any that has no rows.
    """
    sizes = counts.sum(axis=1, keepdims=True)
    known = (np.pad(counts, ((0, 0), (0, 1))) + alpha * weights) / (sizes + alpha)
    return np.concatenate([known, weights[None] / weights.sum()])


def mean_shares(
    seating: Seating, believed: Believed, at: Concentrations, random: np.random.Generator
) -> np.ndarray:
    """Return the expected `shares` given the clusters of rows, weights and concentrations drawn."""
    total = np.zeros((len(seating.counts) + 1, seating.n_clusters + 1))
    for step in range(2 * N_WEIGHTS):
        seating, at = draw_shared(seating, believed, at, random)
        if step >= N_WEIGHTS:
            total += shares(seating.counts, seating.weights, at.alpha)
    return total / N_WEIGHTS


def shared_mixture(statistics: np.ndarray, share: np.ndarray, hyper: np.ndarray) -> Mixture:
    """Return clusters with the log weights of groups, (n_clusters + 1, n_groups + 1)."""
    extended = np.concatenate([statistics, np.zeros((1, statistics.shape[1]))])
    with np.errstate(divide="ignore"):  # a tiny weight of a tiny concentration is none
        return Mixture(extended, np.log(share.T), hyper)


def log_chances(model: BoundModel, rows: np.ndarray, mixtures: list[Mixture]) -> np.ndarray:
    """Return the log of weight times density of each cluster that has rows."""
    [only] = mixtures
    return log_weighted(model, rows, only)[:, :-1]


def by_group(
    answer: Callable[[BoundModel, np.ndarray, list[Mixture]], np.ndarray],
    model: BoundModel,
    rows: np.ndarray,
    place: np.ndarray,
    mixtures: Sequence[Mixture],
) -> np.ndarray:
    """Return the answer for each row, whose group has this place among the weights."""
    answers = []
    for start in range(0, len(rows), BLOCK):
        block = slice(start, start + BLOCK)
        own = [one._replace(log_weights=one.log_weights[:, place[block]].T) for one in mixtures]
        answers.append(answer(model, rows[block], own))
    return np.concatenate(answers)
