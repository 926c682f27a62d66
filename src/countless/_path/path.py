"""A path: the number of clusters at every penalty, the chosen number, and its confidence.

`penalty_path` makes one of rows, of a kernel or of similarities, `cut_gap` one of a tree,
`GraphDPMeans` of a graph and `SpectralDPMeans` of a spectrum. They differ in how the plateaus are
scored against their null reference; choice and confidence are the same.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple

import numpy as np
from scipy.special import expit

from countless._show import Plotted, Records, short


class Plateau(NamedTuple):
    """An interval of penalties that all give the same number of clusters."""

    n_clusters: int
    low: float
    high: float
    width: float  # log(high / low), or as the path says
    null_width: float  # the width in the null reference
    score: float  # the evidence for this number of clusters; one cluster has 0


class Calibration(NamedTuple):
    """The probability that k is right is ``expit(intercept + slope * lead)``.

    Fitted to generated data sets by benchmarks/path_evidence.py.
    """

    intercept: float
    slope: float

    def probability(self, lead: float) -> float:
        """Return the probability that the number of clusters is right."""
        return float(expit(self.intercept + self.slope * lead))


class Path(Plotted, ABC):
    """The number of clusters at every penalty.

    Attributes
    ----------
    breakpoints : ndarray
        Penalties at which the number of clusters changes, ascending.
    plateaus : list of Plateau
        The chosen one, then the others by score, highest first.
    penalty, n_clusters : float, int
        Those of the chosen plateau.
    lead : float
        The difference between the score of the chosen plateau and the highest other.
    confidence : float
        The probability that the number of clusters is right, from the lead; calibrated on generated
        data sets, one cluster included.
    """

    _calibration: Calibration
    _display, _maker = "PenaltyPathDisplay", "from_path"

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(n_clusters={self.n_clusters}, penalty={self.penalty:.6g}, "
            f"confidence={self.confidence:.2f})"
        )

    def _describe(self) -> tuple[list[str], Records]:
        k = self.n_clusters
        line = f"{type(self).__name__}: {k} cluster{'s' if k != 1 else ''} at penalty "
        line += f"{short(float(self.penalty))}, confidence {self.confidence:.2f}"
        return [line], Records(self.plateaus)

    @property
    @abstractmethod
    def plateaus(self) -> list[Plateau]:
        """The chosen one, then the others by score."""

    @property
    @abstractmethod
    def breakpoints(self) -> np.ndarray:
        """Penalties at which the number of clusters changes, ascending."""

    @abstractmethod
    def n_clusters_at(self, penalty: float) -> int:
        """Return the number of clusters at a penalty."""

    @abstractmethod
    def penalty_for(self, n_clusters: int) -> float:
        """Return a penalty that gives this many clusters."""

    @property
    def n_clusters(self) -> int:
        return self.plateaus[0].n_clusters

    @property
    def penalty(self) -> float:
        return self.penalty_for(self.n_clusters)

    @property
    def lead(self) -> float:
        best, *others = self.plateaus
        if others:
            return best.score - max(other.score for other in others)
        # The only number that any penalty gives is certain; that of rows too few to judge is not.
        return -np.inf if len(self.breakpoints) else np.inf

    @property
    def confidence(self) -> float:
        return self._calibration.probability(self.lead)
