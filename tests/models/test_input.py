"""Bad input gets one line that names the cell or the parameter; awkward input a right answer."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from countless.models import (
    Bernoulli,
    Categorical,
    Columns,
    DiagonalGaussian,
    FixedGaussian,
    Gaussian,
    InverseGamma,
    Multinomial,
    Poisson,
)

NAN = np.nan
TWINS = pd.DataFrame([[1.0, 2.0]], columns=["x", "x"])
DATES = pd.DataFrame({"day": np.array(["2020-01-01", "NaT"], dtype="datetime64[ns]")})


@pytest.mark.parametrize(
    ("model", "X", "message"),
    [
        (Gaussian(), [[1.0, 2.0], [NAN, 0.0]], "a missing value, .*: row 1, column 0 has nan"),
        (Multinomial(), [[1.0, NAN]], "a missing value, .*: row 0, column 1"),
        (Gaussian(), [[1.0], [np.inf]], "contains infinity: row 1, column 0"),
        (DiagonalGaussian(), [[1.0], [-np.inf]], "contains infinity: row 1, column 0"),
        (Poisson(), [[1], [-2]], "a negative count: row 1, column 0 has -2"),
        (Poisson(), [[1.5]], "not an integer: row 0, column 0 has 1.5"),
        (Multinomial(), [[1, 0], [3, -1]], "a negative count: row 1, column 1"),
        (Bernoulli(), [[0], [2]], "neither 0 nor 1: row 1, column 0 has 2"),
        (Categorical(levels=2), [[0], [2]], "2, which is no known level: row 1, column 0"),
        (Categorical(), np.array([[None], [NAN]], dtype=object), "no values in column 0"),
        (Categorical(levels=["a", "a"]), [["a"]], "levels must be one or more, and differ"),
        (DiagonalGaussian(), np.array([["1"], ["x"]], dtype=object), "'x', not a number: row 1"),
        (Gaussian(), [1.0, 2.0], "rows and columns; its shape is"),
        (Gaussian(), np.empty((0, 2)), "at least one row is needed"),
        (Gaussian(scale=[[1.0, 1.0], [1.0, 1.0]]), np.eye(2), "scale must be positive definite"),
        (Gaussian(scale=[[1.0, 0.5], [0.0, 1.0]]), np.eye(2), "scale must be symmetric"),
        (Gaussian(scale=[1.0]), np.eye(2), "scale must be a finite 2 x 2 matrix"),
        (Gaussian(freedom=1.0), np.eye(2), "freedom must be above n_features - 1 = 1; got 1.0"),
        (Gaussian(strength=0.0), np.eye(2), "strength must be positive; got 0.0"),
        (Gaussian(mean=[0.0, NAN]), np.eye(2), "mean must be finite"),
        (DiagonalGaussian(shape=[1, 2, 3]), np.eye(2), "shape must be one number or 2"),
        (FixedGaussian(variance=-1.0), np.eye(2), "variance must be positive"),
        (FixedGaussian(variance=InverseGamma(0.0, 1.0)), np.eye(2), "shape and scale of variance"),
        (Bernoulli(a=-1), [[0]], "a must be positive; got -1"),
        (Columns(["number"]), np.eye(2), "models has 1 entries; X has 2 columns"),
        (Columns(["number", "word"]), np.eye(2), "got 'word' for column 1"),
        (Columns({"size": "number"}), np.eye(2), "models names 'size', which is no column"),
        (Columns("number"), np.eye(6), "models must be a sequence or a mapping; got 'number'"),
        (Columns({"x": "number"}), TWINS, "models names 'x', as 2 columns of X are"),
        (Columns(), np.array([[1j], [2j]]), "no categories in column 0"),
        (Columns(), np.empty((3, 0)), "X has no columns"),
        (DiagonalGaussian(), np.array([[1j]]), "a complex number: row 0, column 0"),
        (DiagonalGaussian(), [[1.0], [10**400]], "not a number: row 1, column 0"),
        (DiagonalGaussian(), [[1.0], [-1e160]], "beyond 1e\\+152: row 1, column 0 has -1e\\+160"),
        (DiagonalGaussian(), DATES, "not a number: row 0, column 0"),
        (DiagonalGaussian(shape="wide"), np.eye(2), "shape must be one number or 2; got 'wide'"),
        (Gaussian(strength=[1, 2]), np.eye(2), "strength must be one number; its shape is"),
        (Gaussian(freedom="many"), np.eye(2), "freedom must be one number; got 'many'"),
        (Gaussian(scale="wide"), np.eye(2), "scale must be a finite 2 x 2 matrix; got 'wide'"),
        (Poisson(shape=[1, 2, 3]), np.eye(2), "shape must be one number or 2"),
        (Categorical(levels=3.5), [[0]], "levels must be one or more, and differ; got 3.5"),
    ],
)
def test_bad_input_is_named(model, X, message):
    with pytest.raises(ValueError, match=message) as error:
        model.bind(X).rows(X)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("model", [Gaussian(), DiagonalGaussian(), Multinomial()])
def test_rows_with_another_number_of_columns_are_refused(model):
    with pytest.raises(ValueError, match="X has 3 columns; the model has 2"):
        model.bind(np.eye(2)).rows(np.eye(3))


@pytest.mark.parametrize("model", [Gaussian(), DiagonalGaussian(), FixedGaussian(), Poisson()])
@pytest.mark.parametrize(
    "X",
    [
        np.array([[3.0, 4.0]]),
        np.ones((3, 2)),
        np.arange(16.0).reshape(2, 8),
        np.array([[1.0, 7.0], [2.0, 7.0], [5.0, 7.0]]),
    ],
    ids=["one row", "no variance", "fewer rows than columns", "a constant column"],
)
def test_awkward_tables_have_an_answer(model, X):
    bound = model.bind(X)
    rows = bound.rows(X)
    statistics = bound.statistics(rows)
    sequential = sum(
        bound.log_predictive(rows[n : n + 1], bound.statistics(rows[:n]))[0, 0]
        for n in range(len(rows))
    )
    assert bound.log_marginal(statistics) == pytest.approx(sequential)
    assert np.isfinite(sequential)


def test_a_column_of_missing_values_is_uninformative():
    X = np.array([[1.0, NAN], [2.0, NAN]])
    both, one = DiagonalGaussian().bind(X), DiagonalGaussian().bind(X[:, :1])
    expected = one.log_marginal(one.statistics(one.rows(X[:, :1])))
    assert both.log_marginal(both.statistics(both.rows(X))) == pytest.approx(expected)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
def test_columns_choose_models_from_a_data_frame(frame):
    X = frame(
        {
            "height": [1.5, None, 1.7],
            "colour": ["red", None, "blue"],
            "smokes": [True, False, True],
            "visits": [3, 0, 12],
        }
    )
    bound = Columns({"visits": "count"}).bind(X)
    rows = bound.rows(X)
    assert [type(block.family).__name__ for block in bound.blocks] == [
        "Number",
        "Category",
        "Category",
        "Count",
    ]
    np.testing.assert_array_equal(rows[:, 1], [1.0, NAN, 0.0])
    np.testing.assert_array_equal(rows[:, 2], [1.0, 0.0, 1.0])
    back = bound.table(rows)
    assert back[0].tolist() == [1.5, "red", 1.0, 3.0]
    with pytest.raises(ValueError, match="'green', which is no known level: row 0, column 1"):
        bound.rows(frame({"h": [1.0], "c": ["green"], "s": [True], "v": [1]}))


def test_names_of_columns_may_repeat():
    X = pd.DataFrame([[1.0, "a"], [2.0, "b"]], columns=["x", "x"])
    bound = Columns().bind(X)
    np.testing.assert_array_equal(bound.rows(X)[:, 1], [0.0, 1.0])


def test_numbers_beside_text_in_lists_stay_numbers():
    X = [[1.5, "a"], [2.5, "b"], [9.0, "a"]]
    bound = Columns().bind(X)
    assert [type(block.family).__name__ for block in bound.blocks] == ["Number", "Category"]
    assert bound.table(bound.rows(X)).tolist() == X


@pytest.mark.parametrize(
    "column",
    [
        pd.array([True, None, False], dtype="boolean"),
        pd.array(["yes", None, "no"], dtype="string"),
        pd.array([1, None, 0], dtype="Int64"),
        np.array(["2020-01-01", "NaT", "2019-01-01"], dtype="datetime64[ns]"),
    ],
    ids=["boolean", "string", "Int64", "dates"],
)
def test_missing_values_of_pandas_are_missing(column):
    X = pd.DataFrame({"answer": column})
    bound = Columns().bind(X)
    np.testing.assert_array_equal(bound.rows(X)[:, 0], [1.0, NAN, 0.0])
