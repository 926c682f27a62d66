"""The rule as an ONNX graph: an input of shape (n_rows, 1) for each column, an output ``cluster``.

Numbers are doubles (floats where the model was fitted to these) and missing ones NaN; categories
are strings, missing ones empty.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from .._errors import InputError
from ..preprocess.prepare import NumericStep, Step
from .rule import Rule, written_by

# The label of rows that have none: those with a missing or an infinite value.
NO_LABEL = -2
# Versions of operators and of the format that ONNX Runtime 1.17 and later read.
_OPERATORS, _ML_OPERATORS, _FORMAT = 19, 3, 9


def to_onnx(rule: Rule) -> bytes:
    """Return the bytes of the model."""
    try:
        from onnx import TensorProto, helper
    except ImportError as error:
        raise InputError("ONNX files need onnx: pip install 'countless[onnx]'") from error
    single = rule.preparation.dtype == "float32"
    number = TensorProto.FLOAT if single else TensorProto.DOUBLE
    graph = _Graph(np.float32 if single else np.float64)
    inputs, features, complete = [], [], []
    for step in rule.preparation.steps:
        kind = number if isinstance(step, NumericStep) else TensorProto.STRING
        inputs.append(helper.make_tensor_value_info(step.name, kind, ["n_rows", 1]))
        prepared, known = _prepared(graph, step, impute=rule.preparation.missing == "impute")
        features.append(prepared)
        complete.append(known)
    rows = graph.add("Concat", *features, axis=1)
    if single:
        rows = graph.add("Cast", rows, to=TensorProto.DOUBLE)
    scores = graph.add("Concat", *_scores(graph, rule, rows), axis=1)
    place = graph.add("ArgMin", scores, axis=1, keepdims=0)
    label = graph.add("Gather", graph.constant(np.array(rule.labels)), place)
    if np.isfinite(rule.price):
        least = graph.add("ReduceMin", scores, graph.constant(np.array([1])), keepdims=0)
        far = graph.add("Greater", least, graph.constant(np.array(rule.price)))
        label = graph.add("Where", far, graph.constant(np.array(-1)), label)
    known = graph.add("Concat", *complete, axis=1)
    known = graph.add("Cast", known, to=TensorProto.INT64)
    known = graph.add("ReduceMin", known, graph.constant(np.array([1])), keepdims=0)
    known = graph.add("Cast", known, to=TensorProto.BOOL)
    graph.add("Where", known, label, graph.constant(np.array(NO_LABEL)), output="cluster")
    output = helper.make_tensor_value_info("cluster", TensorProto.INT64, ["n_rows"])
    made = helper.make_model(
        helper.make_graph(graph.nodes, "countless", inputs, [output]),
        opset_imports=[
            helper.make_opsetid("", _OPERATORS),
            helper.make_opsetid("ai.onnx.ml", _ML_OPERATORS),
        ],
        ir_version=_FORMAT,
        producer_name="countless",
        doc_string=f"{rule.title}; {NO_LABEL} where it has none. {written_by()}",
    )
    return bytes(made.SerializeToString())


class _Graph:
    """Nodes in order, each with one output of a name of its own."""

    def __init__(self, dtype: Any) -> None:
        self.dtype = dtype
        self.nodes: list[Any] = []

    def add(
        self, operator: str, *inputs: str, output: str = "", domain: str = "", **settings: Any
    ) -> str:
        """Add a node, and return the name of its output."""
        from onnx import helper

        output = output or f"_{len(self.nodes)}"
        node = helper.make_node(operator, list(inputs), [output], domain=domain, **settings)
        self.nodes.append(node)
        return output

    def constant(self, value: np.ndarray) -> str:
        """Add a constant."""
        from onnx import numpy_helper

        return self.add("Constant", value=numpy_helper.from_array(value))

    def number(self, value: float) -> str:
        """Add a constant of the type of the numbers of the table."""
        return self.constant(np.array(value, dtype=self.dtype))


def _prepared(graph: _Graph, step: Step, *, impute: bool) -> tuple[str, str]:
    """Return the columns of the matrix that a column makes, and whether each row has a value."""
    if isinstance(step, NumericStep):
        value, missing = step.name, graph.add("IsNaN", step.name)
        if impute:
            value = graph.add("Where", missing, graph.number(step.fill), value)
            missing = graph.add("IsNaN", value)
        infinite = graph.add("IsInf", value)
        shifted = graph.add("Sub", value, graph.number(step.center))
        feature = graph.add("Div", shifted, graph.number(step.scale))
        return feature, graph.add("Not", graph.add("Or", missing, infinite))
    value, empty = step.name, graph.constant(np.array("", dtype=object))
    missing = graph.add("Equal", value, empty)
    if impute:
        fill = graph.constant(np.array(step.fill, dtype=object))
        value = graph.add("Where", missing, fill, value)
        missing = graph.add("Equal", value, empty)
    hot = graph.add(
        "OneHotEncoder", value, domain="ai.onnx.ml", cats_strings=list(step.levels), zeros=1
    )
    flat = graph.add("Reshape", hot, graph.constant(np.array([-1, len(step.levels)])))
    kind = 1 if graph.dtype == np.float32 else 11
    return graph.add("Cast", flat, to=kind), graph.add("Not", missing)


def _scores(graph: _Graph, rule: Rule, rows: str) -> Sequence[str]:
    """Return the column of scores of each center, one at a time, so that memory stays small."""
    if rule.linear:
        slopes = graph.constant(np.ascontiguousarray(rule.vectors.T))
        return [graph.add("Sub", graph.constant(rule.offsets), graph.add("MatMul", rows, slopes))]
    axis = graph.constant(np.array([1]))
    scores = []
    for center in rule.vectors:
        shift = graph.add("Sub", rows, graph.constant(center))
        square = graph.add("Mul", shift, shift)
        scores.append(graph.add("ReduceSum", square, axis, keepdims=1))
    return scores
