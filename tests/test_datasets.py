"""The generated sets are what their table says, and the same every time."""

import numpy as np
import pytest

from countless.datasets import benchmark_set

SHAPES = {  # rows, columns, clusters, mean squared distance of a row from its center
    "a": (100_000, 2, 50, 2 * 0.5**2),
    "b": (312_320, 128, 100, 16 * 1.0**2 + 128 * 0.1**2),
    "c": (20_000, 32, 500, 32 * 0.3**2),
    "d": (1_000_000, 8, 30, 8 * 1.0**2),
}


@pytest.mark.parametrize("name", SHAPES)
def test_rows_scatter_around_their_centers_as_described(name):
    _, n_columns, n_clusters, spread = SHAPES[name]
    X, centers, labels = benchmark_set(name, n_rows=20_000)
    assert X.shape == (20_000, n_columns)
    assert centers.shape == (n_clusters, n_columns)
    assert set(labels) == set(range(n_clusters))
    assert ((X - centers[labels]) ** 2).sum(axis=1).mean() == pytest.approx(spread, rel=0.02)


@pytest.mark.parametrize("name", ["a", "c"])
def test_full_size(name):
    X, _, labels = benchmark_set(name)
    assert len(X) == len(labels) == SHAPES[name][0]


def test_first_row_is_pinned():
    # A changed recipe would silently make old and new benchmark tables incomparable.
    np.testing.assert_allclose(
        benchmark_set("a", n_rows=10).X[0], [8.90547053734623, 12.804447647709845], rtol=1e-12
    )


def test_centers_do_not_depend_on_the_number_of_rows():
    few, many = benchmark_set("b", n_rows=5), benchmark_set("b", n_rows=500)
    np.testing.assert_array_equal(few.centers, many.centers)


def test_only_b_is_single_precision():
    assert {name: benchmark_set(name, n_rows=3).X.dtype.name for name in SHAPES} == {
        "a": "float64",
        "b": "float32",
        "c": "float64",
        "d": "float64",
    }


def test_blocks_do_not_show(monkeypatch):
    whole = benchmark_set("b", n_rows=100).X
    monkeypatch.setattr("countless.datasets._BLOCK_ROWS", 7)
    np.testing.assert_allclose(benchmark_set("b", n_rows=100).X, whole, rtol=1e-5)


def test_bad_arguments_are_named():
    with pytest.raises(ValueError, match=r"name must be one of a, b, c, d; got 'e'"):
        benchmark_set("e")
    with pytest.raises(ValueError, match="n_rows must be at least 1; got 0"):
        benchmark_set("a", n_rows=0)
