"""Summaries as text for a terminal. Data are escaped: never markup, never control characters."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table as Grid
from rich.text import Text

from .._data.table import DATE, DATE_TIME, PER, TIME, written
from .._labels import NOISE
from ..preprocess.plan import ColumnReport
from .plain import number, percent, printable
from .summary import ClusterSummary, Trait
from .words import Word


@dataclass(frozen=True)
class TextLimits:
    """How much the table of clusters shows in a terminal."""

    clusters: int = 20
    few_clusters: int = 8  # with more, each shows two traits, so that they fit on a screen or two
    number_characters: int = 9
    few_columns: int = 20  # with more, adjacent ones with equal entries share a line
    column_lines: int = 40
    tree_lines: int = 40  # of the tree of layers


TEXT = TextLimits()


def columns_view(columns: Sequence[ColumnReport]) -> RenderableType:
    """Show the kind of each column and how it was processed.

    Examples
    --------
    >>> from rich.console import Console
    >>> report = ColumnReport("age", "numeric", 0, None, True, "standardised")
    >>> Console(width=60).print(columns_view([report]))
     column   kind      missing   what was done
     age      numeric         0   standardised
    """
    grid = _grid("column", "kind", "missing", "what was done")
    grid.columns[2].justify = "right"
    lines = [[column] for column in columns]
    if len(columns) > TEXT.few_columns:
        alike = groupby(columns, key=lambda column: column[1:])
        lines = [list(run) for _, run in alike]
    for run in lines[: TEXT.column_lines]:
        column = run[0]
        name = column.name
        if len(run) > 1:
            name = f"{name} to {run[-1].name} ({len(run)})"
        kind = column.kind
        if kind == "categorical":
            kind = f"categorical ({column.n_distinct})"
        style = "" if column.used else "dim"
        cells = (name, kind, str(column.n_missing), column.done)
        grid.add_row(*(Text(printable(cell), style=style) for cell in cells))
    shown = sum(map(len, lines[: TEXT.column_lines]))
    return _with_rest(grid, len(columns) - shown, "columns")


def candidates_view(candidates: Sequence[Any], chosen: str) -> RenderableType:
    """Show the candidates, their number of clusters, and their evidence.

    Examples
    --------
    >>> from countless.auto import Candidate
    >>> from rich.console import Console
    >>> tried = [Candidate("round", 3, 0.9, 1.0, 0.12, "")]
    >>> Console(width=79).print(candidates_view(tried, "round"))
       candidate   clusters   evidence   agreement   seconds   note
     * round              3       0.90        1.00      0.12
    """
    grid = _grid("", "candidate", "clusters", "evidence", "agreement", "seconds", "note")
    for place in (2, 3, 4, 5):
        grid.columns[place].justify = "right"
    for one in candidates:
        grid.add_row(
            "*" if one.method == chosen else "",
            Text(printable(one.method)),
            "" if one.n_clusters is None else str(one.n_clusters),
            "" if one.evidence is None else f"{one.evidence:.2f}",
            "" if one.agreement is None else f"{one.agreement:.2f}",
            f"{one.seconds:.2f}",
            Text(printable(one.note)),
            style="bold" if one.method == chosen else "",
        )
    return grid


def clusters_view(
    clusters: Sequence[ClusterSummary],
    cell: Callable[[int, str], str],
    row_name: Callable[[int], str],
    names: Mapping[int, str] | None = None,
    words: Mapping[int, Sequence[Word]] | None = None,
) -> RenderableType:
    """Show each cluster with its size, its distinguishing features, and a typical row.

    Parameters
    ----------
    clusters : sequence of ClusterSummary
        In the order to show.
    cell : callable
        ``cell(row, column)`` is the original text of the table at a position of the matrix.
    row_name : callable
        The name of the row at a position of the matrix.
    names : mapping from int to str, optional
        The names of some clusters.
    words : mapping from int to sequence of Word, optional
        The words that set clusters apart.

    Returns
    -------
    rich renderable

    Examples
    --------
    >>> from rich.console import Console
    >>> young = ClusterSummary(0, 12, 0.25, 3, [Trait("age", None, 20.0, 60.0, -2.0)])
    >>> Console(width=79).print(clusters_view([young], lambda row, column: "21", "row {}".format))
     cluster   rows   share      what sets it apart   here   others   typical row
     0           12    25 %                                           row 3
                              ↓  age                    20       60   21
    """
    grid = _grid(
        "cluster", "rows", "share", "", "what sets it apart", "here", "others", "typical row"
    )
    for place in (1, 2, 5, 6):
        grid.columns[place].justify = "right"
    for at, cluster in enumerate(clusters[: TEXT.clusters]):
        if at:
            grid.add_section()
        grid.add_row(
            Text(printable(_cluster_name(cluster.label, names or {}))),
            str(cluster.size),
            percent(cluster.share),
            "",
            Text("" if cluster.traits else "nothing stands out", style="dim"),
            "",
            "",
            Text(printable(row_name(cluster.typical))),
            style="bold",
        )
        if shown := ", ".join(one.word for one in (words or {}).get(cluster.label, ())):
            grid.add_row("", "", "", "", Text(printable(shown), style="italic"))
        for trait in cluster.traits[: 2 if len(clusters) > TEXT.few_clusters else None]:
            cells = _trait_cells(trait, cell(cluster.typical, trait.column))
            grid.add_row("", "", "", *(Text(printable(part)) for part in cells))
    rest = len(clusters) - TEXT.clusters
    return _with_rest(grid, rest, "clusters; run.json describes them all")


def _cluster_name(label: int, names: Mapping[int, str]) -> str:
    number = "noise" if label == NOISE else str(label)
    return f"{number} {names[label]}" if label in names else number


def _trait_cells(trait: Trait, typical: str) -> tuple[str, str, str, str, str]:
    arrow = "↑" if trait.difference > 0 else "↓"
    typical = typical or "(missing)"
    plain = not trait.is_share and not trait.unit
    if plain and len(typical) > TEXT.number_characters and typical != "(missing)":
        typical = f"{float(typical):.6g}"
    return arrow, _trait_name(trait), *_amounts(trait), typical


def _amounts(trait: Trait) -> tuple[str, str]:
    """Return how much there is of a trait in the cluster, and in the others."""
    if trait.is_share:
        return percent(trait.inside), percent(trait.outside)
    deviation = (trait.inside - trait.outside) / trait.difference
    amount = partial(_amount, deviation=deviation, unit=trait.unit)
    return amount(trait.inside), amount(trait.outside)


def _amount(value: float, deviation: float, unit: str) -> str:
    """Format a mean with its unit; dates are dates again."""
    if unit in PER:
        return number(PER[unit] * value, PER[unit] * deviation) + unit
    if unit in (DATE, DATE_TIME, TIME):
        return written(value, unit)
    return unit + number(value, deviation)


def _trait_name(trait: Trait) -> str:
    return trait.column if trait.level is None else f"{trait.column} = {trait.level}"


def trait_text(trait: Trait) -> str:
    """Return a trait in words, with its size in standard deviations of the column.

    Examples
    --------
    >>> trait_text(Trait("milk", None, 1.0, 0.03, 1.9, binary=True))
    'milk: 100 %, others 3 % (+1.9 sd)'
    >>> trait_text(Trait("age", None, 20.0, 60.0, -2.0))
    'age: 20, others 60 (-2.0 sd)'
    """
    here, rest = _amounts(trait)
    return f"{_trait_name(trait)}: {here}, others {rest} ({trait.difference:+.1f} sd)"


def trait_label(trait: Trait) -> str:
    """Return a trait as a short name.

    Examples
    --------
    >>> trait_label(Trait("age", None, 20.0, 60.0, -2.0))
    'low age'
    >>> trait_label(Trait("milk", None, 0.0, 0.9, -1.9, binary=True))
    'no milk'
    """
    if trait.is_share:
        return _trait_name(trait) if trait.difference > 0 else f"no {_trait_name(trait)}"
    return f"{'high' if trait.difference > 0 else 'low'} {trait.column}"


def _grid(*headings: str) -> Grid:
    grid = Grid(box=None, header_style="bold", pad_edge=True, padding=(0, 1))
    for heading in headings:
        grid.add_column(heading, overflow="fold")
    return grid


def _with_rest(grid: Grid, n_more: int, what: str) -> RenderableType:
    if n_more <= 0:
        return grid
    return Group(grid, Text(f" ... and {n_more} more {what}", style="dim"))
