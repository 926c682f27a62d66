"""Choosing between clusterings of one table by evidence that is the same for all of them.

A clustering is described by a few measurements, none of which knows the method that made it:

* separation: how deep the valleys of density around its clusters are (`countless.auto.separation`);
* separated: the share of rows whose cluster has a valley all around it;
* cut: the share of links between neighbours that it cuts, as a logarithm;
* agreement: its adjusted mutual information with what the other families found;
* the logarithm of its number of clusters.

Its evidence is a weighted sum of these, and a constant for its family; one cluster has evidence 0.
The clustering of highest evidence is chosen. The weights maximise the expected adjusted mutual
information with the truth when a clustering is drawn with probability proportional to
``exp(evidence)``, on 400 generated data sets; then the constants of the families are shifted to
where clusters are found in 5 % of those without any. ``python benchmarks/auto_evidence.py`` prints
this file's constants. No public data set took part.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.special import expit
from sklearn.metrics import adjusted_mutual_info_score

from countless.auto.separation import separation

# A cluster whose shallowest valley is this deep is separated, as `MergedMixture` has it.
LEAST_SEPARATION = 0.3
# Added to the share of links that are cut, so that none has a logarithm.
NO_CUT = 0.005
# Rows on which two clusterings are compared.
MOST_COMPARED = 3_000


class Evidence(NamedTuple):
    """What speaks for a clustering of two clusters or more."""

    separation: float
    separated: float
    cut: float
    agreement: float
    log_clusters: float

    def weigh(self, family: str) -> float:
        """Return the evidence for a clustering of a family, beside one cluster's 0."""
        weights = [getattr(WEIGHTS, name) for name in self._fields]
        return WEIGHTS.family.get(family, WEIGHTS.other) + float(np.dot(weights, self))


class Weights(NamedTuple):
    """What each measurement counts, and each family; chosen by benchmarks/auto_evidence.py."""

    separation: float
    separated: float
    cut: float
    agreement: float
    log_clusters: float
    family: Mapping[str, float]
    other: float  # a family that took no part in the choice of weights
    # The probability that k is right is expit(intercept + slope * lead), with the lead of the
    # chosen evidence over that of the next clustering with another number of clusters.
    intercept: float
    slope: float


WEIGHTS = Weights(
    separation=1.19,
    separated=1.69,
    cut=0.19,
    agreement=0.87,
    log_clusters=-1.07,
    family={"round": -2.63, "elliptical": -2.10, "merged": 1.58, "connected": 7.04},
    other=-2.0,
    intercept=-0.30,
    slope=0.18,
)


def measure(
    X: np.ndarray, links: sp.csr_array, clusterings: Mapping[str, np.ndarray]
) -> dict[str, Evidence]:
    """Measure what speaks for each clustering of two clusters or more.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_features)
    links : CSR array of shape (n_rows, n_rows)
        A graph that links each row to its nearest neighbours.
    clusterings : mapping from names to ndarray of int of shape (n_rows,)
        Labels 0, 1, ..., all of which occur. 'merged' is made from 'elliptical', so neither counts
        as another's opinion of the other.
    """
    found = {}
    opinions = [name for name in clusterings if name != "merged"]
    for name, labels in clusterings.items():
        if not labels.any():
            continue
        own = ("merged", "elliptical") if name in ("merged", "elliptical") else (name,)
        others = [agreement(labels, clusterings[other]) for other in opinions if other not in own]
        apart = separation(X, labels, links)
        weakest, size = apart.weakest(), np.bincount(labels)
        found[name] = Evidence(
            separation=float(weakest @ size) / len(labels),
            separated=float(size[weakest >= LEAST_SEPARATION].sum()) / len(labels),
            cut=float(np.log(NO_CUT + apart.cut)),
            agreement=float(np.mean(others)) if others else 0.0,
            log_clusters=float(np.log(len(size))),
        )
    return found


def agreement(one: np.ndarray, other: np.ndarray) -> float:
    """Return the adjusted mutual information of two clusterings, on some rows of long tables."""
    step = -(-len(one) // MOST_COMPARED)
    return float(adjusted_mutual_info_score(one[::step], other[::step]))


def confidence(evidence: Sequence[float], n_clusters: Sequence[int], chosen: int) -> float:
    """Return the probability that the number of clusters of the chosen clustering is right.

    Examples
    --------
    >>> from countless.auto.choice import confidence
    >>> confidence([9.0, 0.0], [3, 1], 0) > confidence([1.0, 0.0], [3, 1], 0)
    True
    """
    rivals = [
        value for value, k in zip(evidence, n_clusters, strict=True) if k != n_clusters[chosen]
    ]
    lead = evidence[chosen] - max(rivals, default=-np.inf)
    return float(expit(WEIGHTS.intercept + WEIGHTS.slope * lead))
