"""Distinguishing features and a typical row of each cluster.

The difference of a cluster from the other rows, feature by feature, is measured in standard
deviations of the feature over all rows: ``(mean inside - mean outside) / deviation``. The typical
row is the one nearest to the mean of its cluster.

Rows are processed in blocks, so that a table may be in a file or on other machines.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from .._labels import NOISE
from ..preprocess.prepare import Feature

SMALLEST_DIFFERENCE = 0.2  # smaller differences, in standard deviations, are not reported
_BLOCK = 4096
_TINY = np.finfo(float).tiny
_ROUNDING = 1e-6  # of the variance of a standardized 0/1 column in float32


class Trait(NamedTuple):
    """One distinguishing feature of a cluster, in the units of the table.

    For a numeric column ``inside`` and ``outside`` are means; for a level of a categorical column,
    or a binary column of 0 and 1, they are the shares of rows that have it.
    """

    column: str
    level: str | None
    inside: float
    outside: float
    difference: float
    binary: bool = False
    unit: str = ""  # of the column, as that of `Numbers`

    @property
    def is_share(self) -> bool:
        """Whether ``inside`` and ``outside`` are shares of rows."""
        return self.binary or self.level is not None


class ClusterSummary(NamedTuple):
    """One cluster; ``typical`` is the position of its typical row in the matrix.

    ``means`` are those of all features, in the units of the table; for a level of a categorical
    column the share of rows that have it.
    """

    label: int
    size: int
    share: float
    typical: int
    traits: list[Trait]
    means: Sequence[float] = ()


# Calls a function with (first row, rows, their labels, their weights or None) for every block of a
# table, and returns the results in order.
Visit = Callable[[Callable[..., Any]], Iterable]


class Sums(NamedTuple):
    """Sums of rows by cluster; noise (-1) is a label like any other here."""

    labels: np.ndarray  # (n_clusters,)
    size: np.ndarray  # (n_clusters,) rows
    mass: np.ndarray  # (n_clusters,) their weight
    total: np.ndarray  # (n_clusters, n_features)


def summarize_clusters(
    X: Any,
    labels: Any,
    features: Sequence[Feature],
    *,
    weight: np.ndarray | None = None,
    n_traits: int = 4,
    visit: Visit | None = None,
) -> list[ClusterSummary]:
    """Summarize every cluster, the largest first and noise last.

    Parameters
    ----------
    X : array of shape (n_samples, n_features)
        The rows that were clustered: anything with a length that can be sliced by rows.
    labels : ndarray of shape (n_samples,)
        Their clusters; -1 is noise.
    features : sequence of Feature
        The meaning of each column of ``X``.
    weight : ndarray of shape (n_samples,), optional
        Row weights; the share of a cluster is its share of the weight.
    n_traits : int, default=4
        Maximum number of features for each cluster.
    visit : callable, optional
        Calls a function for every block of rows; by default slices of ``X``, sequentially.

    Returns
    -------
    list of ClusterSummary

    Examples
    --------
    >>> import numpy as np
    >>> from countless.preprocess.prepare import Feature
    >>> X = np.array([[0.0], [0.2], [0.1], [5.0]])
    >>> first, second = summarize_clusters(
    ...     X, np.array([0, 0, 0, 1]), [Feature("length", None, 0.0, 1.0)]
    ... )
    >>> first.size, first.typical, round(first.traits[0].inside, 3)
    (3, 2, 0.1)
    >>> round(first.traits[0].outside, 3)
    5.0
    """
    visit = visit or partial(_visit_slices, X, labels, weight)
    sums = add_up(visit(sums_of_block))
    mass, total = sums.mass, sums.total
    means = total / np.maximum(mass, _TINY)[:, None]
    mean = total.sum(axis=0) / mass.sum()
    looks = visit(partial(spread_of_block, labels_known=sums.labels, means=means, mean=mean))
    squares, nearest = np.zeros(len(mean)), np.full(len(mass), np.inf)
    typical = np.zeros(len(mass), dtype=np.int64)
    for more, distance, place in looks:
        squares += more
        typical = np.where(distance < nearest, place, typical)
        nearest = np.minimum(distance, nearest)
    deviation = np.sqrt(squares / mass.sum())
    return summaries_of(sums, deviation, typical, features, n_traits=n_traits)


def distances_to_means(
    X: np.ndarray, labels: np.ndarray, weight: np.ndarray | None = None
) -> np.ndarray:
    """Return the Euclidean distance of each row from the mean of its cluster; NaN for noise.

    Examples
    --------
    >>> import numpy as np
    >>> distances_to_means(np.array([[0.0], [1.0], [7.0]]), np.array([0, 0, -1])).tolist()
    [0.5, 0.5, nan]
    """
    sums = add_up(_visit_slices(X, labels, weight, sums_of_block))
    means = sums.total / np.maximum(sums.mass, _TINY)[:, None]
    distance = np.empty(len(X))
    for at in range(0, len(X), _BLOCK):
        part = slice(at, at + _BLOCK)
        center = means[np.searchsorted(sums.labels, labels[part])]
        distance[part] = np.sqrt(np.square(X[part] - center).sum(axis=1))
    distance[labels == NOISE] = np.nan
    return distance


def summaries_of(
    sums: Sums,
    deviation: np.ndarray,
    typical: Sequence[int] | np.ndarray,
    features: Sequence[Feature],
    *,
    n_traits: int = 4,
) -> list[ClusterSummary]:
    """Summarize clusters from their sums, the deviation of each feature and their typical rows."""
    mass, total = sums.mass, sums.total
    inside = total / np.maximum(mass, _TINY)[:, None]
    outside_mass = mass.sum() - mass
    outside = (total.sum(axis=0) - total) / np.maximum(outside_mass, _TINY)[:, None]
    difference = (inside - outside) / np.where(deviation > 0, deviation, np.inf)
    difference[outside_mass <= 0] = 0
    binary = _are_binary(features, total.sum(axis=0) / mass.sum(), deviation)
    clusters = [
        ClusterSummary(
            int(sums.labels[c]),
            int(sums.size[c]),
            float(mass[c] / mass.sum()),
            int(typical[c]),
            _traits(features, inside[c], outside[c], difference[c], binary, n_traits),
            [_in_units(*pair) for pair in zip(features, inside[c].tolist(), strict=True)],
        )
        for c in range(len(mass))
    ]
    return sorted(clusters, key=lambda c: (c.label == NOISE, -c.share, c.label))


def sums_of_block(start: int, X: np.ndarray, labels: np.ndarray, weight: Any) -> Sums:
    """Sum a block's rows by cluster."""
    weight = np.ones(len(X)) if weight is None else np.asarray(weight, dtype=np.float64)
    names, index = np.unique(labels, return_inverse=True)
    total = np.empty((len(names), X.shape[1]))
    for j in range(X.shape[1]):
        total[:, j] = np.bincount(index, weights=weight * X[:, j], minlength=len(names))
    size = np.bincount(index, minlength=len(names))
    return Sums(names, size, np.bincount(index, weights=weight, minlength=len(names)), total)


def add_up(parts: Iterable[Sums]) -> Sums:
    """Merge the sums of one or more blocks."""
    parts = iter(parts)
    whole = next(parts)
    for part in parts:
        labels = np.union1d(whole.labels, part.labels)
        if len(labels) > len(whole.labels):
            whole = _spread_out(whole, labels)
        at = np.searchsorted(labels, part.labels)
        for into, sums in zip(whole[1:], part[1:], strict=True):
            into[at] += sums
    return whole


def _spread_out(sums: Sums, labels: np.ndarray) -> Sums:
    """Return the sums extended to more clusters."""
    at = np.searchsorted(labels, sums.labels)
    wide = [np.zeros((len(labels), *part.shape[1:]), dtype=part.dtype) for part in sums[1:]]
    for into, part in zip(wide, sums[1:], strict=True):
        into[at] = part
    return Sums(labels, *wide)


def spread_of_block(
    start: int, X: np.ndarray, labels: np.ndarray, weight: Any, *, labels_known, means, mean
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return a block's squares about the overall mean, and its rows nearest to cluster means.

    The latter as distances, infinite for clusters without rows in the block, and positions.
    """
    squares = np.square(X - mean)
    squares = squares.sum(axis=0) if weight is None else np.asarray(weight) @ squares
    index = np.searchsorted(labels_known, labels)
    distance = np.square(X - means[index]).sum(axis=1)
    order = np.lexsort((distance, index))
    first = np.searchsorted(index[order], np.arange(len(means)))
    nearest, place = np.full(len(means), np.inf), np.zeros(len(means), dtype=np.int64)
    present = np.unique(index)
    at = order[first[present]]
    nearest[present], place[present] = distance[at], start + at
    return squares, nearest, place


def _visit_slices(X: Any, labels: np.ndarray, weight: Any, function: Callable) -> Iterator[Any]:
    for at in range(0, len(X), _BLOCK):
        part = slice(at, at + _BLOCK)
        yield function(at, X[part], labels[part], None if weight is None else weight[part])


def _traits(
    features: Sequence[Feature],
    inside: np.ndarray,
    outside: np.ndarray,
    difference: np.ndarray,
    binary: np.ndarray,
    n_traits: int,
) -> list[Trait]:
    """Return the largest differences; for categorical columns, levels that are overrepresented."""
    traits: list[Trait] = []
    for j in np.argsort(-np.abs(difference), kind="stable"):
        if abs(difference[j]) < SMALLEST_DIFFERENCE or len(traits) == n_traits:
            break
        feature = features[j]
        if feature.level is not None and difference[j] < 0:
            continue
        here, rest = (_in_units(feature, float(side[j])) for side in (inside, outside))
        size = float(difference[j])
        own = (bool(binary[j]), feature.unit)
        traits.append(Trait(feature.column, feature.level, here, rest, size, *own))
    return traits


def _are_binary(features: Sequence[Feature], mean: np.ndarray, deviation: np.ndarray) -> np.ndarray:
    """Return which numeric features are 0 or 1 in every row: those with E[x^2] = E[x].

    For integers ``x (x - 1)`` is never negative, so that its mean is 0 for these alone.
    """
    binary = []
    for feature, center, spread in zip(features, mean, deviation, strict=True):
        share = feature.center + feature.scale * center
        variance = (feature.scale * spread) ** 2
        is_one = feature.level is None and abs(variance - share * (1 - share)) <= _ROUNDING
        binary.append(is_one and 0 < share < 1)
    return np.array(binary, dtype=bool)


def _in_units(feature: Feature, value: float) -> float:
    """Undo the scaling; residual rounding errors of zero become zero."""
    original = feature.center + feature.scale * value
    return 0.0 if abs(original) < 1e-9 * feature.scale else original
