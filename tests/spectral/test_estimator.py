"""Spectral DP-means: theorem 5.2, the three Laplacians, and the number of clusters by itself."""

from itertools import product

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.cluster import SpectralClustering
from sklearn.datasets import load_iris, load_wine, make_blobs, make_circles, make_moons
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.neighbors import kneighbors_graph
from sklearn.preprocessing import StandardScaler

from countless import SpectralDPMeans
from countless._spectral.laplacian import LAPLACIANS, make_form

GRAPHS = tuple(kind for kind in LAPLACIANS if kind is not None)


def clouds(seed, n=40):
    return make_blobs(n, centers=3, cluster_std=1.5, random_state=seed)[0]


def plain_matrix(W, laplacian):
    """The matrix as the books write it, and the weight of each row."""
    degree = np.diag(W.sum(axis=1))
    L = degree - W
    if laplacian is None:
        return W, np.ones(len(W))
    if laplacian == "unnormalized":
        return np.eye(len(W)) - L / degree.max(), np.ones(len(W))
    half = np.diag(np.diag(degree) ** -0.5)
    return np.eye(len(W)) - half @ L @ half, np.diag(degree)


def plain_objective(W, laplacian, labels, penalty):
    """The trace minus what clusters hold together, plus their price, cluster by cluster."""
    matrix, weight = plain_matrix(W, laplacian)
    value = np.trace(matrix)
    for cluster in np.unique(labels):
        y = np.where(labels == cluster, np.sqrt(weight), 0.0)
        value += penalty - y @ matrix @ y / (y @ y)
    return value


def dp_means_objective(K, labels, penalty):
    """Squared distances to the means in the kernel's space, plus the penalties."""
    value = 0.0
    for cluster in np.unique(labels):
        inside = K[np.ix_(labels == cluster, labels == cluster)]
        value += np.trace(inside) - inside.sum() / len(inside) + penalty
    return value


def penalised_cut(W, labels, penalty, *, by_volume):
    """The cut of each cluster by its volume or size, plus the price of each, as for graphs."""
    value = 0.0
    for cluster in np.unique(labels):
        inside = labels == cluster
        size = W[inside].sum() if by_volume else inside.sum()
        value += W[np.ix_(inside, ~inside)].sum() / size + penalty
    return value


@pytest.mark.parametrize("laplacian", LAPLACIANS)
@given(seed=st.integers(0, 1000), share=st.floats(0.02, 0.98))
def test_relaxed_optimum_is_given_by_the_eigenvalues_above_the_penalty(laplacian, seed, share):
    W = rbf_kernel(clouds(seed), gamma=0.1)
    matrix, _ = plain_matrix(W, laplacian)
    values = np.linalg.eigvalsh(matrix)[::-1]
    penalty = share * values[0]
    model = SpectralDPMeans(penalty, kernel="precomputed", laplacian=laplacian).fit(W)
    above = values[values > penalty]
    np.testing.assert_allclose(model.eigenvalues_, above, atol=1e-9)
    np.testing.assert_allclose(
        model.relaxed_objective_, np.trace(matrix) - (above - penalty).sum(), rtol=1e-9
    )
    expected = plain_objective(W, laplacian, model.labels_, penalty)
    np.testing.assert_allclose(model.objective_, expected, rtol=1e-9)
    assert model.objective_ >= model.relaxed_objective_ - 1e-9


@pytest.mark.slow
def test_no_partition_goes_below_the_relaxed_objective():
    W = rbf_kernel(clouds(5, n=6), gamma=0.1)
    for laplacian, penalty in product(LAPLACIANS, (0.2, 0.6, 0.9)):
        model = SpectralDPMeans(penalty, kernel="precomputed", laplacian=laplacian).fit(W)
        lowest = min(
            plain_objective(W, laplacian, np.array(labels), penalty)
            for labels in product(range(3), repeat=6)
        )
        assert model.relaxed_objective_ <= lowest + 1e-9
        assert model.objective_ >= model.relaxed_objective_ - 1e-9


def test_objectives_are_those_of_dp_means_and_of_penalised_cuts():
    W = rbf_kernel(clouds(1), gamma=0.1)
    degree = W.sum(axis=1)
    for laplacian, penalty in product(LAPLACIANS, (0.3, 0.7)):
        model = SpectralDPMeans(penalty, kernel="precomputed", laplacian=laplacian).fit(W)
        trace = np.trace(plain_matrix(W, laplacian)[0])
        if laplacian is None:
            expected = dp_means_objective(W, model.labels_, penalty)
        elif laplacian == "unnormalized":
            scaled = W / degree.max()
            expected = trace + penalised_cut(scaled, model.labels_, penalty - 1, by_volume=False)
        else:
            expected = trace + penalised_cut(W, model.labels_, penalty - 1, by_volume=True)
        np.testing.assert_allclose(model.objective_, expected, rtol=1e-9)


@pytest.mark.parametrize("laplacian", LAPLACIANS)
def test_dense_and_sparse_matrices_give_the_same(laplacian):
    X = make_blobs(700, centers=3, cluster_std=0.6, random_state=3)[0]
    W = kneighbors_graph(X, 12, mode="connectivity")
    W = (W + W.T) / 2
    for penalty in (0.97, 0.9):
        scale = 1.0 if laplacian else 10.0
        settings = {"kernel": "precomputed", "laplacian": laplacian, "random_state": 0}
        sparse = SpectralDPMeans(scale * penalty, **settings).fit(W)
        dense = SpectralDPMeans(scale * penalty, **settings).fit(W.toarray())
        np.testing.assert_allclose(sparse.eigenvalues_, dense.eigenvalues_, atol=1e-9)
        np.testing.assert_allclose(sparse.objective_, dense.objective_, rtol=1e-6)
        assert adjusted_rand_score(sparse.labels_, dense.labels_) > 0.99


@pytest.mark.parametrize("laplacian", GRAPHS)
def test_perfect_clusters_of_rows_cost_one_to_join(laplacian):
    sizes = [30, 50, 90]
    labels = np.repeat([0, 1, 2], sizes)
    W = (labels[:, None] == labels).astype(float) * np.linspace(1, 2, 170)[:, None]
    form = make_form((W + W.T) / 2, laplacian)
    rows, weight = form.rows(form.known)
    for a, b in ((0, 1), (0, 2), (1, 2)):
        inside = (labels == a) | (labels == b)
        center = np.average(rows[inside], axis=0, weights=weight[inside])
        cost = (weight[inside] * ((rows[inside] - center) ** 2).sum(axis=1)).sum()
        assert cost == pytest.approx(1.0)


@pytest.mark.parametrize("laplacian", GRAPHS)
@pytest.mark.parametrize("assign", ["k-means", "dp-means"])
def test_ordinary_spectral_clustering_with_k_from_the_spectrum(laplacian, assign):
    shapes = {
        "moons": make_moons(500, noise=0.04, random_state=0),
        "circles": make_circles(500, noise=0.03, factor=0.5, random_state=0),
        "blobs": make_blobs(500, centers=5, cluster_std=0.4, random_state=4),
    }
    for name, (X, truth) in shapes.items():
        model = SpectralDPMeans(laplacian=laplacian, assign=assign, random_state=0).fit(X)
        assert model.n_clusters_ == truth.max() + 1, name
        assert adjusted_rand_score(truth, model.labels_) == 1.0, name
        assert model.path_.n_clusters == model.n_clusters_
        assert model.path_.confidence > 0.2, name


def two_spirals(n, noise, seed):
    random = np.random.RandomState(seed)
    turn = np.sqrt(random.uniform(0.05, 1, n)) * 3 * np.pi
    arm = np.c_[turn * np.cos(turn), turn * np.sin(turn)] + noise * random.standard_normal((n, 2))
    truth = random.randint(2, size=n)
    return arm * np.where(truth, -1, 1)[:, None], truth


@pytest.mark.parametrize("seed", range(3))
def test_two_spirals_are_two(seed):
    X, truth = two_spirals(1200, 0.1, seed)
    labels = SpectralDPMeans(random_state=0).fit_predict(X)
    assert adjusted_rand_score(truth, labels) == 1.0


STRUCTURELESS = {
    "blob": lambda random: random.standard_normal((600, 2)),
    "long blob": lambda random: random.standard_normal((600, 3)) * [6, 2, 1],
    "blob in ten dimensions": lambda random: random.standard_normal((600, 10)),
    "square": lambda random: random.uniform(size=(600, 2)),
    "stripe": lambda random: random.uniform(size=(600, 2)) * [8, 1],
    "noise in thirty dimensions": lambda random: random.uniform(size=(600, 30)),
    "heavy tails": lambda random: random.standard_t(3, size=(600, 2)),
    "one spiral": lambda random: one_arm(two_spirals(1200, 0.3, random.randint(99))),
}


def one_arm(spirals):
    X, arm = spirals
    return X[arm == 0]


@pytest.mark.parametrize("draw", STRUCTURELESS.values(), ids=STRUCTURELESS)
@pytest.mark.parametrize("seed", range(2))
def test_data_without_structure_is_one_cluster(draw, seed):
    X = draw(np.random.RandomState(seed))
    model = SpectralDPMeans(random_state=0).fit(X)
    assert model.n_clusters_ == 1
    assert set(model.labels_) == {0}
    assert set(model.predict(X[:5])) == {0}


def test_wine_has_three_clusters_and_iris_two():
    wine = load_wine()
    model = SpectralDPMeans(random_state=0).fit(StandardScaler().fit_transform(wine.data))
    assert model.n_clusters_ == 3
    assert adjusted_rand_score(wine.target, model.labels_) > 0.8
    iris = load_iris()  # two of the three species overlap
    model = SpectralDPMeans(random_state=0).fit(StandardScaler().fit_transform(iris.data))
    assert model.n_clusters_ == 2
    assert adjusted_rand_score(iris.target > 0, model.labels_) == 1.0


@pytest.mark.parametrize(
    ("name", "k"), [("r15.csv", 15), ("d31.csv.gz", 31), ("a1.csv.gz", 20), ("s1.csv.gz", 15)]
)
def test_many_clusters_of_public_sets(published, name, k):
    table = np.loadtxt(published("shapes2d", name), delimiter=",", skiprows=1)
    model = SpectralDPMeans(random_state=0).fit(table[:, :2])
    assert model.n_clusters_ == k
    assert adjusted_rand_score(table[:, 2], model.labels_) > 0.9


def test_auto_of_a_kernel_is_the_price_of_dp_means_in_its_space():
    X, truth = make_blobs(300, centers=4, cluster_std=0.5, random_state=3)
    model = SpectralDPMeans(kernel="rbf", laplacian=None, random_state=0).fit(X)
    assert model.n_clusters_ == 4
    assert adjusted_rand_score(truth, model.labels_) == 1.0
    assert model.path_.penalty == model.penalty_
    assert (model.eigenvalues_ > model.penalty_).all()


@pytest.mark.filterwarnings("ignore:Graph is not fully connected")
def test_the_same_clusters_as_scikit_learn_told_k():
    X, _ = make_circles(400, noise=0.03, factor=0.5, random_state=1)
    model = SpectralDPMeans(random_state=0).fit(X)
    told = SpectralClustering(2, affinity="nearest_neighbors", random_state=0).fit(X)
    assert adjusted_rand_score(told.labels_, model.labels_) == 1.0


@pytest.mark.parametrize("laplacian", LAPLACIANS)
def test_rows_of_the_fit_are_predicted_as_fitted(laplacian):
    X = make_blobs(200, centers=3, cluster_std=0.8, random_state=1)[0]
    penalty = 0.5 if laplacian else 5.0
    settings = {"penalty": penalty, "laplacian": laplacian, "random_state": 0}
    model = SpectralDPMeans(kernel="rbf", gamma=0.3, **settings).fit(X)
    assert model.n_clusters_ > 1
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    kernel = rbf_kernel(X, gamma=0.3)
    given = SpectralDPMeans(kernel="precomputed", **settings).fit(kernel)
    np.testing.assert_array_equal(given.predict(kernel[:20]), model.labels_[:20])
    np.testing.assert_allclose(model._extend(kernel), model.embedding_, atol=1e-6)


def test_new_rows_follow_the_shape_of_their_cluster():
    X, moon = make_moons(600, noise=0.04, random_state=0)
    new, new_moon = make_moons(200, noise=0.04, random_state=1)
    model = SpectralDPMeans(random_state=0).fit(X)
    assert adjusted_rand_score(moon, model.labels_) == 1.0
    assert adjusted_rand_score(new_moon, model.predict(new)) == 1.0


def test_a_new_row_without_affinity_cannot_be_predicted():
    model = SpectralDPMeans(0.5, kernel="rbf", gamma=1.0).fit(clouds(0))
    with pytest.raises(ValueError, match="row 1 is like no row of the fit"):
        model.predict([[0.0, 0.0], [1e6, 0.0]])


def test_the_same_bits_for_any_number_of_threads():
    X = make_blobs(800, centers=5, cluster_std=0.8, random_state=0)[0]
    for kernel in ("nearest_neighbors", "rbf"):
        one, two = (
            SpectralDPMeans(0.7, kernel=kernel, random_state=0, n_jobs=n).fit(X) for n in (1, 2)
        )
        np.testing.assert_array_equal(one.labels_, two.labels_)
        np.testing.assert_array_equal(one.embedding_, two.embedding_)


def test_components_and_lonely_rows_are_clusters():
    block = np.ones((4, 4)) - np.eye(4)
    W = sp.block_diag([block, block, np.zeros((1, 1)), block], format="csr")
    for laplacian in GRAPHS:
        model = SpectralDPMeans(0.9, kernel="precomputed", laplacian=laplacian).fit(W)
        assert model.labels_.tolist() == [0] * 4 + [1] * 4 + [2] + [3] * 4
        np.testing.assert_allclose(model.eigenvalues_, 1.0)
    lonely = SpectralDPMeans(kernel="precomputed").fit(np.zeros((5, 5)))
    assert lonely.n_clusters_ == 5
    almost = sp.csr_array(([1.0, 1.0], ([0, 1], [1, 0])), (600, 600))  # too many to look over
    assert SpectralDPMeans(kernel="precomputed").fit(almost).n_clusters_ == 599
    star = sp.csr_array((np.ones(19), (np.zeros(19, dtype=int), np.arange(1, 20))), (20, 20))
    stars = sp.block_diag(
        [star + star.T] * 40, format="csr"
    )  # below 1, all eigenvalues are 0 or -1
    assert SpectralDPMeans(kernel="precomputed", random_state=0).fit(stars).n_clusters_ == 40


def test_a_penalty_above_everything_leaves_one_cluster():
    model = SpectralDPMeans(1e9, kernel="rbf", laplacian=None).fit(clouds(0))
    assert model.n_clusters_ == 1
    assert model.eigenvalues_.shape == (0,)
    assert model.embedding_.shape == (40, 0)
    assert set(model.predict(clouds(1))) == {0}


def test_the_history_of_the_rows_never_rises():
    X = make_blobs(900, centers=7, cluster_std=1.5, random_state=2)[0]
    model = SpectralDPMeans(0.9, assign="dp-means", random_state=0).fit(X)
    assert len(model.eigenvalues_) > 5
    history = model.objective_history_
    assert np.all(np.diff(history) <= 1e-9 * history[0])


def test_too_few_iterations_raise_a_warning():
    X = make_blobs(900, centers=7, cluster_std=3, random_state=2)[0]
    with pytest.warns(ConvergenceWarning, match="max_iter=1 passes"):
        model = SpectralDPMeans(0.8, max_iter=1, random_state=0).fit(X)
    assert not model.converged_


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"penalty": -1}, "penalty must be 'auto' or a number of at least 0; got -1"),
        ({"penalty": "most"}, "penalty must be 'auto' or a number"),
        ({"penalty": True}, "penalty must be"),
        ({"laplacian": "normed"}, "laplacian must be one of None, 'unnormalized'"),
        ({"assign": None}, "assign must be one of 'k-means', 'dp-means'; got None"),
        ({"n_neighbors": 0}, "n_neighbors must be an integer of at least 1; got 0"),
        ({"max_iter": 2.5}, "max_iter must be an integer"),
        ({"kernel": "triangle"}, "kernel must be .*'nearest_neighbors'.*got 'triangle'"),
    ],
)
def test_bad_parameters_are_named(parameters, message):
    with pytest.raises(ValueError, match=message):
        SpectralDPMeans(**parameters).fit(clouds(0))


def test_bad_matrices_are_named():
    W = rbf_kernel(clouds(0))
    model = SpectralDPMeans(kernel="precomputed")
    with pytest.raises(ValueError, match="square; got 40 rows and 39 columns"):
        model.fit(W[:, 1:])
    with pytest.raises(ValueError, match="square; got 40 rows and 39 columns"):
        model.fit(sp.csr_array(W[:, 1:]))
    skew = W.copy()
    skew[3, 7] += 1
    for matrix in (skew, sp.csr_array(skew)):
        with pytest.raises(ValueError, match=r"symmetric; row (3|7), column (3|7) has"):
            model.fit(matrix)
    negative = W.copy()
    negative[2, 5] = negative[5, 2] = -1
    for matrix in (negative, sp.csr_array(negative)):
        with pytest.raises(ValueError, match="at least 0; row 2, column 5 has -1"):
            model.fit(matrix)
    SpectralDPMeans(1.0, kernel="precomputed", laplacian=None).fit(negative)
    with pytest.raises(ValueError, match="X contains NaN: row 4, column 1"):
        SpectralDPMeans().fit(np.where(np.arange(20).reshape(10, 2) == 9, np.nan, 1.0))
