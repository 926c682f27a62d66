"""The chain draws from the exact posterior: all states of small tables, and Geweke's test."""

from itertools import product

import numpy as np
import pytest

from countless._labels import number_by_appearance
from countless._mcmc.crosscat.chain import CrossCatChain
from countless._mcmc.crosscat.column_models import ColumnModels
from countless._mcmc.crosscat.split_merge import split_or_merge_resampled, split_or_merge_views
from countless._mcmc.crosscat.views import (
    View,
    move_columns,
    move_rows,
    move_singleton,
    propose_rows,
)
from countless.kernels.crosscat import set_prior
from countless.models import (
    Bernoulli,
    Categorical,
    Columns,
    DiagonalGaussian,
    FixedGaussian,
    Poisson,
)
from countless.priors import DirichletProcess, Gamma, PitmanYor
from plain import all_partitions

BINARY = np.array([[0, 0, 1], [0, 1, 1], [1, 1, 0.0]])
WIDE = np.array([[0, 0, 1, 1], [1, 1, 0, 1.0]])
MIXED = np.array([[0.3, 2], [-0.2, np.nan], [2.5, 0]])


def exact_posterior(model, rows, row_prior, column_prior):
    """Return the probability of every state: the views of columns, and a partition for each."""
    n, d = rows.shape

    def log_column(j, labels):
        total = 0.0
        for c in set(labels):
            alone = np.full_like(rows, np.nan)
            own = np.array(labels) == c
            alone[own, j] = rows[own, j]
            total += model.log_marginal(model.statistics(alone))
        return total

    of_column = {(j, z): log_column(j, z) for j in range(d) for z in all_partitions(n)}
    of_rows = {z: row_prior.log_prob(z) for z in all_partitions(n)}
    states = {}
    for view_of in all_partitions(d):
        for labels in product(all_partitions(n), repeat=max(view_of) + 1):
            log = column_prior.log_prob(view_of) + sum(of_rows[z] for z in labels)
            states[view_of, labels] = log + sum(of_column[j, labels[view_of[j]]] for j in range(d))
    highest = max(states.values())
    total = sum(np.exp(log - highest) for log in states.values())
    return {state: np.exp(log - highest) / total for state, log in states.items()}


def state_of(views):
    views = sorted(views, key=lambda view: view.columns[0])
    view_of = {j: v for v, view in enumerate(views) for j in view.columns}
    labels = tuple(tuple(number_by_appearance(view.labels)[1].tolist()) for view in views)
    return tuple(view_of[j] for j in range(len(view_of))), labels


def one_view_each(n_rows, n_columns, prior):
    labels = np.zeros(n_rows, dtype=np.int32)
    tables = prior.tables(n_rows)
    return [View(np.array([j]), labels, prior, tables) for j in range(n_columns)]


def all_moves(chain):
    chain.sweep()


def columns_that_leave(chain):
    chain.views = [
        move_rows(chain.models, view, chain.given_row_prior, chain.random, 0)
        for view in chain.views
    ]
    for j in range(chain.models.n_columns):
        chain.views = move_singleton(
            chain.models, chain.views, j, chain.given_row_prior, chain.column_tables, chain.random
        )


def views_that_split(chain, split_or_merge=split_or_merge_views):
    chain.views = [
        move_rows(chain.models, view, chain.given_row_prior, chain.random, 0)
        for view in chain.views
    ]
    chain.views = move_columns(chain.models, chain.views, chain.column_tables, chain.random)
    chain.views = split_or_merge(
        chain.models, chain.views, chain.given_row_prior, chain.column_tables, chain.random
    )


def views_drawn_anew(chain):
    views_that_split(chain, split_or_merge_resampled)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("X", "models", "moves", "n_states"),
    [
        (BINARY, [Bernoulli(1, 1)] * 3, all_moves, 205),
        (BINARY, [Bernoulli(1, 1)] * 3, columns_that_leave, 205),
        (WIDE, [Bernoulli(1, 1)] * 4, views_that_split, 94),
        (WIDE, [Bernoulli(1, 1)] * 4, views_drawn_anew, 94),
        (MIXED, [DiagonalGaussian(0.0, 0.5, 2.0, 1.0), Poisson(1, 0.7)], all_moves, 30),
    ],
    ids=["all", "leave", "split", "resampled", "mixed"],
)
def test_the_chain_draws_from_the_exact_posterior(X, models, moves, n_states):
    row_prior, column_prior = DirichletProcess(0.7), PitmanYor(1.5, 0.2)
    model = Columns(models).bind(X)
    rows = model.rows(X)
    exact = exact_posterior(model, rows, row_prior, column_prior)
    assert len(exact) == n_states
    chain = CrossCatChain(model, rows, row_prior, column_prior, np.random.default_rng(3))
    chain.views = one_view_each(*X.shape, row_prior)
    n_draws = 1000
    counts = dict.fromkeys(exact, 0)
    for _ in range(n_draws):
        moves(chain)
        counts[state_of(chain.views)] += 1
    # A third above what independent draws show, as these are correlated a little; seeds are fixed.
    chance = np.array(list(exact.values()))
    found = np.array(list(counts.values())) / n_draws
    apart = 0.5 * np.abs(found - chance).sum()
    expected = 0.5 * np.sqrt(2 / np.pi * chance * (1 - chance) / n_draws).sum()
    assert apart < 1.35 * expected
    n_views = np.array([max(view_of) + 1 for view_of, _ in exact])
    for k in range(1, X.shape[1] + 1):
        share = chance[n_views == k].sum()
        sigma = np.sqrt(share * (1 - share) / n_draws)
        assert abs(found[n_views == k].sum() - share) < 6 * sigma


def test_weights_of_proposed_partitions_estimate_the_evidence():
    """The mean of p(z) p(x | z) / q(z) is p(x), summed here over all partitions."""
    X = np.array([[0.0, 1], [0.4, 1], [3.0, 0], [np.nan, 1]])
    model = Columns([DiagonalGaussian(1.0, 0.3, 2.0, 0.5), Bernoulli(1, 2)]).bind(X)
    rows = model.rows(X)
    prior = PitmanYor(0.5, 0.3)
    log_joint = [
        prior.log_prob(z) + model.log_marginal(model.statistics(rows, np.array(z))).sum()
        for z in all_partitions(4)
    ]
    evidence = np.exp(log_joint).sum()
    cells, random = ColumnModels(model, rows), np.random.default_rng(0)
    both, tables = np.arange(2), prior.tables(4)
    weights = []
    for _ in range(600):
        drawn = propose_rows(cells, both, prior, tables, random)
        weights.append(np.exp(drawn.log_weight))
        joint = prior.log_prob(drawn.labels)
        joint += model.log_marginal(model.statistics(rows, drawn.labels)).sum()
        assert drawn.log_weight == pytest.approx(joint - drawn.log_proposal)
    error = np.std(weights) / np.sqrt(len(weights))
    assert abs(np.mean(weights) - evidence) < 6 * error
    # A partition that is there is judged as if it had been drawn.
    again = propose_rows(cells, both, prior, tables, random, given=drawn.labels)
    assert number_by_appearance(again.labels)[1].tolist() == (
        number_by_appearance(drawn.labels)[1].tolist()
    )
    assert again.log_weight == pytest.approx(joint - again.log_proposal)


def test_compiled_priors_are_those_of_the_models():
    X = np.array(
        [[1.0, "a", 0, 3, 2.0], [2.5, "b", 1, 0, 7.0], [0.0, "c", 1, 1, 5.0]], dtype=object
    )
    kinds = [DiagonalGaussian(), Categorical(), Bernoulli(), Poisson(), FixedGaussian()]
    model = Columns(kinds).bind(X)
    value = model.hyper.value + np.random.default_rng(0).normal(size=len(model.hyper.value))
    moved = model.with_hyper(value)
    cells = ColumnModels(model, model.rows(X))
    starts, places, _, _ = cells._places
    prior = np.zeros(model.width)
    for j in range(5):
        own = value[places[starts[j] : starts[j + 1]]]
        set_prior(model.kind[j], model.origin[j], own, prior[model.start[j] : model.start[j + 1]])
    np.testing.assert_allclose(prior, moved.prior, rtol=1e-14)


@pytest.mark.slow
def test_hyperparameters_and_concentrations_pass_geweke():
    """Chains that also redraw the table keep the prior of everything."""
    n_rows, random = 4, np.random.default_rng(5)
    start = np.array([[0.0, 1, 2], [1.0, 0, 0], [0.5, 1, 1], [-1.0, 0, 4]])
    model = Columns(["number", "binary", "count"]).bind(start)
    given_prior = DirichletProcess(Gamma(2.0, 2.0))
    chain = CrossCatChain(model, model.rows(start), given_prior, given_prior, random)
    chain.sweep()

    def facts():
        sizes = [len(np.unique(view.labels)) for view in chain.views]
        alphas = [np.log(view.prior.alpha) for view in chain.views]
        # The view of column 0 is the same view in the prior, whatever its number.
        first = next(v for v, view in enumerate(chain.views) if 0 in view.columns)
        hyper = (chain.models.hyper.value - chain.models.hyper.center) / chain.models.hyper.spread
        return [
            len(sizes),
            sizes[first],
            alphas[first],
            np.log(chain.column_prior.alpha),
            *hyper,
            *hyper**2,
        ]

    def draw_table():
        own = model.with_hyper(chain.models.hyper.value)
        statistics = np.zeros((n_rows, model.width))
        rows = np.empty((n_rows, 3))
        for view in chain.views:
            drawn = own.draw_parameters(statistics, random)  # one set for each cluster
            of_rows = {name: value[view.labels] for name, value in drawn.items()}
            rows[:, view.columns] = own.draw_rows(of_rows, random)[:, view.columns]
        chain.models.rows[:] = rows
        chain.models.values[:] = rows.T

    draws = []
    for _ in range(800):
        draw_table()
        chain.sweep()
        draws.append(facts())
    draws = np.array(draws)
    alpha = random.gamma(2.0, 0.5, size=20_000)
    n_clusters = {
        n: np.mean(sum(random.random(20_000) < alpha / (alpha + i) for i in range(n)))
        for n in (3, 4)
    }
    log_alpha = np.log(alpha).mean()
    n_hyper = len(chain.models.hyper.value)
    expected = [
        n_clusters[3],
        n_clusters[4],
        log_alpha,
        log_alpha,
        *[0.0] * n_hyper,
        *[1.0] * n_hyper,
    ]
    blocks = draws.reshape(20, 40, -1).mean(axis=1)  # of correlated draws
    errors = blocks.std(axis=0, ddof=1) / np.sqrt(len(blocks))
    scores = (draws.mean(axis=0) - expected) / errors
    assert np.abs(scores).max() < 5.0
