"""Results in a terminal and in a notebook: short tables instead of seventeen digits.

A result that shows itself (`Shown`) has a sentence or two and a table; ``summary()`` is both as
text, and notebooks show both as HTML. Lists of named tuples show themselves as a table (`Records`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from importlib import import_module
from typing import Any

# Lines of a table; more are counted.
MOST_RECORDS = 10


class Records(list):
    """A list of named tuples that is shown as a table.

    Examples
    --------
    >>> from typing import NamedTuple
    >>> class Plateau(NamedTuple):
    ...     n_clusters: int
    ...     score: float
    >>> Records([Plateau(3, 1.3515041), Plateau(12, -float("inf"))])
    n_clusters  score
             3  1.352
            12   -inf
    """

    def __repr__(self) -> str:
        return text_table(*_cells(self)) if self else "[]"

    def _repr_html_(self) -> str:
        return html_table(*_cells(self))


class Shown:
    """A result that shows itself in a few lines and a table."""

    def _describe(self) -> tuple[list[str], Records]:
        """Return the lines and the table."""
        raise NotImplementedError

    def summary(self) -> str:
        """Return the result in a few lines and a table."""
        lines, records = self._describe()
        return "\n".join([*lines, *([repr(records)] if records else [])])

    def _repr_html_(self) -> str:
        lines, records = self._describe()
        first, *others = map(escape, lines)
        text = "<br>".join([f"<strong>{first}</strong>", *others])
        table = html_table(*_cells(records)) if records else ""
        return f"<div><p>{text}</p>{table}</div>"


class Plotted(Shown):
    """A result that has a display, too."""

    _display: str  # its name in countless.plot
    _maker: str  # the method that makes it

    def plot(self, **options: Any) -> Any:
        """Draw the result with Matplotlib, and return its display."""
        # Loaded when used: displays stand above results, and need Matplotlib.
        display = getattr(import_module("countless.plot"), self._display)
        return getattr(display, self._maker)(self, **options)


def short(value: Any) -> str:
    """Format one cell: numbers with four significant digits, None as nothing.

    Examples
    --------
    >>> short(103.04567), short(12), short(None), short("round"), short(1234567.0)
    ('103', '12', '', 'round', '1.235e+06')
    """
    if value is None:
        return ""
    if isinstance(value, float) and math.isfinite(value):
        return f"{value:.4g}"
    return str(value)


def text_table(headings: Sequence[str], rows: Sequence[Sequence[str]], n_more: int = 0) -> str:
    """Return cells as aligned columns, numbers to the right.

    Examples
    --------
    >>> print(text_table(["name", "k"], [["round", "3"], ["a", "12"]], n_more=2))
    name    k
    round   3
    a      12
    ... and 2 more
    """
    columns = list(zip(*rows, strict=True)) if rows else [() for _ in headings]
    right = [all(_is_number(cell) for cell in column) for column in columns]
    width = [max(map(len, (name, *own))) for name, own in zip(headings, columns, strict=True)]
    lines = []
    for cells in (headings, *rows):
        parts = zip(cells, width, right, strict=True)
        padded = [cell.rjust(size) if end else cell.ljust(size) for cell, size, end in parts]
        lines.append("  ".join(padded).rstrip())
    return "\n".join([*lines, *([f"... and {n_more} more"] if n_more else [])])


def html_table(headings: Sequence[str], rows: Sequence[Sequence[str]], n_more: int = 0) -> str:
    """Return cells as an HTML table; they are text, never markup.

    Examples
    --------
    >>> html_table(["name"], [["<b>"]])
    '<table><thead><tr><th>name</th></tr></thead><tbody><tr><td>&lt;b&gt;</td></tr></tbody></table>'
    """
    head = "".join(f"<th>{escape(name)}</th>" for name in headings)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in cells) + "</tr>" for cells in rows
    )
    more = f"<p>... and {n_more} more</p>" if n_more else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"


def _cells(records: Sequence[Any]) -> tuple[list[str], list[list[str]], int]:
    """Return the names of fields, the cells of the first records, and how many are left out."""
    if not records:
        return [], [], 0
    first = records[:MOST_RECORDS]
    rows = [[short(value) for value in record] for record in first]
    return list(first[0]._fields), rows, len(records) - len(first)


def _is_number(cell: str) -> bool:
    if not cell:
        return True
    try:
        float(cell)
    except ValueError:
        return False
    return True
