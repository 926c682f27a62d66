"""Validation of input tables for component models, as in scikit-learn."""

from __future__ import annotations

from typing import Any

from sklearn.utils.validation import validate_data

from countless._numbers import check_column_names, in_reach, validate_numbers
from countless.models import Gaussian, Model
from countless.models.named import MODELS


def check_table(estimator: Any, X: Any, model: Model, *, reset: bool) -> Any:
    """Validate a table for a model: numbers are returned as an array, other input unchanged."""
    if model.categorical:
        check_column_names(X)
        validate_data(estimator, X, reset=reset, skip_check_array=True)
        return X
    return in_reach(validate_numbers(estimator, X, allow_nan=model.allow_nan, reset=reset))


def check_enough_rows(model: Model, table: Any) -> None:
    """Raise a ValueError if full covariances would be estimated from fewer rows than columns.

    With so few rows, one cluster per row is as probable as any other partition. Two rows are
    accepted.
    """
    if not isinstance(model, Gaussian) or model.scale is not None:
        return
    n_rows, n_columns = table.shape
    if 2 < n_rows < n_columns:
        raise ValueError(
            f"X has {n_rows} rows and {n_columns} columns, too few rows for full covariances; "
            "use model='diagonal' or fewer columns"
        )


def tag_table(tags: Any, model: Any) -> None:
    """Set scikit-learn's input tags from a model, given as an object or by its name."""
    known = MODELS.get(model, Model) if isinstance(model, str) else type(model)
    if not issubclass(known, Model):  # fit raises the error
        known = Model
    tags.input_tags.allow_nan = known.allow_nan
    tags.input_tags.categorical = known.categorical
