"""``countless warm-up``: compile everything once, so that no later command has to wait for it."""

from collections.abc import Iterator
from typing import Any

import click

from .options import json_option, quiet_option

N_ROWS = 60


@click.command("warm-up", short_help="Compile everything once, after installation.")
@json_option
@quiet_option
def warm_up(as_json: bool, quiet: bool) -> None:
    """Fit every estimator to a small table, so that all of its code is compiled and cached.

    Without this the first run of each method compiles what it needs. The cache lies beside the
    package, or where NUMBA_CACHE_DIR says; an upgrade empties it.
    """
    import time
    import warnings

    from rich.progress import MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    from .._registry import ESTIMATORS
    from .console import Screen

    screen = Screen(quiet=quiet, as_json=as_json)
    columns = (TextColumn("{task.description}"), MofNCompleteColumn(), TimeElapsedColumn())
    seconds: dict[str, float] = {}
    with Progress(*columns, console=screen.err, disable=quiet) as progress:
        task = progress.add_task("compiling", total=len(ESTIMATORS))
        for name, entry in ESTIMATORS.items():
            progress.update(task, description=f"compiling {name}")
            start = time.perf_counter()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # chains that are this short cannot agree
                for rows, extra in _small_data(entry.takes):
                    entry.make(**entry.quick).fit(rows, **extra)
            seconds[name] = round(time.perf_counter() - start, 2)
            progress.advance(task)
    screen.show(f"compiled {len(seconds)} estimators in {sum(seconds.values()):.0f} s")
    screen.finish({"seconds": seconds})


def _small_data(takes: str) -> Iterator[tuple[Any, dict[str, Any]]]:
    """Yield rows of each precision, or a graph, as an estimator takes them."""
    import numpy as np

    rows = np.random.default_rng(0).normal(size=(N_ROWS, 3))
    rows[: N_ROWS // 2] += 9
    if takes == "edges":
        from sklearn.neighbors import kneighbors_graph

        yield kneighbors_graph(rows, 5), {}
        return
    yield rows, {}
    if takes == "rows":
        yield rows.astype(np.float32), {}
