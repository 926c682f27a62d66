"""Figures as the bytes of PNG files."""

import io
from typing import Any

from .._errors import InputError


def need_matplotlib() -> None:
    """Raise an error that names the extra to install, before the computation."""
    from importlib.util import find_spec

    if find_spec("matplotlib") is None:
        raise InputError("drawing needs matplotlib: pip install 'countless[plot]'")


def new_figure(width: float, height: float) -> Any:
    """Return a figure without pyplot: no window system and no global state are used."""
    need_matplotlib()
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def png(figure: Any) -> bytes:
    """Return a figure as the bytes of a file."""
    out = io.BytesIO()
    figure.savefig(out, format="png", dpi=150)
    return out.getvalue()


def path_picture(path: Any) -> bytes:
    """Draw the number of clusters against the penalty."""
    figure = new_figure(7, 4)
    from ..plot.path import PenaltyPathDisplay

    PenaltyPathDisplay.from_path(path, ax=figure.add_subplot())
    return png(figure)


def candidates_picture(estimator: Any, X: Any) -> bytes:
    """Draw the candidates of `AutoClustering` side by side."""
    figure = new_figure(2.9 * min(4, len(estimator.candidate_labels_)), 3.1)
    from ..plot.candidates import CandidatesDisplay

    CandidatesDisplay.from_estimator(estimator, X, figure=figure)
    return png(figure)
