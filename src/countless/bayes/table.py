"""Tables as component models take them, checked as scikit-learn does."""

from __future__ import annotations

from typing import Any

from sklearn.utils.validation import validate_data

from countless._numbers import in_reach, validate_numbers
from countless.hard.checks import check_finite
from countless.models import Categorical, Columns, Gaussian, Model, Multinomial


def check_table(estimator: Any, X: Any, model: Model, *, reset: bool) -> Any:
    """Return a table for a model: numbers as an array, anything else as it is."""
    if isinstance(model, Categorical | Columns):
        validate_data(estimator, X, reset=reset, skip_check_array=True)
        return X
    X = validate_numbers(estimator, X, reset=reset)
    if isinstance(model, Gaussian | Multinomial):
        check_finite(X)
    return in_reach(X)


def check_enough_rows(model: Model, table: Any) -> None:
    """Raise a ValueError where full covariances are to be learned from fewer rows than columns.

    Few rows are explained by a cluster each as well as by any other partition. Two rows may be.
    """
    if not isinstance(model, Gaussian) or model.scale is not None:
        return
    n_rows, n_columns = table.shape
    if 2 < n_rows < n_columns:
        raise ValueError(
            f"X has {n_rows} rows and {n_columns} columns, too few rows for full covariances; "
            "use model='diagonal' or fewer columns"
        )
