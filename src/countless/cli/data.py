"""From the user's data to the matrix that is clustered, with a report on its preprocessing."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, Protocol

import click
import numpy as np

from .. import metrics
from .._data.columns import Roles, examine_columns
from .._data.read import edited
from .._data.table import Column, Numbers, Table, counted, written
from .._data.write import Content, labels_csv
from .._errors import InputError
from .._report.plain import printable
from .._report.summary import ClusterSummary, distances_to_means, summarize_clusters
from .._report.text import columns_view
from ..divergences import allows_scaling
from ..preprocess.plan import ColumnReport, Plan, plan_preparation, row_groups, row_weights
from ..preprocess.prepare import Feature, Preparation
from .console import Screen
from .options import TABLES

ANY_COLUMNS = ("mixed", "hamming")  # metrics of unprocessed cells that ignore missing values
LONGEST_NAME = 16  # to fit a terminal of 80 columns
MOST_GROUPS = 50

_GROUP_NAMES = {"class", "group", "label", "species", "target", "y"}
_ROW = re.compile(r"\brow (\d+)\b")
_COLUMN = re.compile(r"\bcolumn (\d+)\b")


class Cells(NamedTuple):
    """The original text of the table at some positions of the matrix."""

    text: Mapping[int, Mapping[str, str]]
    rows: Sequence[int] | np.ndarray  # the position in the table of each row of the matrix
    naming: str | None  # the column of row names

    def cell(self, row: int, column: str) -> str:
        """Return the text of one cell."""
        return self.text[row][column]

    def row_name(self, row: int) -> str:
        """Return the name of a row for the user."""
        name = self.cell(row, self.naming) if self.naming else ""
        if len(name) > LONGEST_NAME:
            name = f"{name[: LONGEST_NAME - 1].rstrip()}…"
        return name or f"row {self.rows[row] + 1}"


def cell_text(table: Table, row: int, column: str) -> str:
    """Return the text of one cell; a missing value is the empty text.

    Examples
    --------
    >>> cell_text(Table("t", {"x": Numbers(np.array([0.5]))}, n_rows=1), 0, "x")
    '0.5'
    """
    found = table.columns[column]
    if isinstance(found, Numbers):
        value = found.values[row]
        return "" if np.isnan(value) else written(value, found.unit)
    words = table.words(column)
    return words.levels[words.codes[row]] if words.codes[row] >= 0 else ""


class PreparedTable(Protocol):
    """A preprocessed table, wherever its rows are: what the command needs of it."""

    @property
    def roles(self) -> Roles:
        """The roles of columns that the user gave."""

    @property
    def groups(self) -> np.ndarray | None:
        """The group of each row, if there are groups."""

    @property
    def weight(self) -> np.ndarray | None:
        """The weight of each row, if there are weights."""

    @property
    def matrix(self) -> Any:
        """The rows to cluster: an array, a path, or a Dask array."""

    @property
    def given(self) -> Any:
        """The input of the estimator: the matrix, or dissimilarities of its rows."""

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of rows and features that are clustered."""

    @property
    def rows(self) -> Sequence[int] | np.ndarray:
        """The positions of these rows in the table."""

    @property
    def preparation(self) -> Preparation:
        """The preprocessing of rows."""

    @property
    def columns(self) -> list[ColumnReport]:
        """The kind of each column of the table, and how it was processed."""

    def summarize(self, labels: Any) -> list[ClusterSummary]:
        """Summarize every cluster."""

    def cells(self, rows: Sequence[int]) -> "Cells":
        """Return the original text of the table at some positions of the matrix."""

    def labels_csv(self, labels: Any, layers: Mapping[str, np.ndarray]) -> Content:
        """Return the labels file, with a column for each layer."""

    def with_clusters(self, labels: Any, layers: Mapping[str, np.ndarray]) -> dict[str, Content]:
        """Return the user's table with the clusters, by its file name; empty if not possible."""

    def agreement(self, labels: Any) -> dict[str, Any] | None:
        """Compare the clusters with a column of known groups, if there is one."""

    def hints(self) -> list[str]:
        """Return suggestions about the columns."""

    def in_table_terms(self, error: Exception) -> str:
        """Return an estimator's error about the matrix in terms of the table."""

    def record(self) -> dict[str, Any]:
        """Return the input and its preprocessing, for the run record."""


class MemoryTable(NamedTuple):
    """A table in memory, the roles of its columns, and its matrix."""

    table: Table
    roles: Roles
    plan: Plan
    weight: np.ndarray | None
    groups: np.ndarray | None = None
    # Dissimilarities or similarities of rows, if a metric was given.
    pairs: np.ndarray | None = None

    @property
    def matrix(self) -> np.ndarray:
        """The rows to cluster."""
        return self.plan.prepared.matrix

    @property
    def given(self) -> np.ndarray:
        """The input of the estimator."""
        return self.matrix if self.pairs is None else self.pairs

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of rows and features that are clustered."""
        return self.matrix.shape

    @property
    def rows(self) -> np.ndarray:
        """The positions of these rows in the table."""
        return self.plan.prepared.rows

    @property
    def preparation(self) -> Preparation:
        """The preprocessing that made the matrix."""
        return self.plan.preparation

    @property
    def columns(self) -> list[ColumnReport]:
        """The kind of each column of the table, and how it was processed."""
        return self.plan.columns

    def summarize(self, labels: np.ndarray) -> list[ClusterSummary]:
        """Summarize every cluster."""
        features = self.preparation.features()
        return summarize_clusters(self.matrix, labels, features, weight=self.weight)

    def cells(self, rows: Sequence[int]) -> Cells:
        """Return the original text of the table at some positions of the matrix."""
        naming = self.roles.id or next(
            (column.name for column in self.columns if column.kind == "identifier"), None
        )
        names = [column.name for column in self.columns if column.used]
        names += [naming] if naming else []
        return Cells(
            {
                row: {name: cell_text(self.table, int(self.rows[row]), name) for name in names}
                for row in rows
            },
            self.rows,
            naming,
        )

    def labels_csv(self, labels: np.ndarray, layers: Mapping[str, np.ndarray]) -> Content:
        """Return the labels file, with a column for each layer."""
        name = self.roles.id
        ids = (name, self.table.words(name).words()) if name else None
        return labels_csv(labels, self.rows, self.table.n_rows, ids, layers)

    def with_clusters(
        self, labels: np.ndarray, layers: Mapping[str, np.ndarray]
    ) -> dict[str, Content]:
        """Return the user's file with clusters and distances; empty for arrays and stdin."""
        if self.table.path is None or self.table.format not in TABLES:
            return {}
        distance = distances_to_means(self.matrix, labels, self.weight)
        columns = {}
        for name, values in {"cluster": labels, **layers, "distance": distance}.items():
            columns[name] = np.full(self.table.n_rows, np.nan)
            columns[name][self.rows] = values
        columns["distance"] = np.array([float(f"{d:.6g}") for d in columns["distance"]])
        return {TABLES[self.table.format]: edited(self.table, columns)}

    def agreement(self, labels: np.ndarray) -> dict[str, Any] | None:
        """Compare the clusters with the column that was excluded for that purpose."""
        if self.roles.compare is None:
            return None
        codes = self.table.words(self.roles.compare).codes[self.rows]
        return agreement_with(self.roles.compare, codes, labels)

    def hints(self) -> list[str]:
        """Return suggestions about columns whose role may be another."""
        hints = []
        for name in (column.name for column in self.columns if column.used):
            if looks_like_groups(name, self.table.columns[name]):
                hints.append(
                    f"column {name!r} takes part; if it holds known groups, leave it out by "
                    f"--exclude {name} (or compare with it: fit --compare {name})"
                )
            if looks_like_identifier(self.table.columns[name]):
                hints.append(
                    f"column {name!r} holds a different integer in every row; "
                    f"if it names the rows, say --id {name}"
                )
        return hints

    def in_table_terms(self, error: Exception) -> str:
        """Return an estimator's error about the matrix in terms of the table."""
        return in_table_terms(str(error), self.rows, self.preparation.features())

    def record(self) -> dict[str, Any]:
        """Return the input and its preprocessing, for the run record."""
        return {
            "source": self.table.source,
            "format": self.table.format,
            "guessed": self.table.notes,
            "sha256": self.table.sha256,
            "rows": self.table.n_rows,
            "rows_used": len(self.rows),
            "features": self.matrix.shape[1],
            "missing": self.preparation.missing,
            "columns": self.columns,
        }


def agreement_with(name: str, codes: np.ndarray, labels: np.ndarray) -> dict[str, Any]:
    """Compare clusters with known groups; the code -1 is a row of an unknown one."""
    known = codes >= 0
    if not known.any():
        raise InputError(f"column {name!r} is empty: nothing to compare with")
    truth, found = codes[known], labels[known]
    return {
        "column": name,
        "rows": int(known.sum()),
        "normalized_mutual_information": metrics.normalized_mutual_info_score(truth, found),
        "adjusted_rand": metrics.adjusted_rand_score(truth, found),
        "purity": metrics.purity(truth, found),
    }


def agreement_line(agreement: Mapping[str, Any]) -> str:
    """Return the line that says how clusters agree with known groups."""
    return (
        f"Agreement with {agreement['column']}: "
        f"NMI {agreement['normalized_mutual_information']:.2f}, "
        f"adjusted Rand {agreement['adjusted_rand']:.2f}, purity {agreement['purity']:.2f}"
    )


def in_table_terms(
    message: str, rows: Sequence[int] | np.ndarray, features: Sequence[Feature]
) -> str:
    """Replace matrix indices in an error by the table's row and column.

    Examples
    --------
    >>> features = [Feature("age", None, 0.0, 1.0)]
    >>> in_table_terms("row 0, column 0 is -3", np.array([4]), features)
    "row 5, column 'age' is -3"
    """
    message = _ROW.sub(lambda found: f"row {rows[int(found[1])] + 1}", message)
    return _COLUMN.sub(lambda found: f"column {features[int(found[1])].column!r}", message)


def looks_like_identifier(column: Column) -> bool:
    """Whether a column has a different integer in every row of a table that is not tiny.

    Examples
    --------
    >>> looks_like_identifier(Numbers(np.arange(100.0) * 7))
    True
    >>> looks_like_identifier(Numbers(np.ones(100)))
    False
    """
    if not isinstance(column, Numbers) or len(column.values) < 50:
        return False
    values = column.values
    return bool((values == np.round(values)).all()) and len(np.unique(values)) == len(values)


def looks_like_groups(name: str, column: Column) -> bool:
    """Whether the name of a column suggests known groups, and it has few values.

    Examples
    --------
    >>> looks_like_groups("Class", Numbers(np.array([1.0, 2.0, 2.0])))
    True
    >>> looks_like_groups("length", Numbers(np.array([1.0, 2.0, 2.0])))
    False
    """
    if name.lower() not in _GROUP_NAMES:
        return False
    values = column.values if isinstance(column, Numbers) else getattr(column, "levels", ())
    return len(np.unique(values)) <= MOST_GROUPS


def compared_as_they_are(columns: list[ColumnReport], metric: str) -> list[ColumnReport]:
    """Describe how unprocessed columns are compared.

    Examples
    --------
    >>> column = ColumnReport("age", "numeric", 2, None, True, "standardised")
    >>> compared_as_they_are([column], "mixed")[0].done
    'difference over range; missing values left out'
    """
    ranges = {"numeric", "binary"} if metric == "mixed" else set()
    return [
        column._replace(
            done=("difference over range" if column.kind in ranges else "equal or not")
            + ("; missing values left out" if column.n_missing else "")
        )
        if column.used
        else column
        for column in columns
    ]


def ask_about_groups(screen: Screen, table: Table, roles: Roles) -> Roles:
    """Ask, at a terminal, whether to leave out each column that looks like known groups.

    The first one is then compared with the clusters.
    """
    if not screen.can_ask or roles.columns:
        return roles
    for name, column in table.columns.items():
        taken = name in roles.set_aside() or name in table.aside or name in roles.categorical
        if taken or not looks_like_groups(name, column):
            continue
        question = f"Column {printable(name)!r} looks like known groups. Leave it out of the fit?"
        if click.confirm(question, err=True):
            if roles.compare is None and roles.group is None:
                roles = replace(roles, compare=name)
            else:
                roles = replace(roles, exclude=(*roles.exclude, name))
    return roles


def prepare_data(
    screen: Screen,
    table: Table,
    roles: Roles,
    *,
    missing: str,
    scale: bool | None,
    divergence: Any,
    metric: str | None = None,
) -> MemoryTable:
    """Preprocess a table and report what was done."""
    as_they_are = metric in ANY_COLUMNS
    if as_they_are and missing == "error":
        missing = "impute"  # only for the summary of clusters; the metric ignores missing values
    if scale is None:
        scale = not table.uniform and allows_scaling(divergence)
    with screen.step("prepare", "preparing the columns"):
        weight = row_weights(table, roles.weight) if roles.weight else None
        facts = examine_columns(table, roles)
        plan = plan_preparation(table, facts, missing=missing, scale=scale, weight=weight)
    if as_they_are:
        plan = plan._replace(columns=compared_as_they_are(plan.columns, str(metric)))
    rows = plan.prepared.rows
    groups = None
    if roles.group:
        groups = row_groups(table, roles.group, rows)
        plan = plan._replace(preparation=replace(plan.preparation, group=roles.group))
    data = MemoryTable(table, roles, plan, None if weight is None else weight[rows], groups)
    show_columns(screen, table, len(rows), plan.columns)
    for hint in data.hints():
        screen.note(hint)
    screen.show("")
    return data


def show_columns(
    screen: Screen,
    table: Table,
    n_used: int,
    columns: Sequence[ColumnReport],
    n_rows: int | None = None,
) -> None:
    """Report the input and its preprocessing; a first block says how many rows there are."""
    n_rows = table.n_rows if n_rows is None else n_rows
    screen.show(f"{table.source}: {counted(n_rows, 'row')}, {counted(len(columns), 'column')}")
    if table.notes:
        screen.show(f" guessed: {'; '.join(table.notes)}")
    screen.show(columns_view(columns))
    if n_used < n_rows:
        screen.show(
            f" left out: {counted(n_rows - n_used, 'row')} with missing values; used: {n_used}"
        )
