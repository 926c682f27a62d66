"""Biclustering against all pairs of partitions of a small table, plain sums, and planted blocks."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy.integrate import quad
from scipy.stats import gamma
from sklearn.metrics import adjusted_rand_score

from countless import DPBiclustering
from countless._mcmc.bicluster.cells import Cells
from countless._mcmc.bicluster.chain import BiclusterChain, Bundle
from countless.kernels.gibbs import sweep
from countless.models import Bernoulli, Categorical, DiagonalGaussian, FixedGaussian, Poisson
from countless.priors import DirichletProcess, Gamma, PitmanYor
from countless.serialize import SERIALIZERS
from countless.serialize.model_file import load_model, model_bytes, save_model

BINARY = np.array([[1.0, 1.0, 0.0], [1.0, np.nan, 0.0], [0.0, 0.0, 0.0]])
MODELS = [
    Bernoulli(0.3, 0.4),
    Categorical(0.3, levels=4),
    DiagonalGaussian(1.0, 0.1, 2.0, 0.3),
    FixedGaussian(0.3, 4.0, 1.0),
    Poisson(0.7, 0.2),
]
PARTITIONS = [(0, 0, 0), (0, 0, 1), (0, 1, 0), (0, 1, 1), (0, 1, 2)]


def cells_of(model, X):
    row, column = np.nonzero(~np.isnan(X))
    cells = Cells(X[row, column][:, None], row, column, X.shape)
    bound = model.bind(cells.values)
    return bound, cells.bound_to(bound)


def planted(n_rows, n_columns, seed):
    random = np.random.default_rng(seed)
    row, column = random.integers(3, size=n_rows), random.integers(4, size=n_columns)
    return random, row, column


@pytest.mark.slow
def test_chains_follow_the_enumerated_posterior():
    model, cells = cells_of(Bernoulli(0.2, 0.2), BINARY)
    priors = DirichletProcess(0.6), PitmanYor(0.3, 0.2)
    chain = BiclusterChain(model, cells, priors, np.random.default_rng(0), split_merge=False)
    logs = []
    for rows in PARTITIONS:
        for columns in PARTITIONS:
            log = priors[0].log_prob(rows) + priors[1].log_prob(columns)
            for r in set(rows):
                for c in set(columns):
                    block = BINARY[np.ix_(np.equal(rows, r), np.equal(columns, c))]
                    seen = block[~np.isnan(block)][:, None]
                    if len(seen):
                        log += model.log_marginal(model.statistics(model.rows(seen)))
            logs.append(log)
    exact = np.exp(logs - np.max(logs))
    exact /= exact.sum()
    counts = np.zeros(25)
    for _ in range(3000):
        chain.sweep()
        places = [
            PARTITIONS.index(tuple(pd.factorize(side.labels)[0].tolist()))
            for side in (chain.rows, chain.columns)
        ]
        counts[5 * places[0] + places[1]] += 1
    assert 0.5 * np.abs(counts / counts.sum() - exact).sum() < 0.05


@pytest.mark.parametrize("n_counts", [2, 99])  # beyond tables, and within
@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_bundles_are_sums_over_blocks(model, n_counts):
    random = np.random.default_rng(1)
    X = random.integers(2, size=(7, 9)).astype(float)
    X[random.random(X.shape) < 0.2] = np.nan
    bound, cells = cells_of(model, X)
    parts, labels = np.array([0, 1, 2, 0, 1, 2, 0, 0, 1]), np.array([0, 0, 1, 1, 0, 2, 2])
    rows = cells.of_rows(parts)
    bundle = Bundle(bound, 3, bound.tables(n_counts))
    statistics = bundle.statistics(rows, labels)
    for r in range(3):
        expected = 0.0
        for p in range(3):
            block = X[np.ix_(labels == r, parts == p)]
            seen = bound.rows(block[~np.isnan(block)][:, None])
            expected += bound.log_marginal(bound.statistics(seen))
        assert bundle.log_marginal(statistics[r]) == pytest.approx(expected)
    marginal = bundle.log_marginal
    without = statistics[0] - rows[0]
    gained = marginal(statistics[0]) - marginal(without)
    assert bundle.log_predictive(rows[:1], without)[0, 0] == pytest.approx(gained)
    clusters = bundle.clusters(3, statistics)
    sizes, side = np.array([3, 2, 2]), labels.astype(np.int32)
    # A visit that must end where the row is tells how probable that was.
    tables = DirichletProcess(0.7).tables(7)
    _, log_chosen, _ = sweep(
        clusters, sizes, rows, np.array([0]), 0, side, side, tables.join, np.empty(0),
        np.random.default_rng(0), np.empty(0),
    )  # fmt: skip
    others = [marginal(statistics[r] + rows[0]) - marginal(statistics[r]) for r in (1, 2)]
    weights = np.array([gained, *others]) + np.log(2)
    assert log_chosen == pytest.approx(weights[0] - np.logaddexp.reduce(weights))


@pytest.mark.slow
def test_concentrations_and_hyperparameters_agree_with_the_prior():
    """Redrawing the table after each sweep must leave everything as the prior has it."""
    random = np.random.default_rng(2)
    model = Bernoulli().bind(np.array([[0.0], [1.0]]))
    prior = DirichletProcess(Gamma(2.0, 2.0))
    row, column = (side.ravel() for side in np.indices((3, 2)))
    cells = Cells(np.zeros((6, 1)), row, column, (3, 2))
    chain = BiclusterChain(model, cells.bound_to(model), (prior, prior), random)
    alphas, n_clusters = [], []
    for _ in range(800):
        chain.sweep()
        block = 3 * chain.rows.labels[row] + chain.columns.labels[column]
        names, place = np.unique(block, return_inverse=True)
        drawn = chain.model.draw_parameters(chain.model.empty(len(names)), random)
        drawn = {name: values[place] for name, values in drawn.items()}
        values = chain.model.table(chain.model.draw_rows(drawn, random))
        chain.cells = cells._replace(values=values).bound_to(chain.model)
        alphas.append(chain.columns.prior.alpha)
        n_clusters.append(chain.n_clusters)
    assert np.mean(alphas) == pytest.approx(1.0, abs=0.12)  # the mean of Gamma(2, 2)
    expected, _ = quad(
        lambda a: gamma(2, scale=0.5).pdf(a) * (1 + a / (a + 1) + a / (a + 2)), 0, np.inf
    )
    assert np.mean(n_clusters) == pytest.approx(expected, abs=0.12)


def test_chains_start_where_neither_side_is_one_cluster():
    """Rows of one total, and columns of one total, are told apart by single cells alone."""
    X = np.kron(np.eye(2), np.ones((8, 6)))
    model, cells = cells_of(Bernoulli(), X)
    priors = DirichletProcess(1.0), DirichletProcess(1.0)
    for seed in range(10):
        chain = BiclusterChain(model, cells, priors, np.random.default_rng(seed))
        chain.sweep()
        assert adjusted_rand_score(np.arange(16) // 8, chain.rows.labels) > 0.5
        assert adjusted_rand_score(np.arange(12) // 6, chain.columns.labels) > 0.5


@pytest.mark.slow
def test_planted_blocks_are_found_with_missing_values():
    random, row, column = planted(40, 30, 3)
    X = random.normal(0, 3, (3, 4))[row][:, column] + random.normal(size=(40, 30))
    X[random.random(X.shape) < 0.2] = np.nan
    model = DPBiclustering(n_chains=2, n_sweeps=60, random_state=1).fit(X)
    assert adjusted_rand_score(row, model.row_labels_) > 0.95
    assert adjusted_rand_score(column, model.column_labels_) > 0.95
    assert np.array_equal(model.predict(X), model.labels_)
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)
    rows, columns = model.get_indices(0)
    assert model.block_means_[0, 0] == pytest.approx(np.nanmean(X[np.ix_(rows, columns)]))
    assert len(model.rows_) == model.n_clusters_ * model.n_column_clusters_
    for n_jobs in (1, 2):
        again = DPBiclustering(n_chains=2, n_sweeps=60, random_state=1, n_jobs=n_jobs).fit(X)
        assert np.array_equal(again.posterior_.labels, model.posterior_.labels)


def test_unstored_cells_of_a_sparse_table_are_missing():
    random, row, column = planted(30, 20, 4)
    X = (random.random((30, 20)) < random.beta(0.3, 0.3, (3, 4))[row][:, column]) * 1.0
    X[random.random(X.shape) < 0.4] = np.nan
    places = np.nonzero(~np.isnan(X))
    stored = sp.csr_matrix((X[places], places), shape=X.shape)
    dense, sparse = (
        DPBiclustering(n_chains=1, n_sweeps=20, random_state=0).fit(table) for table in (X, stored)
    )
    assert np.array_equal(dense.posterior_.labels, sparse.posterior_.labels)
    assert type(dense.model_) is type(Bernoulli().bind([[0.0]]))


def test_truth_values_are_ones_and_zeros():
    table = np.kron([[1, 0], [0, 1]], np.ones((5, 3)))
    truth = pd.DataFrame(table.astype(bool)).astype("boolean")
    table[0, 0], truth.iloc[0, 0] = np.nan, pd.NA
    as_numbers, as_truth = (
        DPBiclustering(n_chains=1, n_sweeps=6, random_state=0).fit(X) for X in (table, truth)
    )
    assert np.array_equal(as_numbers.posterior_.labels, as_truth.posterior_.labels)
    assert np.array_equal(as_numbers.block_means_, as_truth.block_means_)


def test_words_and_counts_have_models():
    _, row, column = planted(24, 18, 5)
    words = np.array(list("abcdefabcdef")).reshape(3, 4)[row][:, column]
    model = DPBiclustering(n_chains=1, n_sweeps=30, random_state=0).fit(pd.DataFrame(words))
    assert (model.n_clusters_, model.n_column_clusters_) == (3, 4)
    assert model.block_means_ is None
    counts = np.random.default_rng(0).poisson(3.0, (12, 10))
    assert DPBiclustering("poisson", n_chains=1, n_sweeps=20, random_state=0).fit(counts).n_iter_


@pytest.mark.parametrize(
    ("model", "X", "message"),
    [
        ("poisson", [[1.0, 2.0], [np.nan, -1.0]], "negative count: row 1, column 1 has -1"),
        ("bernoulli", [[1.0, 0.0], [0.5, 1.0]], "neither 0 nor 1: row 1, column 0 has 0.5"),
        ("gaussian", [[1.0, 0.0]], "model must be 'auto', 'diagonal'"),
        ("auto", [[np.nan, np.nan]], "no cell that is not missing"),
    ],
)
def test_bad_input_is_refused_by_name(model, X, message):
    with pytest.raises(ValueError, match=message):
        DPBiclustering(model).fit(X)


def test_a_prior_must_be_one():
    with pytest.raises(ValueError, match="column_prior must be None or one of"):
        DPBiclustering(column_prior=2.0).fit(BINARY)


def test_columns_of_one_model_that_are_too_far_apart_are_refused():
    X = np.random.default_rng(0).normal(size=(30, 3))
    with pytest.raises(ValueError, match=r"^columns of X are 1e\+12 apart and vary by .*; center"):
        DPBiclustering(n_sweeps=2).fit(X + np.array([0.0, 0.0, 1e12]))
    assert DPBiclustering(n_chains=1, n_sweeps=2).fit(X + 1e12).labels_[0] == 0


def test_equal_rows_have_one_label():
    X = np.repeat([[0.5, np.nan, 2.5], [0.5, 1.5, np.nan]], 15, axis=0)
    for seed in range(3):
        fitted = DPBiclustering(n_chains=1, n_sweeps=4, random_state=seed).fit(X)
        assert len(set(fitted.labels_[:15])) == len(set(fitted.labels_[15:])) == 1


@pytest.mark.parametrize("kind", ["words", "numbers", "truth values"])
def test_a_saved_model_predicts_alike(tmp_path, kind):
    random, row, column = planted(24, 12, 3)
    ones = (row[:, None] + column) % 2
    frame = pd.DataFrame(ones, columns=[f"c{j}" for j in range(12)])
    if kind == "words":
        frame = frame.replace({0: "no", 1: "yes"})
    elif kind == "numbers":
        frame = 50.0 + 9 * frame + random.normal(size=frame.shape)
    else:
        frame = frame == 1
    frame = frame.mask(random.random(frame.shape) < 0.1)
    model = DPBiclustering(n_chains=1, n_sweeps=10, random_state=0).fit(frame)
    save_model(tmp_path / "model.zip", model)
    again = load_model(tmp_path / "model.zip").estimator
    assert model_bytes(again) == model_bytes(model)
    assert np.array_equal(again.predict_proba(frame), model.predict_proba(frame))
    assert list(again.feature_names_in_) == list(frame.columns)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("columns", lambda names: np.repeat(names[:1], len(names))),
        ("column_labels_", lambda labels: labels + 1),
        ("column_labels_", lambda labels: labels[1:]),
        ("block_statistics_", lambda sums: sums[:, 1:]),
        ("row_log_weights_", lambda weights: weights[1:]),
        ("cell_hyper", lambda hyper: hyper[1:]),
        ("cell_model", lambda name: "gaussian"),
    ],
)
def test_a_changed_file_is_refused(name, change):
    X = np.kron([[1.0, 0.0], [0.0, 1.0]], np.ones((4, 3)))
    model = DPBiclustering(n_chains=1, n_sweeps=4, random_state=0).fit(X)
    kind = SERIALIZERS["DPBiclustering"]
    state = kind.state(model)
    assert kind.check(model, state) == 6
    with pytest.raises(ValueError, match=r"its |hyperparameters"):
        kind.check(model, state | {name: change(state[name])})
