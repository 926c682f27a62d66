"""``--metric``: dissimilarities of rows, for methods that take pairwise input."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from .._data.table import Numbers, Table
from .._errors import InputError
from ..baselines import Method
from ..dissimilarity import dissimilarities, to_similarity
from ..dissimilarity.cells import CATEGORICAL, NUMERIC, Column
from ..preprocess.plan import ColumnReport
from .data import Data, in_table_terms
from .out_of_core import FarData
from .registry import METHODS

ANY_COLUMNS = ("mixed", "hamming")  # metrics of unprocessed cells that ignore missing values


def pairs_parameters(method: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return parameters for pairwise input, or raise an error that lists methods with it."""
    pairs = METHODS[method].pairs
    if pairs is None:
        able = ", ".join(name for name, known in METHODS.items() if known.pairs is not None)
        raise InputError(f"--metric is for {able}; {method} compares rows in its own way")
    for name, value in pairs.items():
        if value == "precomputed" and name in given:
            raise InputError(f"--metric says what is compared; leave out --set {name}")
    return {**pairs, **given}


def with_pairs(data: Data | FarData, metric: str, method: Method, jobs: int | None) -> Data:
    """Return data whose estimator is given pairwise dissimilarities or similarities."""
    if not isinstance(data, Data):
        raise InputError("--metric compares all rows: leave the table in memory")
    X: Any = data.matrix
    if metric in ANY_COLUMNS:
        used = [column.name for column in data.columns if column.used]
        X = [_column(data.table, name, data.rows) for name in used]
    try:
        pairs = dissimilarities(X, metric=metric, n_jobs=jobs)
    except ValueError as error:
        features = data.preparation.features()
        raise InputError(in_table_terms(str(error), data.rows, features)) from error
    return data._replace(
        pairs=to_similarity(pairs, method.similarity) if method.similarity else pairs
    )


def compared_as_they_are(columns: list[ColumnReport], metric: str) -> list[ColumnReport]:
    """Describe how unprocessed columns are compared.

    Examples
    --------
    >>> column = ColumnReport("age", "numeric", 2, None, True, "standardised")
    >>> compared_as_they_are([column], "mixed")[0].done
    'difference over range; missing values left out'
    """
    ranges = {"numeric"} if metric == "mixed" else set()
    return [
        column._replace(
            done=("difference over range" if column.kind in ranges else "equal or not")
            + ("; missing values left out" if column.n_missing else "")
        )
        if column.used
        else column
        for column in columns
    ]


def _column(table: Table, name: str, rows: np.ndarray) -> Column:
    """Return some rows of a column in the form that dissimilarities take."""
    column = table.columns[name]
    if isinstance(column, Numbers):
        return Column(name, NUMERIC, column.values[rows].astype(np.float64))
    words = table.words(name)
    # The code -1 of a missing value indexes None.
    levels = np.array([*words.levels, None], dtype=object)
    return Column(name, CATEGORICAL, levels[words.codes[rows]])
