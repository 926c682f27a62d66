"""Validation of parameters that several estimators share."""

from numbers import Integral, Real
from typing import Any

import numpy as np


def is_number(value: Any) -> bool:
    """Return whether a value is a finite number of at least 0."""
    if isinstance(value, bool) or not isinstance(value, Real):
        return False
    return 0 <= float(value) < np.inf


def is_auto(value: Any) -> bool:
    """Return whether a parameter is 'auto', that is, estimated from the data."""
    return isinstance(value, str) and value == "auto"


def check_penalties(estimator: Any, *names: str) -> None:
    """Raise a ValueError unless these are 'auto' or numbers of at least 0."""
    for name in names:
        value = getattr(estimator, name)
        if not is_auto(value) and not is_number(value):
            raise ValueError(f"{name} must be 'auto' or a number of at least 0; got {value!r}")


def check_flags(estimator: Any, *names: str) -> None:
    """Raise a ValueError unless these are True or False."""
    for name in names:
        value = getattr(estimator, name)
        if not isinstance(value, bool | np.bool_):
            raise ValueError(f"{name} must be True or False; got {value!r}")


def check_count(name: str, value: Any) -> None:
    """Raise a ValueError unless a parameter is an integer of at least 1."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < 1:
        raise ValueError(f"{name} must be an integer of at least 1; got {value!r}")


def check_counts(estimator: Any, *names: str) -> None:
    """Raise a ValueError unless these are integers of at least 1."""
    for name in names:
        check_count(name, getattr(estimator, name))


def check_tol(estimator: Any) -> None:
    """Raise a ValueError unless ``tol`` is None or a number of at least 0."""
    if estimator.tol is not None and not is_number(estimator.tol):
        raise ValueError(f"tol must be None or a number of at least 0; got {estimator.tol!r}")
