"""Opening the user's table where it is, with the dissimilarities of its rows under ``--metric``."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np

from .._data.cells import CATEGORICAL, NUMERIC, Column
from .._data.table import Numbers, Table, text_cells
from .._errors import InputError
from ..dissimilarity import dissimilarities, to_similarity
from .console import Screen
from .dask import open_cluster
from .data import (
    ANY_COLUMNS,
    MemoryTable,
    PreparedTable,
    ask_about_groups,
    in_table_terms,
    prepare_data,
)
from .options import DataChoices
from .out_of_core import open_stored


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


@contextmanager
def open_data(
    screen: Screen, choices: DataChoices, divergence: Any, similarity: str | None = None
) -> Iterator[PreparedTable]:
    """Read the data, or open them out of core, and report their preprocessing.

    With ``--metric`` all rows are compared; the dissimilarities become the named ``similarity``.
    """
    settings: dict[str, Any] = {
        "missing": choices.missing,
        "scale": choices.scale,
        "divergence": divergence,
    }
    if not (choices.out_of_core or choices.dask):
        with screen.step("read", f"reading {choices.reading.source}"):
            table, roles = choices.read()
        roles = ask_about_groups(screen, table, roles)
        data = prepare_data(screen, table, roles, **settings, metric=choices.metric)
        if choices.metric:
            with screen.step("compare", "comparing all rows"):
                data = with_pairs(data, choices.metric, similarity, choices.jobs)
        yield data
        return
    source = choices.reading.open()
    with ExitStack() as stack:
        cluster = None
        if choices.dask:
            stack.enter_context(screen.hear("countless"))
            cluster = stack.enter_context(open_cluster(choices.dask, choices.jobs))
        stored = open_stored(screen, source, choices.roles, backend=cluster, **settings)
        yield stack.enter_context(stored)
