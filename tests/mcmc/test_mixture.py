"""DPMixture as its users meet it; that its draws are right is in test_mixture_exact.py."""

import os
import signal
import subprocess
import sys
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pytest
from scipy.integrate import trapezoid
from scipy.special import logsumexp
from sklearn.datasets import make_blobs
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

import countless._mcmc.particles as particles
import countless._mcmc.sampled as sampled
from countless import DPMeans, DPMixture, alpha_from_penalty
from countless._mcmc.chains import Schedule, run_chains
from countless.models import FixedGaussian, Gaussian, Multinomial
from countless.priors import DirichletProcess, FiniteDirichlet
from countless.serialize.model_file import load_model, save_model

X, TRUE = make_blobs(90, centers=[[0, 0], [8, 0], [0, 8]], random_state=0)
SHORT = {"n_chains": 2, "n_sweeps": 20, "random_state": 0}
# Two chains of ten draws may well disagree.
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.fixture(scope="module")
def fitted():
    return DPMixture(n_chains=1, n_sweeps=40, random_state=0).fit(X)


def test_clusters_are_found_from_one(fitted):
    assert adjusted_rand_score(TRUE, fitted.labels_) == 1.0
    assert (fitted.n_clusters_, fitted.n_iter_, fitted.converged_) == (3, 40, True)
    assert fitted.posterior_.labels.shape == (1, 20, 90)
    assert fitted.posterior_.alpha.shape == (1, 20)
    first, names = np.unique(fitted.labels_, return_index=True)
    assert np.array_equal(first, np.argsort(np.argsort(names)))


def test_draws_depend_on_the_seed_alone():
    one, two, other = (
        DPMixture(**{**SHORT, "random_state": seed}, n_jobs=n_jobs).fit(X)
        for seed, n_jobs in ((0, 1), (0, 2), (1, 1))
    )
    assert np.array_equal(one.posterior_.log_joint, two.posterior_.log_joint)
    assert np.array_equal(one.posterior_.labels, two.posterior_.labels)
    assert np.array_equal(one.labels_, two.labels_)
    assert np.array_equal(one.score_samples(X), two.score_samples(X))
    assert not np.array_equal(one.posterior_.log_joint, other.posterior_.log_joint)
    chains = one.posterior_.log_joint
    assert not np.array_equal(chains[0], chains[1])


@pytest.mark.slow
def test_small_variances_give_dp_means():
    variance, prior_variance, penalty = 0.05, 100.0, 30.0
    alpha = alpha_from_penalty(
        penalty, variance=variance, prior_variance=prior_variance, n_features=2
    )
    hard = DPMeans(penalty=penalty, random_state=0).fit(X)
    for sampler in ("collapsed", "uncollapsed"):
        soft = DPMixture(
            FixedGaussian(variance, prior_variance, 0.0),
            DirichletProcess(alpha),
            sampler=sampler,
            **SHORT,
        ).fit(X)
        draws = soft.posterior_.labels.reshape(-1, len(X))
        assert np.mean([np.array_equal(draw, hard.labels_) for draw in draws]) > 0.9
        assert np.array_equal(soft.labels_, hard.labels_)


def test_probabilities(fitted):
    new = np.random.default_rng(0).uniform(-20, 30, size=(200, 2))
    proba = fitted.predict_proba(new)
    assert proba.shape == (200, 3)
    np.testing.assert_allclose(proba.sum(axis=1), 1.0)
    assert np.array_equal(proba.argmax(axis=1), fitted.predict(new))
    assert np.array_equal(fitted.predict(X), fitted.labels_)


def test_densities_are_the_mean_over_draws():
    model = Gaussian(mean=[2.0], strength=0.1, freedom=3.0, scale=[[1.0]])
    fitted = DPMixture(model, FiniteDirichlet(1.0, 3), **SHORT).fit(X[:, :1])
    grid = np.linspace(-40, 60, 20_001)
    density = np.exp(fitted.score_samples(grid[:, None]))
    assert trapezoid(density, grid) == pytest.approx(1.0, abs=2e-3)
    model, some = fitted.model_, grid[::2000, None]
    rows = model.rows(X[:, :1])
    plain = []
    for draw in fitted.posterior_.labels.reshape(-1, len(X)):
        sizes = np.bincount(draw)
        sets = [*(model.statistics(rows[draw == c]) for c in range(len(sizes))), model.empty()[0]]
        weights = fitted.prior_.log_predictive(sizes)
        plain.append(logsumexp(model.log_predictive(model.rows(some), sets) + weights, axis=1))
    expected = logsumexp(plain, axis=0) - np.log(len(plain))
    np.testing.assert_allclose(fitted.score_samples(some), expected, rtol=1e-10)
    assert fitted.score(some) == pytest.approx(expected.mean())


def test_drawn_rows_look_like_the_data(fitted):
    drawn = fitted.sample(3000, random_state=0)
    assert drawn.shape == (3000, 2)
    assert np.array_equal(drawn, fitted.sample(3000, random_state=0))
    near = np.array([(np.hypot(*(drawn - center).T) < 4).mean() for center in X[[0, 1, 2]]])
    assert (near > 0.2).all()


def test_mixed_columns_with_missing_values():
    table = np.array(
        [[0.1, "a"], [np.nan, "a"], [0.3, None], [9.0, "b"], [9.2, "b"], [8.8, "b"]] * 5,
        dtype=object,
    )
    fitted = DPMixture("columns", **SHORT).fit(table)
    assert fitted.n_clusters_ == 2
    assert fitted.predict(table[:4]).tolist() == [0, 0, 0, 1]


@pytest.mark.parametrize("init", ["dp-means", TRUE, [str(label) for label in TRUE]])
def test_initial_partitions_of_chains(init):
    quick = DPMixture(init=init, n_chains=1, n_sweeps=2, split_merge=False, random_state=0)
    assert adjusted_rand_score(TRUE, quick.fit(X).labels_) > 0.9


def test_thinning_and_burn_in():
    fitted = DPMixture(n_chains=1, n_sweeps=11, burn_in=2, thin=3, random_state=0).fit(X)
    assert fitted.posterior_.labels.shape == (1, 3, 90)
    every = DPMixture(n_chains=1, n_sweeps=11, burn_in=2, random_state=0).fit(X)
    kept = every.posterior_.log_joint[:, [2, 5, 8]]
    assert np.array_equal(fitted.posterior_.log_joint, kept)


def test_chains_that_disagree_are_named(monkeypatch):
    monkeypatch.setattr(sampled, "TUNING", replace(sampled.TUNING, highest_r_hat=0.5))
    with pytest.warns(ConvergenceWarning, match=r"disagree on \w+ \(R-hat .* after 20 sweeps"):
        assert not DPMixture(**SHORT).fit(X).converged_


class Counter:
    """A chain that counts its sweeps."""

    n_clusters = 1

    def __init__(self):
        self.n = 0

    def sweep(self):
        self.n += 1

    def log_joint(self):
        return float(self.n)

    def record(self):
        return Counted(self.log_joint())


class Counted(NamedTuple):
    log_joint: float


def stopped_after(n_passes, schedule):
    """Run three chains, interrupted after so many sweeps of them together."""
    seen = []

    def on_pass(log_joint, n_clusters):
        seen.append(log_joint)
        if len(seen) == n_passes:
            raise KeyboardInterrupt

    return run_chains([Counter() for _ in range(3)], schedule, on_pass=on_pass)


def test_an_interruption_keeps_the_draws_so_far():
    with pytest.warns(ConvergenceWarning, match="stopped after .* of 1000000 sweeps"):
        draws = stopped_after(5, Schedule(10**6, 4, 2))
    assert len({len(chain) for chain in draws}) == 1
    assert draws[0][:3] == [(6,), (8,), (10,)]
    with pytest.raises(KeyboardInterrupt):
        stopped_after(5, Schedule(10**9, 10**9 - 1))


INTERRUPTED = """
import signal
import warnings
import numpy as np
from countless import DPMixture
from countless._mcmc.partition_chain import PartitionChain

signal.signal(signal.SIGINT, signal.default_int_handler)  # jobs in the background ignore it
chains, record = set(), PartitionChain.record

def record_and_tell(chain):
    if chain not in chains:
        chains.add(chain)
        if len(chains) == 2:  # a chain without draws would be left out
            print("drawing", flush=True)
    return record(chain)

PartitionChain.record = record_and_tell
X = np.random.default_rng(0).normal(size=(40, 2))
mixture = DPMixture(n_chains=2, n_sweeps=10**8, burn_in=5, random_state=0)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    mixture.fit(X)
print([str(warning.message) for warning in caught])
n_chains, n_draws, n_rows = mixture.posterior_.labels.shape
assert n_chains == 2 and 0 < n_draws < 10**6 and n_rows == 40
assert mixture.n_iter_ < 10**8 and isinstance(mixture.converged_, bool)
assert mixture.predict(X).shape == mixture.labels_.shape
"""


@pytest.mark.skipif(os.name == "nt", reason="signals are another thing on Windows")
def test_an_interrupt_signal_leaves_a_mixture_with_the_draws_so_far():
    child = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "drawing\n"
    child.send_signal(signal.SIGINT)
    out, errors = child.communicate(timeout=120)
    assert child.returncode == 0, errors
    assert "stopped after" in out
    assert "of 100000000 sweeps" in out


def test_chains_end_where_they_agree():
    schedule = Schedule(100, 50, 2, test_sweeps=(10, 20, 40), halve=True)
    chains = [Counter() for _ in range(3)]
    draws = run_chains(chains, schedule, agree=lambda draws: len(draws[0]) >= 5)
    assert draws == [[(12,), (14,), (16,), (18,), (20,)]] * 3
    assert {chain.n for chain in chains} == {20}


def test_when_chains_end_does_not_depend_on_threads(monkeypatch):
    tuning = replace(sampled.TUNING, highest_r_hat=2.0, first_test=12)
    monkeypatch.setattr(sampled, "TUNING", tuning)
    fitted = [DPMixture(random_state=0, n_jobs=n_jobs).fit(X) for n_jobs in (1, 2)]
    one, two = (mixture.posterior_ for mixture in fitted)
    assert np.array_equal(one.log_joint, two.log_joint)
    n_iter = fitted[0].n_iter_
    assert n_iter in sampled.schedule_until_agreed(fitted[0]).test_sweeps
    assert one.labels.shape == (4, n_iter - n_iter // 2, len(X))
    assert all(found.r_hat <= 2.0 for found in one.diagnostics().values())


def test_one_chain_has_none_to_agree_with():
    schedule = sampled.schedule_until_agreed(DPMixture(n_chains=1, burn_in=7))
    assert schedule == Schedule(sampled.TUNING.single_chain_sweeps, 7)


@pytest.mark.slow
def test_a_stream_follows_the_posterior(monkeypatch):
    """Particles without sweeps over kept rows are weighted rightly."""
    tuning = particles.Tuning(n_particles=1500, n_stored=0, rows_between=1)
    monkeypatch.setattr(particles, "TUNING", tuning)
    prior = DirichletProcess(1.0)
    model = FixedGaussian(0.5, 4.0, 0.0).bind([[0.0]])
    rows = model.rows([[0.0], [1.2], [0.9], [-1.0]])
    random = np.random.default_rng(0)
    stream = particles.start_stream(model, prior, rows, random)
    stream, _ = particles.update_stream(stream, rows)
    found = np.mean([len(particle.sizes) for particle in stream.particles])
    partitions = [[]]
    for _ in range(4):
        partitions = [[*p, c] for p in partitions for c in range(max(p, default=-1) + 2)]
    logs = [
        model.log_marginal(model.statistics(rows, np.array(p))).sum() + prior.log_prob(p)
        for p in partitions
    ]
    exact = np.exp(logs - logsumexp(logs)) @ [max(p) + 1 for p in partitions]
    assert found == pytest.approx(exact, abs=0.1)


def test_a_stream_finds_clusters_in_bounded_memory():
    order = np.random.default_rng(0).permutation(900)
    rows, true = make_blobs(900, centers=[[0, 0], [8, 0], [0, 8]], random_state=1)
    stream = DPMixture(random_state=0)
    for batch in np.array_split(order, 3):
        stream.partial_fit(rows[batch])
    assert (stream.labels_.shape, stream.n_iter_) == ((300,), 3)
    assert adjusted_rand_score(true, stream.predict(rows)) > 0.95
    assert stream.posterior_.labels.shape[2] == particles.TUNING.n_stored
    assert sum(stream._stream.particles[0].sizes) == 900
    after = DPMixture(n_chains=1, n_sweeps=20, random_state=0).fit(X)
    after.partial_fit(X + np.array([30.0, 0.0]))
    assert 5 <= after.n_clusters_ <= 8


def test_batches_of_a_stream_draw_numbers_of_their_own(monkeypatch):
    """Rows that say nothing stay in one cluster as rarely as the prior says: 1 time in 40."""
    monkeypatch.setattr(particles, "TUNING", replace(particles.TUNING, n_stored=1))
    stream = DPMixture(Multinomial(concentration=1.0), DirichletProcess(1.0), random_state=0)
    for _ in range(40):
        stream.partial_fit([[1.0]])
    assert np.mean([len(particle.sizes) == 1 for particle in stream._stream.particles]) < 0.3


@pytest.mark.parametrize("n_samples", [0, -1])
def test_rows_that_are_drawn_are_one_or_more(n_samples):
    fitted = DPMixture(n_chains=1, n_sweeps=2, random_state=0).fit(X)
    with pytest.raises(ValueError, match=f"n_samples must be at least 1; got {n_samples}"):
        fitted.sample(n_samples)


def test_rows_beyond_all_densities_are_named():
    fitted = DPMixture(n_chains=1, n_sweeps=2, random_state=0).fit(1e-5 * X)
    with pytest.raises(ValueError, match="too far from all clusters: row 1"):
        fitted.predict(np.vstack([X[0], np.full(2, 1e151)]))


@pytest.mark.parametrize("name", ["gaussian", "poisson"])
def test_a_saved_mixture_answers_the_same(name, tmp_path):
    table = np.rint(np.abs(X)) if name == "poisson" else X
    fitted = DPMixture(name, n_chains=1, n_sweeps=10, random_state=0).fit(table)
    save_model(tmp_path / "mixture.zip", fitted)
    loaded = load_model(tmp_path / "mixture.zip").estimator
    assert np.array_equal(loaded.predict_proba(table), fitted.predict_proba(table))
    assert np.array_equal(loaded.score_samples(table), fitted.score_samples(table))
    assert loaded.n_clusters_ == fitted.n_clusters_
    with pytest.raises(ValueError, match="loaded from a file; fit again"):
        loaded.partial_fit(table)


@pytest.mark.parametrize("name", ["categorical", "columns"])
def test_a_saved_mixture_of_text_answers_the_same(name, tmp_path):
    words = np.array(["red", "7", "grün"], dtype=object)[TRUE]
    table = np.column_stack([words, np.repeat([1, 2], 45).astype(object)])
    table[3, 0] = None
    fitted = DPMixture(name, n_chains=1, n_sweeps=10, random_state=0).fit(table)
    save_model(tmp_path / "mixture.zip", fitted)
    loaded = load_model(tmp_path / "mixture.zip").estimator
    assert np.array_equal(loaded.predict_proba(table), fitted.predict_proba(table))
    assert np.array_equal(loaded.sample(5, random_state=0), fitted.sample(5, random_state=0))
    with pytest.raises(ValueError, match="has 7, which is no known level: row 0, column 0"):
        loaded.predict([[7, 1]])


@pytest.mark.parametrize(
    ("settings", "table", "message"),
    [
        ({}, [[0.0], [np.nan]], "X contains NaN: row 1, column 0"),
        ({}, np.eye(8)[:5], "X has 5 rows and 8 columns, too few rows for full covariances; use"),
        ({"model": "poisson"}, [[1.0], [-1.0]], "a negative count: row 1, column 0"),
        ({"model": Gaussian(scale=np.ones((2, 2)))}, X, "scale must be positive definite"),
        ({"model": "normal"}, X, "model must be one of 'gaussian'"),
        ({"prior": 1.0}, X, "prior must be None or one of countless.priors; got 1.0"),
        ({"sampler": "fast"}, X, "sampler must be 'collapsed' or 'uncollapsed'; got 'fast'"),
        ({"sampler": ["fast"]}, X, "sampler must be 'collapsed' or 'uncollapsed'; got"),
        ({"init": "two"}, X, "init must be 'one', 'dp-means' or a label for each row; got 'two'"),
        ({"init": [0, 1]}, X, "init has 2 labels; X has 90 rows"),
        ({"init": "dp-means", "model": "diagonal"}, [[0.0], [np.nan]], "takes no missing values"),
        ({"n_sweeps": 10, "burn_in": 10}, X, "burn_in must leave a sweep of n_sweeps=10"),
        ({"n_chains": 0}, X, "n_chains must be an integer of at least 1; got 0"),
        ({"loss": "l2"}, X, "loss must be 'vi' or 'binder'; got 'l2'"),
    ],
)
def test_bad_input_is_named(settings, table, message):
    with pytest.raises(ValueError, match=message) as error:
        DPMixture(**settings).fit(table)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("table", [np.array([[3.0, 4.0]]), np.eye(8)[:2], np.ones((5, 2))])
def test_awkward_tables_have_an_answer(table):
    fitted = DPMixture(n_chains=1, n_sweeps=4, random_state=0).fit(table)
    assert fitted.labels_[0] == 0
    assert np.isfinite(fitted.score(table))


@pytest.mark.filterwarnings("ignore:DPMixture's chains disagree")
def test_chains_without_burn_in_find_clusters_in_many_dimensions():
    """There the first rows of a split look hopeless, so that some splits must be seen through."""
    X, _ = make_blobs(600, 8, centers=8, center_box=(-10, 10), random_state=0)
    mixture = DPMixture(n_chains=2, n_sweeps=20, burn_in=0, random_state=0).fit(X)
    np.testing.assert_array_equal(mixture.posterior_.n_clusters[:, -5:], 8)
