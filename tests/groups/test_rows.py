"""Rows of one block, held for single calls of kernels, say what rows on threads say."""

import numpy as np
import pytest

from countless._search.groups.rows import FewRows, GroupedRows, open_grouped


@pytest.mark.parametrize("n_features", [2, 12])
def test_few_rows_give_the_results_of_rows_on_threads(n_features):
    random = np.random.RandomState(n_features)
    X = 1e3 + random.standard_normal((200, n_features)) * np.linspace(1, 3, n_features)
    labels = random.randint(4, size=200).astype(np.int32)
    labels[:2] = 4, 4  # a pair, and a cluster of one
    labels[2] = 5
    with open_grouped(X, None, None) as few:
        assert isinstance(few, FewRows)
        plain = GroupedRows(few.backend)
        for own, other in zip(few.sums(labels, 6), plain.sums(labels, 6), strict=True):
            np.testing.assert_allclose(own, other, rtol=1e-9, atol=1e-6)
        centers = random.standard_normal((3, n_features))
        np.testing.assert_allclose(
            few.distances(5, 150, centers), plain.distances(5, 150, centers), rtol=1e-9
        )
        price = 20.0
        halves, expected = few.halve(labels, price), plain.halve(labels, price)
        worth = np.flatnonzero(halves.gain > price)
        np.testing.assert_array_equal(worth, expected.cluster[expected.gain > price])
        np.testing.assert_allclose(
            halves.gain[worth], expected.gain[expected.gain > price], rtol=1e-9
        )
        inside = np.isin(labels, worth)
        np.testing.assert_array_equal(halves.side[inside], expected.side[inside])
        assert np.isneginf(halves.gain[5])
        for half in (halves.near, halves.far):
            assert half.total.shape == (6, n_features)
        np.testing.assert_allclose(
            halves.far.weight[worth], np.bincount(labels[halves.side], minlength=6)[worth]
        )
