"""``countless schema``: the JSON schema of what a command prints with ``--json``."""

import json
from importlib.resources import files
from typing import Any

import click

VERSION = 1


def schema_of(command: str) -> dict[str, Any]:
    """Return the JSON schema of a command's output.

    Examples
    --------
    >>> schema_of("report")["required"]
    ['schema', 'source', 'rows', 'page']
    """
    every = _read()
    definitions = every["$defs"]
    return {"$schema": every["$schema"], "$defs": definitions, **every["properties"][command]}


def _read() -> dict[str, Any]:
    text = files("countless.cli").joinpath("schema.json").read_text(encoding="utf-8")
    found: dict[str, Any] = json.loads(text)
    return found


def commands_with_json() -> list[str]:
    """Return the commands whose output has a schema.

    Examples
    --------
    >>> "predict" in commands_with_json()
    True
    """
    return list(_read()["properties"])


@click.command(short_help="Print the JSON schema of a command's --json.")
@click.argument("command")
def schema(command: str) -> None:
    """Print the JSON schema of what COMMAND prints with --json, such as `fit`.

    Each output has the number of its schema in the field `schema`. It rises when a field is removed
    or changes its meaning; new fields may come at any time.
    """
    from .._errors import InputError

    known = commands_with_json()
    if command not in known:
        raise InputError(f"{command!r} prints no JSON; {', '.join(known)} do")
    click.echo(json.dumps(schema_of(command), indent=1))
