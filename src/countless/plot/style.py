"""Common style of all plots: colors, and axes to draw on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

COLORS = (
    "#c8553d",
    "#2d7d9a",
    "#7a9e3f",
    "#8f6fb0",
    "#d59a2c",
    "#4f5d75",
    "#b5577f",
    "#3d8b74",
    "#a0744a",
    "#6b8fc9",
)
LINE = "#1f3b57"
CHOSEN = "#e07b39"
PALE = "#8fa3b5"


@dataclass(frozen=True)
class Shown:
    """How much the displays show, so that they are legible."""

    names: int = 100  # of the rows or columns of a table with blocks
    column_names: int = 60
    cell_inches: float = 0.11  # the side of one row or column of a table with blocks
    table_inches: float = 11.0  # the longest side of such a table
    numbered_bars: int = 10  # with more, the numbers over them would overlap
    points: int = 5000
    averaged_draws: int = 200  # of the parameters of a component
    matrix_rows: int = 100  # sampled evenly from all clusters
    views: int = 8  # the widest
    # Plateaus beside the chosen one, and their least score relative to that of the chosen one.
    other_plateaus: int = 2
    plateau_score: float = 0.15
    # The axes of a path extend by this factor beyond the last merge, and to `path_clusters`.
    beyond: float = 6.0
    path_clusters: int = 60


SHOWN = Shown()


def need_pyplot() -> Any:
    """Return matplotlib's pyplot, or raise an error that says how to install it."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError("pictures need matplotlib: pip install 'countless[plot]'") from error
    return plt


def axes_for(ax: Any, width: float, height: float) -> Any:
    """Return the given axes, or those of a new figure of a size in inches."""
    if ax is not None:
        return ax
    return need_pyplot().subplots(figsize=(width, height), layout="constrained")[1]


def color_of(cluster: int) -> str:
    """Return the color of a cluster."""
    return COLORS[cluster % len(COLORS)]
