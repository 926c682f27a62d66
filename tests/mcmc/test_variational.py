"""Variational inference against enumeration; every move raises the lower bound."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import gammaln, logsumexp
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score

from countless import DPMixture, load_model, save_model
from countless._mcmc.variational import variational_mixture
from countless.models import Columns, DiagonalGaussian, Gaussian, Poisson
from countless.priors import DirichletProcess, FiniteDirichlet, PitmanYor, UniformPartition
from plain import all_partitions

X, TRUE = make_blobs(90, centers=[[0, 0], [8, 0], [0, 8]], random_state=0)
PARTITIONS = all_partitions(6)
PRIORS = [DirichletProcess(1.0), DirichletProcess(0.2), PitmanYor(0.5, 0.4), FiniteDirichlet(2, 3)]


def log_evidence(model, prior, rows):
    """Sum the joint density over all 203 partitions of six rows."""
    return logsumexp(
        [
            prior.log_prob(labels) + model.log_marginal(model.statistics(rows, labels)).sum()
            for labels in PARTITIONS
        ]
    )


def plain_bound(model, prior, rows, shares):
    """Compute the bound of responsibilities, with sticks written out."""
    alpha, discount = prior.alpha, prior._discount()
    own = np.array([model.statistics(row[None]) for row in rows])
    total = -sum(r * np.log(r) for r in shares.ravel() if r > 0)
    sizes = shares.sum(axis=0)
    shares = shares[:, np.argsort(-sizes)]
    sizes = np.sort(sizes)[::-1]
    for c, size in enumerate(sizes):
        total += model.log_marginal(shares[:, c] @ own)
        before = (1 - discount, alpha + discount * (c + 1))
        if before[1] > 1e-12:
            after = (before[0] + size, before[1] + sizes[c + 1 :].sum())
            for sign, (a, b) in zip((1, -1), (after, before), strict=True):
                total += sign * (gammaln(a) + gammaln(b) - gammaln(a + b))
    return total


@pytest.mark.parametrize("prior", PRIORS, ids=repr)
@pytest.mark.parametrize("model", [Gaussian(), DiagonalGaussian(), Poisson()], ids=repr)
def test_the_bound_is_below_the_sum_over_all_partitions(model, prior):
    hits = 0
    for seed in range(6):
        separated = seed % 2
        random = np.random.default_rng(seed)
        table = random.normal(size=(6, 2)) + 40 * separated * (np.arange(6) % 2)[:, None]
        if isinstance(model, Poisson):
            table = np.floor(np.abs(table))
        bound = model.bind(table)
        rows = bound.rows(table)
        found = variational_mixture(bound, prior, rows, fit_hyper=False)
        exact = log_evidence(bound, prior, rows)
        plain = plain_bound(bound, prior, rows, found.components.shares)
        assert found.lower_bound == pytest.approx(plain)
        assert found.lower_bound <= exact
        # Components have an order in the approximation, and none in the sum: a factor of 2 or more.
        assert not separated or exact - found.lower_bound < 1.6
        hard = [
            plain_bound(bound, prior, rows, np.eye(max(labels) + 1)[list(labels)])
            for labels in PARTITIONS
            if max(labels) < prior.most_clusters()
        ]
        hits += found.lower_bound > max(hard) - 1e-6
    assert hits >= 4  # no worse than the best of all partitions


def test_on_separated_clusters_only_the_order_of_components_is_lost():
    """Two far clusters: the sum is one partition; the bound counts one order of its sticks."""
    table = np.array([[0.0], [0.1], [0.2], [90.0], [90.1], [90.2]])
    model = DiagonalGaussian(mean=45.0, strength=0.01, shape=2.0, scale=0.1).bind(table)
    rows = model.rows(table)
    found = variational_mixture(model, DirichletProcess(1.0), rows)
    exact = log_evidence(model, DirichletProcess(1.0), rows)
    # Its probability is 2! 2! / 6!, and that of the sticks B(4, 4) B(4, 1).
    order = np.log(4 / 720) - np.log(36 / 5040 / 4)
    assert exact - found.lower_bound == pytest.approx(order, abs=0.02)


@settings(max_examples=25)
@given(data=st.data())
def test_the_bound_never_falls_and_shares_sum_to_one(data):
    seed = data.draw(st.integers(0, 10**6))
    random = np.random.default_rng(seed)
    n, k = data.draw(st.integers(2, 60)), data.draw(st.integers(1, 5))
    table = random.normal(size=(k, 2))[random.integers(0, k, n)] * data.draw(
        st.sampled_from([0.5, 3.0, 30.0])
    )
    table = table + random.normal(size=(n, 2))
    bound = Gaussian().bind(table)
    prior = data.draw(st.sampled_from([*PRIORS, DirichletProcess()]))
    found = variational_mixture(bound, prior, bound.rows(table))
    assert np.all(np.diff(found.history) >= -1e-6)
    shares, statistics, sizes = found.components
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    np.testing.assert_allclose(sizes, shares.sum(axis=0))
    assert np.all(np.diff(sizes) <= 0)
    own = bound.row_statistics(bound.rows(table))
    np.testing.assert_allclose(statistics, shares.T @ own, rtol=1e-7, atol=1e-7)
    plain = plain_bound(found.model, found.prior, bound.rows(table), shares)
    assert found.lower_bound == pytest.approx(plain, rel=1e-6)


def test_blobs_are_found_whatever_the_order_and_the_scale():
    one = DPMixture(inference="variational", random_state=0).fit(X)
    assert (one.n_clusters_, one.converged_) == (3, True)
    assert adjusted_rand_score(TRUE, one.labels_) == 1.0
    order = np.random.default_rng(1).permutation(len(X))
    other = DPMixture(inference="variational", random_state=5).fit(X[order])
    assert adjusted_rand_score(one.labels_[order], other.labels_) == 1.0
    moved = DPMixture(inference="variational").fit(100.0 * X - 7.0)
    assert adjusted_rand_score(one.labels_, moved.labels_) == 1.0
    assert np.array_equal(one.predict(X), one.labels_)
    assert one.predict_proba(X).shape == (90, 3)
    again = DPMixture(inference="variational", init=TRUE).fit(X)
    assert again.lower_bound_ == pytest.approx(one.lower_bound_, abs=0.1)


def test_densities_and_files(tmp_path):
    fitted = DPMixture(inference="variational").fit(X)
    exact = DPMixture(n_chains=1, n_sweeps=100, random_state=0).fit(X)
    grid = np.random.default_rng(0).uniform(-5, 12, size=(200, 2))
    near = exact.score_samples(grid) > -8
    assert near.sum() > 20
    np.testing.assert_allclose(
        fitted.score_samples(grid)[near], exact.score_samples(grid)[near], atol=0.3
    )
    save_model(tmp_path / "m.countless", fitted)
    loaded = load_model(tmp_path / "m.countless").estimator
    np.testing.assert_array_equal(loaded.predict_proba(grid), fitted.predict_proba(grid))
    np.testing.assert_array_equal(loaded.score_samples(grid), fitted.score_samples(grid))


@pytest.mark.parametrize(
    ("model", "table"),
    [
        ("bernoulli", np.repeat([[0, 0, 0, 1, 1, 1], [1, 1, 1, 0, 0, 0]], 20, axis=0)),
        ("categorical", np.repeat([["a", "b", "a"], ["c", "d", "c"]], 20, axis=0)),
        ("poisson", np.repeat([[1, 30], [30, 1]], 20, axis=0)),
        ("multinomial", np.repeat([[9, 1, 0], [0, 1, 9]], 20, axis=0)),
        ("fixed", X),
        (Columns(), np.column_stack([X, TRUE % 2])),
        ("diagonal", np.where(X[:60] == X[3, 0], np.nan, X[:60])),
    ],
    ids=str,
)
def test_every_model_is_approximated(model, table):
    found = DPMixture(model, inference="variational").fit(table)
    assert found.converged_
    assert found.n_clusters_ >= 2
    assert np.isfinite(found.score_samples(table)).all()


def test_no_more_components_than_the_prior_allows():
    found = DPMixture(prior=FiniteDirichlet(1.0, 2), inference="variational").fit(X)
    assert found.n_clusters_ == 2


def test_a_prior_without_sticks_is_refused():
    with pytest.raises(ValueError, match="needs a prior with stick-breaking weights"):
        DPMixture(prior=UniformPartition(), inference="variational").fit(X)
