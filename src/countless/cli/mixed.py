"""Unprocessed tables with columns of any kind, in the form that estimators take them."""

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from .._data.columns import ColumnFacts
    from .._data.table import Table
    from .._mcmc.crosscat.table import Table as CellTable
    from ..preprocess.prepare import Feature, Prepared
    from .console import Screen
    from .options import DataChoices


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
    from .._data.table import text_cells
    from .._mcmc.crosscat.table import Table as CellTable

    cells = []
    for name in names:
        if name in words:
            cells.append(text_cells(table.words(name)))
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


def read_for_fit(screen: "Screen", choices: "DataChoices") -> MixedTable:
    """Read the table of ``countless fit``."""
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
