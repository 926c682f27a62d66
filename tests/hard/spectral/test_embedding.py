"""Clusters of the rows of eigenvectors: scikit-learn's k-means is the oracle."""

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.datasets import make_blobs

from countless.hard.spectral import embedding
from countless.hard.spectral.embedding import k_means


@pytest.mark.parametrize("block", [embedding.BLOCK, 100])
def test_k_means_is_that_of_scikit_learn(block, monkeypatch):
    monkeypatch.setattr(embedding, "BLOCK", block)
    rows = make_blobs(400, 3, centers=6, cluster_std=4.0, random_state=0)[0] + 100
    weight = np.random.RandomState(0).uniform(0.1, 2, 400)
    for starts in (
        rows[:6],
        rows[[0, 0, 1, 1, 2, 3]] * 50,
    ):  # the second leave centers without rows
        found = k_means(rows, weight, starts)
        assert found.converged
        assert len(np.unique(found.labels)) == 6
        assert np.all(np.diff(found.history) <= 1e-9 * found.history[0])
        distance = ((rows[:, None] - found.centers) ** 2).sum(axis=2)
        np.testing.assert_array_equal(found.labels, distance.argmin(axis=1))
        np.testing.assert_allclose(found.history[-1], weight @ distance.min(axis=1))
    expected = KMeans(6, init=rows[:6], n_init=1).fit(rows, sample_weight=weight)
    found = k_means(rows, weight, rows[:6])
    np.testing.assert_array_equal(found.labels, expected.labels_)
    np.testing.assert_allclose(found.centers, expected.cluster_centers_)
