"""What is no number is refused in one line that names the cell."""

import datetime

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from countless import (
    AutoClustering,
    BayesianHierarchicalClustering,
    CrossCat,
    DivisiveClustering,
    DPMeans,
    DPMixture,
    penalty_path,
)
from countless._threads import count_threads
from countless.models import Categorical, Gaussian, Multinomial, Poisson

TEXT = [
    ([[1.0, 2.0], [3.0, "four"]], "row 1, column 1 is 'four'"),
    (np.array([["1", "2"], ["x", "4"]]), "row 1, column 0 is 'x'"),
    (pd.DataFrame({"a": [1.0, 2.0], "b": ["3", "four"]}), "row 1, column 'b' is 'four'"),
]


@pytest.mark.parametrize(("X", "where"), TEXT)
@pytest.mark.parametrize("use", [lambda X: DPMeans(penalty=1.0).fit(X), penalty_path])
def test_a_cell_of_text_is_named(use, X, where):
    with pytest.raises(ValueError, match=f"^X holds text: {where}$"):
        use(X)


def test_other_errors_of_a_table_stay():
    with pytest.raises(ValueError, match="inhomogeneous"):
        DPMeans(penalty=1.0).fit([[1.0], [2.0, 3.0]])
    assert DPMeans(penalty=1.0).fit([["1"], ["9"]]).n_clusters_ == 2


@pytest.mark.parametrize("n_jobs", ["x", 0, 1.5, True])
def test_a_wrong_number_of_threads_is_named(n_jobs):
    with pytest.raises(ValueError, match=r"^n_jobs must be None or an integer other than 0"):
        DPMeans(penalty=1.0, n_jobs=n_jobs).fit([[1.0], [2.0]])
    assert count_threads(2) == 2


DAY = datetime.date(2020, 1, 1)
DAYS = np.array([["2020-01-01"], ["2020-01-02"]], dtype="datetime64[D]")
OTHERS = [
    (None, "X must be a table of rows and columns; got a NoneType"),
    ({"a": [1.0]}, "X must be a table of rows and columns; got a dict"),
    (b"1,2", "X must be a table of rows and columns; got a bytes"),
    ([[1.0], [{"a": 1}]], r"X holds a dict: row 1, column 0 is \{'a': 1\}; "),
    ([[1.0], [DAY]], "X holds a date: row 1, column 0 is datetime.date"),
    (DAYS, "X holds dates, not numbers: its cells are datetime64"),
    (DAYS - DAYS[0], "X holds dates, not numbers: its cells are timedelta64"),
    (pd.DataFrame({"when": DAYS[:, 0]}), "X holds dates, not numbers: column 'when' is datetime64"),
    (
        pl.DataFrame({"a": [1.0], "when": [DAY]}),
        "X holds dates, not numbers: column 'when' is Date",
    ),
]


@pytest.mark.parametrize(("X", "message"), OTHERS)
@pytest.mark.parametrize("estimator", [DPMeans(penalty=1.0), DPMixture(Gaussian())])
def test_what_is_no_table_of_numbers_is_refused_in_one_line(estimator, X, message):
    with pytest.raises((TypeError, ValueError), match=f"^{message}") as raised:
        estimator.fit(X)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("model", ["gaussian", Gaussian(), "multinomial", Multinomial()])
def test_models_without_gaps_do_not_claim_to_take_nan(model):
    assert not DPMixture(model).__sklearn_tags__().input_tags.allow_nan


@pytest.mark.parametrize("model", ["poisson", Poisson(), "categorical", Categorical()])
def test_models_with_gaps_claim_to_take_nan(model):
    assert DPMixture(model).__sklearn_tags__().input_tags.allow_nan


class OwnGaussian(Gaussian):
    """A model of the user's own, which takes what its parent does."""


@pytest.mark.parametrize("estimator", [DPMixture, BayesianHierarchicalClustering])
def test_a_model_says_of_its_subclasses_whether_they_take_nan(estimator):
    own = estimator(OwnGaussian())
    assert not own.__sklearn_tags__().input_tags.allow_nan
    with pytest.raises(ValueError, match="X contains NaN: row 1, column 0"):
        own.fit([[0.0], [np.nan], [1.0]])


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame, pa.table])
@pytest.mark.parametrize(
    "fit",
    [
        DPMeans(penalty=1.0).fit,
        DPMixture().fit,
        DivisiveClustering().fit,
        penalty_path,
    ],
)
def test_a_missing_value_of_a_data_frame_is_named_by_its_column(fit, frame):
    X = frame({"age": [1.0, 2.0, 3.0], "height": [1.0, float("nan"), 2.0]})
    with pytest.raises(ValueError, match=r"^X contains NaN: row 1, column 'height'"):
        fit(X)


NOT_TEXT = "column 0 of X has the name .*; names must be text"
NAMES = [
    (["a", "a"], "X has 2 columns named 'a'"),
    ([np.nan, np.nan], "X has 2 columns named nan"),
    ([np.nan, 1.0], f"{NOT_TEXT}|X contains NaN: row 1, column 0"),
    ([("a", 1), ("a", 2)], f"{NOT_TEXT}|X contains NaN: row 1, column 0"),
    ([np.nan, "a"], f"{NOT_TEXT}|Feature names are only supported"),
]


@pytest.mark.parametrize(("names", "message"), NAMES)
@pytest.mark.parametrize(
    "estimator",
    [
        AutoClustering(),
        CrossCat(),
        DPMeans(penalty=1.0),
        DivisiveClustering(metric="mixed"),
    ],
)
def test_names_of_columns_that_are_no_names_are_one_error(estimator, names, message):
    X = pd.DataFrame([[np.nan, 2.0], [1.0, 3.0], [2.0, 2.0]], columns=names)
    with pytest.raises((TypeError, ValueError), match=f"^({message})") as raised:
        estimator.fit(X.iloc[[1, 0, 2]])
    assert "\n" not in str(raised.value)


def test_columns_that_are_numbered_may_have_missing_values():
    X = np.random.default_rng(0).normal(size=(30, 2))
    X[3, 1] = np.nan
    assert len(AutoClustering().fit(pd.DataFrame(X, columns=[7, 8])).labels_) == 30
