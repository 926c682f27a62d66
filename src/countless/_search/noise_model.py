"""A model of background: spherical clusters of a common variance, and uniform rows among them.

A row at squared distance ``d`` from its nearest of ``k`` centers in ``D`` dimensions has log
density ``log((1 - pi) / k) - D/2 log(2 pi_ s^2) - d / (2 s^2)`` in its cluster, and
``log(pi) - log(V)`` in the background, which is uniform over the box of volume ``V`` that bounds
all rows. They are equal at the *price*, the distance from which a row belongs to no cluster.

Where clusters are is not known before the background is gone. `sparse_rows` finds rows of low local
density first: the distance from the k-th nearest row is compared with that of random points of the
box, whose distribution background rows share, whatever the clusters and the dimension are. (Byers
and Raftery, *Nearest-neighbor clutter removal*, JASA 1998, fit Gamma densities instead.)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.spatial import cKDTree
from scipy.stats import chi2
from scipy.stats import f as f_distribution

from countless._data.validate import hash_uniform


@dataclass(frozen=True)
class NoiseModel:
    """Constants of the background; ``benchmarks/background.py`` shows what they are worth."""

    # Rows of the sample in which the first clusters are found.
    sampled_rows: int = 4096
    # Rounds in which the price follows the distances, and rounds in all.
    price_rounds: int = 10
    most_rounds: int = 100
    # Neighbors that measure the local density, and random points of the box.
    n_neighbors: int = 8
    n_points: int = 2048
    seed: int = 1
    # Iterations of the price; it is a fixed point of few steps.
    most_iterations: int = 50
    # A larger share is no background: then the rows have no clusters.
    largest_share: float = 0.5


NOISE_MODEL = NoiseModel()


class Box(NamedTuple):
    """The columns that vary, and the box that bounds the rows in them."""

    columns: np.ndarray
    low: np.ndarray
    high: np.ndarray

    @classmethod
    def around(cls, points: np.ndarray) -> Box:
        low, high = points.min(axis=0), points.max(axis=0)
        columns = np.flatnonzero(high > low)
        return cls(columns, low[columns], high[columns])

    @property
    def log_volume(self) -> float:
        return float(np.log(self.high - self.low).sum())

    def probes(self) -> np.ndarray:
        """Return points drawn uniformly from the box, always the same ones."""
        n_columns = len(self.columns)
        uniform = hash_uniform(
            np.arange(NOISE_MODEL.n_points * n_columns, dtype=np.uint64), NOISE_MODEL.seed
        )
        return self.low + uniform.reshape(NOISE_MODEL.n_points, n_columns) * (self.high - self.low)


class Nearest(NamedTuple):
    """The nearest center of each row, and the divergence from it."""

    label: np.ndarray  # (n_rows,)
    distance: np.ndarray  # (n_rows,)
    weight: np.ndarray  # (n_rows,)
    n_clusters: int

    def sums(self, values: np.ndarray, chosen: np.ndarray | None = None) -> np.ndarray:
        """Return the weighted sum of values in each cluster, of the chosen rows."""
        weight = self.weight if chosen is None else np.where(chosen, self.weight, 0.0)
        return np.bincount(self.label, weight * values, minlength=self.n_clusters)

    def cost(self, price: float) -> float:
        """Return the cost of all rows, where that of one is at most the price."""
        return float((self.weight * np.minimum(self.distance, price)).sum())


def neighbor_distances(points: np.ndarray, box: Box) -> tuple[np.ndarray, np.ndarray]:
    """Return the distances from the k-th nearest row, of the rows and of random points."""
    rows = points[:, box.columns]
    tree = cKDTree(rows)
    k = min(NOISE_MODEL.n_neighbors, len(rows) - 1)
    own = tree.query(rows, k=[k + 1])[0][:, 0]
    probes = tree.query(box.probes(), k=[k])[0][:, 0]
    return own, probes


def sparse_rows(own: np.ndarray, probes: np.ndarray) -> np.ndarray:
    """Mark the rows that are more likely background than not, by their local density.

    The share of background is that of rows beyond the median of the random points, doubled: beyond
    it are no clusters, but half the background. The threshold minimises the expected number of rows
    on the wrong side.
    """
    share = min(1.0, 2.0 * float((own > np.median(probes)).mean()))
    at = np.sort(own)
    beyond = 1.0 - np.arange(1, len(at) + 1) / len(at)
    wrong = 2.0 * share * np.searchsorted(np.sort(probes), at, side="right") / len(probes) + beyond
    return own > at[np.argmin(wrong)]


def quantile_price(near: Nearest, share: float) -> float:
    """Return a price at which as many rows are background as this share of the weight allows.

    It is halfway between the distances on its two sides, so that rounding decides no row; infinity
    if no row can be background.
    """
    order = np.argsort(near.distance, kind="stable")
    distance = near.distance[order]
    # Weight of the rows beyond each distance; rows of equal distance are on the same side.
    beyond = np.append(np.cumsum(near.weight[order][::-1])[::-1], 0.0)
    after = np.searchsorted(distance, distance, side="right")
    last = int(np.argmax(beyond[after] <= share * beyond[0]))
    if after[last] == len(distance):
        return np.inf
    return float(distance[last] + distance[after[last]]) / 2


def likely_price(near: Nearest, box: Box) -> float:
    """Return the price at which a row is as likely background as a row of its cluster.

    Infinity if there is no background, or none that explains the rows better than clusters alone.
    """
    n_columns, total = len(box.columns), near.weight.sum()
    price, far = np.inf, np.zeros(len(near.label), dtype=bool)
    # Half the rows are near, whatever the rest is.
    variance = quantile(near.distance, near.weight, 0.5) / chi2.median(n_columns)
    share = NOISE_MODEL.largest_share
    for _ in range(NOISE_MODEL.most_iterations):
        if variance <= 0 or not 0 < share <= NOISE_MODEL.largest_share:
            return np.inf
        odds = np.log((1 - share) / near.n_clusters) - np.log(share) + box.log_volume
        before = price
        price = variance * (2 * odds - n_columns * np.log(2 * np.pi * variance))
        if not price > 0:
            return np.inf
        far = near.distance > price
        share = float(near.weight[far].sum() / total)
        inside = near.weight[~far] @ near.distance[~far] / near.weight[~far].sum()
        variance = full_variance(inside / n_columns, price, n_columns)
        if price == before:
            break
    return price if share > 0 and _gain(near, box, far) > 0 else np.inf


def _gain(near: Nearest, box: Box, far: np.ndarray) -> float:
    """Return how much better the rows are explained with background than without, by BIC.

    Each cluster has its own variance here: otherwise the rows of a wide one count as background.
    """
    n_rows, n_columns = np.count_nonzero(near.weight), len(box.columns)
    share = float(near.weight[far].sum() / near.weight.sum())
    ones = np.ones(len(far))

    def log_density(chosen: np.ndarray) -> np.ndarray:
        weight = np.maximum(near.sums(ones, chosen), np.finfo(float).tiny)
        least = np.finfo(float).eps * float(near.distance.max()) + np.finfo(float).tiny
        variance = np.maximum(near.sums(near.distance, chosen) / weight / n_columns, least)
        log_weight = np.log(weight / weight.sum())
        constant = log_weight - 0.5 * n_columns * np.log(2 * np.pi * variance)
        return constant[near.label] - near.distance / (2 * variance[near.label])

    with_it = np.logaddexp(np.log(share) - box.log_volume, np.log1p(-share) + log_density(~far))
    gain = near.weight @ (with_it - log_density(np.ones(len(far), dtype=bool)))
    return float(gain - 0.5 * (1 + 2 * n_columns) * np.log(n_rows))


def quantile(values: np.ndarray, weight: np.ndarray, share: float) -> float:
    """Return the least value that so large a share of the weight does not exceed."""
    order = np.argsort(values, kind="stable")
    below = np.cumsum(weight[order])
    return float(values[order[np.searchsorted(below, share * below[-1])]])


def full_variance(variance: np.ndarray, price: float, n_columns: int) -> np.ndarray:
    """Return the variance of normal rows, given that of the rows within a price of their center.

    The mean square of a chi-squared variable within a limit has a closed form in the distribution
    functions of ``n_columns`` and ``n_columns + 2`` degrees of freedom; it is solved for the scale.
    """
    variance = np.asarray(variance, dtype=np.float64)
    full = variance
    for _ in range(NOISE_MODEL.most_iterations):
        limit = price / np.maximum(full, np.finfo(float).tiny)
        kept = chi2.cdf(limit, n_columns + 2) / np.maximum(chi2.cdf(limit, n_columns), 1e-300)
        # Where nearly all of it is cut off, the scale is not identified: at most twice is assumed.
        full = np.minimum(variance / np.maximum(kept, 0.5), 2 * variance)
    return full


def normal_scores(near: Nearest, price: float, n_columns: int) -> np.ndarray:
    """Return each row's p-value: how often a row of its cluster is at least as far from the center.

    Rows of a cluster are normal with a variance of its own, estimated from those within the price.
    """
    inside = near.distance <= price
    weight = near.sums(np.ones(len(inside)), inside)
    degrees = np.maximum(weight - 1, 0) * n_columns
    with np.errstate(divide="ignore", invalid="ignore"):
        variance = near.sums(near.distance, inside) / degrees
        variance = full_variance(variance, price, n_columns)
        ratio = near.distance / (n_columns * variance[near.label])
    scores = f_distribution.sf(ratio, n_columns, degrees[near.label])
    return np.where(np.isnan(scores), 1.0, scores)


def rank_scores(near: Nearest, price: float) -> np.ndarray:
    """Return each row's share of the rows of its cluster that are at least as far from the center.

    It counts itself, so that no row has 0.
    """
    scores = np.ones(len(near.label))
    inside = (near.distance <= price) & (near.weight > 0)
    for cluster in range(near.n_clusters):
        rows = np.flatnonzero(near.label == cluster)
        known = np.sort(near.distance[rows[inside[rows]]])
        beyond = len(known) - np.searchsorted(known, near.distance[rows], side="left")
        scores[rows] = np.minimum((1 + beyond) / (1 + len(known)), 1.0)
    return scores
