"""``countless fit --method bicluster``: clusters of rows and of columns, each in a file."""

from typing import TYPE_CHECKING, Any

from .crosscat import SHOWN
from .mixed import MixedTable, fit_mixed, read_for_fit

if TYPE_CHECKING:
    import numpy as np

    from .console import Screen
    from .options import DataChoices
    from .run import Request


def run_bicluster(
    screen: "Screen", choices: "DataChoices", estimator: Any, request: "Request"
) -> None:
    """Fit a table, report the clusters of rows and columns, and write them."""
    from .._data.write import table_csv
    from ..serialize.model_file import model_bytes
    from .run import write_run

    mixed = read_for_fit(screen, choices)
    _check_one_kind(mixed)
    fit_mixed(screen, mixed, estimator, request.method)
    rows, columns = estimator.row_labels_, estimator.column_labels_
    ids = mixed.ids()
    result = _result(estimator, _members(columns, mixed.names))
    _show(screen, result, _members(rows, ids), request.method)
    files = {
        "labels.csv": table_csv([mixed.id or "row", "label"], [ids, map(str, rows.tolist())]),
        "columns.csv": table_csv(["column", "label"], [mixed.names, map(str, columns.tolist())]),
        "model.zip": model_bytes(estimator),
    }
    if request.plot:
        with screen.step("plot", "drawing the blocks"):
            files["blocks.png"] = _picture(estimator, mixed, ids)
    if request.report:
        from .report import report_of_cells

        with screen.step("report", "drawing the report"):
            files["report.html"] = report_of_cells(estimator, mixed, request)
    record = write_run(screen, mixed.record(), estimator, request, result, files)
    screen.finish(record)


def _check_one_kind(mixed: MixedTable) -> None:
    """Raise an error that names columns of different kinds, which cannot share a block model."""
    from .._errors import InputError

    first: dict[bool, str] = {}
    for name, cells in zip(mixed.names, mixed.cells.cells, strict=True):
        first.setdefault(cells.dtype == object, name)
    if len(first) > 1:
        raise InputError(
            f"bicluster takes cells of one kind; column {first[True]!r} has words and column "
            f"{first[False]!r} numbers. Choose with --columns, or try --method crosscat"
        )


def _members(labels: "np.ndarray", names: list[str]) -> list[list[str]]:
    members: list[list[str]] = [[] for _ in range(labels.max() + 1)]
    for label, name in zip(labels, names, strict=True):
        members[label].append(name)
    return members


def _result(estimator: Any, columns: list[list[str]]) -> dict[str, Any]:
    import numpy as np

    from .mixture import posterior_record

    return {
        "n_clusters": estimator.n_clusters_,
        "n_column_clusters": estimator.n_column_clusters_,
        "n_iter": estimator.n_iter_,
        "converged": estimator.converged_,
        "posterior": posterior_record(estimator.posterior_),
        "column_posterior": posterior_record(estimator.column_posterior_),
        "sizes": np.bincount(estimator.row_labels_),
        "columns": columns,
        "block_means": estimator.block_means_,
    }


def _show(screen: "Screen", result: dict[str, Any], rows: list[list[str]], method: str) -> None:
    """Print the number of clusters, its uncertainty, and their members."""
    from .._data.table import counted
    from .._report.plain import how_sure_of_draws

    found = counted(result["n_clusters"], "cluster")
    screen.show(f"{found} of rows and {result['n_column_clusters']} of columns, found by {method}")
    for side, name in (("rows", "posterior"), ("columns", "column_posterior")):
        sure, agreement = how_sure_of_draws(result[name])
        screen.show(f"{side}: {sure}", f"{' ' * len(side)}  {agreement}")
    screen.show("", _grid("rows", rows), "", _grid("columns", result["columns"]))


def _grid(side: str, clusters: list[list[str]]) -> Any:
    """Return clusters with their members, the largest first."""
    from rich.table import Table as Grid

    from .._data.table import listing
    from .._report.plain import printable

    grid = Grid(box=None, header_style="bold")
    grid.add_column("cluster", justify="right")
    grid.add_column("size", justify="right")
    grid.add_column(side)
    largest = sorted(range(len(clusters)), key=lambda c: (-len(clusters[c]), c))
    for c in largest[:SHOWN]:
        grid.add_row(str(c), str(len(clusters[c])), printable(listing(clusters[c], limit=8)))
    if len(largest) > SHOWN:
        grid.add_row("", "", f"and {len(largest) - SHOWN} clusters more")
    return grid


def _picture(estimator: Any, mixed: MixedTable, ids: list[str]) -> bytes:
    from ..plot.bicluster import BiclusterDisplay, figure_size
    from .picture import new_figure, png

    figure = new_figure(*figure_size(mixed.cells.shape))
    BiclusterDisplay.from_estimator(
        estimator,
        mixed.cells,
        row_names=ids if mixed.id else None,
        column_names=mixed.names,
        ax=figure.add_subplot(),
    )
    return png(figure)
