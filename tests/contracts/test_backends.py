"""One answer, to the last bit, wherever the rows live and however they are cut and shared out."""

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from countless import DPMeans, farthest_first_penalty, penalty_path
from countless._data import backend, dask

da = pytest.importorskip("dask.array")
distributed = pytest.importorskip("distributed")
pa = pytest.importorskip("pyarrow")

pytestmark = pytest.mark.slow

N_ROWS, N_COLUMNS = 300, 3
RAGGED = (1, 90, 7, 130, 72)


@cache
def table(kind: str) -> np.ndarray:
    """Return rows that some divergence is made for."""
    random = np.random.default_rng(0)
    centers = 6 * random.standard_normal((5, N_COLUMNS))
    label = random.integers(5, size=N_ROWS)
    blobs = centers[label] + random.standard_normal((N_ROWS, N_COLUMNS))
    far_off = blobs + 1e4 * np.arange(N_COLUMNS)
    odds = np.exp(centers / 4)[label]
    return {
        "float32": blobs.astype(np.float32),
        "float64": far_off,
        "counts": random.poisson(8 * odds).astype(np.float32),
        "yes or no": (random.random((N_ROWS, N_COLUMNS)) < odds / (1 + odds)).astype(np.float64),
        "positive": random.gamma(4.0, odds).astype(np.float32),
        "whole": np.rint(4 * blobs).astype(np.int8),
    }[kind]


def weights() -> np.ndarray:
    """Return weights of several sizes; whole chunks have none."""
    weight = np.random.default_rng(1).integers(4, size=N_ROWS) / 3.0
    weight[95:190] = 0.0
    return weight


# Where the same rows can be.


def memory(X: np.ndarray, folder: Path) -> np.ndarray:
    return X


def npy_path(X: np.ndarray, folder: Path) -> Path:
    np.save(folder / "rows.npy", X)
    return folder / "rows.npy"


def memory_map(X: np.ndarray, folder: Path) -> np.memmap:
    return np.load(npy_path(X, folder), mmap_mode="r")


def sliced_memory_map(X: np.ndarray, folder: Path) -> np.memmap:
    padded = np.concatenate([X[:100] + 1, X, X[:50]])
    return np.load(npy_path(padded, folder), mmap_mode="r")[60:][40:-50]


def parquet_file(X: np.ndarray, folder: Path, name: str = "rows.parquet") -> Path:
    from pyarrow import parquet

    columns = {f"column {j}": column for j, column in enumerate(X.T.copy())}
    parquet.write_table(pa.table(columns), folder / name, row_group_size=70)
    return folder / name


def parquet_folder(X: np.ndarray, folder: Path) -> Path:
    inside = folder / "parts"
    inside.mkdir()
    for number, part in enumerate(np.array_split(X, [3, 200])):
        parquet_file(part, inside, f"part-{number}.parquet")
    return inside


def dask_array(X: np.ndarray, folder: Path):
    return da.from_array(X, chunks=(RAGGED, (2, 1)))


def small_dask_array(X: np.ndarray, folder: Path):
    return da.from_array(X, chunks=(9, N_COLUMNS))


def dask_frame(X: np.ndarray, folder: Path):
    pd, dd = pytest.importorskip("pandas"), pytest.importorskip("dask.dataframe")
    return dd.from_pandas(pd.DataFrame(X, columns=list("abc")), npartitions=4)


class Place(NamedTuple):
    """A place for rows, and how they are worked on there."""

    place: Callable
    n_jobs: int = 1
    block_rows: int = backend.BLOCKS.most_rows
    cluster: str | None = None  # the fixture of a Dask cluster
    chunk_values: int = 2**18  # the fewest in a chunk there

    @property
    def is_dask(self) -> bool:
        return "dask" in self.place.__name__


BACKENDS = {
    "memory, 3 threads": Place(memory, 3, 128),
    "memory, blocks of 64": Place(memory, 1, 64),
    "memory map": Place(memory_map, 3, 64),
    "sliced memory map": Place(sliced_memory_map, 1, 256),
    "npy": Place(npy_path, 3, 128),
    "Parquet": Place(parquet_file),
    "folder of Parquet": Place(parquet_folder, 1, 128),
    "Dask array, no cluster": Place(dask_array, 1, 128),
    "Dask frame, no cluster": Place(dask_frame, 3, 256),
    "Dask array, one chunk on 2 processes": Place(small_dask_array, cluster="processes"),
    "Dask array, 2 processes": Place(dask_array, cluster="processes", chunk_values=256),
    "Dask frame, 2 processes": Place(dask_frame, cluster="processes", chunk_values=300),
    "Dask array, in process": Place(small_dask_array, 3, cluster="in_process", chunk_values=220),
}
LOCAL = [name for name, each in BACKENDS.items() if each.cluster is None]
CLUSTERS = [name for name in BACKENDS if name not in LOCAL]


@pytest.fixture(scope="module")
def processes():
    """Two worker processes of one thread."""
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=":0"
    ) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def in_process():
    """One worker of three threads, in this process."""
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=3, processes=False, dashboard_address=":0"
    ) as cluster:
        yield cluster


@pytest.fixture
def at(request, tmp_path, monkeypatch):
    """Give a function that brings rows to a backend and asks a case there."""
    with ExitStack() as stack:

        def ask(case: "Case", where: Place) -> dict[str, Any]:
            monkeypatch.setattr(
                backend, "BLOCKS", replace(backend.BLOCKS, most_rows=where.block_rows)
            )
            if where.cluster is not None:
                few = replace(dask.CHUNKS, fewest_values=where.chunk_values)
                monkeypatch.setattr(dask, "CHUNKS", few)
                cluster = request.getfixturevalue(where.cluster)
                stack.enter_context(distributed.Client(cluster))
            rows = where.place(table(case.rows), tmp_path)
            return case.ask(rows, where)

        yield ask


# What is asked.


class Case(NamedTuple):
    """A question about some rows."""

    question: Callable  # (X, weight, n_jobs, **settings) -> answers
    settings: dict[str, Any]
    rows: str = "float32"
    weighted: bool = False

    def ask(self, X, where: Place) -> dict[str, Any]:
        weight = weights() if self.weighted else None
        return self.question(X, weight, where.n_jobs, **self.settings)


def fit(X, weight, n_jobs, **settings) -> dict[str, Any]:
    model = DPMeans(random_state=0, n_jobs=n_jobs, **settings).fit(X, sample_weight=weight)
    return {
        "labels": model.labels_,
        "centers": model.cluster_centers_,
        "history": model.objective_history_,
        "objective": model.objective_,
        "penalty": model.penalty_,
        "weights": model.cluster_weights_,
        "passes": model.n_iter_,
    }


def use(X, weight, n_jobs, **settings) -> dict[str, Any]:
    rows = table("float32")
    model = DPMeans(random_state=0, n_jobs=n_jobs, **settings).fit(rows[:200])
    return {
        "labels": model.predict(X),
        "score": model.score(X, sample_weight=weight),
        "distances": np.asarray(model.transform(X)),
    }


def path(X, weight, n_jobs, **settings) -> dict[str, Any]:
    found = penalty_path(X, sample_weight=weight, random_state=0, n_jobs=n_jobs, **settings)
    return {
        "plateaus": np.array(found.plateaus),
        "breakpoints": found.breakpoints,
        "labels": found.labels_at(found.penalty),
    }


def farthest(X, weight, n_jobs, **settings) -> dict[str, Any]:
    return {"penalty": farthest_first_penalty(X, 6, sample_weight=weight, **settings)}


CASES = {
    "given": Case(fit, {"penalty": 25.0, "refine": False}),
    "random": Case(fit, {"penalty": 25.0, "refine": False, "order": "random"}, weighted=True),
    "farthest": Case(
        fit, {"penalty": 40.0, "refine": False, "order": "farthest"}, "float64", weighted=True
    ),
    "refine": Case(fit, {"penalty": 60.0}),
    "refine weighted": Case(fit, {"penalty": 60.0, "tol": 0.2}, "float64", weighted=True),
    "two starts": Case(fit, {"penalty": 300.0, "n_init": 2}),
    "auto": Case(fit, {"tol": 0.2}),
    "auto weighted": Case(fit, {}, weighted=True),
    "auto Algorithm 1": Case(fit, {"refine": False}, "float64"),
    "integers": Case(fit, {"penalty": 1000.0}, "whole"),
    "cosine": Case(fit, {"penalty": 0.5, "refine": False, "divergence": "cosine"}),
    "cosine refined": Case(fit, {"penalty": 2.0, "divergence": "cosine"}),
    "kl": Case(fit, {"penalty": 30.0, "refine": False, "divergence": "kl"}, "counts"),
    "kl refined": Case(fit, {"penalty": 150.0, "divergence": "kl"}, "counts", weighted=True),
    "logistic": Case(fit, {"penalty": 15.0, "tol": 0.2, "divergence": "logistic"}, "yes or no"),
    "itakura-saito": Case(
        fit, {"penalty": 2.0, "refine": False, "divergence": "itakura-saito"}, "positive"
    ),
    "itakura-saito refined": Case(
        fit, {"penalty": 15.0, "divergence": "itakura-saito"}, "positive", weighted=True
    ),
    "predict": Case(use, {"penalty": 60.0}, weighted=True),
    "predict cosine": Case(use, {"penalty": 2.0, "divergence": "cosine"}),
    "path": Case(path, {}),
    "path weighted kl": Case(path, {"divergence": "kl"}, "counts", weighted=True),
    "farthest first": Case(farthest, {}, weighted=True),
}


@cache
def reference(name: str) -> dict[str, Any]:
    """Ask a case in memory, on one thread, all rows in one block."""
    return CASES[name].ask(table(CASES[name].rows), Place(memory))


def check(name: str, where: Place, answers: dict[str, Any]) -> None:
    for what, expected in reference(name).items():
        if what == "labels" and where.is_dask:
            assert isinstance(answers[what], da.Array)
            assert answers[what].shape == expected.shape
        np.testing.assert_array_equal(np.asarray(answers[what]), expected, what, strict=True)


@pytest.mark.parametrize("where", LOCAL)
@pytest.mark.parametrize("name", CASES)
def test_same_bits_on_one_machine(name, where, at):
    check(name, BACKENDS[where], at(CASES[name], BACKENDS[where]))


# A step on a cluster takes its time: cases of very many steps stay on one machine, and the others
# are asked on one cluster, these two on all.
MANY_STEPS = {"refine", "two starts", "auto", "auto weighted", "integers"} | {
    name for name in CASES if name.endswith("refined")
}
ON_ALL_CLUSTERS = ("random", "predict")
ON_CLUSTERS = [
    (name, where)
    for turn, name in enumerate(name for name in CASES if name not in MANY_STEPS)
    for where in (CLUSTERS if name in ON_ALL_CLUSTERS else [CLUSTERS[turn % len(CLUSTERS)]])
]


@pytest.mark.parametrize(("name", "where"), ON_CLUSTERS)
def test_same_bits_on_a_cluster(name, where, at):
    check(name, BACKENDS[where], at(CASES[name], BACKENDS[where]))


def test_cases_have_something_to_differ_in():
    for name in CASES:
        answers = reference(name)
        if "labels" in answers:
            assert 2 <= len(np.unique(answers["labels"])) < 60, name
