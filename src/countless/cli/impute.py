"""``countless impute``: fill the missing values of a table."""

from typing import Any

import click

from .crosscat import check_files, command_fit, crosscat_options, file_option
from .options import named_after


@click.command(short_help="Fill the missing values of a table.")
@click.argument("data")
@file_option(
    "--out", "The table without missing values, CSV; by default the data's name with '-imputed'."
)
@file_option("--cells", "List each filled cell with its uncertainty, too, as a CSV file.")
@crosscat_options
def impute(data: str, **options: Any) -> None:
    """Fill the missing values of DATA with what its other columns and rows let expect, by CrossCat.

    Numbers get their mean, counts the nearest integer, categories the likeliest one. The
    uncertainty of a filled cell is the standard deviation, or the probability of another category.
    Columns that take no part, such as names of rows, keep their missing values.
    """
    from .._data.write import table_csv, write_file

    options["out"] = options["out"] or named_after(data, "-imputed.csv")
    _, cells = check_files(options, "out", "cells")
    screen, mixed, estimator = command_fit(data, options)
    with screen.step("impute", "filling missing values"):
        filled, uncertainty = estimator.impute()
    texts = _texts(screen, mixed.table)
    listed: list[tuple[str, str, str, str]] = []
    summary = []
    for j, name in enumerate(mixed.names):
        missing = (uncertainty[:, j] == uncertainty[:, j]).nonzero()[0]
        for row in missing:
            texts[name][row] = _text(filled.cells[j][row])
            found = f"{uncertainty[row, j]:.4g}"
            listed.append((str(row + 1), name, texts[name][row], found))
        if len(missing):
            mean = float(uncertainty[missing, j].mean())
            summary.append({"column": name, "filled": len(missing), "uncertainty": mean})
    write_file(options["out"], table_csv(texts, texts.values()), options["force"])
    if cells is not None:
        header = ["row", "column", "value", "uncertainty"]
        columns = [[line[place] for line in listed] for place in range(4)]
        write_file(cells, table_csv(header, columns), options["force"])
    _show(screen, summary, options["out"])
    screen.finish(
        {
            "input": mixed.record(),
            "filled": summary,
            "n_iter": estimator.n_iter_,
            "converged": estimator.converged_,
            "warnings": screen.warnings,
            "seconds": screen.seconds,
        }
    )


def _texts(screen: Any, table: Any) -> dict[str, list[str]]:
    """Return the columns as text, without unusable ones."""
    from .._data.table import Unusable

    texts = {}
    for name, column in table.columns.items():
        if not isinstance(column, Unusable):
            texts[name] = table.words(name).words()
        elif column.what == "nothing":
            texts[name] = [""] * table.n_rows
        else:
            screen.note(f"column {name!r} holds {column.what} and is left out of the result")
    return texts


def _text(value: Any) -> str:
    from .._data.table import shortest

    return value if isinstance(value, str) else shortest(float(f"{value:.6g}"))


def _show(screen: Any, summary: list[dict[str, Any]], out: Any) -> None:
    from rich.table import Table as Grid

    from .._data.table import counted
    from .._report.plain import number, printable

    n_filled = sum(column["filled"] for column in summary)
    screen.show(f"{counted(n_filled, 'cell')} filled, in {counted(len(summary), 'column')}")
    grid = Grid(box=None, header_style="bold")
    for heading in ("column", "filled", "mean uncertainty"):
        grid.add_column(heading, justify="left" if heading == "column" else "right")
    for column in summary:
        name = printable(column["column"])
        grid.add_row(name, str(column["filled"]), number(column["uncertainty"]))
    screen.show("", grid, "", f"Wrote {out}")
