"""Tables as component models take them, checked as scikit-learn does."""

from __future__ import annotations

from typing import Any

from sklearn.utils.validation import validate_data

from countless._numbers import check_column_names, in_reach, validate_numbers
from countless.models import Gaussian, Model
from countless.models.named import MODELS


def check_table(estimator: Any, X: Any, model: Model, *, reset: bool) -> Any:
    """Return a table for a model: numbers as an array, anything else as it is."""
    if model.categorical:
        check_column_names(X)
        validate_data(estimator, X, reset=reset, skip_check_array=True)
        return X
    return in_reach(validate_numbers(estimator, X, allow_nan=model.allow_nan, reset=reset))


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


def tag_table(tags: Any, model: Any) -> None:
    """Say in scikit-learn's tags which cells a model takes, given as such or by its name."""
    known = MODELS.get(model, Model) if isinstance(model, str) else type(model)
    if not issubclass(known, Model):  # fit refuses it
        known = Model
    tags.input_tags.allow_nan = known.allow_nan
    tags.input_tags.categorical = known.categorical
