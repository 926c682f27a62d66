"""Opening the user's table where it is: in memory, on disk, or on a Dask cluster."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from .console import Screen
from .dask import open_cluster
from .data import PreparedTable, prepare_data
from .metric import with_pairs
from .options import DataChoices
from .out_of_core import open_stored


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
