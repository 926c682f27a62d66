"""Choosing between clusterings of one table: is there structure, which clustering, and how sure.

Two questions are kept apart.

*Is there more than one cluster?* Yes, if a valley of density between two clusters of a candidate is
more significant than those of structureless clouds (`countless.auto.separation`); if the connected
or the chained candidate finds several, which judge them by null references of their own; or if no
link between neighbours crosses from one cluster of a candidate to another.

*Which clustering?* Every candidate of two clusters or more is described by measurements of which
none knows the method. The components of the mixture serve as pieces: each piece is in the cluster
that most of its rows are in.

* cut: the share of links between neighbours that it cuts, as a logarithm;
* missed: the conditional entropy of the pieces merged where no significant valley separates them
  (`MergedMixture`), given the clustering: valleys all around a cluster that it does not cut;
* within: the share of links between pieces that are within its clusters across a valley, each
  weighted by the significance of that valley;
* tiles: the share of links between pieces that it cuts although there are more rows at the border
  than normal clusters have: pieces of a curve or a box;
* agreement: the highest adjusted mutual information with a clustering of another family;
* the logarithm of its number of clusters.

A weighted sum of these and a constant for the family makes a score; the share of ``exp(score)``
among all candidates is the candidate's evidence. The weights maximise the expected adjusted mutual
information with the truth when a candidate is drawn by its evidence, and a quarter for the right
number of clusters, on generated data sets that have clusters; the significance that a valley needs
is set to 5 % false alarms on those that have none. ``python benchmarks/auto_evidence.py`` prints
the constants. No public data set took part.

The choice is a Bayes estimate: the candidate of the highest expected agreement with the truth, were
the truth one of the candidates and these as probable as their evidence. So families that find the
same clusters, and share the evidence for them, do not lose to a single one.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.special import expit, softmax
from sklearn.metrics import adjusted_mutual_info_score

from countless.auto.separation import Separation, separation

# Added to the share of links that are cut, so that none has a logarithm.
NO_CUT = 0.005
# Significance of a valley beyond which it counts no more, and the excess that is a factor of 20.
MOST_SIGNIFICANT, MOST_EXCESS = 4.0, 3.0
# Rows on which two clusterings are compared.
MOST_COMPARED = 2_000
# Families whose clusters may have any shape: the way from mean to mean says nothing about them.
ANY_SHAPE = ("merged", "connected", "chained")
# Families that find several clusters only where null references of their own have none.
JUDGED = ("connected", "chained")


class Weights(NamedTuple):
    """What each measurement counts; chosen by benchmarks/auto_evidence.py."""

    cut: float
    missed: float
    within: float
    tiles: float
    agreement: float
    log_clusters: float
    family: Mapping[str, float]  # 0 for a family that took no part in the choice of weights
    # The probability that k is right is expit of a constant and weighted sums: for several clusters
    # of the log odds of all evidence for this k and of log k; for one of the significance of the
    # strongest valley and of the share of candidates that have several.
    several: tuple[float, float, float]
    one: tuple[float, float, float]


# A valley between two clusters is this significant, or chance has made it.
LEAST_SIGNIFICANCE = 2.7
WEIGHTS = Weights(
    cut=-0.55,
    missed=-6.03,
    within=-6.17,
    tiles=-17.73,
    agreement=6.27,
    log_clusters=-1.28,
    family={
        "round": 0.0,
        "elliptical": 1.74,
        "merged": -1.98,
        "connected": 2.19,
        "chained": 0.74,
    },
    several=(-0.66, 0.43, 0.05),
    one=(2.49, -0.06, -5.09),
)
# Evidence of 0 or 1 has log odds of this size at most.
MOST_ODDS = 6.0


class Measurements(NamedTuple):
    """What is measured of a clustering of two clusters or more."""

    cut: float
    missed: float
    within: float
    tiles: float
    agreement: float
    log_clusters: float

    def score(self, family: str) -> float:
        """Return the weighted sum for a clustering of a family."""
        weights = [getattr(WEIGHTS, name) for name in self._fields]
        return WEIGHTS.family.get(family, 0.0) + float(np.dot(weights, self))


class Comparison(NamedTuple):
    """What was measured of all candidates."""

    measured: dict[str, Measurements]  # of the candidates with several clusters
    agreements: np.ndarray  # (n_measured, n_measured), adjusted mutual information of each two
    significance: float  # of the strongest valley between clusters
    apart: bool  # whether a candidate needs no valley to be told from chance
    known: bool | None = None  # whether there is structure, where that is known otherwise

    @property
    def structure(self) -> bool:
        """Tell whether there is more than one cluster."""
        if not self.measured or self.known is not None:
            return bool(self.measured and self.known)
        return self.apart or self.significance >= LEAST_SIGNIFICANCE

    def evidence(self) -> dict[str, float]:
        """Return what speaks for each candidate with several clusters; they add up to 1."""
        if not self.structure:
            return dict.fromkeys(self.measured, 0.0)
        share = softmax([found.score(name) for name, found in self.measured.items()])
        return dict(zip(self.measured, share.tolist(), strict=True))

    def best(self) -> str | None:
        """Return the candidate of the highest expected agreement with the truth; None for one."""
        if not self.structure:
            return None
        evidence = np.array(list(self.evidence().values()))
        expected = (self.agreements @ evidence).round(9)  # candidates that coincide are equal
        return list(self.measured)[np.lexsort((evidence, expected))[-1]]


def compare(
    X: np.ndarray, links: sp.csr_array, clusterings: Mapping[str, np.ndarray]
) -> Comparison:
    """Measure what speaks for each clustering of two clusters or more.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_features)
    links : CSR array of shape (n_rows, n_rows)
        A symmetric graph that links each row to its nearest neighbours.
    clusterings : mapping from names to ndarray of int of shape (n_rows,)
        Labels 0, 1, ..., all of which occur. 'merged' is made from 'elliptical', so neither counts
        as another's opinion of the other.

    Examples
    --------
    >>> from sklearn.neighbors import kneighbors_graph
    >>> rng = np.random.default_rng(0)
    >>> X = np.vstack([rng.normal(size=(200, 2)), rng.normal(size=(200, 2)) + [4, 0]])
    >>> links = kneighbors_graph(X, 10)
    >>> halves = {"k-means": np.repeat([0, 1], 200)}
    >>> compare(X, links + links.T, halves).structure
    True
    >>> X = rng.normal(size=(400, 2))
    >>> links = kneighbors_graph(X, 10)
    >>> compare(X, links + links.T, {"k-means": (X[:, 0] > 0).astype(int)}).structure
    False
    """
    several = {name: labels for name, labels in clusterings.items() if labels.any()}
    if not several:
        return Comparison({}, np.empty((0, 0)), 0.0, False)
    valleys = {
        name: separation(X, labels, links)
        for name, labels in several.items()
        if name not in ANY_SHAPE
    }
    finest = max(valleys, key=lambda name: valleys[name].n_clusters, default="")
    pieces = _Pieces.of(several, valleys, "elliptical" if "elliptical" in valleys else finest)
    row = np.repeat(np.arange(len(X)), np.diff(links.indptr))
    agreements = np.eye(len(several))
    for (i, one), (j, other) in combinations(enumerate(several.values()), 2):
        agreements[i, j] = agreements[j, i] = agreement(one, other)
    measured = {}
    for (name, labels), agrees in zip(several.items(), agreements, strict=True):
        crossing = float((labels[row] != labels[links.indices]).mean()) if len(row) else 0.0
        others = [_independent(name, other) for other in several]
        measured[name] = Measurements(
            np.log(NO_CUT + crossing),
            *pieces.against(labels),
            agreement=float(agrees[others].max(initial=0.0)),
            log_clusters=float(np.log(labels.max() + 1)),
        )
    significance = max((found.strongest() for found in valleys.values()), default=0.0)
    uncut = any(found.cut <= np.log(NO_CUT) for found in measured.values())
    is_judged = any(name in several for name in JUDGED)
    return Comparison(measured, agreements, significance, is_judged or uncut)


class _Pieces(NamedTuple):
    """Pieces of the data, the links and valleys between them, and these merged across no valley."""

    labels: np.ndarray
    merged: np.ndarray
    valleys: Separation | None

    @staticmethod
    def of(
        clusterings: Mapping[str, np.ndarray], valleys: Mapping[str, Separation], name: str
    ) -> _Pieces:
        if not name:  # nothing but clusters of any shape
            one = np.zeros(len(next(iter(clusterings.values()))), dtype=np.int32)
            return _Pieces(one, one, None)
        labels = clusterings[name]
        return _Pieces(labels, valleys[name].merge()[labels], valleys[name])

    def against(self, labels: np.ndarray) -> tuple[float, float, float]:
        """Return what a clustering misses, keeps together across valleys, and cuts to tiles."""
        missed = conditional_entropy(self.merged, labels)
        if self.valleys is None or not len(self.valleys.pairs):
            return missed, 0.0, 0.0
        shared = np.zeros((int(self.labels.max()) + 1, int(labels.max()) + 1))
        np.add.at(shared, (self.labels, labels), 1.0)
        one, other = shared.argmax(axis=1)[self.valleys.pairs].T
        share = self.valleys.n_links / self.valleys.n_links.sum()
        depth = np.clip(self.valleys.significance / MOST_SIGNIFICANT, 0.0, 1.0)
        tile = 1.0 - np.exp(-np.clip(self.valleys.excess, 0.0, MOST_EXCESS))
        within, cut = share * (one == other), share * (one != other)
        return missed, float(within @ depth), float(cut @ tile)


def _independent(name: str, other: str) -> bool:
    """Tell whether two candidates are different families, of which neither made the other."""
    return name != other and {name, other} != {"merged", "elliptical"} and other != "merged"


def conditional_entropy(labels: np.ndarray, given: np.ndarray) -> float:
    """Return the entropy of labels given others, in nats.

    Examples
    --------
    >>> round(conditional_entropy(np.array([0, 1, 2, 2]), np.array([0, 0, 1, 1])), 3)
    0.347
    """
    shared = sp.csr_array((np.ones(len(labels)), (given, labels)))
    size = np.asarray(shared.sum(axis=1)).ravel()
    cells = sp.coo_array(shared)
    return float(cells.data @ np.log(size[cells.coords[0]] / cells.data)) / len(labels)


def agreement(one: np.ndarray, other: np.ndarray) -> float:
    """Return the adjusted mutual information of two clusterings, on some rows of long tables."""
    step = -(-len(one) // MOST_COMPARED)
    return float(adjusted_mutual_info_score(one[::step], other[::step]))


def signs(comparison: Comparison, n_clusters: Mapping[str, int], chosen: str | None) -> np.ndarray:
    """Return what the confidence in the number of clusters of a choice depends on.

    Parameters
    ----------
    comparison : Comparison
    n_clusters : mapping from str to int
        Those of all candidates.
    chosen : str or None
        The candidate that is chosen; None for one cluster.
    """
    if chosen is None:
        share = np.mean([k > 1 for k in n_clusters.values()]) if n_clusters else 0.0
        # Valleys say nothing where structure is known otherwise.
        significance = comparison.significance if comparison.known is None else 0.0
        return np.array([1.0, significance, share])
    evidence = comparison.evidence()
    same = sum(evidence[name] for name in evidence if n_clusters[name] == n_clusters[chosen])
    odds = np.log(max(same, 1e-12)) - np.log(max(1.0 - same, 1e-12))
    return np.array([1.0, np.clip(odds, -MOST_ODDS, MOST_ODDS), np.log(n_clusters[chosen])])


def confidence(comparison: Comparison, n_clusters: Mapping[str, int], chosen: str | None) -> float:
    """Return the probability that the number of clusters of the choice is right."""
    weights = WEIGHTS.one if chosen is None else WEIGHTS.several
    return float(expit(np.dot(weights, signs(comparison, n_clusters, chosen))))
