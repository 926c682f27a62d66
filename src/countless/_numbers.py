"""Validation of numeric tables as in scikit-learn, with errors that name the invalid cell."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import validate_data

# Squares of smaller differences lose digits.
SMALLEST_SPAN = 1e-152
# Squares of larger sums overflow.
LARGEST_TOTAL = 1e150
# Smaller numbers have lost digits, and larger ones are infinite.
RANGE = (np.finfo(np.float64).tiny, np.finfo(np.float64).max)
# Squares of differences between these, and their sums over a table, fit into float32.
SINGLE_SPANS = (1e-12, 1e12)
# Rows are centred if their squared norms exceed their squared differences by this factor; other
# rows are compared as in scikit-learn, so that ties are broken in the same way.
FAR = 1e6


def validate_numbers(estimator: Any, X: Any, *, allow_nan: bool = False, **options: Any) -> Any:
    """Call scikit-learn's ``validate_data`` for numbers in the form that kernels take.

    An error names the first cell that is not a number, or not finite unless ``allow_nan``.
    """
    kinds = [np.float64, np.float32]
    with naming_text(X):
        checked = validate_data(
            estimator, X, dtype=kinds, order="C", ensure_all_finite=False, **options
        )
    if not allow_nan:
        check_finite(checked, X)
    return checked


def check_finite(X: Any, given: Any = None) -> None:
    """Raise a ValueError that names the first missing or infinite cell by row and column.

    Examples
    --------
    >>> check_finite(np.array([[1.0, np.nan]]))
    Traceback (most recent call last):
        ...
    ValueError: X contains NaN: row 0, column 1 (1 such in all)
    """
    # A finite sum has finite terms only; if it overflowed, the search below finds nothing.
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(X.sum()):
            return
    values = X.data if sp.issparse(X) else X
    bad = np.argwhere(~np.isfinite(values))
    if not len(bad):
        return
    value = values[tuple(bad[0])]
    if sp.issparse(X):
        row, column = np.searchsorted(X.indptr, bad[0, 0], side="right") - 1, X.indices[bad[0, 0]]
    else:
        row, column = bad[0]
    what, name = "NaN" if np.isnan(value) else "infinity", column_name(given, int(column))
    raise ValueError(f"X contains {what}: row {row}, column {name} ({len(bad)} such in all)")


def column_name(X: Any, column: int) -> str:
    """Return a column's name in error messages: its name in a data frame, else its position.

    Names that are not strings are ignored, as in scikit-learn.

    Examples
    --------
    >>> import pandas as pd
    >>> column_name(pd.DataFrame({"age": [1.0]}), 0), column_name([[1.0]], 0)
    ("'age'", '0')
    """
    names = getattr(X, "column_names", getattr(X, "columns", None))
    name = None if names is None else names[column]
    return repr(name) if isinstance(name, str) else str(column)


def check_span(X: np.ndarray) -> np.ndarray:
    """Return rows whose squared differences neither overflow nor underflow; float64 if needed.

    Examples
    --------
    >>> check_span(np.array([[0.0], [1e-300]]))
    Traceback (most recent call last):
        ...
    ValueError: the columns of X span 1e-300 at most, and squares of that underflow; scale X up
    >>> check_span(np.array([[0.0], [1e-30]], dtype=np.float32)).dtype
    dtype('float64')
    """
    with np.errstate(over="ignore"):
        spans = X.max(axis=0).astype(np.float64) - X.min(axis=0)
        column = int(np.argmax(spans))
        span = float(spans[column])
        overflows = not np.isfinite(X.size * np.square(span))
    if overflows:
        rows = sorted([int(X[:, column].argmin()), int(X[:, column].argmax())])
        raise ValueError(
            f"row {rows[0]} and row {rows[1]} are too far apart for float64: scale X down"
        )
    if span == 0.0:
        return X
    if span < SMALLEST_SPAN:
        raise ValueError(
            f"the columns of X span {span:g} at most, and squares of that underflow; scale X up"
        )
    lowest, highest = SINGLE_SPANS
    if X.dtype == np.float32 and not lowest <= span <= highest:
        return X.astype(np.float64)
    return X


def check_entries_span(matrix: Any, what: str, *, squared: bool = True) -> None:
    """Raise a ValueError if sums of a matrix's entries, or their squares, over- or underflow.

    Examples
    --------
    >>> check_entries_span(np.array([[0.0, 1e-300]]), "precomputed distances")
    Traceback (most recent call last):
        ...
    ValueError: precomputed distances are at most 1e-300, and squares of that underflow; scale them
    up
    """
    values = matrix.data if sp.issparse(matrix) else matrix
    largest = max(float(values.max(initial=0.0)), -float(values.min(initial=0.0)))
    lowest, highest = (SMALLEST_SPAN, LARGEST_TOTAL) if squared else RANGE
    of = "squares of " if squared else ""
    if 0 < largest < lowest:
        raise ValueError(f"{what} are at most {largest:g}, and {of}that underflow; scale them up")
    if largest > highest / max(values.size, 1):
        raise ValueError(
            f"{what} are up to {largest:g}, and {of}their sums overflow; scale them down"
        )


def in_reach(X: np.ndarray) -> np.ndarray:
    """Return float32 cells as float64 if squares of a column over- or underflow in float32.

    Examples
    --------
    >>> in_reach(np.array([[0.0], [1e-30]], dtype=np.float32)).dtype
    dtype('float64')
    """
    if X.dtype != np.float32:
        return X
    largest = np.fmax.reduce(np.abs(X), axis=0)  # ignores missing values
    lowest, highest = SINGLE_SPANS
    outside = (largest < lowest) & (largest > 0) | (largest > highest)
    return X.astype(np.float64) if outside.any() else X


def moved_to_zero(A: Any, B: Any) -> tuple[Any, Any]:
    """Subtract the same origin from two tables, if B is far from 0.

    Far from 0, inner products of rows lose the digits in which rows differ.

    Examples
    --------
    >>> B = np.array([[1e9], [1e9 + 1], [1e9 + 2]])
    >>> moved_to_zero(B[:1], B)[0].tolist()
    [[-1.0]]
    """
    if sp.issparse(A) or sp.issparse(B):
        return A, B
    origin = origin_of(B)
    return (A - origin, B - origin) if origin.any() else (A, B)


def origin_of(X: np.ndarray) -> np.ndarray:
    """Return the medians of columns if rows are far from 0, else zeros.

    Examples
    --------
    >>> origin_of(np.array([[1e9], [1e9 + 1], [1e9 + 2]])), origin_of(np.array([[1.0], [2.0]]))
    (array([1.e+09]), array([0.]))
    """
    middle = np.median(X, axis=0)
    spread = np.median(np.square(X - middle).sum(axis=1))
    with np.errstate(over="ignore"):  # an overflow is far
        is_far = np.square(middle).sum() > FAR * spread
    return middle if is_far else np.zeros_like(middle)


def check_column_names(X: Any) -> None:
    """Raise a ValueError if two columns of a data frame have the same name.

    Examples
    --------
    >>> import pandas as pd
    >>> check_column_names(pd.DataFrame([[1.0, 2.0]], columns=["age", "age"]))
    Traceback (most recent call last):
        ...
    ValueError: X has 2 columns named 'age'
    """
    if not hasattr(X, "shape"):
        return
    # By repr, since NaN names are not equal to each other.
    names = [repr(name) for name in getattr(X, "column_names", getattr(X, "columns", ()))]
    for name, count in Counter(names).items():
        if count > 1:
            raise ValueError(f"X has {count} columns named {name}")


@contextmanager
def naming_text(X: Any) -> Iterator[None]:
    """Replace the error for a non-numeric table by one that names the first such cell.

    Examples
    --------
    >>> with naming_text([[1.0, "two"]]):
    ...     float("two")
    Traceback (most recent call last):
        ...
    ValueError: X holds text: row 0, column 1 is 'two'
    """
    _refuse_other_things(X)
    try:
        yield
    except (TypeError, ValueError) as error:
        found = _first_bad_cell(X)
        if found is None:
            raise
        row, column, value, reason = found
        cell = f"row {row}, column {column_name(X, column)} is {value!r}"
        if isinstance(value, str | bytes):
            raise ValueError(f"X holds text: {cell}") from error
        raise TypeError(f"X holds a {type(value).__name__}: {cell}; {reason}") from error


def _refuse_other_things(X: Any) -> None:
    """Reject objects that are no tables, and dates, which NumPy would convert to numbers."""
    if sp.issparse(X):  # one of SciPy's formats is a dictionary
        return
    if X is None or isinstance(X, str | bytes | dict):
        raise ValueError(f"X must be a table of rows and columns; got a {type(X).__name__}")
    check_column_names(X)
    if hasattr(X, "columns") and hasattr(X, "dtypes"):
        for column, dtype in enumerate(X.dtypes):
            if _is_of_time(dtype):
                name = column_name(X, column)
                raise TypeError(f"X holds dates, not numbers: column {name} is {dtype}")
    elif _is_of_time(getattr(X, "dtype", None)):
        raise TypeError(f"X holds dates, not numbers: its cells are {X.dtype}")


def _is_of_time(dtype: Any) -> bool:
    """Return whether a dtype of NumPy, pandas or polars is one of dates, times or durations."""
    if hasattr(dtype, "is_temporal"):
        return bool(dtype.is_temporal())
    return getattr(dtype, "kind", None) in ("m", "M")


def _first_bad_cell(X: Any) -> tuple[int, int, Any, str] | None:
    """Return row, column and value of the first non-numeric cell, and the reason."""
    if sp.issparse(X):
        return None
    try:
        cells = np.asarray(X, dtype=object)
    except ValueError:  # rows of different lengths
        return None
    if cells.ndim != 2:
        return None
    for row, values in enumerate(cells):
        for column, value in enumerate(values):
            if isinstance(value, complex):  # scikit-learn has its own error for it
                return None
            if value is not None and (reason := _why_no_number(value)):
                return row, column, value, reason
    return None


def _why_no_number(value: Any) -> str:
    """Return Python's error message if a value is not a number, else an empty string."""
    try:
        float(value)
    except (TypeError, ValueError) as error:
        return str(error)
    return ""
