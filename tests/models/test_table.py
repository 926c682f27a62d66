"""Every model against SciPy: one table of cases, the same questions to each."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba import njit
from scipy import integrate, stats
from sklearn.base import clone

from countless.kernels import models as kernels
from countless.models import FixedGaussian, Gaussian


def bound(case, learned=False):
    model = (case.learned if learned else case.given).bind(case.X)
    return model, model.rows(case.X)


def test_predictive_equals_scipys(case):
    model, rows = bound(case)
    for n in range(len(rows)):
        earlier = model.statistics(rows[:n])
        expected = case.log_predictive(case.X[n], case.X[:n])
        assert model.log_predictive(rows[n : n + 1], earlier)[0, 0] == pytest.approx(expected)


def test_marginal_is_the_sum_of_sequential_predictives(case):
    model, rows = bound(case)
    total = sum(case.log_predictive(case.X[n], case.X[:n]) for n in range(len(rows)))
    assert model.log_marginal(model.statistics(rows)) == pytest.approx(total)
    assert model.log_marginal(model.empty()[0]) == pytest.approx(0.0)


@given(data=st.data())
def test_statistics_add_subtract_and_merge_in_any_order(case, data):
    model, rows = bound(case)
    order = data.draw(st.permutations(range(len(rows))))
    cut = data.draw(st.integers(0, len(rows)))
    whole = model.statistics(rows)
    left = model.statistics(rows[order[:cut]])
    right = model.statistics(rows[order[cut:]])
    np.testing.assert_allclose(left + right, whole, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(whole - left, right, rtol=1e-10, atol=1e-10)
    assert model.log_marginal(left + right) == pytest.approx(model.log_marginal(whole))
    labels = np.repeat(-1, len(rows))
    labels[order[:cut]] = 0
    by_label = model.statistics(rows, labels, n_clusters=2)
    np.testing.assert_allclose(by_label, [left, 0 * left], rtol=1e-10, atol=1e-10)


@njit
def remove(clusters, c, rows, i):
    kernels.remove_row(clusters, c, rows, i)


@njit
def add(clusters, c, rows, i):
    kernels.add_row(clusters, c, rows, i)


@njit
def without(clusters, c, rows, i):
    return kernels.log_predictive_without(clusters, c, rows, i)


@njit
def of_row(clusters, n_clusters, rows, i, own, out):
    kernels.log_predictive_row(clusters, n_clusters, rows, i, own, out)
    if own >= 0 and np.isnan(out[own]):
        out[own] = kernels.log_predictive_without(clusters, own, rows, i)


@given(data=st.data())
def test_clusters_follow_rows_that_come_and_go(case, data):
    model, rows = bound(case, learned=True)
    labels = np.array(data.draw(st.lists(st.integers(0, 2), min_size=12, max_size=12)))
    clusters = model.clusters(4, model.statistics(rows, labels, 3))
    for _ in range(data.draw(st.integers(0, 12))):
        row, to = data.draw(st.integers(0, 11)), data.draw(st.integers(0, 2))
        remove(clusters, labels[row], rows, row)
        add(clusters, to, rows, row)
        labels[row] = to
    fresh = model.statistics(rows, labels, 3)
    np.testing.assert_allclose(clusters.statistics[:3], fresh, rtol=1e-9, atol=1e-9)
    row = data.draw(st.integers(0, 11))
    out = np.empty(4)
    of_row(clusters, 4, rows, row, -1, out)
    expected = model.log_predictive(rows[row : row + 1], [*fresh, model.empty()[0]])[0]
    np.testing.assert_allclose(out, expected, rtol=1e-8)
    others = model.statistics(rows, np.where(np.arange(12) == row, -1, labels), 3)
    expected = model.log_predictive(rows[row : row + 1], others[labels[row]])[0, 0]
    assert without(clusters, labels[row], rows, row) == pytest.approx(expected, rel=1e-8)
    from_all = out.copy()
    of_row(clusters, 4, rows, row, labels[row], out)
    from_all[labels[row]] = expected
    np.testing.assert_allclose(out, from_all, rtol=1e-8)


def test_one_cluster_is_the_same_as_several(case):
    model, rows = bound(case)
    labels = np.arange(len(rows)) % 3
    statistics = model.statistics(rows, labels)
    one_by_one = [model.statistics(rows[labels == c]) for c in range(3)]
    np.testing.assert_array_equal(statistics, one_by_one)
    marginals = model.log_marginal(statistics)
    np.testing.assert_array_equal(marginals, [model.log_marginal(one) for one in one_by_one])
    assert model.log_marginal(statistics[None]).shape == (1, 3)


def test_statistics_of_rows_and_their_expected_log_densities(case):
    """Weights of rows may be fractions: statistics, marginals and their slopes are smooth."""
    model, rows = bound(case)
    own = model.row_statistics(rows)
    np.testing.assert_allclose(own, model.statistics(rows, np.arange(12), 12), atol=1e-12)
    weights = np.random.default_rng(2).dirichlet([0.5] * 3, size=12)
    statistics = weights.T @ own
    expected = own @ model.expected_parameters(statistics).T
    for row in range(12):
        step = 1e-5 * own[row]
        ends = model.log_marginal([statistics + step, statistics - step])
        slope = (ends[0] - ends[1]) / 2e-5
        np.testing.assert_allclose(expected[row], slope, rtol=1e-4, atol=1e-5)
    drawn = np.random.default_rng(3)
    sets = [model.draw_parameters(statistics, drawn) for _ in range(2000)]
    sampled = np.array([model.log_density(rows, parameters) for parameters in sets])
    error = sampled.std(axis=0) / np.sqrt(len(sets))
    assert (np.abs(sampled.mean(axis=0) - expected) <= 5.5 * error + 1e-9).all()


@pytest.mark.parametrize("learned", [False, True], ids=["given", "learned"])
def test_gradient_equals_finite_differences(case, learned):
    model, rows = bound(case, learned)
    rng = np.random.default_rng(0)
    value = model.hyper.value + 0.1 * rng.standard_normal(len(model.hyper.value))
    statistics = model.statistics(rows, np.arange(len(rows)) % 3)
    gradient = model.with_hyper(value).log_marginal_gradient(statistics)
    assert gradient.shape == (3, len(value))
    for place in range(len(value)):
        step = 1e-5 * np.eye(len(value))[place]
        up = model.with_hyper(value + step).log_marginal(statistics)
        down = model.with_hyper(value - step).log_marginal(statistics)
        np.testing.assert_allclose(gradient[:, place], (up - down) / 2e-5, rtol=2e-5, atol=2e-6)


def test_what_is_given_stays_and_the_rest_can_be_fitted_and_sampled(case):
    model, rows = bound(case)
    assert not model.hyper.free.any()
    statistics = model.statistics(rows)
    rng = np.random.default_rng(0)
    np.testing.assert_array_equal(model.fit_hyper(statistics).hyper.value, model.hyper.value)
    np.testing.assert_array_equal(
        model.sample_hyper(statistics, rng).hyper.value, model.hyper.value
    )
    model, rows = bound(case, learned=True)
    assert model.hyper.free.all()
    statistics = model.statistics(rows, np.arange(12) % 2)
    fitted = model.fit_hyper(statistics)

    def joint(m):
        return m.log_marginal(statistics).sum() + m.hyper.log_prior(m.hyper.value)

    assert joint(fitted) > joint(model)
    slope = fitted.log_marginal_gradient(statistics).sum(axis=0)
    slope += fitted.hyper.log_prior_gradient(fitted.hyper.value)
    np.testing.assert_allclose(slope, 0.0, atol=2e-2)
    sampled = model.sample_hyper(statistics, rng)
    assert (sampled.hyper.value != model.hyper.value).all()
    np.testing.assert_array_equal(sampled.hyper.center, model.hyper.center)


def test_draws_follow_the_predictive_density(case, cases):
    """Densities of draws average to what exact predictive densities say."""
    model, rows = bound(case)
    rng = np.random.default_rng(5)
    statistics = model.statistics(rows)
    many = np.repeat(statistics[None], 4000, axis=0)
    parameters = model.draw_parameters(many, rng)
    assert all(len(value) == 4000 for value in parameters.values())
    # The mean over parameters of the density of a row is its predictive density.
    densities = model.log_density(rows[:4], parameters)
    mean = np.logaddexp.reduce(densities, axis=1) - np.log(4000)
    np.testing.assert_allclose(mean, model.log_predictive(rows[:4], statistics)[:, 0], atol=0.35)
    # Two halves of rank statistics: exact draws and the drawn rows have the same distribution.
    if case is cases["multinomial"]:
        drawn = model.draw_rows(parameters, rng, total=5)
        expected = 5 * (model.prior[2:] + statistics[2:]) / (model.prior[0] + statistics[0])
        np.testing.assert_allclose(drawn.mean(axis=0), expected, atol=0.1)
        return
    drawn = model.draw_rows(parameters, rng)
    again = model.rows(model.table(drawn))
    np.testing.assert_allclose(again, drawn, rtol=1e-9, atol=1e-9)
    # E[1 / p(x)] over draws x is the size of a set of outcomes; E[q(x) / p(x)] is 1 for any q.
    other = model.log_predictive(drawn, model.statistics(rows[:6]))[:, 0]
    ratio = np.exp(other - model.log_predictive(drawn, statistics)[:, 0])
    error = ratio.std() / np.sqrt(len(ratio))
    assert abs(ratio.mean() - 1.0) < max(5 * error, 0.02)


def test_models_are_shown_cloned_and_bound_without_arguments(case):
    assert repr(clone(case.given)) == repr(case.given)
    model, rows = bound(case, learned=True)
    assert np.isfinite(model.log_marginal(model.statistics(rows)))
    assert len(model.hyper.names) == len(model.hyper.value)


def test_predictive_densities_integrate_to_one(cases):
    for name in ("diagonal", "fixed"):
        case = cases[name]
        model = case.learned.bind(case.X[:, :1])
        statistics = model.statistics(model.rows(case.X[:, :1]))

        def density(x, model=model, statistics=statistics):
            return np.exp(model.log_predictive(np.array([[x]]), statistics)[0, 0])

        assert integrate.quad(density, -60, 60, points=[0.0], limit=200)[0] == pytest.approx(
            1.0, abs=2e-3
        )
    X = cases["gaussian"].X[:, :2]
    model = Gaussian().bind(X)
    axis = np.linspace(-12, 12, 401)
    grid = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    total = np.exp(model.log_predictive(grid, model.statistics(model.rows(X)))).sum()
    assert total * (axis[1] - axis[0]) ** 2 == pytest.approx(1.0, abs=1e-3)


@pytest.mark.parametrize(
    ("name", "outcomes"),
    [
        ("bernoulli", np.array([[0, 0], [0, 1], [1, 0], [1, 1]])),
        ("categorical", np.array([[a, b] for a in "abc" for b in "abc"])),
        ("poisson", np.arange(3000)[:, None]),
        ("multinomial", np.array([[a, b, 4 - a - b] for a in range(5) for b in range(5 - a)])),
    ],
)
def test_predictive_probabilities_sum_to_one(cases, name, outcomes):
    case = cases[name]
    X = case.X[:, : outcomes.shape[1]]
    model = case.learned.bind(X)
    probabilities = np.exp(
        model.log_predictive(model.rows(outcomes), model.statistics(model.rows(X)))
    )
    assert probabilities.sum() == pytest.approx(1.0)


def test_marginal_equals_numerical_integration():
    x = np.array([[0.3], [1.1], [-0.4]])
    model = FixedGaussian(variance=0.5, prior_variance=2.0, mean=0.2).bind(x)

    def joint(mean):
        return stats.norm(0.2, 2.0**0.5).pdf(mean) * stats.norm(mean, 0.5**0.5).pdf(x).prod()

    expected = np.log(integrate.quad(joint, -20, 20)[0])
    assert model.log_marginal(model.statistics(model.rows(x))) == pytest.approx(expected)
