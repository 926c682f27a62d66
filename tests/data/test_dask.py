"""What is particular to Dask clusters: lost workers, chunks of any size, and what the log says."""

import logging
import os
import signal
from dataclasses import replace

import numpy as np
import pytest

from countless import DPMeans
from countless._data import dask as module
from countless._data import open_rows
from countless._data.dask import rechunk_evenly
from countless.divergences import get_divergence

da = pytest.importorskip("dask.array")
distributed = pytest.importorskip("distributed")

EUCLIDEAN = get_divergence("sqeuclidean")


@pytest.fixture(scope="module")
def processes():
    """Two worker processes that are started again when they are lost."""
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=":0"
    ) as cluster:
        yield cluster


@pytest.fixture
def client(processes):
    with distributed.Client(processes) as client:
        client.wait_for_workers(2)  # those that the last test killed are being started
        yield client


def blobs(n_rows: int, n_columns: int = 4, n_clusters: int = 12) -> np.ndarray:
    random = np.random.default_rng(0)
    centers = 5 * random.standard_normal((n_clusters, n_columns))
    rows = centers[random.integers(n_clusters, size=n_rows)]
    return rows + random.standard_normal(rows.shape)


class Killer:
    """A callback that kills workers in the middle of the pass after some number of them."""

    def __init__(self, client, n_passes: int, n_workers: int):
        self.n_passes, self.n_seen = n_passes, 0
        self.n_workers = n_workers
        self.killed: list[int] = []
        self.was_over = None
        self._client, self._compute = client, client.compute
        client.compute = self._compute_and_kill

    def setup(self, estimator, context):
        pass

    def teardown(self, estimator, context):
        pass

    def on_fit_task_begin(self, estimator, context, **_):
        pass

    def on_fit_task_end(self, estimator, context, **_):
        self.n_seen += context.parent is not None  # the root task is the whole fit
        return False

    def _compute_and_kill(self, *args, **kwargs):
        if self.n_seen < self.n_passes or self.killed:
            return self._compute(*args, **kwargs)
        has = self._client.has_what()
        busiest = sorted(has, key=lambda worker: len(has[worker]), reverse=True)
        pids = self._client.run(os.getpid)
        self.killed += [pids[worker] for worker in busiest[: self.n_workers]]
        futures = self._compute(*args, **kwargs)
        for pid in self.killed:
            os.kill(pid, signal.SIGKILL)
        self.was_over = futures[0].done()
        return futures


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="there is no SIGKILL here")
@pytest.mark.parametrize("n_workers", [1, 2])
def test_killed_workers_cost_a_recomputation_only(n_workers, client, monkeypatch):
    pytest.importorskip("sklearn.callback")
    monkeypatch.setattr(module, "CHUNKS", replace(module.CHUNKS, fewest_values=2**10))
    X = blobs(4000)
    settings = {"penalty": 40.0, "refine": False, "order": "random", "random_state": 0}
    expected = DPMeans(**settings).fit(X)
    assert expected.n_iter_ > 5

    killer = Killer(client, n_passes=3, n_workers=n_workers)
    model = DPMeans(**settings).set_callbacks(killer)
    model.fit(da.from_array(X, chunks=(500, 4)))

    assert len(killer.killed) == n_workers
    assert killer.was_over is False
    assert not set(killer.killed) & set(client.run(os.getpid).values())
    np.testing.assert_array_equal(model.labels_.compute(), expected.labels_)
    np.testing.assert_array_equal(model.cluster_centers_, expected.cluster_centers_)
    np.testing.assert_array_equal(model.objective_history_, expected.objective_history_)


@pytest.mark.parametrize(
    ("chunks", "n_threads", "expected"),
    [
        ((50_000,) * 8, 2, 8),  # well cut already
        ((400_000,), 3, 6),  # too few for three threads
        ((100,) * 4000, 2, 6),  # too small: Dask's own work would be the larger part
        ((20_000,) * 6 + (280_000,), 2, 4),  # one thread would work on while others wait
        ((400,), 8, 1),  # too short to share out
    ],
)
def test_chunks_of_any_size_are_handled_and_reported(chunks, n_threads, expected, caplog):
    array = da.zeros((sum(chunks), 8), chunks=(chunks, 8))
    with caplog.at_level(logging.INFO, logger="countless"):
        cut = rechunk_evenly(array, n_threads)
    assert cut.numblocks == (expected, 1)
    assert cut.shape == array.shape
    said = [record.getMessage() for record in caplog.records if record.name == "countless"]
    assert len(said) == (cut.chunks != array.chunks)
    for line in said:
        assert f"X comes in {len(chunks)} chunks" in line
        assert f"cut again into {expected}" in line


def test_chunks_of_a_long_table_are_not_too_large():
    array = da.zeros((10_000_000, 16), chunks=(5_000_000, 16), dtype=np.float32)
    assert max(rechunk_evenly(array, 2).chunks[0]) * 16 < 1.1 * module.CHUNKS.most_values


def test_the_log_says_once_that_memory_is_faster(client, caplog):
    X = blobs(200)
    with caplog.at_level(logging.INFO, logger="countless"):
        DPMeans(100.0, refine=False).fit(da.from_array(X))
    said = [record for record in caplog.records if "in memory it would be" in record.message]
    assert len(said) == 1


def test_bad_cells_are_named_from_a_cluster(client, monkeypatch):
    monkeypatch.setattr(module, "CHUNKS", replace(module.CHUNKS, fewest_values=2**8))
    X = blobs(1000)
    X[777, 2] = np.nan
    with pytest.raises(ValueError, match=r"NaN: row 777, column 2 \(1 such in all\)"):
        DPMeans(40.0).fit(da.from_array(X, chunks=(100, 4)))


def test_rows_are_picked_in_any_order(client, monkeypatch):
    monkeypatch.setattr(module, "CHUNKS", replace(module.CHUNKS, fewest_values=2**8))
    X = blobs(1000)
    ids = np.array([999, 0, 500, 500, 3])
    with open_rows(da.from_array(X, chunks=(130, 4)), None, EUCLIDEAN) as rows:
        assert len(rows.spans) > 2
        np.testing.assert_array_equal(rows.points(ids), X[ids])


def test_what_is_held_can_be_put_and_read(client, monkeypatch):
    monkeypatch.setattr(module, "CHUNKS", replace(module.CHUNKS, fewest_values=2**8))
    values = np.arange(1000, dtype=np.int32)
    with open_rows(da.from_array(blobs(1000), chunks=(130, 4)), None, EUCLIDEAN) as rows:
        state = rows.allocate({"labels": (np.int32, 7)})
        assert rows.get(state, "labels").compute().tolist() == [7] * 1000
        rows.put(state, "labels", values)
        np.testing.assert_array_equal(np.concatenate(list(rows.pieces(state, "labels"))), values)
        rows.put(state, "labels", da.from_array(values[::-1].copy(), chunks=333))
        np.testing.assert_array_equal(rows.get(state, "labels").compute(), values[::-1])
        rows.allocate_more(state, {"labels": (np.int32, 0), "marked": (np.bool_, True)})
        np.testing.assert_array_equal(rows.get(state, "labels").compute(), values[::-1])
        assert rows.get(state, "marked").compute().all()
