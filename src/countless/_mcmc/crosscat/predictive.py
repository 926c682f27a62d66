"""Queries of posterior draws of CrossCat: densities, imputation, simulation, surprising cells.

In one draw the views are independent, and each is a mixture model: the posterior probability of
each cluster of a row, or of a new one, follows from the prior and from the row's cells in this
view. Results are averaged over draws.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, cast

import numpy as np
from scipy.special import logsumexp, softmax

from countless._mcmc.crosscat.cells import SomeColumns
from countless._mcmc.crosscat.chain import Draw
from countless.kernels.crosscat import add_surprises
from countless.models.cells import BoundCells
from countless.priors import PartitionPrior


class DrawnView(NamedTuple):
    """One view of a draw; its last cluster is a new one, whose statistics are zeros."""

    part: SomeColumns
    labels: np.ndarray  # (n_rows,)
    statistics: np.ndarray  # (n_clusters + 1, width of its columns)
    shares: np.ndarray  # (n_clusters + 1,), not logarithms: that of a new cluster may be 0

    def log_weighted(self, rows: np.ndarray) -> np.ndarray:
        """Return the log of weight times density, (n_rows, n_clusters + 1)."""
        own = np.ascontiguousarray(rows[:, self.part.columns])
        with np.errstate(divide="ignore"):
            return self.part.log_predictive(own, self.statistics) + np.log(self.shares)

    def weights(self, rows: np.ndarray, fitted: bool) -> np.ndarray:
        """Return the probability of each cluster for each row; fitted rows have their label."""
        if fitted:
            return np.eye(len(self.shares))[self.labels]
        return softmax(self.log_weighted(rows), axis=1)


class DrawnTable(NamedTuple):
    """All views of one draw."""

    model: BoundCells  # with the hyperparameters of the draw
    views: list[DrawnView]

    def log_density(self, rows: np.ndarray) -> np.ndarray:
        """Return the log density of each row."""
        return sum(logsumexp(view.log_weighted(rows), axis=1) for view in self.views)


def drawn_table(model: BoundCells, rows: np.ndarray, draw: Draw) -> DrawnTable:
    """Return a draw with the statistics of the rows of a table."""
    columns = (np.flatnonzero(draw.view_of == v) for v in range(len(draw.labels)))
    return table_of(model, rows, draw.hyper, zip(columns, draw.labels, draw.priors, strict=True))


def table_of(
    model: BoundCells,
    rows: np.ndarray,
    hyper: np.ndarray,
    views: Iterable[tuple[np.ndarray, np.ndarray, PartitionPrior]],
) -> DrawnTable:
    """Return the mixtures given by hyperparameters and views (columns, labels, prior)."""
    own = cast(BoundCells, model.with_hyper(hyper))
    drawn = []
    for columns, labels, prior in views:
        part = SomeColumns(own, rows, columns)
        statistics = part.statistics(part.rows(), labels)
        extended = np.concatenate([statistics, np.zeros((1, part.width))])
        shares = np.exp(prior.log_predictive(np.bincount(labels)))
        drawn.append(DrawnView(part, labels.astype(np.int64), extended, shares))
    return DrawnTable(own, drawn)


def log_densities(tables: Sequence[DrawnTable], rows: np.ndarray) -> np.ndarray:
    """Return the log of the mean density of each row."""
    each = np.stack([table.log_density(rows) for table in tables])
    return logsumexp(each, axis=0) - np.log(len(tables))


class Guess(NamedTuple):
    """Posterior predictive estimates of cells of one column."""

    value: np.ndarray  # the mean, or the code of the most probable level
    uncertainty: np.ndarray  # the standard deviation, or the probability of another level


def guess_cells(
    tables: Sequence[DrawnTable], rows: np.ndarray, gaps: np.ndarray, *, fitted: bool
) -> dict[int, Guess]:
    """Return predictive estimates of the missing cells, for each column that has any.

    ``fitted`` is True for the rows that were fitted, whose clusters are part of each draw.
    """
    asked = [int(j) for j in np.flatnonzero(gaps.any(axis=0))]
    families = {int(block.columns[0]): block.family for block in tables[0].model.blocks}
    sums: dict[int, list[Any]] = {j: [0.0, 0.0] for j in asked}
    for table in tables:
        for view in table.views:
            own = [j for j in view.part.columns if j in sums]
            if not own:
                continue
            weights = view.weights(rows, fitted)
            for j in own:
                place = int(np.flatnonzero(view.part.columns == j)[0])
                stretch = slice(view.part.start[place], view.part.start[place + 1])
                statistics, prior = view.statistics[:, stretch], view.part.prior[stretch]
                of_rows, family = weights[gaps[:, j]], families[j]
                if hasattr(family, "predictive_shares"):
                    sums[j][0] = sums[j][0] + of_rows @ family.predictive_shares(statistics, prior)
                else:
                    mean, variance = family.predictive_moments(statistics, prior)
                    sums[j][0] = sums[j][0] + of_rows @ mean
                    sums[j][1] = sums[j][1] + of_rows @ (variance + mean**2)
    guesses = {}
    for j in asked:
        first = sums[j][0] / len(tables)
        if hasattr(families[j], "predictive_shares"):
            level = np.argmax(first, axis=1)
            guesses[j] = Guess(level.astype(np.float64), 1.0 - np.max(first, axis=1))
        else:
            variance = np.maximum(sums[j][1] / len(tables) - first**2, 0.0)
            guesses[j] = Guess(first, np.sqrt(variance))
    return guesses


def draw_rows(
    tables: Sequence[DrawnTable], given: np.ndarray, n_rows: int, random: np.random.Generator
) -> np.ndarray:
    """Draw rows conditional on the cells of ``given`` (1, n_columns) that are not missing."""
    likely = softmax([table.log_density(given)[0] for table in tables])
    drawn = []
    for table, count in zip(tables, random.multinomial(n_rows, likely), strict=True):
        if not count:
            continue
        statistics = np.empty((count, table.model.width))
        for view in table.views:
            cluster = random.choice(
                len(view.shares), size=count, p=view.weights(given, fitted=False)[0]
            )
            statistics[:, view.part.stretch] = view.statistics[cluster]
        parameters = table.model.draw_parameters(statistics, random)
        drawn.append(table.model.draw_rows(parameters, random))
    rows = random.permutation(np.concatenate(drawn))
    return np.where(np.isnan(given), rows, given)


def surprises(tables: Sequence[DrawnTable], rows: np.ndarray) -> np.ndarray:
    """Return minus the log predictive density of each fitted cell given the rest of its cluster."""
    total = np.zeros(rows.shape[::-1])
    for table in tables:
        for view in table.views:
            clusters = view.part.clusters(len(view.statistics), view.statistics)
            own = view.part.rows()
            for place, j in enumerate(view.part.columns):
                one = clusters._replace(columns=np.array([place]))
                add_surprises(one, own, view.labels, total[j])
    return np.where(np.isnan(rows), np.nan, total.T / len(tables))


def similarity(
    draws: Sequence[Draw], rows: np.ndarray, others: np.ndarray, columns: np.ndarray
) -> np.ndarray:
    """Return the mean share, over draws, of columns whose views have two rows in one cluster."""
    total = np.zeros((len(rows), len(others)), dtype=np.float32)
    for draw in draws:
        shares = np.bincount(draw.view_of[columns], minlength=len(draw.labels)) / len(columns)
        for share, labels in zip(shares, draw.labels, strict=True):
            if share:
                together = labels[rows][:, None] == labels[others]
                total += np.float32(share / len(draws)) * together
    return total
