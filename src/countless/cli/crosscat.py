"""Unprocessed tables, for CrossCat and biclustering: code shared by fit, relate and impute."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from .options import Command, data_choices, table_options, with_options

if TYPE_CHECKING:
    from .._data.columns import ColumnFacts
    from .._data.table import Table
    from .._mcmc.crosscat.table import Table as CellTable
    from ..preprocess.prepare import Feature, Prepared
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
        help="How often each chain moves everything; the first half is forgotten.",
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


class MixedTable(NamedTuple):
    """A table with its used columns, in the form that estimators take."""

    table: "Table"
    facts: "list[ColumnFacts]"
    cells: "CellTable"  # the used columns
    id: str | None

    @property
    def names(self) -> list[str]:
        """The used columns."""
        return self.cells.columns

    def ids(self) -> list[str]:
        """Return the names of the rows: from their column, or row numbers."""
        if self.id:
            return list(self.table.words(self.id).words())
        return [str(row) for row in range(1, self.table.n_rows + 1)]

    def record(self) -> dict[str, Any]:
        """Return the input, for the run record."""
        table = self.table
        return {
            "source": table.source,
            "format": table.format,
            "sha256": table.sha256,
            "rows": table.n_rows,
            "columns": self.facts,
        }


def crosscat_options(command: Command) -> Command:
    """Add the options of commands that fit CrossCat."""
    return with_options(_OPTIONS, table_options(command))


def read_mixed(choices: "DataChoices") -> MixedTable:
    """Read a table with its missing values; uninformative columns are left out."""
    from .._data.columns import examine_columns
    from .._data.table import Numbers

    table, roles = choices.read()
    facts = examine_columns(table, roles)
    used = [column.name for column in facts if column.used]
    words = {
        name
        for name in used
        if name in roles.categorical or not isinstance(table.columns[name], Numbers)
    }
    return MixedTable(table, facts, cells_of(table, used, words), roles.id)


def cells_of(table: "Table", names: list[str], words: set[str]) -> "CellTable":
    """Return some columns unprocessed; text columns have None for missing values."""
    import numpy as np

    from .._mcmc.crosscat.table import Table as CellTable

    cells = []
    for name in names:
        if name in words:
            column = table.words(name)
            cells.append(np.array([*column.levels, None], dtype=object)[column.codes])
        else:
            cells.append(table.numbers(name))
    return CellTable(names, cells)


class ColumnsAsTheyAre(NamedTuple):
    """Replaces the preprocessing of models that take unprocessed columns with missing values."""

    names: list[str]
    words: set[str]
    group: None = None

    def features(self) -> "list[Feature]":
        """Return the columns, for errors that name them."""
        from ..preprocess.prepare import Feature

        return [Feature(name, None, 0.0, 1.0) for name in self.names]

    def apply(self, table: "Table", missing: str | None) -> "Prepared":
        """Return the cells of all rows."""
        import numpy as np

        from .._errors import InputError
        from ..preprocess.prepare import Prepared, check_columns

        if missing is not None:
            raise InputError("this model takes missing values as they are; leave out --missing")
        check_columns(table, self.names)
        cells: Any = cells_of(table, self.names, self.words)
        return Prepared(cells, np.arange(table.n_rows), [])


def columns_as_they_are(estimator: Any) -> ColumnsAsTheyAre | None:
    """Return an estimator's unprocessed columns, or None if it needs preprocessing."""
    from ..biclustering import DPBiclustering
    from ..crosscat import CrossCat

    if isinstance(estimator, CrossCat):
        blocks = estimator.predictive_state().model.blocks
        words = {j for block in blocks if block.levels is not None for j in block.columns}
    elif isinstance(estimator, DPBiclustering):
        levels = estimator.model_.blocks[0].levels
        every = levels is not None and isinstance(levels[0], str)
        words = set(range(estimator.n_features_in_)) if every else set()
    else:
        return None
    names = [str(name) for name in estimator.column_names_]
    return ColumnsAsTheyAre(names, {names[j] for j in words})


def read_for_fit(screen: "Screen", choices: "DataChoices", method: str) -> MixedTable:
    """Read the table of ``countless fit``, or reject an option that does not apply to it."""
    from .._errors import InputError

    for option in ("weight", "compare", "group", "scale"):
        if getattr(choices, option) is not None:
            raise InputError(f"{method} takes no --{option}")
    with screen.step("read", f"reading {choices.reading.source}"):
        return read_mixed(choices)


def fit_mixed(screen: "Screen", mixed: MixedTable, estimator: Any, method: str) -> None:
    """Fit an unprocessed table, with progress, and errors in terms of the table."""
    from .._data.table import counted
    from .._errors import InputError
    from ..preprocess.prepare import Feature
    from .data import in_table_terms
    from .progress import follow

    n_rows, n_columns = mixed.cells.shape
    left_out = [f"{column.name} ({column.left_out})" for column in mixed.facts if not column.used]
    screen.show(f"{mixed.table.source}: {counted(n_rows, 'row')}, {n_columns} columns used")
    if left_out:
        screen.show(f"left out: {', '.join(left_out)}")
    screen.show("")
    with screen.step("fit", f"{method} on {n_rows} rows of {n_columns}") as say:
        if screen.err.is_terminal:
            follow(estimator, say, mixed.cells.shape)
        try:
            estimator.fit(mixed.cells)
        except ValueError as error:
            features = [Feature(name, None, 0.0, 1.0) for name in mixed.names]
            message = in_table_terms(str(error), range(n_rows), features)
            raise InputError(f"{method}: {message}") from error


def command_fit(data: str, options: dict[str, Any]) -> "tuple[Screen, MixedTable, Any]":
    """Read the table of a command and fit it according to its options."""
    from .._data.columns import named_columns
    from ..crosscat import CrossCat
    from .console import Screen

    screen = Screen(quiet=options["quiet"], as_json=options["as_json"])
    choices = data_choices(data, {**options, "weight": None, "missing": "error", "scale": None})
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
    from .._data.write import table_csv, write_directory
    from ..serialize.model_file import model_bytes
    from .console import to_json
    from .run import FILES, run_record

    mixed = read_for_fit(screen, choices, request.method)
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
    source = mixed.record()
    record = run_record(screen, source, estimator, request, result, [*files, "run.json"])
    files["run.json"] = to_json(record).encode()
    write_directory(request.out, files, FILES, request.force)
    screen.show("", f"Wrote {request.out}/: {', '.join(sorted(files))}")
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
