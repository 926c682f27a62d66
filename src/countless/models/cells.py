"""Models with independent columns, of any types; missing values are integrated out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np

from countless.kernels.models_cells import CellClusters
from countless.models.checks import cluster_share, columns_of, is_constant, means_and_variances
from countless.models.families import Family, Parameters, add_slopes
from countless.models.hyper import Hyper, join_hypers
from countless.models.protocol import BoundModel, Model


class Block(NamedTuple):
    """Columns of one family and width, with their hyperparameters, shared or per column."""

    family: Family
    columns: np.ndarray  # (n_columns,)
    hyper: Hyper
    places: np.ndarray  # (n_columns, n_hyper of a column): indices into the hyperparameters
    levels: np.ndarray | None = None  # the values that the codes of a category stand for
    prefix: str = ""  # of the names of its parameters


class ColumnModel(Model, ABC):
    """A model that can be used for a single column of a table as well as for all of them."""

    for_cells = True
    # The name of the type of column that it models, where users may say that; whether its values
    # are real numbers.
    column_type: ClassVar[str | None] = None
    real_valued: ClassVar[bool] = False

    @abstractmethod
    def encode(self, values: np.ndarray, column: int, levels: np.ndarray | None) -> np.ndarray:
        """Encode a column as floats, missing values as NaN; raise an error for invalid cells."""

    @abstractmethod
    def blocks(
        self, values: Sequence[np.ndarray], columns: Sequence[int], share: float
    ) -> list[Block]:
        """Return the blocks that model these columns of a table.

        ``share`` is the expected variance of clusters of numbers as a share of the column's.
        """

    def bind(self, X: Any) -> BoundCells:
        """Return the model of the columns of ``X``, all hyperparameters set."""
        columns = columns_of(X)
        blocks = self.blocks(columns, range(len(columns)), cluster_share(columns))
        return bind_blocks([(self, block) for block in blocks], columns)


def bind_blocks(
    parts: Sequence[tuple[ColumnModel, Block]], columns: Sequence[np.ndarray]
) -> BoundCells:
    """Return the model of a table whose columns are partitioned into the blocks."""
    return BoundCells([part for part, _ in parts], [block for _, block in parts], columns)


class BoundCells(BoundModel):
    """Independent models of given columns."""

    def __init__(self, encoders, blocks: list[Block], columns):
        self.encoders = encoders
        self.blocks = blocks
        self.hyper = join_hypers([block.hyper for block in blocks])
        self.n_features = len(columns)
        self.origin = np.zeros(self.n_features)
        self.kind = np.empty(self.n_features, dtype=np.int64)
        widths = np.empty(self.n_features, dtype=np.int64)
        for encoder, block in zip(encoders, blocks, strict=True):
            self.kind[block.columns] = block.family.kind
            widths[block.columns] = block.family.prior(block.hyper.value[block.places]).shape[1]
            if block.family.centered:
                for j in block.columns:
                    self.origin[j] = _mean(encoder.encode(columns[j], j, None))
        self.start = np.concatenate([[0], np.cumsum(widths)])
        self.width = int(self.start[-1])
        self._prepare()

    def _prepare(self) -> None:
        self.prior = np.empty(self.width)
        first = 0
        self._places = []  # of each block: indices (n_columns, width), first hyper
        for block in self.blocks:
            hyper = self.hyper.value[first + block.places].copy()
            if block.family.centered:
                hyper[:, 0] -= self.origin[block.columns]
            stretch = block.family.prior(hyper)
            places = self.start[block.columns][:, None] + np.arange(stretch.shape[1])
            self.prior[places] = stretch
            self._places.append((places, first))
            first += len(block.hyper.value)

    def rows(self, X: Any) -> np.ndarray:
        """Encode rows: categories as codes, numbers minus the mean of the table that was bound."""
        columns = columns_of(X)
        if len(columns) != self.n_features:
            raise ValueError(f"X has {len(columns)} columns; the model has {self.n_features}")
        small = all(column.dtype == np.float32 for column in columns)
        rows = np.empty((len(columns[0]), self.n_features), np.float32 if small else np.float64)
        for encoder, block in zip(self.encoders, self.blocks, strict=True):
            for j in block.columns:
                rows[:, j] = encoder.encode(columns[j], j, block.levels) - self.origin[j]
        return rows

    def table(self, rows: np.ndarray) -> np.ndarray:
        """Decode rows to the values of the input table; an object array if there are levels."""
        if all(block.levels is None for block in self.blocks):
            return rows + self.origin
        table = (rows + self.origin).astype(object)
        for block in self.blocks:
            if block.levels is not None:
                for j in block.columns:
                    seen = ~np.isnan(rows[:, j])
                    table[seen, j] = block.levels[rows[seen, j].astype(np.intp)]
        return table

    def spread(self, rows: np.ndarray) -> np.ndarray:
        """Return rows to fit; constant columns of numbers are uninformative, and set to NaN."""
        spread = super().spread(rows)
        for j in self.rounded_columns():
            seen = rows[~np.isnan(rows[:, j]), j]
            if len(seen) > 1 and is_constant(seen):
                spread[:, j] = np.nan
        return spread

    def rounded_columns(self) -> np.ndarray:
        """Return the columns of numbers whose variances are estimated from the rows."""
        found, first = [np.empty(0, dtype=np.intp)], 0
        for block in self.blocks:
            place = block.family.variance_place
            if place is not None:
                found.append(block.columns[self.hyper.free[first + block.places[:, place]]])
            first += len(block.hyper.value)
        return np.concatenate(found)

    def own_variance_columns(self) -> np.ndarray:
        """Return the columns of numbers in which each cluster has a variance of its own."""
        found = [block.columns for block in self.blocks if block.family.own_variance]
        return np.sort(np.concatenate([np.empty(0, dtype=np.intp), *found]))

    def family_of(self, column: int) -> Family:
        """Return the family of a column."""
        return self.block_of(column).family

    def block_of(self, column: int) -> Block:
        """Return the block that a column is in."""
        return next(block for block in self.blocks if column in block.columns)

    def packed_table(self) -> np.ndarray:
        """Return two rows: the mean of columns of numbers is their origin; binary ones are 0, 1."""
        table = np.zeros((2, self.n_features))
        for block in self.blocks:
            for j in block.columns:
                if block.family.centered:
                    table[0, j] = 2.0 * self.origin[j]
                    if table[0, j] in (0.0, 1.0):  # otherwise taken for a binary column
                        table[:, j] = table[0, j] + 2.0, -2.0
                elif not block.family.integer:
                    table[1, j] = block.levels is None
        return table

    def levels(self) -> list[list | None]:
        """Return the levels of each column; None if it is not categorical."""
        levels: list[list | None] = [None] * self.n_features
        for block in self.blocks:
            if block.levels is not None:
                for j in block.columns:
                    levels[j] = [v.item() if isinstance(v, np.generic) else v for v in block.levels]
        return levels

    def _allocate(self, capacity: int) -> CellClusters:
        return CellClusters(
            statistics=np.zeros((capacity, self.width)),
            prior=self.prior,
            terms=np.zeros((self.width, capacity)),
            kind=self.kind,
            start=self.start,
            columns=np.arange(self.n_features),
            logs=np.empty(self.n_features * capacity),
        )

    def log_marginal_gradient(self, statistics: np.ndarray) -> np.ndarray:
        """Return the gradient of each log marginal by the hyperparameters, (..., n_hyper)."""
        statistics = np.asarray(statistics, dtype=np.float64)
        out = np.zeros((*statistics.shape[:-1], len(self.hyper.value)))
        for block, (places, first) in zip(self.blocks, self._places, strict=True):
            slopes = block.family.gradient(statistics[..., places], self.prior[places])
            add_slopes(slopes, first + block.places, out)
        return out

    def row_statistics(self, rows: np.ndarray) -> np.ndarray:
        """Return the statistics of each row, (n_rows, width)."""
        out = np.zeros((len(rows), self.width))
        for block, (places, _) in zip(self.blocks, self._places, strict=True):
            found = block.family.row_statistics(rows[:, block.columns].astype(np.float64))
            out[:, places[:, : found.shape[-1]]] = found
        return out

    def expected_parameters(self, statistics: np.ndarray) -> np.ndarray:
        """Return the expected natural parameters of clusters, (..., width)."""
        statistics = np.asarray(statistics, dtype=np.float64)
        out = np.zeros(statistics.shape)
        for block, (places, _) in zip(self.blocks, self._places, strict=True):
            found = block.family.expected_parameters(statistics[..., places], self.prior[places])
            out[..., places[:, : found.shape[-1]]] = found
        return out

    def draw_parameters(self, statistics: np.ndarray, rng: np.random.Generator) -> Parameters:
        """Draw the parameters of each cluster; each array is (n_clusters, n_columns, ...)."""
        statistics = np.atleast_2d(statistics)
        parameters = {}
        for block, (places, _) in zip(self.blocks, self._places, strict=True):
            drawn = block.family.draw_parameters(statistics[:, places], self.prior[places], rng)
            if "mean" in drawn:
                drawn["mean"] = drawn["mean"] + self.origin[block.columns]
            parameters.update({block.prefix + name: value for name, value in drawn.items()})
        return parameters

    def draw_rows(self, parameters: Parameters, rng: np.random.Generator) -> np.ndarray:
        """Draw one row for each set of parameters, in the kernels' encoding."""
        drawn = [block.family.draw(self._of(block, parameters), rng) for block in self.blocks]
        rows = np.empty((len(drawn[0]), self.n_features))
        for block, values in zip(self.blocks, drawn, strict=True):
            rows[:, block.columns] = values
        return rows

    def log_density(self, rows: np.ndarray, parameters: Parameters) -> np.ndarray:
        """Return the log density of rows given parameters, (n_rows, n_clusters)."""
        total: Any = 0.0
        for block in self.blocks:
            values = rows[:, None, block.columns]
            cells = block.family.log_density(values, self._of(block, parameters))
            total = total + np.where(np.isnan(values), 0.0, cells).sum(axis=-1)
        return total

    def _of(self, block: Block, parameters: Parameters) -> Parameters:
        """Return the parameters of a block, means relative to the origin as in the kernels."""
        own = {
            name.removeprefix(block.prefix): value
            for name, value in parameters.items()
            if name.startswith(block.prefix)
        }
        if "mean" in own:
            own["mean"] = own["mean"] - self.origin[block.columns]
        return own


def _mean(values: np.ndarray) -> float:
    return float(means_and_variances(values[:, None])[0][0])
