"""Dissimilarities against SciPy and plain loops, with missing values and weights."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array
from scipy.spatial.distance import cdist

from countless.dissimilarity import (
    code_ordinal,
    dissimilarities,
    to_dissimilarity,
    to_similarity,
)
from countless.dissimilarity.pairs import TILE

NUMERIC = ["euclidean", "sqeuclidean", "cityblock", "correlation"]


@pytest.mark.parametrize("metric", [*NUMERIC, "hamming"])
def test_numbers_are_compared_as_scipy_does(metric):
    random = np.random.default_rng(0)
    X, Y = random.normal(size=(TILE + 30, 3)), random.normal(size=(20, 3))
    if metric == "hamming":
        X, Y = np.round(X), np.round(Y)
    found = dissimilarities(X, metric=metric)
    np.testing.assert_allclose(found, cdist(X, X, metric), atol=1e-12)
    assert (found == found.T).all()
    assert (np.diagonal(found) == 0).all()
    np.testing.assert_allclose(
        dissimilarities(X, Y, metric=metric), cdist(X, Y, metric), atol=1e-12
    )
    np.testing.assert_array_equal(dissimilarities(X, metric=metric, n_jobs=2), found)
    single = dissimilarities(X.astype(np.float32), metric=metric)
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, found, atol=2e-5)


@pytest.mark.parametrize("metric", ["euclidean", "sqeuclidean", "cityblock"])
def test_weights_count_columns(metric):
    X = np.random.default_rng(0).normal(size=(12, 3))
    w = [2.0, 0.0, 0.5]
    expected = cdist(X, X, metric, w=w)
    np.testing.assert_allclose(dissimilarities(X, metric=metric, weights=w), expected, atol=1e-12)


def plain_gower(rows, kinds, weights):
    """Compare cell by cell, as Gower writes it."""
    columns = list(zip(*rows, strict=True))
    ranges = [
        (max(known) - min(known) or 1.0) if kind == "numeric" and known else 1.0
        for column, kind in zip(columns, kinds, strict=True)
        for known in [[cell for cell in column if cell is not None]]
    ]
    out = np.empty((len(rows), len(rows)))
    for i, a in enumerate(rows):
        for j, b in enumerate(rows):
            total = weight = 0.0
            for x, y, kind, span, w in zip(a, b, kinds, ranges, weights, strict=True):
                if x is None or y is None:
                    continue
                total += w * (abs(x - y) / span if kind == "numeric" else float(x != y))
                weight += w
            out[i, j] = 0.0 if i == j else total / weight if weight else np.nan
    return out


CELL = st.none() | st.integers(-3, 3).map(float)
WORD = st.none() | st.sampled_from(["a", "b", "c"])


@settings(max_examples=25)
@given(
    st.lists(st.tuples(CELL, WORD, CELL), min_size=1, max_size=9),
    st.lists(st.sampled_from([0.25, 1.0, 2.0]), min_size=3, max_size=3),
)
def test_mixed_tables_are_compared_as_gower_writes(rows, weights):
    expected = plain_gower(rows, ["numeric", "categorical", "numeric"], weights)
    table = np.array(rows, dtype=object).reshape(-1, 3)
    settings = {"weights": weights, "kinds": {0: "numeric", 1: "categorical", 2: "numeric"}}
    if np.isnan(expected).any():
        with pytest.raises(ValueError, match=r"row \d+ and row \d+ have no known column in common"):
            dissimilarities(table, **settings)
        return
    np.testing.assert_allclose(dissimilarities(table, **settings), expected, atol=1e-12)


def frames():
    values = {
        "size": [1.0, 3.0, None, 5.0],
        "colour": ["red", "blue", "red", None],
        "grade": ["low", "high", None, "middle"],
        "kept": [True, False, True, True],
        "count": [1, 2, 3, 5],
    }
    levels = ["low", "middle", "high"]
    grade = pd.Categorical(values["grade"], categories=levels, ordered=True)
    pandas = pd.DataFrame({**values, "grade": grade})
    polars = pl.DataFrame({**values, "grade": pl.Series(values["grade"], dtype=pl.Enum(levels))})
    return {"pandas": pandas, "polars": polars, "arrow": polars.to_arrow(), "words": values}


@pytest.mark.parametrize("name", ["pandas", "polars", "arrow"])
def test_frames_say_what_their_columns_are(name):
    frame = frames()[name]
    found = dissimilarities(frame, kinds={"grade": ["low", "middle", "high"]})
    # Rows 0 and 1 differ by half the range of sizes, in colour, by both steps, and in being kept.
    assert found[0, 1] == pytest.approx((0.5 + 1 + 1 + 1 + 0.25) / 5)
    assert found[0, 2] == pytest.approx((0 + 0 + 0.5) / 3)  # sizes and grades are not known
    assert found[1, 3] == pytest.approx((0.5 + 0.5 + 1 + 0.75) / 4)
    if name != "arrow":  # whose words have no order of their own
        np.testing.assert_array_equal(dissimilarities(frame), found)
    doubled = dissimilarities(
        frame, kinds={"grade": ["low", "middle", "high"]}, weights={"size": 2}
    )
    assert doubled[0, 1] == pytest.approx((2 * 0.5 + 1 + 1 + 1 + 0.25) / 6)


def test_other_rows_are_measured_by_the_ranges_of_the_first():
    X = pd.DataFrame({"size": [0.0, 4.0], "colour": ["red", "blue"]})
    Y = pd.DataFrame({"size": [8.0], "colour": ["green"]})
    np.testing.assert_allclose(dissimilarities(X, Y), [[1.5], [1.0]])
    with pytest.raises(ValueError, match="the columns of Y are not those of X"):
        dissimilarities(X, Y[["size"]])


def test_numbers_beside_text_in_lists_stay_numbers():
    rows = [[1.5, "a"], [2.5, "b"], [9.0, "a"]]
    # Rows 0 and 2 are the ends of the numbers, and have the same letter.
    assert dissimilarities(rows)[0, 2] == pytest.approx(0.5)
    assert dissimilarities(rows)[0, 1] == pytest.approx((1 / 7.5 + 1) / 2)


def test_column_names_may_be_numbers():
    X = np.random.default_rng(0).normal(size=(7, 3))
    np.testing.assert_array_equal(dissimilarities(pd.DataFrame(X)), dissimilarities(X))


def test_ordinal_columns_without_levels_are_sorted():
    found = dissimilarities([[3], [1], [2]], kinds={0: "ordinal"})
    np.testing.assert_allclose(found[0], [0, 1, 0.5])
    with pytest.raises(ValueError, match="column 0 holds values that cannot be put in order"):
        dissimilarities(np.array([["a"], [1]], dtype=object), kinds={0: "ordinal"})
    with pytest.raises(ValueError, match="row 1 is 'vast', which is not among the levels"):
        code_ordinal(["low", "vast"], ["low", "high"])


@pytest.mark.parametrize(
    ("X", "settings", "message"),
    [
        ([[1.0], [np.inf]], {}, "X contains infinity: row 1, column 0"),
        ([[1.0], [np.nan]], {"metric": "cityblock"}, "X contains NaN: row 1, column 0"),
        ([["a"], ["b"]], {"metric": "euclidean"}, "column 0 must hold numbers; row 0 is 'a'"),
        ([[1.0, 1.0]], {"metric": "correlation"}, "X: row 0 is constant"),
        ([[1.0]], {"metric": "taxi"}, "metric must be one of .*; got 'taxi'"),
        ([[1.0]], {"weights": [-1.0]}, "the weight of column 0 must be at least 0; got -1"),
        ([[1.0]], {"weights": {"size": 1.0}}, "weights names column 'size', which X does not have"),
        ([[1.0]], {"kinds": {0: "colour"}}, "column 0 has 'colour'"),
        ([[1.0]], {"kinds": {1: "numeric"}}, "kinds names column 1, which X does not have"),
        ([[1.0]], {"kinds": {0: "numeric"}, "metric": "hamming"}, "kinds is for metric='mixed'"),
        ([[1.0]], {"dtype": int}, "dtype must be float32 or float64"),
        (
            pd.DataFrame({"day": pd.to_datetime(["2020-01-01"])}),
            {},
            "column 'day' holds Datetime.*, which cannot be compared",
        ),
        (np.empty((0, 2)), {}, "X holds no row"),
    ],
)
def test_bad_input_is_named(X, settings, message):
    with pytest.raises(ValueError, match=message):
        dissimilarities(X, **settings)


def test_memory_is_stated_before_it_is_spent(monkeypatch):
    monkeypatch.setattr("countless._memory.available_memory", lambda: 1000)
    with pytest.raises(MemoryError, match=r"dissimilarities of n=600 rows needs 2,880,000 bytes"):
        dissimilarities(np.zeros((600, 1)), metric="cityblock")


@pytest.mark.parametrize("how", ["negative", "complement", "exponential", "inner"])
def test_similarities_and_back(how):
    X = np.random.default_rng(0).uniform(size=(9, 2))
    D = dissimilarities(X, metric="sqeuclidean") / 3
    S = to_similarity(D, how, scale=0.5)
    np.testing.assert_allclose(to_dissimilarity(S, how, scale=0.5), D, atol=1e-12)
    assert to_similarity(D.astype(np.float32), how).dtype == np.float32
    order = np.argsort(D[0])
    if how != "inner":
        assert (np.diff(S[0, order]) <= 0).all()


def test_inner_products_are_those_of_the_centered_rows():
    X = np.random.default_rng(0).normal(size=(9, 2))
    centered = X - X.mean(axis=0)
    found = to_similarity(dissimilarities(X, metric="sqeuclidean"), "inner")
    np.testing.assert_allclose(found, centered @ centered.T, atol=1e-12)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: to_similarity([[0.0, -1.0], [1.0, 0.0]]), "row 0, column 1 is -1"),
        (
            lambda: to_similarity([[0.0, 2.0], [2.0, 0.0]], "complement"),
            "at most 1; row 0, column 1",
        ),
        (lambda: to_similarity([[0.0, 2.0]]), "square"),
        (lambda: to_similarity([[np.nan]]), "row 0, column 0 is nan"),
        (lambda: to_similarity([[0.0]], "kernel"), "how must be one of"),
        (lambda: to_similarity([[0.0]], "exponential", scale=0.0), "scale must be a positive"),
        (lambda: to_dissimilarity([[0.0]], "exponential"), "S must be positive; row 0, column 0"),
    ],
)
def test_bad_matrices_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_a_sparse_table_is_named_as_such():
    with pytest.raises(ValueError, match="X is sparse, where this metric takes a table"):
        dissimilarities(csr_array(np.eye(3)), metric="hamming")
