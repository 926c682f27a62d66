"""What sets clusters apart: checked against plain loops over the rows."""

import numpy as np
import pytest

from countless._report.summary import summarize_clusters
from countless.preprocess.prepare import Feature

RNG = np.random.default_rng(3)
LABELS = np.array([2, 0, 1, 0, 2, 2, -1, 1, 0, 0])
WEIGHT = RNG.integers(1, 4, size=10).astype(float)
X = RNG.normal(size=(10, 3)) + LABELS[:, None]
FEATURES = [
    Feature("length", None, 10.0, 2.0),
    Feature("colour", "red", 0.0, 1.0),
    Feature("colour", "blue", 0.0, 1.0),
]


@pytest.mark.parametrize("weight", [None, WEIGHT])
def test_traits_are_those_of_a_plain_loop(weight):
    w = np.ones(10) if weight is None else weight
    mean = np.average(X, axis=0, weights=w)
    deviation = np.sqrt(np.average((X - mean) ** 2, axis=0, weights=w))
    for cluster in summarize_clusters(X, LABELS, FEATURES, weight=weight, n_traits=9):
        mine = cluster.label == LABELS
        assert cluster.size == mine.sum()
        assert cluster.share == pytest.approx(w[mine].sum() / w.sum())
        inside = np.average(X[mine], axis=0, weights=w[mine])
        outside = np.average(X[~mine], axis=0, weights=w[~mine])
        nearest = np.flatnonzero(mine)[np.argmin(((X[mine] - inside) ** 2).sum(axis=1))]
        assert cluster.typical == nearest
        expected = {}
        for j, feature in enumerate(FEATURES):
            difference = (inside[j] - outside[j]) / deviation[j]
            if abs(difference) >= 0.2 and (feature.level is None or difference > 0):
                ends = (feature.center + feature.scale * side[j] for side in (inside, outside))
                expected[feature.column, feature.level] = (*ends, difference)
        found = {(trait.column, trait.level): trait[2:5] for trait in cluster.traits}
        assert found.keys() == expected.keys()
        for key, numbers in found.items():
            assert numbers == pytest.approx(expected[key])
        sizes = [abs(trait.difference) for trait in cluster.traits]
        assert sizes == sorted(sizes, reverse=True)


def test_largest_first_and_noise_last():
    labels = [cluster.label for cluster in summarize_clusters(X, LABELS, FEATURES)]
    assert labels == [0, 2, 1, -1]


def test_number_of_traits_is_bounded():
    for cluster in summarize_clusters(X, LABELS, FEATURES, n_traits=1):
        assert len(cluster.traits) <= 1


def test_one_cluster_is_set_apart_by_nothing():
    (only,) = summarize_clusters(X, np.zeros(10, dtype=int), FEATURES)
    assert only.traits == []
    assert only.share == 1


def test_constant_column_sets_nothing_apart():
    rows = np.column_stack([X[:, 0], np.ones(10)])
    for cluster in summarize_clusters(rows, LABELS, FEATURES[:2]):
        assert all(trait.column == "length" for trait in cluster.traits)


def test_blocks_change_nothing(monkeypatch):
    whole = summarize_clusters(X, LABELS, FEATURES)
    monkeypatch.setattr("countless._report.summary._BLOCK", 3)
    for one, other in zip(whole, summarize_clusters(X, LABELS, FEATURES), strict=True):
        assert one.typical == other.typical
        assert [t.difference for t in one.traits] == pytest.approx(
            [t.difference for t in other.traits]
        )
