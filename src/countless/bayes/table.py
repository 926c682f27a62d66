"""Tables as component models take them, checked as scikit-learn does."""

from __future__ import annotations

from typing import Any

from sklearn.utils.validation import validate_data

from countless._numbers import check_column_names, validate_numbers
from countless.models import Model
from countless.models.named import MODELS


def check_table(estimator: Any, X: Any, model: Model, *, reset: bool) -> Any:
    """Return a table for a model: numbers as an array, anything else as it is."""
    if model.categorical:
        check_column_names(X)
        validate_data(estimator, X, reset=reset, skip_check_array=True)
        return X
    return validate_numbers(estimator, X, allow_nan=model.allow_nan, reset=reset)


def tag_table(tags: Any, model: Any) -> None:
    """Say in scikit-learn's tags which cells a model takes, given as such or by its name."""
    known = MODELS.get(model, Model) if isinstance(model, str) else type(model)
    if not issubclass(known, Model):  # fit refuses it
        known = Model
    tags.input_tags.allow_nan = known.allow_nan
    tags.input_tags.categorical = known.categorical
