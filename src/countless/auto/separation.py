"""How well clusters are separated: the valley of density between two that are neighbours.

Two clusters that share no link of a neighbour graph are separated. For two that do, their rows are
projected on Fisher's discriminant direction, and a kernel estimate of the density is followed from
the median of one to the median of the other. Where it falls below the lower of the two modes there
is a valley, whose depth is ``log(lower mode / valley)``. One standard error is taken off, since few
rows show a valley by chance. Halves of one cluster have none, whatever its shape is otherwise; this
is the ridgeline test of Hennig (2010) with an estimated density in place of a fitted one.

C. Hennig, *Methods for merging Gaussian mixture components*, ADAC 4, 2010.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from countless._labels import number_by_appearance

# A valley of this depth, a factor of 20, separates as well as no link at all.
DEEPEST = 3.0
# Where the density is evaluated between two medians, and rows of a cluster that show it.
N_PLACES, MOST_SHOWN = 64, 2_000
# The covariance within two clusters is shrunk towards a multiple of the identity by this share, and
# more where the rows are few for their dimension.
SHRINKAGE = 0.05


class Separation(NamedTuple):
    """How well every two clusters are separated, and how many links cross between clusters."""

    depth: np.ndarray  # (k, k), from 0 to DEEPEST
    cut: float  # share of links that join rows of different clusters

    def weakest(self) -> np.ndarray:
        """Return the depth between each cluster and the one it is separated from least."""
        depth = self.depth.copy()
        np.fill_diagonal(depth, DEEPEST)
        return depth.min(axis=1)

    def merge(self, least: float) -> np.ndarray:
        """Return the group of each cluster when all that are separated by less are merged."""
        links = self.depth < least
        np.fill_diagonal(links, False)
        groups = connected_components(sp.csr_array(links), directed=False)[1]
        return number_by_appearance(groups)[1]


def separation(X: np.ndarray, labels: np.ndarray, links: sp.csr_array) -> Separation:
    """Measure how well the clusters of rows are separated.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_features)
    labels : ndarray of int of shape (n_rows,)
        0, 1, ..., all of which occur.
    links : CSR array of shape (n_rows, n_rows)
        A graph that links each row to its nearest neighbours.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from sklearn.neighbors import kneighbors_graph
    >>> X, y = make_blobs(200, centers=[[0, 0], [4, 0]], random_state=0)
    >>> links = kneighbors_graph(X, 10)
    >>> separation(X, y, links).weakest().round(2).tolist()
    [0.37, 0.37]
    >>> halves = (X[:, 1] > 0).astype(int)
    >>> separation(X, halves, links).weakest().tolist()
    [0.0, 0.0]
    """
    n_clusters = int(labels.max()) + 1
    one = np.repeat(labels, np.diff(links.indptr))
    other = labels[links.indices]
    crossing = one != other
    depth = np.full((n_clusters, n_clusters), DEEPEST)
    # Rows by cluster, so that the rows of one are a slice.
    order = np.argsort(labels, kind="stable")
    ends = np.searchsorted(labels[order], np.arange(n_clusters + 1))
    rows = X[order]
    low, high = np.minimum(one, other)[crossing], np.maximum(one, other)[crossing]
    for pair in np.unique(low.astype(np.int64) * n_clusters + high):
        a, b = divmod(int(pair), n_clusters)
        depth[a, b] = depth[b, a] = valley(rows[ends[a] : ends[a + 1]], rows[ends[b] : ends[b + 1]])
    return Separation(depth, float(crossing.mean()) if len(crossing) else 0.0)


def valley(a: np.ndarray, b: np.ndarray) -> float:
    """Return the depth of the valley of density between two clusters of rows, from 0 to 3.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> a, b = rng.normal(size=(300, 2)), rng.normal(size=(300, 2)) + [5, 0]
    >>> valley(a, b) > 1
    True
    >>> X = rng.uniform(size=(600, 2))
    >>> valley(X[X[:, 0] < 0.5], X[X[:, 0] >= 0.5])
    0.0
    """
    n_a, n_b = len(a), len(b)
    if min(n_a, n_b) < 2:
        return 0.0
    one, other = _project(a, b)
    start, end = np.median(one), np.median(other)
    spread = np.sqrt((one.var() + other.var()) / 2)
    if not end > start:
        return 0.0
    if spread == 0:  # rows of each cluster are equal, and those of the two differ
        return DEEPEST
    # Silverman's rule for as many rows as the harmonic mean of the two numbers.
    width = 1.06 * spread * (2 / (1 / n_a + 1 / n_b)) ** -0.2
    places = np.linspace(start, end, N_PLACES)
    # Sums of kernels are near Poisson: half a count keeps an empty valley from being infinite.
    density = 0.5 + _kernel_sum(one, places, width) + _kernel_sum(other, places, width)
    lowest = int(density.argmin())
    bottom, mode = density[lowest], min(density[: lowest + 1].max(), density[lowest:].max())
    # The variance of a sum of Gaussian kernels is the sum divided by the root of 2.
    error = np.sqrt((1 / mode + 1 / bottom) / np.sqrt(2))
    return float(np.clip(np.log(mode / bottom) - error, 0.0, DEEPEST))


def _project(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Project the rows of two clusters on Fisher's discriminant direction."""
    n, d = len(a) + len(b), a.shape[1]
    center_a, center_b = a.mean(axis=0), b.mean(axis=0)
    a, b = a - center_a, b - center_a
    within = (a.T @ a + (b - b.mean(axis=0)).T @ (b - b.mean(axis=0))) / n
    shrinkage = min(1.0, SHRINKAGE + 2 * d / n)
    scale = np.trace(within) / d
    if scale == 0:
        direction = center_b - center_a
    else:
        within = (1 - shrinkage) * within + shrinkage * scale * np.eye(d)
        direction = np.linalg.solve(within, center_b - center_a)
    return a @ direction, b @ direction


def _kernel_sum(values: np.ndarray, places: np.ndarray, width: float) -> np.ndarray:
    """Return the sum of Gaussian kernels about the values, by some of them where they are many."""
    step = -(-len(values) // MOST_SHOWN)
    shown = values[::step]
    sums = np.exp(-0.5 * ((places[:, None] - shown) / width) ** 2).sum(axis=1)
    return sums * (len(values) / len(shown))
