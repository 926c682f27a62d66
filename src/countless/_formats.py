"""The file formats of tables: one table of readers.

The module of a format has two functions: ``read(file, name, format, style, as_text)``, the columns
and the number of rows of a table in memory, and ``parts(path, format, style)``, those of a table
that is read in blocks. A new format is a line in `FORMATS` and such a module.
"""

from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from ._errors import InputError


class TextStyle(NamedTuple):
    """How a text table is written.

    Examples
    --------
    >>> TextStyle(delimiter=";", decimal=",").header
    True
    """

    delimiter: str | None = None  # by default that of the format
    decimal: str = "."
    header: bool = True


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
    delimiter: str = ""  # of text
    uniform: bool = False  # whether all columns are one quantity in one unit
    divisible: bool = True  # whether parts of a file can be read apart

    def reader(self) -> Any:
        """Import the reader, or raise an error that names the extra to install."""
        if self.package is not None and find_spec(self.package) is None:
            raise InputError(
                f"reading {self.title} needs {self.package}: pip install 'countless[table]'"
            )
        return import_module(self.module)


_TEXT, _PARQUET, _NPY = (f"countless._data.{name}_format" for name in ("text", "parquet", "npy"))

FORMATS = {
    each.name: each
    for each in (
        Format("csv", (".csv",), _TEXT, "text tables", "pyarrow", ",", divisible=False),
        Format("tsv", (".tsv", ".tab"), _TEXT, "text tables", "pyarrow", "\t", divisible=False),
        Format("parquet", (".parquet", ".pq"), _PARQUET, "Parquet", "pyarrow"),
        Format("npy", (".npy",), _NPY, "arrays", uniform=True),
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
    suffix = Path(source.lower().removesuffix(".gz")).suffix
    for each in FORMATS.values():
        if suffix in each.suffixes:
            return each.name
    raise InputError(
        f"{source}: its extension says no known format; add --format {'|'.join(FORMATS)}"
    )
