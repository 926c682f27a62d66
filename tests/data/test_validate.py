"""The first look at a table: ranges, cells that are no numbers, and what a divergence refuses."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from countless._data import backend, open_rows
from countless._data.validate import RANGE, examine_block, hash_uniform
from countless.divergences import get_divergence

EUCLIDEAN = get_divergence("sqeuclidean")


@pytest.fixture(autouse=True)
def many_blocks(monkeypatch):
    monkeypatch.setattr(backend, "BLOCKS", replace(backend.BLOCKS, most_rows=64))


def normal(n_rows=1000, n_columns=3, scale=1.0, shift=0.0):
    rows = np.random.default_rng(0).standard_normal((n_rows, n_columns))
    return scale * rows + shift


def frame_of(X, weight=None, divergence=EUCLIDEAN, n_jobs=1):
    with open_rows(X, weight, divergence, n_jobs) as rows:
        assert len(rows.spans) > 1
        return rows.fixed_point, rows.whole


def test_ranges_are_those_of_the_rows():
    X = normal()
    with open_rows(X, None, EUCLIDEAN) as rows:
        parts = rows.run(examine_block, None, (EUCLIDEAN, rows.n_rows, True))
    np.testing.assert_array_equal(np.min([part.low for part in parts], axis=0), X.min(axis=0))
    np.testing.assert_array_equal(np.max([part.high for part in parts], axis=0), X.max(axis=0))


def test_the_frame_measures_the_table():
    X = normal(shift=[1e6, 0.0, -5.0], scale=[1.0, 3.0, 0.01])
    fixed_point, whole = frame_of(X)
    assert fixed_point.n_counted == len(X)
    assert fixed_point.total_weight == len(X)
    assert fixed_point.reach >= np.linalg.norm(X - fixed_point.origin, axis=1).max()
    # The origin is near the mean: far-off data must not lose digits.
    assert np.all(np.abs(fixed_point.origin - X.mean(axis=0)) < 0.2 * X.std(axis=0))
    np.testing.assert_allclose(fixed_point.means(whole)[0], X.mean(axis=0), rtol=1e-13)
    exact = np.square(X - fixed_point.origin).sum()
    assert fixed_point.total_cost == pytest.approx(exact, rel=1e-13)
    assert fixed_point.unit == pytest.approx(np.sqrt(exact / len(X)))


def test_rows_without_weight_count_for_nothing():
    X = normal()
    weight = np.random.default_rng(1).integers(3, size=len(X)).astype(float)
    X[weight == 0] = 1e30
    weighted, whole = frame_of(X, weight)
    kept, kept_whole = frame_of(X[weight > 0], weight[weight > 0])
    assert weighted.n_counted == np.count_nonzero(weight)
    assert weighted.reach < 1e3
    np.testing.assert_allclose(weighted.means(whole), kept.means(kept_whole), rtol=1e-14)


def test_a_block_without_any_weight():
    X = normal()
    weight = np.ones(len(X))
    weight[64:192] = 0.0
    fixed_point, whole = frame_of(X, weight)
    assert fixed_point.n_counted == len(X) - 128
    np.testing.assert_allclose(
        fixed_point.means(whole)[0], np.average(X, axis=0, weights=weight), rtol=1e-12
    )


@pytest.mark.parametrize(("value", "name"), [(np.nan, "NaN"), (-np.inf, "infinity")])
@pytest.mark.parametrize("n_jobs", [1, 3])
def test_the_first_cell_that_is_no_number_is_named(value, name, n_jobs):
    X = normal()
    X[[700, 300, 999], [2, 1, 0]] = value
    with pytest.raises(ValueError, match=rf"X contains {name}: row 300, column 1 \(3 such in all"):
        frame_of(X, n_jobs=n_jobs)


def test_a_sparse_cell_that_is_no_number_is_named():
    X = sp.random(1000, 5, 0.2, format="csr", random_state=0)
    where = X.indptr[400]
    X.data[where] = np.nan
    column = X.indices[where]
    with pytest.raises(ValueError, match=rf"NaN: row 400, column {column} \(1 such"):
        frame_of(X)


def test_what_a_divergence_refuses_is_named_by_its_place_in_the_table():
    X = np.abs(normal()) + 0.1
    X[555, 1] = -2.0
    with pytest.raises(ValueError, match=r"row 555.*column 1|column 1.*row 555"):
        frame_of(X, divergence=get_divergence("kl"))


def test_values_that_no_common_step_suits_are_refused():
    X = np.abs(normal()) + 1.0
    X[5, 2] = 1e-30
    with pytest.raises(ValueError, match=r"as different as 1e-30 and .* in column 2"):
        frame_of(X, divergence=get_divergence("itakura-saito"))


def test_squares_that_overflow_are_refused():
    with pytest.raises(ValueError, match="so large that their squares overflow"):
        frame_of(normal(scale=1e200))


def test_the_sample_does_not_depend_on_blocks(monkeypatch):
    X = normal(20_000)
    origins = []
    for size in (64, 128, 4096):
        monkeypatch.setattr(backend, "BLOCKS", replace(backend.BLOCKS, most_rows=size))
        origins.append(frame_of(X)[0].origin)
    np.testing.assert_array_equal(origins[0], origins[1])
    np.testing.assert_array_equal(origins[0], origins[2])


def test_hashes_are_uniform():
    uniform = hash_uniform(np.arange(100_000, dtype=np.uint64), seed=3)
    assert uniform.min() > 0
    assert uniform.max() < 1
    counts, _ = np.histogram(uniform, bins=20, range=(0, 1))
    assert np.abs(counts - 5000).max() < 5 * np.sqrt(5000)
    other = hash_uniform(np.arange(100_000, dtype=np.uint64), seed=4)
    assert abs(np.corrcoef(uniform, other)[0, 1]) < 0.02
    assert abs(np.count_nonzero(uniform * 100_000 < RANGE.sample_rows) - RANGE.sample_rows) < 200
