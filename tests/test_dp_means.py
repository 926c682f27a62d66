"""The estimator: what users set, read and get wrong."""

import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.datasets import load_wine, make_blobs
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.preprocessing import scale

from countless import DPMeans, farthest_first_penalty

X, TRUE = make_blobs(300, centers=4, cluster_std=0.5, random_state=3)


def test_finds_the_clusters_and_their_confidence():
    model = DPMeans(random_state=0).fit(X)
    assert model.n_clusters_ == 4
    assert model.labels_[0] == 0
    assert model.path_.confidence > 0.5
    assert model.penalty_ == model.path_.penalty
    assert len(set(zip(model.labels_, TRUE, strict=True))) == 4
    assert model.cluster_weights_.tolist() == np.bincount(model.labels_).tolist()


def test_auto_for_algorithm_1_takes_the_farthest_first_penalty():
    model = DPMeans(refine=False, random_state=0).fit(X)
    assert model.penalty_ == farthest_first_penalty(X, 4)
    assert model.n_clusters_ == 4


def test_wine_is_three_cultivars():
    assert DPMeans(random_state=0).fit(scale(load_wine().data)).n_clusters_ == 3


@pytest.mark.parametrize("kind", ["noise", "blob"])
@pytest.mark.parametrize("seed", range(5))
def test_structureless_data_is_one_cluster(kind, seed):
    random = np.random.RandomState(seed)
    rows = random.uniform(size=(400, 2)) if kind == "noise" else random.normal(size=(400, 3))
    assert DPMeans(random_state=0).fit(rows).n_clusters_ == 1


def test_transform_is_the_distance_and_predict_its_smallest():
    model = DPMeans(random_state=0).fit(X)
    distance = model.transform(X)
    reference = KMeans(4, init=model.cluster_centers_, n_init=1, max_iter=1).fit(X)
    np.testing.assert_allclose(distance, reference.transform(X), atol=1e-6)
    assert np.array_equal(distance.argmin(axis=1), model.predict(X))
    sparse = model.transform(sp.csr_matrix(X))
    np.testing.assert_allclose(sparse, distance, atol=1e-6)
    assert model.get_feature_names_out().tolist() == [f"dpmeans{c}" for c in range(4)]
    fixed_point = model.set_output(transform="pandas").transform(
        pd.DataFrame(X, columns=["a", "b"]).values
    )
    assert list(fixed_point.columns) == [f"dpmeans{c}" for c in range(4)]


@pytest.mark.parametrize("name", ["kl", "itakura-saito", "logistic", "cosine"])
def test_transform_of_other_divergences_agrees_with_predict(name):
    rows = np.random.RandomState(0).uniform(0.05, 0.95, (80, 4))
    model = DPMeans(0.3, divergence=name).fit(rows)
    assert model.n_clusters_ > 1
    assert np.array_equal(model.transform(rows).argmin(axis=1), model.predict(rows))
    assert model.score(rows) == pytest.approx(-model.objective_)


def test_score_is_minus_the_objective():
    model = DPMeans(random_state=0).fit(X)
    assert model.score(X) == pytest.approx(-model.objective_)
    assert model.score(X[:10]) > model.score(X[:10] + 5)


def test_float32_is_used_as_it_is_and_agrees():
    wide, narrow = DPMeans(50.0).fit(X), DPMeans(50.0).fit(X.astype(np.float32))
    assert np.array_equal(wide.labels_, narrow.labels_)
    assert narrow.cluster_centers_.dtype == np.float64


def test_says_when_it_has_not_converged():
    with pytest.warns(ConvergenceWarning, match="max_iter=1"):
        model = DPMeans(1.0, refine=False, max_iter=1).fit(X)
    assert not model.converged_
    assert model.n_iter_ == 1


def test_callbacks_hear_of_every_pass():
    callback = pytest.importorskip("sklearn.callback")

    class Listener:
        def __init__(self):
            self.heard = []

        def setup(self, estimator, context):
            pass

        def on_fit_task_begin(self, estimator, context):
            pass

        def on_fit_task_end(self, estimator, context, *, metadata=None):
            if metadata is not None:
                self.heard.append(metadata["objective"])

        def teardown(self, estimator, context):
            pass

    assert isinstance(Listener(), callback.FitCallback)
    for refine in (False, True):
        listener = Listener()
        model = DPMeans(5.0, refine=refine).set_callbacks(listener).fit(X)
        assert listener.heard == model.objective_history_.tolist()


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"penalty": -1.0}, "penalty must be 'auto' or a number of at least 0; got -1.0"),
        ({"penalty": np.nan}, "penalty must be"),
        ({"penalty": "best"}, "penalty must be 'auto' or a number of at least 0; got 'best'"),
        ({"divergence": "euclid"}, "divergence must be one of 'sqeuclidean'"),
        ({"order": "up"}, "order must be one of 'given', 'random', 'farthest'; got 'up'"),
        ({"n_init": 0}, "n_init must be an integer of at least 1; got 0"),
        ({"max_iter": 2.5}, "max_iter must be an integer"),
        ({"penalty": True}, "penalty must be"),
        ({"refine": "False"}, "refine must be True or False; got 'False'"),
        ({"tol": -1}, "tol must be None or a number of at least 0"),
    ],
)
def test_bad_parameters_are_named(parameters, message):
    with pytest.raises(ValueError, match=message):
        DPMeans(**parameters).fit(X)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize(("value", "word"), [(np.nan, "NaN"), (-np.inf, "infinity")])
def test_gaps_and_infinities_are_named_by_row_and_column(sparse, value, word):
    rows = X.copy()
    rows[7, 1] = value
    rows = sp.csr_matrix(rows) if sparse else rows
    with pytest.raises(ValueError, match=f"X contains {word}: row 7, column 1"):
        DPMeans().fit(rows)


@pytest.mark.parametrize(
    ("name", "value", "domain"),
    [("kl", -2.0, "at least 0"), ("itakura-saito", 0.0, "above 0"), ("logistic", 1.5, "0 to 1")],
)
def test_domain_errors_name_row_and_column(name, value, domain):
    rows = np.full((5, 3), 0.5)
    rows[3, 2] = value
    with pytest.raises(ValueError, match=rf"{domain}; row 3, column 2 is {value:g}"):
        DPMeans(1.0, divergence=name).fit(rows)
    if value:
        rows[0, 0] = 0.0
        with pytest.raises(ValueError, match=rf"{domain}; row 3, column 2 is {value:g}"):
            DPMeans(1.0, divergence=name).fit(sp.csr_matrix(rows))


def test_zero_rows_have_no_cosine():
    with pytest.raises(ValueError, match="row 1 is"):
        DPMeans(1.0, divergence="cosine").fit([[1.0, 2.0], [0.0, 0.0]])


def test_sparse_zeros_have_no_itakura_saito():
    with pytest.raises(ValueError, match="a sparse table holds zeros"):
        DPMeans(1.0, divergence="itakura-saito").fit(sp.csr_matrix(np.eye(3)))


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        ([1.0] * 299, "300"),
        ([-1.0] + [1.0] * 299, "row 0 has -1"),
        ([np.nan] + [1.0] * 299, "row 0 has nan"),
        ([0.0] * 300, "must not be zero for every row"),
    ],
)
def test_bad_weights_are_named(weight, message):
    with pytest.raises(ValueError, match=message):
        DPMeans(1.0).fit(X, sample_weight=weight)


def test_empty_tables_and_wrong_widths_are_refused():
    with pytest.raises(ValueError, match="0 sample"):
        DPMeans().fit(np.empty((0, 3)))
    model = DPMeans(5.0).fit(X)
    with pytest.raises(ValueError, match="X has 3 features, but DPMeans is expecting 2"):
        model.predict(np.ones((4, 3)))
    with pytest.raises(NotFittedError):
        DPMeans().predict(X)


def test_huge_values_are_refused_and_large_ones_are_not():
    with pytest.raises(ValueError, match="squares overflow"):
        DPMeans(1.0).fit([[1e200], [-1e200]])
    model = DPMeans(1e60).fit(np.array([[0.0], [1.0], [5e30]]))
    assert model.labels_.tolist() == [0, 0, 1]


@pytest.mark.parametrize("refine", [False, True])
@pytest.mark.parametrize("penalty", ["auto", 1.0])
@pytest.mark.parametrize("rows", [[[3.0, 4.0]], [[2.0, 2.0]] * 20])
def test_one_row_and_equal_rows_are_one_cluster(refine, penalty, rows):
    model = DPMeans(penalty, refine=refine, random_state=0).fit(rows)
    assert model.n_clusters_ == 1
    np.testing.assert_array_equal(model.cluster_centers_, rows[:1])
    assert model.objective_ == pytest.approx(model.penalty_)


def test_a_penalty_of_zero_gives_every_distinct_row_a_cluster():
    rows = np.array([[0.0], [1.0], [0.0], [5.0]])
    assert DPMeans(0.0).fit(rows).labels_.tolist() == [0, 1, 0, 2]


def test_sparse_cells_stored_twice_are_added_up():
    data, rows, columns = [1.0, 2.0, 5.0, 9.0], [0, 0, 1, 2], [0, 0, 0, 1]
    indptr = np.searchsorted(rows, range(4))
    twice = sp.csr_matrix((data, columns, indptr), shape=(3, 2))
    assert not twice.has_canonical_format
    model = DPMeans(3.0).fit(twice)
    dense = DPMeans(3.0).fit(twice.toarray())
    assert model.objective_ == pytest.approx(dense.objective_)


def test_lengths_do_not_matter_to_the_cosine():
    rows = np.array([[1e20, 0.0], [0.0, 1e20], [1e20, 1.0]], dtype=np.float32)
    assert DPMeans(0.1, divergence="cosine").fit(rows).labels_.tolist() == [0, 1, 0]
    tiny = rows.astype(float) * 1e-220
    assert DPMeans(0.1, divergence="cosine").fit(tiny).labels_.tolist() == [0, 1, 0]


def test_a_fitted_model_survives_pickling_and_refitting():
    model = DPMeans(random_state=0).fit(X)
    copy = pickle.loads(pickle.dumps(model))
    assert np.array_equal(copy.predict(X), model.labels_)
    copy.partial_fit(X[:50])
    assert copy.cluster_weights_.sum() == 350
    clone(model).fit(X)
    again = model.set_params(penalty=5.0).fit(X)
    assert not hasattr(again, "path_")
    fresh = DPMeans(5.0, random_state=0).fit(X)
    assert np.array_equal(again.labels_, fresh.labels_)


def test_passes_are_counted_and_bounded():
    with pytest.warns(ConvergenceWarning):
        model = DPMeans(0.5, max_iter=3).fit(X)
    assert 3 <= model.n_iter_ <= 6
    assert DPMeans(0.5).fit(X).n_iter_ > 6
