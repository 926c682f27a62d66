"""Rows in files: memory is given back, nothing stays behind, and blocks are read as asked for."""

import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from countless import DPMeans
from countless._data import backend, open_rows
from countless._data.disk import DiskBackend
from countless._data.stored import find_table
from countless.divergences import get_divergence

EUCLIDEAN = get_divergence("sqeuclidean")


@pytest.fixture
def path(tmp_path):
    np.save(tmp_path / "rows.npy", np.random.default_rng(0).standard_normal((1000, 3)))
    return tmp_path / "rows.npy"


@pytest.fixture
def scratch(tmp_path, monkeypatch):
    folder = tmp_path / "scratch"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def resident(mapped_path: Path) -> int:
    """Return how many bytes of a mapped file are in this process's memory."""
    total, inside = 0, False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        if "-" in line.split(" ", 1)[0] and ":" not in line.split(" ", 1)[0]:
            inside = line.endswith(mapped_path.name)
        elif inside and line.startswith("Rss:"):
            total += 1024 * int(line.split()[1])
    return total


def write_ones(block, state, message):
    state["label"][:] = block.start + np.arange(block.n_rows)


@pytest.mark.skipif(not Path("/proc/self/smaps").exists(), reason="only Linux tells")
def test_memory_is_given_back_after_a_step(scratch, tmp_path):
    np.save(tmp_path / "long.npy", np.zeros((400_000, 1), dtype=np.float32))
    with open_rows(find_table(tmp_path / "long.npy"), None, EUCLIDEAN) as rows:
        state = rows.allocate({"label": (np.int64, 0)})
        (file,) = (each for each in scratch.rglob("state-*"))
        assert file.stat().st_size == 8 * 400_000
        state["label"][:] = 1
        assert resident(file) == 8 * 400_000 // 4096 * 4096 + 4096 * (8 * 400_000 % 4096 > 0)
        rows.run(write_ones, state)
        assert resident(file) == 0
        # What was written is in the file.
        np.testing.assert_array_equal(rows.get(state, "label"), np.arange(400_000))


def test_no_file_is_left_behind(scratch, path):
    model = DPMeans(3.0).fit(path)
    assert len(model.labels_) == 1000
    assert list(scratch.iterdir()) == []


def test_no_file_is_left_behind_by_an_error(scratch, tmp_path):
    rows = np.zeros((100, 2))
    rows[70, 1] = np.nan
    np.save(tmp_path / "bad.npy", rows)
    with pytest.raises(ValueError, match="row 70, column 1"):
        DPMeans(3.0).fit(tmp_path / "bad.npy")
    assert list(scratch.iterdir()) == []


def test_labels_outlive_their_files(scratch, path):
    labels = DPMeans(3.0, refine=False).fit(path).labels_
    assert not isinstance(labels, np.memmap)
    assert labels.flags.owndata
    labels[:] = 0


@pytest.mark.parametrize("n_jobs", [1, 3])
def test_rows_are_picked_in_any_order(path, n_jobs, monkeypatch):
    monkeypatch.setattr(backend, "BLOCKS", replace(backend.BLOCKS, most_rows=64))
    X = np.load(path)
    ids = np.array([999, 0, 500, 64, 63, 500, 3])
    weight = np.random.default_rng(1).integers(1, 5, size=1000).astype(float)
    with open_rows(find_table(path), weight, EUCLIDEAN, n_jobs) as rows:
        assert isinstance(rows, DiskBackend)
        picked = rows.pick(ids)
        np.testing.assert_array_equal(picked.points(), X[ids])
        np.testing.assert_array_equal(picked.weight, weight[ids])


def test_only_the_blocks_wanted_are_read(path, monkeypatch):
    monkeypatch.setattr(backend, "BLOCKS", replace(backend.BLOCKS, most_rows=64))
    with open_rows(find_table(path), None, EUCLIDEAN) as rows:
        read = []
        load = rows.load
        rows.load = lambda start, stop: (read.append((start, stop)), load(start, stop))[1]
        rows.pick(np.array([130, 5, 131]))
        assert read == [(0, 64), (128, 192)]
        read.clear()
        rows.run(write_ones, rows.allocate({"label": (np.int64, 0)}), data=False)
        assert read == []
        rows.run(write_ones, rows.allocate({"label": (np.int64, 0)}))
        assert read == rows.spans
