"""The interface of component models: a specification, and the model bound to a table's columns.

A ``Model`` specifies the distribution of one cluster and the hyperparameters that the user gave.
``bind(X)`` validates a table, sets the other hyperparameters from it and returns a ``BoundModel``,
which is immutable. Sufficient statistics are vectors: those of the union of two sets of rows are
their sum.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator

from countless._labels import check_labels, number_by_appearance
from countless.kernels import models as kernels
from countless.kernels.arrays import plain
from countless.models.checks import spread_rounding
from countless.models.hyper import Hyper, climb, sample_each

# Largest size of the lookup tables of the terms of log marginals by count, and the fewest counts
# that they have; terms of larger counts are computed.
TABLE_VALUES, FEWEST_COUNTS = 2**22, 64
# Number of sets of statistics whose predictive densities are computed at once.
SETS_AT_ONCE = 64


class Model(BaseEstimator, ABC):
    """Specification of a component model; a parameter that is None is set from the data."""

    # As in scikit-learn's input tags: whether values may be missing, and whether they may be text.
    allow_nan: ClassVar[bool] = True
    categorical: ClassVar[bool] = False
    # Whether it can model the cells of a whole table as one column (`ColumnModel`).
    for_cells: ClassVar[bool] = False
    # Whether columns may be scaled before they are modelled; counts and categories may not.
    scalable: ClassVar[bool] = False

    @abstractmethod
    def bind(self, X: Any) -> BoundModel:
        """Return the model of the columns of ``X``, all hyperparameters set."""

    def fit_hyper(self, X: Any, labels: Any = None, *, use_prior: bool = False) -> BoundModel:
        """Return the model bound to a table, with optimal hyperparameters: empirical Bayes.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
        labels : array-like of shape (n_samples,), optional
            The cluster of each row, as any labels; by default all are one cluster. Hyperparameters
            of a mixture are fitted, too, by `DPMixture` with ``inference='map'`` or
            'variational': ``model_``.
        use_prior : bool, default=False
            Maximise the evidence times the prior density of the hyperparameters, as `DPMixture`
            does, instead of the evidence, the marginal likelihood of the rows.

        Returns
        -------
        BoundModel
            Its hyperparameters are ``hyper.value``, those that the user gave unchanged.

        Examples
        --------
        >>> import numpy as np
        >>> from countless.models import FixedGaussian
        >>> X = np.array([[0.0], [2.0], [10.0], [12.0], [20.0], [22.0]])
        >>> fitted = FixedGaussian(mean=11.0).fit_hyper(X, [0, 0, 1, 1, 2, 2])
        >>> np.exp(fitted.hyper.value[1:]).round(2)  # variances of rows and of cluster means
        array([ 2.  , 65.67])
        """
        bound = self.bind(X)
        rows = bound.spread(bound.rows(X))
        given = np.zeros(len(rows), dtype=int) if labels is None else check_labels("labels", labels)
        if len(given) != len(rows):
            raise ValueError(f"labels has {len(given)} labels; X has {len(rows)} rows")
        statistics = bound.statistics(rows, number_by_appearance(given)[1])
        return bound.fit_hyper(statistics, use_prior=use_prior)

    def check_shape(self, n_rows: int, n_columns: int) -> None:
        """Raise a ValueError if a table has too few rows for this model."""
        _ = n_rows, n_columns  # any number is enough, if a model does not say otherwise

    def bind_packed(self, table: np.ndarray, levels: list[list | None]) -> BoundModel:
        """Return the model of what ``BoundModel.packed_table`` and ``levels`` returned."""
        self.refuse_levels(levels)
        return self.bind(table)

    def refuse_levels(self, levels: list[list | None]) -> None:
        """Raise a ValueError if any column has levels."""
        if any(own is not None for own in levels):
            raise ValueError(f"{type(self).__name__} has no levels")


class ClusterModel(ABC):
    """The interface of a model to kernels: clusters, sufficient statistics, densities of rows."""

    width: int  # length of the vector of statistics of a cluster

    @abstractmethod
    def _allocate(self, capacity: int) -> Any:
        """Allocate the kernels' arrays of ``capacity`` clusters, all statistics zero."""

    def clusters(self, capacity: int, statistics: np.ndarray | None = None) -> Any:
        """Return ``capacity`` clusters for kernels, the first with the given statistics."""
        fields = self._allocate(capacity)
        clusters = type(fields)(*(plain(f) if isinstance(f, np.ndarray) else f for f in fields))
        if statistics is not None:
            clusters.statistics[: len(statistics)] = statistics
        kernels.refresh_all(clusters)
        return clusters

    def statistics(
        self, rows: np.ndarray, labels: np.ndarray | None = None, n_clusters: int | None = None
    ) -> np.ndarray:
        """Return the statistics of all rows, or of each cluster of them, (n_clusters, width).

        Rows with a negative label belong to no cluster.
        """
        one = labels is None
        labels = np.zeros(len(rows), dtype=np.int64) if labels is None else np.asarray(labels)
        if n_clusters is None:
            n_clusters = 1 if one else int(labels.max(initial=-1)) + 1
        clusters = self.clusters(n_clusters)
        kernels.count_rows(clusters, plain(rows), labels.astype(np.int64))
        return clusters.statistics[0] if one else clusters.statistics

    def pieces(self, rows: np.ndarray, capacity: int) -> tuple[Any, Any]:
        """Return empty clusters for scans that allocate rows: as scans use them, and in general."""
        clusters = self.clusters(capacity)
        return clusters, clusters

    def log_marginal(self, statistics: np.ndarray) -> np.ndarray:
        """Return the log marginal likelihood of each set of statistics, (..., width) to (...).

        The parameters of the cluster are integrated out.
        """
        statistics = plain(statistics, np.float64)
        sets = statistics.reshape(-1, self.width)
        out = np.empty(len(sets))
        kernels.log_marginals(self.clusters(1), sets, out)
        return out.reshape(statistics.shape[:-1])[()]

    def tables(self, n_rows: int) -> np.ndarray:
        """Return lookup tables for kernels: terms of log marginals by count, up to ``n_rows``."""
        n_counts = min(n_rows + 1, max(TABLE_VALUES // self.width, FEWEST_COUNTS))
        tables = np.empty((self.width, n_counts))
        kernels.fill_tables_of(self.clusters(1), tables)
        return tables

    def log_predictive(self, rows: np.ndarray, statistics: np.ndarray) -> np.ndarray:
        """Return the log density of each row given each set of statistics, (n_rows, n_sets).

        Statistics of zeros are those of a new cluster: the prior predictive density.
        """
        sets = plain(np.atleast_2d(statistics), np.float64)
        out = np.empty((len(rows), len(sets)))
        for begin in range(0, len(sets), SETS_AT_ONCE):
            some = sets[begin : begin + SETS_AT_ONCE]
            found = np.empty((len(rows), len(some)))
            kernels.log_predictives(self.clusters(len(some), some), plain(rows), found)
            out[:, begin : begin + SETS_AT_ONCE] = found
        return out

    def empty(self, n_clusters: int = 1) -> np.ndarray:
        """Return the statistics of ``n_clusters`` empty clusters."""
        return np.zeros((n_clusters, self.width))


class BoundModel(ClusterModel):
    """A model of given columns with given hyperparameters.

    A subclass defines the encoding of rows and clusters (``rows``, ``table``, ``_allocate``), the
    quantities derived from its hyperparameters (``_prepare``), the gradient of the log marginal by
    these, and draws. Everything else uses its kernels, which
    ``countless.kernels.models.implement`` registers.

    Attributes
    ----------
    hyper : Hyper
        The hyperparameters: ``names``, ``value``, which are ``free``, and their prior.
    n_features, width : int
        Number of columns, and length of the vector of statistics of a cluster.
    moved_at_once : int or None
        Number of hyperparameters, chosen at random, that a sampler updates in one sweep; None is
        all of them. Each slice-sampling step has the same cost, and a wide table has many
        hyperparameters.
    """

    hyper: Hyper
    n_features: int
    moved_at_once: int | None = 4

    @abstractmethod
    def rows(self, X: Any) -> np.ndarray:
        """Encode the rows of a table for kernels; raise an error that names an invalid cell."""

    def spread(self, rows: np.ndarray) -> np.ndarray:
        """Return rows to fit: where variances are free, rounded numbers are dithered.

        Equal numbers are spread over the rounding step in a random order with a fixed seed.
        """
        columns = self.rounded_columns()
        if not len(columns):
            return rows
        return spread_rounding(rows, columns, np.random.default_rng(0))

    def rounded_columns(self) -> np.ndarray:
        """Return the columns of numbers whose variances are estimated from the rows."""
        return np.empty(0, dtype=np.intp)

    @abstractmethod
    def table(self, rows: np.ndarray) -> np.ndarray:
        """Decode rows to the values of the input table."""

    def packed_table(self) -> np.ndarray:
        """Return a short table of floats: a model bound to it, and to the levels, is the same."""
        return self.table(np.zeros((1, self.n_features)))

    def levels(self) -> list[list | None]:
        """Return the levels of each column; None if it is not categorical."""
        return [None] * self.n_features

    @abstractmethod
    def _prepare(self) -> None:
        """Update the quantities derived from ``self.hyper.value``."""

    @abstractmethod
    def log_marginal_gradient(self, statistics: np.ndarray) -> np.ndarray:
        """Return the gradient of each log marginal by the hyperparameters, (..., n_hyper)."""

    @abstractmethod
    def row_statistics(self, rows: np.ndarray) -> np.ndarray:
        """Return the statistics of each row, (n_rows, width); those of clusters are their sums."""

    @abstractmethod
    def expected_parameters(self, statistics: np.ndarray) -> np.ndarray:
        """Return the posterior expectation of each cluster's natural parameters, (..., width).

        It is the gradient of the log marginal by the statistics. Its product with the statistics of
        a row is the expected log density of that row.
        """

    @abstractmethod
    def draw_parameters(
        self, statistics: np.ndarray, rng: np.random.Generator
    ) -> dict[str, np.ndarray]:
        """Draw parameters of each cluster from their posterior; each array is (n_clusters, ...)."""

    @abstractmethod
    def draw_rows(self, parameters: dict[str, np.ndarray], rng: np.random.Generator) -> np.ndarray:
        """Draw one row for each set of parameters, in the kernels' encoding."""

    @abstractmethod
    def log_density(self, rows: np.ndarray, parameters: dict[str, np.ndarray]) -> np.ndarray:
        """Return the log density of rows given parameters, (n_rows, n_clusters)."""

    def with_hyper(self, value: np.ndarray) -> BoundModel:
        """Return a copy with other values of the hyperparameters, and the same prior of them."""
        other = copy.copy(self)
        other.hyper = self.hyper._replace(value=np.array(value, dtype=np.float64))
        other._prepare()
        return other

    def fit_hyper(self, statistics: np.ndarray, *, use_prior: bool = True) -> BoundModel:
        """Return the model with optimal free hyperparameters given these clusters.

        Parameters
        ----------
        statistics : ndarray of shape (n_clusters, width)
            Of each cluster; weights of rows may be fractions.
        use_prior : bool, default=True
            Maximise the posterior density of the hyperparameters; otherwise their evidence, the
            marginal likelihood of the rows (empirical Bayes, or type II maximum likelihood), within
            20 prior standard deviations of their prior center.

        Returns
        -------
        BoundModel
        """

        def log_joint(value):
            model = self.with_hyper(value)
            gradient = model.log_marginal_gradient(statistics).reshape(-1, len(value))
            return float(np.sum(model.log_marginal(statistics))), gradient.sum(axis=0)

        return self.with_hyper(climb(self.hyper, log_joint, use_prior=use_prior))

    def sample_hyper(
        self,
        statistics: np.ndarray,
        rng: np.random.Generator,
        places: np.ndarray | None = None,
    ) -> BoundModel:
        """Return the model after one Markov chain step of each free hyperparameter.

        The steps are conditional on these clusters; ``places`` restricts them to some indices.
        """
        if places is None:
            places = np.flatnonzero(self.hyper.free)
        return self.with_hyper(self._moved_hyper(statistics, rng, places))

    def _moved_hyper(
        self, statistics: np.ndarray, rng: np.random.Generator, places: np.ndarray
    ) -> np.ndarray:
        """Sample the hyperparameters at ``places`` one by one, by slice sampling.

        A model with a cheaper move overrides this.
        """

        def log_likelihood(value):
            return float(np.sum(self.with_hyper(value).log_marginal(statistics)))

        return sample_each(self.hyper, log_likelihood, rng, places)
