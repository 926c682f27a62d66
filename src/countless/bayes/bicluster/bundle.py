"""The model of rows that say as much as their cells in each cluster of columns."""

from __future__ import annotations

import numpy as np

from countless.kernels.models_bundles import BundleClusters
from countless.models.protocol import BoundModel, ClusterModel

# Counts whose share of a log marginal is looked up. Hyperparameters change with every sweep, and
# these with them.
MOST_COUNTS = 2**14


class Bundle(ClusterModel):
    """A model of rows that are the statistics of so many parts, each of cells of one model."""

    def __init__(self, cell: BoundModel, n_parts: int, n_cells: int):
        self.cell, self.n_parts = cell, n_parts
        self.width = n_parts * cell.width
        self._tables = cell.tables(min(n_cells, MOST_COUNTS))

    def _room(self, room: int) -> BundleClusters:
        parts = np.zeros(((room + 1) * self.n_parts, self.cell.width))
        return BundleClusters(
            statistics=parts[: room * self.n_parts].reshape(room, self.width),
            parts=parts,
            marginals=np.zeros((room, self.n_parts)),
            found=np.empty((2, room)),
            chosen=np.empty(room, dtype=np.int64),
            tables=self._tables,
            cell=self.cell.clusters(1),
        )
