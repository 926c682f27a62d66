"""The chain of the hierarchical Dirichlet process has the exact posterior as its law."""

from collections import Counter, defaultdict
from functools import cache, partial

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import dblquad, quad

from countless._labels import number_by_appearance
from countless._mcmc.hdp.chain import TUNING, HDPChain
from countless._mcmc.hdp.state import (
    Concentrations,
    HDPState,
    PriorSpec,
    assign_rows,
    count_cells,
    draw_weights,
    log_prior_of_state,
    move_local_clusters,
    state_of,
)
from countless.models import Categorical, FixedGaussian, Gaussian
from countless.priors import Beta, DirichletProcess, Gamma

# Runs that begin with a draw of everything from its prior.
N_REPEATS = 120
X = np.array([[0.0, 0.0], [0.5, 1.5], [5.0, 4.0], [5.2, 5.3], [0.3, 0.2], [4.0, 4.0]])
GROUP = np.array([0, 0, 0, 1, 1, 1])
MODEL = Gaussian(mean=[1, 1], strength=0.3, freedom=5, scale=np.eye(2)).bind(X)
ROWS = MODEL.rows(X)


def franchise(group, alpha, gamma, discount=0.0):
    """Return the probability of every partition: seat the rows in turn in all ways there are.

    A row sits at a table of its group by the number of rows there, or at a new one by alpha; a new
    table takes a dish by the number of tables that have it in any group, or a new one by gamma;
    a discount is taken from every dish and added to a new one.
    """
    probability = defaultdict(float)

    def seat(tables, labels, chance):
        row = len(labels)
        if row == len(group):
            probability[labels] += chance
            return
        own = [place for place, table in enumerate(tables) if table[0] == group[row]]
        total = alpha + sum(tables[place][2] for place in own)
        for place in own:
            of, dish, n_rows = tables[place]
            joined = (*tables[:place], (of, dish, n_rows + 1), *tables[place + 1 :])
            seat(joined, (*labels, dish), chance * n_rows / total)
        n_dishes = len({dish for _, dish, _ in tables})
        for dish in range(n_dishes + 1):
            if dish < n_dishes:
                likes = sum(other == dish for _, other, _ in tables) - discount
            else:
                likes = gamma + discount * n_dishes
            opened = chance * alpha / total * likes / (len(tables) + gamma)
            seat((*tables, (group[row], dish, 1)), (*labels, dish), opened)

    seat((), (), 1.0)
    return dict(probability)


def posterior(prior, model, rows):
    """Return the probability of every partition given the rows."""
    joint = {
        labels: chance * np.exp(model.log_marginal(model.statistics(rows, np.array(labels))).sum())
        for labels, chance in prior.items()
    }
    total = sum(joint.values())
    return {labels: value / total for labels, value in joint.items()}


@cache
def exact_posterior():
    """Return the probability of every partition of the rows above."""
    return posterior(franchise(GROUP, 1.5, 0.7), MODEL, ROWS)


def new_chain(model, given_prior, rows, group):
    """Return a chain from one cluster; the free hyperparameters of its model stay."""
    labels = np.zeros(len(rows), int)
    random = np.random.default_rng(0)
    return HDPChain(model, given_prior, rows, group, labels, random, sample_hyper=False)


def total_variation(exact, chain, n_draws, *moves):
    """Return the distance of what some moves visit from the exact probabilities."""
    seen = Counter()
    for _ in range(n_draws):
        for move in moves:
            move()
        seen[tuple(number_by_appearance(chain.state.labels)[1].tolist())] += 1
    assert seen.keys() <= exact.keys()
    return 0.5 * sum(abs(seen[labels] / n_draws - exact[labels]) for labels in exact)


@pytest.mark.slow
def test_rows_moved_one_by_one_follow_the_enumerated_posterior():
    exact = exact_posterior()
    assert len(exact) == 203
    chain = new_chain(MODEL, PriorSpec(1.5, 0.7), ROWS, GROUP)
    assert total_variation(exact, chain, 5000, chain.assign_rows, chain.draw_weights) < 0.03


@pytest.mark.slow
@pytest.mark.parametrize("only", ["rows", "splits", "all"])
def test_moves_with_a_discount_follow_the_enumerated_posterior(only):
    """The shared weights are a Pitman-Yor process."""
    exact = posterior(franchise(GROUP, 1.5, 0.4, 0.6), MODEL, ROWS)
    chain = new_chain(MODEL, PriorSpec(1.5, 0.4, 0.6), ROWS, GROUP)
    local, split = partial(chain.move_local_clusters, 4), partial(chain.split_and_merge, 2)
    moves = {"rows": [chain.assign_rows], "splits": [split]}
    moves["all"] = [chain.assign_rows, local, split]
    n_draws = 8000 if only == "splits" else 4000  # which mix more slowly
    assert total_variation(exact, chain, n_draws, *moves[only], chain.draw_weights) < 0.03


@pytest.mark.slow
def test_splits_and_merges_alone_follow_the_enumerated_posterior():
    exact = exact_posterior()
    chain = new_chain(MODEL, PriorSpec(1.5, 0.7), ROWS, GROUP)
    split_and_merge = partial(chain.split_and_merge, 2)
    assert total_variation(exact, chain, 4000, split_and_merge, chain.draw_weights) < 0.03


@pytest.mark.slow
def test_local_clusters_moved_follow_the_enumerated_posterior():
    exact = exact_posterior()
    chain = new_chain(MODEL, PriorSpec(1.5, 0.7), ROWS, GROUP)
    move_local_clusters = partial(chain.move_local_clusters, 4)
    moves = chain.assign_rows, move_local_clusters, chain.draw_weights
    assert total_variation(exact, chain, 4000, *moves) < 0.03


def test_a_local_cluster_moves_as_one_to_where_its_group_is_not():
    """The last group starts with two clusters that lie where those of the others do, crossed."""
    table = np.repeat([0.0, 9.0, 0.0, 9.0], [3, 3, 2, 2])[:, None]
    group = np.repeat([0, 1, 2], [3, 3, 4]).astype(np.int32)
    model = FixedGaussian(variance=1.0, prior_variance=100.0, mean=0.0).bind(table)
    rows, concentrations = model.rows(table), Concentrations(1.0, 1.0)
    labels = np.repeat([0, 1, 1, 2], [3, 3, 2, 2])
    state = state_of(model, rows, group, labels, 3)
    for seed in range(20):
        random = np.random.default_rng(seed)
        moved = move_local_clusters(state, model, rows, group, concentrations, random, 4)
        fresh = state_of(model, rows, group, moved.labels, 3)
        np.testing.assert_array_equal(moved.counts, fresh.counts)
        np.testing.assert_allclose(moved.statistics, fresh.statistics, atol=1e-9)
        assert moved.weights.sum() == pytest.approx(1.0)
        assert moved.labels[6] == moved.labels[7] != moved.labels[8] == moved.labels[9]
    assert moved.labels.tolist() == np.repeat([0, 1, 0, 1], [3, 3, 2, 2]).tolist()


@pytest.mark.slow
def test_columns_of_three_groups_follow_the_enumerated_posterior():
    table = np.array([[*"axpt"], [*"axpt"], [*"byqs"], [*"byqs"], [*"ayps"]])
    group = np.array([1, 0, 0, 2, 1])
    model = Categorical(0.1).bind(table)
    rows = model.rows(table)
    exact = posterior(franchise(group.tolist(), 0.8, 1.2), model, rows)
    chain = new_chain(model, PriorSpec(0.8, 1.2), rows, group)
    moves = chain.assign_rows, partial(chain.split_and_merge, 1), chain.draw_weights
    assert total_variation(exact, chain, 3000, *moves) < 0.03


@pytest.mark.slow
def test_one_group_that_shares_nothing_is_a_dirichlet_process():
    prior = {
        labels: np.exp(DirichletProcess(1.0).log_prob(labels))
        for labels in franchise([0] * 5, 1.0, 1.0)
    }
    assert sum(prior.values()) == pytest.approx(1)
    exact = posterior(prior, MODEL, ROWS[:5])
    chain = new_chain(MODEL, PriorSpec(1.0, 1e9), ROWS[:5], np.zeros(5, int))
    assert total_variation(exact, chain, 4000, chain.assign_rows, chain.draw_weights) < 0.03


@pytest.mark.parametrize("discount", [0.0, 0.4])
def test_density_of_labels_and_weights_sums_to_the_franchise(discount):
    group, concentrations = np.array([0, 0, 1, 1]), Concentrations(1.3, 0.9, discount)
    exact = franchise(group.tolist(), *concentrations)

    def density(labels):
        state = state_of(MODEL, ROWS[:4], group, np.array(labels), 2)

        def of(*weights):
            whole = np.array([*weights, 1.0 - sum(weights)])
            return np.exp(log_prior_of_state(state._replace(weights=whole), concentrations))

        return of

    one = quad(density((0, 0, 0, 0)), 0, 1)[0]
    assert one == pytest.approx(exact[0, 0, 0, 0], rel=1e-6)
    for labels in ((0, 1, 0, 0), (0, 0, 1, 1)):
        limit = {"epsabs": 1e-5, "epsrel": 1e-5}
        two = dblquad(density(labels), 0, 1, 0, lambda first: 1 - first, **limit)[0]
        assert two == pytest.approx(exact[labels], rel=1e-3)


def draw_seating(group, concentrations, rng):
    """Draw clusters and their weights from the prior, row by row."""
    _, gamma, discount = concentrations
    tables, labels = [], []
    for of in group:
        own = [table for table in tables if table[0] == of]
        mark = rng.random() * (concentrations.alpha + sum(table[2] for table in own))
        for table in own:
            mark -= table[2]
            if mark < 0:
                break
        else:
            dishes = np.array([*Counter(dish for _, dish, _ in tables).values()])
            likes = np.append(dishes - discount, gamma + discount * len(dishes))
            table = [of, int(rng.choice(len(likes), p=likes / likes.sum())), 0]
            tables.append(table)
        table[2] += 1
        labels.append(table[1])
    tables_of = np.bincount([dish for _, dish, _ in tables])
    rest = gamma + discount * len(tables_of)
    return np.array(labels), rng.dirichlet([*(tables_of - discount), rest])


# What is drawn from the prior and then moved must still have the prior as its law.
PRIOR = PriorSpec(Gamma(2.0, 1.0), Gamma(1.5, 0.5))
LAWS = {"alpha": stats.gamma(2.0), "gamma": stats.gamma(1.5, scale=2.0)}
TWO_GROUPS = np.repeat([0, 1], 6)


@pytest.mark.slow
@pytest.mark.parametrize("prior", [PRIOR, PRIOR._replace(discount=Beta(2.0, 2.0))], ids=str)
def test_updates_of_concentrations_leave_their_prior_invariant(prior):
    rng = np.random.default_rng(0)
    found = []
    for _ in range(700):
        concentrations = prior.draw(rng)
        labels, weights = draw_seating(TWO_GROUPS, concentrations, rng)
        counts = count_cells(TWO_GROUPS, labels, 2)
        state = HDPState(labels, counts, weights, np.empty((counts.shape[1], 1)))
        for _ in range(8):
            state, concentrations = draw_weights(state, prior, concentrations, rng)
        found.append(concentrations)
    laws = [*LAWS.values(), stats.beta(2.0, 2.0)][: 2 + isinstance(prior.discount, Beta)]
    for law, drawn in zip(laws, np.transpose(found), strict=False):
        assert stats.kstest(drawn, law.cdf).pvalue > 1e-6


@pytest.mark.slow
def test_sweeps_leave_the_prior_invariant():
    rng = np.random.default_rng(0)
    free = Gaussian(freedom=6.0).bind(X)
    found, first = [], []
    for _ in range(N_REPEATS):
        model = free.with_hyper(free.hyper.draw(rng))
        concentrations = PRIOR.draw(rng)
        labels, weights = draw_seating(TWO_GROUPS, concentrations, rng)
        parameters = model.draw_parameters(model.empty(labels.max() + 1), rng)
        rows = model.draw_rows({name: value[labels] for name, value in parameters.items()}, rng)
        chain = HDPChain(model, PRIOR, rows, TWO_GROUPS, labels, rng)
        chain.state, chain.concentrations = chain.state._replace(weights=weights), concentrations
        chain.n_swept = TUNING.early_sweeps
        for _ in range(2):
            chain.sweep()
        first.append(labels.max() + 1)
        drawn = chain.concentrations[: len(LAWS)]
        found.append([chain.n_clusters, *drawn, *chain.model.hyper.value])
    n_clusters, *others = np.transpose(found)
    assert abs(n_clusters.mean() - np.mean(first)) < 5 * np.std(first) * np.sqrt(2 / N_REPEATS)
    normal = map(stats.norm, free.hyper.center, free.hyper.spread)
    drawn = np.array([True, True, *free.hyper.free])
    for law, values, moved in zip([*LAWS.values(), *normal], others, drawn, strict=True):
        assert not moved or stats.kstest(values, law.cdf).pvalue > 1e-6


def test_a_dense_place_of_hardly_any_weight_takes_no_row():
    """A new cluster is exp(40) times as dense for the first row, and exp(-230) times as likely."""
    table = np.vstack([[9.5], np.zeros((20, 1))])
    model = FixedGaussian(variance=1.0, prior_variance=100.0, mean=0.0).bind(table)
    rows, group = model.rows(table), np.zeros(21, dtype=np.int32)
    state = state_of(model, rows, group, np.zeros(21, dtype=np.int32), 1)
    state = state._replace(weights=np.array([1.0, 1e-100]))
    concentrations = Concentrations(alpha=1.0, gamma=0.01)
    moved = assign_rows(state, model, rows, group, concentrations, np.random.default_rng(0))
    assert moved.n_clusters == 1
