"""The cells of a table and the hyperparameters of its columns, as arrays for the kernels."""

from __future__ import annotations

import copy
from typing import Any, NamedTuple

import numpy as np

from countless.kernels.cell_blocks import BLOCK_ROWS, MOST_COUNTS, CellBlocks
from countless.kernels.crosscat import (
    HyperTable,
    column_marginals,
    count_columns,
    move_columns,
    move_hypers,
)
from countless.kernels.models_cells import CellClusters
from countless.kernels.models_cells_marginals import CATEGORY, COUNT
from countless.models.cells import BoundCells
from countless.models.protocol import ClusterModel


class ColumnSubset(ClusterModel):
    """The component model of some columns of a table, for the row moves of mixtures."""

    def __init__(
        self, model: BoundCells | ColumnModels, table: np.ndarray, columns: np.ndarray
    ) -> None:
        self._table, self.columns = table, columns
        first, last = model.start[columns], model.start[columns + 1]
        self.kind = model.kind[columns]
        self.start = np.concatenate([[0], np.cumsum(last - first)])
        self.width = int(self.start[-1])
        # The entries of the columns' statistics, concatenated.
        self.stretch = np.arange(self.width) + np.repeat(first - self.start[:-1], last - first)
        self.prior = model.prior[self.stretch]

    def _allocate(self, capacity: int) -> CellClusters:
        return CellClusters(
            statistics=np.zeros((capacity, self.width)),
            prior=self.prior,
            terms=np.zeros((self.width, capacity)),
            kind=self.kind,
            start=self.start,
            columns=np.arange(len(self.kind)),
            logs=np.empty(len(self.kind) * capacity),
        )

    def blocks(self, rows: np.ndarray, capacity: int, statistics: np.ndarray) -> CellBlocks:
        """Return clusters with given statistics, for a sweep that processes rows in blocks."""
        cells = self.clusters(capacity, statistics)
        n_known = np.diff(self.start)  # categories: a missing-value slot replaces the count
        highest = np.fmax.reduce(rows[:, self.kind == COUNT], initial=0)
        n_known[self.kind == COUNT] = np.minimum(highest + 1, MOST_COUNTS) + 1
        n_known[(self.kind != CATEGORY) & (self.kind != COUNT)] = 0
        start = np.concatenate([[0], np.cumsum(n_known)])
        return CellBlocks(
            cells=cells,
            start=start,
            known=np.zeros((capacity, start[-1])),
            known_without=np.zeros((capacity, start[-1])),
            density=np.empty((capacity, BLOCK_ROWS)),
            untabled=np.ones(capacity, dtype=bool),
            values=np.empty(BLOCK_ROWS),
            rests=np.empty(BLOCK_ROWS),
            own=np.empty(BLOCK_ROWS, dtype=np.int64),
            places=np.empty(BLOCK_ROWS, dtype=np.uint64),
        )

    def pieces(self, rows: np.ndarray, capacity: int) -> tuple[CellBlocks, CellClusters]:
        """Return empty clusters for scans that allocate rows, a block at a time."""
        blocks = self.blocks(rows, capacity, self.empty(0))
        return blocks, blocks.cells

    def rows(self) -> np.ndarray:
        """Return these columns of all rows."""
        return np.ascontiguousarray(self._table[:, self.columns])

    def statistics(
        self, rows: np.ndarray, labels: np.ndarray | None = None, n_clusters: int | None = None
    ) -> np.ndarray:
        """Return the sufficient statistics of each cluster of some rows of these columns.

        The sampler's cached terms are not computed, which is many times as fast.
        """
        if labels is None:
            labels = np.zeros(len(rows), dtype=np.int32)
        capacity = int(labels.max()) + 1 if n_clusters is None else n_clusters
        found = np.zeros((capacity, self.width))
        count_columns(self.kind, self.start, rows.T, labels.astype(np.int32), found)
        return found


class ColumnModels:
    """A table with one chain's hyperparameters of its columns.

    Parameters
    ----------
    model : BoundCells
        The models of the columns; no two columns share hyperparameters.
    rows : ndarray of shape (n_rows, n_columns)
        As returned by ``model.rows``.
    """

    def __init__(self, model: BoundCells, rows: np.ndarray) -> None:
        self.rows = rows
        self.values = np.ascontiguousarray(rows.T)
        self.kind, self.start, self.origin = model.kind, model.start, model.origin
        self.prior = model.prior.copy()
        self._places = _places(model)
        hyper = model.hyper
        self._log_hyperprior = hyper.log_prior
        self.hyper = HyperTable(
            hyper.value.copy(),
            hyper.center,
            np.ascontiguousarray(hyper.spread),
            hyper.inverse_gamma,
            hyper.low,
        )
        self._work = CellClusters(
            np.zeros((1, model.width)),
            self.prior,
            np.empty((0, 0)),
            self.kind,
            self.start,
            np.arange(len(self.kind)),
            np.empty(0),
        )

    def of_rows(self, places: np.ndarray) -> ColumnModels:
        """Return some rows of the table, with the same hyperparameters."""
        other = copy.copy(self)
        other.rows = self.rows[places]
        other.values = np.ascontiguousarray(other.rows.T)
        return other

    @property
    def n_columns(self) -> int:
        """Number of columns."""
        return len(self.kind)

    def subset(self, columns: np.ndarray) -> Any:
        """Return the model of some columns, with the present hyperparameters."""
        return ColumnSubset(self, self.rows, columns)

    def log_marginals(self, columns: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """Return log marginal likelihoods, one for each column and partition of the rows."""
        labels, n_clusters = np.atleast_2d(labels), _counts(labels)
        work = self._allocate(n_clusters)
        out = np.empty((len(columns), len(labels)))
        for place, j in enumerate(columns):
            column_marginals(work, self.values, j, labels, n_clusters, out[place])
        return out

    def draw_views(self, labels, join, view_of, random: np.random.Generator) -> int:
        """Draw the view of each column that is no singleton; return the number that moved."""
        n_clusters = _counts(labels)
        order = random.permutation(self.n_columns)
        work = self._allocate(n_clusters)
        return move_columns(work, self.values, order, labels, n_clusters, join, random, view_of)

    def move_hyper(self, labels, view_of, random: np.random.Generator) -> None:
        """Sample the hyperparameters of all columns."""
        n_clusters = _counts(labels)
        work, order = self._allocate(n_clusters), np.arange(self.n_columns)
        state = (work, self.values, order, labels, n_clusters, view_of, self.origin)
        move_hypers(*state, *self._places, self.hyper, random)

    def log_hyperprior(self) -> float:
        """Return the log prior density of the hyperparameters."""
        return self._log_hyperprior(self.hyper.value)

    def _allocate(self, n_clusters: np.ndarray) -> CellClusters:
        most = int(n_clusters.max())
        if most > len(self._work.statistics):
            self._work = self._work._replace(statistics=np.zeros((2 * most, len(self.prior))))
        return self._work


class _Places(NamedTuple):
    """Offsets and indices of the hyperparameters of each column."""

    starts: np.ndarray
    places: np.ndarray
    free: np.ndarray
    free_starts: np.ndarray


def _places(model: BoundCells) -> _Places:
    of_column: dict[int, np.ndarray] = {}
    first = 0
    for block in model.blocks:
        (j,) = block.columns
        of_column[int(j)] = first + block.places[0]
        first += len(block.hyper.value)
    each = [of_column[j] for j in range(model.n_features)]
    free = [np.unique(places)[model.hyper.free[np.unique(places)]] for places in each]
    return _Places(
        _starts(each),
        np.concatenate(each).astype(np.int64),
        np.concatenate(free).astype(np.int64),
        _starts(free),
    )


def _starts(parts: list[np.ndarray]) -> np.ndarray:
    return np.cumsum([0, *map(len, parts)])


def _counts(labels: np.ndarray) -> np.ndarray:
    return np.atleast_2d(labels).max(axis=1).astype(np.int64) + 1
