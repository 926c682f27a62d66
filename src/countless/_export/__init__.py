"""Models as SQL, plain Python or ONNX, where their labels are arithmetic.

`standalone` is the Python that is written; `sql` and `onnx` say the same in their languages.
"""

from collections.abc import Callable, Mapping
from typing import Any

from .._errors import InputError
from ..preprocess.prepare import NumericStep, Preparation
from ..serialize import SERIALIZERS, serializer_of
from ..serialize.model_file import SavedModel, chosen
from .onnx import to_onnx
from .python import to_python
from .rule import Rule, rule_of
from .sql import to_sql

FORMATS: Mapping[str, Callable[[Rule], str | bytes]] = {
    "sql": to_sql,
    "python": to_python,
    "onnx": to_onnx,
}


def export(model: SavedModel, to: str) -> str | bytes:
    """Return a saved model in one of `FORMATS`; raise InputError where it is not arithmetic.

    Without a preparation the columns are ``x0``, ``x1``, ... in the order of the matrix.

    Examples
    --------
    >>> from countless import DPMeans
    >>> model = DPMeans(penalty=4.0).fit([[0.0], [1.0], [9.0]])
    >>> print(export(SavedModel(model, None), "sql").splitlines()[0])
    -- The cluster of each row by DPMeans of countless, in DuckDB's SQL; NULL where it has none.
    """
    estimator = chosen(model.estimator)
    serializer = serializer_of(estimator)
    centers = serializer.centers(estimator) if serializer and serializer.centers else None
    if centers is None:
        able = [name for name, each in SERIALIZERS.items() if each.centers is not None]
        raise InputError(
            f"the labels of {type(estimator).__name__} are not those of nearest centers; "
            f"models that can be exported: {', '.join(able)}"
        )
    preparation = model.preparation or _columns_of_matrix(estimator.n_features_in_)
    if preparation.group is not None:
        raise InputError(f"rows of one {preparation.group!r} are labelled jointly, not one by one")
    return FORMATS[to](rule_of(type(estimator).__name__, preparation, centers))


def _columns_of_matrix(n_features: Any) -> Preparation:
    return Preparation(tuple(NumericStep(f"x{j}", 0.0, 0.0, 1.0) for j in range(n_features)))
