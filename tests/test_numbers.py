"""What is no number is refused in one line that names the cell."""

import datetime

import numpy as np
import pandas as pd
import polars as pl
import pytest

from countless import DPMeans, DPMixture, penalty_path
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
    with pytest.raises(ValueError, match=r"^n_jobs must be None or a whole number other than 0"):
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
