"""Draws say together what each of them says, and bad draws are refused in one line."""

import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.datasets import make_blobs

from countless import DPMixture
from countless._labels import number_by_appearance
from countless._mcmc.posterior import Posterior, diagnose

draws_of_labels = st.tuples(st.integers(1, 3), st.integers(1, 5), st.integers(1, 9)).flatmap(
    lambda shape: arrays(np.int64, shape, elements=st.integers(0, 9))
)


def posterior_of(labels):
    labels = np.asarray(labels)
    return Posterior(labels, np.zeros(labels.shape[:2]))


def random_posterior(n_rows=40, n_chains=2, n_draws=30, k=4):
    random = np.random.default_rng(0)
    labels = random.integers(0, k, size=(n_chains, n_draws, n_rows))
    return Posterior(labels, random.normal(size=(n_chains, n_draws)), {"alpha": np.ones((2, 30))})


@settings(max_examples=25)
@given(labels=draws_of_labels)
def test_every_draw_is_numbered_by_appearance(labels):
    posterior = posterior_of(labels)
    assert posterior.labels.dtype == np.uint8
    for chain, draw in np.ndindex(labels.shape[:2]):
        names, numbers = number_by_appearance(labels[chain, draw])
        np.testing.assert_array_equal(posterior.labels[chain, draw], numbers)
        assert posterior.n_clusters[chain, draw] == len(names)


@settings(max_examples=25)
@given(labels=draws_of_labels, seed=st.integers(0, 99))
def test_similarity_is_the_share_of_draws(labels, seed):
    posterior = posterior_of(labels)
    plain = (labels[..., :, None] == labels[..., None, :]).mean(axis=(0, 1))
    np.testing.assert_allclose(posterior.similarity(), plain, rtol=1e-6)
    random = np.random.default_rng(seed)
    rows, columns = (random.integers(-labels.shape[2], labels.shape[2], 4) for _ in range(2))
    np.testing.assert_allclose(posterior.similarity(rows), plain[rows], rtol=1e-6)
    np.testing.assert_allclose(
        posterior.similarity(rows, columns), plain[np.ix_(rows, columns)], rtol=1e-6
    )


def test_types_grow_with_the_number_of_clusters():
    assert posterior_of(np.arange(256)[None, None]).labels.dtype == np.uint8
    wide = posterior_of(np.arange(257)[None, None])
    assert wide.labels.dtype == np.uint16
    np.testing.assert_array_equal(wide.labels[0, 0], np.arange(257))


def test_memory_of_all_pairs_is_stated_and_bounded(monkeypatch, caplog):
    posterior = random_posterior()
    with caplog.at_level("INFO", logger="countless"):
        posterior.similarity()
    assert "the similarity of 40 rows with 40: 6,400 bytes" in caplog.text
    monkeypatch.setattr("countless._memory.available_memory", lambda: 6_399)
    with pytest.raises(MemoryError, match=r"needs 6,400 bytes, .* ask for some rows or columns"):
        posterior.similarity()
    assert posterior.similarity([3]).shape == (1, 40)


def test_the_range_of_k_is_the_shortest():
    counts = {1: 2, 2: 10, 3: 60, 4: 20, 6: 8}
    draws = [[*range(k), *[0] * (6 - k)] for k, times in counts.items() for _ in range(times)]
    posterior = posterior_of([draws])
    np.testing.assert_allclose(
        posterior.n_clusters_distribution(), [0, 0.02, 0.1, 0.6, 0.2, 0, 0.08]
    )
    assert posterior.n_clusters_interval(0.6) == (3, 3)
    assert posterior.n_clusters_interval(0.61) == (3, 4)
    assert posterior.n_clusters_interval(0.9) == (2, 4)
    assert posterior.n_clusters_interval() == (2, 6)
    assert posterior.n_clusters_interval(1) == (1, 6)
    for prob in (0, 1.1, np.nan):
        with pytest.raises(ValueError, match="prob must be above 0 and at most 1"):
            posterior.n_clusters_interval(prob)


def test_diagnostics_tell_chains_that_agree_from_those_that_do_not():
    random = np.random.default_rng(0)
    draws = random.normal(size=(4, 500))
    together, apart = diagnose(draws), diagnose(draws + np.array([[0], [0], [0], [2]]))
    assert 0.99 < together.r_hat < 1.01
    assert 1500 < together.effective_size < 2500
    assert apart.r_hat > 1.2
    assert apart.effective_size < 50
    walk = diagnose(np.cumsum(draws, axis=1))
    assert walk.effective_size < 50


def test_diagnostics_where_there_is_nothing_to_compare():
    assert np.isnan(diagnose(np.zeros((1, 9))).r_hat)
    assert diagnose(np.zeros((1, 9))).effective_size == 9
    assert np.isnan(diagnose(np.random.default_rng(0).normal(size=(1, 99))).r_hat)
    assert np.isnan(diagnose(np.zeros((4, 3)))).all()
    assert diagnose(np.repeat([[1.0, 2.0], [2.0, 1.0]], 4, axis=1)).r_hat == np.inf  # halves apart
    assert random_posterior().diagnostics().keys() == {"n_clusters", "log_joint", "alpha"}


def test_parameters_of_several_numbers_have_no_diagnostic():
    wide = {"alpha": np.ones((1, 5)), "weights": np.ones((1, 5, 2))}
    found = Posterior(np.zeros((1, 5, 3), int), np.zeros((1, 5)), wide).diagnostics()
    assert found.keys() == {"n_clusters", "log_joint", "alpha"}


def test_arviz_reads_the_draws(monkeypatch):
    posterior = random_posterior()
    tree = posterior.to_arviz()
    np.testing.assert_array_equal(tree["posterior"]["labels"], posterior.labels)
    np.testing.assert_array_equal(tree["posterior"]["alpha"], posterior.alpha)
    np.testing.assert_array_equal(tree["sample_stats"]["lp"], posterior.log_joint)
    monkeypatch.setitem(sys.modules, "arviz_base", None)
    with pytest.raises(ImportError, match=r"pip install 'countless\[bayes\]'"):
        posterior.to_arviz()


@pytest.mark.parametrize(
    ("labels", "log_joint", "parameters", "says"),
    [
        ([[0, 1]], [[0.0]], {}, r"labels must have the shape .* got \(1, 2\)"),
        ([[[0.5, 1.0]]], [[0.0]], {}, "labels must be integers; got float64"),
        ([[[0, -1]]], [[0.0]], {}, "labels must be from 0 to 65536; got -1"),
        ([[[0, 65537]]], [[0.0]], {}, "labels must be from 0 to 65536; got 65537"),
        ([[[0, 1]]], [0.0], {}, r"log_joint must begin with the chains and draws \(1, 1\)"),
        ([[[0, 1]]], [[[0.0]]], {}, "log_joint must be one number a draw"),
        ([[[0, 1]]], [[0.0]], {"alpha": [[1.0, 2.0]]}, "alpha must begin with the chains"),
    ],
)
def test_bad_draws_are_refused(labels, log_joint, parameters, says):
    with pytest.raises(ValueError, match=says):
        Posterior(labels, log_joint, parameters)


def test_rows_and_labels_that_do_not_belong_are_refused():
    posterior = random_posterior()
    with pytest.raises(ValueError, match="rows names row 40, and there are 40 rows"):
        posterior.similarity([0, 40])
    with pytest.raises(ValueError, match="columns must be row numbers"):
        posterior.similarity(None, [0.5])
    with pytest.raises(ValueError, match="labels has 2 labels, and the draws have 40 rows"):
        posterior.expected_loss([0, 1])
    with pytest.raises(AttributeError, match="has no alpha"):
        _ = posterior_of([[[0, 1]]]).alpha


def test_a_mixture_answers_with_its_point_estimate():
    X, _ = make_blobs(90, centers=3, cluster_std=0.5, random_state=1)
    mixture = DPMixture(n_sweeps=30, n_chains=1, random_state=0).fit(X)
    posterior = mixture.posterior_
    assert posterior.expected_loss(mixture.labels_) <= min(
        posterior.expected_loss(draw) for draw in posterior.labels.reshape(-1, 90)
    )
    assert mixture.n_clusters_ == 3
