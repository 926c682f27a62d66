"""The rule as one query in DuckDB's SQL, over a table or view named ``rows``."""

from collections.abc import Iterator

import numpy as np

from ..preprocess.prepare import NumericStep, Step
from .rule import Rule, written_by

TABLE = "rows"


def to_sql(rule: Rule) -> str:
    """Return a query that gives all columns of the table and one more, ``cluster``.

    It is NULL in rows with an infinite value, or with a missing one unless these are imputed.
    """
    single = rule.preparation.dtype == "float32"
    impute = rule.preparation.missing == "impute"
    values, features = [], []
    for i, step in enumerate(rule.preparation.steps):
        values.append(f"{_value(step, single)} AS _v{i}")
        features += [f"CAST({one} AS DOUBLE)" for one in _features(step, f"_v{i}", single, impute)]
    features = [f"{expression} AS _f{j}" for j, expression in enumerate(features)]
    scores = [f"{score} AS _s{c}" for c, score in enumerate(_scores(rule))]
    least = f"least({', '.join(f'_s{c}' for c in range(len(scores)))}) AS _least"
    cases = [f"WHEN _s{c} = _least THEN {label}" for c, label in enumerate(rule.labels)]
    if np.isfinite(rule.price):
        cases = [f"WHEN _least > {_number(rule.price)} THEN -1", *cases]
    query, table = [], TABLE
    for name, columns in (
        ("typed", values),
        ("prepared", features),
        ("scored", scores),
        ("decided", [least]),
    ):
        query += [f"{name} AS (SELECT *,", _listed(columns), f"FROM {table}),"]
        table = name
    query[-1] = query[-1].rstrip(",")
    added = [column.rsplit(" ", 1)[1] for column in (*values, *features, *scores, least)]
    return "\n".join(
        [
            f"-- {rule.title}, in DuckDB's SQL; NULL where it has none.",
            f"-- {written_by()} Replace {TABLE!r} by the name of your table.",
            "WITH",
            *query,
            f"SELECT * EXCLUDE ({', '.join(added)}),",
            "CASE",
            *(f"  {case}" for case in cases),
            f"END AS cluster FROM {table};\n",
        ]
    )


def _value(step: Step, single: bool) -> str:
    """Return a column as it is read: empty text is missing, and so is a number that is NaN."""
    name = '"' + step.name.replace('"', '""') + '"'
    if isinstance(step, NumericStep):
        kind = "FLOAT" if single else "DOUBLE"
        return f"CASE WHEN NOT isnan(CAST({name} AS {kind})) THEN CAST({name} AS {kind}) END"
    return f"NULLIF(CAST({name} AS VARCHAR), '')"


def _features(step: Step, value: str, single: bool, impute: bool) -> Iterator[str]:
    """Yield the columns of the matrix that one column of the table makes."""
    if isinstance(step, NumericStep):
        if impute:
            value = f"coalesce({value}, {_number(step.fill, single)})"
        shifted = f"({value} - {_number(step.center, single)}) / {_number(step.scale, single)}"
        yield f"CASE WHEN isfinite({value}) THEN {shifted} END"
        return
    if impute:
        value = f"coalesce({value}, {_text(step.fill)})"
    for level in step.levels:
        yield f"({value} = {_text(level)})"


def _scores(rule: Rule) -> Iterator[str]:
    """Yield the score of each center."""
    for offset, vector in zip(rule.offsets.tolist(), rule.vectors.tolist(), strict=True):
        if rule.linear:
            products = " + ".join(f"_f{j} * {_number(s)}" for j, s in enumerate(vector))
            yield f"{_number(offset)} - ({products})"
        else:
            shifts = [f"(_f{j} - {_number(c)})" for j, c in enumerate(vector)]
            yield " + ".join(f"{shift} * {shift}" for shift in shifts)


def _number(value: float, single: bool = False) -> str:
    """Return a number that is read as a double: one without an exponent would be a decimal."""
    text = repr(float(value))
    text = f"({text if 'e' in text else f'{text}e0'})"
    return f"CAST({text} AS FLOAT)" if single else text


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def _listed(columns: list[str]) -> str:
    return ",\n".join(f"  {column}" for column in columns)
