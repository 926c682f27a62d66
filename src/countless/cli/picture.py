"""The picture of a penalty path, as the bytes of a PNG file."""

import io
from typing import Any

from ..io.errors import InputError


def need_matplotlib() -> None:
    """Say which extra to install, before any work is done for a picture that cannot be drawn."""
    from importlib.util import find_spec

    if find_spec("matplotlib") is None:
        raise InputError("drawing needs matplotlib: pip install 'countless[plot]'")


def path_picture(path: Any) -> bytes:
    """Draw the number of clusters against the penalty."""
    need_matplotlib()
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    from ..plot.path import PenaltyPathDisplay

    # A figure of its own, not pyplot's: no window system and no global state are touched.
    figure = Figure(figsize=(7, 4), layout="constrained")
    FigureCanvasAgg(figure)
    PenaltyPathDisplay.from_path(path, ax=figure.add_subplot())
    out = io.BytesIO()
    figure.savefig(out, format="png", dpi=150)
    return out.getvalue()
