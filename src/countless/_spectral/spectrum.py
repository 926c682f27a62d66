"""Choosing the penalty from a graph's spectrum: the eigengap heuristic with two tests.

With ``gap[k] = 1 - k-th eigenvalue`` (0 for the first), that is, the k-th eigenvalue of the
Laplacian, k eigenvalues are above every penalty from ``1 - gap[k+1]`` to ``1 - gap[k]``: a plateau,
whose width is the log eigengap ``log(gap[k+1] / gap[k])``. Two tests decide whether it means k
clusters:

* its width. The Laplacian of a shape without clusters has overtones: if its first positive
  eigenvalue is g, then 4 g, 9 g, 16 g are in its spectrum too, as for a string, a ring or a box,
  and other shapes have more. So a plateau must extend beyond the next overtone.
* its compactness. In the embedding by k eigenvectors, k clusters are k points. Rows of a shape
  without clusters lie on a curve, for which k centers leave at least about a tenth of the variance
  in the k - 1 dimensions unexplained (8 / pi**2 is explained for a string and k = 2).

The largest number that passes both is chosen: clusters are preferred to groups of clusters.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from countless._labels import number_by_appearance
from countless._path.path import Calibration, Path, Plateau
from countless._show import Records
from countless._spectral.eigen import EIGEN_SEARCH
from countless._spectral.embedding import cluster_rows, first_unexplained, unexplained
from countless._spectral.laplacian import Form, indicators
from countless._spectral.necks import NECK_CALIBRATION, Necks


@dataclass(frozen=True)
class SpectrumTests:
    """Constants of both tests; ``benchmarks/spectral.py`` shows what they are worth."""

    # A plateau must be wider than the overtones of one shape by this margin.
    margin: float = 0.2
    # Largest unexplained variance, as a share of k - 1. Of 300 structureless clouds, curves and
    # rings of 100 to 3,000 rows that no constant was chosen on, seven were not one cluster.
    most_unexplained: float = 1 / 12
    # Largest unexplained variance per added cluster: a string cut in two leaves
    # 1 - 8 / pi**2 = 0.19.
    most_added: float = 1 / 6
    # Least average number of rows per cluster.
    rows_a_cluster: int = 16
    # Number of seeds of the coarsened graph from which the spectrum of a large graph is estimated,
    # and the slack of the tests there.
    fewest_seeds: int = 384
    most_seeds: int = 1024
    rows_a_seed: int = 12
    seeds_a_cluster: int = 4
    slack: float = 0.1
    # Above this multiple of the largest unexplained variance, iterating k-means does not help.
    nearly: float = 1.3
    # The largest score: on generated sets, wider margins, those of separate components above all,
    # are right no more often (`benchmarks/path_evidence.py --spectra`).
    most_score: float = 1.0


SPECTRUM_TESTS = SpectrumTests()
# Printed by `benchmarks/path_evidence.py --spectra`.
SPECTRUM_CALIBRATION = Calibration(intercept=-1.28, slope=2.01)


class SpectrumPath(Path):
    """The number of eigenvalues above every penalty, and the selected plateau.

    Attributes
    ----------
    eigenvalues : ndarray
        The leading ones, descending.
    breakpoints, plateaus, penalty, n_clusters, lead, confidence
        As in `Path`. ``width`` is on a log scale of ``1 - penalty``, and ``null_width`` what it has
        to exceed. The score is the margin, on a log scale, by which width and compactness pass
        their tests, whichever is smaller, and at most 1; one cluster has score 0. The lead is that
        over one cluster: coarser levels of a hierarchy that pass, too, are no rivals.
    necks : Necks or None
        Depths of necks and the clusters they separate, if no plateau was selected; the widths of
        the first plateau are then the shallowest accepted depth and the null depth, and the lead is
        that of the necks.
    """

    def __init__(
        self,
        eigenvalues: np.ndarray,
        vectors: np.ndarray,
        root: np.ndarray,
        necks: Necks | None = None,
    ):
        self.necks = necks
        self._vectors, self._root = vectors, root
        self._calibration = SPECTRUM_CALIBRATION if necks is None else NECK_CALIBRATION
        self.eigenvalues = eigenvalues
        self._gap = gap = _gaps(eigenvalues)
        widths, overtones = plateau_widths(gap)
        last = min(len(gap) - 1, len(root) // SPECTRUM_TESTS.rows_a_cluster)
        wide = [
            k
            for k in range(2, last + 1)
            if widths[k - 1] >= overtones[k - 1] + SPECTRUM_TESTS.margin
        ]
        best, rests = _finest(wide, vectors, root)
        best = max(best, int((gap == 0).sum()))  # connected components are clusters of any size
        found = []
        for k in range(2, len(gap)):
            if widths[k - 1] > 0:
                width, null = float(widths[k - 1]), float(overtones[k - 1] + SPECTRUM_TESTS.margin)
                with np.errstate(divide="ignore"):
                    compact = float(
                        np.log(SPECTRUM_TESTS.most_unexplained / np.float64(rests.get(k, 0.0)))
                    )
                score = min(width - null, compact, SPECTRUM_TESTS.most_score)
                found.append(Plateau(k, *self._ends(k), width, null, score))
        if best == len(gap) > 1:  # all clusters are singletons
            found.append(Plateau(best, *self._ends(best), np.inf, 0.0, SPECTRUM_TESTS.most_score))
        found.append(Plateau(1, *self._ends(1), np.inf, np.inf, 0.0))
        found.sort(key=lambda plateau: (plateau.n_clusters != best, -plateau.score))
        if necks is not None and necks.n_clusters > 1:
            depth = float(necks.depths[necks.depths > necks.null_depth].min(initial=np.inf))
            k, null = necks.n_clusters, necks.null_depth
            found = [plateau for plateau in found if plateau.n_clusters != k]
            found.insert(0, Plateau(k, *self._ends(k), depth, null, depth - null))
        self._plateaus = Records(found)

    @property
    def plateaus(self) -> list[Plateau]:
        return self._plateaus

    @property
    def breakpoints(self) -> np.ndarray:
        return np.unique(self.eigenvalues[1:])

    @property
    def lead(self) -> float:
        if self.necks is not None:
            return self.necks.lead
        return self.plateaus[0].score if self.n_clusters > 1 else super().lead

    def n_clusters_at(self, penalty: float) -> int:
        """Return how many eigenvalues are above a penalty, and at least 1."""
        return max(1, int((self.eigenvalues > penalty).sum()))

    def labels_at(self, penalty: float) -> np.ndarray:
        """Return clusters of the leading eigenvectors by k-means, numbered by first appearance."""
        return self._labels_of(self.n_clusters_at(penalty))

    def _labels_of(self, k: int) -> np.ndarray:
        if k == 1:
            return np.zeros(len(self._root), dtype=np.int32)
        rows = self._vectors[:, :k] / self._root[:, None]
        return number_by_appearance(cluster_rows(rows, self._root**2, "k-means").labels)[1]

    def stands_out(self, plateau: Plateau) -> bool:
        # Coarser plateaus than the chosen one have been tested for their width only.
        k = plateau.n_clusters
        return (
            super().stands_out(plateau)
            and k <= min(self._vectors.shape[1], len(self._root) // SPECTRUM_TESTS.rows_a_cluster)
            and unexplained(self._vectors[:, :k], self._root) <= SPECTRUM_TESTS.most_unexplained
        )

    def penalty_for(self, n_clusters: int) -> float:
        """Return the midpoint of a plateau, on a log scale of ``1 - penalty``."""
        if not 1 <= n_clusters <= len(self._gap):
            raise ValueError(
                f"n_clusters={n_clusters} is not on the path, which has 1 to {len(self._gap)}"
            )
        if n_clusters == len(self._gap):
            return 0.0
        high = self._gap[n_clusters]
        return 1.0 - float(np.sqrt(max(self._gap[n_clusters - 1], 1e-2 * high) * high))

    def _ends(self, k: int) -> tuple[float, float]:
        low = self.eigenvalues[k] if k < len(self.eigenvalues) else -1.0
        return float(low), float(self.eigenvalues[k - 1])


def _gaps(eigenvalues: np.ndarray) -> np.ndarray:
    gap = 1.0 - eigenvalues
    return np.where(gap < 1e-9, 0.0, gap)  # less is attributed to rounding


def _finest(
    candidates: list[int], vectors: np.ndarray, root: np.ndarray
) -> tuple[int, dict[int, float]]:
    """Return the largest number whose rows are compact, and the unexplained shares computed.

    A number is replaced by a smaller one if the clusters it adds are not compact: one spurious
    cluster among many good ones hardly changes the average.
    """
    best, rests = 1, dict[int, float]()
    for k in reversed(candidates):
        rest = (best - 1) * rests.get(best, 0.0)
        if best > 1 and rest <= SPECTRUM_TESTS.most_added * (best - k):
            break  # no smaller number can replace it, even if perfectly compact
        rests[k] = unexplained(vectors[:, :k], root)
        if rests[k] <= SPECTRUM_TESTS.most_unexplained:
            added = (rest - (k - 1) * rests[k]) / (best - k)
            if best == 1 or added > SPECTRUM_TESTS.most_added:
                best = k
    return best, rests


def plateau_widths(gap: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the width of the plateau at k = 1, 2, ..., and the width explained by overtones.

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
    # The square roots of a string's gaps are integers; values just below one are rounded up.
    reached = np.floor(np.sqrt(low / positive[0]) + 1e-3)
    next_overtone = (reached + 1) ** 2 * positive[0]
    overtones = np.log(4 * np.ones(len(low)))
    np.log(next_overtone / np.where(low > 0, low, 1.0), out=overtones, where=low > 0)
    return widths, overtones


class FirstLook(NamedTuple):
    """An approximation of the whole spectrum, before eigenvectors are computed."""

    most: int  # the largest number of clusters that may pass the tests
    groups: Any  # (n, m), orthonormal indicators of groups of rows
    vectors: np.ndarray  # (m, limit), the leading eigenvectors in their span

    def leading(self, count: int) -> np.ndarray:
        """Return approximations of the first ``count`` eigenvectors."""
        return self.groups @ self.vectors[:, :count]


def look_over(form: Form, affinity: Any, random: np.random.RandomState) -> FirstLook:
    """Find the largest number of clusters that may pass the tests, from the whole spectrum.

    Up to 512 rows the spectrum is exact. Larger graphs are coarsened around seeds drawn at random:
    clusters keep their eigengaps, since their indicators are still in the span of the groups.
    """
    n = form.matrix.shape[0]
    component = np.asarray(form.components)
    if n <= EIGEN_SEARCH.dense_rows:
        groups, matrix, root = sp.eye_array(n, format="csr"), form.matrix, form.root
        slack, limit = 0.0, n
    else:
        seeds = _draw_seeds(component, random)
        component = component[seeds]
        groups = indicators(gather_around(affinity, seeds), form.root)
        matrix, root = groups.T @ (form.matrix @ groups), groups.T @ form.root
        slack, limit = SPECTRUM_TESTS.slack, len(seeds) // SPECTRUM_TESTS.seeds_a_cluster
    limit = min(limit, n // SPECTRUM_TESTS.rows_a_cluster + 1, len(root))
    values, vectors = _by_component(matrix, component)
    widths, overtones = plateau_widths(_gaps(values[:limit]))
    wide = 2 + np.flatnonzero(widths[1:] >= overtones[1:] + SPECTRUM_TESTS.margin - slack)
    most = (1 + 2 * slack) * SPECTRUM_TESTS.most_unexplained
    for k in wide[::-1]:
        # Iterating k-means explains little more, so it is seldom needed.
        rest = first_unexplained(vectors[:, :k], root)
        if rest <= most or (
            rest <= SPECTRUM_TESTS.nearly * most and unexplained(vectors[:, :k], root) <= most
        ):
            return FirstLook(int(k), groups, vectors)
    return FirstLook(1, groups, vectors)


def _draw_seeds(component: np.ndarray, random: np.random.RandomState) -> np.ndarray:
    """Draw seed rows, at least one from every connected component."""
    n = len(component)
    count = int(
        np.clip(
            n // SPECTRUM_TESTS.rows_a_seed, SPECTRUM_TESTS.fewest_seeds, SPECTRUM_TESTS.most_seeds
        )
    )
    first = np.unique(component, return_index=True)[1]
    return np.unique(np.concatenate([random.choice(n, count, replace=False), first]))


def _by_component(matrix: Any, component: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return all eigenpairs of a graph, eigenvalues descending, computed by component."""
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
    """Assign every row to a seed: that of highest affinity or, in a sparse graph, by propagation.

    In a sparse graph a row takes the seed of its most similar neighbour that already has one.

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
