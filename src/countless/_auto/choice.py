"""Model selection between clusterings of one table: structure, choice and confidence.

Two questions are answered separately.

*Is there more than one cluster?* Yes, if a density valley between two clusters of a candidate is
more significant than those of structureless clouds (`countless._auto.separation`); if the
connected, the chained or the linked candidate finds several, since these have their own null
references; or if no neighbour link crosses from one cluster of a candidate to another.

*Which clustering?* Every candidate with two clusters or more is described by statistics that do not
depend on the method. The components of the mixture serve as pieces: each piece is assigned to the
cluster of most of its rows.

* cut: the share of links between neighbours that it cuts, as a logarithm;
* missed: the conditional entropy of the pieces merged where no significant valley separates them
  (`MergedMixture`), given the clustering: clusters surrounded by valleys that it does not separate;
* within: the share of links between pieces that are within its clusters across a valley, each
  weighted by the significance of that valley;
* tiles: the share of links between pieces that it cuts although there are more rows at the border
  than expected of normal clusters: pieces of a curve or a box;
* agreement: the highest adjusted mutual information with a clustering of another family;
* the logarithm of its number of clusters.

The score is a weighted sum of these plus a constant for the family; the softmax of the scores is
the candidates' evidence. The weights maximise the expected adjusted mutual information with the
truth when a candidate is drawn by its evidence, plus a quarter for the right number of clusters, on
generated data sets that have clusters; the threshold of a valley's significance is set to 4.5 %
false positives on those that have none. ``python benchmarks/auto_evidence.py`` prints the
constants. The weight of the linked family, which is fitted to many columns only, was set on
generated directions with those of the others fixed (``--wide`` shows what it gives). No public
data set was used.

The choice is a Bayes estimate: the candidate of highest expected agreement with the truth, if the
truth is one of the candidates, with the evidence as probabilities. So families that find the same
clusters, and share the evidence for them, do not lose to a single one.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.special import expit, softmax
from sklearn.metrics import adjusted_mutual_info_score

from countless._auto.separation import Separation, separation

# Added to the share of links that are cut, so that the logarithm of zero is finite.
NO_CUT = 0.005
# Upper limits of a valley's significance, and of the log excess (a factor of 20).
MOST_SIGNIFICANT, MOST_EXCESS = 4.0, 3.0
# Rows on which two clusterings are compared.
MOST_COMPARED = 2_000
# Families whose clusters may have any shape: the line from mean to mean is meaningless for them.
ANY_SHAPE = ("merged", "connected", "chained", "linked")
# Families that test several clusters against their own null references.
JUDGED = ("connected", "chained", "linked")


class Weights(NamedTuple):
    """The weight of each statistic; chosen by benchmarks/auto_evidence.py."""

    cut: float
    missed: float
    within: float
    tiles: float
    agreement: float
    log_clusters: float
    family: Mapping[str, float]  # 0 for a family that was not used to choose the weights
    # The probability that k is right is expit of a constant and weighted sums: for several clusters
    # of the log odds of all evidence for this k and of log k; for one of the significance of the
    # strongest valley and of the share of candidates that have several.
    several: tuple[float, float, float]
    one: tuple[float, float, float]


# Threshold of a valley's significance.
LEAST_SIGNIFICANCE = 3.1
WEIGHTS = Weights(
    cut=-0.55,
    missed=-6.04,
    within=-6.17,
    tiles=-17.76,
    agreement=6.29,
    log_clusters=-1.28,
    family={
        "round": 0.0,
        "elliptical": 1.73,
        "merged": -1.99,
        "connected": 2.19,
        "chained": 0.73,
        # Set by hand between those of 'chained' and 'elliptical', as it was not fitted with them;
        # the confidence of choices of this family is not calibrated.
        "linked": 1.0,
    },
    several=(-0.72, 0.44, 0.07),
    one=(2.53, -0.1, -5.27),
)
# Log odds of the evidence are clipped to this size.
MOST_ODDS = 6.0


class Measurements(NamedTuple):
    """The statistics of a clustering with two clusters or more."""

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
    """The statistics of all candidates."""

    measured: dict[str, Measurements]  # of the candidates with several clusters
    agreements: np.ndarray  # (n_measured, n_measured), adjusted mutual information of each pair
    significance: float  # of the most significant valley between clusters
    apart: bool  # whether a candidate shows structure without a significant valley
    known: bool | None = None  # whether there is structure, if another test decides

    @property
    def structure(self) -> bool:
        """Whether there is more than one cluster."""
        if not self.measured or self.known is not None:
            return bool(self.measured and self.known)
        return self.apart or self.significance >= LEAST_SIGNIFICANCE

    def evidence(self) -> dict[str, float]:
        """Return the evidence of each candidate with several clusters; it sums to 1."""
        if not self.structure:
            return dict.fromkeys(self.measured, 0.0)
        share = softmax([found.score(name) for name, found in self.measured.items()])
        return dict(zip(self.measured, share.tolist(), strict=True))

    def best(self) -> str | None:
        """Return the candidate of highest expected agreement; None for one cluster."""
        if not self.structure:
            return None
        evidence = np.array(list(self.evidence().values()))
        expected = (self.agreements @ evidence).round(9)  # ties between identical clusterings
        return list(self.measured)[np.lexsort((evidence, expected))[-1]]


def compare(
    X: np.ndarray, links: sp.csr_array, clusterings: Mapping[str, np.ndarray]
) -> Comparison:
    """Compute the statistics of each clustering with two clusters or more.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_features)
    links : CSR array of shape (n_rows, n_rows)
        A symmetric nearest-neighbour graph of the rows.
    clusterings : mapping from names to ndarray of int of shape (n_rows,)
        Labels 0, 1, ..., all of which occur. 'merged' is made from 'elliptical', so their agreement
        with each other is not counted.

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
    """Pieces of the data, the links and valleys between them, and the merged pieces."""

    labels: np.ndarray
    merged: np.ndarray
    valleys: Separation | None

    @staticmethod
    def of(
        clusterings: Mapping[str, np.ndarray], valleys: Mapping[str, Separation], name: str
    ) -> _Pieces:
        if not name:  # only families of any shape
            one = np.zeros(len(next(iter(clusterings.values()))), dtype=np.int32)
            return _Pieces(one, one, None)
        labels = clusterings[name]
        return _Pieces(labels, valleys[name].merge()[labels], valleys[name])

    def against(self, labels: np.ndarray) -> tuple[float, float, float]:
        """Return the statistics 'missed', 'within' and 'tiles' of a clustering."""
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
    """Return whether the agreement of a candidate with another counts: they are independent."""
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
    """Return the adjusted mutual information of two clusterings, on a subsample of many rows."""
    step = -(-len(one) // MOST_COMPARED)
    return float(adjusted_mutual_info_score(one[::step], other[::step]))


def signs(comparison: Comparison, n_clusters: Mapping[str, int], chosen: str | None) -> np.ndarray:
    """Return the features from which the confidence in the number of clusters is computed.

    Parameters
    ----------
    comparison : Comparison
    n_clusters : mapping from str to int
        The number of clusters of all candidates.
    chosen : str or None
        The chosen candidate; None for one cluster.
    """
    if chosen is None:
        share = np.mean([k > 1 for k in n_clusters.values()]) if n_clusters else 0.0
        # Valleys are ignored if another test decides about structure.
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
