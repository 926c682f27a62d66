"""Queries of a fitted CrossCat, about its own table and about new rows."""

from __future__ import annotations

from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import ClusterMixin, DensityMixin
from sklearn.utils.validation import check_is_fitted

from countless._mcmc.crosscat.posterior import (
    CrossCatPosterior,
    DrawMixtures,
    cell_surprises,
    draw_rows,
    log_densities,
    mixtures_of_draw,
    predict_cells,
    row_similarity,
)
from countless._mcmc.crosscat.predictive_state import PredictiveState
from countless._mcmc.crosscat.table import Table, column_places, like, one_row, read_table
from countless._mcmc.predictive import normalised
from countless._mcmc.sampled import Sampled, averaged
from countless._memory import state_memory
from countless.models.cells import BoundCells
from countless.priors.hyper import as_generator


class Imputation(NamedTuple):
    """A table with missing values imputed, and the uncertainty of imputed cells."""

    table: Any  # of the type of the input table
    uncertainty: np.ndarray  # (n_rows, n_columns), NaN for cells that were not missing


class Unusual(NamedTuple):
    """A surprising cell."""

    row: int
    column: Any
    value: Any
    surprise: float


class Queries(DensityMixin, ClusterMixin, Sampled):
    """Base class of CrossCat with its queries."""

    posterior_: CrossCatPosterior  # type: ignore[assignment]
    column_names_: list[Any]
    _predictive: PredictiveState
    # Attributes of the fitted table; a model loaded from a file has none of them.
    _given: Any
    _table: Table
    _rows: np.ndarray  # the data of the chains, with dithered rounding (see spread_rounding)
    _model: BoundCells

    def encoded_rows(self):
        """Return the table as numbers; categories are indices into their sorted levels."""
        self._check_has_rows()
        return self._predictive.model.rows(self._table) + self._predictive.model.origin

    def dependence(self):
        """Return the dependence probabilities of pairs of columns.

        Returns
        -------
        ndarray of shape (n_features, n_features)
            The share of draws in which they are in one view.
        """
        check_is_fitted(self, "n_clusters_")
        return self._predictive.together.copy()

    def similarity(self, rows=None, columns=None):
        """Return the similarity of rows: the probability that they are in one cluster.

        Parameters
        ----------
        rows : array-like of int, optional
            Row indices; all pairs of them are returned. By default all rows.
        columns : name, index or list of these, optional
            Columns whose views are averaged over, each column counting once; by default all.

        Returns
        -------
        ndarray of float32, shape (n_rows, n_rows)
        """
        self._check_has_rows()
        n_rows = len(self._rows)
        asked = np.arange(n_rows) if rows is None else np.atleast_1d(np.asarray(rows))
        if asked.dtype.kind not in "iu" or ((asked < 0) | (asked >= n_rows)).any():
            raise ValueError(f"rows must be numbers from 0 to {n_rows - 1}")
        places = np.arange(self.n_features_in_)
        if columns is not None:
            places = column_places(self.column_names_, columns)
        what = f"the similarity of {len(asked):,} rows"
        state_memory(what, 8 * len(asked) ** 2, "ask for some rows")
        return row_similarity(averaged(self.posterior_.every()), asked, asked, places)

    def impute(self, X=None):
        """Impute the missing values of a table by posterior predictive estimates.

        Parameters
        ----------
        X : data frame or array-like of shape (n_samples, n_features), optional
            New rows with the same columns; by default the table that was fitted.

        Returns
        -------
        Imputation
            ``table``, of the type of the input, has the predictive mean of numbers, the rounded
            mean of counts, and the most probable category; ``uncertainty`` is the predictive
            standard deviation, or the probability of another category.
        """
        fitted = X is None
        if fitted:
            self._check_has_rows()
        draws = self._mixtures()
        X = self._given if fitted else X
        table = self._table if fitted else read_table(self, X, reset=False)
        rows = self._rows if fitted else self._predictive.model.rows(table)
        missing = np.isnan(rows)
        uncertainty = np.full(rows.shape, np.nan)
        columns = list(table.cells)
        for j, prediction in predict_cells(draws, rows, missing, fitted=fitted).items():
            uncertainty[missing[:, j], j] = prediction.uncertainty
            columns[j] = self._predictive.filled(table.cells[j], j, missing[:, j], prediction.value)
        return Imputation(like(X, table.columns, columns), uncertainty)

    def sample(self, n_samples=1, given=None, random_state=None):
        """Draw rows from the posterior predictive distribution.

        Parameters
        ----------
        n_samples : int, default=1
        given : mapping, optional
            Values of some columns, by name or index, to condition on.
        random_state : int, RandomState instance or None, default=None

        Returns
        -------
        ndarray or data frame of shape (n_samples, n_features)
            Of the type of the table that was fitted.
        """
        draws = self._mixtures()
        if not isinstance(n_samples, Integral) or n_samples < 1:
            raise ValueError(f"n_samples must be an integer of at least 1; got {n_samples!r}")
        row = self._predictive.model.rows(one_row(self.column_names_, given or {}))
        drawn = draw_rows(draws, row, int(n_samples), as_generator(random_state))
        new = np.ones(n_samples, dtype=bool)
        columns = [
            self._predictive.filled(drawn[:, j], j, new, drawn[:, j]) for j in range(drawn.shape[1])
        ]
        return like(getattr(self, "_given", None), self.column_names_, columns)

    def predict(self, X):
        """Return the most probable cluster of each row of X in the view of ``labels_``.

        For a fitted row it may differ from its label, if that is less probable.
        """
        return np.argmax(self.predict_proba(X), axis=1)

    def predict_proba(self, X):
        """Return the probability of each cluster of ``labels_`` for each row of X.

        Returns
        -------
        ndarray of shape (n_samples, n_clusters_)
            Conditional on a row being in one of them.
        """
        rows = self._rows_of(X)
        (view,) = self._predictive.estimate.views
        return normalised(view.log_weighted(rows)[:, :-1])

    def score_samples(self, X):
        """Return the log of the posterior predictive density of each row of X.

        The density is the mean over up to 32 draws; missing values are integrated out.
        """
        return log_densities(self._mixtures(), self._rows_of(X))

    def score(self, X, y=None):
        """Return the mean log density of the rows of X."""
        return float(self.score_samples(X).mean())

    def surprise(self):
        """Return the surprise of each cell of the table, given its column and cluster.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
            Minus the log predictive density of the cell given the rest of its cluster, less the
            mean of its column; NaN for missing values. Its mean over a row is the surprise of the
            row.
        """
        self._check_has_rows()
        found = cell_surprises(self._mixtures(), self._rows)
        seen = ~np.isnan(found)
        usual = np.where(seen, found, 0.0).sum(axis=0) / np.maximum(seen.sum(axis=0), 1)
        return found - usual

    def unusual_cells(self, n=10):
        """Return the ``n`` most surprising cells, in decreasing order.

        Returns
        -------
        list of Unusual
            Each with ``row``, ``column``, ``value`` and ``surprise``.
        """
        surprise = self.surprise()
        found = np.nan_to_num(surprise, nan=-np.inf)
        worst = np.argsort(-found, axis=None, kind="stable")[: min(n, np.isfinite(found).sum())]
        names, cells = self._table
        return [
            Unusual(int(i), names[j], cells[j][i], float(surprise[i, j]))
            for i, j in zip(*np.unravel_index(worst, surprise.shape), strict=True)
        ]

    def unusual_rows(self, n=10):
        """Return the indices of the rows with the highest mean surprise of their cells."""
        surprise = self.surprise()
        seen = ~np.isnan(surprise)
        mean = np.where(seen, surprise, 0.0).sum(axis=1) / np.maximum(seen.sum(axis=1), 1)
        return np.argsort(-mean, kind="stable")[:n]

    def predictive_state(self) -> PredictiveState:
        """Return the data that queries about new rows need, for model files."""
        self._mixtures()
        return self._predictive

    def restore(self, state: PredictiveState, *, named: bool) -> None:
        """Set the state of this estimator from a saved one."""
        self._predictive = state
        self.column_names_ = state.names
        self.n_features_in_ = len(state.names)
        self.n_clusters_ = len(state.estimate.views[0].shares) - 1
        if named:
            self.feature_names_in_ = np.array(state.names, dtype=object)

    def _check_has_rows(self) -> None:
        check_is_fitted(self, "n_clusters_")
        if not hasattr(self, "posterior_"):
            raise ValueError("a model loaded from a file has no rows of its own: give X, or fit")

    def _mixtures(self) -> list[DrawMixtures]:
        """Return the draws that queries average over; their statistics are computed once."""
        check_is_fitted(self, "n_clusters_")
        if not self._predictive.draws:
            draws = averaged(self.posterior_.every())
            self._predictive.draws.extend(
                mixtures_of_draw(self._model, self._rows, draw) for draw in draws
            )
        return self._predictive.draws

    def _rows_of(self, X: Any) -> np.ndarray:
        check_is_fitted(self, "n_clusters_")
        return self._predictive.model.rows(read_table(self, X, reset=False))

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        return tags
