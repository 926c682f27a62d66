"""Streams of rows: a particle filter over partitions.

A particle is a partition of all rows seen, stored as the sufficient statistics of its clusters. A
new row is assigned to a cluster of each particle by its conditional probability, and the particle's
weight is multiplied by its predictive density of the row. Particles are resampled when the
effective sample size falls below half of their number. Gibbs sweeps over the most recent rows make
resampled copies differ again (rejuvenation). Only these rows are stored, so that memory does not
grow with the stream.

P. Fearnhead, "Particle filters for mixture models with an unknown number of components",
Statistics and Computing 14, 2004.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from countless._mcmc.gibbs import NO_TARGET, NOTHING, drop_empty_clusters
from countless.kernels.gibbs import sweep
from countless.models import BoundModel
from countless.priors import PartitionPrior


@dataclass(frozen=True)
class Tuning:
    """Constants of the filter: more of each is more exact, at more cost."""

    n_particles: int = 32
    n_stored: int = 512  # most recent rows, for Gibbs sweeps
    rows_between: int = 16  # two tests for resampling


TUNING = Tuning()


class Particle(NamedTuple):
    """A partition of all rows seen."""

    labels: np.ndarray  # (n_kept,) int32, of the stored rows
    sizes: np.ndarray  # (n_clusters,) int64, of all rows
    statistics: np.ndarray  # (n_clusters, width)
    prior: PartitionPrior  # with numeric parameters
    hyper: np.ndarray  # (n_hyper,), of the model

    def log_joint(self, model: BoundModel) -> float:
        """Return the log joint density of all rows and the partition, up to a constant."""
        marginals = model.with_hyper(self.hyper).log_marginal(self.statistics)
        return float(marginals.sum()) + self.prior.log_weight(self.sizes)


class Stream(NamedTuple):
    """The state of the particle filter."""

    model: BoundModel
    given_prior: PartitionPrior  # prior specification: parameters may be distributions
    rows: np.ndarray  # (n_kept, n_features), the most recent ones
    particles: list[Particle]
    n_seen: int
    random: np.random.Generator  # stored, so that batches do not repeat random numbers


def start_stream(
    model: BoundModel, given_prior: PartitionPrior, rows: np.ndarray, random: np.random.Generator
) -> Stream:
    """Return the initial state, no row seen; ``rows`` only gives the shape and type of rows."""
    nothing = np.empty(0, dtype=np.int32), np.empty(0, dtype=np.int64), model.empty(0)
    particles = [
        Particle(*nothing, given_prior.draw_parameters(random), model.hyper.value)
        for _ in range(TUNING.n_particles)
    ]
    return Stream(model, given_prior, rows[:0], particles, 0, random)


def update_stream(stream: Stream, batch: np.ndarray) -> tuple[Stream, np.ndarray]:
    """Add a batch of rows; return the stream, and their labels in its most probable particle."""
    model, given_prior, kept, particles, n_seen, random = stream
    rows = np.concatenate([kept, batch])
    unseen = np.full(len(batch), -1, dtype=np.int32)
    particles = [p._replace(labels=np.concatenate([p.labels, unseen])) for p in particles]
    log_weights = np.zeros(len(particles))
    for begin in range(len(kept), len(rows), TUNING.rows_between):
        order = np.arange(begin, min(begin + TUNING.rows_between, len(rows)))
        for place, particle in enumerate(particles):
            particles[place], log_predictive = _visit(model, particle, rows, order, random)
            log_weights[place] += log_predictive - _growth(particle.prior, n_seen, len(order))
        n_seen += len(order)
        weights = np.exp(log_weights - log_weights.max())
        last = order[-1] == len(rows) - 1
        if last or weights.sum() ** 2 < 0.5 * len(particles) * (weights**2).sum():
            particles = _resample(particles, weights / weights.sum(), random)
            log_weights[:] = 0.0
    first = max(0, len(rows) - TUNING.n_stored)
    for place, particle in enumerate(particles):
        moved, _ = _visit(model, particle, rows, np.arange(first, len(rows)), random)
        prior = given_prior.update_parameters(moved.prior, moved.sizes, random)
        particles[place] = moved._replace(prior=prior)
    best = max(particles, key=lambda particle: particle.log_joint(model))
    labels = best.labels[len(kept) :]
    particles = [p._replace(labels=p.labels[first:]) for p in particles]
    # The most probable particle comes first, where callers expect it.
    particles.sort(key=lambda particle: particle.statistics is not best.statistics)
    return Stream(model, given_prior, rows[first:], particles, n_seen, random), labels


def _visit(
    model: BoundModel,
    particle: Particle,
    rows: np.ndarray,
    order: np.ndarray,
    random: np.random.Generator,
) -> tuple[Particle, float]:
    """Draw the clusters of some rows; return the particle, and new rows' log predictive density."""
    labels, sizes, statistics, prior, hyper = particle
    model, labels = model.with_hyper(hyper), labels.copy()
    top = int(sizes.max(initial=0)) + len(order) + 1
    join = np.concatenate([[-np.inf], prior.log_join(np.arange(1, top))])
    opening = prior.log_open(np.arange(len(sizes) + len(order) + 1)) + prior.log_size(np.ones(1))
    visit, log_predictive = 0, 0.0
    while visit < len(order):
        capacity = 2 * len(sizes) + 6
        clusters = model.clusters(capacity, statistics)
        sizes = np.concatenate([sizes, np.zeros(capacity - len(sizes), dtype=np.int64)])
        visit, _, log_sum = sweep(
            clusters, sizes, rows, order, visit, labels, NO_TARGET, join, opening, random, NOTHING
        )
        statistics, log_predictive = clusters.statistics, log_predictive + log_sum
    coming = labels < 0  # later rows of the batch have no cluster yet
    partition = drop_empty_clusters(np.where(coming, 0, labels), sizes, statistics)
    labels = np.where(coming, labels, partition.labels)
    return Particle(labels, partition.sizes, partition.statistics, prior, hyper), log_predictive


def _growth(prior: PartitionPrior, n_seen: int, n_more: int) -> float:
    """Return the increase of the prior's log normalizing constant with ``n_more`` rows.

    It is 0 for priors that are not consistent, in which particles do not differ.
    """
    if not prior.consistent:
        return 0.0
    before = prior.log_normalizer(n_seen) if n_seen else 0.0
    return prior.log_normalizer(n_seen + n_more) - before


def _resample(
    particles: Sequence[Particle], weights: np.ndarray, random: np.random.Generator
) -> list[Particle]:
    """Resample the particles by their weights (systematic resampling)."""
    marks = (random.random() + np.arange(len(particles))) / len(particles)
    chosen = np.searchsorted(np.cumsum(weights), marks).clip(max=len(particles) - 1)
    return [particles[place] for place in chosen]
