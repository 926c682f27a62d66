"""Posterior predictive densities of new rows, as finite mixtures.

Given a partition of n rows, the prior gives the probability that row n + 1 is in each cluster or in
a new one; its density is then the predictive density of that cluster, or the prior predictive
density. So each posterior draw is a finite mixture, and the posterior predictive density is the
mean of these mixtures over draws.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp

from countless.models import BoundModel
from countless.priors import PartitionPrior
from countless.priors.base import check_count

# Number of rows whose densities are computed at once, which bounds memory.
BLOCK_ROWS = 2**14


class Mixture(NamedTuple):
    """The clusters of one draw; the last is a new cluster, whose statistics are zeros."""

    statistics: np.ndarray  # (n_clusters + 1, width)
    log_weights: np.ndarray  # (n_clusters + 1,)
    hyper: np.ndarray  # (n_hyper,) of the model


def mixture_of(
    statistics: np.ndarray, sizes: np.ndarray, prior: PartitionPrior, hyper: np.ndarray
) -> Mixture:
    """Return the predictive mixture of one more row, given clusters' statistics and sizes."""
    extended = np.concatenate([statistics, np.zeros((1, statistics.shape[1]))])
    return Mixture(extended, prior.log_predictive(sizes), hyper)


class Packed(NamedTuple):
    """Several mixtures as concatenated arrays."""

    statistics: np.ndarray  # (n_sets, width)
    weights: np.ndarray  # (n_sets,), not logarithms: that of a new cluster may be 0
    hyper: np.ndarray  # (n_mixtures, n_hyper)
    starts: np.ndarray  # (n_mixtures + 1,) int64, offset of each mixture


def pack(mixtures: Sequence[Mixture]) -> Packed:
    """Concatenate mixtures."""
    statistics, log_weights, hyper = zip(*mixtures, strict=True)
    starts = np.cumsum([0, *map(len, log_weights)])
    return Packed(
        np.concatenate(statistics), np.exp(np.concatenate(log_weights)), np.array(hyper), starts
    )


def unpack(packed: Packed) -> list[Mixture]:
    """Return the mixtures that `pack` concatenated."""
    with np.errstate(divide="ignore"):
        log_weights = np.log(packed.weights)
    return [
        Mixture(packed.statistics[first:last], log_weights[first:last], hyper)
        for first, last, hyper in zip(
            packed.starts[:-1], packed.starts[1:], packed.hyper, strict=True
        )
    ]


def log_weighted(model: BoundModel, rows: np.ndarray, mixture: Mixture) -> np.ndarray:
    """Return the log of weight times density, (n_rows, n_clusters + 1)."""
    densities = model.with_hyper(mixture.hyper).log_predictive(rows, mixture.statistics)
    return densities + mixture.log_weights


def probabilities(model: BoundModel, rows: np.ndarray, mixture: Mixture) -> np.ndarray:
    """Return the probability of each cluster, given that the row is in one of them."""
    found = np.empty((len(rows), len(mixture.log_weights) - 1))
    for block in _blocks(len(rows)):
        found[block] = normalised(log_weighted(model, rows[block], mixture)[:, :-1], block.start)
    return found


def normalised(log_weights: np.ndarray, first: int = 0) -> np.ndarray:
    """Return weights normalized to sum 1 for each row; ``first`` is the first row's index in X."""
    highest = log_weights.max(axis=1, keepdims=True)
    unreached = ~np.isfinite(highest[:, 0])
    if unreached.any():
        row = first + int(unreached.argmax())
        raise ValueError(f"X has a row that is too far from all clusters: row {row}")
    weights = np.exp(log_weights - highest)
    return weights / weights.sum(axis=1, keepdims=True)


def log_densities(model: BoundModel, rows: np.ndarray, mixtures: Sequence[Mixture]) -> np.ndarray:
    """Return the log of the mean density of each row over draws."""
    found = np.full(len(rows), -np.inf)
    for block in _blocks(len(rows)):
        for mixture in mixtures:
            one = logsumexp(log_weighted(model, rows[block], mixture), axis=1)
            found[block] = np.logaddexp(found[block], one)
    return found - np.log(len(mixtures))


def draw_rows(
    model: BoundModel, mixtures: Sequence[Mixture], n_rows: int, random: np.random.Generator
) -> np.ndarray:
    """Draw rows from the mean of mixtures, in the model's internal format."""
    n_rows = check_count("n_samples", n_rows)
    counts = random.multinomial(n_rows, np.full(len(mixtures), 1.0 / len(mixtures)))
    drawn = []
    for mixture, count in zip(mixtures, counts, strict=True):
        if count:
            weights = np.exp(mixture.log_weights)
            cluster = random.choice(len(weights), size=count, p=weights / weights.sum())
            own = model.with_hyper(mixture.hyper)
            parameters = own.draw_parameters(mixture.statistics[cluster], random)
            drawn.append(own.draw_rows(parameters, random))
    return random.permutation(np.concatenate(drawn))


def _blocks(n_rows: int) -> Iterator[slice]:
    for start in range(0, n_rows, BLOCK_ROWS):
        yield slice(start, start + BLOCK_ROWS)
