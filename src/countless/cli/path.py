"""``countless path``: the number of clusters for each penalty."""

from pathlib import Path
from typing import Any

import click

from .._errors import InputError
from .combinations import check_options, options_given
from .options import as_given, data_choices, data_options
from .picture import need_matplotlib, path_picture

SHOWN = 10


@click.command(short_help="Show which numbers of clusters the data suggests.")
@click.argument("data")
@click.option(
    "--divergence",
    default="sqeuclidean",
    show_default=True,
    metavar="NAME",
    help="sqeuclidean, kl, itakura-saito, logistic or cosine.",
)
@click.option(
    "--plot", type=click.Path(path_type=Path), metavar="FILE", help="Draw the path as a PNG file."
)
@data_options
def path(data: str, **options: Any) -> None:
    """Show which numbers of clusters the rows of DATA suggest, the clearest first.

    The wider the range of penalties that give the same number of clusters, compared with what data
    without structure shows, the clearer that number.
    """
    check_options(options_given(as_given(**options)))
    choices = data_choices(data, options)
    choices.reading.check()

    from .._data.write import check_free_file, write_file

    picture: Path | None = options["plot"]
    if picture is not None:
        need_matplotlib()
        check_free_file(picture, options["force"])

    from .._path.penalty import penalty_path
    from .console import Screen
    from .open import open_data

    screen = Screen(quiet=options["quiet"], as_json=options["as_json"])
    divergence = options["divergence"]
    with open_data(screen, choices, divergence) as prepared:
        with screen.step("path", "following the penalty"):
            try:
                found = penalty_path(
                    prepared.matrix,
                    sample_weight=prepared.weight,
                    divergence=divergence,
                    random_state=options["seed"],
                    n_jobs=options["jobs"],
                )
            except ValueError as error:
                raise InputError(prepared.in_table_terms(error)) from error
        record = prepared.record()
    if picture is not None:
        write_file(picture, path_picture(found), force=options["force"])
    _show(screen, found)
    screen.finish(
        {
            "input": record,
            "n_clusters": found.n_clusters,
            "penalty": found.penalty,
            "confidence": found.confidence,
            "plateaus": found.plateaus,
            "breakpoints": found.breakpoints,
            "warnings": screen.warnings,
            "seconds": screen.seconds,
        }
    )


def _show(screen: Any, found: Any) -> None:
    from math import isfinite

    from rich.table import Table as Grid

    from .._data.table import counted
    from .._report.plain import how_sure, number

    grid = Grid(box=None, header_style="bold")
    for heading in ("clusters", "penalty from", "to", "width", "null width", "evidence"):
        grid.add_column(heading, justify="right")
    clear = [plateau for plateau in found.plateaus if plateau.score > 0]
    for plateau in (clear or found.plateaus[:1])[:SHOWN]:
        sizes = (plateau.width, plateau.null_width, plateau.score)
        grid.add_row(
            str(plateau.n_clusters),
            number(plateau.low),
            number(plateau.high) if isfinite(plateau.high) else "∞",
            *(f"{size:.2f}" if isfinite(size) else "" for size in sizes),
        )
    screen.show(
        f"{counted(found.n_clusters, 'cluster')} at penalty {number(found.penalty)}",
        how_sure(found.confidence, found.plateaus),
        "",
        grid,
        "",
        "width: how far log(penalty) can go with this number of clusters",
        "null width: how far it goes, on average, in data of this kind without clusters",
    )
