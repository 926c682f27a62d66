"""What sets each cluster apart, and which row is typical of it.

The difference of a cluster from the other rows, feature by feature, is measured in standard
deviations of the feature over all rows: ``(mean inside - mean outside) / deviation``. The typical
row is the one nearest to the mean of its cluster.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_matrix

from ..io.prepare import Feature

NOISE = -1
SMALLEST_DIFFERENCE = 0.2  # below this many deviations a difference sets nothing apart
_BLOCK = 4096


class Trait(NamedTuple):
    """One feature that sets a cluster apart, in the units of the table.

    For a numeric column ``inside`` and ``outside`` are means; for a level of a categorical column
    they are the shares of rows that have it.
    """

    column: str
    level: str | None
    inside: float
    outside: float
    difference: float


class ClusterSummary(NamedTuple):
    """One cluster; ``typical`` is the position of its typical row in the matrix."""

    label: int
    size: int
    share: float
    typical: int
    traits: list[Trait]


def summarize_clusters(
    X: np.ndarray,
    labels: np.ndarray,
    features: Sequence[Feature],
    *,
    weight: np.ndarray | None = None,
    n_traits: int = 4,
) -> list[ClusterSummary]:
    """Describe every cluster, the largest first and noise last.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        The rows that were clustered.
    labels : ndarray of shape (n_samples,)
        Their clusters; -1 is noise.
    features : sequence of Feature
        What each column of ``X`` stands for.
    weight : ndarray of shape (n_samples,), optional
        How often each row counts; the share of a cluster is its share of the weight.
    n_traits : int, default=4
        How many features to give for each cluster, at most.

    Returns
    -------
    list of ClusterSummary

    Examples
    --------
    >>> import numpy as np
    >>> from countless.io.prepare import Feature
    >>> X = np.array([[0.0], [0.2], [0.1], [5.0]])
    >>> first, second = summarize_clusters(
    ...     X, np.array([0, 0, 0, 1]), [Feature("length", None, 0.0, 1.0)]
    ... )
    >>> first.size, first.typical, round(first.traits[0].inside, 3)
    (3, 2, 0.1)
    >>> round(first.traits[0].outside, 3)
    5.0
    """
    weight = np.ones(len(X)) if weight is None else np.asarray(weight, dtype=np.float64)
    names, index = np.unique(labels, return_inverse=True)
    n_clusters = len(names)
    member = csr_matrix((weight, (index, np.arange(len(X)))), shape=(n_clusters, len(X)))
    mass = np.asarray(member.sum(axis=1)).ravel()
    total = np.asarray(member @ X, dtype=np.float64)
    inside = total / np.maximum(mass, np.finfo(float).tiny)[:, None]
    outside_mass = mass.sum() - mass
    outside = (total.sum(axis=0) - total) / np.maximum(outside_mass, np.finfo(float).tiny)[:, None]
    mean = total.sum(axis=0) / mass.sum()
    deviation = _deviation(X, mean, weight)
    difference = (inside - outside) / np.where(deviation > 0, deviation, np.inf)
    difference[outside_mass <= 0] = 0
    typical = _nearest_to_mean(X, index, inside)
    sizes = np.bincount(index, minlength=n_clusters)
    clusters = [
        ClusterSummary(
            int(names[c]),
            int(sizes[c]),
            float(mass[c] / mass.sum()),
            int(typical[c]),
            _traits(features, inside[c], outside[c], difference[c], n_traits),
        )
        for c in range(n_clusters)
    ]
    return sorted(clusters, key=lambda c: (c.label == NOISE, -c.share, c.label))


def _deviation(X: np.ndarray, mean: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Return the weighted standard deviation of each column, block by block."""
    squares = np.zeros(X.shape[1])
    for start in range(0, len(X), _BLOCK):
        block = slice(start, start + _BLOCK)
        squares += weight[block] @ np.square(X[block] - mean)
    return np.sqrt(squares / weight.sum())


def _nearest_to_mean(X: np.ndarray, index: np.ndarray, means: np.ndarray) -> np.ndarray:
    """Return the position of the row nearest to the mean of each cluster; the first of equals."""
    distance = np.empty(len(X))
    for start in range(0, len(X), _BLOCK):
        block = slice(start, start + _BLOCK)
        distance[block] = np.square(X[block] - means[index[block]]).sum(axis=1)
    order = np.lexsort((distance, index))
    return order[np.searchsorted(index[order], np.arange(len(means)))]


def _traits(
    features: Sequence[Feature],
    inside: np.ndarray,
    outside: np.ndarray,
    difference: np.ndarray,
    n_traits: int,
) -> list[Trait]:
    """Return the largest differences; of a categorical column the levels that are more common."""
    traits: list[Trait] = []
    for j in np.argsort(-np.abs(difference), kind="stable"):
        if abs(difference[j]) < SMALLEST_DIFFERENCE or len(traits) == n_traits:
            break
        feature = features[j]
        if feature.level is not None and difference[j] < 0:
            continue
        here, rest = (_in_units(feature, float(side[j])) for side in (inside, outside))
        traits.append(Trait(feature.column, feature.level, here, rest, float(difference[j])))
    return traits


def _in_units(feature: Feature, value: float) -> float:
    """Undo the scaling; what rounding left of a zero is zero."""
    original = feature.center + feature.scale * value
    return 0.0 if abs(original) < 1e-9 * feature.scale else original
