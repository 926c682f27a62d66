"""``countless impute``: fill the missing values of a table."""

from typing import Any

import click

from .crosscat import check_data, check_files, command_fit, crosscat_options, file_option
from .options import named_after


@click.command(short_help="Fill the missing values of a table.")
@click.argument("data")
@file_option(
    "--out",
    "The table without missing values, in the format of the data; by default the data's name with "
    "'-imputed'.",
)
@file_option("--cells", "List each filled cell with its uncertainty, too, as a CSV file.")
@crosscat_options
def impute(data: str, **options: Any) -> None:
    """Fill the missing values of DATA with what its other columns and rows let expect, by CrossCat.

    Numbers get their mean, counts the nearest integer, categories the likeliest one. The
    uncertainty of a filled cell is the standard deviation, or the probability of another category.
    Columns that take no part, such as names of rows, keep their missing values, and all other cells
    stay as they are, to the character.
    """
    check_data(data, options)

    from .._data.write import table_csv, write_file

    options["out"] = options["out"] or named_after(data, f"-imputed{_suffix(data, options)}")
    _, cells = check_files(options, "out", "cells")
    screen, mixed, estimator = command_fit(data, options)
    with screen.step("impute", "filling missing values"):
        filled, uncertainty = estimator.impute()
    new: dict[int, dict[str, float | str]] = {}
    listed: list[tuple[str, str, str, str]] = []
    summary = []
    for j, name in enumerate(mixed.names):
        missing = (uncertainty[:, j] == uncertainty[:, j]).nonzero()[0]
        for row in missing.tolist():
            value, text = _value(mixed.table, name, filled.cells[j][row])
            new.setdefault(row, {})[name] = value
            listed.append((str(row + 1), name, text, f"{uncertainty[row, j]:.4g}"))
        if len(missing):
            mean = float(uncertainty[missing, j].mean())
            summary.append({"column": name, "filled": len(missing), "uncertainty": mean})
    write_file(options["out"], _imputed(screen, mixed.table, new), options["force"])
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


def _suffix(data: str, options: dict[str, Any]) -> str:
    """Return the ending of the result: that of the data's format, if its reader can write it."""
    from .._formats import FORMATS, format_of

    chosen = FORMATS[options["format_"] or format_of(data)]
    return chosen.suffixes[0] if chosen.edits else ".csv"


def _imputed(screen: Any, table: Any, new: dict[int, dict[str, float | str]]) -> Any:
    """Return the file of the user with the new cells; standard input and arrays become CSV."""
    from .._data.read import edited
    from .._data.table import Unusable, shortest
    from .._data.write import table_csv
    from .._formats import FORMATS

    if table.path is not None and FORMATS[table.format].edits:
        return edited(table, {}, new)
    texts = {}
    for name, column in table.columns.items():
        if not isinstance(column, Unusable):
            texts[name] = table.words(name).words()
        elif column.what == "nothing":
            texts[name] = [""] * table.n_rows
        else:
            screen.note(f"column {name!r} holds {column.what} and is left out of the result")
    for row, cells in new.items():
        for name, value in cells.items():
            texts[name][row] = value if isinstance(value, str) else shortest(value)
    return table_csv(texts, texts.values())


def _value(table: Any, name: str, value: Any) -> tuple[float | str, str]:
    """Return the value of a filled cell as its file has it, and as text."""
    from .._data.table import DATE_TIME, Numbers, shortest, written

    column = table.columns[name]
    if isinstance(value, str) or not isinstance(column, Numbers):
        return str(value), str(value)
    value = float(value) if column.unit == DATE_TIME else float(f"{value:.6g}")
    if column.unit:
        text = written(value, column.unit)
        return text, text
    return value, shortest(value)


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
