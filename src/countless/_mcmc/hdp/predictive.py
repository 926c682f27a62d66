"""Predictive densities of the HDP mixture, for rows of fitted groups and of new ones.

Given clusters and their weights b, the next row of a group with n rows is in a cluster that has c
of them with probability ``(c + alpha b) / (n + alpha)``, and in a new cluster with the same formula
for c = 0 and the remaining weight. For a new group the probabilities are the weights themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from countless._mcmc.hdp.state import Concentrations, HDPState, PriorSpec, draw_weights
from countless._mcmc.predictive import BLOCK_ROWS, Mixture, log_weighted
from countless.models import BoundModel

# Draws of the weights that expected shares are averaged over, after as many of burn-in.
WEIGHT_DRAWS = 100


def shares(counts: np.ndarray, weights: np.ndarray, alpha: float) -> np.ndarray:
    """Return the predictive cluster probabilities of each group, (n_groups + 1, n_clusters + 1).

    The last group is a new one, the last cluster a new one.
    """
    sizes = counts.sum(axis=1, keepdims=True)
    known = (np.pad(counts, ((0, 0), (0, 1))) + alpha * weights) / (sizes + alpha)
    return np.concatenate([known, weights[None] / weights.sum()])


def mean_shares(
    state: HDPState,
    given_prior: PriorSpec,
    concentrations: Concentrations,
    random: np.random.Generator,
) -> np.ndarray:
    """Return the expected `shares` given the clusters of rows, over weights and concentrations."""
    total = np.zeros((len(state.counts) + 1, state.n_clusters + 1))
    for step in range(2 * WEIGHT_DRAWS):
        state, concentrations = draw_weights(state, given_prior, concentrations, random)
        if step >= WEIGHT_DRAWS:
            total += shares(state.counts, state.weights, concentrations.alpha)
    return total / WEIGHT_DRAWS


def shared_mixture(statistics: np.ndarray, share: np.ndarray, hyper: np.ndarray) -> Mixture:
    """Return a mixture with log weights for each group, (n_clusters + 1, n_groups + 1)."""
    extended = np.concatenate([statistics, np.zeros((1, statistics.shape[1]))])
    with np.errstate(divide="ignore"):  # weights may underflow to 0
        return Mixture(extended, np.log(share.T), hyper)


def log_weights_of_clusters(
    model: BoundModel, rows: np.ndarray, mixtures: list[Mixture]
) -> np.ndarray:
    """Return the log of weight times density of each nonempty cluster."""
    [only] = mixtures
    return log_weighted(model, rows, only)[:, :-1]


def by_group(
    answer: Callable[[BoundModel, np.ndarray, list[Mixture]], np.ndarray],
    model: BoundModel,
    rows: np.ndarray,
    place: np.ndarray,
    mixtures: Sequence[Mixture],
) -> np.ndarray:
    """Evaluate a function of mixtures in blocks of rows, with the weights of each row's group.

    ``place`` is the index of the group of each row.
    """
    answers = []
    for start in range(0, len(rows), BLOCK_ROWS):
        block = slice(start, start + BLOCK_ROWS)
        own = [one._replace(log_weights=one.log_weights[:, place[block]].T) for one in mixtures]
        answers.append(answer(model, rows[block], own))
    return np.concatenate(answers)
