"""AffinityPropagation: scikit-learn's answers, its own, and what it refuses."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.stats import multivariate_normal as normal
from sklearn.cluster import AffinityPropagation as SklearnAffinityPropagation
from sklearn.datasets import load_iris, make_blobs
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score
from sklearn.metrics.pairwise import cosine_similarity
from sklearn.neighbors import kneighbors_graph

from countless import AffinityPropagation
from countless._exemplar.clustering import Problem
from countless._exemplar.max_product import _Watch
from countless._exemplar.similarity import full_edges
from countless._exemplar.weights import weights_of
from countless.datasets import sample_exemplar_model
from countless.priors import DirichletProcess, FiniteDirichlet, Gamma, SizePrior
from countless.serialize.model_file import load_model, save_model


def blobs(n=120, seed=0, **settings):
    return make_blobs(n, random_state=seed, **{"centers": 5, "cluster_std": 0.8} | settings)[0]


@pytest.mark.parametrize("damping", [0.5, 0.7, 0.9])
def test_clusters_equal_those_of_scikit_learn_where_it_converges(damping):
    compared = 0
    sets = [blobs(90, seed, n_features=2 + seed % 3) for seed in range(10)]
    for X in [*sets, load_iris().data]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            theirs = SklearnAffinityPropagation(damping=damping, random_state=0).fit(X)
            ours = AffinityPropagation(damping=damping, random_state=0).fit(X)
        if theirs.n_iter_ == theirs.max_iter:
            continue
        compared += 1
        exemplars = theirs.cluster_centers_indices_
        np.testing.assert_array_equal(
            ours.cluster_centers_indices_[ours.labels_], exemplars[theirs.labels_]
        )
        assert ours.n_iter_ == theirs.n_iter_
        np.testing.assert_array_equal(
            ours.cluster_centers_indices_[ours.predict(X + 0.01)],
            exemplars[theirs.predict(X + 0.01)],
        )
    assert compared >= 9


def test_asymmetric_similarities_are_read_as_scikit_learn_does():
    S = np.random.default_rng(0).normal(-4, 1, (60, 60))
    preference = np.random.default_rng(1).normal(-9, 1, 60)
    settings = {"affinity": "precomputed", "preference": preference, "damping": 0.8}
    theirs = SklearnAffinityPropagation(random_state=0, **settings).fit(S)
    ours = AffinityPropagation(random_state=0, **settings).fit(S)
    np.testing.assert_array_equal(
        ours.cluster_centers_indices_[ours.labels_],
        theirs.cluster_centers_indices_[theirs.labels_],
    )
    # New rows are told by their similarities to those of the fit.
    nearest = S[:, ours.cluster_centers_indices_].argmax(axis=1)
    np.testing.assert_array_equal(ours.predict(S), nearest)


def test_oscillating_messages_are_damped_more():
    X = blobs(150, 7, centers=6, n_features=3, cluster_std=1.0)
    theirs = SklearnAffinityPropagation(random_state=0)
    with pytest.warns(ConvergenceWarning):
        theirs.fit(X)
    ours = AffinityPropagation(random_state=0).fit(X)
    assert ours.converged_
    assert ours.damping_ > 0.5
    assert ours.n_clusters_ == 5


def test_oscillations_with_a_period_are_detected():
    S = np.eye(3)
    watch = _Watch(Problem(full_edges(S), weights_of(None, 3), lambda f, items: None), 0.5)
    for recent, swings in (
        ([1, 2] * 30, True),
        ([1, 2, 3, 3, 4] * 12, True),
        ([1, 2] * 29, False),  # not watched for long enough
        ([1, 2] * 29 + [1, 1], False),
        (list(range(60)), False),
    ):
        watch.recent, watch.unchanged = recent, 1
        assert watch.swings() == swings
    watch.recent, watch.unchanged = [1] * 60, 60
    assert not watch.swings()


def test_beliefs_are_extrapolated_to_their_limit():
    problem = Problem(full_edges(np.eye(3)), weights_of(DirichletProcess(), 3), lambda *_: None)
    watch = _Watch(problem, 0.9)
    watch._ahead(np.array([1.0, 1.0, -2.0]))
    # The steps to come are 0.9, 0.81, ... times the last: nine times it in all.
    ahead = watch._ahead(np.array([1.0, 1.1, -1.5]))
    np.testing.assert_allclose(ahead, [1.0, 2.0, 3.0])


def test_two_exemplars_by_hand():
    X = [[1, 2], [1, 4], [1, 0], [4, 2], [4, 4], [4, 0]]
    model = AffinityPropagation(random_state=5).fit(X)
    assert model.labels_.tolist() == [0, 0, 0, 1, 1, 1]
    assert model.cluster_centers_.tolist() == [[1, 2], [4, 2]]
    assert model.predict([[0, 0], [4, 4]]).tolist() == [0, 1]
    # Four rows at squared distance 4 and two preferences, the median of all 36 similarities.
    assert model.log_joint_ == pytest.approx(-4 * 4 + 2 * model.preference_)


def test_without_convergence_results_are_valid_and_a_warning_is_raised():
    X = blobs(100, 1, centers=8)
    model = AffinityPropagation(max_iter=3, random_state=0)
    with pytest.warns(ConvergenceWarning, match="best seen"):
        model.fit(X)
    assert not model.converged_
    assert model.n_iter_ == 12
    exemplars = model.cluster_centers_indices_
    np.testing.assert_array_equal(model.labels_[exemplars], np.arange(len(exemplars)))
    full = AffinityPropagation(random_state=0).fit(X)
    assert model.log_joint_ >= full.log_joint_ - 0.1 * abs(full.log_joint_)


def test_refining_never_loses():
    for seed in range(4):
        X = blobs(150, seed, centers=6, n_features=3, cluster_std=1.5)
        plain = AffinityPropagation(random_state=0).fit(X)
        refined = AffinityPropagation(refine=True, random_state=0).fit(X)
        assert refined.log_joint_ >= plain.log_joint_


def test_with_a_prior_refining_begins_with_moves_and_takes_fewer_iterations():
    X = blobs(150, 0, centers=4, n_features=2, cluster_std=0.3)
    settings = {"affinity": "gaussian", "noise_variance": 1.0, "random_state": 0}
    moved = [
        AffinityPropagation("dirichlet-process", solver="icm", init=init, **settings).fit(X)
        for init in ("one", "singletons")
    ]
    plain, refined = (
        AffinityPropagation("dirichlet-process", damping=0.95, refine=refine, **settings).fit(X)
        for refine in (False, True)
    )
    assert refined.log_joint_ >= max(model.log_joint_ for model in [*moved, plain]) - 1e-9
    assert refined.n_iter_ < plain.n_iter_


def test_the_prior_changes_sizes_and_gaussian_similarities_are_log_densities():
    X, truth, _ = sample_exemplar_model(
        100, DirichletProcess(1.0), noise_variance=0.05, random_state=0
    )
    model = AffinityPropagation(
        DirichletProcess(1.0),
        affinity="gaussian",
        noise_variance=0.05,
        base_variance=1.0,
        base_mean=0.0,
        random_state=0,
    ).fit(X)
    density = sum(
        normal(X[exemplar] if row != exemplar else [0, 0], 0.05 if row != exemplar else 1.0).logpdf(
            X[row]
        )
        for row, exemplar in enumerate(model.cluster_centers_indices_[model.labels_])
    )
    sizes = model.cluster_sizes_
    prior = DirichletProcess(1.0).log_prob(model.labels_) - np.log(sizes).sum()
    assert model.log_joint_ == pytest.approx(density + prior, rel=1e-9)
    assert adjusted_rand_score(truth, model.labels_) > 0.8
    plain = AffinityPropagation(affinity="gaussian", noise_variance=0.05, random_state=0).fit(X)
    assert plain.n_clusters_ > model.n_clusters_
    named = AffinityPropagation("dirichlet-process", preference=model.preference_)
    named.set_params(affinity="gaussian", noise_variance=0.05, random_state=0)
    np.testing.assert_array_equal(named.fit_predict(X), model.labels_)


def test_new_rows_weigh_sizes_under_a_prior():
    X = np.concatenate([np.linspace(-0.2, 0.2, 20), [3.0, 3.1]])[:, None]
    prior = DirichletProcess(1.0)
    settings = {"affinity": "gaussian", "noise_variance": 0.25, "random_state": 0}
    model = AffinityPropagation(prior, **settings).fit(X)
    plain = AffinityPropagation(affinity="precomputed", preference=-5.0, random_state=0)
    plain.fit(-((X - X.T) ** 2))  # messages swing here, and end in one cluster unless refined
    assert model.cluster_sizes_.tolist() == plain.cluster_sizes_.tolist() == [20, 2]
    x = np.linspace(1, 2, 50)[:, None]
    centers = model.cluster_centers_.ravel()
    added = np.log([20.0, 2.0]) - np.log([21 / 20, 3 / 2])
    expected = added - (x - centers) ** 2 / 0.5
    np.testing.assert_array_equal(model.predict(x), expected.argmax(axis=1))
    similarity = -((x - X.T) ** 2)
    assert plain.predict(similarity).sum() > model.predict(x).sum()


@pytest.mark.parametrize("init", ["one", "singletons"])
def test_icm_from_one_cluster_and_from_singletons(init):
    X = blobs(100, 3, cluster_std=0.3)
    settings = {"affinity": "gaussian", "noise_variance": 0.2, "random_state": 0}
    model = AffinityPropagation("dirichlet-process", solver="icm", init=init, **settings).fit(X)
    assert model.converged_
    assert model.n_clusters_ == 5
    short = AffinityPropagation("dirichlet-process", solver="icm", init=init, **settings)
    with pytest.warns(ConvergenceWarning, match="1 sweeps"):
        short.set_params(max_iter=1).fit(X)
    assert short.log_joint_ <= model.log_joint_


def test_auto_finds_the_clusters_and_none_in_noise():
    assert (
        AffinityPropagation(preference="auto", random_state=0).fit(blobs(150, 4)).n_clusters_ == 5
    )
    noise = np.random.default_rng(0).uniform(size=(150, 2))
    model = AffinityPropagation(preference="auto", random_state=0).fit(noise)
    assert model.n_clusters_ == model.path_.n_clusters == 1


def test_auto_does_not_see_a_shift_or_scale_of_similarities():
    X = blobs(100, 2, cluster_std=0.5)
    S = -np.square(X[:, None] - X).sum(axis=2)
    model = AffinityPropagation(preference="auto", affinity="precomputed", random_state=0).fit(S)
    moved = AffinityPropagation(preference="auto", affinity="precomputed", random_state=0)
    np.testing.assert_array_equal(moved.fit_predict(3 * S + 7), model.labels_)
    highest = S[~np.eye(100, dtype=bool)].max()
    assert moved.preference_ - (3 * highest + 7) == pytest.approx(
        3 * (model.preference_ - highest), rel=1e-6
    )


@pytest.mark.parametrize("settings", [{"refine": True}, {"solver": "icm"}, {"max_iter": 2}])
def test_units_do_not_matter(settings):
    X = blobs(80, 3)
    S = -np.square(X[:, None] - X).sum(axis=2)
    for scale in (1e-12, 1e9):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            one, other = (
                AffinityPropagation(affinity="precomputed", random_state=0, **settings).fit(matrix)
                for matrix in (S, scale * S)
            )
        np.testing.assert_array_equal(one.labels_, other.labels_)


def test_sparse_similarities():
    X = blobs(150, 5, cluster_std=0.5)
    graph = kneighbors_graph(X, 25, mode="distance")
    graph.data = -(graph.data**2)
    settings = {"affinity": "precomputed", "preference": -40.0, "random_state": 0}
    sparse = AffinityPropagation(**settings).fit(graph)
    full = AffinityPropagation(**settings).fit(-np.square(X[:, None] - X).sum(axis=2))
    assert sparse.n_clusters_ >= full.n_clusters_
    exemplar = sparse.cluster_centers_indices_[sparse.labels_]
    moved = np.flatnonzero(exemplar != np.arange(150))
    assert np.all(graph.toarray()[moved, exemplar[moved]] < 0)  # each along a stored edge
    complete = sp.csr_array(-np.square(X[:, None] - X).sum(axis=2) - 1e-300)
    np.testing.assert_array_equal(
        AffinityPropagation(**settings).fit(complete).labels_, full.labels_
    )
    prior = AffinityPropagation(DirichletProcess(), **settings).fit(graph)
    assert prior.n_clusters_ <= sparse.n_clusters_
    reach = np.where(graph.toarray() < 0, graph.toarray(), -np.inf)
    best = reach[:, sparse.cluster_centers_indices_].argmax(axis=1)
    np.testing.assert_array_equal(sparse.predict(graph[moved]), best[moved])
    with pytest.raises(ValueError, match="row 1 of X can join no cluster"):
        sparse.predict(sp.vstack([graph[moved[:1]], sp.csr_array((1, 150))]).tocsr())


def test_float32_and_callables():
    X = blobs(100, 6)
    one, two = (
        AffinityPropagation(random_state=0, preference=-20).fit(X.astype(dtype))
        for dtype in (np.float32, np.float64)
    )
    np.testing.assert_array_equal(one.labels_, two.labels_)
    assert one.cluster_centers_.dtype == np.float32
    direct = AffinityPropagation(affinity=cosine_similarity, preference=0.5, random_state=0).fit(X)
    S = cosine_similarity(X)
    given = AffinityPropagation(affinity="precomputed", preference=0.5, random_state=0).fit(S)
    np.testing.assert_array_equal(direct.labels_, given.labels_)
    np.testing.assert_array_equal(direct.predict(X), given.predict(S))


@pytest.mark.parametrize(("preference", "n_clusters"), [(-2.0, 1), (-0.5, 4), (-1.0, 1)])
def test_equal_similarities(preference, n_clusters):
    model = AffinityPropagation(affinity="precomputed", preference=preference)
    assert model.fit(np.full((4, 4), -1.0)).n_clusters_ == n_clusters


def test_one_row_and_equal_rows():
    assert AffinityPropagation().fit([[1.0, 2.0]]).n_clusters_ == 1
    for seed in range(5):
        for settings in ({}, {"solver": "icm"}, {"solver": "icm", "preference": -1.0}):
            model = AffinityPropagation(random_state=seed, **settings)
            assert model.fit(np.ones((6, 2))).n_clusters_ == 1
            assert model.set_params(preference=1.0).fit(np.ones((6, 2))).n_clusters_ == 6
    X = np.repeat(blobs(10, 0, cluster_std=0.1), 8, axis=0)
    model = AffinityPropagation(random_state=0).fit(X)
    assert model.converged_
    assert (model.labels_.reshape(10, 8) == model.labels_[::8, None]).all()


def test_a_prior_separates_equal_rows_too():
    S = np.zeros((6, 6))
    for prior, preference, sizes in (
        (FiniteDirichlet(1.0, 3), 5.0, 3),
        (SizePrior(lambda size: np.where(size <= 2, 0.0, -np.inf)), -5.0, 3),
        ("dirichlet-process", -9.0, 1),
    ):
        model = AffinityPropagation(prior, affinity="precomputed", preference=preference)
        assert model.fit(S).n_clusters_ == sizes
        assert np.isfinite(model.log_joint_)


def test_rows_far_from_zero_keep_their_differences():
    X = blobs(60, 2)
    near = AffinityPropagation(random_state=0).fit(X)
    far = AffinityPropagation(random_state=0).fit(X + 1e9)
    np.testing.assert_array_equal(far.labels_, near.labels_)
    np.testing.assert_array_equal(far.predict(X + 1e9), near.predict(X))
    alone = np.vstack([X, [[1e12, 0.0]]])  # a row far from the others changes nothing for them
    preference = near.preference_
    apart = AffinityPropagation(preference=preference, random_state=0).fit(alone)
    np.testing.assert_array_equal(apart.labels_[:60], near.labels_)


def test_functions_are_checked_for_new_rows_too():
    model = AffinityPropagation(affinity=lambda A, B: -np.abs(A[:, :1] - B[:, 0]))
    model.fit(blobs(20, 0))
    model.affinity = lambda A, B: np.zeros(len(B))
    with pytest.raises(ValueError, match="it returned float64 of shape"):
        model.predict(np.ones((3, 2)))
    model.affinity = lambda A, B: np.full((len(A), len(B)), np.nan)
    with pytest.raises(ValueError, match="row 0 of X can join no cluster"):
        model.predict(np.ones((3, 2)))


def test_saved_models_predict_the_same(tmp_path):
    X = blobs(80, 1)
    model = AffinityPropagation("dirichlet-process", affinity="gaussian", noise_variance=1.0)
    model.set_params(random_state=0).fit(X)
    save_model(tmp_path / "model.zip", model)
    loaded = load_model(tmp_path / "model.zip").estimator
    np.testing.assert_array_equal(loaded.predict(X + 0.1), model.predict(X + 0.1))
    assert loaded.n_clusters_ == model.n_clusters_


def test_sizes_can_be_capped():
    X = blobs(60, 0, centers=2, cluster_std=0.3)
    prior = SizePrior(lambda size: np.where(size <= 20, 0.0, -np.inf))
    for solver in ("max-product", "icm"):
        model = AffinityPropagation(
            prior, affinity="gaussian", noise_variance=0.3, solver=solver, random_state=0
        ).fit(X)
        assert model.cluster_sizes_.max() <= 20
        assert np.isfinite(model.log_joint_)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"prior": "poisson"}, "prior must be None, 'dirichlet-process'"),
        ({"prior": DirichletProcess(Gamma(1.0, 1.0))}, "draw_parameters"),
        ({"damping": 1.0}, "damping must be from 0 to below 1; got 1.0"),
        ({"affinity": "manhattan"}, "affinity must be one of 'euclidean'"),
        ({"affinity": "gaussian"}, "needs a noise_variance"),
        ({"affinity": "gaussian", "noise_variance": -1}, "noise_variance must be a positive"),
        (
            {"affinity": "gaussian", "noise_variance": 1, "base_mean": [1.0, 2.0, 3.0]},
            "one for each of 2 columns",
        ),
        ({"affinity": lambda A, B: np.ones(3)}, "it returned"),
        ({"affinity": lambda A, B: np.full((len(A), len(B)), np.nan)}, "row 0 and row 0 is nan"),
        ({"affinity": "precomputed"}, "must be square; got 6 rows and 2 columns"),
        ({"solver": "gibbs"}, "solver must be one of 'max-product', 'icm'"),
        ({"init": "two"}, "init must be one of"),
        ({"preference": "high"}, "preference must be a number or several; got 'high'"),
        ({"preference": {}}, "preference must be a number"),
        (
            {"affinity": "gaussian", "noise_variance": 1, "base_mean": "mean"},
            "base_mean must be a number",
        ),
        ({"affinity": lambda A, B: np.full((len(A), len(B)), 1j)}, "it returned complex128"),
        ({"preference": [1.0, 2.0]}, "one for each of 6 rows"),
        ({"preference": np.r_[1.0, np.nan, np.ones(4)]}, "that of row 1 is not"),
        ({"preference": "auto", "prior": "uniform"}, "preference='auto' is for prior=None"),
        ({"max_iter": 0}, "max_iter must be an integer of at least 1"),
    ],
)
def test_bad_input_is_refused(settings, message):
    X = np.arange(12.0).reshape(6, 2)
    with pytest.raises(ValueError, match=message):
        AffinityPropagation(**settings).fit(X)


def test_auto_refuses_sparse_similarities():
    model = AffinityPropagation(affinity="precomputed", preference="auto")
    with pytest.raises(ValueError, match="needs full similarities"):
        model.fit(-sp.eye_array(5, format="csr"))


def test_missing_values_are_named():
    X = np.ones((4, 2))
    X[2, 1] = np.nan
    with pytest.raises(ValueError, match="row 2, column 1"):
        AffinityPropagation().fit(X)
