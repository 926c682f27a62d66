"""Options that several commands share, and the objects they become."""

import codecs
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from .._errors import InputError
from .._formats import FORMATS, TextStyle, format_of

if TYPE_CHECKING:
    from .._data.columns import Roles
    from .._data.sources import Source
    from .._data.table import Table

Command = TypeVar("Command", bound=Callable[..., Any])

# The name of the user's table with the clusters, by its format.
TABLES = {each.name: f"table{each.suffixes[0]}" for each in FORMATS.values() if each.edits}

# Every file that a run may write, and what it is, for README.txt.
FILES = {
    "README.txt": "this list",
    "blocks.png": "the table, its rows and columns sorted by cluster",
    "candidates.png": "the clusters of each method that was tried",
    "clusters.csv": "a line for each cluster: its size, its typical row, the mean of each column "
    "(for words: the share of rows that have the word)",
    "columns.csv": "the cluster of each column",
    "labels.csv": "the cluster of each row (of a graph: of each node), in the order of the input "
    "(with --layers, a column for each layer, too)",
    "model.zip": "the model, which labels new rows: countless predict model.zip NEW",
    "path.png": "the number of clusters against the penalty",
    "posterior.png": "the posterior of the mixture",
    "report.html": "a page to look at in a browser, and to edit clusters on",
    "run.json": "all results, and how to repeat the run: versions, arguments, seed, input",
    **dict.fromkeys(
        TABLES.values(),
        "the input with a column for the cluster, and one for the distance of "
        "the row from the mean of its cluster in units of the prepared columns",
    ),
}

_DELIMITERS = {"tab": "\t", "\\t": "\t", "space": " "}


def _delimiter(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    if value is None:
        return None
    character = _DELIMITERS.get(value, value)
    if len(character) != 1 or not character.isascii():
        raise click.BadParameter("must be one character, or 'tab' or 'space'")
    return character


def _thousands(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    if value is None or value == "none":
        return value and ""
    character = {"space": " "}.get(value, value)
    if len(character) != 1 or character.isalnum():
        raise click.BadParameter("must be one character such as ',', or 'space', or 'none'")
    return character


def _encoding(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    if value is None:
        return None
    try:
        "".encode(value)  # refuses those that are no encodings of text, such as base64
        return codecs.lookup(value).name
    except LookupError as error:
        raise click.BadParameter(f"{value!r} is no known encoding of text") from error


def _decimal(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    if value not in (None, ".", ","):
        raise click.BadParameter("must be '.' or ','")
    return value


def _jobs(ctx: click.Context, param: click.Parameter, value: int | None) -> int | None:
    if value == 0:
        raise click.BadParameter("must be 1 or more, or -1 for all")
    return value


_READING = (
    click.option(
        "--format",
        "format_",
        type=click.Choice(list(FORMATS)),
        help="What the data is; by default its extension says. Standard input is CSV.",
    ),
    click.option(
        "--delimiter",
        metavar="CHAR",
        callback=_delimiter,
        help="What separates the cells of a text table; by default it is guessed.",
    ),
    click.option(
        "--decimal",
        metavar="CHAR",
        callback=_decimal,
        help="The decimal point of a text table; by default it is guessed.",
    ),
    click.option(
        "--thousands",
        metavar="CHAR",
        callback=_thousands,
        help="What separates thousands in numbers, or none; by default it is guessed.",
    ),
    click.option(
        "--encoding",
        metavar="NAME",
        callback=_encoding,
        help="The encoding of a text table, such as utf-8, utf-16 or latin-1; by default it is "
        "guessed.",
    ),
    click.option("--sheet", metavar="NAME", help="The sheet of a workbook; by default the first."),
    click.option(
        "--layer",
        metavar="NAME",
        help="What to cluster of an AnnData file: X, a layer, or a key of obsm; by default X_pca, "
        "or else X.",
    ),
    click.option("--no-header", is_flag=True, help="The first line is data, not column names."),
)

_COLUMNS = (
    click.option(
        "--columns",
        metavar="NAMES",
        multiple=True,
        help="Use these columns only; separate names by commas.",
    ),
    click.option("--exclude", metavar="NAMES", multiple=True, help="Leave these columns out."),
    click.option(
        "--categorical",
        metavar="NAMES",
        multiple=True,
        help="Read these columns as categories, even where they hold numbers.",
    ),
    click.option("--id", "id_", metavar="NAME", help="The column that names the rows."),
    click.option("--weight", metavar="NAME", help="The column that says how often a row counts."),
    click.option(
        "--missing",
        type=click.Choice(["error", "drop", "impute"]),
        default="error",
        show_default=True,
        help="Empty cells: refuse them, leave out their rows, or fill in the median (most "
        "frequent value).",
    ),
    click.option(
        "--scale/--no-scale",
        default=None,
        help="Bring numeric columns to mean 0 and deviation 1. By default done for tables, whose "
        "columns have units of their own, and not for arrays or divergences of raw values.",
    ),
)

out_of_core_option = click.option(
    "--out-of-core",
    is_flag=True,
    help="Read the table in blocks, for one that does not fit in memory: npy, Parquet, a folder of "
    "Parquet files, or text.",
)
dask_option = click.option(
    "--dask",
    metavar="ADDRESS",
    help="Work on the Dask cluster with its scheduler there; local starts --jobs workers here.",
)
seed_option = click.option(
    "--seed",
    type=click.IntRange(0, 2**32 - 1),
    default=0,
    metavar="N",
    help="The same seed, 0 by default, gives the same answer.",
)
jobs_option = click.option(
    "--jobs",
    type=int,
    metavar="N",
    callback=_jobs,
    help="Threads to use; -1 is all. The answer does not change.",
)
json_option = click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON object and nothing else."
)
quiet_option = click.option("--quiet", "-q", is_flag=True, help="Print warnings and errors only.")
force_option = click.option("--force", is_flag=True, help="Overwrite existing files.")


def check_exists(path: str) -> None:
    """Raise an error if there is no such file, before anything is imported to read it."""
    if not Path(path).exists():
        raise InputError(f"cannot read {path}: No such file or directory")


def named_after(data: str, ending: str) -> Path:
    """Return the default output path: the data's name up to a dot, and a suffix."""
    name = "stdin" if data == "-" else Path(data).name.split(".")[0]
    return Path(f"{name or 'data'}{ending}")


def as_given(**options: Any) -> dict[str, Any]:
    """Return options under their command-line names, for the run record.

    Examples
    --------
    >>> as_given(data="a.csv", settings=("n_init=2",), format_="csv")
    {'data': 'a.csv', 'set': ('n_init=2',), 'format': 'csv'}
    """
    names = {"settings": "set", "as_json": "json"}
    return {
        names.get(name, name.rstrip("_")): str(value) if isinstance(value, Path) else value
        for name, value in options.items()
    }


def reading_options(command: Command) -> Command:
    """Add the options for reading the data."""
    return with_options(_READING, command)


def data_options(command: Command) -> Command:
    """Add the options shared by fit and path: the data, the backend, and the output."""
    own = (out_of_core_option, dask_option, seed_option, jobs_option)
    return with_options(
        (*_COLUMNS, *_READING, *own, json_option, quiet_option, force_option), command
    )


def table_options(command: Command) -> Command:
    """Add the options shared by commands for unprocessed tables: columns and output."""
    own = (seed_option, jobs_option, json_option, quiet_option, force_option)
    return with_options((*_COLUMNS[:4], *_READING, *own), command)


def with_options(options: tuple[Callable[[Command], Command], ...], command: Command) -> Command:
    """Add options to a command, in their order."""
    for option in reversed(options):
        command = option(command)
    return command


@dataclass(frozen=True)
class Reading:
    """The location and format of the data."""

    source: str
    format: str | None
    delimiter: str | None
    decimal: str | None
    header: bool
    thousands: str | None = None
    encoding: str | None = None
    sheet: str | None = None
    layer: str | None = None

    def check(self) -> None:
        """Raise an error if there is no such file."""
        if not self.source:
            raise InputError("the name of the data is empty")
        if self.source != "-":
            check_exists(self.source)
            if not Path(self.source).is_dir():
                self._check_part()

    @property
    def is_graph(self) -> bool:
        """Whether the file holds a graph."""
        if self.source == "-" or Path(self.source).is_dir():
            return False
        return FORMATS[self.format or format_of(self.source)].graph

    def _check_part(self) -> None:
        """Raise an error for an option about a part that the format does not have."""
        chosen = FORMATS[self.format or format_of(self.source)]
        for option in ("sheet", "layer"):
            if getattr(self, option) is not None and option != chosen.part:
                raise InputError(f"--{option} is not for {chosen.title}")

    def read(self, as_text: set[str]) -> "Table":
        """Read the table; the columns in ``as_text`` are text whatever they look like."""
        from .._data.read import read_table

        return read_table(self.source, format=self.format, style=self.style, as_text=as_text)

    @property
    def style(self) -> TextStyle:
        """How a text table is written, as far as the user says."""
        part = self.sheet or self.layer
        return TextStyle(
            self.delimiter, self.decimal, self.header, self.thousands, self.encoding, part
        )

    def open(self) -> "Source":
        """List the parts of a table that is read in blocks."""
        from .._data.sources import open_source

        if self.source == "-":
            raise InputError("standard input can be read once only; say --stream, or name a file")
        return open_source(self.source, self.format, self.style)


@dataclass(frozen=True)
class DataChoices:
    """The user's choices about the data: format, columns, and preprocessing."""

    reading: Reading
    columns: tuple[str, ...]
    exclude: tuple[str, ...]
    categorical: tuple[str, ...]
    id: str | None
    weight: str | None
    compare: str | None
    group: str | None
    missing: str
    scale: bool | None
    metric: str | None  # of pairs of rows, if they are compared
    out_of_core: bool
    dask: str | None  # the address of a scheduler
    jobs: int | None
    table: "Table | None" = None  # if it has been read

    def read(self) -> "tuple[Table, Roles]":
        """Read the table, and resolve the given column names."""
        table = self.table or self.reading.read(self.as_text())
        return table, self.roles(table)

    def as_text(self) -> set[str]:
        """Return the columns that are text whatever they look like."""
        words = {part.strip() for text in self.categorical for part in (text, *text.split(","))}
        return words | {name for name in (self.id, self.compare, self.group) if name}

    def roles(self, table: "Table") -> "Roles":
        """Resolve the given column names."""
        from .._data.columns import Roles, named_columns

        for name in (self.id, self.weight, self.compare, self.group):
            if name is not None:
                table.column(name)
        return Roles(
            named_columns(table, self.columns),
            named_columns(table, self.exclude),
            named_columns(table, self.categorical),
            self.id,
            self.weight,
            self.compare,
            self.group,
        )


def data_reading(data: str, options: dict[str, Any]) -> Reading:
    """Pop the options of :func:`reading_options` from a command's options."""
    own = ("format_", "delimiter", "decimal", "no_header")
    names = (*own, "thousands", "encoding", "sheet", "layer")
    format, delimiter, decimal, no_header, *more = (options.pop(name) for name in names)
    return Reading(data, format, delimiter, decimal, not no_header, *more)


def data_choices(data: str, options: dict[str, Any]) -> DataChoices:
    """Pop both groups of data options from a command's options."""
    names = ("columns", "exclude", "categorical", "weight", "missing", "scale")
    optional: dict[str, Any] = {
        name: options.get(name) for name in ("compare", "group", "metric", "dask", "jobs")
    }
    return DataChoices(
        data_reading(data, options),
        id=options.pop("id_"),
        out_of_core=bool(options.get("out_of_core")),
        **{name: options.pop(name) for name in names},
        **optional,
    )
