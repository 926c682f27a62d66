"""Priors of hyperparameters, and whether sampling gets them right."""

import numpy as np
import pytest
from scipy import integrate, stats

from countless.models import (
    Bernoulli,
    Columns,
    DiagonalGaussian,
    FixedGaussian,
    Gaussian,
    InverseGamma,
    Poisson,
)


def test_the_prior_is_a_density_with_the_slope_it_says():
    hyper = FixedGaussian(variance=InverseGamma(3.0, 2.0)).bind([[0.0], [2.0]]).hyper
    assert hyper.names == ("mean[0]", "log variance", "log prior_variance")
    value = hyper.value + np.array([0.3, -0.2, 0.5])
    variance = np.exp(value[1])
    expected = (
        stats.norm(hyper.center[0], hyper.spread[0]).logpdf(value[0])
        + stats.invgamma(3.0, scale=2.0).logpdf(variance)
        + np.log(variance)
        + stats.norm(hyper.center[2], 1.0).logpdf(value[2])
    )
    assert hyper.log_prior(value) == pytest.approx(expected)
    step = 1e-6 * np.eye(3)
    numeric = [(hyper.log_prior(value + s) - hyper.log_prior(value - s)) / 2e-6 for s in step]
    np.testing.assert_allclose(hyper.log_prior_gradient(value), numeric, rtol=1e-5)
    draws = np.array([hyper.draw(np.random.default_rng(seed)) for seed in range(4000)])
    assert stats.kstest(np.exp(draws[:, 1]), stats.invgamma(3.0, scale=2.0).cdf).pvalue > 1e-3
    assert stats.kstest(draws[:, 2], stats.norm(hyper.center[2], 1).cdf).pvalue > 1e-3


@pytest.mark.slow
def test_slice_sampling_follows_the_posterior_of_a_variance():
    X = np.random.default_rng(0).normal(size=(8, 1))
    model = FixedGaussian(variance=InverseGamma(2.0, 1.0), prior_variance=3.0, mean=0.0).bind(X)
    statistics = model.statistics(model.rows(X), np.arange(8) % 2)

    def posterior(log_variance):
        value = model.hyper.value.copy()
        value[1] = log_variance
        joint = model.with_hyper(value).log_marginal(statistics).sum()
        return np.exp(joint + model.hyper.log_prior(value))

    total = integrate.quad(posterior, -6, 8)[0]
    mean = integrate.quad(lambda x: x * posterior(x), -6, 8)[0] / total
    square = integrate.quad(lambda x: x * x * posterior(x), -6, 8)[0] / total
    rng = np.random.default_rng(1)
    draws = []
    for _ in range(2000):
        model = model.sample_hyper(statistics, rng)
        draws.append(model.hyper.value[1])
    assert np.mean(draws) == pytest.approx(mean, abs=0.03)
    assert np.var(draws) == pytest.approx(square - mean**2, rel=0.1)


@pytest.mark.slow
@pytest.mark.parametrize(
    "model",
    [
        Gaussian(),
        DiagonalGaussian(),
        FixedGaussian(),
        Bernoulli(),
        Poisson(),
        Columns(["number", "count"]),
    ],
    ids=lambda model: type(model).__name__,
)
def test_getting_it_right(model):
    """Hyperparameters drawn with rows, in turn, keep their prior (Geweke 2004)."""
    model = model.bind(np.array([[0, 1], [1, 1], [1, 0]]))
    rng = np.random.default_rng(7)
    labels = np.repeat([0, 1], 3)
    draws = []
    model = model.with_hyper(model.hyper.draw(rng))
    for _ in range(700):
        parameters = model.draw_parameters(model.empty(2), rng)
        rows = model.draw_rows({name: v[labels] for name, v in parameters.items()}, rng)
        model = model.sample_hyper(model.statistics(rows, labels), rng)
        draws.append(model.hyper.value)
    hyper = model.hyper
    scores = (np.array(draws) - hyper.center) / hyper.spread
    lows = (hyper.low - hyper.center) / hyper.spread
    # Draws in a row resemble each other: a fifth of them is taken as independent.
    for place in np.flatnonzero(np.isnan(hyper.inverse_gamma[:, 0])):
        prior = stats.truncnorm(lows[place], np.inf)
        assert stats.kstest(scores[::5, place], prior.cdf).pvalue > 1e-4


def test_normal_clusters_move_the_hyperparameters_that_are_asked_for():
    X = np.random.default_rng(0).normal(size=(40, 2))
    model = Gaussian().bind(X)
    statistics = model.statistics(model.rows(X), np.arange(40) % 3)
    for places in ([1], [2], [3, 5], [0, 4]):
        moved = model.sample_hyper(statistics, np.random.default_rng(1), np.array(places))
        assert np.flatnonzero(moved.hyper.value != model.hyper.value).tolist() == places
    given = Gaussian(scale=[[1.0, 0.9], [0.9, 1.0]], mean=0.0).bind(X)
    moved = given.sample_hyper(statistics, np.random.default_rng(1))
    assert np.flatnonzero(moved.hyper.value != given.hyper.value).tolist() == [2, 3]


def test_a_given_scale_leaves_the_freedom_its_posterior():
    """Against slices of the marginal density, and a scale that is not diagonal."""
    X = np.random.default_rng(0).normal(size=(12, 2)) @ [[1.0, 0.8], [0.0, 0.6]]
    model = Gaussian(mean=0.0, strength=1.0, scale=[[1.0, 0.9], [0.9, 1.0]]).bind(X)
    statistics = model.statistics(model.rows(X), np.arange(12) % 4)
    place = model.hyper.names.index("log (freedom - n_features + 1)")
    grid = np.linspace(-4, 6, 201)
    logs = []
    for at in grid:
        value = model.hyper.value.copy()
        value[place] = at
        joint = model.with_hyper(value).log_marginal(statistics).sum()
        logs.append(joint + model.hyper.log_prior(value))
    weights = np.exp(np.array(logs) - max(logs))
    rng = np.random.default_rng(1)
    draws = []
    for _ in range(2000):
        model = model.sample_hyper(statistics, rng)
        draws.append(model.hyper.value[place])
    mean = (grid * weights).sum() / weights.sum()
    assert np.mean(draws) == pytest.approx(mean, abs=0.1)


def test_fitting_recovers_the_hyperparameters():
    rng = np.random.default_rng(3)
    labels = np.repeat(np.arange(200), 5)
    means = 4.0 + 3.0 * rng.normal(size=200)
    X = (means[labels] + 0.5 * rng.normal(size=1000))[:, None]
    model = FixedGaussian(variance=InverseGamma(2.0, 1.0)).bind(X)
    fitted = model.fit_hyper(model.statistics(model.rows(X), labels)).hyper.value
    np.testing.assert_allclose(fitted, [means.mean(), np.log(0.25), np.log(9.0)], atol=0.3)


@pytest.mark.parametrize("model", [DiagonalGaussian(), FixedGaussian()], ids=["number", "fixed"])
def test_repeated_values_make_no_cluster_narrower_than_their_rounding(model):
    """Lifetimes in whole years: clusters of equal values would be ever narrower."""
    X = np.repeat([1.0, 2.0, 15.0], 20)[:, None]
    bound = model.bind(X)
    labels = np.repeat([0, 1, 2], 20)
    statistics = bound.statistics(bound.rows(X), labels)
    random = np.random.default_rng(0)
    moved = bound.fit_hyper(statistics)
    for _ in range(20):
        moved = moved.sample_hyper(statistics, random)
        assert (moved.hyper.value >= bound.hyper.low).all()
        assert np.isfinite(moved.log_marginal(statistics)).all()
    assert np.isfinite(bound.hyper.low).sum() == (2 if isinstance(model, DiagonalGaussian) else 1)
    assert (bound.hyper.draw(random) >= bound.hyper.low).all()
    # A step of 1 leaves a variance of a twelfth; values that do not repeat leave none.
    assert np.isclose(bound.hyper.low, -np.log(12.0)).sum() == 1
    other = model.bind(X + random.normal(size=X.shape))
    assert not np.isclose(other.hyper.low, -np.log(12.0)).any()


def test_empirical_bayes_is_the_maximum_of_a_grid(case):
    """No point of a grid about the optimum has a higher evidence, times the prior or without."""
    labels = np.arange(len(case.X)) % 3
    for use_prior in (False, True):
        fitted = case.learned.fit_hyper(case.X, labels, use_prior=use_prior)
        bound = case.learned.bind(case.X)
        statistics = bound.statistics(bound.spread(bound.rows(case.X)), labels)

        def height(value, use_prior=use_prior, bound=bound, statistics=statistics):
            if np.any(value < bound.hyper.low):
                return -np.inf
            found = bound.with_hyper(value).log_marginal(statistics).sum()
            return found + (bound.hyper.log_prior(value) if use_prior else 0.0)

        best = height(fitted.hyper.value)
        assert best >= height(bound.hyper.value) - 1e-9
        for place in np.flatnonzero(bound.hyper.free):
            for step in (-1.0, -0.3, 0.3, 1.0):
                other = fitted.hyper.value.copy()
                other[place] += step * bound.hyper.spread[place]
                inside = abs(other - bound.hyper.center) <= 20 * bound.hyper.spread
                assert not inside.all() or best >= height(other) - 1e-3


def test_empirical_bayes_of_balanced_groups_is_the_analysis_of_variance():
    """With a known mean: the mean square within, and that of means less its share of noise."""
    random = np.random.default_rng(3)
    X = 3.0 * np.repeat(random.normal(size=12), 5) + random.normal(size=60)
    groups = X.reshape(12, 5)
    within = ((groups - groups.mean(axis=1, keepdims=True)) ** 2).sum() / 48
    between = (groups.mean(axis=1) ** 2).mean() - within / 5
    fitted = FixedGaussian(mean=0.0).fit_hyper(X[:, None], np.repeat([*"abcdefghijkl"], 5))
    np.testing.assert_allclose(np.exp(fitted.hyper.value[1:]), [within, between], rtol=1e-3)
    with pytest.raises(ValueError, match="labels has 2 labels; X has 60 rows"):
        FixedGaussian().fit_hyper(X[:, None], [0, 1])
