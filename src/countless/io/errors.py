"""The errors a user can mend; the command prints each as one line and exits with code 2."""


class InputError(ValueError):
    """The data, a parameter or a file is not usable as given; the message names which.

    Examples
    --------
    >>> from countless.io.errors import InputError
    >>> raise InputError("row 3, column 'age' is infinite")
    Traceback (most recent call last):
    countless.io.errors.InputError: row 3, column 'age' is infinite
    """


class ModelFileError(InputError):
    """A model file is damaged, or is no model file.

    Examples
    --------
    >>> from countless.io.errors import InputError, ModelFileError
    >>> issubclass(ModelFileError, InputError)
    True
    """
