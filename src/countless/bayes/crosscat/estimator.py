"""CrossCat: a table with columns of any kinds, seen in several ways at once.

Columns fall into views, and each view groups the rows in its own way; given the groups of its view
a column is a mixture of its model (Murphy, Machine Learning: a Probabilistic Perspective, section
25.6.2; Mansinghka et al., CrossCat, JMLR 17, 2016). Markov chains draw both from their posterior.
"""

from __future__ import annotations

from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import ClusterMixin, DensityMixin
from sklearn.utils.validation import check_is_fitted

from countless._compat import report_passes, with_callbacks
from countless._memory import state_memory
from countless.bayes.chains import Schedule, run_chains
from countless.bayes.crosscat import questions
from countless.bayes.crosscat.chain import CrossCatChain, Draw
from countless.bayes.crosscat.posterior import CrossCatPosterior
from countless.bayes.crosscat.saved import Answers
from countless.bayes.crosscat.table import (
    column_places,
    holds_truth_values,
    like,
    one_row,
    read_table,
)
from countless.bayes.predictive import normalised
from countless.bayes.sampled import Sampled, as_prior, averaged, schedule_of
from countless.models import Columns
from countless.priors.hyper import as_generator


class Imputation(NamedTuple):
    """A table without gaps, and how sure its new cells are."""

    table: Any  # in the form in which the table came
    uncertainty: np.ndarray  # (n_rows, n_columns), NaN where there was a value


class Unusual(NamedTuple):
    """A cell that fits badly."""

    row: int
    column: Any
    value: Any
    surprise: float


class CrossCat(DensityMixin, ClusterMixin, Sampled):
    """Find which columns of a table belong together, and how each set of them groups the rows.

    Takes numbers, categories, counts and truth values side by side, with gaps, which are integrated
    out.

    Parameters
    ----------
    models : sequence or mapping, default=None
        What columns are: 'number', 'category', 'binary' or 'count', or models of
        `countless.models`, for each column, or by name or place for those that are not what they
        look like. By default numbers are numbers, unless all are 0 or 1, and anything else is a
        category.
    row_prior, column_prior : PartitionPrior, default=None
        Of the rows in each view and of the columns, from `countless.priors`. None is a Dirichlet
        process whose concentration has the prior ``Gamma(1, 1)`` and is drawn, too.
    n_chains : int, default=4
    n_sweeps : int, default=100
        Sweeps of each chain in all.
    burn_in : int, default=None
        Of which the first are forgotten; by default half of them.
    thin : int, default=1
        Every so manieth sweep after these is kept.
    random_state : int, RandomState instance or None, default=None
    n_jobs : int, default=None
        Threads for chains, as in scikit-learn; the draws do not depend on them.

    Attributes
    ----------
    posterior_ : CrossCatPosterior
        The draws: ``views`` (n_chains, n_draws, n_columns), ``row_labels``, ``log_joint``,
        ``diagnostics()`` and more.
    views_ : list of TableView
        The views that are expected to be nearest to the truth, the widest first, each with its
        ``columns``, ``labels`` and ``n_clusters``.
    labels_ : ndarray of shape (n_samples,)
        The groups of the first of them.
    n_clusters_ : int
        How many groups that has.
    n_iter_ : int
        Sweeps of each chain.
    converged_ : bool
        Whether chains agree: the R-hat of the number of views and of the log joint density is not
        above 1.1. One chain has nothing to disagree with.
    column_names_ : list
        The names of the columns, or their places where they have none.
    n_features_in_ : int

    See Also
    --------
    DPMixture : One grouping of the rows by all columns.

    Examples
    --------
    >>> import numpy as np
    >>> from countless import CrossCat
    >>> random = np.random.default_rng(0)
    >>> a, b = random.integers(2, size=(2, 100))
    >>> X = np.column_stack([5 * a, 5 * a, 5 * b, 5 * b]) + random.normal(size=(100, 4))
    >>> model = CrossCat(n_chains=1, n_sweeps=40, random_state=0).fit(X)
    >>> [view.columns for view in model.views_]
    [[0, 1], [2, 3]]
    >>> model.dependence().round()[0].tolist()
    [1.0, 1.0, 0.0, 0.0]
    """

    posterior_: CrossCatPosterior  # type: ignore[assignment]

    def __init__(
        self,
        models=None,
        row_prior=None,
        column_prior=None,
        *,
        n_chains=4,
        n_sweeps=100,
        burn_in=None,
        thin=1,
        random_state=None,
        n_jobs=None,
    ):
        self.models = models
        self.row_prior = row_prior
        self.column_prior = column_prior
        self.n_chains = n_chains
        self.n_sweeps = n_sweeps
        self.burn_in = burn_in
        self.thin = thin
        self.random_state = random_state
        self.n_jobs = n_jobs

    @with_callbacks
    def fit(self, X, y=None):
        """Draw views of a table.

        Ctrl-C ends the run; the draws so far are kept, with a warning, where there are any.

        Parameters
        ----------
        X : data frame or array-like of shape (n_samples, n_features)
            pandas, polars or any frame that narwhals reads, or an array; None and NaN are gaps.
        y : ignored

        Returns
        -------
        self
        """
        schedule = schedule_of(self)
        self._table = read_table(self, X, reset=True)
        self.column_names_ = self._table.columns
        self._model = Columns(self.models).bind(self._table)
        self._rows = self._model.rows(self._table)
        random = as_generator(self.random_state)
        row_prior = as_prior("row_prior", self.row_prior)
        column_prior = as_prior("column_prior", self.column_prior)
        self._chains = [
            CrossCatChain(self._model, self._rows, row_prior, column_prior, generator)
            for generator in random.spawn(self.n_chains)
        ]
        self._random = random
        with report_passes(self, X) as on_pass:
            draws = run_chains(self._chains, schedule, n_jobs=self.n_jobs, on_pass=on_pass)
        n_sweeps = int(schedule.burn_in or 0) + len(draws[0]) * schedule.thin
        self._store(X, draws, n_sweeps, stacklevel=5)
        return self

    def resume(self, n_sweeps=100):
        """Let the chains go on from where they ended, and add their draws.

        Parameters
        ----------
        n_sweeps : int, default=100
            Sweeps more of each chain; every ``thin``-th is kept.

        Returns
        -------
        self
        """
        self._check_has_rows()
        if not isinstance(n_sweeps, Integral) or n_sweeps < self.thin:
            raise ValueError(f"n_sweeps must be at least thin={self.thin}; got {n_sweeps!r}")
        schedule = Schedule(int(n_sweeps), 0, self.thin)
        more = run_chains(self._chains, schedule, n_jobs=self.n_jobs)
        draws = [[*old, *new] for old, new in zip(self.posterior_.draws, more, strict=True)]
        self._store(self._given, draws, self.n_iter_ + len(more[0]) * self.thin, stacklevel=4)
        return self

    def encoded_rows(self):
        """Return the table in numbers: those of categories are the places of sorted levels."""
        self._check_has_rows()
        return self._rows + self._answers.model.origin

    def dependence(self):
        """Return how probable it is that two columns belong together.

        Returns
        -------
        ndarray of shape (n_features, n_features)
            The share of draws in which they are in one view.
        """
        check_is_fitted(self, "n_clusters_")
        return self._answers.together.copy()

    def similarity(self, rows=None, columns=None):
        """Return how alike rows are: how probable it is that they are in one group.

        Parameters
        ----------
        rows : array-like of int, optional
            These rows among each other; by default all.
        columns : name, place or list of these, optional
            In the views of these columns; by default in those of all, each column counting once.

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
        return questions.similarity(averaged(self.posterior_.every()), asked, asked, places)

    def impute(self, X=None):
        """Fill the gaps of a table with what is expected there.

        Parameters
        ----------
        X : data frame or array-like of shape (n_samples, n_features), optional
            Other rows with the same columns; by default the table that was fitted.

        Returns
        -------
        Imputation
            ``table``, in the form in which it came, has means of numbers, rounded ones of counts,
            and the likeliest category; ``uncertainty`` their standard deviation, or the
            probability that it is another category.
        """
        fitted = X is None
        if fitted:
            self._check_has_rows()
        tables = self._tables()
        X = self._given if fitted else X
        table = self._table if fitted else read_table(self, X, reset=False)
        rows = self._rows if fitted else self._answers.model.rows(table)
        gaps = np.isnan(rows)
        uncertainty = np.full(rows.shape, np.nan)
        columns = list(table.cells)
        for j, guess in questions.guess_cells(tables, rows, gaps, fitted=fitted).items():
            uncertainty[gaps[:, j], j] = guess.uncertainty
            columns[j] = self._answers.filled(table.cells[j], j, gaps[:, j], guess.value)
        return Imputation(like(X, table.columns, columns), uncertainty)

    def sample(self, n_samples=1, given=None, random_state=None):
        """Draw rows as the table might go on.

        Parameters
        ----------
        n_samples : int, default=1
        given : mapping, optional
            Values of some columns, by name or place, that all rows have.
        random_state : int, RandomState instance or None, default=None

        Returns
        -------
        ndarray or data frame of shape (n_samples, n_features)
            In the form of the table that was fitted.
        """
        tables = self._tables()
        if not isinstance(n_samples, Integral) or n_samples < 1:
            raise ValueError(f"n_samples must be a whole number of at least 1; got {n_samples!r}")
        row = self._answers.model.rows(one_row(self.column_names_, given or {}))
        drawn = questions.draw_rows(tables, row, int(n_samples), as_generator(random_state))
        new = np.ones(n_samples, dtype=bool)
        columns = [
            self._answers.filled(drawn[:, j], j, new, drawn[:, j]) for j in range(drawn.shape[1])
        ]
        return like(getattr(self, "_given", None), self.column_names_, columns)

    def predict(self, X):
        """Return the group of each row of X in the view of ``labels_``.

        Rows that were fitted may be in another group than their label says, where that is less
        probable.
        """
        return np.argmax(self.predict_proba(X), axis=1)

    def predict_proba(self, X):
        """Return how probable each group of ``labels_`` is for each row of X.

        Returns
        -------
        ndarray of shape (n_samples, n_clusters_)
            Given that a row is in one of them.
        """
        rows = self._rows_of(X)
        (view,) = self._answers.estimate.views
        return normalised(view.log_weighted(rows)[:, :-1])

    def score_samples(self, X):
        """Return the log of the posterior predictive density of each row of X.

        The mean over up to 32 draws; gaps are integrated out.
        """
        return questions.log_densities(self._tables(), self._rows_of(X))

    def score(self, X, y=None):
        """Return the mean log density of the rows of X."""
        return float(self.score_samples(X).mean())

    def surprise(self):
        """Return how badly each cell of the table fits its column and group.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
            Minus the log density of the cell given the others of its group, above what is usual in
            its column; NaN for gaps. The mean of a row tells how badly that fits.
        """
        self._check_has_rows()
        found = questions.surprises(self._tables(), self._rows)
        seen = ~np.isnan(found)
        usual = np.where(seen, found, 0.0).sum(axis=0) / np.maximum(seen.sum(axis=0), 1)
        return found - usual

    def unusual_cells(self, n=10):
        """Return the cells that fit worst, the worst first.

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
        """Return the places of the rows that fit worst, by the mean surprise of their cells."""
        surprise = self.surprise()
        seen = ~np.isnan(surprise)
        mean = np.where(seen, surprise, 0.0).sum(axis=1) / np.maximum(seen.sum(axis=1), 1)
        return np.argsort(-mean, kind="stable")[:n]

    def _store(self, X: Any, draws: list[list[Draw]], n_sweeps: int, stacklevel: int) -> None:
        """Keep the draws, and what follows from them."""
        self._given = X
        self.posterior_ = CrossCatPosterior(draws)
        self.views_ = self.posterior_.point_estimate(self.column_names_, self._random)
        self.labels_, self.n_clusters_ = self.views_[0].labels, self.views_[0].n_clusters
        columns = column_places(self.column_names_, self.views_[0].columns)
        best = max(self.posterior_.every(), key=lambda draw: draw.log_joint)
        prior = best.priors[np.bincount(best.view_of[columns]).argmax()]
        view = (columns, self.labels_, prior)
        self._answers = Answers(
            self._model,
            self.column_names_,
            np.array([holds_truth_values(cells) for cells in self._table.cells]),
            questions.table_of(self._model, self._rows, best.hyper, [view]),
            [],
            self.posterior_.dependence(),
        )
        self.n_iter_ = n_sweeps
        self._judge_chains(stacklevel)

    def _advice(self) -> str:
        i, j, most = self.posterior_.disagreement()
        if i == j:
            return "raise n_sweeps, or call resume()"
        pair = f"{self.column_names_[i]!r} and {self.column_names_[j]!r}"
        return (
            f"they differ by up to {most:.2f} on whether two columns, {pair}, belong together: "
            "raise n_sweeps, or call resume()"
        )

    def answers(self) -> Answers:
        """Return all that questions about other rows rest on, for model files."""
        self._tables()
        return self._answers

    def restore(self, answers: Answers, *, named: bool) -> None:
        """Take the place of the CrossCat whose answers were saved."""
        self._answers = answers
        self.column_names_ = answers.names
        self.n_features_in_ = len(answers.names)
        self.n_clusters_ = len(answers.estimate.views[0].log_weights) - 1
        if named:
            self.feature_names_in_ = np.array(answers.names, dtype=object)

    def _check_has_rows(self) -> None:
        check_is_fitted(self, "n_clusters_")
        if not hasattr(self, "posterior_"):
            raise ValueError("a model loaded from a file has no rows of its own: give X, or fit")

    def _tables(self) -> list[questions.DrawnTable]:
        """Return the draws that answers are averaged over, counted once."""
        check_is_fitted(self, "n_clusters_")
        if not self._answers.tables:
            draws = averaged(self.posterior_.every())
            self._answers.tables.extend(
                questions.drawn_table(self._model, self._rows, draw) for draw in draws
            )
        return self._answers.tables

    def _rows_of(self, X: Any) -> np.ndarray:
        check_is_fitted(self, "n_clusters_")
        return self._answers.model.rows(read_table(self, X, reset=False))

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        return tags
