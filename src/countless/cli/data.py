"""From the user's data to the matrix that is clustered, with a word on everything done to it."""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from ..io.columns import Roles, examine_columns
from ..io.plan import Plan, plan_preparation, row_groups, row_weights
from ..io.prepare import Feature
from ..io.table import Column, Numbers, Table, counted, shortest
from ..report.text import columns_view
from .screen import Screen

LONGEST_NAME = 16  # a terminal of 80 columns has room for little more
MOST_GROUPS = 50

_GROUP_NAMES = {"class", "group", "label", "species", "target", "y"}
_ROW = re.compile(r"\brow (\d+)\b")
_COLUMN = re.compile(r"\bcolumn (\d+)\b")


class Data(NamedTuple):
    """A table, what its columns are for, and the matrix made of it."""

    table: Table
    roles: Roles
    plan: Plan
    weight: np.ndarray | None
    groups: np.ndarray | None = None

    @property
    def matrix(self) -> np.ndarray:
        """The rows to cluster."""
        return self.plan.prepared.matrix

    def cell(self, row: int, column: str) -> str:
        """Return the table's own text at a position of the matrix."""
        at = self.plan.prepared.rows[row]
        found = self.table.columns[column]
        if isinstance(found, Numbers):
            return "" if np.isnan(found.values[at]) else shortest(found.values[at])
        words = self.table.words(column)
        return words.levels[words.codes[at]] if words.codes[at] >= 0 else ""

    def row_name(self, row: int) -> str:
        """Return what a person would call the row at a position of the matrix."""
        place = f"row {self.plan.prepared.rows[row] + 1}"
        naming = self.roles.id or next(
            (column.name for column in self.plan.columns if column.kind == "identifier"), None
        )
        name = self.cell(row, naming) if naming else ""
        if len(name) > LONGEST_NAME:
            name = f"{name[: LONGEST_NAME - 1].rstrip()}…"
        return name or place

    def ids(self) -> tuple[str, list[str]] | None:
        """Return what names the rows in files, when a column was chosen for it."""
        return (self.roles.id, self.table.words(self.roles.id).words()) if self.roles.id else None

    def hints(self) -> list[str]:
        """Return what a user may want to say about columns that were taken at face value."""
        hints = []
        for name in (column.name for column in self.plan.columns if column.used):
            if looks_like_groups(name, self.table.columns[name]):
                hints.append(
                    f"column {name!r} took part; if it holds known groups, leave it out by "
                    f"--exclude {name} (or compare with it: fit --compare {name})"
                )
            if looks_like_identifier(self.table.columns[name]):
                hints.append(
                    f"column {name!r} holds a different whole number in every row; "
                    f"if it names the rows, say --id {name}"
                )
        return hints

    def in_table_terms(self, error: Exception) -> str:
        """Return an estimator's complaint about the matrix as one about the table."""
        features = self.plan.preparation.features()
        return in_table_terms(str(error), self.plan.prepared.rows, features)

    def record(self) -> dict[str, Any]:
        """Return what was read and done, for the run record."""
        return {
            "source": self.table.source,
            "format": self.table.format,
            "sha256": self.table.sha256,
            "rows": self.table.n_rows,
            "rows_used": len(self.plan.prepared.rows),
            "features": self.matrix.shape[1],
            "gaps": self.plan.preparation.gaps,
            "columns": self.plan.columns,
        }


def in_table_terms(message: str, rows: np.ndarray, features: Sequence[Feature]) -> str:
    """Name the table's row and column in an error that counts those of the matrix.

    Examples
    --------
    >>> features = [Feature("age", None, 0.0, 1.0)]
    >>> in_table_terms("row 0, column 0 is -3", np.array([4]), features)
    "row 5, column 'age' is -3"
    """
    message = _ROW.sub(lambda found: f"row {rows[int(found[1])] + 1}", message)
    return _COLUMN.sub(lambda found: f"column {features[int(found[1])].column!r}", message)


def looks_like_identifier(column: Column) -> bool:
    """Whether a column holds a different whole number in every row of a table that is not tiny.

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
    """Whether a column is called as if it held known groups, and has few values.

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


def prepare_data(
    screen: Screen, table: Table, roles: Roles, *, gaps: str, scale: bool | None, divergence: Any
) -> Data:
    """Prepare a table that was read, and say what was done."""
    if scale is None:
        scale = not table.uniform and divergence == "sqeuclidean"
    with screen.step("prepare", "preparing the columns"):
        weight = row_weights(table, roles.weight) if roles.weight else None
        facts = examine_columns(table, roles)
        plan = plan_preparation(table, facts, gaps=gaps, scale=scale, weight=weight)
    rows = plan.prepared.rows
    groups = None
    if roles.group:
        groups = row_groups(table, roles.group, rows)
        plan = plan._replace(preparation=replace(plan.preparation, group=roles.group))
    data = Data(table, roles, plan, None if weight is None else weight[rows], groups)
    screen.show(
        f"{table.source}: {counted(table.n_rows, 'row')}, {counted(len(table.columns), 'column')}",
        columns_view(plan.columns),
    )
    if len(rows) < table.n_rows:
        screen.show(
            f" left out: {counted(table.n_rows - len(rows), 'row')} with gaps; used: {len(rows)}"
        )
    screen.show("")
    return data
