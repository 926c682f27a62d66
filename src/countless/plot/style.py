"""Common style of all plots: colors, and axes to draw on."""

from __future__ import annotations

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
