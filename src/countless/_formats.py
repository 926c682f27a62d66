"""The file formats of tables: one table of readers.

The module of a format has up to three functions: ``read(file, name, format, style, as_text)``, the
contents of a table in memory; ``edit(file, name, table, added, filled)``, the file with more
columns and some cells filled; and ``parts(path, format, style)``, the parts of a table that is read
in blocks.
A new format is a line in `FORMATS` and such a module.
"""

from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from ._errors import InputError


class TextStyle(NamedTuple):
    """How a file is written; what is None is guessed.

    Examples
    --------
    >>> TextStyle(delimiter=";", decimal=",").header
    True
    """

    delimiter: str | None = None
    decimal: str | None = None
    header: bool = True
    thousands: str | None = None  # the empty text: nothing separates them
    encoding: str | None = None
    part: str | None = None  # the sheet of a workbook, the layer of an AnnData file


class Format(NamedTuple):
    """One file format: its extensions, its reader, and facts about its tables.

    Examples
    --------
    >>> FORMATS["tsv"].suffixes
    ('.tsv', '.tab')
    """

    name: str
    suffixes: tuple[str, ...]
    module: str
    title: str  # in "reading TITLE needs PACKAGE"
    package: str | None = None  # which an extra installs
    extra: str = "table"
    delimiter: str = ""  # of text
    uniform: bool = False  # whether all columns are one quantity in one unit
    blocks: bool = False  # whether the reader has ``parts``
    divisible: bool = False  # whether these can be read apart
    edits: bool = True  # whether the reader has ``edit``
    compressed: bool = False  # whether files may be compressed, with another ending
    part: str = ""  # the option that names the part of a file that is read
    graph: bool = False  # whether the rows are edges

    def reader(self) -> Any:
        """Import the reader, or raise an error that names the extra to install."""
        if self.package is not None and find_spec(self.package) is None:
            raise InputError(
                f"reading {self.title} needs {self.package}: pip install 'countless[{self.extra}]'"
            )
        return import_module(self.module)


def _text(name: str, suffixes: tuple[str, ...], module: str, title: str, **facts: Any) -> Format:
    return Format(name, suffixes, _module(module), title, "pyarrow", compressed=True, **facts)


def _module(name: str) -> str:
    return f"countless._data.{name}_format"


FORMATS = {
    each.name: each
    for each in (
        _text("csv", (".csv",), "text", "text tables", delimiter=",", blocks=True),
        _text("tsv", (".tsv", ".tab"), "text", "text tables", delimiter="\t", blocks=True),
        _text("jsonl", (".jsonl", ".ndjson"), "jsonl", "JSON lines"),
        Format(
            "parquet",
            (".parquet", ".pq"),
            _module("parquet"),
            "Parquet",
            "pyarrow",
            blocks=True,
            divisible=True,
        ),
        Format("feather", (".feather", ".arrow"), _module("feather"), "Feather", "pyarrow"),
        Format(
            "xlsx",
            (".xlsx", ".xlsm"),
            _module("excel"),
            "Excel workbooks",
            "openpyxl",
            "excel",
            part="sheet",
        ),
        Format(
            "h5ad",
            (".h5ad",),
            _module("anndata"),
            "AnnData files",
            "anndata",
            "anndata",
            uniform=True,
            part="layer",
        ),
        Format(
            "npy",
            (".npy",),
            _module("npy"),
            "arrays",
            uniform=True,
            blocks=True,
            divisible=True,
            edits=False,
        ),
        Format(
            "graphml",
            (".graphml",),
            _module("graph"),
            "GraphML",
            "networkx",
            "graph",
            edits=False,
            compressed=True,
            graph=True,
        ),
        Format(
            "gml",
            (".gml",),
            _module("graph"),
            "GML",
            "networkx",
            "graph",
            edits=False,
            compressed=True,
            graph=True,
        ),
    )
}


def format_of(source: str) -> str:
    """Return the format for the extension of a file, or raise an error; standard input is CSV.

    Examples
    --------
    >>> format_of("a.tsv.gz"), format_of("-")
    ('tsv', 'csv')
    """
    if source == "-":
        return "csv"
    name = source.lower()
    plain = name.removesuffix(".gz").removesuffix(".zst")
    for each in FORMATS.values():
        if Path(plain if each.compressed else name).suffix in each.suffixes:
            return each.name
    raise InputError(
        f"{source}: its extension says no known format; add --format {'|'.join(FORMATS)}"
    )
