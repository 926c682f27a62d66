"""Unknown parameters: their densities, and steps that leave the posterior as it is."""

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import cumulative_trapezoid, quad
from sklearn.base import clone
from sklearn.model_selection import ParameterGrid

from countless.priors import (
    Beta,
    DirichletProcess,
    FiniteDirichlet,
    Gamma,
    PitmanYor,
    UniformPartition,
)
from countless.priors.hyper import draw_concentration, slice_sample

UNKNOWN = [
    DirichletProcess(Gamma(2.0, 1.5)),
    DirichletProcess(Gamma(0.5, 0.2)),
    PitmanYor(Gamma(2.0, 1.0), Beta(2.0, 3.0)),
    PitmanYor(0.5, Beta(1.0, 1.0)),
    PitmanYor(Gamma(1.0, 1.0), 0.3),
    FiniteDirichlet(Gamma(2.0, 1.0), 4),
]
LAWS = {
    Gamma: lambda g: stats.gamma(g.shape, scale=1 / g.rate),
    Beta: lambda b: stats.beta(b.a, b.b),
}
every_unknown = pytest.mark.parametrize("prior", UNKNOWN, ids=repr)


def sizes_of(labels):
    return np.bincount(labels)


@pytest.mark.parametrize(
    "hyperprior", [Gamma(), Gamma(0.3, 4.0), Gamma(7.0, 0.5), Beta(), Beta(0.4, 3.0)], ids=repr
)
def test_densities_and_draws_against_scipy(hyperprior):
    law = LAWS[type(hyperprior)](hyperprior)
    for value in law.ppf([0.01, 0.2, 0.5, 0.9, 0.999]):
        assert hyperprior.log_density(value) == pytest.approx(law.logpdf(value))
        place = hyperprior.unconstrain(value)
        back, log_jacobian = hyperprior.constrain(place)
        assert back == pytest.approx(value)
        step = 1e-6
        ahead, behind = (
            hyperprior.constrain(place + step)[0],
            hyperprior.constrain(place - step)[0],
        )
        assert np.exp(log_jacobian) == pytest.approx((ahead - behind) / (2 * step), rel=1e-5)
    random = np.random.default_rng(0)
    draws = [hyperprior.draw(random) for _ in range(2_000)]
    assert stats.kstest(draws, law.cdf).pvalue > 1e-3


def test_slice_sampling_leaves_a_bimodal_density_invariant():
    law = np.array([-2.0, 3.0])

    def log_density(place):
        return np.logaddexp.reduce(stats.norm.logpdf(place, law) + np.log([0.3, 0.7]))

    def cdf(place):
        return 0.3 * stats.norm.cdf(place, -2) + 0.7 * stats.norm.cdf(place, 3)

    random = np.random.default_rng(2)
    starts = np.where(random.random(600) < 0.3, -2.0, 3.0) + random.standard_normal(600)
    ends = [slice_sample(log_density, start, random) for start in starts]
    assert stats.kstest(ends, cdf).pvalue > 1e-3
    assert np.mean(abs(ends - starts)) > 0.5  # it moves


def test_a_slice_needs_a_density_to_start_from():
    with pytest.raises(ValueError, match=r"the density at 0\.0 is not a positive number"):
        slice_sample(lambda place: -np.inf, 0.0, np.random.default_rng(0))


@pytest.mark.slow
@pytest.mark.parametrize("sizes", [[1], [40], [1, 2, 1, 3, 1], [60, 25, 10, 5]], ids=str)
def test_alpha_follows_its_integrated_posterior(sizes):
    prior = DirichletProcess(Gamma(1.5, 0.8))
    grid = np.concatenate([[0.0], np.geomspace(1e-8, 60, 2_000)])
    log_posterior = [
        DirichletProcess(alpha).log_prob(sizes=sizes) + prior.alpha.log_density(alpha)
        for alpha in grid[1:]
    ]
    density = np.concatenate([[0.0], np.exp(np.array(log_posterior) - max(log_posterior))])
    cdf = cumulative_trapezoid(density, grid, initial=0)
    random = np.random.default_rng(4)
    current = prior.draw_parameters(random)
    chain = []
    for _ in range(6_000):
        current = prior.update_parameters(current, sizes, random)
        chain.append(current.alpha)
    thinned = chain[100::6]
    law = np.interp(thinned, grid, cdf / cdf[-1])
    assert stats.kstest(law, "uniform").pvalue > 1e-3


def test_groups_that_share_a_concentration_share_its_posterior():
    n_clusters, n_rows, hyperprior = 9, [30, 5, 80], Gamma(2.0, 1.0)

    def posterior(alpha):
        each = [stats.gamma.logpdf(alpha, 2.0)]
        for rows in n_rows:
            each.append(-np.log(alpha + np.arange(rows)).sum())
        return np.exp(np.sum(each) + n_clusters * np.log(alpha) + 380)

    total, mean = quad(posterior, 0, 30)[0], quad(lambda a: a * posterior(a), 0, 30)[0]
    random, alpha, chain = np.random.default_rng(0), 1.0, []
    for _ in range(8_000):
        alpha = draw_concentration(alpha, hyperprior, n_clusters, n_rows, random)
        chain.append(alpha)
    assert np.mean(chain[100:]) == pytest.approx(mean / total, rel=0.03)


@pytest.mark.slow
@every_unknown
def test_steps_leave_the_joint_distribution_invariant(prior):
    # Parameters from their priors, a partition from them, some steps: still their priors.
    random = np.random.default_rng(9)
    before, after = [], []
    for _ in range(700):
        start = prior.draw_parameters(random)
        sizes = sizes_of(start.sample(25, random))
        end = start
        for _ in range(3):
            end = prior.update_parameters(end, sizes, random)
        before.append(start)
        after.append((end, len(sizes)))
    for name, hyperprior in prior.hyperpriors.items():
        law = LAWS[type(hyperprior)](hyperprior)
        values = np.array([getattr(end, name) for end, _ in after])
        assert stats.kstest(values, law.cdf).pvalue > 1e-3
        starts = np.array([getattr(start, name) for start in before])
        assert not np.array_equal(values, starts)
        # Together with the number of clusters, not only by itself.
        n_clusters = np.array([k for _, k in after])
        few = n_clusters <= np.median(n_clusters)
        for part in (few, ~few):
            assert stats.ks_2samp(values[part], starts[part]).pvalue > 1e-3


@pytest.mark.slow
@pytest.mark.parametrize("prior", [UNKNOWN[0], UNKNOWN[2], UNKNOWN[5]], ids=repr)
def test_getting_it_right(prior):
    # Geweke: rows moved by the tables and parameters by their steps visit the prior itself.
    random, n_rows = np.random.default_rng(6), 6
    current = prior.draw_parameters(random)
    labels = current.sample(n_rows, random)
    visited = []
    for _ in range(2_500):
        tables = current.tables(n_rows)
        for row in range(n_rows):
            others = np.bincount(np.delete(labels, row))
            kept = np.flatnonzero(others)
            weights = np.append(np.exp(tables.join[others[kept]]), np.exp(tables.open[len(kept)]))
            to = int(np.searchsorted(np.cumsum(weights), random.random() * weights.sum()))
            labels[row] = kept[to] if to < len(kept) else len(others)
            labels = np.unique(labels, return_inverse=True)[1]
        current = prior.update_parameters(current, sizes_of(labels), random)
        visited.append([labels.max() + 1, *(getattr(current, name) for name in prior.hyperpriors)])
    forward = []
    for _ in range(2_500):
        drawn = prior.draw_parameters(random)
        n_clusters = drawn.sample(n_rows, random).max() + 1
        forward.append([n_clusters, *(getattr(drawn, name) for name in prior.hyperpriors)])
    chain, fresh = np.array(visited), np.array(forward)
    for g in (lambda x: x, lambda x: x**2, lambda x: x[:, :1] * x[:, -1:]):
        batches = g(chain).reshape(50, 50, -1).mean(axis=1)
        error = np.sqrt(batches.var(axis=0, ddof=1) / 50 + g(fresh).var(axis=0) / len(fresh))
        assert np.all(abs(g(chain).mean(axis=0) - g(fresh).mean(axis=0)) < 4 * error)


def test_parameters_and_their_density():
    prior = PitmanYor(Gamma(2.0, 1.0), Beta(2.0, 3.0))
    drawn = prior.draw_parameters(0)
    assert drawn.hyperpriors == {}
    assert drawn.draw_parameters() is drawn
    expected = stats.gamma.logpdf(drawn.alpha, 2.0) + stats.beta.logpdf(drawn.discount, 2, 3)
    assert prior.log_prob_parameters(drawn) == pytest.approx(expected)
    assert prior.update_parameters(drawn, [3, 1], 0) == prior.update_parameters(drawn, [3, 1], 0)


@pytest.mark.parametrize("prior", [DirichletProcess(2.0), PitmanYor(1.0, 0.2), UniformPartition()])
def test_known_parameters_stay(prior):
    assert prior.update_parameters(prior, [3, 1], 0) is prior
    assert prior.log_prob_parameters(prior) == 0


def test_unknown_parameters_are_drawn_before_a_sample():
    prior = DirichletProcess(Gamma(3.0, 0.5))
    numbers = [prior.sample(50, seed).max() + 1 for seed in range(800)]
    alpha = stats.gamma(3.0, scale=2.0)
    mean = alpha.expect(lambda value: sum(value / (value + np.arange(50))))
    assert np.mean(numbers) == pytest.approx(mean, rel=0.05)
    assert prior.weights(3, 0).sum() <= 1


@every_unknown
def test_unknown_parameters_have_no_probability(prior):
    name = next(iter(prior.hyperpriors))
    for ask in (lambda: prior.log_prob([0, 1]), lambda: prior.tables(3)):
        with pytest.raises(ValueError, match=f"{name} is .*, not a number: call draw_parameters"):
            ask()


@pytest.mark.slow
def test_vague_priors_stay_inside_the_domain():
    random = np.random.default_rng(0)
    for prior in (DirichletProcess(Gamma(1e-3, 1.0)), PitmanYor(Gamma(1e-3), Beta(1e-3, 1e-3))):
        for _ in range(20):
            drawn = prior.draw_parameters(random)
            stepped = prior.update_parameters(drawn, [9, 2], random)
            assert np.isfinite(stepped.log_prob(sizes=[9, 2]))


def test_priors_are_values():
    assert DirichletProcess(2.0) == DirichletProcess(2.0)
    assert len({DirichletProcess(1.0), DirichletProcess(1.0), PitmanYor(1.0, 0.0)}) == 2
    assert clone(DirichletProcess(Gamma()), safe=False) == DirichletProcess(Gamma())
    assert len(list(ParameterGrid({"prior": [DirichletProcess(), UniformPartition()]}))) == 2
    with pytest.raises(AttributeError):
        DirichletProcess().alpha = 3.0
