"""HDPMixture: what it says of groups, of new rows, and of input that it cannot take."""

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

from countless import HDPMixture
from countless._errors import InputError
from countless._mcmc.hdp.predictive import mean_shares, shares
from countless._mcmc.hdp.state import Concentrations, HDPState, PriorSpec
from countless.models import Gaussian
from countless.priors import Beta, Gamma, PitmanYor
from countless.serialize.model_file import load_model, save_model

CENTERS = np.array([[0.0, 0.0], [9.0, 0.0], [0.0, 9.0]])
TRUTH = np.repeat([0, 1, 1, 2, 2, 0], 15)
GROUPS = np.repeat(["b", "a", "c"], 30)
X = CENTERS[TRUTH] + np.random.RandomState(3).standard_normal((90, 2))
FAST = {"n_chains": 2, "n_sweeps": 24, "random_state": 0}


@pytest.fixture(scope="module")
def fitted():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return HDPMixture(**FAST).fit(X, groups=GROUPS)


def test_global_and_local_clusters(fitted):
    assert adjusted_rand_score(TRUTH, fitted.labels_) > 0.95
    assert fitted.n_clusters_ == 3
    assert fitted.groups_.tolist() == ["b", "a", "c"]
    assert fitted.n_local_clusters_.tolist() == [2, 2, 2]
    uses = [[True, True, False], [False, True, True], [True, False, True]]
    assert fitted.group_clusters_.tolist() == uses
    for name in fitted.groups_:
        rows = name == GROUPS
        local = fitted.local_labels_[rows]
        assert local[0] == 0
        assert adjusted_rand_score(local, fitted.labels_[rows]) == 1
    assert fitted.posterior_.parameters.keys() == {"alpha", "gamma"}
    assert fitted.posterior_.labels.shape == (2, 12, 90)


def test_threads_do_not_change_the_draws(fitted):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        again = HDPMixture(**FAST, n_jobs=2).fit(X, groups=GROUPS)
    np.testing.assert_array_equal(again.posterior_.labels, fitted.posterior_.labels)
    np.testing.assert_array_equal(again.posterior_.log_joint, fitted.posterior_.log_joint)
    np.testing.assert_array_equal(again.labels_, fitted.labels_)
    np.testing.assert_array_equal(again.group_weights_, fitted.group_weights_)


def test_groups_decide_where_rows_do_not(fitted):
    between = np.array([[4.5, 0.2], [4.5, 0.2], [4.5, 0.2]])
    probabilities = fitted.predict_proba(between, groups=["a", "c", "elsewhere"])
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)
    assert probabilities[0].argmax() == 1  # a has no cluster 0
    assert probabilities[1].argmax() == 0  # c has no cluster 1
    assert probabilities[0, 1] > probabilities[2, 1] > probabilities[1, 1]
    assert fitted.predict(between, groups=["a", "c", "d"])[:2].tolist() == [1, 0]
    np.testing.assert_array_equal(fitted.predict_proba(between)[2], probabilities[2])
    np.testing.assert_array_equal(fitted.predict(X, groups=GROUPS), fitted.labels_)


def test_densities_of_known_and_new_groups(fitted):
    here = fitted.score_samples(CENTERS, groups=["b", "b", "b"])
    assert here[0] > here[2] + 2
    assert here[1] > here[2] + 2
    new = fitted.score_samples(CENTERS)
    assert np.ptp(new) < 1.5
    assert fitted.score(X, groups=GROUPS) > fitted.score(X)
    drawn = fitted.sample(200, group="a", random_state=0)
    assert drawn.shape == (200, 2)
    near = np.square(drawn[:, None] - CENTERS).sum(axis=2).argmin(axis=1)
    assert np.mean(near == 0) < 0.1


def test_densities_sum_to_one():
    rows = np.array([[0.0], [0.2], [3.0], [3.3]])
    mixture = HDPMixture(n_chains=1, n_sweeps=20, random_state=0).fit(rows, groups=[0, 0, 1, 1])
    angle = np.linspace(-np.pi / 2, np.pi / 2, 4001)[1:-1]  # tails are heavy: the whole line
    for group in (0, 1, 7):
        log_density = mixture.score_samples(np.tan(angle)[:, None], groups=np.full(3999, group))
        area = np.trapezoid(np.exp(log_density) / np.cos(angle) ** 2, angle)
        assert area == pytest.approx(1, abs=1e-3)


def test_saved_mixtures_answer_as_before(fitted, tmp_path):
    save_model(tmp_path / "model.zip", fitted)
    again = load_model(tmp_path / "model.zip").estimator
    groups = np.where(np.arange(len(X)) % 5 == 0, "elsewhere", GROUPS)
    expected = fitted.predict_proba(X, groups=groups)
    np.testing.assert_array_equal(again.predict_proba(X, groups=groups), expected)
    densities = fitted.score_samples(X, groups=groups)
    np.testing.assert_allclose(again.score_samples(X, groups=groups), densities, rtol=1e-12)
    assert again.n_clusters_ == 3
    fitted_by_hand = HDPMixture(Gaussian(scale=[[2.0, 1.0], [1.0, 2.0]]), **FAST | {"n_chains": 1})
    fitted_by_hand.fit(X, groups=GROUPS)
    with pytest.raises(InputError, match="HDPMixture has no state that a model file can hold"):
        save_model(tmp_path / "other.zip", fitted_by_hand)


def test_shares_of_groups():
    counts, weights = np.array([[3, 0], [1, 2]]), np.array([0.5, 0.3, 0.2])
    expected = [[4 / 5, 0.6 / 5, 0.4 / 5], [2 / 5, 2.6 / 5, 0.4 / 5], [0.5, 0.3, 0.2]]
    np.testing.assert_allclose(shares(counts, weights, 2.0), expected)
    # One group whose rows are all at one cluster: the weights are Beta(m, gamma) given m tables.
    state = HDPState(np.zeros(1), np.array([[1]]), np.array([0.5, 0.5]), np.zeros((1, 1)))
    given_prior = PriorSpec(1e-9, 3.0)
    found = mean_shares(state, given_prior, Concentrations(1e-9, 3.0), np.random.default_rng(0))
    np.testing.assert_allclose(found[0], [1, 0], atol=1e-6)
    np.testing.assert_allclose(found[1], [0.25, 0.75], atol=0.1)


def test_starts():
    for init in ("hdp-means", TRUTH):
        mixture = HDPMixture(n_chains=1, n_sweeps=2, init=init, random_state=0)
        assert adjusted_rand_score(mixture.fit(X, groups=GROUPS).labels_, TRUTH) > 0.9


@pytest.mark.parametrize(
    ("settings", "groups", "message"),
    [
        ({"alpha": 0}, None, "alpha must be positive"),
        ({"gamma": "much"}, None, "gamma must be a number"),
        ({"alpha": PitmanYor(1.0, 0.5)}, None, "alpha must be a number"),
        ({"init": "dp-means"}, None, "init must be 'one', 'hdp-means' or a label for each row"),
        ({"init": [0, 1]}, None, "init has 2 labels; X has 90 rows"),
        ({"loss": "mse"}, None, "loss must be 'vi' or 'binder'"),
        ({"burn_in": 24}, None, "burn_in must leave a sweep of n_sweeps=24"),
        ({"model": "normal"}, None, "model must be one of 'gaussian'"),
        ({}, [0, 1], "groups must hold a label for each of 90 rows"),
        ({}, [None, *range(89)], "row 0 has none"),
    ],
)
def test_invalid_parameters_and_groups_are_refused(settings, groups, message):
    with pytest.raises((TypeError, ValueError), match=message):
        HDPMixture(**FAST | settings).fit(X, groups=groups)


def test_missing_values_are_refused_by_cell():
    broken = X.copy()
    broken[4, 1] = np.nan
    with pytest.raises(ValueError, match="row 4, column 1"):
        HDPMixture(**FAST).fit(broken, groups=GROUPS)


def test_stopped_runs_keep_their_draws(monkeypatch):
    from countless._mcmc.hdp import chain as hdp_chain

    done = []
    sweep = hdp_chain.HDPChain.sweep

    def interrupted(chain):
        if len(done) == 8:
            raise KeyboardInterrupt
        sweep(chain)
        done.append(chain)

    monkeypatch.setattr(hdp_chain.HDPChain, "sweep", interrupted)
    mixture = HDPMixture(
        n_chains=1, n_sweeps=500, burn_in=2, alpha=Gamma(2, 2), gamma=1.0, random_state=0
    )
    with pytest.warns(ConvergenceWarning, match="stopped after 8 of 500 sweeps; 6 draws"):
        mixture.fit(X, groups=GROUPS)
    assert mixture.posterior_.labels.shape == (1, 6, 90)
    assert (mixture.posterior_.parameters["gamma"] == 1.0).all()
    assert mixture.n_iter_ == 8


def test_a_pitman_yor_process_of_shared_weights():
    """The discount is sampled; with a discount of 0 the draws are those of a Dirichlet process."""
    random = np.random.default_rng(0)
    X = np.repeat([[0.0], [9.0]], 15, axis=0) + random.normal(size=(30, 1))
    groups = np.arange(30) % 3
    settings = {"n_chains": 1, "n_sweeps": 30, "random_state": 0}
    fitted = HDPMixture(gamma=PitmanYor(1.0, Beta(1.0, 4.0)), **settings).fit(X, groups=groups)
    assert fitted.n_clusters_ == 2
    discount = fitted.posterior_.parameters["discount"]
    assert 0.0 < discount.min() < discount.max() < 1.0
    assert "gamma" in fitted.posterior_.parameters
    assert (fitted.group_weights_.sum(axis=1) < 1.0).all()
    plain = HDPMixture(gamma=1.0, **settings).fit(X, groups=groups)
    same = HDPMixture(gamma=PitmanYor(1.0, 0.0), **settings).fit(X, groups=groups)
    np.testing.assert_array_equal(same.posterior_.labels, plain.posterior_.labels)
    assert "discount" not in plain.posterior_.parameters
