"""The evidence for k clusters: standard scores of its statistics, combined by weights."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from countless._path.levels import Figures


class Weights(NamedTuple):
    """Weights of the standard scores in the evidence; chosen by benchmarks/path_evidence.py.

    Scores are transformed by the inverse hyperbolic sine, which is linear near 0 and logarithmic
    beyond, so that no single score dominates.
    """

    constant: float
    width: float
    separation: float
    least: float  # the lowest of the three scores

    def evidence(self, scores: Figures) -> np.ndarray:
        """Return the evidence for k = 2, 3, ...; that of one cluster is 0."""
        return np.array(self) @ measure(scores)


def measure(scores: Figures) -> np.ndarray:
    """Return the features that the weights apply to, for k = 2, 3, ...: shape (4, n_levels)."""
    width, _, separation = grown = np.arcsinh(np.array(scores))
    return np.array([np.ones(len(width)), width, separation, grown.min(axis=0)])


WEIGHTS = Weights(constant=-4.93, width=0.28, separation=1.45, least=1.70)


class PlateauStatistics(NamedTuple):
    """The evidence for k = 2, 3, ... clusters, and the statistics it is computed from."""

    width: np.ndarray  # of the plateau; 0 for a k that no penalty gives or that was not refined
    null_width: np.ndarray  # the mean width in the null reference
    scores: Figures  # standard scores of the statistics under the null reference
    evidence: np.ndarray  # that of one cluster is 0

    def __repr__(self) -> str:
        known = f"k = 2 to {len(self.evidence) + 1}" if len(self.evidence) else ""
        return f"{type(self).__name__}({known})"


_NONE = np.empty(0)
NO_STATISTICS = PlateauStatistics(_NONE, _NONE, Figures(_NONE, _NONE, _NONE), _NONE)
