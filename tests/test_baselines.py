"""The registry of baselines: every entry makes an estimator that clusters."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator

from countless.baselines import BASELINES

X = np.concatenate([np.random.default_rng(0).normal(c, 0.2, size=(20, 2)) for c in (0, 5)])


def test_names():
    assert set(BASELINES) == {
        "k-means",
        "k-medoids",
        "gaussian-mixture",
        "bisecting-k-means",
        "agglomerative",
        "spectral",
        "hdbscan",
    }


@pytest.mark.parametrize("name", BASELINES)
def test_every_baseline_finds_two_groups(name):
    method = BASELINES[name]
    assert method.name == name
    given = {"n_clusters": 2} if method.key_parameter == "n_clusters" else {}
    given = {"n_components": 2} if method.key_parameter == "n_components" else given
    estimator = method.make(**given)
    assert isinstance(estimator, BaseEstimator)
    ours = name == "k-medoids"  # which scikit-learn does not have
    assert type(estimator).__module__.startswith("countless." if ours else "sklearn.")
    labels = estimator.fit_predict(X)
    assert len(set(labels[:20])) == len(set(labels[20:])) == 1
    assert labels[0] != labels[-1]


@pytest.mark.parametrize("name", BASELINES)
def test_parameters_are_known_to_the_class(name):
    method = BASELINES[name]
    assert {method.key_parameter, *method.defaults} <= set(method.parameters())
    assert method.summary[0].islower()
