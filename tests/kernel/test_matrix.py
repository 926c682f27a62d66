"""Kernels are computed once, in tiles, checked, and never larger than memory."""

import logging
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics.pairwise import pairwise_kernels

from countless import KernelDPMeans
from countless._memory import available_memory
from countless._search.kernel import matrix as kernel_matrix
from countless._search.kernel.matrix import KernelFunction, scale_of


@pytest.fixture
def rows(monkeypatch):
    monkeypatch.setattr(kernel_matrix, "TILES", replace(kernel_matrix.TILES, side=16))
    return np.random.RandomState(0).uniform(0.1, 1, (70, 5))


@pytest.mark.parametrize("name", ["rbf", "linear", "poly", "cosine", "laplacian", "chi2"])
@pytest.mark.parametrize("threads", [1, 2])
def test_tiles_make_the_whole_kernel(rows, name, threads):
    K = KernelFunction(name, {}).matrix(rows, threads)
    np.testing.assert_allclose(K, pairwise_kernels(rows, metric=name), rtol=1e-10)
    assert np.array_equal(K, K.T)


def test_float32_rows_give_a_float32_kernel(rows):
    K = KernelFunction("rbf", {"gamma": 2.0}).matrix(rows.astype(np.float32))
    assert K.dtype == np.float32
    np.testing.assert_allclose(K, pairwise_kernels(rows, metric="rbf", gamma=2.0), rtol=1e-5)


def test_no_entry_is_computed_twice(rows):
    asked = []

    def kernel(a, b):
        asked.append((a[0], b[0]))
        return a @ b

    KernelFunction(kernel, {}).matrix(rows)
    assert len({frozenset(pair) for pair in asked}) == len(asked) == 70 * 71 // 2


def test_memory_is_stated_before_it_is_taken(rows, caplog):
    with caplog.at_level(logging.INFO, logger="countless"):
        KernelDPMeans(1.0).fit(rows)
    assert "the kernel of n=70 rows: 39,200 bytes" in caplog.text


def test_too_large_a_kernel_is_refused(rows, monkeypatch):
    monkeypatch.setattr("countless._memory.available_memory", lambda: 39_199)
    with pytest.raises(MemoryError, match=r"n=70 rows needs 39,200 bytes, and 39,199 are"):
        KernelDPMeans(1.0).fit(rows)
    KernelDPMeans(1.0).fit(rows.astype(np.float32))


def test_available_memory_is_a_number_or_unknown():
    available = available_memory()
    assert available is None or available > 10**6


def test_gamma_follows_units_and_weights(rows):
    weight = np.random.RandomState(1).randint(0, 3, 70)
    repeated = np.repeat(rows, weight, axis=0)
    expected = 1 / repeated.var(axis=0).sum()
    assert scale_of(rows + 100, weight.astype(float)) == pytest.approx(expected)
    assert scale_of(sp.csr_matrix(rows), weight.astype(float)) == pytest.approx(expected)
    small, large = KernelDPMeans(1.0).fit(rows), KernelDPMeans(1.0).fit(1e3 * rows)
    assert np.array_equal(small.labels_, large.labels_)


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        ((3, 5), 9.0, "must be symmetric; row 5, column 3 has .* row 3, column 5 has 9"),
        ((40, 60), np.nan, "X contains NaN: row 40, column 60"),
        ((60, 60), np.inf, "X contains infinity: row 60, column 60"),
    ],
)
def test_bad_entries_are_named(rows, place, value, message):
    K = rows @ rows.T
    K[place] = value
    with pytest.raises(ValueError, match=message):
        KernelDPMeans(1.0, kernel="precomputed").fit(K)


def test_a_kernel_must_be_square(rows):
    with pytest.raises(ValueError, match="must be square; got 70 rows and 5 columns"):
        KernelDPMeans(1.0, kernel="precomputed").fit(rows)


def test_a_kernel_that_gives_nan_is_named(rows):
    with pytest.raises(ValueError, match="the kernel of row 0 and row 0 is nan"):
        KernelDPMeans(1.0, kernel=lambda a, b: np.nan).fit(rows)
