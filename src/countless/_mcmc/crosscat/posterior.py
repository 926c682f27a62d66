"""Posterior draws of CrossCat, and what they predict.

In one draw the views are independent, and each is a mixture model: the posterior probability of
each cluster of a row, or of a new one, follows from the prior and from the row's cells in this
view. Densities, imputed cells, drawn rows and similarities are averaged over draws.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, cast

import numpy as np
from scipy.special import logsumexp, softmax

from countless._mcmc.crosscat.chain import Draw
from countless._mcmc.crosscat.column_models import ColumnSubset
from countless._mcmc.draws import equal_rows
from countless._mcmc.posterior import Diagnostic, Posterior
from countless._show import Records, Shown
from countless.kernels.crosscat import add_surprises
from countless.models.cells import BoundCells
from countless.priors import PartitionPrior


class ViewMixture(NamedTuple):
    """One view of a draw; its last cluster is a new one, whose statistics are zeros."""

    subset: ColumnSubset
    labels: np.ndarray  # (n_rows,)
    statistics: np.ndarray  # (n_clusters + 1, width of its columns)
    shares: np.ndarray  # (n_clusters + 1,), not logarithms: that of a new cluster may be 0

    def log_weighted(self, rows: np.ndarray) -> np.ndarray:
        """Return the log of weight times density, (n_rows, n_clusters + 1)."""
        own = np.ascontiguousarray(rows[:, self.subset.columns])
        with np.errstate(divide="ignore"):
            return self.subset.log_predictive(own, self.statistics) + np.log(self.shares)

    def weights(self, rows: np.ndarray, fitted: bool) -> np.ndarray:
        """Return the probability of each cluster for each row; fitted rows have their label."""
        if fitted:
            return np.eye(len(self.shares))[self.labels]
        return softmax(self.log_weighted(rows), axis=1)


class DrawMixtures(NamedTuple):
    """All views of one draw."""

    model: BoundCells  # with the hyperparameters of the draw
    views: list[ViewMixture]

    def log_density(self, rows: np.ndarray) -> np.ndarray:
        """Return the log density of each row."""
        return sum(logsumexp(view.log_weighted(rows), axis=1) for view in self.views)


def mixtures_of_draw(model: BoundCells, rows: np.ndarray, draw: Draw) -> DrawMixtures:
    """Return a draw with the statistics of the rows of a table."""
    columns = (np.flatnonzero(draw.view_of == v) for v in range(len(draw.labels)))
    return mixtures_of_views(
        model, rows, draw.hyper, zip(columns, draw.labels, draw.priors, strict=True)
    )


def mixtures_of_views(
    model: BoundCells,
    rows: np.ndarray,
    hyper: np.ndarray,
    views: Iterable[tuple[np.ndarray, np.ndarray, PartitionPrior]],
) -> DrawMixtures:
    """Return the mixtures given by hyperparameters and views (columns, labels, prior)."""
    own = cast(BoundCells, model.with_hyper(hyper))
    drawn = []
    for columns, labels, prior in views:
        subset = ColumnSubset(own, rows, columns)
        statistics = subset.statistics(subset.rows(), labels)
        extended = np.concatenate([statistics, np.zeros((1, subset.width))])
        shares = np.exp(prior.log_predictive(np.bincount(labels)))
        drawn.append(ViewMixture(subset, labels.astype(np.int64), extended, shares))
    return DrawMixtures(own, drawn)


def log_densities(draws: Sequence[DrawMixtures], rows: np.ndarray) -> np.ndarray:
    """Return the log of the mean density of each row."""
    each = np.stack([draw.log_density(rows) for draw in draws])
    return logsumexp(each, axis=0) - np.log(len(draws))


class CellPrediction(NamedTuple):
    """Posterior predictive estimates of cells of one column."""

    value: np.ndarray  # the mean, or the code of the most probable level
    uncertainty: np.ndarray  # the standard deviation, or the probability of another level


def predict_cells(
    draws: Sequence[DrawMixtures], rows: np.ndarray, missing: np.ndarray, *, fitted: bool
) -> dict[int, CellPrediction]:
    """Return predictive estimates of the missing cells, for each column that has any.

    ``fitted`` is True for the rows that were fitted, whose clusters are part of each draw.
    """
    columns = [int(j) for j in np.flatnonzero(missing.any(axis=0))]
    families: dict[int, Any] = {j: draws[0].model.family_of(j) for j in columns}
    sums: dict[int, list[Any]] = {j: [0.0, 0.0] for j in columns}
    for draw in draws:
        for view in draw.views:
            own = [j for j in view.subset.columns if j in sums]
            if not own:
                continue
            weights = view.weights(rows, fitted)
            for j in own:
                place = int(np.flatnonzero(view.subset.columns == j)[0])
                stretch = slice(view.subset.start[place], view.subset.start[place + 1])
                statistics, prior = view.statistics[:, stretch], view.subset.prior[stretch]
                of_rows, family = weights[missing[:, j]], families[j]
                if family.categorical:
                    sums[j][0] = sums[j][0] + of_rows @ family.predictive_shares(statistics, prior)
                else:
                    mean, variance = family.predictive_moments(statistics, prior)
                    sums[j][0] = sums[j][0] + of_rows @ mean
                    sums[j][1] = sums[j][1] + of_rows @ (variance + mean**2)
    predictions = {}
    for j in columns:
        first = sums[j][0] / len(draws)
        if families[j].categorical:
            level = np.argmax(first, axis=1)
            predictions[j] = CellPrediction(level.astype(np.float64), 1.0 - np.max(first, axis=1))
        else:
            variance = np.maximum(sums[j][1] / len(draws) - first**2, 0.0)
            predictions[j] = CellPrediction(first, np.sqrt(variance))
    return predictions


def draw_rows(
    draws: Sequence[DrawMixtures], given: np.ndarray, n_rows: int, random: np.random.Generator
) -> np.ndarray:
    """Draw rows conditional on the cells of ``given`` (1, n_columns) that are not missing."""
    likely = softmax([draw.log_density(given)[0] for draw in draws])
    drawn = []
    for draw, count in zip(draws, random.multinomial(n_rows, likely), strict=True):
        if not count:
            continue
        statistics = np.empty((count, draw.model.width))
        for view in draw.views:
            cluster = random.choice(
                len(view.shares), size=count, p=view.weights(given, fitted=False)[0]
            )
            statistics[:, view.subset.stretch] = view.statistics[cluster]
        parameters = draw.model.draw_parameters(statistics, random)
        drawn.append(draw.model.draw_rows(parameters, random))
    rows = random.permutation(np.concatenate(drawn))
    return np.where(np.isnan(given), rows, given)


def cell_surprises(draws: Sequence[DrawMixtures], rows: np.ndarray) -> np.ndarray:
    """Return minus the log predictive density of each fitted cell given the rest of its cluster."""
    total = np.zeros(rows.shape[::-1])
    for draw in draws:
        for view in draw.views:
            clusters = view.subset.clusters(len(view.statistics), view.statistics)
            own = view.subset.rows()
            for place, j in enumerate(view.subset.columns):
                one = clusters._replace(columns=np.array([place]))
                add_surprises(one, own, view.labels, total[j])
    return np.where(np.isnan(rows), np.nan, total.T / len(draws))


def row_similarity(
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


class TableView(NamedTuple):
    """A view: dependent columns, and their partition of the rows."""

    columns: list[Any]  # their names, or indices if there are none
    labels: np.ndarray  # (n_rows,), numbered by first appearance
    n_clusters: int


class ViewCount(NamedTuple):
    """A number of views and its posterior probability."""

    n_views: int
    probability: float


class CrossCatPosterior(Shown):
    """Posterior draws of CrossCat from several chains.

    Parameters
    ----------
    draws : sequence of sequences of Draw
        The draws of each chain, equally many of each.

    Attributes
    ----------
    views : ndarray of shape (n_chains, n_draws, n_columns)
        The view of each column, numbered by first appearance within each draw.
    n_views : ndarray of shape (n_chains, n_draws)
    log_joint : ndarray of shape (n_chains, n_draws)
    alpha : ndarray of shape (n_chains, n_draws)
        The concentration of the columns' prior; NaN if it has none.
    row_labels : list of lists of tuples of ndarray
        The cluster of each row in each view: ``row_labels[chain][draw][view]``.
    """

    def __init__(self, draws: Sequence[Sequence[Draw]]) -> None:
        self.draws = [list(chain) for chain in draws]
        alpha = [[getattr(draw.column_prior, "alpha", np.nan) for draw in c] for c in draws]
        self._columns = Posterior(
            [[draw.view_of for draw in chain] for chain in draws],
            [[draw.log_joint for draw in chain] for chain in draws],
            {"alpha": alpha},
        )
        self.views, self.n_views = self._columns.labels, self._columns.n_clusters
        self.log_joint, self.alpha = self._columns.log_joint, self._columns.alpha
        self.row_labels = [[draw.labels for draw in chain] for chain in draws]

    def __repr__(self) -> str:
        n_chains, n_draws, n_columns = self.views.shape
        low, high = int(self.n_views.min()), int(self.n_views.max())
        return (
            f"<CrossCatPosterior: {n_chains} chains of {n_draws} draws of {n_columns} columns, "
            f"{low} to {high} views>"
        )

    def _describe(self) -> tuple[list[str], Records]:
        share = self._columns.n_clusters_distribution()
        likeliest = np.argsort(-share, kind="stable")[: np.count_nonzero(share)]
        return [repr(self)], Records(ViewCount(int(k), float(share[k])) for k in likeliest)

    def every(self) -> list[Draw]:
        """Return the draws of all chains as one list."""
        return [draw for chain in self.draws for draw in chain]

    def dependence(self) -> np.ndarray:
        """Return the dependence probabilities: that two columns share a view."""
        return self._columns.similarity()

    def diagnostics(self) -> dict[str, Diagnostic]:
        """Return R-hat and effective sample size of the number of views and the log joint."""
        found = self._columns.diagnostics()
        return {"n_views": found["n_clusters"], "log_joint": found["log_joint"]}

    def disagreement(self) -> tuple[int, int, float]:
        """Return the pair of columns whose dependence differs most between chains, and by what."""
        together = np.stack([(c[:, :, None] == c[:, None]).mean(axis=0) for c in self.views])
        apart = together.max(axis=0) - together.min(axis=0)
        i, j = np.unravel_index(int(np.argmax(apart)), apart.shape)
        return int(i), int(j), float(apart[i, j])

    def point_estimate(
        self, names: Sequence[Any], rows: np.ndarray, random: np.random.Generator
    ) -> list[TableView]:
        """Return the views of least posterior expected loss, those of most columns first.

        The row partition of a view is the point estimate over the views, one of each draw, that
        share most columns with it; equal rows are in one cluster.
        """
        # An undecided column remains a singleton: to share a view is to depend on the others.
        view_of = self._columns.point_estimate(random_state=random, assign=False)
        views = []
        for v in range(int(view_of.max()) + 1):
            columns = np.flatnonzero(view_of == v)
            partitions = [
                draw.labels[np.bincount(draw.view_of[columns]).argmax()] for draw in self.every()
            ]
            grouped = Posterior([partitions], np.zeros((1, len(partitions))))
            same = equal_rows(rows[:, columns])
            labels = grouped.point_estimate(random_state=random, same=same)
            own = [names[int(j)] for j in columns]
            views.append(TableView(own, labels, int(labels.max()) + 1))
        return sorted(views, key=lambda view: -len(view.columns))
