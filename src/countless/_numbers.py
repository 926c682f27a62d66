"""Tables of numbers, checked as scikit-learn does; a cell of text is named."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import validate_data


def validate_numbers(estimator: Any, X: Any, **options: Any) -> Any:
    """Call scikit-learn's ``validate_data`` for numbers in the form that kernels take.

    An error names a cell of text; cells that are not finite are left to ``check_finite``.
    """
    kinds = [np.float64, np.float32]
    with naming_text(X):
        return validate_data(
            estimator, X, dtype=kinds, order="C", ensure_all_finite=False, **options
        )


@contextmanager
def naming_text(X: Any) -> Iterator[None]:
    """Turn the error of a table that holds text into one that says where.

    Examples
    --------
    >>> with naming_text([[1.0, "two"]]):
    ...     float("two")
    Traceback (most recent call last):
        ...
    ValueError: X holds text: row 0, column 1 is 'two'
    """
    try:
        yield
    except ValueError as error:
        found = _first_text(X)
        if found is None:
            raise
        row, column, text = found
        raise ValueError(f"X holds text: row {row}, column {column!r} is {text!r}") from error


def _first_text(X: Any) -> tuple[int, Any, str | bytes] | None:
    """Return the row, the column and the value of the first cell that is text and no number."""
    if sp.issparse(X):
        return None
    try:
        cells = np.asarray(X, dtype=object)
    except ValueError:  # rows of different lengths
        return None
    if cells.ndim != 2:
        return None
    names = list(getattr(X, "columns", range(cells.shape[1])))
    for row, values in enumerate(cells):
        for name, value in zip(names, values, strict=True):
            if isinstance(value, str | bytes) and not _is_number(value):
                return row, name, value
    return None


def _is_number(text: str | bytes) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
