"""``countless relate``: which columns of a table belong together."""

from typing import Any

import click

from .crosscat import (
    check_data,
    check_files,
    command_fit,
    crosscat_options,
    file_option,
    show_views,
    views_record,
)

PAIRS = 10  # maximum number of pairs listed of a kind


@click.command(short_help="Show which columns belong together.")
@click.argument("data")
@file_option("--out", "Write the probabilities of all pairs as a CSV file.")
@file_option("--plot", "Draw them as a PNG file.")
@file_option("--plot-views", "Draw the table rearranged by its views as a PNG file.")
@crosscat_options
def relate(data: str, **options: Any) -> None:
    """Show which columns of DATA belong together, and how probably, by CrossCat.

    Columns of one view see the rows fall into the same groups; those of different views have
    nothing to do with each other. Lists the pairs of columns that most surely depend on each other,
    and those that most surely do not. Numbers, categories and missing values are taken as they are.
    """
    check_data(data, options)

    from .._data.write import table_csv, write_file
    from .picture import need_matplotlib

    out, plot, plot_views = check_files(options, "out", "plot", "plot_views")
    if plot or plot_views:
        need_matplotlib()
    screen, mixed, estimator = command_fit(data, options)
    dependence, force = estimator.dependence(), options["force"]
    views = views_record(estimator)
    show_views(screen, views)
    _show_pairs(screen, mixed.names, dependence)
    if out is not None:
        lines = [[f"{share:.4g}" for share in column] for column in dependence.T]
        write_file(out, table_csv(["column", *mixed.names], [mixed.names, *lines]), force)
    for path, picture in ((plot, _dependence_picture), (plot_views, _views_picture)):
        if path is not None:
            write_file(path, picture(estimator), force)
    screen.finish(
        {
            "input": mixed.record(),
            "views": views,
            "columns": mixed.names,
            "dependence": dependence,
            "n_iter": estimator.n_iter_,
            "converged": estimator.converged_,
            "warnings": screen.warnings,
            "seconds": screen.seconds,
        }
    )


def _show_pairs(screen: Any, names: list[str], dependence: Any) -> None:
    import numpy as np
    from rich.table import Table as Grid

    from .._data.table import counted
    from .._report.plain import percent, printable

    first, second = np.triu_indices(len(names), 1)
    shares = dependence[first, second]
    dependent = [p for p in np.argsort(-shares, kind="stable") if shares[p] > 0.5]
    independent = [p for p in np.argsort(shares, kind="stable") if shares[p] <= 0.5]
    for pairs, what in ((dependent, "depend on each other"), (independent, "are independent")):
        if not pairs:
            continue
        grid = Grid(box=None, header_style="bold")
        for heading in ("column", "and", "together"):
            grid.add_column(heading, justify="right" if heading == "together" else "left")
        for p in pairs[:PAIRS]:
            pair = (printable(names[first[p]]), printable(names[second[p]]))
            grid.add_row(*pair, percent(float(shares[p])))
        if len(pairs) > PAIRS:
            grid.add_row("...", f"and {len(pairs) - PAIRS} more pairs", "")
        screen.show("", f"{counted(len(pairs), 'pair')} of columns that {what}", grid)


def _dependence_picture(estimator: Any) -> bytes:
    from ..plot.dependence import DependenceDisplay, figure_size
    from .picture import new_figure, png

    figure = new_figure(*figure_size(estimator.column_names_))
    DependenceDisplay.from_estimator(estimator, ax=figure.add_subplot())
    return png(figure)


def _views_picture(estimator: Any) -> bytes:
    from ..plot.views import ViewsDisplay
    from .picture import new_figure, png

    figure = new_figure(min(2.0 + 0.25 * estimator.n_features_in_, 14.0), 4.8)
    ViewsDisplay.from_estimator(estimator, figure=figure)
    return png(figure)
