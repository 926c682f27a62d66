"""Choosing the penalty of a graph: k as a function of the penalty, and the selected plateau."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from countless._graph.corners import Corner, find_corners, steps
from countless._graph.moves import Graph
from countless._graph.neighbors import (
    Neighborhoods,
    assume_neighborhoods,
    find_neighborhoods,
    neck_corners,
)
from countless._graph.null_reference import NO_NULL_PRICES, NullPrices, null_prices
from countless._labels import number_by_appearance
from countless._path.path import Calibration, Path, Plateau
from countless._show import Records
from countless._spectral.necks import NECK_CALIBRATION

NULLS = ("auto", "degrees", "neighbors")


class GraphPath(Path):
    """Clusters, objective and labels of a graph at every penalty.

    Attributes
    ----------
    breakpoints, plateaus, penalty, n_clusters, lead, confidence
        As in `Path`. Widths are in shares of the unit. The score is the width at prices where
        random graphs with the same degrees have fewer clusters, minus a null quantile of that
        width. One cluster per component has score 0: it is chosen when no other score is higher.
    unit : float
        The cut ratio of single nodes: useful penalties lie between minus this and 0.
    """

    # Printed by `benchmarks/path_evidence.py --graphs`.
    _calibration = Calibration(intercept=-0.59, slope=26.01)

    def __init__(self, corners: list[Corner], unit: float, null: NullPrices, linked: np.ndarray):
        self.unit = unit
        self._corners = corners
        self._null = null
        self._linked = linked
        self._n_alone = int(np.count_nonzero(~linked))
        self._steps = steps(corners, unit)

    @property
    def breakpoints(self) -> np.ndarray:
        return (self._steps.low[-2::-1] - 1) * self.unit

    def n_clusters_at(self, penalty: float) -> int:
        """Return the number of clusters at a penalty."""
        corner = self._corner_at(penalty)
        return 1 if corner is None else corner.n_clusters + self._n_alone

    def objective_at(self, penalty: float) -> float:
        """Return the cut plus the penalty for each cluster."""
        corner = self._corner_at(penalty)
        cut = 0.0 if corner is None else corner.cut
        return cut + penalty * self.n_clusters_at(penalty)

    def labels_at(self, penalty: float) -> np.ndarray:
        """Return the cluster of each node at a penalty, numbered by first appearance."""
        corner = self._corner_at(penalty)
        if corner is None:
            return np.zeros(len(self._linked), dtype=np.int32)
        return spread_labels(corner.labels, self._linked)

    def start_at(self, penalty: float) -> tuple[np.ndarray, np.ndarray | None]:
        """Return the clusters of the linked nodes at a penalty, and the groups they consist of."""
        corner = self._corner_at(penalty) or self._corners[0]
        return corner.labels, corner.groups

    def penalty_for(self, n_clusters: int) -> float:
        """Return the midpoint of the penalties that give this many clusters."""
        found = self._steps.n_clusters + self._n_alone
        if n_clusters not in found:
            raise ValueError(
                f"n_clusters={n_clusters} is not on the path, which has {found.tolist()}"
            )
        place = int(np.searchsorted(found, n_clusters))
        low, high = self._steps.low[place], self._steps.high[place]
        # Avoid prices at which random graphs have as many clusters: there a longer search might
        # find a lower cut.
        usual = float(self._null.of(self._steps.n_clusters[place]))
        price = ((usual if low < usual < high else low) + high) / 2
        return float(price - 1) * self.unit

    @cached_property
    def plateaus(self) -> list[Plateau]:
        found = []
        count, low, high = self._steps
        for place, firm in enumerate(self._null.firmness_of(self._steps), start=1):
            width = float(high[place] - low[place])
            start, stop = ((float(end) - 1) * self.unit for end in (low[place], high[place]))
            score = float(firm - self._null.firmness)
            k = int(count[place]) + self._n_alone
            found.append(Plateau(k, start, stop, width, width - score, score))
        end = float(low[0] - 1) * self.unit
        one = Plateau(int(count[0]) + self._n_alone, end, 0.0, np.inf, np.inf, 0.0)
        return Records(sorted([one, *found], key=lambda plateau: -plateau.score))

    def stands_out(self, plateau: Plateau) -> bool:
        # Other graphs' plateaus come in flights: of numbers within a factor of two the best counts.
        k, score = plateau.n_clusters, plateau.score
        return super().stands_out(plateau) and not any(
            k <= 2 * other.n_clusters and other.n_clusters <= 2 * k and other.score > score
            for other in self.plateaus
        )

    def _corner_at(self, penalty: float) -> Corner | None:
        """Return the optimal clustering at a penalty; None is one cluster of all nodes."""
        if penalty >= 0:
            return None
        price = 1 + penalty / self.unit
        return self._corners[int(np.count_nonzero(self._steps.low[:-1] > price))]


class NeckPath(GraphPath):
    """The path of a neighbour graph, over clusterings that are separated by deep necks.

    Attributes
    ----------
    plateaus : list of Plateau
        The chosen one, which has most clusters, then the others by score. The width of each is the
        depth of its shallowest neck, and the null width the null depth. One cluster per component
        has no neck, and score 0.
    lead : float
        By how much the shallowest neck that is cut is deeper than the null depth, or else the
        deepest that is not cut is shallower.
    necks : Necks
        The depths of all necks, and the null depth.
    neighborhoods : Neighborhoods
        The number of neighbours that the graph was built with, and whether links are mutual.
    """

    _calibration = NECK_CALIBRATION

    def __init__(self, graph: Graph, near: Neighborhoods, linked: np.ndarray):
        corners, self._depths, self.necks = neck_corners(graph, near)
        self.neighborhoods = near
        super().__init__(corners, graph.unit, NO_NULL_PRICES, linked)

    @cached_property
    def plateaus(self) -> list[Plateau]:
        null = self.necks.null_depth
        found = []
        for count, low, high, depth in zip(*self._steps, self._depths, strict=True):
            start, stop = ((float(end) - 1) * self.unit for end in (low, high))
            score, null_width = (depth - null, null) if np.isfinite(depth) else (0.0, np.inf)
            k = int(count) + self._n_alone
            found.append(Plateau(k, start, stop, depth, null_width, score))
        return Records([found[-1], *sorted(found[:-1], key=lambda plateau: -plateau.score)])

    def stands_out(self, plateau: Plateau) -> bool:
        # Beyond a layer no neck is nearly as deep: the next depth is lower by the null depth.
        next_depth = max(
            (p.width for p in self.plateaus if p.n_clusters > plateau.n_clusters), default=0.0
        )
        return plateau.score > 0 and plateau.width - next_depth >= self.necks.null_depth

    @property
    def lead(self) -> float:
        return self.necks.lead


def spread_labels(labels: np.ndarray, linked: np.ndarray) -> np.ndarray:
    """Return labels for all nodes, those without links alone, numbered by first appearance."""
    full = np.empty(len(linked), dtype=np.int64)
    full[linked] = labels
    n_clusters = int(labels.max()) + 1 if len(labels) else 0
    full[~linked] = n_clusters + np.arange(np.count_nonzero(~linked))
    return number_by_appearance(full)[1]


def graph_path(
    graph: Graph, linked: np.ndarray, random: np.random.RandomState, null: str = "auto"
) -> GraphPath:
    """Find what every penalty gives, and the plateau that stands out.

    Parameters
    ----------
    graph : Graph
        The nodes that have links.
    linked : ndarray of bool
        Which nodes of the whole graph these are.
    random : RandomState
        The order of visits.
    null : {'auto', 'degrees', 'neighbors'}
        The null reference: random graphs with its degrees, or neighbour graphs of clouds without
        clusters. 'auto' uses the latter if a nearest-neighbour graph is detected.
    """
    if not graph.n_nodes:
        return GraphPath([Corner(0, 0.0, np.empty(0, dtype=np.int32))], 1.0, NO_NULL_PRICES, linked)
    near = None
    if null != "degrees":
        near = find_neighborhoods(graph) if null == "auto" else assume_neighborhoods(graph)
    if near is not None:
        return NeckPath(graph, near, linked)
    corners = find_corners(graph, random)
    prices = null_prices(graph) if len(corners) > 1 else NO_NULL_PRICES
    return GraphPath(corners, graph.unit, prices, linked)
