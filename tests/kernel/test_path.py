"""The path in feature space: a linear kernel gives the table's, and noise stays one cluster."""

import numpy as np
import pytest
from sklearn.datasets import load_iris, make_blobs
from sklearn.metrics import adjusted_rand_score
from sklearn.metrics.pairwise import rbf_kernel

from countless import DPMeans, KernelDPMeans, farthest_first_penalty, penalty_path
from countless._path.kernel import coordinates, kernel_farthest_first
from countless._search.kernel.clusters import KernelTable
from countless._threads import open_threads


def blobs(n_rows, seed=2):
    return make_blobs(n_rows, centers=6, cluster_std=0.5, random_state=seed)


def test_a_linear_kernel_gives_the_path_of_the_table():
    X = load_iris().data
    path = penalty_path(X, random_state=0)
    model = KernelDPMeans(kernel="linear", random_state=0).fit(X)
    np.testing.assert_allclose(model.path_.breakpoints[-60:], path.breakpoints[-60:], rtol=1e-6)
    assert model.path_.n_clusters == path.n_clusters
    for k in (2, 3, 6):
        penalty = path.penalty_for(k)
        assert np.array_equal(model.path_.labels_at(penalty), path.labels_at(penalty))
        assert model.path_.objective_at(penalty) == pytest.approx(path.objective_at(penalty))


@pytest.mark.parametrize("n_rows", [300, 1500])
@pytest.mark.parametrize("share", [0.5, 1.0, 5.0])
def test_blobs_are_found_whatever_the_width_of_the_kernel(n_rows, share):
    X, truth = blobs(n_rows)
    model = KernelDPMeans(gamma=share / X.var(axis=0).sum(), random_state=0).fit(X)
    assert model.n_clusters_ == 6
    assert adjusted_rand_score(truth, model.labels_) > 0.97


@pytest.mark.parametrize("kernel", ["rbf", "linear", "laplacian", "poly"])
@pytest.mark.parametrize("shape", ["uniform", "normal"])
def test_noise_is_one_cluster(kernel, shape):
    X = getattr(np.random.default_rng(5), shape)(size=(300, 2))
    assert KernelDPMeans(kernel=kernel, random_state=0).fit(X).n_clusters_ == 1


def test_a_precomputed_kernel_has_a_path_too():
    X, truth = blobs(300)
    K = rbf_kernel(X, gamma=1 / X.var(axis=0).sum())
    model = KernelDPMeans(kernel="precomputed", random_state=0).fit(K)
    assert model.n_clusters_ == 6
    assert adjusted_rand_score(truth, model.labels_) > 0.97


def test_equal_rows_are_one_cluster():
    model = KernelDPMeans(random_state=0).fit(np.ones((12, 3)))
    assert model.n_clusters_ == 1
    assert model.path_.confidence == 1.0


def test_algorithm_1_gets_the_farthest_first_penalty():
    X, _ = blobs(200)
    plain = DPMeans(refine=False, random_state=0).fit(X)
    model = KernelDPMeans(kernel="linear", refine=False, random_state=0).fit(X)
    assert model.penalty_ == pytest.approx(plain.penalty_)
    assert np.array_equal(model.labels_, plain.labels_)


@pytest.mark.parametrize("k", [1, 2, 7])
def test_farthest_first_in_feature_space(k):
    X, _ = blobs(100)
    weight = np.random.RandomState(0).uniform(0, 2, 100)
    with open_threads(1) as each:
        table = KernelTable(X @ X.T, weight, np.zeros(100, dtype=np.int64), each)
        found = kernel_farthest_first(table, k)
    assert found == pytest.approx(farthest_first_penalty(X, k, sample_weight=weight))


def test_coordinates_keep_distances():
    random = np.random.RandomState(0)
    X, share = random.standard_normal((30, 4)), np.full(30, 1 / 30)
    found = coordinates(X @ X.T, share)
    np.testing.assert_allclose(found @ found.T, (X - X.mean(0)) @ (X - X.mean(0)).T, atol=1e-9)
