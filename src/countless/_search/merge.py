"""Merging clusters in pairs, by the exact cost of each merge."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from countless._data import Backend, Summary


@dataclass(frozen=True)
class Pairs:
    """Constants of the comparison of pairs of clusters; they change its time and memory."""

    # Candidate partners per cluster where merge costs are only estimated, to second order.
    n_partners: int = 8
    # Values computed at once; then bounds on the side of a tile of cluster pairs, which has one
    # pair for each `bytes_a_pair` bytes of the table.
    chunk_values: int = 2**14
    least_tile: int = 64
    most_tile: int = 256
    bytes_a_pair: int = 2048
    # Above this many clusters, costs are compared in float32 first.
    many_clusters: int = 1024


PAIRS = Pairs()


# The nearest neighbours of all clusters and their distances, then the second nearest, ...
Listed = Iterable[tuple[np.ndarray, np.ndarray]]


def profitable_merges(
    rows: Backend, summary: Summary, limit: float, listed: Listed | None = None
) -> np.ndarray:
    """Return pairs of clusters that are each other's cheapest merge, if cheaper than the limit.

    With neighbour lists ``listed``, partners are searched among the listed clusters only.

    Merging such reciprocal nearest neighbours at once, and again until none is left, gives the same
    clusters as merging the cheapest pair one at a time (Ward's linkage): no merge becomes cheaper
    by other merges (reducibility; exact for squared Euclidean distance).
    """
    fixed_point = rows.fixed_point
    pairs = _candidate_pairs(rows, summary, listed)
    a, b = pairs.T
    energy = fixed_point.energy(summary)
    joined = summary.take(a)
    joined.add(summary.take(b))
    cost = fixed_point.energy(joined) - energy[a] - energy[b]
    order = np.argsort(cost, kind="stable")
    # The first pair of a cluster in the order of costs is the one with its cheapest partner.
    first = np.full(len(summary.weight), len(order))
    for side in (a, b):
        np.minimum.at(first, side[order], np.arange(len(order)))
    place = np.flatnonzero((first[a[order]] == first[b[order]]) & (cost[order] < limit))
    place = place[first[a[order[place]]] == place]
    return pairs[order[place]]


def _candidate_pairs(rows: Backend, summary: Summary, listed: Listed | None) -> np.ndarray:
    """Return pairs (a, b), a < b, that are among the cheapest merges of a or of b."""
    if listed is not None:
        found = _cheapest_listed(summary.weight, listed)
    else:
        exact = rows.fixed_point.divergence.has_ward_costs
        found = (_cheapest if exact else _cheap)(rows, summary)
    found = np.sort(found, axis=1)
    return np.unique(found[found[:, 0] != found[:, 1]], axis=0)


def _cheapest_listed(weight: np.ndarray, listed: Listed) -> np.ndarray:
    """Return each cluster with its cheapest listed partner, by the lists' distance bounds."""
    own = np.arange(len(weight))
    partner, least = own.copy(), np.full(len(weight), np.inf)
    for other, gap in listed:
        cost = gap.astype(np.float64) ** 2 * (weight[other] / (weight + weight[other]))
        better = (cost < least) & (other != own)
        partner[better], least[better] = other[better], cost[better]
    return np.column_stack([own, partner])


def _cheapest(rows: Backend, summary: Summary) -> np.ndarray:
    """Return each cluster with its cheapest partner, by squared Euclidean distance."""
    fixed_point, k = rows.fixed_point, len(summary.weight)
    # With very many clusters float32 is accurate enough to choose candidates.
    kind = np.float32 if k > PAIRS.many_clusters else np.float64
    weight = fixed_point.weights(summary)
    share = (weight / weight.max()).astype(kind)
    tile = int(
        np.clip(
            np.sqrt(fixed_point.n_bytes / PAIRS.bytes_a_pair), PAIRS.least_tile, PAIRS.most_tile
        )
    )
    parts = [slice(at, min(at + tile, k)) for at in range(0, k, tile)]

    def means(part: slice) -> np.ndarray:
        seen = np.empty((part.stop - part.start, fixed_point.n_features), dtype=kind)
        np.multiply(
            summary.total[part], fixed_point.step / fixed_point.unit, out=seen, casting="same_kind"
        )
        seen /= weight[part, None]
        return seen

    def best_among(others: slice, part: slice, own: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        other = means(others)
        cost = own @ other.T
        cost *= -2
        cost += np.einsum("ij,ij->i", other, other)
        cost += np.einsum("ij,ij->i", own, own)[:, None]
        both = share[part, None] + share[others]
        cost *= np.divide(share[others], both, out=both)
        if others == part:
            np.fill_diagonal(cost, np.inf)
        best = cost.argmin(axis=1)
        return best, np.take_along_axis(cost, best[:, None], axis=1)[:, 0]

    def partners(part: slice) -> np.ndarray:
        own = means(part)
        least, partner = np.full(len(own), np.inf), np.zeros(len(own), dtype=np.int64)
        for others in parts:
            best, value = best_among(others, part, own)
            partner = np.where(value < least, others.start + best, partner)
            least = np.minimum(value, least)
        return partner

    found = np.concatenate(rows.each(partners, [(part,) for part in parts]))
    return np.column_stack([np.arange(k), found])


def _cheap(rows: Backend, summary: Summary) -> np.ndarray:
    """Return each cluster with partners whose merge is cheap to second order in the divergence."""
    fixed_point, k = rows.fixed_point, len(summary.weight)
    weight, mean = fixed_point.weights(summary), fixed_point.means(summary)
    weight = weight / weight.max()
    slope, offset = fixed_point.divergence.slope_offset(mean)
    own_cost = fixed_point.divergence.row_cost(mean)
    n_partners = min(PAIRS.n_partners, k - 1)

    def partners(start: int, stop: int) -> np.ndarray:
        part = np.arange(start, stop)
        cost = own_cost[part, None] + offset - mean[part] @ slope.T
        cost *= weight[part, None] * weight / (weight[part, None] + weight)
        cost[np.arange(len(part)), part] = np.inf
        nearest = np.argpartition(cost, n_partners - 1, axis=1)[:, :n_partners]
        return np.column_stack([np.repeat(part, n_partners), nearest.ravel()])

    step = max(16, PAIRS.chunk_values // k)
    spans = [(start, min(start + step, k)) for start in range(0, k, step)]
    return np.concatenate(rows.each(partners, spans))
