"""Factors that follow rows for a long time, and rows in awkward places."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba import njit

from countless.kernels import cholesky
from countless.kernels import models as kernels
from countless.models import DiagonalGaussian, Gaussian


@njit
def churn(clusters, rows, inside, picks):
    """Put rows in and take them out again, as a sampler would."""
    for i in picks:
        if inside[i]:
            kernels.remove_row(clusters, 0, rows, i)
        else:
            kernels.add_row(clusters, 0, rows, i)
        inside[i] = not inside[i]


@njit
def without(clusters, rows, i):
    return kernels.log_predictive_without(clusters, 0, rows, i)


@pytest.mark.parametrize("model", [Gaussian(), DiagonalGaussian()], ids=["full", "diagonal"])
def test_a_million_changes_lose_nothing(model):
    rng = np.random.default_rng(0)
    # Rows far from where they are seen from, nearly on a line, and some very far away.
    X = rng.normal(size=(300, 1)) * [3.0, 3.0, 3.0] + 0.05 * rng.normal(size=(300, 3)) + 50.0
    X[::50] *= 1e3
    model = model.bind(X)
    rows = model.rows(X)
    clusters = model.clusters(1)
    inside = np.zeros(300, dtype=bool)
    churn(clusters, rows, inside, rng.integers(0, 300, size=1_000_000))
    fresh = model.statistics(rows[inside])
    np.testing.assert_allclose(clusters.statistics[0], fresh, rtol=1e-9, atol=1e-5)
    expected = model.log_predictive(rows, fresh)[:, 0]
    out = np.array([kernels_predictive(clusters, rows, i) for i in range(300)])
    np.testing.assert_allclose(out, expected, rtol=1e-7)


@njit
def kernels_predictive(clusters, rows, i):
    return kernels.log_predictive(clusters, 0, rows, i)


@given(st.integers(1, 6), st.integers(0, 2**32 - 1))
def test_factors_follow_rank_one_changes(d, seed):
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(d, d))
    matrix = root @ root.T + 0.1 * np.eye(d)
    x = rng.normal(size=d)
    factor = matrix.copy()
    cholesky.factorize(factor, np.zeros(d))
    upper = np.triu_indices(d)
    np.testing.assert_allclose(factor[upper], np.linalg.cholesky(matrix).T[upper], rtol=1e-9)
    cholesky.update(factor, x.copy())
    expected = np.linalg.cholesky(matrix + np.outer(x, x)).T
    np.testing.assert_allclose(factor[upper], expected[upper], rtol=1e-8, atol=1e-10)
    squared = cholesky.squared_length(factor, x.copy())
    assert squared == pytest.approx(x @ np.linalg.solve(matrix + np.outer(x, x), x))
    assert cholesky.downdate(factor, x.copy(), 1e-12)
    expected = np.linalg.cholesky(matrix).T
    np.testing.assert_allclose(factor[upper], expected[upper], rtol=1e-6, atol=1e-8)


def test_digits_that_are_lost_are_noticed():
    factor = np.array([[1.0, 2.0], [2.0, 1.0]])
    cholesky.factorize(factor, np.array([0.1, 0.2]))
    assert factor[1, 1] == 0.2
    assert not cholesky.downdate(np.eye(2), np.array([1.0, 0.0]), 1e-7)


@pytest.mark.parametrize("model", [Gaussian(), DiagonalGaussian()], ids=["full", "diagonal"])
@pytest.mark.parametrize("size", [1.0, 1e3, 1e5])
def test_a_row_far_from_the_rest_of_its_cluster(model, size):
    X = np.array([[0.0, 0.1], [0.2, 0.0], [0.1, 0.3], [size, -size]])
    bound = model.bind(X[:3])
    rows = bound.rows(X)
    clusters = bound.clusters(1, bound.statistics(rows)[None])
    expected = bound.log_predictive(rows[3:], bound.statistics(rows[:3]))[0, 0]
    assert without(clusters, rows, 3) == pytest.approx(expected, rel=1e-4)


def test_rows_far_from_zero_and_float32():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(50, 4))
    here, there = Gaussian().bind(X), Gaussian().bind(X + 1e6)
    expected = here.log_marginal(here.statistics(here.rows(X)))
    far = there.log_marginal(there.statistics(there.rows(X + 1e6)))
    assert far == pytest.approx(expected, rel=1e-7)
    small = here.rows(X.astype(np.float32))
    assert small.dtype == np.float32
    assert here.log_marginal(here.statistics(small)) == pytest.approx(expected, rel=1e-5)


def test_draws_have_the_moments_of_the_posterior():
    X = np.random.default_rng(2).normal(size=(30, 2)) @ [[1.0, 0.4], [0.0, 0.6]] + [5.0, -3.0]
    model = Gaussian(mean=[4.0, -4.0], strength=2.0, freedom=6.0, scale=np.eye(2)).bind(X)
    statistics = model.statistics(model.rows(X))
    drawn = model.draw_parameters(
        np.repeat(statistics[None], 40_000, axis=0), np.random.default_rng(3)
    )
    center = X.mean(axis=0)
    apart = center - [4.0, -4.0]
    scale = np.eye(2) + (X - center).T @ (X - center) + 60 / 32 * np.outer(apart, apart)
    mean = (2 * np.array([4.0, -4.0]) + X.sum(axis=0)) / 32
    covariance = scale / (36 - 2 - 1)
    np.testing.assert_allclose(drawn["mean"].mean(axis=0), mean, atol=0.005)
    np.testing.assert_allclose(drawn["covariance"].mean(axis=0), covariance, rtol=0.02, atol=0.005)
    np.testing.assert_allclose(np.cov(drawn["mean"].T), covariance / 32, rtol=0.03, atol=0.001)
    rows = model.table(model.draw_rows(drawn, np.random.default_rng(4)))
    np.testing.assert_allclose(rows.mean(axis=0), mean, atol=0.03)
    np.testing.assert_allclose(np.cov(rows.T), covariance * 33 / 32, rtol=0.05, atol=0.02)
