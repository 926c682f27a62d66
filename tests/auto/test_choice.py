"""Is there structure, which clustering, and how sure: the measurements and what they count."""

import numpy as np
import pytest
from sklearn.datasets import make_blobs, make_circles
from sklearn.neighbors import kneighbors_graph

from countless._auto.choice import (
    LEAST_SIGNIFICANCE,
    WEIGHTS,
    Comparison,
    Measurements,
    compare,
    conditional_entropy,
    confidence,
)

SOME = Measurements(-2.0, 0.1, 0.1, 0.1, 0.5, np.log(3))


def compared(X, **clusterings):
    links = kneighbors_graph(X, 10)
    return compare(X, links + links.T, clusterings)


@pytest.fixture(scope="module")
def blobs():
    return make_blobs(600, centers=[[0, 0], [4, 0], [2, 3.4]], random_state=0)


def test_valleys_are_structure(blobs):
    X, y = blobs
    found = compared(X, round=y)
    assert not found.apart
    assert found.significance > LEAST_SIGNIFICANCE
    assert found.structure
    assert found.evidence() == {"round": 1.0}


@pytest.mark.parametrize("kind", ["normal", "uniform", "exponential"])
def test_cuts_of_a_cloud_are_none(kind):
    X = getattr(np.random.default_rng(0), kind)(size=(600, 2))
    found = compared(X, round=(X[:, 0] > X[:, 0].mean()).astype(int))
    assert not found.structure
    assert found.evidence() == {"round": 0.0}


def test_one_cluster_is_not_measured(blobs):
    found = compared(blobs[0], round=np.zeros(600, dtype=int))
    assert found.measured == {}
    assert not found.structure


def test_separated_clusters_are_apart():
    X, y = make_circles(600, factor=0.3, noise=0.01, random_state=0)
    assert compared(X, mine=y).apart


def test_what_is_not_cut_is_missed(blobs):
    X, y = blobs
    two = np.minimum(y, 1)
    found = compared(X, elliptical=y, connected=two).measured
    assert found["elliptical"].missed == pytest.approx(0.0)
    assert found["connected"].missed == pytest.approx(conditional_entropy(y, two))
    assert found["connected"].within > found["elliptical"].within == 0.0
    assert found["connected"].cut < found["elliptical"].cut


def test_agreement_is_computed_with_the_other_families(blobs):
    X, y = blobs
    alone = compared(X, elliptical=y, merged=y).measured
    assert alone["elliptical"].agreement == 0.0
    both = compared(X, elliptical=y, merged=y, round=y).measured
    assert all(found.agreement == pytest.approx(1.0) for found in both.values())


@pytest.mark.parametrize("name", ["cut", "missed", "within", "tiles"])
def test_faults_lower_the_score(name):
    worse = SOME._replace(**{name: getattr(SOME, name) + 1.0})
    assert worse.score("round") < SOME.score("round")


def test_families_that_agree_share_their_evidence():
    measured = {"a": SOME, "b": SOME._replace(missed=0.12), "c": SOME._replace(missed=0.05)}
    alone, agree = np.eye(3), np.array([[1.0, 1.0, 0.1], [1.0, 1.0, 0.1], [0.1, 0.1, 1.0]])
    evidence = Comparison(measured, alone, 9.0, True).evidence()
    assert evidence["c"] > evidence["a"] > evidence["b"]
    assert Comparison(measured, alone, 9.0, True).best() == "c"
    assert Comparison(measured, agree, 9.0, True).best() == "a"
    assert Comparison(measured, agree, 0.0, False).best() is None


def test_a_family_without_a_weight_has_none():
    assert SOME.score("mine") == SOME.score("round") - WEIGHTS.family["round"]


def test_conditional_entropy():
    labels = np.array([0, 1, 2, 3])
    assert conditional_entropy(labels, labels) == 0.0
    assert conditional_entropy(labels, np.zeros(4, dtype=int)) == pytest.approx(np.log(4))


def test_confidence_in_several_clusters_grows_with_the_evidence():
    def sure(missed):
        measured = {"round": SOME, "elliptical": SOME._replace(missed=missed)}
        comparison = Comparison(measured, np.eye(2), 9.0, True)
        return confidence(comparison, {"round": 3, "elliptical": 4}, "round")

    values = [sure(missed) for missed in (0.0, 0.2, 0.5)]
    assert values == sorted(values)
    assert 0.0 < values[0] < values[-1] < 1.0


def test_confidence_in_one_cluster_falls_with_the_strongest_valley():
    values = [
        confidence(Comparison({}, np.eye(0), significance, False), {"round": 1}, None)
        for significance in (0.0, 1.0, 2.9)
    ]
    assert values == sorted(values, reverse=True)
    assert values[-1] < values[0]
