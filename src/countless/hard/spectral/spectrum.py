"""Choosing the penalty from a graph's spectrum: which number of eigenvalues stands out.

With ``gap[k] = 1 - k-th eigenvalue`` (0 for the first), k eigenvalues are above every penalty from
``1 - gap[k+1]`` to ``1 - gap[k]``: a plateau, whose width is ``log(gap[k+1] / gap[k])``. Two
witnesses say whether it means k clusters:

* its width. A shape without clusters has overtones: whatever its first gap g is, 4 g, 9 g, 16 g are
  in its spectrum too, as in that of a string, a ring or a box, and other shapes have more. So a
  plateau must reach beyond the next overtone.
* its compactness. In k eigenvectors, the rows of k clusters are k points. Rows of a shape without
  clusters lie on a curve, of which k centers leave at least about a tenth of the k - 1 dimensions
  unexplained (8 / pi**2 is explained for a string and k = 2).

Of the numbers for which both speak, the largest is chosen: clusters of clusters are not the answer.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from countless.hard.penalty import Plateau
from countless.hard.spectral.eigen import SMALL
from countless.hard.spectral.embedding import first_unexplained, unexplained
from countless.hard.spectral.laplacian import Form, indicators
from countless.hard.spectral.necks import Necks

# A plateau must be wider by this than overtones explain.
MARGIN = 0.2
# What the centers may leave unexplained, as a share of k - 1. Of 300 structureless clouds, curves
# and rings of 100 to 3,000 rows that no constant was chosen on, seven were not one cluster.
MOST_UNEXPLAINED = 1 / 12
# What one cluster more may leave on average: a string cut in two leaves 1 - 8 / pi**2 = 0.19.
MOST_ADDED = 1 / 6
# Clusters have so many rows on average at least.
ROWS_A_CLUSTER = 16
# A gap below this is rounding.
NO_GAP = 1e-9
# Rows that stand for all when the spectrum of a large graph is looked over, and the slack there.
FEWEST_SEEDS, MOST_SEEDS, ROWS_A_SEED, SEEDS_A_CLUSTER = 384, 1024, 12, 4
SLACK = 0.1
# Above so many times what may be left, centers that move do not help.
NEARLY = 1.3


class SpectrumPath:
    """How many eigenvalues are above every penalty, and the plateau that stands out.

    Attributes
    ----------
    eigenvalues : ndarray
        The leading ones, descending.
    breakpoints : ndarray
        Penalties at which the number changes, ascending.
    plateaus : list of Plateau
        The chosen one, then the others by score. ``width`` is on a log scale of ``1 - penalty``;
        ``null_width`` is infinite where the rows are not compact. One cluster has no null width:
        its score is what the best of the others lacks.
    penalty, n_clusters : float, int
        Those of the chosen plateau.
    confidence : float
        From 0 (a tie) to 1. For two clusters or more: by how much the width and the compactness
        exceed what is needed, whichever says less. For one cluster: one minus how far the nearest
        rival came. Where necks were looked for: by how much the shallowest neck between clusters
        exceeds the depth that is needed, or how much the deepest neck falls short of it.
    necks : Necks or None
        Depths of necks and the clusters between them, where no plateau stands out; the first
        plateau then has the shallowest accepted depth and the null depth for its widths.
    """

    def __init__(
        self,
        eigenvalues: np.ndarray,
        vectors: np.ndarray,
        root: np.ndarray,
        necks: Necks | None = None,
    ):
        self.necks = necks
        self.eigenvalues = eigenvalues
        self._gap = gap = _gaps(eigenvalues)
        widths, overtones = plateau_widths(gap)
        last = min(len(gap) - 1, len(root) // ROWS_A_CLUSTER)
        wide = [k for k in range(2, last + 1) if widths[k - 1] >= overtones[k - 1] + MARGIN]
        best, rests = _finest(wide, vectors, root)
        best = max(best, int((gap == 0).sum()))  # components are apart whatever their size
        found = []
        for k in range(2, len(gap)):
            if widths[k - 1] > 0:
                compact = rests.get(k, 0.0) <= MOST_UNEXPLAINED
                null = float(overtones[k - 1] + MARGIN) if compact else np.inf
                width = float(widths[k - 1])
                found.append(Plateau(k, *self._ends(k), width, null, width - null))
        if best == len(gap) > 1:  # every row is alone
            found.append(Plateau(best, *self._ends(best), np.inf, 0.0, np.inf))
        lacking = -max((plateau.score for plateau in found), default=-np.inf)
        found.append(Plateau(1, *self._ends(1), np.inf, np.inf, lacking))
        found.sort(key=lambda plateau: (plateau.n_clusters != best, -plateau.score))
        if necks is not None and necks.n_clusters > 1:
            depth = float(necks.depths[necks.depths > necks.null_depth].min(initial=np.inf))
            k, null = necks.n_clusters, necks.null_depth
            found = [plateau for plateau in found if plateau.n_clusters != k]
            found.insert(0, Plateau(k, *self._ends(k), depth, null, depth - null))
        self.plateaus = found
        self._rests = rests

    def __repr__(self) -> str:
        return (
            f"SpectrumPath(n_clusters={self.n_clusters}, penalty={self.penalty:.6g}, "
            f"confidence={self.confidence:.2f})"
        )

    @property
    def breakpoints(self) -> np.ndarray:
        return np.unique(self.eigenvalues[1:])

    @property
    def n_clusters(self) -> int:
        return self.plateaus[0].n_clusters

    @property
    def penalty(self) -> float:
        """The middle of the chosen plateau, on a log scale of ``1 - penalty``."""
        k = self.n_clusters
        if k == len(self._gap):
            return 0.0
        high = self._gap[k]
        return 1.0 - float(np.sqrt(max(self._gap[k - 1], 1e-2 * high) * high))

    @property
    def confidence(self) -> float:
        best, *others = self.plateaus
        if self.necks is not None:
            return self.necks.confidence
        if best.n_clusters > 1:
            rest = self._rests.get(best.n_clusters, 0.0) / MOST_UNEXPLAINED
            return 1.0 - max(best.null_width / best.width, rest)
        came = (
            min(1.0, other.width / other.null_width)
            if np.isfinite(other.null_width)
            else MOST_UNEXPLAINED / self._rests[other.n_clusters]
            for other in others
        )
        return 1.0 - max(came, default=1.0)  # nothing to judge by

    def n_clusters_at(self, penalty: float) -> int:
        """Return how many eigenvalues are above a penalty, and at least 1."""
        return max(1, int((self.eigenvalues > penalty).sum()))

    def _ends(self, k: int) -> tuple[float, float]:
        low = self.eigenvalues[k] if k < len(self.eigenvalues) else -1.0
        return float(low), float(self.eigenvalues[k - 1])


def _gaps(eigenvalues: np.ndarray) -> np.ndarray:
    gap = 1.0 - eigenvalues
    return np.where(gap < NO_GAP, 0.0, gap)


def _finest(
    candidates: list[int], vectors: np.ndarray, root: np.ndarray
) -> tuple[int, dict[int, float]]:
    """Return the largest number whose rows are compact, and what was left of all looked at.

    A number gives way to a smaller one if what it adds to that is not compact: one cluster too many
    among many good ones hardly shows in the average.
    """
    best, rests = 1, dict[int, float]()
    for k in reversed(candidates):
        rest = (best - 1) * rests.get(best, 0.0)
        if best > 1 and rest <= MOST_ADDED * (best - k):
            break  # not even perfect clusters would say that more were added
        rests[k] = unexplained(vectors[:, :k], root)
        if rests[k] <= MOST_UNEXPLAINED:
            added = (rest - (k - 1) * rests[k]) / (best - k)
            if best == 1 or added > MOST_ADDED:
                best = k
    return best, rests


def plateau_widths(gap: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the width of the plateau at k = 1, 2, ..., and what overtones explain of each.

    Examples
    --------
    >>> widths, overtones = plateau_widths(np.array([0.0, 1.0, 4.0, 9.0]))  # a string
    >>> bool(np.allclose(widths[1:], overtones[1:]))
    True
    """
    low, high = gap[:-1], gap[1:]
    with np.errstate(divide="ignore", invalid="ignore"):
        widths = np.where(high > 0, np.log(high / low), 0.0)
    positive = gap[gap > 0]
    if not len(positive):
        return widths, np.full(len(low), np.inf)
    # The square roots of a string's gaps are the whole numbers; those just below count as reached.
    reached = np.floor(np.sqrt(low / positive[0]) + 1e-3)
    next_overtone = (reached + 1) ** 2 * positive[0]
    overtones = np.log(4 * np.ones(len(low)))
    np.log(next_overtone / np.where(low > 0, low, 1.0), out=overtones, where=low > 0)
    return widths, overtones


class FirstLook(NamedTuple):
    """What a look at the whole spectrum says before eigenvectors are computed."""

    most: int  # the largest number of clusters that could stand out
    groups: Any  # (n, m), orthonormal indicators of groups of rows
    vectors: np.ndarray  # (m, limit), the leading eigenvectors in their space

    def leading(self, count: int) -> np.ndarray:
        """Return so many vectors that are near the leading eigenvectors."""
        return self.groups @ self.vectors[:, :count]


def look_over(form: Form, affinity: Any, random: np.random.RandomState) -> FirstLook:
    """Look at the whole spectrum for the largest number that could stand out.

    Up to 512 rows that is the spectrum itself. Larger graphs are first gathered around some rows
    drawn at random: clusters keep their gaps in that, since their indicators are still in it.
    """
    n = form.matrix.shape[0]
    component = np.asarray(form.components)
    if n <= SMALL:
        groups, matrix, root = sp.eye_array(n, format="csr"), form.matrix, form.root
        slack, limit = 0.0, n
    else:
        seeds = _draw_seeds(component, random)
        component = component[seeds]
        groups = indicators(gather_around(affinity, seeds), form.root)
        matrix, root = groups.T @ (form.matrix @ groups), groups.T @ form.root
        slack, limit = SLACK, len(seeds) // SEEDS_A_CLUSTER
    limit = min(limit, n // ROWS_A_CLUSTER + 1, len(root))
    values, vectors = _by_component(matrix, component)
    widths, overtones = plateau_widths(_gaps(values[:limit]))
    wide = 2 + np.flatnonzero(widths[1:] >= overtones[1:] + MARGIN - slack)
    most = (1 + 2 * slack) * MOST_UNEXPLAINED
    for k in wide[::-1]:
        # Seldom is there need to move centers: that explains little more.
        rest = first_unexplained(vectors[:, :k], root)
        if rest <= most or (rest <= NEARLY * most and unexplained(vectors[:, :k], root) <= most):
            return FirstLook(int(k), groups, vectors)
    return FirstLook(1, groups, vectors)


def _draw_seeds(component: np.ndarray, random: np.random.RandomState) -> np.ndarray:
    """Return some rows, of every component one at least."""
    n = len(component)
    count = int(np.clip(n // ROWS_A_SEED, FEWEST_SEEDS, MOST_SEEDS))
    first = np.unique(component, return_index=True)[1]
    return np.unique(np.concatenate([random.choice(n, count, replace=False), first]))


def _by_component(matrix: Any, component: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return all eigenvalues of a graph, descending, and their vectors: those of its components."""
    matrix = matrix.toarray() if sp.issparse(matrix) else matrix
    order = np.argsort(component, kind="stable")
    values, vectors = np.empty(len(order)), np.zeros(matrix.shape)
    end = 0
    for size in np.bincount(component):
        start, end = end, end + size
        some = order[start:end]
        values[start:end], vectors[some, start:end] = np.linalg.eigh(matrix[np.ix_(some, some)])
    largest = np.argsort(-values, kind="stable")
    return values[largest], vectors[:, largest]


def gather_around(affinity: Any, seeds: np.ndarray) -> np.ndarray:
    """Give every row to a seed: the one most like it, or that of the most alike row that has one.

    Examples
    --------
    >>> path = sp.csr_array(np.array([[0, 2, 0, 0], [2, 0, 1, 0], [0, 1, 0, 3], [0, 0, 3, 0.0]]))
    >>> gather_around(path, np.array([0, 3])).tolist()
    [0, 0, 1, 1]
    """
    n = affinity.shape[0]
    labels = np.full(n, -1)
    labels[seeds] = np.arange(len(seeds))
    if not sp.issparse(affinity):
        rest = np.flatnonzero(labels < 0)
        labels[rest] = np.argmax(affinity[np.ix_(rest, seeds)], axis=1)
        return labels
    rows = np.repeat(np.arange(n), np.diff(affinity.indptr))
    columns, values = affinity.indices, affinity.data
    while (labels < 0).any():
        ready = labels[columns] >= 0
        at, to = rows[ready], columns[ready]
        order = np.lexsort((-values[ready], at))
        at, to = at[order], to[order]
        nearest = np.flatnonzero(np.diff(at, prepend=-1))
        new = nearest[labels[at[nearest]] < 0]
        labels[at[new]] = labels[to[new]]
        left = labels[rows] < 0
        rows, columns, values = rows[left], columns[left], values[left]
    return labels
