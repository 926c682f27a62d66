"""k-medoids beside all sets of medoids, and on equal rows."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import pairwise_distances
from sklearn.utils.estimator_checks import parametrize_with_checks

from countless.k_medoids import KMedoids, k_medoids


@parametrize_with_checks([KMedoids(2)])
def test_scikit_learn_compatible(estimator, check):
    check(estimator)


def cost(distance, medoids):
    return distance[list(medoids)].min(axis=0).sum()


@settings(max_examples=40)
@given(data=st.data())
def test_no_swap_lowers_the_cost(data):
    n = data.draw(st.integers(1, 12))
    k = data.draw(st.integers(1, n))
    rows = data.draw(st.lists(st.integers(0, 9), min_size=2 * n, max_size=2 * n))
    distance = pairwise_distances(np.reshape(rows, (n, 2)).astype(float), metric="cityblock")
    found = k_medoids(distance, k, max_iter=100)
    assert found.converged
    assert len(set(found.indices)) == k == len(set(found.labels))
    assert found.cost == pytest.approx(cost(distance, found.indices))
    np.testing.assert_allclose(
        distance[found.indices[found.labels], range(n)], distance[found.indices].min(axis=0)
    )
    np.testing.assert_array_equal(found.labels[found.indices], np.arange(k))
    kept = set(found.indices.tolist())
    swaps = [(kept - {out}) | {new} for out in kept for new in set(range(n)) - kept]
    assert all(cost(distance, swap) >= found.cost - 1e-9 for swap in swaps)


def test_the_best_of_all_sets_is_mostly_found():
    hits = 0
    for seed in range(20):
        distance = pairwise_distances(np.random.default_rng(seed).normal(size=(15, 2)))
        best = min(cost(distance, medoids) for medoids in combinations(range(15), 3))
        found = k_medoids(distance, 3, max_iter=100).cost
        assert found >= best - 1e-9
        hits += found <= best + 1e-9
    assert hits >= 16


def test_precomputed_distances_and_new_rows():
    X = np.concatenate([np.random.default_rng(0).normal(c, 0.3, size=(20, 2)) for c in (0, 5, 9)])
    by_rows = KMedoids(3, metric="cityblock").fit(X)
    distance = pairwise_distances(X, metric="cityblock")
    known = KMedoids(3, metric="precomputed").fit(distance)
    np.testing.assert_array_equal(known.labels_, by_rows.labels_)
    np.testing.assert_array_equal(known.predict(distance), by_rows.predict(X))
    np.testing.assert_array_equal(by_rows.predict(X), by_rows.labels_)
    assert known.cluster_centers_ is None


@pytest.mark.parametrize(
    ("parameters", "X", "says"),
    [
        ({"n_clusters": 5}, np.zeros((4, 2)), "n_clusters=5, and X has 4 rows"),
        ({"n_clusters": 2, "metric": "precomputed"}, np.zeros((4, 2)), "must be square"),
    ],
)
def test_what_cannot_be_is_refused(parameters, X, says):
    with pytest.raises(ValueError, match=says):
        KMedoids(**parameters).fit(X)
