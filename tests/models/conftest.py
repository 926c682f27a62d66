"""One table of models: explicit hyperparameters, rows, and SciPy's predictive density of each."""

from typing import NamedTuple

import numpy as np
import pytest
from scipy import stats

from countless.models import (
    Bernoulli,
    Categorical,
    Columns,
    DiagonalGaussian,
    FixedGaussian,
    Gaussian,
    InverseGamma,
    Model,
    Multinomial,
    Poisson,
)

RNG = np.random.default_rng(11)
SCALE = np.array([[2.0, 0.5, 0.0], [0.5, 1.0, 0.3], [0.0, 0.3, 1.5]])
MEAN = np.array([0.5, -1.0, 100.0])


class Case(NamedTuple):
    """A model, rows of it, and the log density of a row given earlier ones by SciPy."""

    given: Model  # every hyperparameter given
    learned: Model  # none given
    X: np.ndarray
    log_predictive: object  # (row, earlier rows) -> float


def seen(column):
    return column[~np.isnan(column.astype(float))].astype(float)


def gaussian(row, earlier):
    n, d = earlier.shape
    kappa, nu = 0.7 + n, 4.5 + n
    center = earlier.mean(axis=0) if n else np.zeros(d)
    mean = (0.7 * MEAN + n * center) / kappa
    scatter = (earlier - center).T @ (earlier - center)
    apart = center - MEAN
    scale = SCALE + scatter + 0.7 * n / kappa * np.outer(apart, apart)
    df = nu - d + 1
    return stats.multivariate_t(mean, scale * (kappa + 1) / (kappa * df), df=df).logpdf(row)


def number(value, column, mean, strength, shape, scale):
    column = seen(column)
    n = len(column)
    center = column.mean() if n else 0.0
    kappa = strength + n
    after = (strength * mean + n * center) / kappa
    a = shape + n / 2
    b = scale + 0.5 * ((column - center) ** 2).sum()
    b += 0.5 * strength * n / kappa * (center - mean) ** 2
    return stats.t(2 * a, after, np.sqrt(b * (kappa + 1) / (a * kappa))).logpdf(value)


def diagonal(row, earlier):
    return sum(
        number(row[j], earlier[:, j], MEAN[j], 0.3, 1.7, 0.9)
        for j in range(3)
        if not np.isnan(row[j])
    )


def fixed_column(value, column, mean, variance, outer):
    column = seen(column)
    precision = len(column) / variance + 1 / outer
    center = (column.sum() / variance + mean / outer) / precision
    return stats.norm(center, np.sqrt(variance + 1 / precision)).logpdf(value)


def fixed(row, earlier):
    return sum(fixed_column(row[j], earlier[:, j], MEAN[j], 0.8, 5.0) for j in range(3))


def binary_column(value, column, a, b):
    column = seen(column)
    ones = column.sum()
    return stats.betabinom(1, a + ones, b + len(column) - ones).logpmf(value)


def bernoulli(row, earlier):
    return sum(binary_column(row[j], earlier[:, j], 0.6, 1.4) for j in range(row.size))


def category_column(value, column, levels, weight):
    tally = np.array([weight + np.sum(column == level) for level in levels])
    draw = [int(value == level) for level in levels]
    return stats.dirichlet_multinomial(tally, 1).logpmf(draw)


def categorical(row, earlier):
    return category_column(row[0], earlier[:, 0], "abc", 0.4) + category_column(
        row[1], earlier[:, 1], "abc", 0.4
    )


def count_column(value, column, shape, rate):
    column = seen(column)
    rate = rate + len(column)
    return stats.nbinom(shape + column.sum(), rate / (rate + 1)).logpmf(value)


def poisson(row, earlier):
    return sum(count_column(row[j], earlier[:, j], 1.3, 0.2) for j in range(row.size))


def multinomial(row, earlier):
    weights = np.array([0.5, 1.0, 2.0, 0.1]) + earlier.sum(axis=0)
    return stats.dirichlet_multinomial(weights, int(row.sum())).logpmf(row)


def columns(row, earlier):
    parts = [
        lambda x, c: number(x, c, 1.0, 0.3, 1.7, 0.9),
        lambda x, c: category_column(x, c, "abc", 0.4),
        lambda x, c: count_column(x, c, 1.3, 0.2),
        lambda x, c: binary_column(x, c, 0.6, 1.4),
        lambda x, c: fixed_column(x, c, 0.0, 0.8, 5.0),
    ]
    total = 0.0
    for j, part in enumerate(parts):
        if row[j] is not None and row[j] == row[j]:
            total += part(row[j], earlier[:, j])
    return total


NUMBERS = RNG.normal([0.0, -2.0, 101.0], [1.0, 0.3, 2.0], size=(12, 3))
GAPPED = np.where(RNG.random(NUMBERS.shape) < 0.25, np.nan, NUMBERS)
LETTERS = RNG.choice(list("abc"), size=(12, 2), p=[0.6, 0.3, 0.1])
COUNTS = RNG.poisson([0.3, 4.0, 900.0], size=(12, 3))
OUTCOMES = RNG.multinomial(RNG.integers(0, 30, size=12), [0.4, 0.3, 0.2, 0.1])
MIXED = np.empty((12, 5), dtype=object)
MIXED[:, 0] = NUMBERS[:, 0]
MIXED[:, 1] = LETTERS[:, 0]
MIXED[:, 2] = COUNTS[:, 1]
MIXED[:, 3] = RNG.integers(0, 2, size=12)
MIXED[:, 4] = NUMBERS[:, 1]
MIXED[RNG.random(MIXED.shape) < 0.2] = np.nan

CASES = {
    "gaussian": Case(
        Gaussian(mean=MEAN, strength=0.7, freedom=4.5, scale=SCALE), Gaussian(), NUMBERS, gaussian
    ),
    "diagonal": Case(
        DiagonalGaussian(mean=MEAN, strength=0.3, shape=1.7, scale=0.9),
        DiagonalGaussian(),
        GAPPED,
        diagonal,
    ),
    "fixed": Case(
        FixedGaussian(variance=0.8, prior_variance=5.0, mean=MEAN),
        FixedGaussian(variance=InverseGamma(3.0, 2.0)),
        NUMBERS,
        fixed,
    ),
    "bernoulli": Case(Bernoulli(a=0.6, b=1.4), Bernoulli(), (LETTERS == "a") * 1, bernoulli),
    "categorical": Case(
        Categorical(concentration=0.4, levels="abc"), Categorical(), LETTERS, categorical
    ),
    "poisson": Case(Poisson(shape=1.3, rate=0.2), Poisson(), COUNTS, poisson),
    "multinomial": Case(
        Multinomial(concentration=[0.5, 1.0, 2.0, 0.1]), Multinomial(), OUTCOMES, multinomial
    ),
    "columns": Case(
        Columns(
            [
                DiagonalGaussian(mean=1.0, strength=0.3, shape=1.7, scale=0.9),
                Categorical(concentration=0.4, levels="abc"),
                Poisson(shape=1.3, rate=0.2),
                Bernoulli(a=0.6, b=1.4),
                FixedGaussian(variance=0.8, prior_variance=5.0, mean=0.0),
            ]
        ),
        Columns(["number", "category", "count", "binary", FixedGaussian()]),
        MIXED,
        columns,
    ),
}


@pytest.fixture(scope="session", params=CASES.values(), ids=CASES)
def case(request):
    """Return each case of the table in turn."""
    return request.param


@pytest.fixture(scope="session")
def cases():
    """Return the whole table by name."""
    return CASES
