"""From the user's data to the matrix that is clustered, with a word on everything done to it."""

from typing import Any, NamedTuple

import numpy as np

from ..io.columns import Roles, examine_columns
from ..io.plan import Plan, plan_preparation, row_weights
from ..io.table import Numbers, Table, counted, shortest
from ..report.text import columns_view
from .screen import Screen


class Data(NamedTuple):
    """A table, what its columns are for, and the matrix made of it."""

    table: Table
    roles: Roles
    plan: Plan
    weight: np.ndarray | None

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
        name = f"row {self.plan.prepared.rows[row] + 1}"
        return f"{self.cell(row, self.roles.id)} ({name})" if self.roles.id else name

    def ids(self) -> tuple[str, list[str]] | None:
        """Return what names the rows in files, when a column was chosen for it."""
        return (self.roles.id, self.table.words(self.roles.id).words()) if self.roles.id else None

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
    data = Data(table, roles, plan, None if weight is None else weight[rows])
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
