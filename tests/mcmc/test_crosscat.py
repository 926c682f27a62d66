"""The estimator: planted views are found, and every answer is the one that the draws imply."""

from dataclasses import replace
from itertools import product

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

from countless import CrossCat
from countless._errors import InputError
from countless._mcmc import sampled
from countless._mcmc.crosscat import chain as crosscat_chain
from countless._mcmc.crosscat.predictive_state import pack, unpack
from countless.serialize.model_file import load_model, model_bytes, save_model

KINDS = {"d": "count", "h": "count"}
pytestmark = pytest.mark.filterwarnings("ignore:CrossCat's chains disagree")


def planted(n_rows=200, seed=0):
    """Return a frame of two views, a to d and e to h, with gaps, and the rows' groups in each."""
    random = np.random.default_rng(seed)
    labels = random.integers(3, size=(2, n_rows))
    columns = {}
    for names, z in zip(("abcd", "efgh"), labels, strict=True):
        columns[names[0]] = np.array([-4.0, 0.0, 4.0])[z] + random.normal(size=n_rows)
        columns[names[1]] = np.array([0.0, 30.0, -30.0])[z] + 5 * random.normal(size=n_rows)
        other = random.random(n_rows) < 0.1
        columns[names[2]] = np.where(other, "x", np.array(["red", "green", "blue"])[z])
        columns[names[3]] = random.poisson(np.array([1.0, 6.0, 20.0])[z]).astype(float)
    frame = pd.DataFrame(columns)
    gaps = random.random(frame.shape) < 0.05
    return frame.mask(gaps), frame, labels


@pytest.fixture(scope="module")
def fitted():
    frame, whole, labels = planted()
    model = CrossCat(KINDS, n_chains=2, n_sweeps=20, random_state=0).fit(frame)
    return model, frame, whole, labels


def test_planted_views_are_found(fitted):
    model, _, _, labels = fitted
    assert sorted(view.columns for view in model.views_) == [list("abcd"), list("efgh")]
    for view in model.views_:
        truth = labels[0] if "a" in view.columns else labels[1]
        assert adjusted_rand_score(truth, view.labels) > 0.9
        assert view.n_clusters == view.labels.max() + 1
    assert np.array_equal(model.labels_, model.views_[0].labels)
    dependence = model.dependence()
    assert dependence[0, 3] > 0.9 > 0.1 > dependence[0, 4]


def test_threads_and_interruptions_change_no_draw():
    frame, _, _ = planted(40, seed=1)
    settings = {"n_chains": 2, "burn_in": 3, "random_state": 5}
    long = CrossCat(KINDS, n_sweeps=9, n_jobs=2, **settings).fit(frame)
    short = CrossCat(KINDS, n_sweeps=6, **settings).fit(frame).resume(3)
    assert long.n_iter_ == short.n_iter_ == 9
    assert np.array_equal(long.posterior_.log_joint, short.posterior_.log_joint)
    assert np.array_equal(long.posterior_.views, short.posterior_.views)


def test_missing_values_are_imputed_from_their_view(fitted):
    model, frame, whole, _ = fitted
    table, uncertainty = model.impute()
    assert list(table.columns) == list(frame.columns)
    assert not table.isna().to_numpy().any()
    gaps = frame.isna().to_numpy()
    assert np.array_equal(np.isnan(uncertainty), ~gaps)
    for name, ratio in {"a": 0.5, "b": 0.5, "e": 0.5, "d": 0.7}.items():
        lost = frame[name].isna()
        error = np.abs(table[name] - whole[name])[lost].mean()
        plain = np.abs(frame[name].mean() - whole[name])[lost].mean()
        assert error < ratio * plain
    assert (table["d"] % 1 == 0).all()
    lost = frame["c"].isna()
    right = (table["c"] == whole["c"])[lost]
    assert right.mean() > 0.6
    assert abs(1 - uncertainty[lost, 2].mean() - right.mean()) < 0.35
    # Rows that are new are placed by the cells that they have.
    again, _ = model.impute(frame.iloc[:50])
    same = again["c"] == table["c"].iloc[:50]
    assert same.mean() > 0.95


def test_similarity_is_that_of_the_views_of_the_columns(fitted):
    model, _, _, labels = fitted
    by_first = model.similarity(columns=["a", "b"])
    together = labels[0][:, None] == labels[0]
    assert by_first[together].mean() > 0.85 > 0.1 > by_first[~together].mean()
    both = model.similarity([3, 7])
    first, second = model.similarity([3, 7], "a"), model.similarity([3, 7], ["e"])
    assert both == pytest.approx((first + second) / 2, abs=0.05)
    assert model.similarity([5])[0, 0] == pytest.approx(1.0)


def test_planted_errors_have_the_highest_surprise():
    frame, _, _ = planted(60, seed=2)
    frame.loc[7, "a"], frame.loc[11, "h"] = 60.0, 500.0
    model = CrossCat(KINDS, n_chains=1, n_sweeps=10, random_state=0).fit(frame)
    worst = model.unusual_cells(2)
    assert {(cell.row, cell.column) for cell in worst} == {(7, "a"), (11, "h")}
    assert {cell.value for cell in worst} == {60.0, 500.0}
    assert worst[0].surprise >= worst[1].surprise > 2
    assert {7, 11} == set(model.unusual_rows(2))
    assert np.array_equal(np.isnan(model.surprise()), frame.isna())


def test_densities_sum_to_one_and_drawn_rows_follow_them():
    random = np.random.default_rng(0)
    X = random.integers(2, size=(30, 3)).astype(float)
    X[:, 1] = np.where(random.random(30) < 0.9, X[:, 0], 1 - X[:, 0])
    model = CrossCat(n_chains=1, n_sweeps=20, random_state=0).fit(X)
    cells = np.array(list(product([0.0, 1.0], repeat=3)))
    density = np.exp(model.score_samples(cells))
    assert density.sum() == pytest.approx(1.0)
    gap = np.exp(model.score_samples([[1.0, np.nan, np.nan]]))
    assert gap[0] == pytest.approx(density[cells[:, 0] == 1].sum())
    given = (cells[:, 0] == 1) & (cells[:, 2] == 0)
    expected = density[given & (cells[:, 1] == 1)].sum() / density[given].sum()
    drawn = model.sample(4000, given={0: 1, 2: 0}, random_state=0)
    assert (drawn[:, [0, 2]] == [1, 0]).all()
    error = np.sqrt(expected * (1 - expected) / len(drawn))
    assert abs(drawn[:, 1].mean() - expected) < 6 * error
    free = model.sample(4000, random_state=1)
    assert abs(free.mean(axis=0) - (density[:, None] * cells).sum(axis=0)).max() < 0.05


def test_imputed_frames_keep_their_type():
    frame = pl.DataFrame(
        {
            "x": [1.0, None, 3.0, 8.0, 9.0, 9.5],
            "y": ["u", "v", None, "u", "v", "v"],
            "z": [True, False, None, True, True, False],
        }
    )
    model = CrossCat(n_chains=1, n_sweeps=4, random_state=0).fit(frame)
    table = model.impute().table
    assert isinstance(table, pl.DataFrame)
    assert table.schema == frame.schema
    assert table.null_count().sum_horizontal()[0] == 0
    assert model.sample(2).schema == frame.schema
    assert isinstance(model.sample(2, given={"y": "v"}), pl.DataFrame)


def test_odd_columns_have_an_answer():
    random = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "gaps": np.full(12, np.nan),
            "nothing": [None] * 12,
            "constant": np.ones(12) * 7,
            "word": ["same"] * 12,
            "number": random.normal(size=12),
            "nullable": pd.array([1, 2, None] * 4, dtype="Int64"),
        }
    )
    model = CrossCat(n_chains=1, n_sweeps=4, random_state=0).fit(frame)
    table = model.impute().table
    assert not table.isna().to_numpy().any()
    assert (table["constant"] == 7).all()
    assert np.isfinite(model.score_samples(frame)).all()
    assert CrossCat(n_chains=1, n_sweeps=2, random_state=0).fit([[1.0]]).n_clusters_ == 1


@pytest.mark.parametrize(
    ("X", "settings", "message"),
    [
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), {}, "2 columns named 'a'"),
        ([[1.0, 2.0]], {"models": {"b": "count"}}, "names 'b', which is no column"),
        ([[1.5, 2.0]], {"models": {0: "count"}}, "not an integer: row 0, column 0"),
        ([[1.0], [np.inf]], {}, "infinity"),
        ([[1.0]], {"row_prior": 1.0}, "row_prior must be None or one of"),
        ([[1.0]], {"n_sweeps": 0}, "n_sweeps must be an integer"),
        ([[1.0]], {"n_sweeps": 5, "burn_in": 5}, "burn_in must leave a sweep"),
        (pd.DataFrame({"t": pd.to_datetime(["2020-01-01"])}), {}, "column 't' holds"),
    ],
)
def test_invalid_input_is_refused_with_its_name(X, settings, message):
    with pytest.raises(ValueError, match=message) as error:
        CrossCat(**settings).fit(X)
    assert "\n" not in str(error.value)


def test_queries_refuse_unknown_columns_and_rows(fitted):
    model, frame, _, _ = fitted
    strange = frame.iloc[:2].assign(c="mauve")
    with pytest.raises(ValueError, match=r"'mauve', which is no known level: row 0, column 2"):
        model.score_samples(strange)
    with pytest.raises(ValueError, match="'q' is no column"):
        model.sample(given={"q": 1})
    with pytest.raises(ValueError, match="rows must be numbers from 0 to 199"):
        model.similarity([200])
    with pytest.raises(ValueError, match="n_samples"):
        model.sample(0)


def test_new_rows_have_groups(fitted):
    model, frame, _, _ = fitted
    shares = model.predict_proba(frame)
    assert shares.shape == (200, model.n_clusters_)
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    assert np.array_equal(model.predict(frame), shares.argmax(axis=1))
    assert adjusted_rand_score(model.predict(frame), model.labels_) > 0.95
    # Columns of other views have no say.
    others = frame.columns.difference(model.views_[0].columns)
    assert np.array_equal(model.predict_proba(frame.assign(**dict.fromkeys(others))), shares)


def test_a_saved_model_answers_alike(fitted, tmp_path):
    model, frame, _, _ = fitted
    path, rows = tmp_path / "model.zip", frame.iloc[:20]
    save_model(path, model)
    again = load_model(path).estimator
    assert model_bytes(again) == model_bytes(model)
    assert again.get_params() == model.get_params()
    for ask in ("predict", "predict_proba", "score_samples"):
        assert np.array_equal(getattr(again, ask)(rows), getattr(model, ask)(rows))
    assert again.impute(rows).table.equals(model.impute(rows).table)
    assert np.array_equal(again.dependence(), model.dependence())
    given = {"c": frame["c"].dropna().iloc[0]}
    drawn = again.sample(3, given=given, random_state=0)
    assert drawn.tolist() == model.sample(3, given=given, random_state=0).to_numpy().tolist()
    for ask in (again.similarity, again.surprise, again.resume, again.impute):
        with pytest.raises(ValueError, match="has no rows of its own"):
            ask()


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("columns", lambda names: names[:-1]),
        ("kinds", lambda kinds: np.roll(kinds, 1)),
        ("levels", lambda levels: levels[:-1]),
        ("hyper", lambda hyper: hyper[:, 1:]),
        ("views", lambda views: views + 1),
        ("n_clusters", lambda counts: counts * 0),
        ("shares", lambda shares: -shares),
        ("statistics", lambda statistics: statistics[:-1]),
        ("together", lambda together: together[:1]),
    ],
)
def test_a_changed_file_is_refused(fitted, name, change):
    state = pack(fitted[0].predictive_state())
    with pytest.raises(ValueError, match="do not fit the rest"):
        unpack(state | {name: change(state[name])})


def test_levels_that_a_file_cannot_store_are_refused():
    frame = pd.DataFrame({"a": [1.0, 2.0, 3.0], "b": ["x", 7, "x"]})
    model = CrossCat(n_chains=1, n_sweeps=2, random_state=0).fit(frame)
    with pytest.raises(InputError, match="cannot hold column 'b', which is of int and str"):
        model_bytes(model)


def test_long_tables_find_views_on_a_subsample(monkeypatch):
    monkeypatch.setattr(crosscat_chain, "TUNING", replace(crosscat_chain.TUNING, initial_rows=60))
    frame, _, labels = planted(200, seed=3)
    model = CrossCat(KINDS, n_chains=1, n_sweeps=1, random_state=0).fit(frame)
    view = next(view for view in model.views_ if "a" in view.columns)
    assert adjusted_rand_score(view.labels, labels[0]) > 0.8


@pytest.mark.filterwarnings("default:CrossCat's chains disagree")
def test_disagreeing_chains_raise_a_warning(monkeypatch):
    monkeypatch.setattr(sampled, "TUNING", replace(sampled.TUNING, highest_r_hat=0.5))
    X = np.random.default_rng(0).normal(size=(30, 4))
    X[:15, ::2] += 4
    with pytest.warns(ConvergenceWarning, match=r"call resume\(\)") as told:
        model = CrossCat(n_chains=3, n_sweeps=12, random_state=0).fit(X)
    assert not model.converged_
    assert told[0].filename == __file__
