"""What drawn views say of cells and rows: densities, guesses, new rows, and what does not fit.

In one draw the views are independent, and each is a mixture: a row is in a cluster with the
probability that the prior and its own cells in this view give, or in a new one. Answers are means
over draws.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, cast

import numpy as np
from scipy.special import logsumexp, softmax

from countless.bayes.crosscat.cells import SomeColumns
from countless.bayes.crosscat.chain import Draw
from countless.kernels.crosscat import add_surprises
from countless.models.cells import BoundCells
from countless.priors import PartitionPrior


class DrawnView(NamedTuple):
    """One view of a draw; the last of its clusters is new, and its statistics are zeros."""

    part: SomeColumns
    labels: np.ndarray  # (n_rows,)
    statistics: np.ndarray  # (n_clusters + 1, width of its columns)
    shares: np.ndarray  # (n_clusters + 1,), not logarithms: a new cluster may have none

    def log_weighted(self, rows: np.ndarray) -> np.ndarray:
        """Return the log of weight times density, (n_rows, n_clusters + 1)."""
        own = np.ascontiguousarray(rows[:, self.part.columns])
        with np.errstate(divide="ignore"):
            return self.part.log_predictive(own, self.statistics) + np.log(self.shares)

    def weights(self, rows: np.ndarray, fitted: bool) -> np.ndarray:
        """Return how probable each cluster is for each row; fitted rows are where they are."""
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
    """Return what a draw says of the rows of a table."""
    columns = (np.flatnonzero(draw.view_of == v) for v in range(len(draw.labels)))
    return table_of(model, rows, draw.hyper, zip(columns, draw.labels, draw.priors, strict=True))


def table_of(
    model: BoundCells,
    rows: np.ndarray,
    hyper: np.ndarray,
    views: Iterable[tuple[np.ndarray, np.ndarray, PartitionPrior]],
) -> DrawnTable:
    """Return what hyperparameters and views (columns, labels, prior) say of a table."""
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
    """What is to be expected of cells of one column."""

    value: np.ndarray  # the mean, or the likeliest level as its code
    uncertainty: np.ndarray  # the standard deviation, or the probability of another level


def guess_cells(
    tables: Sequence[DrawnTable], rows: np.ndarray, gaps: np.ndarray, *, fitted: bool
) -> dict[int, Guess]:
    """Return what is expected at the gaps, by columns that have any.

    ``fitted`` says that these are the rows that were fitted, whose clusters are known.
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
    """Draw rows that have the cells of ``given`` (1, n_columns) where it has no gap."""
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
    """Return minus the log density of each fitted cell given the others of its cluster."""
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
    """Return the share of columns, in the mean of draws, whose views have two rows together."""
    total = np.zeros((len(rows), len(others)), dtype=np.float32)
    for draw in draws:
        shares = np.bincount(draw.view_of[columns], minlength=len(draw.labels)) / len(columns)
        for share, labels in zip(shares, draw.labels, strict=True):
            if share:
                together = labels[rows][:, None] == labels[others]
                total += np.float32(share / len(draws)) * together
    return total
