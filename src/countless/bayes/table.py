"""Tables as component models take them, checked as scikit-learn does."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import validate_data

from countless._numbers import in_reach, validate_numbers
from countless.hard.checks import check_finite
from countless.models import BoundModel, Categorical, Columns, Gaussian, Model, Multinomial
from countless.models.gaussian import BoundGaussian


def check_table(estimator: Any, X: Any, model: Model, *, reset: bool) -> Any:
    """Return a table for a model: numbers as an array, anything else as it is."""
    if isinstance(model, Categorical | Columns):
        validate_data(estimator, X, reset=reset, skip_check_array=True)
        return X
    X = validate_numbers(estimator, X, reset=reset)
    if isinstance(model, Gaussian | Multinomial):
        check_finite(X)
    return in_reach(X)


def refuse_singletons(model: BoundModel, labels: np.ndarray) -> None:
    """Raise a ValueError if each of a few rows is a cluster, for want of rows.

    A full covariance has more parameters than few rows can show: that each row is alone says
    nothing about them.
    """
    n_rows, n_columns = len(labels), model.n_features
    learned = isinstance(model, BoundGaussian) and len(model.rounded_columns())
    if learned and 2 < n_rows < n_columns and len(np.unique(labels)) == n_rows:
        raise ValueError(
            f"{n_rows} rows are too few for full covariances of {n_columns} columns: each would be "
            "a cluster; use model='diagonal' or fewer columns"
        )
