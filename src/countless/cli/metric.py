"""``--metric``: dissimilarities of rows, for methods that take pairwise input."""

from typing import Any

import numpy as np

from .._data.cells import CATEGORICAL, NUMERIC, Column
from .._data.table import Numbers, Table, text_cells
from .._errors import InputError
from ..dissimilarity import dissimilarities, to_similarity
from .data import ANY_COLUMNS, MemoryTable, in_table_terms


def with_pairs(
    data: MemoryTable, metric: str, similarity: str | None, jobs: int | None
) -> MemoryTable:
    """Return data whose estimator is given pairwise dissimilarities or similarities."""
    X: Any = data.matrix
    if metric in ANY_COLUMNS:
        used = [column.name for column in data.columns if column.used]
        X = [_column(data.table, name, data.rows) for name in used]
    try:
        pairs = dissimilarities(X, metric=metric, n_jobs=jobs)
    except ValueError as error:
        features = data.preparation.features()
        raise InputError(in_table_terms(str(error), data.rows, features)) from error
    return data._replace(pairs=to_similarity(pairs, similarity) if similarity else pairs)


def _column(table: Table, name: str, rows: np.ndarray) -> Column:
    """Return some rows of a column in the form that dissimilarities take."""
    column = table.columns[name]
    if isinstance(column, Numbers):
        return Column(name, NUMERIC, column.values[rows].astype(np.float64))
    return Column(name, CATEGORICAL, text_cells(table.words(name))[rows])
