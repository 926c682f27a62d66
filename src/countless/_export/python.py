"""The rule as one file of plain Python: `countless._export.standalone` with the model filled in."""

from importlib.resources import files
from pprint import pformat

import numpy as np

from ..preprocess.prepare import NumericStep, Step
from .rule import Rule, written_by

_EMPTY = "MODEL: dict = {}  # filled in by the export\n"


def to_python(rule: Rule) -> str:
    """Return the text of the file."""
    source = files("countless._export").joinpath("standalone.py").read_text(encoding="utf-8")
    start, end = source.split(_EMPTY)
    _, _, rest = start.partition("\n")
    head = f'"""{rule.title}, in plain Python: no package is needed. {written_by()}\n'
    model = pformat(_model(rule), width=100, compact=True, sort_dicts=False)
    return f"{head}{rest}MODEL = {model}\n{end}"


def _model(rule: Rule) -> dict[str, object]:
    return {
        "steps": [_plain(step) for step in rule.preparation.steps],
        "impute": rule.preparation.missing == "impute",
        "single": rule.preparation.dtype == "float32",
        "linear": rule.linear,
        "vectors": rule.vectors.tolist(),
        "offsets": rule.offsets.tolist(),
        "labels": rule.labels,
        "price": rule.price if np.isfinite(rule.price) else None,
    }


def _plain(step: Step) -> dict[str, object]:
    if isinstance(step, NumericStep):
        return {"name": step.name, "fill": step.fill, "center": step.center, "scale": step.scale}
    return {"name": step.name, "fill": step.fill, "levels": list(step.levels)}
