"""CrossCat: several clusterings of one table with columns of mixed types.

Columns are partitioned into views, and each view has its own partition of the rows; within a view
each column is a mixture of its component model (Murphy, Machine Learning: a Probabilistic
Perspective, section 25.6.2; Mansinghka et al., CrossCat, JMLR 17, 2016). Markov chains sample the
posterior of both partitions.
"""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np

from countless._compat import report_passes, with_callbacks
from countless._mcmc.chains import Schedule, run_chains
from countless._mcmc.crosscat.chain import CrossCatChain, Draw
from countless._mcmc.crosscat.posterior import CrossCatPosterior, mixtures_of_views
from countless._mcmc.crosscat.predictive_state import PredictiveState
from countless._mcmc.crosscat.queries import Queries
from countless._mcmc.crosscat.table import column_places, holds_truth_values, read_table
from countless._mcmc.sampled import as_prior, schedule_of
from countless.models import Columns
from countless.models.checks import spread_rounding
from countless.priors.hyper import as_generator


class CrossCat(Queries):
    """Partition the columns of a table into views, and the rows within each view.

    Columns may be numbers, categories, counts and booleans. Missing values are integrated out.
    Equal numbers are taken to be rounded: the chains use values spread uniformly over the least
    step between values.

    Parameters
    ----------
    models : sequence or mapping, default=None
        Types of the columns: 'number', 'category', 'binary' or 'count', or models of
        `countless.models`; for all columns, or by name or index for those whose detected type is
        wrong. By default numeric columns are numbers, or binary if all values are 0 or 1, and
        other columns are categories.
    row_prior, column_prior : PartitionPrior, default=None
        Priors of the partition of the rows in each view, and of the columns, from
        `countless.priors`. None is a Dirichlet process whose concentration has the prior
        ``Gamma(1, 1)`` and is sampled, too.
    n_chains : int, default=4
    n_sweeps : int, default=100
        Number of sweeps of each chain, burn-in included.
    burn_in : int, default=None
        Number of first sweeps that are discarded; by default half of them.
    thin : int, default=1
        Every ``thin``-th sweep after burn-in is kept.
    random_state : int, RandomState instance or None, default=None
    n_jobs : int, default=None
        Number of threads for chains, as in scikit-learn; the draws do not depend on it.

    Attributes
    ----------
    posterior_ : CrossCatPosterior
        The draws: ``views`` (n_chains, n_draws, n_columns), ``row_labels``, ``log_joint``,
        ``diagnostics()`` and more.
    views_ : list of TableView
        The views of least posterior expected loss, those of most columns first, each with its
        ``columns``, ``labels`` and ``n_clusters``.
    labels_ : ndarray of shape (n_samples,)
        The row clusters of the first view.
    n_clusters_ : int
        Number of clusters of ``labels_``.
    n_iter_ : int
        Sweeps of each chain.
    converged_ : bool
        Whether chains agree: the R-hat of the number of views and of the log joint density is not
        above 1.1. Always True for one chain.
    column_names_ : list
        The names of the columns, or their indices if they have none.
    n_features_in_ : int

    See Also
    --------
    DPMixture : One clustering of the rows by all columns.

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
        """Sample views of a table.

        Ctrl-C stops the chains; the draws so far, if there are any, are kept, with a warning.

        Parameters
        ----------
        X : data frame or array-like of shape (n_samples, n_features)
            pandas, polars or any frame that narwhals reads, or an array; None and NaN are missing
            values.
        y : ignored

        Returns
        -------
        self
        """
        schedule = schedule_of(self)
        self._table = read_table(self, X, reset=True)
        self.column_names_ = self._table.columns
        self._model = Columns(self.models).bind(self._table)
        random = as_generator(self.random_state)
        numbers = self._model.own_variance_columns()
        self._rows = spread_rounding(self._model.rows(self._table), numbers, random)
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
        """Continue the chains from their last state, and add their draws.

        Parameters
        ----------
        n_sweeps : int, default=100
            Number of further sweeps of each chain; every ``thin``-th is kept.

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

    def _store(self, X: Any, draws: list[list[Draw]], n_sweeps: int, stacklevel: int) -> None:
        """Set the fitted attributes from the draws."""
        self._given = X
        self.posterior_ = CrossCatPosterior(draws)
        self.views_ = self.posterior_.point_estimate(
            self.column_names_, self._model.rows(self._table), self._random
        )
        self.labels_, self.n_clusters_ = self.views_[0].labels, self.views_[0].n_clusters
        columns = column_places(self.column_names_, self.views_[0].columns)
        best = max(self.posterior_.every(), key=lambda draw: draw.log_joint)
        prior = best.priors[np.bincount(best.view_of[columns]).argmax()]
        view = (columns, self.labels_, prior)
        self._predictive = PredictiveState(
            self._model,
            self.column_names_,
            np.array([holds_truth_values(cells) for cells in self._table.cells]),
            mixtures_of_views(self._model, self._rows, best.hyper, [view]),
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
