"""Models of single columns, and of tables of one type: numbers, categories, counts.

Columns are independent given the cluster, so that missing values (NaN) are integrated out by
omitting their cells.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from countless.models import checks
from countless.models.cells import Block, ColumnModel, bind_blocks
from countless.models.families import Category, Count, Family, Fixed, Number
from countless.models.gaussian import STRENGTH
from countless.models.hyper import InverseGamma, make_hyper

# Least strength of the prior mean, in pseudo-observations: below it rounding errors dominate.
LEAST_STRENGTH = 1e-9


class DiagonalGaussian(ColumnModel):
    """Normal columns, each with a normal-inverse-gamma prior: diagonal covariances.

    Parameters
    ----------
    mean : float or array-like of shape (n_features,), default=None
        Prior mean of cluster means; by default the means of the data.
    strength : float or array-like, default=None
        Weight of the prior mean, as a number of pseudo-observations; by default 0.05.
    shape, scale : float or array-like, default=None
        Parameters of the inverse-gamma prior of the variance of a column; by default 2 and a tenth
        of the variance of the data, which is then the prior expectation.

    Notes
    -----
    Given hyperparameters are fixed; those that are None may be optimised or sampled. Missing values
    (NaN) are integrated out.

    Examples
    --------
    >>> import numpy as np
    >>> from countless.models import DiagonalGaussian
    >>> X = np.array([[0.0, 1.0], [1.0, np.nan], [2.0, 2.0]])
    >>> model = DiagonalGaussian().bind(X)
    >>> print(round(model.log_marginal(model.statistics(model.rows(X))), 3))
    -15.76
    """

    column_type = "number"
    real_valued = scalable = True

    def __init__(self, mean=None, strength=None, shape=None, scale=None):
        self.mean = mean
        self.strength = strength
        self.shape = shape
        self.scale = scale

    def encode(self, values, column, levels):
        """Return a column as floats, missing values as NaN."""
        return checks.numbers(values, column)

    def blocks(self, values, columns, share):
        """Return the block that models these columns."""
        stacked = _stack(self, values, columns)
        mean, variance = checks.means_and_variances(stacked)
        positive = _chosen(
            columns,
            strength=(self.strength, STRENGTH),
            shape=(self.shape, 2.0),
            scale=(self.scale, share * variance),
        )
        center, center_free = _centers(self.mean, mean)
        value = np.column_stack([center, np.log(positive.values)])
        free = np.column_stack([np.full(len(columns), center_free), positive.free])
        spread = np.ones_like(value)
        spread[:, 0] = np.sqrt(variance)
        low = np.full_like(value, -np.inf)
        low[:, 1], low[:, 3] = np.log(LEAST_STRENGTH), checks.log_rounding_variances(stacked)
        return [_block(Number(), columns, value, free, spread, low)]


class FixedGaussian(ColumnModel):
    """Normal columns of one shared variance: spherical clusters, the model of DP-means.

    Rows are normal about the mean of their cluster with variance ``variance`` in every column,
    and these means about ``mean`` with variance ``prior_variance``. As the variance tends to 0,
    Gibbs sampling of a Dirichlet process mixture becomes DP-means (Kulis and Jordan, 2012).

    Parameters
    ----------
    variance : float or InverseGamma, default=None
        The variance within clusters, or a prior of it, which is then optimised or sampled; by
        default inverse-gamma of shape 2, with a tenth of the mean variance of the columns as scale.
    prior_variance : float, default=None
        The prior variance of cluster means; by default the mean variance of the columns.
    mean : float or array-like of shape (n_features,), default=None
        The prior mean of cluster means; by default the means of the data.

    Examples
    --------
    >>> from countless.models import FixedGaussian
    >>> X = [[0.0], [1.0], [2.0]]
    >>> model = FixedGaussian(variance=1.0, prior_variance=4.0, mean=0.0).bind(X)
    >>> print(round(model.log_marginal(model.statistics(model.rows(X))), 3))
    -5.155
    """

    real_valued = scalable = True

    def __init__(self, variance=None, prior_variance=None, mean=None):
        self.variance = variance
        self.prior_variance = prior_variance
        self.mean = mean

    def encode(self, values, column, levels):
        """Return a column as floats, missing values as NaN."""
        return checks.numbers(values, column)

    def blocks(self, values, columns, share):
        """Return the block that models these columns."""
        stacked = _stack(self, values, columns)
        mean, variances = checks.means_and_variances(stacked)
        overall = float(variances.mean())
        d = len(columns)
        given = self.variance
        if given is None:
            given = InverseGamma(2.0, share * overall)
        inverse_gamma = np.full((d + 2, 2), np.nan)
        if isinstance(given, InverseGamma):
            checks.per_column("the shape and scale of variance", given, 2)
            inverse_gamma[d] = given
            # The prior mean of the variance, or its mode if the mean is infinite.
            variance = given.scale / (given.shape + (-1.0 if given.shape > 1.0 else 1.0))
        else:
            variance = checks.per_column("variance", given, 1)[0]
        outer = overall if self.prior_variance is None else self.prior_variance
        outer = checks.per_column("prior_variance", outer, 1)[0]
        center, center_free = _centers(self.mean, mean)
        rounding = float(checks.log_rounding_variances(stacked).min())
        hyper = make_hyper(
            [*(f"mean[{j}]" for j in columns), "log variance", "log prior_variance"],
            np.concatenate([center, np.log([variance, outer])]),
            [center_free] * d + [isinstance(given, InverseGamma), self.prior_variance is None],
            np.concatenate([np.sqrt(variances), np.ones(2)]),
            inverse_gamma,
            np.concatenate([np.full(d, -np.inf), [rounding, -np.inf]]),
        )
        index = np.column_stack([np.arange(d), np.full(d, d), np.full(d, d + 1)])
        return [Block(Fixed(), np.asarray(columns), hyper, index)]


class Bernoulli(ColumnModel):
    """Columns of 0 and 1 (or False and True), each with a beta prior.

    Parameters
    ----------
    a, b : float or array-like of shape (n_features,), default=None
        Parameters of the beta prior, as pseudo-counts of ones and of zeros; by default their sum is
        2, in the proportions of the data (with one 0 and one 1 added).

    Examples
    --------
    >>> from countless.models import Bernoulli
    >>> X = [[1, 0], [1, 1]]
    >>> model = Bernoulli(a=1, b=1).bind(X)
    >>> print(round(model.log_marginal(model.statistics(model.rows(X))), 3))  # log(1/3 * 1/6)
    -2.89
    """

    column_type = "binary"

    def __init__(self, a=None, b=None):
        self.a = a
        self.b = b

    def encode(self, values, column, levels):
        """Return a column as 0 and 1, missing values as NaN."""
        codes = checks.numbers(values, column)
        wrong = ~(np.isnan(codes) | (codes == 0) | (codes == 1))
        checks.refuse(wrong, values, column, "contains a value that is neither 0 nor 1")
        return codes

    def blocks(self, values, columns, share):
        """Return the block that models these columns."""
        codes = _stack(self, values, columns)
        ones = (np.nansum(codes, axis=0) + 1.0) / (np.sum(~np.isnan(codes), axis=0) + 2.0)
        weights = _chosen(columns, b=(self.b, 2.0 * (1.0 - ones)), a=(self.a, 2.0 * ones))
        return [_block(Category(2), columns, np.log(weights.values), weights.free)]


class Categorical(ColumnModel):
    """Columns of categories, each with a symmetric Dirichlet prior.

    Parameters
    ----------
    concentration : float or array-like of shape (n_features,), default=None
        Dirichlet parameter, as a pseudo-count of each level; by default 1.
    levels : int or sequence, default=None
        The levels, or their number if they are 0, 1, ...; by default those that occur in the data,
        column by column. Any other value is an error.

    Notes
    -----
    ``None`` and NaN are missing values, and are integrated out.

    Examples
    --------
    >>> from countless.models import Categorical
    >>> X = [["red"], ["blue"], ["red"]]
    >>> model = Categorical(concentration=1).bind(X)
    >>> print(round(model.log_marginal(model.statistics(model.rows(X))), 3))  # log(1/2 * 1/3 * 2/4)
    -2.485
    """

    categorical = True
    column_type = "category"

    def __init__(self, concentration=None, levels=None):
        self.concentration = concentration
        self.levels = levels

    def encode(self, values, column, levels):
        """Return a column as the indices of its values in the levels, missing values as NaN."""
        place = {level: float(code) for code, level in enumerate(levels.tolist())}
        codes = np.empty(len(values))
        for row, value in enumerate(values.tolist()):
            code = np.nan if _is_missing(value) else place.get(value)
            if code is None:
                raise checks.BadCell(f"has {value!r}, which is no known level", row, column)
            codes[row] = code
        return codes

    def blocks(self, values, columns, share):
        """Return one block for each column."""
        concentration = 1.0 if self.concentration is None else self.concentration
        weights = checks.per_column("concentration", concentration, len(columns))
        blocks = []
        for j, weight in zip(columns, weights, strict=True):
            levels = self._levels(values[j], j)
            free = [self.concentration is None]
            hyper = make_hyper([f"log weight[{j}]"], np.log([weight]), free)
            index = np.zeros((1, len(levels)), dtype=np.intp)
            family = Category(len(levels))
            blocks.append(Block(family, np.array([j]), hyper, index, levels, prefix=f"{j}:"))
        return blocks

    def bind_packed(self, table, levels):
        """Return the model of columns with these levels."""
        if None in levels:
            raise ValueError("each column of a Categorical model needs its levels")
        columns = checks.columns_of(table)
        models = [Categorical(levels=own) for own in levels]
        parts = [(m, block) for j, m in enumerate(models) for block in m.blocks(columns, [j], 1.0)]
        return bind_blocks(parts, columns)

    def _levels(self, values: np.ndarray, column: int) -> np.ndarray:
        if self.levels is None:
            try:
                found = {value for value in values.tolist() if not _is_missing(value)}
                levels = sorted(found, key=lambda value: (type(value).__name__, value))
            except TypeError as error:
                raise ValueError(f"X has no categories in column {column}: {error}") from None
            if not levels:
                raise ValueError(f"X has no values in column {column}: give its levels")
        elif isinstance(self.levels, int | np.integer):
            levels = list(range(self.levels))
        elif np.iterable(self.levels):
            levels = list(self.levels)
        else:
            levels = []
        if not levels or len(set(levels)) < len(levels):
            raise ValueError(f"levels must be one or more, and differ; got {self.levels!r}")
        array = np.empty(len(levels), dtype=object)
        array[:] = levels
        return array


class Poisson(ColumnModel):
    """Columns of counts, each Poisson distributed with a gamma prior of its rate.

    Parameters
    ----------
    shape, rate : float or array-like of shape (n_features,), default=None
        Parameters of the gamma prior of the rate of a cluster: its mean is ``shape / rate``, and
        its weight ``rate`` pseudo-observations; by default the shape is 1 and the mean is that of
        the data (with a count of 1 added).

    Examples
    --------
    >>> from countless.models import Poisson
    >>> X = [[2], [0]]
    >>> model = Poisson(shape=1, rate=1).bind(X)
    >>> print(round(model.log_marginal(model.statistics(model.rows(X))), 3))  # log(1/27)
    -3.296
    """

    column_type = "count"

    def __init__(self, shape=None, rate=None):
        self.shape = shape
        self.rate = rate

    def encode(self, values, column, levels):
        """Return a column of counts as floats, missing values as NaN."""
        return checks.integers(values, column)

    def blocks(self, values, columns, share):
        """Return the block that models these columns."""
        counts = _stack(self, values, columns)
        rows = np.maximum(np.sum(~np.isnan(counts), axis=0), 1)
        means = (np.nansum(counts, axis=0) + 1.0) / rows
        shape = checks.per_column("shape", 1.0 if self.shape is None else self.shape, len(columns))
        chosen = _chosen(columns, shape=(self.shape, shape), rate=(self.rate, shape / means))
        return [_block(Count(), columns, np.log(chosen.values), chosen.free)]


class _Chosen:
    """Positive hyperparameters of columns, and which of them are free: (n_columns, n_hyper)."""

    def __init__(self, values: np.ndarray, free: np.ndarray):
        self.values = values
        self.free = free


def _chosen(columns: Sequence[int], **choices) -> _Chosen:
    """Return for each name the value that the user gave, or else the default from the data."""
    values = [
        checks.per_column(name, usual if given is None else given, len(columns))
        for name, (given, usual) in choices.items()
    ]
    free = [np.full(len(columns), given is None) for given, _ in choices.values()]
    return _Chosen(np.column_stack(values), np.column_stack(free))


def _centers(given, usual: np.ndarray) -> tuple[np.ndarray, bool]:
    if given is None:
        return usual, True
    return checks.per_column("mean", given, len(usual), positive=False), False


def _block(
    family: Family,
    columns: Sequence[int],
    value: np.ndarray,
    free: np.ndarray,
    spread: np.ndarray | float = 1.0,
    low: np.ndarray | float = -np.inf,
) -> Block:
    """Return a block in which each column has its own hyperparameters."""
    names = [f"{name}[{j}]" for j in columns for name in family.hyper_names]
    spread = np.broadcast_to(spread, value.shape).ravel()
    low = np.broadcast_to(low, value.shape).ravel()
    hyper = make_hyper(names, value.ravel(), free.ravel(), spread, low=low)
    return Block(family, np.asarray(columns), hyper, np.arange(value.size).reshape(value.shape))


def _stack(model: ColumnModel, values: Sequence[np.ndarray], columns: Sequence[int]) -> np.ndarray:
    return np.stack([model.encode(values[j], j, None) for j in columns], axis=1)


def _is_missing(value) -> bool:
    # NaN of any package differs from itself.
    return value is None or (isinstance(value, float) and value != value)
