"""A path: the number of clusters at every penalty, the chosen number, and its confidence.

`penalty_path` makes one of rows, of a kernel or of similarities, `cut_gap` one of a tree,
`GraphDPMeans` of a graph and `SpectralDPMeans` of a spectrum. They differ in how the plateaus are
scored against their null reference; choice and confidence are the same.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit

from countless._path.layers import Layer, Layers, nest, tree_of_layers
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

    @abstractmethod
    def labels_at(self, penalty: float) -> np.ndarray:
        """Return the cluster of each row at a penalty, numbered by first appearance."""

    def stands_out(self, plateau: Plateau) -> bool:
        """Whether a plateau is notable beside the chosen one: a layer of a hierarchy."""
        return plateau.n_clusters > 1 and plateau.score > 0

    def layers(self, labels: Any = None) -> Layers:
        """Return nested clusterings, coarse to fine, at the plateaus that stand out.

        Parameters
        ----------
        labels : array-like of shape (n_samples,), optional
            The clustering that is a layer in any case; -1 is noise, in all layers. By default that
            of the chosen plateau.

        Returns
        -------
        Layers
            ``labels`` of shape (n_layers, n_samples); of each layer the rows ``moved``, that are in
            another cluster than at the plateau's penalty, since layers are nested; and the ``tree``
            of the clusters.

        Examples
        --------
        >>> import numpy as np
        >>> from countless import penalty_path
        >>> centers = np.array([[0, 0], [0, 9], [90, 0], [90, 9], [50, 90], [59, 90]])
        >>> X = np.repeat(centers, 50, axis=0) + np.random.default_rng(0).normal(size=(300, 2))
        >>> layers = penalty_path(X).layers()
        >>> layers.tree
        LayerTree(n_clusters=[3, 6])
        >>> layers.tree.parents[1].tolist()
        [0, 0, 1, 1, 2, 2]
        """
        own = np.asarray(self.labels_at(self.penalty) if labels is None else labels)
        keep = int(own.max(initial=0)) + 1
        notable = {plateau.n_clusters: plateau for plateau in self.plateaus}
        labelings = {keep: own}
        for k, plateau in notable.items():
            if k != keep and self.stands_out(plateau):
                other = np.asarray(self.labels_at(self.penalty_for(k)))
                labelings[k] = np.where(own < 0, own, other)
        nested = nest(labelings, keep)
        layers = []
        for k, (_, moved) in nested.items():
            score = notable[k].score if k in notable else np.nan
            layers.append(Layer(k, self._penalty_of(k), score, len(moved)))
        found = np.stack([own for own, _ in nested.values()])
        moves = [moved for _, moved in nested.values()]
        return Layers(found, moves, tree_of_layers(found, layers))

    def _penalty_of(self, n_clusters: int) -> float:
        if n_clusters == self.n_clusters:
            return self.penalty
        try:
            return self.penalty_for(n_clusters)
        except ValueError:  # a number of the user's that no penalty gives
            return np.nan

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
