"""The generated sets are what their table says, and the same every time."""

import numpy as np
import pytest

from countless.datasets import benchmark_set, sample_exemplar_model
from countless.priors import DirichletProcess

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


def test_exemplar_model_draws_what_it_says():
    prior = DirichletProcess(3.0)
    draws = [
        sample_exemplar_model(
            60, prior, n_features=3, noise_variance=0.25, base_variance=4.0, random_state=seed
        )
        for seed in range(200)
    ]
    around = np.concatenate(
        [np.delete(X - X[exemplars[labels]], exemplars, axis=0) for X, labels, exemplars in draws]
    )
    base = np.concatenate([X[exemplars] for X, _, exemplars in draws])
    assert around.var() == pytest.approx(0.25, rel=0.03)
    assert base.var() == pytest.approx(4.0, rel=0.1)
    n_clusters = np.mean([len(exemplars) for _, _, exemplars in draws])
    assert n_clusters == pytest.approx(prior.expected_n_clusters(60), rel=0.1)
    for _, labels, exemplars in draws[:10]:
        np.testing.assert_array_equal(labels[exemplars], np.arange(len(exemplars)))
    # Any row of a cluster may be the exemplar: on average it is in the middle.
    place = [
        np.flatnonzero(labels == 0).tolist().index(exemplars[0]) / (np.sum(labels == 0) - 1)
        for _, labels, exemplars in draws
        if np.sum(labels == 0) > 1
    ]
    assert np.mean(place) == pytest.approx(0.5, abs=0.12)
    with pytest.raises(ValueError, match="noise_variance must be positive"):
        sample_exemplar_model(noise_variance=0.0)
