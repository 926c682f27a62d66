"""One section of the page: what a script of this folder computes, as a JSON file and pictures.

A script has a function ``make(form, folder)`` that returns a `Section`, and ends in ``run(make)``.
Its form says how much it does: 'tiny' for tests, 'quick' for ten minutes in all, 'full' for hours.
"""

import argparse
import json
import resource
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from PIL import Image

FORMS = ("tiny", "quick", "full")
N_COLORS = 96  # of a picture
RESULTS = Path(__file__).parent / "results"
COLORS = ("#c8553d", "#2d7d9a", "#7a9e3f", "#8f6fb0", "#d59a2c", "#5b5b5b", "#b5738d", "#4aa39b")


class Form(NamedTuple):
    """How much a script does."""

    name: str = "quick"

    def pick(self, tiny: Any, quick: Any, full: Any) -> Any:
        """Return the setting of this form."""
        return (tiny, quick, full)[FORMS.index(self.name)]


@dataclass
class Section:
    """A table or figure of a paper, redone.

    ``blocks`` are shown in order; ``values`` are not shown: they are what tests and other sections
    read.
    """

    title: str
    theirs: str
    blocks: list[dict[str, Any]] = field(default_factory=list)
    values: dict[str, Any] = field(default_factory=dict)

    def text(self, words: str) -> None:
        """Add a paragraph."""
        self.blocks.append({"kind": "text", "text": " ".join(words.split())})

    def table(self, records: Sequence[Mapping[str, Any]], digits: int = 2) -> None:
        """Add a table of one line a record; floats are rounded."""
        shown = [{str(key): _cell(value, digits) for key, value in r.items()} for r in records]
        self.blocks.append({"kind": "table", "records": shown})

    def picture(
        self,
        figure: Figure,
        folder: Path,
        name: str,
        words: str,
        dpi: int = 80,
        is_free: bool = True,
    ) -> None:
        """Save a figure and add it; ``words`` tell what is to be seen.

        One whose data may not be redistributed is not free: it stays in the folder of results.
        """
        file = folder / f"{name}.png"
        figure.savefig(file, dpi=dpi)
        with Image.open(file) as drawn:  # few colours: a third of the bytes
            drawn.convert("RGB").quantize(N_COLORS).save(file, optimize=True)
        words = " ".join(words.split())
        kind = "picture" if is_free else "private picture"
        self.blocks.append({"kind": kind, "file": f"{name}.png", "text": words})

    def left_out(self, reason: object) -> None:
        """Say what is missing, and why."""
        self.text(f"*Left out*: {reason}.")


def new_figure(width: float, height: float) -> Figure:
    """Return a figure that is drawn without a window."""
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def bare(ax: Any, title: str = "", square: bool = False) -> None:
    """Take the ticks from an axis that only shows where points lie."""
    ax.set_xticks([])
    ax.set_yticks([])
    ax.set_title(title, loc="left", fontsize="small")
    if square:
        ax.set_aspect("equal", adjustable="datalim")


def _cell(value: Any, digits: int) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    if isinstance(value, float | np.floating):
        return f"{value:,.{digits}f}"
    return f"{value:,}" if isinstance(value, int | np.integer) else str(value)


def run(make: Callable[[Form, Path], Section]) -> None:
    """Make a section from the command line, and write it."""
    parser = argparse.ArgumentParser(description=(sys.modules["__main__"].__doc__ or "").strip())
    parser.add_argument("--form", choices=FORMS, default="quick", help="how much (default: quick)")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder of the output files")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    start = time.perf_counter()
    section = make(Form(options.form), options.out)
    used = resource.getrusage(resource.RUSAGE_SELF)
    about = {
        "form": options.form,
        "seconds": round(time.perf_counter() - start, 1),
        "cpu_seconds": round(used.ru_utime + used.ru_stime, 1),
    }
    file = options.out / f"{Path(sys.argv[0]).stem}.json"
    file.write_text(json.dumps(asdict(section) | about, indent=1, default=_plain) + "\n")
    print(f"{file.stem}: {about['seconds']} s", flush=True)


def _plain(value: Any) -> Any:
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else str(value)
