"""Every prior against the list of all partitions: probabilities, predictions, draws, counts."""

from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import gammaln, stirling2
from scipy.stats import beta, chisquare, kstest

from countless.priors import (
    DirichletProcess,
    FiniteDirichlet,
    PitmanYor,
    SizePrior,
    UniformPartition,
)
from plain import all_partitions

RESTAURANTS = [
    DirichletProcess(),
    DirichletProcess(0.3),
    DirichletProcess(12.0),
    PitmanYor(1.0, 0.5),
    PitmanYor(0.0, 0.25),
    PitmanYor(-0.3, 0.6),
    PitmanYor(2.0, 0.0),
    FiniteDirichlet(1.0, 1),
    FiniteDirichlet(0.7, 3),
    FiniteDirichlet(5.0, 12),
]
WEIGHTED = [
    UniformPartition(),
    SizePrior(lambda size: -1.5 * np.log(size)),
    SizePrior(lambda size: 0.4 * size**1.3 - 2.0),
    SizePrior(lambda size: np.where(size <= 3, 0.5 * size, -np.inf)),
]
PRIORS = RESTAURANTS + WEIGHTED
every_prior = pytest.mark.parametrize("prior", PRIORS, ids=range(len(PRIORS)))
every_restaurant = pytest.mark.parametrize("prior", RESTAURANTS, ids=repr)


@cache
def probabilities(prior, n_rows):
    """Return the probability of each partition by its labels."""
    return {one: np.exp(prior.log_prob(one)) for one in all_partitions(n_rows)}


@every_restaurant
def test_ordered_components_by_drawn_sticks(prior):
    """Probabilities of sizes and posterior weights, as means over draws of the weights."""
    sizes = np.array([2.0, 1.0, 0.5])[: int(min(3, prior.most_clusters()))]
    random = np.random.default_rng(5)
    drawn = np.array([prior.weights(len(sizes), random) for _ in range(4000)])
    mass = np.prod(drawn**sizes, axis=1)
    error = 5 * mass.std() / np.sqrt(len(mass)) + 1e-12
    assert abs(np.exp(prior.log_prob_ordered(sizes)) - mass.mean()) < error
    means = prior.expected_weights(sizes)
    assert means.sum() == pytest.approx(1.0)
    posterior = mass / mass.mean()
    np.testing.assert_allclose(means[:-1], posterior @ drawn / len(mass), atol=0.03)
    with np.errstate(divide="ignore"):
        logs = np.where(posterior[:, None] > 0, np.log(drawn), 0.0)
    expected = prior.expected_log_weights(sizes)
    np.testing.assert_allclose(expected, posterior @ logs / len(mass), atol=0.4)
    assert (expected <= np.log(means[:-1]) + 1e-12).all()
    assert prior.log_prob_ordered(np.ones((2, 13))).shape == (2,)


def test_no_more_ordered_components_than_the_prior_has():
    assert FiniteDirichlet(1.0, 3).log_prob_ordered(np.ones(4)) == -np.inf
    assert np.isfinite(FiniteDirichlet(1.0, 3).log_prob_ordered(np.ones(3)))


def seat_plainly(alpha, discount, labels):
    """Return the probability of labels from the rule for each row, in the order of the rows."""
    sizes, product = [], 1.0
    for row, label in enumerate(labels):
        if row == 0:
            sizes = [1]
            continue
        if label == len(sizes):
            product *= (alpha + discount * len(sizes)) / (alpha + row)
            sizes.append(1)
        else:
            product *= (sizes[label] - discount) / (alpha + row)
            sizes[label] += 1
    return product


@every_prior
@pytest.mark.parametrize("n_rows", range(1, 8))
def test_all_partitions_sum_to_one(prior, n_rows):
    assert sum(probabilities(prior, n_rows).values()) == pytest.approx(1, rel=1e-12)


@pytest.mark.parametrize(
    ("prior", "alpha", "discount"),
    [
        (DirichletProcess(0.3), 0.3, 0.0),
        (PitmanYor(1.0, 0.5), 1.0, 0.5),
        (PitmanYor(-0.3, 0.6), -0.3, 0.6),
        (FiniteDirichlet(0.7, 3), 0.7, -0.7 / 3),
    ],
    ids=repr,
)
def test_restaurants_seat_rows_as_the_rule_says(prior, alpha, discount):
    for labels, probability in probabilities(prior, 6).items():
        expected = seat_plainly(alpha, discount, labels)
        assert probability == pytest.approx(expected, rel=1e-11, abs=1e-15)


def test_a_finite_mixture_is_its_labels_with_their_names_taken_away():
    # The Dirichlet-multinomial law of named labels, summed over the namings of each partition.
    alpha, n_components, n_rows = 0.7, 3, 5
    total = dict.fromkeys(all_partitions(n_rows), 0.0)
    for named in np.ndindex(*[n_components] * n_rows):
        sizes = np.bincount(named, minlength=n_components)
        log_share = gammaln(alpha) - gammaln(alpha + n_rows)
        log_share += (gammaln(sizes + alpha / 3) - gammaln(alpha / 3)).sum()
        names = list(dict.fromkeys(named))
        total[tuple(names.index(name) for name in named)] += np.exp(log_share)
    prior = FiniteDirichlet(alpha, n_components)
    for labels, probability in total.items():
        assert np.exp(prior.log_prob(labels)) == pytest.approx(probability, abs=1e-14)


@every_prior
def test_predictions_are_ratios_of_probabilities(prior):
    with_one_more = probabilities(prior, 6)
    for labels in all_partitions(5):
        sizes = np.bincount(labels)
        ways = np.array([with_one_more[(*labels, to)] for to in range(len(sizes) + 1)])
        if not ways.sum() or not np.isfinite(prior.log_prob(labels)):
            continue  # excluded by the prior
        predicted = np.exp(prior.log_predictive(sizes))
        np.testing.assert_allclose(predicted, ways / ways.sum(), rtol=1e-10, atol=1e-15)


@every_prior
def test_only_consistent_priors_survive_taking_a_row_away(prior):
    smaller = dict.fromkeys(all_partitions(5), 0.0)
    for labels, probability in probabilities(prior, 6).items():
        smaller[labels[:-1]] += probability
    off = max(abs(smaller[labels] - p) for labels, p in probabilities(prior, 5).items())
    assert (off < 1e-13) == prior.consistent


@every_prior
def test_tables_hold_what_the_methods_say(prior):
    sizes = np.array([2, 1, 3, 1])
    tables = prior.tables(8)
    assert [len(table) for table in tables] == [9, 8, 8]
    weights = np.append(tables.join[sizes], tables.open[len(sizes)])
    predicted = np.exp(weights - weights.max())
    np.testing.assert_allclose(predicted / predicted.sum(), np.exp(prior.log_predictive(sizes)))
    assert tables.join[0] == -np.inf
    assert tables.size[0] == 0
    for table, longer in zip(tables, prior.tables(20), strict=True):
        np.testing.assert_array_equal(table, longer[: len(table)])
    if not np.isfinite(prior.log_weight(sizes)):
        return
    openings = tables.open[: len(sizes)] - tables.size[1]
    expected = tables.size[sizes].sum() + openings.sum()
    assert prior.log_weight(sizes) == pytest.approx(expected)
    assert prior.log_prob(sizes=sizes) == pytest.approx(expected - prior.log_normalizer(7))


@pytest.mark.slow
@every_prior
def test_draws_follow_the_listed_probabilities(prior):
    n_draws, random = 6_000, np.random.default_rng(5)
    exact = probabilities(prior, 5)
    counts = dict.fromkeys(exact, 0)
    for _ in range(n_draws):
        counts[tuple(prior.sample(5, random).tolist())] += 1
    expected = np.array(list(exact.values())) * n_draws
    observed = np.array(list(counts.values()))
    assert observed[expected < 1e-9].sum() == 0
    rare = expected < 10
    expected = np.append(expected[~rare], expected[rare].sum())
    observed = np.append(observed[~rare], observed[rare].sum())
    kept = expected > 0
    if kept.sum() > 1:
        assert chisquare(observed[kept], expected[kept], sum_check=False).pvalue > 1e-3


@every_prior
@pytest.mark.parametrize("n_rows", [1, 2, 7])
def test_numbers_of_clusters_against_the_list(prior, n_rows):
    law = np.zeros(n_rows + 1)
    for labels, probability in probabilities(prior, n_rows).items():
        law[max(labels) + 1] += probability
    np.testing.assert_allclose(prior.n_clusters_distribution(n_rows), law, atol=1e-13)
    expected = law @ np.arange(n_rows + 1)
    assert prior.expected_n_clusters(n_rows) == pytest.approx(expected, rel=1e-12)


@every_prior
def test_expected_number_is_the_mean_of_the_distribution(prior):
    law = prior.n_clusters_distribution(300)
    assert law.sum() == pytest.approx(1, rel=1e-11)
    assert prior.expected_n_clusters(300) == pytest.approx(law @ np.arange(301), rel=1e-10)


def test_the_distribution_of_many_rows_keeps_what_is_rare():
    law = DirichletProcess(2.0).n_clusters_distribution(200_000)
    assert law @ np.arange(200_001) == pytest.approx(
        DirichletProcess(2.0).expected_n_clusters(200_000), rel=1e-9
    )
    # Most partitions of many rows have many clusters, though few of few rows have.
    uniform = UniformPartition()
    mean = uniform.n_clusters_distribution(2_000) @ np.arange(2_001)
    assert mean == pytest.approx(uniform.expected_n_clusters(2_000), rel=1e-9)
    growth = uniform.log_normalizer(2_001) - uniform.log_normalizer(2_000)
    assert mean == pytest.approx(np.exp(growth) - 1, rel=1e-8)


def test_stirling_numbers_and_small_discounts_against_scipy():
    counts = stirling2(60, np.arange(61), exact=True).astype(float)
    law = UniformPartition().n_clusters_distribution(60)
    np.testing.assert_allclose(law, counts / counts.sum(), rtol=1e-10)
    # Almost no discount is no discount: nothing cancels.
    almost, none = PitmanYor(1.0, 1e-13), DirichletProcess(1.0)
    assert almost.expected_n_clusters(500) == pytest.approx(none.expected_n_clusters(500), rel=1e-9)


def test_many_components_are_a_dirichlet_process():
    sizes = [5, 1, 9, 2]
    infinite = DirichletProcess(1.7).log_prob(sizes=sizes)
    assert FiniteDirichlet(1.7, 10**9).log_prob(sizes=sizes) == pytest.approx(infinite, abs=1e-6)
    assert SizePrior(gammaln).log_prob(sizes=sizes) == pytest.approx(
        DirichletProcess(1.0).log_prob(sizes=sizes)
    )


@given(
    st.sampled_from(PRIORS),
    st.lists(st.integers(0, 4), min_size=1, max_size=12),
    st.randoms(use_true_random=False),
)
def test_neither_the_order_of_rows_nor_names_of_clusters_count(prior, labels, random):
    shuffled = random.sample(labels, len(labels))
    names = random.sample(["a", "b", "c", "d", "e"], 5)
    before = prior.log_prob(labels)
    assert prior.log_prob([names[label] for label in shuffled]) == pytest.approx(before)
    sizes = [labels.count(label) for label in set(labels)]
    assert prior.log_prob(sizes=random.sample(sizes, len(sizes))) == pytest.approx(before)


@given(st.sampled_from(RESTAURANTS), st.lists(st.integers(1, 50), min_size=1, max_size=8))
def test_seating_a_row_multiplies_by_its_prediction(prior, sizes):
    before = prior.log_prob(sizes=sizes)
    if not np.isfinite(before):
        return
    after = [[*sizes[:to], sizes[to] + 1, *sizes[to + 1 :]] for to in range(len(sizes))]
    after.append([*sizes, 1])
    expected = [prior.log_prob(sizes=one) - before for one in after]
    np.testing.assert_allclose(prior.log_predictive(sizes), expected, rtol=1e-9, atol=1e-9)


@pytest.mark.slow
@every_restaurant
def test_sticks_are_the_shares_of_clusters_by_appearance(prior):
    # Of very many rows the first cluster has the share of the first stick, and so on.
    random, n_draws = np.random.default_rng(3), 1_500
    sticks = np.array([prior.weights(3, random) for _ in range(n_draws)])
    assert np.all(sticks >= 0)
    assert np.all(sticks.sum(axis=1) <= 1 + 1e-12)
    n_rows = 3_000
    shares = np.zeros((n_draws, 3))
    for draw in shares:
        counts = np.bincount(prior.sample(n_rows, random), minlength=3)[:3]
        draw[:] = counts / n_rows
    for power in (1, 2):
        one, other = sticks**power, shares**power
        error = np.sqrt((one.var(axis=0) + other.var(axis=0)) / n_draws) + 1 / n_rows
        assert np.all(abs(one.mean(axis=0) - other.mean(axis=0)) < 4 * error)


@every_restaurant
def test_each_stick_is_a_beta_share_of_what_is_left(prior):
    random, discount = np.random.default_rng(1), prior._discount()
    sticks = np.array([prior.weights(3, random) for _ in range(2_000)])
    for k in range(min(prior.most_clusters() - 1, 2)):
        share = sticks[:, k] / (1 - sticks[:, :k].sum(axis=1))
        law = beta(1 - discount, prior.alpha + (k + 1) * discount)
        assert kstest(share, law.cdf).pvalue > 1e-3


def test_the_sticks_of_a_finite_mixture_are_all_of_it():
    weights = FiniteDirichlet(3.3, 3).weights(6, random_state=0)
    assert weights.sum() == pytest.approx(1)
    np.testing.assert_array_equal(weights[3:], 0)
    np.testing.assert_array_equal(FiniteDirichlet(2.0, 1).weights(2, 0), [1, 0])


@every_prior
def test_a_seed_is_a_partition(prior):
    for seed in (0, np.random.RandomState(0)):
        np.testing.assert_array_equal(prior.sample(200, seed), prior.sample(200, 0))
    labels = prior.sample(200, random_state=7)
    assert labels.dtype == np.int32
    names, first = np.unique(labels, return_index=True)
    np.testing.assert_array_equal(names, np.arange(len(names)))
    assert np.all(np.diff(first) > 0)


def test_no_rows_are_certain_and_the_first_row_is_alone():
    for prior in PRIORS:
        assert prior.log_prob(sizes=[]) == 0
        np.testing.assert_allclose(prior.log_predictive([]), [0.0])
