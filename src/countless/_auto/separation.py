"""Separation of clusters: the density valley between two adjacent clusters.

The density is estimated along two paths between clusters that share links of a neighbour graph: the
straight line from mean to mean, and the polyline from medoid to medoid via the medoid of the border
rows, which follows curved clusters. The kernel density estimate weights rows by a normal kernel of
their distance from the path, in units of the within-cluster covariance of the two clusters; rows of
all clusters are used. The product of two log-concave functions has log-concave marginals, so that
along a straight line through a log-concave density (normal, uniform on a box, exponential, ...)
there is no valley except by chance. The depth of a valley is ``log(lower mode / minimum)``, and its
significance is the depth in standard errors. Of the two paths the one with the less significant
valley counts, as a mountain pass is the best route across.

This is the ridgeline test of Hennig (2010) with an estimated density in place of a fitted one. The
fitted density is used, too: pieces of a curve or of a box that are modelled as normal clusters have
more rows at their borders than normal clusters would, by a factor of two and more. Overlapping
normal clusters have as many as expected, with or without a valley between them.

F. Chazal, L. Guibas, S. Oudot and P. Skraba, *Persistence-based clustering in Riemannian
manifolds*, Journal of the ACM 60, 2013.
C. Hennig, *Methods for merging Gaussian mixture components*, ADAC 4, 2010.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.linalg import solve_triangular

from countless._labels import number_by_appearance
from countless._threads import one_library_thread

# Points on a segment at which the density is evaluated, and bins of the binned kernel estimate.
N_PLACES, N_BINS = 32, 128
# Clusters of fewer rows have no covariance estimate.
FEWEST_ROWS = 3
# Rows are used up to this many bandwidths beyond the ends of a segment, and above this weight.
REACH, LEAST_WEIGHT = 4.0, 1e-3
# The within-cluster covariance is shrunk towards a multiple of the identity by this share, and more
# if there are few rows for the dimension.
SHRINKAGE = 0.05
# Variance attributed to equal rows, as a share of the total variance.
LEAST_SPREAD = 1e-6


class Valley(NamedTuple):
    """The density valley between two clusters."""

    depth: float  # log ratio of the lower mode to the minimum
    error: float  # its standard error
    excess: float  # log ratio of rows at the border to those expected of two normal clusters


NO_VALLEY = Valley(0.0, 1.0, 0.0)


class Separation(NamedTuple):
    """Density valleys between all clusters that share links."""

    pairs: np.ndarray  # (n_pairs, 2), the first smaller than the second
    n_links: np.ndarray  # (n_pairs,)
    depth: np.ndarray  # (n_pairs,), of the valley between the two
    error: np.ndarray  # (n_pairs,), of the depth
    excess: np.ndarray  # (n_pairs,), of rows at the border
    level: np.ndarray  # (n_clusters,), log density at the mode of a fitted normal
    level_error: np.ndarray  # (n_clusters,)

    @property
    def n_clusters(self) -> int:
        """The number of clusters."""
        return len(self.level)

    @property
    def significance(self) -> np.ndarray:
        """The depth of each valley in standard errors."""
        return self.depth / self.error

    def strongest(self) -> float:
        """Return the significance of the most significant valley, 0 if there is none."""
        return float(self.significance.max(initial=0.0))

    def merge(self, least: float | None = None) -> np.ndarray:
        """Return the group of each cluster after merging those without a significant valley.

        By default the threshold is ``sqrt(2 log(n_clusters))``, about the expected maximum of as
        many standard normal variables: a correction for multiple comparisons. Saddle points are
        visited from the highest to the lowest density; two groups are merged if the persistence of
        the lower of their modes above the saddle is not significant (Chazal and others, 2013). So
        two dense clusters that are linked by a thin background are not merged.
        """
        if least is None:
            least = float(np.sqrt(2 * np.log(self.n_clusters)))
        group, peak = np.arange(self.n_clusters), np.arange(self.n_clusters)
        one, other = self.pairs.T
        passes = np.minimum(self.level[one], self.level[other]) - self.depth
        for i in np.argsort(-passes, kind="stable"):
            a, b = group[one[i]], group[other[i]]
            if a == b:
                continue
            lower, higher = (a, b) if self.level[peak[a]] < self.level[peak[b]] else (b, a)
            height = self.level[peak[lower]] - passes[i]
            errors = self.error[i], self.level_error[peak[lower]]
            if height < least * np.linalg.norm(errors):
                group[group == lower] = higher
        return number_by_appearance(group)[1]


def separation(X: np.ndarray, labels: np.ndarray, links: sp.csr_array) -> Separation:
    """Measure how well the clusters of rows are separated.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_features)
    labels : ndarray of int of shape (n_rows,)
        0, 1, ..., all of which occur.
    links : CSR array of shape (n_rows, n_rows)
        A symmetric nearest-neighbour graph of the rows.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from sklearn.neighbors import kneighbors_graph
    >>> X, y = make_blobs(600, centers=[[0, 0], [4, 0]], random_state=0)
    >>> links = kneighbors_graph(X, 10)
    >>> links = links + links.T
    >>> bool(separation(X, y, links).strongest() > 3)
    True
    >>> halves = (X[:, 1] > 0).astype(int)
    >>> bool(separation(X, halves, links).strongest() < 1)
    True
    """
    n_clusters = int(labels.max()) + 1
    row = np.repeat(np.arange(len(labels)), np.diff(links.indptr))
    one, other = labels[row], labels[links.indices]
    crossing = one != other
    low, high = np.minimum(one, other)[crossing], np.maximum(one, other)[crossing]
    key = low.astype(np.int64) * n_clusters + high
    order = np.argsort(key, kind="stable")
    at_border = row[crossing][order]
    pairs, starts, n_links = np.unique(key[order], return_index=True, return_counts=True)
    members = np.split(np.argsort(labels, kind="stable"), np.cumsum(np.bincount(labels))[:-1])
    found = np.empty((len(pairs), 3))
    with one_library_thread():  # matrices are small
        for i, (pair, start, count) in enumerate(zip(pairs, starts, n_links, strict=True)):
            a, b = divmod(int(pair), n_clusters)
            border = np.unique(at_border[start : start + count])
            found[i] = valley(X, members[a], members[b], border)
    ends = np.c_[pairs // n_clusters, pairs % n_clusters]
    depth, error, excess = found.T
    return Separation(ends, n_links, depth, error, excess, *_levels(X, members))


def valley(X: np.ndarray, one: np.ndarray, other: np.ndarray, border: np.ndarray) -> Valley:
    """Return the density valley between two clusters of rows.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_features)
    one, other : ndarray of int
        The rows of the two clusters.
    border : ndarray of int
        The rows of either that are linked to the other.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = np.vstack([rng.normal(size=(300, 2)), rng.normal(size=(300, 2)) + [4, 0]])
    >>> border = np.flatnonzero(np.abs(X[:, 0] - 2) < 0.3)
    >>> bool(valley(X, np.arange(300), np.arange(300, 600), border).depth > 0.5)
    True
    """
    if min(len(one), len(other)) < FEWEST_ROWS:
        return NO_VALLEY
    rows = _whiten(X, one, other)
    if rows is None:  # rows of each cluster are equal: no covariance
        return NO_VALLEY
    # Silverman's rule, with the harmonic mean of the two cluster sizes.
    width = 1.06 * (2 / (1 / len(one) + 1 / len(other))) ** -0.2
    # The expected squared distance of the clusters' rows from the path.
    beside = float(max(X.shape[1] - 1, 1))
    ends = [rows[members].mean(axis=0) for members in (one, other)]
    bent = [_medoid(rows, members) for members in (one, border, other)]
    found = (_lowest(*_along(rows, way, width, beside)) for way in (ends, bent))
    depth, error = min(found, key=lambda one: one[0] / one[1])
    return Valley(depth, error, _excess([rows[one], rows[other]], width, beside))


def _whiten(X: np.ndarray, one: np.ndarray, other: np.ndarray) -> np.ndarray | None:
    """Whiten all rows by the within-cluster covariance of two clusters; None if it is zero."""
    a, b = X[one], X[other]
    a, b = a - a.mean(axis=0), b - b.mean(axis=0)
    n, d = len(a) + len(b), X.shape[1]
    within = (a.T @ a + b.T @ b) / n
    scale = np.trace(within) / d
    if not scale > 0:
        return None
    shrinkage = min(1.0, SHRINKAGE + 2 * d / n)
    within = (1 - shrinkage) * within + shrinkage * scale * np.eye(d)
    return solve_triangular(np.linalg.cholesky(within), (X - X[one[0]]).T, lower=True).T


def _medoid(rows: np.ndarray, members: np.ndarray) -> np.ndarray:
    """Return the row nearest to the mean of some rows."""
    own = rows[members]
    return own[np.square(own - own.mean(axis=0)).sum(axis=1).argmin()]


def _along(
    rows: np.ndarray, way: list[np.ndarray], width: float, beside: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return sums of kernels, and of their squares, at points on a polyline."""
    parts = []
    for start, end in pairwise(way):
        length = float(np.linalg.norm(end - start))
        from_start = rows - start
        along = from_start @ ((end - start) / length) if length > 0 else np.zeros(len(rows))
        weight = np.exp(-0.5 * _squares_beside(from_start, along) / beside)
        low, high = -REACH * width, length + REACH * width
        near = (weight > LEAST_WEIGHT) & (along > low) & (along < high)
        places = ((along[near] - low) * (N_BINS / (high - low))).astype(np.int64)
        bins = np.minimum(places, N_BINS - 1)
        middles = low + (np.arange(N_BINS) + 0.5) * (high - low) / N_BINS
        kernel = np.exp(-0.5 * ((np.linspace(0, length, N_PLACES)[:, None] - middles) / width) ** 2)
        sums = kernel @ np.bincount(bins, weight[near], N_BINS)
        squares = kernel**2 @ np.bincount(bins, weight[near] ** 2, N_BINS)
        parts.append((sums, squares))
    return np.concatenate([part[0] for part in parts]), np.concatenate([part[1] for part in parts])


def _squares_beside(rows: np.ndarray, along: np.ndarray) -> np.ndarray:
    """Return the squared distance of rows from a line, given their coordinates along it.

    Rounding makes it negative for rows that are far away in units of very tight clusters.
    """
    return np.maximum(np.square(rows).sum(axis=1) - along**2, 0.0)


def _lowest(sums: np.ndarray, squares: np.ndarray) -> tuple[float, float]:
    """Return the depth of the valley at the minimum along a path, and its standard error."""
    # Kernel sums are about Poisson: a pseudo-count of one half keeps the depth finite.
    density = sums + 0.5
    bottom = int(density.argmin())
    left, right = int(density[: bottom + 1].argmax()), bottom + int(density[bottom:].argmax())
    mode = left if density[left] < density[right] else right
    variance = squares[mode] / density[mode] ** 2 + (squares[bottom] + 0.5) / density[bottom] ** 2
    return float(np.log(density[mode] / density[bottom])), float(np.sqrt(variance))


def _excess(clusters: list[np.ndarray], width: float, beside: float) -> float:
    """Return the log ratio of observed to expected rows at the border of two clusters.

    Expected are those of two normal clusters. Rows are weighted by a normal kernel about the point
    on the line between the means where the expected density is lowest.
    """
    start, end = (rows.mean(axis=0) for rows in clusters)
    length = float(np.linalg.norm(end - start))
    if not length > 0:
        return 0.0
    direction = (end - start) / length
    places = start + np.linspace(0, length, N_PLACES)[:, None] * direction
    d = len(start)
    kernel = beside * np.eye(d) + (width**2 - beside) * np.outer(direction, direction)
    expected = np.zeros(N_PLACES)
    for rows in clusters:
        center = rows.mean(axis=0)
        spread = kernel + (rows - center).T @ (rows - center) / len(rows)
        scale = np.linalg.slogdet(kernel)[1] - np.linalg.slogdet(spread)[1]
        away = places - center
        squares = (away * np.linalg.solve(spread, away.T).T).sum(axis=1)
        expected += len(rows) * np.exp(0.5 * (scale - squares))
    fewest = int(expected.argmin())
    away = np.vstack(clusters) - places[fewest]
    along = away @ direction
    squares = along**2 / width**2 + _squares_beside(away, along) / beside
    observed = np.exp(-0.5 * squares).sum()
    return float(np.log((observed + 0.5) / (expected[fewest] + 0.5)))


def _levels(X: np.ndarray, members: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Return the log density at the modes of clusters, up to a constant, and its standard error.

    The densities are fitted normals; the errors are those of the number of rows and of the
    determinant of the covariance.
    """
    d = X.shape[1]
    scale = X.var(axis=0).sum() / d
    level, error = np.empty(len(members)), np.empty(len(members))
    for cluster, rows in enumerate(members):
        n = len(rows)
        away = X[rows] - X[rows].mean(axis=0)
        spread = away.T @ away / n
        # Shrink to a spherical covariance if rows are few, with a lower bound on the variance.
        share = min(1.0, SHRINKAGE + 2 * d / n)
        ball = max(np.trace(spread) / d, LEAST_SPREAD * scale) or 1.0
        spread = (1 - share) * spread + share * ball * np.eye(d)
        level[cluster] = np.log(n) - 0.5 * np.linalg.slogdet(spread)[1]
        error[cluster] = np.sqrt((1 + d / 2) / n)
    return level, error
