"""``countless methods``: list the values of ``--method``."""

import click

from .options import json_option


@click.command(short_help="List the clustering methods.")
@json_option
def methods(as_json: bool) -> None:
    """List every clustering method, with the one parameter to know."""
    from rich.table import Table as Grid

    from ..baselines import BASELINES
    from .console import Screen
    from .registry import METHODS

    screen = Screen(as_json=as_json)
    grid = Grid(box=None, header_style="bold")
    for heading in ("method", "what it does", "parameter to know"):
        grid.add_column(heading, no_wrap=heading == "method")
    for method in METHODS.values():
        grid.add_row(method.name, method.summary, method.key_parameter)
    screen.show(grid, "", "Set a parameter with --set NAME=VALUE.")
    screen.finish(
        {
            name: {
                "class": f"{method.module}.{method.class_name}",
                "summary": method.summary,
                "parameter": method.key_parameter,
                "baseline": name in BASELINES,
            }
            for name, method in METHODS.items()
        }
    )
