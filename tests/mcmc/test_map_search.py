"""The search for the most probable partition, against enumeration, and on tables that repeat."""

import numpy as np
import pytest
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score

from countless import DPMixture
from countless._mcmc.gibbs import partition_of
from countless._mcmc.map_search import most_probable_partition
from countless._mcmc.partition_chain import log_joint
from countless.models import DiagonalGaussian, Gaussian
from countless.priors import DirichletProcess, FiniteDirichlet

X, TRUE = make_blobs(90, centers=[[0, 0], [8, 0], [0, 8]], random_state=0)


def partitions(n):
    """Return the labels of all partitions of n rows."""
    found = [[0]]
    for _ in range(n - 1):
        found = [[*labels, c] for labels in found for c in range(max(labels) + 2)]
    return np.array(found)


@pytest.mark.parametrize("model", [Gaussian(), DiagonalGaussian()])
def test_the_maximum_of_all_partitions_is_mostly_found(model):
    prior, hits = DirichletProcess(1.0), 0
    for seed in range(20):
        table = np.random.default_rng(seed).normal(size=(6, 2)) * 3
        bound = model.bind(table)
        rows = bound.rows(table)
        joints = [
            log_joint(bound, prior, prior, partition_of(bound, rows, labels))
            for labels in partitions(6)
        ]
        found = most_probable_partition(bound, prior, rows, fit_hyper=False)
        assert found.log_joint <= max(joints) + 1e-8
        hits += found.log_joint > max(joints) - 1e-6
    assert hits >= 15


def test_the_objective_never_falls_and_order_and_seed_do_not_matter():
    one = DPMixture(inference="map", random_state=0).fit(X)
    assert (one.n_clusters_, one.converged_) == (3, True)
    assert adjusted_rand_score(TRUE, one.labels_) == 1.0
    assert np.all(np.diff(one.objective_history_) >= -1e-6)
    order = np.random.default_rng(1).permutation(len(X))
    other = DPMixture(inference="map", random_state=5).fit(X[order])
    assert adjusted_rand_score(one.labels_[order], other.labels_) == 1.0
    moved = DPMixture(inference="map").fit(100.0 * X - 7.0)
    assert adjusted_rand_score(one.labels_, moved.labels_) == 1.0
    assert np.array_equal(one.predict(X), one.labels_)
    assert np.isfinite(one.score_samples(X)).all()


@pytest.mark.parametrize(
    ("model", "table"),
    [
        ("bernoulli", np.repeat([[0, 0, 0, 1, 1, 1], [1, 1, 1, 0, 0, 0]], 20, axis=0)),
        ("categorical", np.repeat([["a", "b", "a"], ["c", "d", "c"]], 20, axis=0)),
        ("poisson", np.repeat([[1, 30], [30, 1]], 20, axis=0)),
        ("multinomial", np.repeat([[9, 1, 0], [0, 1, 9]], 20, axis=0)),
        ("diagonal", np.where(X[:60] == X[3, 0], np.nan, X[:60])),
    ],
)
def test_every_model_is_searched(model, table):
    found = DPMixture(model, inference="map").fit(table)
    assert found.converged_
    assert found.n_clusters_ >= 2


def test_no_more_clusters_than_the_prior_allows():
    found = DPMixture(prior=FiniteDirichlet(1.0, 2), inference="map").fit(X)
    assert found.n_clusters_ == 2


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("inference", ["mcmc", "map", "variational"])
@pytest.mark.parametrize("kind", ["constant", "integers", "equal", "repeated", "collinear"])
def test_values_that_repeat_break_nothing(kind, inference):
    random = np.random.default_rng(0)
    table = {
        "constant": np.column_stack([X, np.full(len(X), 3.0)]),
        "integers": random.integers(0, 5, size=(80, 3)).astype(float),
        "equal": np.ones((30, 2)),
        "repeated": np.repeat(X[:9], 8, axis=0),
        "collinear": np.column_stack([X, X.sum(axis=1)]),
    }[kind]
    settings = {"n_chains": 1, "n_sweeps": 20} if inference == "mcmc" else {}
    found = DPMixture(inference=inference, random_state=0, **settings).fit(table)
    assert np.isfinite(found.posterior_.log_joint).all()
    assert np.isfinite(found.score_samples(table)).all()


def test_an_unknown_inference_is_refused():
    with pytest.raises(ValueError, match="must be one of 'mcmc', 'map', 'variational'; got 'vb'"):
        DPMixture(inference="vb").fit(X)
