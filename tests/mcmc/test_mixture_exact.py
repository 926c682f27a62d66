"""Chains against the list of all 203 partitions of six rows, and against draws of their priors."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats
from sklearn.metrics import adjusted_rand_score

from countless._mcmc import split_merge
from countless._mcmc.gibbs import (
    NO_TARGET,
    NOTHING,
    SCANS,
    ScanOrder,
    Target,
    partition_of,
    uncollapsed_sweep,
)
from countless._mcmc.partition_chain import PartitionChain
from countless._mcmc.split_merge import split_and_merge, warm_up
from countless.kernels.gibbs import sweep
from countless.models import (
    Bernoulli,
    Categorical,
    Columns,
    DiagonalGaussian,
    FixedGaussian,
    Gaussian,
    InverseGamma,
    Multinomial,
    Poisson,
)
from countless.priors import (
    DirichletProcess,
    FiniteDirichlet,
    Gamma,
    PitmanYor,
    SizePrior,
    UniformPartition,
)
from plain import all_partitions

NUMBERS = np.array([[0.0, 0.1], [0.3, -0.2], [2.9, 3.0], [3.2, 2.6], [0.1, 2.8], [0.4, 0.3]])
# Several columns that say the same: else all partitions would be about as probable.
BINARY = np.tile(NUMBERS > 1.0, 3) * 1
COUNTS = np.rint(5 * np.abs(NUMBERS)) + 1
MIXED = np.array(
    [[0.1, "a", 3], [np.nan, "a", 2], [3.0, "b", 9], [3.2, "b", 8], [0.2, None, 1], [0.4, "a", 2]],
    dtype=object,
)
# Every model with all hyperparameters given, and six rows of it.
MODELS = {
    "gaussian": (Gaussian([1.0, 1.0], 0.1, 5.0, 0.4 * np.eye(2)), NUMBERS),
    "diagonal": (DiagonalGaussian(1.0, 0.1, 2.0, 0.3), NUMBERS),
    "fixed": (FixedGaussian(0.3, 4.0, 1.0), NUMBERS),
    "bernoulli": (Bernoulli(0.3, 0.4), BINARY),
    "categorical": (Categorical(0.3, levels=2), BINARY),
    "poisson": (Poisson(0.7, 0.2), COUNTS),
    "multinomial": (Multinomial(0.5), np.tile(COUNTS, 2) * [1, 3, 2, 1]),
    "columns": (
        Columns([DiagonalGaussian(1.0, 0.1, 2.0, 0.3), Categorical(0.4, "ab"), Poisson(0.7, 0.2)]),
        MIXED,
    ),
}
PRIORS = {
    "dirichlet": DirichletProcess(0.7),
    "pitman-yor": PitmanYor(0.4, 0.3),
    "finite": FiniteDirichlet(1.5, 3),
    "uniform": UniformPartition(),
    "sizes": SizePrior(lambda size: np.where(size <= 4, -0.7 * size, -np.inf)),
}


PARTITIONS = np.array(all_partitions(6))
PAIRS = np.triu_indices(6, 1)


def codes(labels):
    """Return a number for each partition, whatever its clusters are called."""
    labels = np.asarray(labels)
    return (labels[:, PAIRS[0]] == labels[:, PAIRS[1]]) @ (1 << np.arange(15))


CODES = codes(PARTITIONS)
ORDER = np.argsort(CODES)


def tally(draws):
    """Return how often each partition was drawn."""
    places = ORDER[np.searchsorted(CODES, codes(draws), sorter=ORDER)]
    return np.bincount(places, minlength=len(PARTITIONS))


def enumerated(model, rows, prior):
    """Return the posterior probability of each partition."""
    logs = np.array(
        [
            model.log_marginal(model.statistics(rows, one)).sum() + prior.log_prob(one)
            for one in PARTITIONS
        ]
    )
    weights = np.exp(logs - logs.max())
    return weights / weights.sum()


def total_variation(draws, exact):
    return 0.5 * np.abs(tally(draws) / len(draws) - exact).sum()


def cases(*names):
    return pytest.mark.parametrize(
        ("model", "X", "prior"),
        [(*MODELS[model], PRIORS[prior]) for model, prior in names],
        ids=["-".join(name) for name in names],
    )


@cases(*[(model, prior) for model in MODELS for prior in PRIORS])
def test_sweeps_follow_the_enumerated_posterior(model, X, prior):
    model = model.bind(X)
    rows = model.rows(X)
    tables = prior.tables(6)
    random = np.random.default_rng(0)
    labels, sizes = np.arange(6, dtype=np.int32), np.array([1] * 6 + [0])
    clusters = model.clusters(7, model.statistics(rows, labels))
    order = np.tile(np.arange(6), 2)
    draws = np.empty((6000, 6), dtype=np.int32)
    for draw in draws:
        sweep(
            clusters, sizes, rows, order, 0, labels, NO_TARGET, tables.join, tables.open, random,
            NOTHING,
        )  # fmt: skip
        draw[:] = labels
    assert total_variation(draws, enumerated(model, rows, prior)) < 0.03


def kept(move, model, X, prior, n_draws):
    """Return the p-value of draws that are moved, given that they came from the posterior."""
    model = model.bind(X)
    rows = model.rows(X)
    exact = enumerated(model, rows, prior)
    random = np.random.default_rng(0)
    before = PARTITIONS[random.choice(len(exact), size=n_draws, p=exact)]
    target = Target(model, rows, prior.tables(6), random)
    after = np.array([move(partition_of(model, rows, one), target).labels for one in before])
    assert np.mean(codes(before) != codes(after)) > 0.05  # who stays keeps any distribution
    often = exact * n_draws > 5
    observed, expected = (
        np.append(counts[often], counts[~often].sum()) for counts in (tally(after), exact * n_draws)
    )
    return stats.chisquare(observed[expected > 0], expected[expected > 0]).pvalue


def test_a_chain_that_has_settled_follows_the_enumerated_posterior():
    model, X = MODELS["diagonal"]
    model, prior = model.bind(X), PRIORS["dirichlet"]
    rows = model.rows(X)
    chain = PartitionChain(
        model, prior, rows, np.zeros(6, int), np.random.default_rng(0), n_burn_in=20
    )
    draws = []
    for n_before in range(2500):
        chain.sweep()
        if n_before >= 20:
            draws.append(chain.partition.labels)
    assert len(chain._sweep.keywords["scan_order"].order) > 6  # some rows are visited again
    assert total_variation(draws, enumerated(model, rows, prior)) < 0.03


def test_extra_scans_are_chosen_during_burn_in_and_fixed_afterwards():
    scan_order = ScanOrder(10, n_warm_up=6)
    for n_before in range(20):
        odds = np.zeros(10)
        odds[[0, 1]] = n_before < 3  # too early
        odds[2] = 2 * SCANS.ambiguous_odds * (n_before in (3, 5))
        odds[3] = 2 * SCANS.ambiguous_odds * (n_before == 4)  # too seldom
        odds[4] = n_before > 5  # too late
        assert scan_order.records_odds == (3 <= n_before < 6)
        with np.errstate(divide="ignore"):
            scan_order.record(np.log(odds))
    np.testing.assert_array_equal(scan_order.order, [*range(10), *[2] * SCANS.extra_scans])


def test_extra_scans_of_ambiguous_rows_are_limited():
    scan_order = ScanOrder(10, n_warm_up=1)
    scan_order.record(np.zeros(10))
    np.testing.assert_array_equal(scan_order.order, [*range(10)] * 3)


def test_a_chain_that_settles_joins_the_halves_of_a_cluster():
    """Which it would else try for long: a split finds one pair of halves of very many."""
    random = np.random.default_rng(0)
    X = random.standard_normal((600, 2))
    model, tables = Gaussian().bind(X), DirichletProcess(1.0).tables(600)
    rows = model.rows(X)
    halves = partition_of(model, rows, np.arange(600) % 2)
    joined = warm_up(halves, Target(model, rows, tables, random), 24)
    assert len(joined.sizes) == 1


def test_a_chain_that_settles_mends_a_border_between_two_clusters():
    random = np.random.default_rng(0)
    truth = np.repeat([0, 1], 200)
    X = random.standard_normal((400, 2)) + 6.0 * truth[:, None]
    model, tables = Gaussian().bind(X), DirichletProcess(1.0).tables(400)
    rows = model.rows(X)
    wrong = partition_of(model, rows, truth & (X[:, 1] > 6.5))
    mended = warm_up(wrong, Target(model, rows, tables, random), 12)
    assert adjusted_rand_score(truth, mended.labels) > 0.98  # a row may be by itself
    np.testing.assert_array_equal(mended.sizes, np.bincount(mended.labels))
    summed = partition_of(model, rows, mended.labels).statistics
    np.testing.assert_allclose(mended.statistics, summed, atol=1e-9)


def test_burn_in_removes_a_cluster_between_two_others():
    """It has rows of both, and can be joined with neither."""
    random = np.random.default_rng(0)
    truth = np.repeat([0, 1], 400)
    X = random.standard_normal((800, 2)) + 3.0 * truth[:, None]
    model, tables = Gaussian().bind(X), DirichletProcess(1.0).tables(800)
    rows = model.rows(X)
    two = partition_of(model, rows, truth)
    three = partition_of(model, rows, np.where(random.random(800) < 0.4, 2, truth))
    target = Target(model, rows, tables, random)
    for _ in range(6):  # tries any one of the clusters
        two, three = (warm_up(one, target, 0) for one in (two, three))
    for found in (two, three):
        assert adjusted_rand_score(truth, found.labels) > 0.85
        np.testing.assert_array_equal(found.sizes, np.bincount(found.labels, minlength=2))


def ask_early(monkeypatch):
    """Let splits and merges be given up after any row, few as there are."""
    tuning = replace(split_merge.TUNING, tested_entries=0, tested_rows=1)
    monkeypatch.setattr(split_merge, "TUNING", tuning)


early = pytest.mark.parametrize("early", [False, True], ids=["whole", "in parts"])


@pytest.mark.slow
@early
@cases(("diagonal", "pitman-yor"), ("gaussian", "dirichlet"))
def test_split_merge_moves_leave_the_posterior_invariant(model, X, prior, early, monkeypatch):
    def move(*state):  # a wrong ratio shows where it has had its way for long
        return split_and_merge(*state, 20, 1 if early else None)

    if early:
        ask_early(monkeypatch)
    assert kept(move, model, X, prior, 2000) > 1e-4


@pytest.mark.slow
@early
@pytest.mark.parametrize("prior", [PitmanYor(1.0, 0.3), DirichletProcess(0.1)], ids=["many", "few"])
def test_split_merge_without_data_leaves_the_prior_invariant(prior, early, monkeypatch):
    """The choice of rows and partners is corrected for: larger clusters show it better.

    With many clusters most merges are given up early, with few most splits.
    """
    if early:
        ask_early(monkeypatch)
    model = Multinomial(1.0).bind(np.zeros((14, 2)))
    rows = np.zeros((14, 2))
    target = Target(model, rows, prior.tables(14), np.random.default_rng(0))
    partition = partition_of(model, rows, np.zeros(14, int))
    n_clusters = np.empty(1500, dtype=int)
    for draw in range(1500):
        partition = split_and_merge(partition, target, 6, 1 if early else None)
        n_clusters[draw] = len(partition.sizes)
    found = np.bincount(n_clusters, minlength=15) / 1500
    assert 0.5 * np.abs(found - prior.n_clusters_distribution(14)).sum() < 0.07


@cases(
    *[(model, "dirichlet") for model in MODELS], *[("fixed", prior) for prior in list(PRIORS)[1:]]
)
def test_uncollapsed_sweeps_leave_the_posterior_invariant(model, X, prior):
    assert kept(uncollapsed_sweep, model, X, prior, 300) > 1e-4


def test_uncollapsed_sweeps_follow_the_enumerated_posterior():
    model, X = MODELS["fixed"]
    model, prior = model.bind(X), PRIORS["dirichlet"]
    rows = model.rows(X)
    settings = {"sampler": "uncollapsed", "split_merge": False}
    chain = PartitionChain(
        model, prior, rows, np.zeros(6, int), np.random.default_rng(0), **settings
    )
    draws = []
    for _ in range(2500):
        chain.sweep()
        draws.append(chain.partition.labels)
    assert total_variation(draws, enumerated(model, rows, prior)) < 0.03


@pytest.mark.slow
def test_parameters_that_are_drawn_are_integrated_out():
    """A concentration and a variance: partitions follow the mean over all of them."""
    given_prior = DirichletProcess(Gamma(2.0, 2.0))
    model = FixedGaussian(InverseGamma(3.0, 1.0), 4.0, 1.0).bind(NUMBERS)
    rows = model.rows(NUMBERS)
    random = np.random.default_rng(1)
    chain = PartitionChain(model, given_prior, rows, np.zeros(6, int), random, split_merge=False)
    draws = []
    for _ in range(1200):
        chain.sweep()
        draws.append(chain.partition.labels)
    # The prior of the parameters, weighted by the evidence: 63 clusters, 11 lists of sizes.
    subsets = [(number >> np.arange(6)) & 1 for number in range(1, 64)]
    statistics = np.array([model.statistics(rows[one == 1]) for one in subsets])
    inside = np.array([[(one == c) @ (1 << np.arange(6)) for c in range(6)] for one in PARTITIONS])
    sizes = [tuple(sorted(np.bincount(one))) for one in PARTITIONS]
    exact = np.zeros(len(PARTITIONS))
    for _ in range(500):
        marginals = model.with_hyper(model.hyper.draw(random)).log_marginal(statistics)
        prior = given_prior.draw_parameters(random)
        weights = {one: prior.log_prob(sizes=one) for one in set(sizes)}
        of_rows = np.append(0.0, marginals)[inside].sum(axis=1)
        exact += np.exp(of_rows + [weights[one] for one in sizes])
    assert total_variation(draws, exact / exact.sum()) < 0.08


@pytest.mark.slow
def test_getting_it_right():
    """Rows drawn in turn with everything else leave the prior as it is (Geweke 2004)."""
    given_prior = DirichletProcess(Gamma(3.0, 2.0))
    model = FixedGaussian(InverseGamma(4.0, 2.0), 3.0, 0.0).bind(NUMBERS[:, :1])
    random = np.random.default_rng(3)
    rows = model.rows(NUMBERS[:, :1])
    chain = PartitionChain(model, given_prior, rows, np.zeros(6, int), random)
    kept = []
    for _ in range(1200):
        labels = chain.partition.labels
        parameters = chain.model.draw_parameters(chain.model.empty(chain.n_clusters), random)
        of_row = {name: value[labels] for name, value in parameters.items()}
        chain.rows = chain.model.draw_rows(of_row, random)
        chain.partition = partition_of(chain.model, chain.rows, labels)
        chain.sweep()
        kept.append((chain.prior.alpha, np.exp(chain.model.hyper.value[1]), chain.n_clusters))
    alpha, variance, n_clusters = np.array(kept)[::4].T
    assert stats.kstest(alpha, stats.gamma(3.0, scale=0.5).cdf).pvalue > 1e-4
    assert stats.kstest(variance, stats.invgamma(4.0, scale=2.0).cdf).pvalue > 1e-4
    expected = np.mean(
        [given_prior.draw_parameters(random).expected_n_clusters(6) for _ in range(2000)]
    )
    assert n_clusters.mean() == pytest.approx(expected, abs=0.25)
