"""The reader of Excel workbooks: one sheet, whose first row with content names the columns."""

import io
import warnings
import zipfile
from collections.abc import Iterator, Mapping, Set
from contextlib import contextmanager
from datetime import date, datetime, time
from typing import Any, NamedTuple

import numpy as np
from openpyxl import load_workbook
from openpyxl.utils.exceptions import InvalidFileException

from .._errors import InputError
from .._formats import Format, TextStyle
from .quantities import Notation, typed
from .table import (
    DATE,
    DATE_TIME,
    TIME,
    Column,
    Columns,
    Contents,
    Filled,
    Numbers,
    Table,
    Unusable,
    check_names,
    listing,
    shortest,
    words_of,
)
from .text_style import MISSING_TEXTS

ERRORS = ("#N/A", "#DIV/0!", "#VALUE!", "#REF!", "#NAME?", "#NUM!", "#NULL!")  # of formulas
_MISSING = {None, *MISSING_TEXTS, *ERRORS}
_EPOCH = datetime(1970, 1, 1)


class Grid(NamedTuple):
    """The cells of a sheet from its first row with content, without empty rows."""

    names: list[str]
    first_column: int  # of the sheet, from 1
    header: int  # the row of the names; 0 if there is none
    places: list[int]  # the row of the sheet of each row of the table, from 1
    rows: list[tuple[Any, ...]]


def read(
    file: io.BufferedIOBase, name: str, format: Format, style: TextStyle, as_text: Set[str]
) -> Contents:
    """Read a sheet of a workbook: the first one, or that of the style."""
    with _opened(file, name, read_only=True, data_only=True) as workbook:
        sheet = _sheet(workbook, name, style.part)
        notes: tuple[str, ...] = ()
        if style.part is None and len(workbook.worksheets) > 1:
            count = len(workbook.worksheets)
            notes = (f"sheet {sheet.title!r}, the first of {count} (--sheet)",)
        grid = _grid(sheet, name, style.header)
    cells = zip(*grid.rows, strict=True)
    columns: Columns = {
        label: _column(list(values), label in as_text)
        for label, values in zip(grid.names, cells, strict=True)
    }
    notation = Notation(style.decimal or ".", style.thousands)
    found = style._replace(part=sheet.title)
    return Contents(typed(columns, notation, as_text), len(grid.rows), found, notes)


def edit(
    file: io.BufferedIOBase,
    name: str,
    table: Table,
    added: Mapping[str, np.ndarray],
    filled: Filled,
) -> bytes:
    """Return the workbook with more columns of numbers in the sheet, and some cells filled.

    Other cells and sheets, formulas and styles are unchanged.
    """
    with _opened(file, name) as workbook:
        sheet = _sheet(workbook, name, table.style.part)
        grid = _grid(sheet, name, table.style.header)
        column = {label: grid.first_column + j for j, label in enumerate(grid.names)}
        for row, cells in filled.items():
            for label, value in cells.items():
                dated = getattr(table.columns[label], "unit", "") in (DATE, DATE_TIME)
                new_value = datetime.fromisoformat(str(value)) if dated else value
                sheet.cell(grid.places[row], column[label]).value = new_value
        for j, (label, values) in enumerate(added.items(), grid.first_column + len(grid.names)):
            if grid.header:
                sheet.cell(grid.header, j).value = label
            for place, value in zip(grid.places, values.tolist(), strict=True):
                if not np.isnan(value):
                    sheet.cell(place, j).value = int(value) if value == int(value) else value
        new = io.BytesIO()
        workbook.save(new)
    return new.getvalue()


@contextmanager
def _opened(file: io.BufferedIOBase, name: str, **settings: bool) -> Iterator[Any]:
    with warnings.catch_warnings():
        # About parts of a workbook that hold no cells, such as extensions and headers.
        warnings.filterwarnings("ignore", module="openpyxl")
        try:
            workbook = load_workbook(io.BytesIO(file.read()), **settings)
        except (InvalidFileException, zipfile.BadZipFile, KeyError, ValueError, OSError) as error:
            raise InputError(f"{name} is no usable .xlsx workbook: {error}") from error
        try:
            yield workbook
        finally:
            workbook.close()


def _sheet(workbook: Any, name: str, title: str | None) -> Any:
    sheets = {sheet.title: sheet for sheet in workbook.worksheets}
    if title is None:
        title = next(iter(sheets), "")
    if title not in sheets:
        raise InputError(f"{name} has no sheet {title!r}; it has {listing(sheets)}")
    return sheets[title]


def _grid(sheet: Any, name: str, header: bool) -> Grid:
    if getattr(sheet, "reset_dimensions", None):
        sheet.reset_dimensions()  # files of some programs have wrong ones
    rows = list(enumerate(sheet.iter_rows(values_only=True), start=1))
    filled = [(at, row) for at, row in rows if any(cell is not None for cell in row)]
    if not filled:
        raise InputError(f"{name}: sheet {sheet.title!r} is empty")
    used = {j for _, row in filled for j, cell in enumerate(row) if cell is not None}
    start, stop = min(used), max(used) + 1
    padded = [(at, (*row, *[None] * stop)[start:stop]) for at, row in filled]
    first, labels = padded[0] if header else (0, (None,) * (stop - start))
    body = padded[1:] if header else padded
    if not body:
        raise InputError(f"{name} has no rows, only a line of column names")
    names = [f"column_{j}" if cell is None else _text(cell) for j, cell in enumerate(labels, 1)]
    check_names(names, name)
    return Grid(names, start + 1, first, [at for at, _ in body], [row for _, row in body])


def _column(cells: list[Any], as_text: bool) -> Column:
    """Return the cells of a column as numbers, dates or text."""
    missing = np.array([_is_missing(cell) for cell in cells])
    kinds = {type(cell) for cell, empty in zip(cells, missing, strict=True) if not empty}
    n_missing = int(missing.sum())
    if not kinds:
        return Unusable("nothing", n_missing)
    if as_text or not (kinds <= {int, float} or kinds <= {date, datetime} or kinds == {time}):
        texts = [None if empty else _text(cell) for cell, empty in zip(cells, missing, strict=True)]
        return words_of(texts)
    values = np.full(len(cells), np.nan)
    values[~missing] = [
        _number(cell) for cell, empty in zip(cells, missing, strict=True) if not empty
    ]
    if kinds == {time}:
        return Numbers(values, TIME)
    if kinds <= {date, datetime}:
        return Numbers(values, DATE if np.all(values[~missing] % 1 == 0) else DATE_TIME)
    return Numbers(values)


def _is_missing(cell: Any) -> bool:
    return cell is None or (isinstance(cell, str) and cell.strip() in _MISSING)


def _number(cell: Any) -> float:
    if isinstance(cell, time):
        return (cell.hour * 3600 + cell.minute * 60 + cell.second) / 86_400
    if isinstance(cell, datetime):
        return (cell - _EPOCH).total_seconds() / 86_400
    if isinstance(cell, date):
        return float(cell.toordinal() - _EPOCH.toordinal())
    return float(cell)


def _text(cell: Any) -> str:
    if isinstance(cell, bool):
        return str(cell).lower()
    if isinstance(cell, datetime) and not (cell.hour or cell.minute or cell.second):
        return cell.date().isoformat()
    return shortest(cell) if isinstance(cell, float) else str(cell)
