"""The model of rows given column clusters: independent cell models, one for each cluster."""

from __future__ import annotations

import numpy as np

from countless.kernels.models_bundles import BundleClusters
from countless.models.protocol import BoundModel, ClusterModel


class Bundle(ClusterModel):
    """A model of rows that consist of the sufficient statistics of ``n_parts`` sets of cells.

    ``tables`` are the lookup tables of the cells' model, by count.
    """

    def __init__(self, cell: BoundModel, n_parts: int, tables: np.ndarray):
        self.cell, self.n_parts, self.tables_of_cell = cell, n_parts, tables
        self.width = n_parts * cell.width

    def _allocate(self, capacity: int) -> BundleClusters:
        parts = np.zeros(((capacity + 1) * self.n_parts, self.cell.width))
        return BundleClusters(
            statistics=parts[: capacity * self.n_parts].reshape(capacity, self.width),
            parts=parts,
            marginals=np.zeros((capacity, self.n_parts)),
            found=np.empty((2, capacity)),
            chosen=np.empty(capacity, dtype=np.int64),
            tables=self.tables_of_cell,
            cell=self.cell.clusters(capacity),
        )
