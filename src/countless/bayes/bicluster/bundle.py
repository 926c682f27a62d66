"""What a row says about clusters of columns, and the model of such rows."""

from __future__ import annotations

import numpy as np

from countless.kernels.models_bundles import BundleClusters
from countless.models.protocol import BoundModel, ClusterModel


class Bundle(ClusterModel):
    """A model of rows that are the statistics of so many parts, each of cells of one model."""

    def __init__(self, cell: BoundModel, n_parts: int):
        self.cell, self.n_parts = cell, n_parts
        self.width = n_parts * cell.width

    def _room(self, room: int) -> BundleClusters:
        statistics, marginals = np.zeros((room, self.width)), np.zeros((room, self.n_parts))
        return BundleClusters(statistics, marginals, self.cell.clusters(1))


def bundles(
    cell: BoundModel, values: np.ndarray, item: np.ndarray, part: np.ndarray, shape: tuple[int, int]
) -> np.ndarray:
    """Return the statistics of each item's cells in each part, (n_items, n_parts * width).

    Parameters
    ----------
    cell : BoundModel
        Of one cell.
    values : ndarray of shape (n_cells, 1)
        As ``cell.rows`` makes them.
    item, part : ndarray of int of shape (n_cells,)
        Where each cell belongs; a negative part leaves it out.
    shape : (n_items, n_parts)
    """
    n_items, n_parts = shape
    place = np.where(part < 0, -1, item * n_parts + part)
    return cell.statistics(values, place, n_items * n_parts).reshape(n_items, -1)
