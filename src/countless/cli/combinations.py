"""What ``countless fit`` and ``path`` take together, as data: options, methods and defaults."""

from collections.abc import Mapping, Set
from math import isfinite
from typing import Any, NamedTuple

from .._errors import InputError
from .._registry import Method
from .methods import (
    DEFAULT,
    DEFAULT_FOR_GRAPHS,
    DEFAULT_FOR_GROUPS,
    DEFAULT_FOR_METRIC,
    DEFAULT_FOR_OPTIONS,
    METHODS,
    parse_settings,
)
from .options import DataChoices


class Conflict(NamedTuple):
    """Options that cannot be combined with others, and why the others cannot."""

    options: tuple[str, ...]
    others: tuple[str, ...]
    reason: str = ""


CONFLICTS = (
    Conflict(("stream",), ("out-of-core", "dask", "checkpoint")),
    Conflict(("stream",), ("compare", "group", "plot"), "needs all rows at once"),
    Conflict(
        ("out-of-core", "dask"),
        ("compare", "group", "categorical", "missing impute"),
        "needs the whole table in memory",
    ),
    Conflict(("stream", "out-of-core", "dask"), ("report", "edits", "texts", "layers")),
    Conflict(("layers",), ("penalty", "edits"), "has no path"),
    Conflict(("out-of-core", "dask"), ("metric",), "compares all pairs of rows"),
    Conflict(("stream", "out-of-core", "dask", "edits", "background"), ("optimality-gap",)),
)
REQUIRED = {"block-rows": "stream", "bootstrap": "report"}
# Options that only the methods that say so support.
SUPPORTED = ("stream", "checkpoint", "out-of-core", "dask", "optimality-gap", "layers")
# Options of prepared rows that methods with another input do not take, and what they take.
NOT_TAKEN = {
    "rows": (("nodes",), "it clusters the rows of a table"),
    "edges": (
        (
            *("columns", "exclude", "categorical", "id", "group", "scale"),
            *("report", "edits", "texts"),
        ),
        "it reads an edge list",
    ),
    "table": (
        ("weight", "compare", "group", "scale", "edits", "bootstrap", "texts", "nodes"),
        "it takes columns as they are",
    ),
}
# Options that are parameters of the method, and the names of these.
PARAMETERS = {
    "penalty": "penalty",
    "clusters": "n_clusters",
    "background": "background",
    "model": "model",
    "inference": "inference",
    "sweeps": "n_sweeps",
    "chains": "n_chains",
    "checkpoint": "checkpoint",
}
# Options that auto does not support: with one of them, and no --method, dp-means is used.
OF_DP_MEANS = {"penalty", "clusters", "background", "set", "weight", *SUPPORTED}


def options_given(arguments: Mapping[str, Any]) -> set[str]:
    """Return the options that the user gave, each also with its value if that is a text.

    Examples
    --------
    >>> sorted(options_given({"block_rows": 9, "out_of_core": False, "missing": "drop"}))
    ['block-rows', 'missing', 'missing drop']
    """
    given = set()
    for name, value in arguments.items():
        if value not in (None, False, ()) or (name == "scale" and value is False):
            option = name.replace("_", "-")
            given |= {option, f"{option} {value}"} if isinstance(value, str) else {option}
    return given


def usual_method(given: Set[str]) -> str:
    """Return the method where the user names none."""
    if "nodes" in given:
        return DEFAULT_FOR_GRAPHS
    if "group" in given:
        return DEFAULT_FOR_GROUPS
    if "metric" in given:
        return DEFAULT_FOR_METRIC
    return DEFAULT_FOR_OPTIONS if OF_DP_MEANS & given else DEFAULT


def check_options(given: Set[str]) -> None:
    """Raise an error that names two options that cannot be combined.

    Examples
    --------
    >>> check_options({"stream", "plot"})
    Traceback (most recent call last):
    countless._errors.InputError: --plot cannot be combined with --stream: it needs all rows at once
    """
    for conflict in CONFLICTS:
        for option in conflict.options:
            for other in conflict.others:
                if {option, other} <= given:
                    reason = f": it {conflict.reason}" if conflict.reason else ""
                    raise InputError(f"--{other} cannot be combined with --{option}{reason}")
    for option, required in REQUIRED.items():
        if option in given and required not in given:
            raise InputError(f"--{option} is for --{required}")


def check_method(method: Method, given: Set[str]) -> None:
    """Raise an error that names an option that the method does not take."""
    for option in SUPPORTED:
        able = [name for name, each in METHODS.items() if option in each.estimator.supports]
        if option in given and method.name not in able:
            raise InputError(f"--{option} works with {', '.join(able)}, not with {method.name}")
    refused, reason = NOT_TAKEN[method.estimator.takes]
    for option in refused:
        if option in given:
            raise InputError(f"{method.name} takes no --{option}: {reason}")
    if "plot" in given and not method.picture:
        raise InputError(f"{method.name} takes no --plot: it has no picture of a choice of k")


def may_be_graph(method: Method, given: Set[str], choices: DataChoices) -> bool:
    """Return whether the options leave open that the table is an edge list, read in memory."""
    refused, _ = NOT_TAKEN["edges"]
    whole = choices.reading.source != "-" and not {"out-of-core", "dask", "stream"} & given
    rows = method.estimator.takes == "rows" and choices.metric is None
    return rows and whole and not {*refused, *OF_DP_MEANS, "compare"} & given


def method_parameters(method: Method, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters that options and ``--set`` give; the estimator is not imported."""
    parameters = parse_settings(arguments["set"])
    for option, parameter in PARAMETERS.items():
        if (value := arguments[option]) is None:
            continue
        if parameter in parameters:
            raise InputError(f"{parameter} is given twice, by --{option} and by --set")
        if option == "penalty":
            value = penalty(value, method)
        elif option == "background":
            value = background(value)
        parameters[parameter] = value
    return parameters


def check_parameters(method: Method, given: Set[str]) -> None:
    """Raise an error that names an option that is no parameter of the method."""
    options = [option for option in PARAMETERS if option in given]
    known = method.parameters() if options else []
    for option in options:
        if PARAMETERS[option] not in known:
            raise InputError(f"{method.name} takes no --{option}")


def background(text: str) -> float | str:
    """Return the value of ``--background``.

    Examples
    --------
    >>> background("auto"), background("0.05")
    ('auto', 0.05)
    """
    if text == "auto":
        return text
    try:
        share = float(text)
    except ValueError:
        share = -1.0
    if not 0 <= share < 1:
        raise InputError(f"--background must be 'auto' or a share from 0 to below 1; got {text!r}")
    return share


def penalty(text: str, method: Method) -> float | str:
    """Return the value of ``--penalty``."""
    if text == "auto":
        return text
    try:
        value = float(text)
    except ValueError as error:
        raise InputError(f"--penalty must be a number or 'auto'; got {text!r}") from error
    # One cluster of a connected graph has cut 0: only a negative penalty gives several.
    of_graph = method.estimator.takes == "edges"
    if not isfinite(value) or (value < 0 and not of_graph):
        raise InputError(f"--penalty must be {'finite' if of_graph else '0 or more'}; got {text}")
    return value
