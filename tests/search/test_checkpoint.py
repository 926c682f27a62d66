"""A run that was stopped goes on to the answer of one that was not."""

import io
import json
import os
import signal
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import numpy as np
import pytest

from countless import DPMeans
from countless._search import checkpoint as module

SETTINGS = [
    ({"penalty": 2.0, "refine": False}, 1),
    ({"penalty": 2.0, "refine": False}, 3),
    ({"penalty": 2.0, "refine": False, "order": "random"}, 2),
    ({"penalty": 20.0}, 1),
    ({"penalty": 20.0}, 2),
    ({"penalty": 4.0, "tol": 1e-4}, 1),  # hundreds of clusters: rows look around their own
]


def table(n_rows=12_000):
    random = np.random.RandomState(0)
    centers = 2 * random.standard_normal((40, 3))
    return centers[random.randint(40, size=n_rows)] + random.standard_normal((n_rows, 3))


class Stopped(Exception):
    """Raised where a test stops a run."""


def stop_after(monkeypatch, n_saves):
    """Stop a run right after it was saved so many times."""
    save, count = module.Checkpoint.save, 0

    def saving(self, assignment, progress):
        nonlocal count
        before = self._last
        save(self, assignment, progress)
        count += self._last > before
        if count == n_saves:
            raise Stopped

    monkeypatch.setattr(module.Checkpoint, "save", saving)


def same(one, other):
    assert np.array_equal(one.labels_, other.labels_)
    assert np.array_equal(one.cluster_centers_, other.cluster_centers_)
    assert one.objective_history_.tolist() == other.objective_history_.tolist()
    assert one.n_iter_ == other.n_iter_


@pytest.mark.parametrize(("settings", "n_saves"), SETTINGS)
def test_a_stopped_run_goes_on_to_the_same_answer(tmp_path, monkeypatch, settings, n_saves):
    X, path = table(), tmp_path / "run.checkpoint"
    model = DPMeans(**settings, random_state=0, checkpoint=path)
    whole = DPMeans(**settings, random_state=0).fit(X)
    with monkeypatch.context() as patch:
        stop_after(patch, n_saves)
        with pytest.raises(Stopped):
            model.fit(X)
    assert path.exists()
    same(model.fit(X), whole)
    assert list(tmp_path.iterdir()) == []


def test_a_run_from_disk_goes_on_in_memory(tmp_path, monkeypatch):
    X, path = table(), tmp_path / "run.checkpoint"
    np.save(tmp_path / "table.npy", X)
    model = DPMeans(20.0, checkpoint=path)
    with monkeypatch.context() as patch:
        stop_after(patch, 1)
        with pytest.raises(Stopped):
            model.fit(tmp_path / "table.npy")
    same(model.fit(X), DPMeans(20.0).fit(X))


PROGRAM = """
import sys
import numpy as np
from countless import DPMeans
DPMeans(20.0, tol=1e-7, checkpoint=sys.argv[2]).fit(np.load(sys.argv[1]))
"""


def test_a_killed_process_is_resumed(tmp_path):
    X, path = table(60_000), tmp_path / "run.checkpoint"
    np.save(tmp_path / "table.npy", X)
    command = [sys.executable, "-c", PROGRAM, str(tmp_path / "table.npy"), str(path)]
    process = subprocess.Popen(command)
    deadline = time.monotonic() + 120
    while not path.exists() and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert path.exists(), "it was killed before it was saved, or ended before it was killed"
    model = DPMeans(20.0, tol=1e-7, checkpoint=path).fit(X)
    same(model, DPMeans(20.0, tol=1e-7).fit(X))
    assert not path.exists()


def test_another_run_is_told_that_the_checkpoint_is_in_use(tmp_path, monkeypatch):
    X, path = table(), tmp_path / "run.checkpoint"
    save, refused = module.Checkpoint.save, []

    def meddle(self, assignment, progress):
        save(self, assignment, progress)
        if not refused:
            with pytest.raises(ValueError, match="is in use by another run"):
                DPMeans(20.0, checkpoint=path).fit(X)
            refused.append(True)

    monkeypatch.setattr(module.Checkpoint, "save", meddle)
    same(DPMeans(20.0, checkpoint=path).fit(X), DPMeans(20.0).fit(X))
    assert refused


def test_another_table_or_parameter_is_refused(tmp_path, monkeypatch):
    X, path = table(), tmp_path / "run.checkpoint"
    with monkeypatch.context() as patch:
        stop_after(patch, 1)
        with pytest.raises(Stopped):
            DPMeans(20.0, checkpoint=path).fit(X)
    with pytest.raises(ValueError, match=r"its penalty was 20.0, this one's is 3.0"):
        DPMeans(3.0, checkpoint=path).fit(X)
    with pytest.raises(ValueError, match=r"belongs to another run: its sum of the table"):
        DPMeans(20.0, checkpoint=path).fit(X + np.array([0.0, 0.0, 1e-3]) * (X > 0))
    with pytest.raises(ValueError, match=r"its n_rows was 12000"):
        DPMeans(20.0, checkpoint=path).fit(X[:-1])


@pytest.mark.parametrize("content", [b"", b"nonsense", None])
def test_a_broken_checkpoint_is_one_clear_error(tmp_path, monkeypatch, content):
    X, path = table(), tmp_path / "run.checkpoint"
    with monkeypatch.context() as patch:
        stop_after(patch, 1)
        with pytest.raises(Stopped):
            DPMeans(20.0, checkpoint=path).fit(X)
    saved = path.read_bytes()
    path.write_bytes(saved[: len(saved) // 2] if content is None else content)
    with pytest.raises(ValueError, match="is no checkpoint, or a broken one"):
        DPMeans(20.0, checkpoint=path).fit(X)


def altered_labels(change):
    def alter(parts):
        labels = np.frombuffer(parts["labels"], dtype="<i4").copy()
        change(labels)
        parts["labels"] = labels.tobytes()

    return alter


def altered_centers(change):
    def alter(parts):
        out = io.BytesIO()
        np.save(out, change(np.load(io.BytesIO(parts["centers.npy"]))))
        parts["centers.npy"] = out.getvalue()

    return alter


def altered_run(**fields):
    def alter(parts):
        parts["run.json"] = json.dumps(json.loads(parts["run.json"]) | fields).encode()

    return alter


def declares_29_tib(parts):
    out = io.BytesIO()
    header = {"descr": "<f8", "fortran_order": False, "shape": (2**40, 3)}
    np.lib.format.write_array_header_1_0(out, header)
    parts["centers.npy"] = out.getvalue()


ALTERATIONS = {
    **{f"label {v}": altered_labels(lambda x, v=v: x.__setitem__(0, v))
       for v in (-1000, -1, 50_000_000, 2**31 - 1)},
    "another label": altered_labels(lambda x: x.__setitem__(0, (x[0] + 1) % (x.max() + 1))),
    "fewer labels": lambda parts: parts.update(labels=parts["labels"][:-4]),
    "more labels": lambda parts: parts.update(labels=parts["labels"] + bytes(4)),
    "NaN centers": altered_centers(lambda x: np.full_like(x, np.nan)),
    "moved centers": altered_centers(lambda x: x + 1),
    "integer centers": altered_centers(lambda x: x.astype(int)),
    "fewer centers": altered_centers(lambda x: x[:-1]),
    "no centers": altered_centers(lambda x: x[:0]),
    "29 TiB": declares_29_tib,
    "deep JSON": lambda parts: parts.update({"run.json": b"[" * 200_000}),
    "no object": lambda parts: parts.update({"run.json": b"3"}),
    "another member": lambda parts: parts.update(other=b""),
    "no labels": lambda parts: parts.pop("labels"),
    **{f"n_passes {v!r:.20}": altered_run(n_passes=v) for v in (10**30, -1, "7", None, 7.0, True)},
    **{f"history {v}": altered_run(history=v)
       for v in ([], "x", ["1"], [float("nan")], [float("inf")], [1.0], None)},
    **{f"identity {v}": altered_run(identity=v) for v in (None, [], {}, "x")},
    **{f"version {v}": altered_run(version=v) for v in (1, "2", None)},
    **{f"sha256 {v}": altered_run(sha256=v) for v in (None, 3, "0" * 64)},
}  # fmt: skip


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    path = tmp_path_factory.mktemp("saved") / "run.checkpoint"
    with pytest.MonkeyPatch.context() as patch:
        stop_after(patch, 1)
        with pytest.raises(Stopped):
            DPMeans(20.0, checkpoint=path).fit(table())
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


@pytest.mark.parametrize("alter", [lambda parts: None, *ALTERATIONS.values()],
                         ids=["unaltered", *ALTERATIONS])  # fmt: skip
def test_every_alteration_is_one_clear_error(alter, saved, tmp_path):
    path, parts = tmp_path / "run.checkpoint", dict(saved)
    alter(parts)
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    if parts == saved:
        DPMeans(20.0, checkpoint=path).fit(table())
        assert not path.exists()
        return
    before = path.read_bytes()
    with pytest.raises(ValueError, match="checkpoint") as caught:
        DPMeans(20.0, checkpoint=path).fit(table())
    assert "\n" not in str(caught.value)
    assert path.read_bytes() == before


def test_every_byte_of_the_directory_altered_is_one_clear_error_or_harmless(saved, tmp_path):
    path = tmp_path / "run.checkpoint"
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in saved.items():
            archive.writestr(name, content)
    content = path.read_bytes()
    whole = DPMeans(20.0).fit(table())
    n_refused = 0
    for place in range(content.index(b"PK\x01\x02"), len(content)):
        path.write_bytes(content[:place] + b"\xff" + content[place + 1 :])
        try:
            resumed = DPMeans(20.0, checkpoint=path).fit(table())
        except ValueError as error:
            n_refused += "checkpoint" in str(error)
        else:
            same(resumed, whole)
    assert n_refused > 50


def test_files_of_others_are_not_touched(tmp_path, monkeypatch):
    for suffix in ("lock", "new"):
        (tmp_path / f"poetry.{suffix}").write_text("mine")
    monkeypatch.setattr(module, "PASSES", 1)
    DPMeans(20.0, checkpoint=tmp_path / "poetry").fit(table())
    assert sorted(os.listdir(tmp_path)) == ["poetry.lock", "poetry.new"]
    assert {path.read_text() for path in tmp_path.iterdir()} == {"mine"}


def test_what_cannot_be_saved_is_refused():
    with pytest.raises(ValueError, match="checkpoint needs n_init=1; got n_init=2"):
        DPMeans(1.0, n_init=2, checkpoint="x").fit(np.eye(3))
    with pytest.raises(ValueError, match="checkpoint must be None or a path; got 3"):
        DPMeans(1.0, checkpoint=3).fit(np.eye(3))
    with pytest.raises(FileNotFoundError):
        DPMeans(1.0, checkpoint=Path("no such folder") / "x").fit(np.eye(3))
