"""A table on the workers of a Dask cluster: every chunk is read and preprocessed by a task."""

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np

from .._data.columns import Roles
from .._data.part import Part
from .._data.sources import Source
from .._errors import InputError
from .._report.summary import Visit
from ..preprocess.statistics import Statistics, Survey, prepared_part
from .out_of_core import StoredTable

LOCAL = "local"
SECONDS_TO_CONNECT = 10


def need_dask() -> None:
    """Raise an error that names the extra to install, before the computation."""
    if find_spec("dask") is None or find_spec("distributed") is None:
        raise InputError("--dask needs Dask: pip install 'countless[dask]'")


@contextmanager
def open_cluster(address: str, jobs: int | None) -> Iterator["Cluster"]:
    """Connect to a scheduler, or start a local cluster of processes; close it at the end."""
    need_dask()
    from distributed import Client, LocalCluster
    from joblib import effective_n_jobs

    if address != LOCAL:
        try:
            client = Client(address, timeout=SECONDS_TO_CONNECT)
        except (OSError, ValueError, ImportError) as error:
            raise InputError(f"cannot connect to a Dask scheduler at {address}: {error}") from error
        with client:
            if not client.nthreads():
                raise InputError(f"the Dask scheduler at {address} has no workers")
            yield Cluster(client, f"Dask at {address}")
        return
    n_workers = effective_n_jobs(-1 if jobs is None else jobs)
    settings: dict[str, Any] = {
        "n_workers": n_workers,
        "threads_per_worker": 1,
        "dashboard_address": None,
        "silence_logs": logging.ERROR,
    }
    with LocalCluster(**settings) as workers, Client(workers) as client:
        yield Cluster(client, f"Dask with {n_workers} local workers")


class Cluster:
    """Backend for the workers of a Dask cluster."""

    def __init__(self, client: Any, name: str) -> None:
        self._client = client
        self.name = name

    def each(
        self, function: Callable[[Part], Statistics], parts: Sequence[Part]
    ) -> list[Statistics]:
        """Map a function over the parts of a table."""
        return self._client.gather(self._client.map(function, parts, pure=False))

    def keep(self, source: Source, roles: Roles, survey: Survey) -> StoredTable:
        """Return a table as a Dask array, whose chunks are read and preprocessed by tasks."""
        import dask.array as da
        from dask.delayed import delayed

        read = delayed(prepared_part, pure=True)
        n_features, kind = survey.shape[1], survey.preparation.dtype
        chunks = [
            da.from_delayed(read(part, survey.preparation), (n_kept, n_features), kind)
            for part, n_kept in zip(source.parts, survey.n_kept, strict=True)
            if n_kept
        ]
        matrix = da.concatenate(chunks)
        return StoredTable(
            source,
            roles,
            survey,
            matrix,
            visit=partial(self._visit, matrix, survey.weight),
            pieces=self._pieces,
            sha256=None,
            backend=self.name,
        )

    def _visit(self, matrix: Any, weight: np.ndarray | None, labels: Any) -> Visit:
        """Return a function that maps another one over the chunks, on the workers."""
        from dask.delayed import delayed

        matrix = matrix.rechunk({0: labels.chunks[0], 1: -1})
        stops = np.cumsum(labels.chunks[0])
        starts = stops - labels.chunks[0]

        def visit(function: Callable) -> list:
            call = delayed(function, pure=False)
            tasks = [
                call(int(start), rows, names, None if weight is None else weight[start:stop])
                for start, stop, rows, names in zip(
                    starts, stops, matrix.to_delayed().ravel(), labels.to_delayed(), strict=True
                )
            ]
            return self._client.gather(self._client.compute(tasks))

        return visit

    def _pieces(self, labels: Any) -> Iterator[np.ndarray]:
        for chunk in labels.to_delayed():
            yield self._client.compute(chunk).result()
