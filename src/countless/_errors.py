"""Errors in the user's input; the command prints each as one line and exits with code 2."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

_ROW = re.compile(r"\brow (\d+)\b")


class InputError(ValueError):
    """The data, a parameter or a file is not usable as given; the message names which.

    Examples
    --------
    >>> from countless._errors import InputError
    >>> raise InputError("row 3, column 'age' is infinite")
    Traceback (most recent call last):
    countless._errors.InputError: row 3, column 'age' is infinite
    """


class ModelFileError(InputError):
    """A model file is damaged, or the file is not a model file.

    Examples
    --------
    >>> from countless._errors import InputError, ModelFileError
    >>> issubclass(ModelFileError, InputError)
    True
    """


@contextmanager
def shift_rows(first_row: int) -> Iterator[None]:
    """Renumber rows in errors about a block that begins at ``first_row`` of the whole table.

    Examples
    --------
    >>> with shift_rows(100):
    ...     raise InputError("row 3 has 1 cell")
    Traceback (most recent call last):
    countless._errors.InputError: row 103 has 1 cell
    """
    try:
        yield
    except InputError as error:
        message = _ROW.sub(lambda found: f"row {int(found[1]) + first_row}", str(error))
        raise type(error)(message) from error
