"""The values of ``--method``, their parameters, and ``countless methods``, which lists them."""

import json
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any

import click

from .._errors import InputError
from .._registry import METHODS as OWN
from .._registry import Method
from ..baselines import BASELINES
from .options import json_option

METHODS: Mapping[str, Method] = {**OWN, **BASELINES}
DEFAULT, DEFAULT_FOR_GROUPS, DEFAULT_FOR_OPTIONS = "auto", "hdp-means", "dp-means"
DEFAULT_FOR_METRIC, DEFAULT_FOR_GRAPHS = "kernel-dp-means", "graph-dp-means"

_WORDS = {"none": None, "true": True, "false": False}


def check_names(name: str, given: Iterable[str], valid: Iterable[str]) -> None:
    """Raise an error that names an unknown parameter of a method, and lists the known ones."""
    valid = list(valid)
    for parameter in given:
        if parameter not in valid:
            close = get_close_matches(parameter, valid, n=1)
            hint = f"did you mean {close[0]!r}? " if close else ""
            raise InputError(
                f"{name} has no parameter {parameter!r}; {hint}it has {', '.join(valid)}"
            )


def make_estimator(
    name: str, given: Mapping[str, Any], *, seed: int | None, jobs: int | None
) -> Any:
    """Return an estimator with the given parameters, and seed and threads if it has them.

    Examples
    --------
    >>> make_estimator("k-means", {"n_clusters": 3}, seed=0, jobs=None)
    KMeans(n_clusters=3, n_init=10, random_state=0)
    """
    method = METHODS[name]
    valid = method.parameters()
    check_names(name, given, valid)
    parameters = dict(given)
    if "random_state" in valid:
        parameters.setdefault("random_state", seed)
    if "n_jobs" in valid and jobs is not None:
        parameters.setdefault("n_jobs", jobs)
    return method.make(**parameters)


def parse_settings(settings: Iterable[str]) -> dict[str, Any]:
    """Parse ``key=value`` texts to parameters: numbers, true, false, none, or text.

    Examples
    --------
    >>> parse_settings(["n_clusters=3", "divergence=kl", "refine=false"])
    {'n_clusters': 3, 'divergence': 'kl', 'refine': False}
    """
    parameters: dict[str, Any] = {}
    for setting in settings:
        key, equals, text = setting.partition("=")
        if not equals or not key.strip():
            raise InputError(f"--set {setting!r} must be written as key=value")
        if key.strip() in parameters:
            raise InputError(f"--set gives {key.strip()!r} twice")
        parameters[key.strip()] = _value(text.strip())
    return parameters


def _value(text: str) -> Any:
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    try:
        number = json.loads(text)
    except json.JSONDecodeError:
        return text
    return number if isinstance(number, int | float) else text


def pairs_parameters(method: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return parameters for pairwise input, or raise an error that lists methods with it."""
    pairs = METHODS[method].pairs
    if pairs is None:
        able = ", ".join(name for name, known in METHODS.items() if known.pairs is not None)
        raise InputError(f"--metric is for {able}; {method} compares rows in its own way")
    for name, value in pairs.items():
        if value == "precomputed" and name in given:
            raise InputError(f"--metric says what is compared; leave out --set {name}")
    return {**pairs, **given}


@click.command(short_help="List the clustering methods.")
@json_option
def methods(as_json: bool) -> None:
    """List every clustering method, with the one parameter to know."""
    from rich.table import Table as Grid

    from .console import Screen

    screen = Screen(as_json=as_json)
    grid = Grid(box=None, header_style="bold")
    for heading in ("method", "what it does", "parameter to know"):
        grid.add_column(heading, no_wrap=heading == "method")
    for method in METHODS.values():
        grid.add_row(method.name, method.summary, method.key_parameter)
    screen.show(grid, "", "Set a parameter with --set NAME=VALUE.")
    listed = {
        name: {
            "class": f"{method.estimator.module}.{method.estimator.class_name}",
            "summary": method.summary,
            "parameter": method.key_parameter,
            "baseline": name in BASELINES,
        }
        for name, method in METHODS.items()
    }
    screen.finish({"methods": listed})
