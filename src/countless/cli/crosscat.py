"""CrossCat on the command line: what fit, relate and impute share."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .mixed import MixedTable, fit_mixed, read_for_fit, read_mixed
from .options import Command, data_choices, data_reading, table_options, with_options

if TYPE_CHECKING:
    from .console import Screen
    from .options import DataChoices
    from .run import Request

SHOWN = 20  # maximum number of views listed

_OPTIONS = (
    click.option(
        "--count", metavar="NAMES", multiple=True, help="Read these columns as counts: 0, 1, ..."
    ),
    click.option(
        "--sweeps",
        type=click.IntRange(min=1),
        default=100,
        show_default=True,
        metavar="N",
        help="Sweeps of each chain over all rows and columns; the first half is burn-in.",
    ),
    click.option(
        "--chains",
        type=click.IntRange(min=1),
        default=4,
        show_default=True,
        metavar="N",
        help="Chains, which should agree.",
    ),
)


def crosscat_options(command: Command) -> Command:
    """Add the options of commands that fit CrossCat."""
    return with_options(_OPTIONS, table_options(command))


def check_data(data: str, options: dict[str, Any]) -> None:
    """Raise an error if there is no such file, before anything heavy is imported."""
    data_reading(data, dict(options)).check()


def command_fit(data: str, options: dict[str, Any]) -> "tuple[Screen, MixedTable, Any]":
    """Read the table of a command and fit it according to its options."""
    choices = data_choices(data, {**options, "weight": None, "missing": "error", "scale": None})
    choices.reading.check()

    from .._data.columns import named_columns
    from ..crosscat import CrossCat
    from .console import Screen

    screen = Screen(quiet=options["quiet"], as_json=options["as_json"])
    with screen.step("read", f"reading {data}"):
        mixed = read_mixed(choices)
    counts = named_columns(mixed.table, options["count"])
    _check_counts(mixed, counts)
    estimator = CrossCat(
        dict.fromkeys(counts, "count") or None,
        n_chains=options["chains"],
        n_sweeps=options["sweeps"],
        random_state=options["seed"],
        n_jobs=options["jobs"],
    )
    fit_mixed(screen, mixed, estimator, "crosscat")
    return screen, mixed, estimator


def _check_counts(mixed: MixedTable, counts: tuple[str, ...]) -> None:
    from .._errors import InputError

    for name in counts:
        if name not in mixed.names:
            raise InputError(f"column {name!r} takes no part, and --count names it")
        mixed.table.numbers(name)


def views_record(estimator: Any) -> list[dict[str, Any]]:
    """Return the views with the names of their columns and the sizes of their groups."""
    import numpy as np

    return [
        {
            "columns": view.columns,
            "n_clusters": view.n_clusters,
            "sizes": sorted(np.bincount(view.labels).tolist(), reverse=True),
        }
        for view in estimator.views_
    ]


def show_views(screen: "Screen", views: list[dict[str, Any]]) -> None:
    """List the views."""
    from rich.table import Table as Grid

    from .._data.table import counted, listing
    from .._report.plain import printable

    grid = Grid(box=None, header_style="bold")
    grid.add_column("view", justify="right")
    grid.add_column("groups", justify="right")
    grid.add_column("sizes")
    grid.add_column("columns")
    for v, view in enumerate(views[:SHOWN]):
        sizes = listing((str(size) for size in view["sizes"]), limit=6)
        columns = printable(listing(view["columns"]))
        grid.add_row(str(v + 1), str(view["n_clusters"]), sizes, columns)
    screen.show(f"{counted(len(views), 'view')}: columns that belong together", "", grid)


def run_crosscat(
    screen: "Screen", choices: "DataChoices", estimator: Any, request: "Request"
) -> None:
    """Fit a table for ``countless fit``, report its views, and write labels."""
    from .._data.table import counted
    from .._data.write import table_csv
    from ..serialize.model_file import model_bytes
    from .run import write_run

    mixed = read_for_fit(screen, choices)
    fit_mixed(screen, mixed, estimator, request.method)
    views = views_record(estimator)
    show_views(screen, views)
    header = [mixed.id or "row", *(f"view {v + 1}" for v in range(len(views)))]
    columns = [mixed.ids(), *(map(str, view.labels.tolist()) for view in estimator.views_)]
    result = {"views": views, "n_iter": estimator.n_iter_, "converged": estimator.converged_}
    files = {"labels.csv": table_csv(header, columns), "model.zip": model_bytes(estimator)}
    if request.report:
        from .report import report_of_cells

        with screen.step("report", "drawing the report"):
            files["report.html"] = report_of_cells(estimator, mixed, request)
    record = write_run(screen, mixed.record(), estimator, request, result, files)
    screen.note(f"labels.csv has {counted(len(views), 'column')} of labels, one for each view")
    screen.finish(record)


def check_files(options: dict[str, Any], *names: str) -> list[Path | None]:
    """Return the files that options name, each checked before the computation."""
    from .._data.write import check_free_file

    paths = [options[name] for name in names]
    for path in paths:
        if path is not None:
            check_free_file(path, options["force"])
    return paths


def file_option(name: str, help: str) -> Callable[[Command], Command]:
    """Return an option that names a file."""
    return click.option(name, type=click.Path(path_type=Path), metavar="FILE", help=help)
