"""Densely linked clusters, and `AutoClustering` of directions and of many columns."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics import adjusted_rand_score

from countless import AutoClustering
from countless._auto.linked import NeighborCommunities, are_directions, row_lengths
from countless._errors import InputError
from countless.serialize.model_file import load_model, save_model


@pytest.fixture(scope="module")
def directions():
    """Eight half circles around as many directions in 64 dimensions."""
    random = np.random.default_rng(0)
    y = np.repeat(np.arange(8), 50)
    angle = random.uniform(0, np.pi, size=(400, 1))
    centers, one, other = random.normal(size=(3, 8, 64)) / 8.0
    X = centers[y] + np.cos(angle) * one[y] + np.sin(angle) * other[y]
    X += 0.03 * random.normal(size=(400, 64))
    return (X / np.linalg.norm(X, axis=1)[:, None]).astype(np.float32), y


@pytest.fixture(scope="module")
def fitted(directions):
    return AutoClustering().fit(directions[0])


def test_directions(directions, fitted):
    X, y = directions
    assert (fitted.best_method_, fitted.n_clusters_) == ("linked", 8)
    assert adjusted_rand_score(y, fitted.labels_) == 1.0
    assert fitted.reason_.endswith("Rows have unit length: directions are compared.")
    assert [one.method for one in fitted.candidates_] == ["one cluster", "linked", "round"]
    assert (fitted.predict(X) == fitted.labels_).mean() > 0.97


def test_rows_of_zeros_have_no_direction(directions, fitted):
    X = directions[0].copy()
    zeros = [3, 350]
    X[zeros] = 0.0
    with pytest.warns(UserWarning, match=r"2 of 400 rows are zero and have no direction"):
        model = AutoClustering().fit(X)
    assert np.flatnonzero(model.labels_ < 0).tolist() == zeros
    assert model.n_clusters_ == 8
    assert not np.isin(zeros, model.compared_rows_).any()
    assert np.array_equal(model.predict(X[:6]) < 0, model.labels_[:6] < 0)
    with pytest.raises(ValueError, match="1 row that is not zero"):
        AutoClustering().fit(np.eye(5)[[0]] * [[1.0], [0.0], [0.0]])


def test_rows_of_no_direction_do_not_hide_clusters(directions):
    noise = np.random.default_rng(1).normal(size=(100, 64))
    noise /= np.linalg.norm(noise, axis=1)[:, None]
    X, y = directions
    labels = NeighborCommunities().fit(np.vstack([X, noise])).labels_[: len(y)]
    assert adjusted_rand_score(y, labels) > 0.95


def test_sparse_rows_have_the_clusters_of_dense_ones(directions, fitted, tmp_path):
    model = AutoClustering(["linked"]).fit(sp.csr_array(directions[0]))
    assert adjusted_rand_score(model.labels_, fitted.labels_) > 0.99
    assert model.predict(sp.csr_array(directions[0][:5])).tolist() == model.labels_[:5].tolist()
    with pytest.raises(InputError, match="has no state that a model file can hold"):
        save_model(tmp_path / "model.zip", model)


def test_a_candidate_that_takes_no_sparse_matrix_is_left_out(directions):
    from sklearn.mixture import GaussianMixture

    mapping = {"linked": NeighborCommunities(), "mixture": GaussianMixture(2)}
    model = AutoClustering(mapping).fit(sp.csr_array(directions[0]))
    assert model.candidates_[2].note == "left out: it takes no sparse matrix"


def test_same_for_threads_and_precisions(directions, fitted):
    X = directions[0]
    model = NeighborCommunities(n_jobs=2).fit(X)
    assert np.array_equal(model.labels_, NeighborCommunities(n_jobs=1).fit(X).labels_)
    assert np.array_equal(model.labels_, AutoClustering(random_state=7).fit(X).labels_)
    half = NeighborCommunities().fit(X.astype(np.float16))
    assert adjusted_rand_score(half.labels_, model.labels_) > 0.99


def test_missing_values_are_named(directions):
    X = directions[0].copy()
    X[5, 7] = np.nan
    with pytest.raises(ValueError, match="X contains NaN: row 5, column 7"):
        AutoClustering().fit(X)


def test_one_cluster_of_many_columns():
    X = np.random.default_rng(1).normal(size=(500, 80))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = AutoClustering().fit(X)
    assert (model.n_clusters_, model.best_method_) == (1, "one cluster")
    assert model.predict(X[:3]).tolist() == [0, 0, 0]


def test_model_file(directions, fitted, tmp_path):
    save_model(tmp_path / "model.zip", fitted)
    loaded = load_model(tmp_path / "model.zip").estimator
    X = directions[0]
    assert isinstance(loaded, NeighborCommunities)
    assert np.array_equal(loaded.predict(X), fitted.predict(X))
    assert loaded.resolution_ == fitted.best_estimator_.resolution_


@pytest.mark.parametrize("sparse", [False, True])
def test_lengths_of_rows(sparse):
    X = np.array([[3.0, 4.0], [0.0, 0.0]])
    assert row_lengths(sp.csr_array(X) if sparse else X).tolist() == [5.0, 0.0]
    assert not are_directions(np.ones(3), 2)
    assert not are_directions(np.zeros(3), 20)
