"""Penalties of models: the densities and the criterion that they are derived from."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import multivariate_normal, norm

from countless import aic_penalty, alpha_from_penalty, penalty_from_alpha

SCALES = st.floats(0.1, 10.0)


@given(st.floats(0.0, 100.0), SCALES, SCALES, st.integers(1, 5))
def test_the_inverse_returns_the_penalty(penalty, variance, prior_variance, d):
    setting = {"variance": variance, "prior_variance": prior_variance, "n_features": d}
    alpha = alpha_from_penalty(penalty, **setting)
    # At a penalty of 0 rounding can put alpha above its limit.
    assert penalty_from_alpha(alpha * (1 - 1e-12), **setting) == pytest.approx(penalty, abs=1e-9)


@given(st.floats(0.0, 50.0), SCALES, SCALES, st.integers(1, 5))
def test_densities_at_the_penalty_are_equal(penalty, variance, prior_variance, d):
    alpha = alpha_from_penalty(
        penalty, variance=variance, prior_variance=prior_variance, n_features=d
    )
    row = np.sqrt(penalty / d) * np.ones(d)
    old = multivariate_normal(np.zeros(d), variance * np.eye(d)).pdf(row)
    new = multivariate_normal(np.zeros(d), (variance + prior_variance) * np.eye(d)).pdf(np.zeros(d))
    assert alpha * new == pytest.approx(old, rel=1e-9)


def test_the_objective_is_akaikes_criterion_up_to_a_constant():
    random = np.random.default_rng(0)
    X, variance = random.normal(size=(30, 3)), 0.7
    penalty = aic_penalty(variance=variance, n_features=3)
    constants = []
    for k in (1, 2, 5, 9):
        labels = np.append(np.arange(k), random.integers(k, size=30 - k))
        means = np.array([X[labels == c].mean(axis=0) for c in range(k)])[labels]
        aic = 2 * k * 3 - 2 * norm.logpdf(X, means, np.sqrt(variance)).sum()
        constants.append(aic - (((X - means) ** 2).sum() + penalty * k) / variance)
    assert constants == pytest.approx([constants[0]] * 4)


GOOD = {"variance": 1.0, "prior_variance": 2.0, "n_features": 2}


@pytest.mark.parametrize(
    ("function", "value", "changed", "message"),
    [
        (penalty_from_alpha, 0.0, {}, "alpha must be positive; got 0.0"),
        (penalty_from_alpha, 3.1, {}, r"alpha=3.1 has no penalty .* at most 1.09861, and is 1.131"),
        (penalty_from_alpha, 1.0, {"variance": -1}, "variance must be positive"),
        (penalty_from_alpha, 1.0, {"prior_variance": np.inf}, "prior_variance must be finite"),
        (penalty_from_alpha, 1.0, {"n_features": 0}, "n_features must be an integer"),
        (alpha_from_penalty, -1.0, {}, "penalty must be a finite number of at least 0"),
        (alpha_from_penalty, "auto", {}, "penalty must be a finite number of at least 0"),
        (alpha_from_penalty, 3000.0, {}, r"exp\(-1498.9\), which is not a float64"),
        (alpha_from_penalty, 0.0, {"n_features": 2000}, r"exp\(1098.61\), which is not a float64"),
    ],
)
def test_bad_parameters_are_named(function, value, changed, message):
    with pytest.raises(ValueError, match=message):
        function(value, **{**GOOD, **changed})


def test_bad_parameters_of_aic_are_named():
    with pytest.raises(ValueError, match="variance must be"):
        aic_penalty(variance=0, n_features=2)
    with pytest.raises(ValueError, match="n_features must be"):
        aic_penalty(variance=1, n_features=1.5)
