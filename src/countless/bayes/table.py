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
