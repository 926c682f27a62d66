"""HDPMeans as users meet it: groups, new rows, bad input, penalties from the data."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone
from sklearn.metrics import adjusted_rand_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from countless import HDPMeans, farthest_first_penalty, hdp_penalties
from countless._search.groups import start as hdp_start
from countless.serialize.model_file import load_model, save_model

CENTERS = np.array([[0.0, 0.0], [8.0, 0.0], [0.0, 8.0], [8.0, 8.0]])
USED = {"north": [0, 1], "south": [1, 2, 3], "west": [3]}


def three_sets(seed=0, n_rows=60, names=tuple(USED)):
    """Return rows, truth and groups of three data sets, rows of all of them mixed."""
    random = np.random.RandomState(seed)
    groups = np.repeat(np.array(names), n_rows)
    truth = np.concatenate([random.choice(used, n_rows) for used in USED.values()])
    X = CENTERS[truth] + random.standard_normal((len(truth), 2))
    mixed = random.permutation(len(X))
    return X[mixed], truth[mixed], groups[mixed]


def test_finds_what_each_data_set_uses():
    X, truth, groups = three_sets()
    model = HDPMeans(random_state=0).fit(X, groups=groups)
    assert model.n_clusters_ == 4
    assert adjusted_rand_score(truth, model.labels_) > 0.97
    n_local = dict(zip(model.groups_.tolist(), model.n_local_clusters_.tolist(), strict=True))
    assert n_local == {name: len(used) for name, used in USED.items()}
    assert model.groups_.tolist() == list(dict.fromkeys(groups.tolist()))
    # Inside a data set, local and global clusters are the same partition.
    for name in USED:
        rows = groups == name
        assert adjusted_rand_score(model.labels_[rows], model.local_labels_[rows]) == 1.0
        assert model.local_labels_[rows][0] == 0


@pytest.mark.parametrize(
    "rename",
    [
        lambda groups: groups.tolist(),
        lambda groups: np.unique(groups, return_inverse=True)[1] - 7,
        lambda groups: np.unique(groups, return_inverse=True)[1] / 2,
        lambda groups: pd.Series(groups, index=range(5, 5 + len(groups))),
        lambda groups: pd.Categorical(groups),
        lambda groups: groups.astype(object),
        lambda groups: pd.to_datetime([f"2020-01-{len(name):02}" for name in groups]),
    ],
    ids=["list", "int", "float", "series", "categorical", "object", "dates"],
)
@pytest.mark.parametrize("refine", [False, True])
def test_labels_of_groups_do_not_matter(rename, refine):
    X, _, groups = three_sets()
    groups = np.where(groups == "west", "westward", groups)  # names of different lengths
    reference = HDPMeans(20.0, 50.0, refine=refine).fit(X, groups=groups)
    renamed = HDPMeans(20.0, 50.0, refine=refine).fit(X, groups=rename(groups))
    if len(renamed.groups_) == 3:
        assert np.array_equal(renamed.labels_, reference.labels_)
    assert renamed.predict(X, groups=rename(groups)).tolist() == renamed.labels_.tolist()


def test_a_group_of_one_row_and_thousands_of_groups():
    random = np.random.RandomState(0)
    truth = random.randint(4, size=3000)
    X = CENTERS[truth] + 0.5 * random.standard_normal((3000, 2))
    model = HDPMeans(random_state=0).fit(X, groups=np.arange(3000))
    assert model.n_clusters_ == 4
    assert (model.n_local_clusters_ == 1).all()
    assert adjusted_rand_score(truth, model.labels_) == 1.0


def test_predict_for_known_and_new_groups():
    X, _, groups = three_sets()
    model = HDPMeans(20.0, 50.0).fit(X, groups=groups)
    assert np.array_equal(model.predict(X, groups=groups), model.labels_)
    at = dict(enumerate(model.predict(CENTERS)))  # the label at each true center
    # Between two centers, a little nearer to the one that the data set does not use.
    between = np.array([[4.0, 4.2]])
    assert model.predict(between, groups=["west"])[0] == at[3]
    near = CENTERS[[2]] + [[0.1, 0.0]]
    assert model.predict(near)[0] == at[2]
    assert model.predict(near, groups=["north"])[0] == at[2]  # far enough to pay for it
    # A new data set pays for what its rows use together: a lone stray does not pay.
    fresh = np.vstack([np.repeat(CENTERS[[0]], 20, axis=0), [[4.4, 0.0]]])
    assert set(model.predict(fresh, groups=["new"] * 21)) == {at[0]}
    assert model.predict(fresh[-1:], groups=["new"])[0] == at[1]
    many = np.vstack([fresh, np.repeat(CENTERS[[1]], 20, axis=0)])
    assert set(model.predict(many, groups=["new"] * 41)) == {at[0], at[1]}
    assert model.predict(many, groups=["new"] * 41)[20] == at[1]


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"local_penalty": -1}, "local_penalty must be 'auto' or a number of at least 0; got -1"),
        ({"global_penalty": "big"}, "global_penalty must be 'auto' or a number"),
        ({"local_penalty": 1.0}, "must both be 'auto' or both be numbers; got 1.0 and 'auto'"),
        ({"refine": "no"}, "refine must be True or False; got 'no'"),
        ({"max_iter": 0}, "max_iter must be an integer of at least 1; got 0"),
        ({"tol": -1.0}, "tol must be None or a number of at least 0"),
    ],
)
def test_bad_parameters_are_named(parameters, message):
    with pytest.raises(ValueError, match=message):
        HDPMeans(**parameters).fit(np.eye(3))


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        (["a", "b"], r"groups must hold a label for each of 3 rows; got shape \(2,\)"),
        (["a", None, "b"], "row 1 has none"),
        ([1.0, 2.0, np.nan], "row 2 has none"),
        (np.array([1, "a", (2,)], dtype=object), "labels that can be compared"),
        ([1, "1", "a"], "labels that can be compared"),
    ],
)
def test_bad_groups_are_named(groups, message):
    with pytest.raises(ValueError, match=message):
        HDPMeans(1.0, 1.0).fit(np.eye(3), groups=groups)


def test_a_missing_value_is_named_by_row_and_column():
    X = np.eye(3)
    X[1, 2] = np.nan
    with pytest.raises(ValueError, match="NaN: row 1, column 2"):
        HDPMeans().fit(X)


@pytest.mark.parametrize("parameters", [(), (0.0, 0.0), (1.0, 1.0)])
@pytest.mark.parametrize("refine", [False, True])
def test_rows_that_are_all_equal_are_one_cluster(parameters, refine):
    X = np.full((12, 2), 3.5)
    model = HDPMeans(*parameters, refine=refine).fit(X, groups=np.repeat([0, 1, 2], 4))
    assert model.n_clusters_ == 1
    assert model.n_local_clusters_.tolist() == [1, 1, 1]


def test_auto_without_refinement_takes_the_paper_rule_at_the_numbers_found():
    X, _, groups = three_sets()
    model = HDPMeans(refine=False, random_state=0).fit(X, groups=groups)
    found = (model.local_penalty_, model.global_penalty_)
    assert found == tuple(hdp_penalties(X, groups, 2, 4))


def test_auto_reads_overlapping_clusters_from_the_groups():
    random = np.random.RandomState(4)  # the paper's experiment, section 6.3
    centers = random.uniform(size=(15, 2))
    truth = np.concatenate([np.repeat(random.choice(15, 5, replace=False), 5) for _ in range(50)])
    X = centers[truth] + 0.1 * random.standard_normal((1250, 2))
    model = HDPMeans(random_state=0).fit(X, groups=np.repeat(np.arange(50), 25))
    assert 10 <= model.n_clusters_ <= 20
    assert 3.5 <= model.n_local_clusters_.mean() <= 5.5


@pytest.mark.parametrize("shape", ["blob", "box"])
def test_auto_leaves_data_without_clusters_whole(shape):
    random = np.random.RandomState(1)
    X = random.standard_normal((600, 3)) if shape == "blob" else random.uniform(size=(600, 2))
    model = HDPMeans(random_state=0).fit(X, groups=np.arange(600) % 6)
    assert model.n_clusters_ == 1


def test_long_tables_are_initialised_from_a_subsample(monkeypatch):
    X, truth, groups = three_sets(n_rows=400)
    whole = HDPMeans(60.0, 300.0).fit(X, groups=groups)
    monkeypatch.setattr(hdp_start, "SUBSAMPLE", replace(hdp_start.SUBSAMPLE, n_rows=200))
    some = HDPMeans(60.0, 300.0, random_state=0).fit(X, groups=groups)
    assert some.objective_ == pytest.approx(whole.objective_, rel=1e-6)
    auto = HDPMeans(random_state=0).fit(X, groups=groups)
    assert adjusted_rand_score(truth, auto.labels_) > 0.97
    # Many small groups: some of them are looked at.
    many = HDPMeans(random_state=0).fit(X, groups=np.arange(1200) % 300)
    assert many.n_clusters_ == 4


def test_groups_are_routed_through_a_pipeline():
    X, _, groups = three_sets()
    with sklearn.config_context(enable_metadata_routing=True):
        model = HDPMeans(10.0, 20.0).set_fit_request(groups=True).set_predict_request(groups=True)
        pipeline = make_pipeline(StandardScaler(), clone(model)).fit(X, groups=groups)
        labels = pipeline.predict(X, groups=groups)
    assert pipeline[-1].groups_.tolist() == list(dict.fromkeys(groups.tolist()))
    assert np.array_equal(labels, pipeline[-1].labels_)


@pytest.mark.parametrize("named", [True, False])
def test_a_saved_model_predicts_the_same(tmp_path, named):
    X, _, groups = three_sets()
    groups = groups if named else np.unique(groups, return_inverse=True)[1]
    model = HDPMeans(20.0, 50.0).fit(X, groups=groups)
    save_model(tmp_path / "model.zip", model)
    loaded = load_model(tmp_path / "model.zip").estimator
    assert np.array_equal(loaded.predict(X, groups=groups), model.labels_)
    assert loaded.n_local_clusters_.tolist() == model.n_local_clusters_.tolist()
    assert loaded.groups_.tolist() == model.groups_.tolist()


def test_float32_rows_give_the_labels_of_float64_rows():
    X, _, groups = three_sets()
    single = HDPMeans(20.0, 50.0).fit(X.astype(np.float32), groups=groups)
    double = HDPMeans(20.0, 50.0).fit(X, groups=groups)
    assert np.array_equal(single.labels_, double.labels_)
    assert single.cluster_centers_.dtype == np.float64


def plain_penalties(X, groups, n_local, n_global):
    """The rule as its docstring tells it, by loops."""
    sets = [X[groups == name] for name in dict.fromkeys(groups)]
    local = np.mean([farthest_first_penalty(some, min(n_local, len(some))) for some in sets])
    chosen = [X.mean(axis=0)]
    for _ in range(n_global):
        away = [[min(np.sum((x - t) ** 2) for t in chosen) for x in some] for some in sets]
        far = int(np.argmax([sum(some) for some in away]))
        chosen.append(sets[far][int(np.argmax(away[far]))])
    return local, sum(away[far])


@pytest.mark.parametrize("seed", range(5))
def test_penalties_are_those_of_the_plain_rule(seed):
    random = np.random.RandomState(seed)
    X, groups = random.standard_normal((40, 3)), random.randint(6, size=40)
    n_local, n_global = random.randint(1, 9), random.randint(1, 12)
    found = hdp_penalties(X, groups, n_local, n_global)
    np.testing.assert_allclose(found, plain_penalties(X, groups, n_local, n_global), rtol=1e-12)


@pytest.mark.parametrize("name", ["n_local", "n_global"])
@pytest.mark.parametrize("value", [0, 41, 2.5])
def test_penalties_name_a_bad_number(name, value):
    numbers = {"n_local": 2, "n_global": 3} | {name: value}
    with pytest.raises(ValueError, match=f"{name} must be an integer from 1 to .* 40"):
        hdp_penalties(np.random.RandomState(0).standard_normal((40, 2)), None, **numbers)


@pytest.mark.parametrize("side_by_side", [True, False])
@pytest.mark.parametrize("settings", [{}, {"local_penalty": 3.0, "global_penalty": 9.0}])
def test_rows_in_a_file_give_the_answer_of_rows_in_memory(tmp_path, side_by_side, settings):
    random = np.random.RandomState(1)
    centers = 6 * random.standard_normal((5, 3))
    groups = np.repeat(np.arange(8), 60)
    X = centers[(groups + random.randint(2, size=480)) % 5] + random.standard_normal((480, 3))
    if not side_by_side:
        shuffle = random.permutation(480)
        X, groups = X[shuffle], groups[shuffle]
    np.save(tmp_path / "rows.npy", X)
    here = HDPMeans(**settings, random_state=0).fit(X, groups=groups)
    there = HDPMeans(**settings, random_state=0).fit(tmp_path / "rows.npy", groups=groups)
    assert np.array_equal(here.labels_, there.labels_)
    assert np.array_equal(here.cluster_centers_, there.cluster_centers_)
    assert here.objective_history_.tolist() == there.objective_history_.tolist()
    assert np.array_equal(here.predict(X, groups), there.predict(tmp_path / "rows.npy", groups))
