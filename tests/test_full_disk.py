"""File systems that are full or cannot be written: one line, and what was there stays."""

import errno
import os
import subprocess
import sys
import time

import numpy as np
import pytest
from click.testing import CliRunner
from sklearn.cluster import KMeans

from countless import DPMeans
from countless._errors import InputError
from countless._search import checkpoint as checkpoint_module
from countless.cli import main
from countless.serialize.model_file import load_model, save_model

RNG = np.random.default_rng(0)
X = 2 * RNG.normal(size=(40, 3))[RNG.integers(40, size=6000)] + RNG.normal(size=(6000, 3))
ROWS = "x,y\n" + "".join(f"{i % 3 * 9 + i % 50 / 50},{i % 7 / 7}\n" for i in range(3000))
FIT = ["fit", "--penalty", "20", "--no-scale", "--quiet"]


class Disk:
    """A small file system of its own."""

    def __init__(self, folder):
        self.folder = folder

    def mount(self, *options):
        command = ["mount", "-t", "tmpfs", "-o", ",".join(options), "none", str(self.folder)]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    def fill(self, *, leave):
        """Leave so many bytes, in pages."""
        (self.folder / "filling").unlink(missing_ok=True)
        free = os.statvfs(self.folder)
        (self.folder / "filling").write_bytes(bytes(free.f_bavail * free.f_bsize - leave))

    def read_only(self):
        subprocess.run(["mount", "-o", "remount,ro", str(self.folder)], check=True)

    def files(self):
        """Return all files but the filling, and what is in them."""
        found = (path for path in sorted(self.folder.rglob("*")) if path.name != "filling")
        return {
            str(path.relative_to(self.folder)): path.read_bytes() if path.is_file() else None
            for path in found
        }


@pytest.fixture
def disk(tmp_path):
    folder = tmp_path / "disk"
    folder.mkdir()
    disk = Disk(folder)
    try:
        mounted = disk.mount("size=1m", "nr_inodes=100")
    except FileNotFoundError:
        pytest.skip("there is no mount command")
    if mounted.returncode:
        pytest.skip(f"no file system can be mounted here: {mounted.stderr.strip()}")
    yield disk
    subprocess.run(["umount", str(folder)], check=True)


def run(*arguments, code, text=None):
    result = CliRunner().invoke(main, [str(one) for one in arguments], input=text)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == code, result.output
    errors = [line for line in result.stderr.splitlines() if line.startswith("error: ")]
    assert len(errors) == (code == 2), result.stderr
    return errors[0] if errors else ""


def model(n_clusters):
    return KMeans(n_clusters, n_init=1, random_state=0).fit(X)


@pytest.mark.parametrize("leave", [0, 4096])
def test_a_model_on_a_full_disk(disk, leave):
    path = disk.folder / "model.zip"
    save_model(path, model(2))
    before = disk.files()
    disk.fill(leave=leave)
    large = model(300)
    with pytest.raises(InputError, match=r"^cannot write .*: No space left on device$"):
        save_model(path, large, force=True)
    with pytest.raises(InputError, match=r"^cannot write .*: No space left on device$"):
        save_model(disk.folder / "other.zip", large)
    assert disk.files() == before
    disk.fill(leave=2**19)
    save_model(path, large, force=True)
    assert load_model(path).estimator.n_clusters == 300


def test_a_model_on_a_disk_that_cannot_be_written(disk):
    path = disk.folder / "model.zip"
    save_model(path, model(2))
    before = disk.files()
    disk.read_only()
    with pytest.raises(InputError, match=r"^cannot write .*: no permission to write into "):
        save_model(path, model(3), force=True)
    assert disk.files() == before


@pytest.mark.parametrize("n_files", [0, 1, 2, 4, 6, 9])
def test_a_disk_that_takes_few_more_files(disk, n_files):
    out = disk.folder / "out"
    run(*FIT, "-", "--out", out, code=0, text=ROWS)
    before = disk.files()
    for i in range(os.statvfs(disk.folder).f_ffree - n_files):
        (disk.folder / f"one-of-many-{i}").touch()
    result = CliRunner().invoke(main, [*FIT, "-", "--out", str(out), "--force"], input=ROWS)
    for path in disk.folder.glob("one-of-many-*"):
        path.unlink()
    after = disk.files()
    assert set(after) == set(before)
    assert after["out/labels.csv"] == before["out/labels.csv"]
    if result.exit_code:
        assert (result.exit_code, result.stderr.count("\n")) == (2, 1)
        assert "No space left on device" in result.stderr
        assert after == before
    else:
        assert n_files >= 5  # a scratch folder, its lock, a folder and three results


@pytest.mark.parametrize("leave", [0, 4096, 16384])
def test_results_on_a_full_disk(disk, leave):
    out = disk.folder / "out"
    run(*FIT, "-", "--out", out, code=0, text=ROWS)
    (out / "mine").write_bytes(b"keep")
    before = disk.files()
    disk.fill(leave=leave)
    assert "No space left on device" in run(*FIT, "-", "--out", out, "--force", code=2, text=ROWS)
    assert "No space left on device" in run(
        *FIT, "-", "--out", disk.folder / "new", code=2, text=ROWS
    )
    assert disk.files() == before
    disk.read_only()
    assert "no permission to write" in run(*FIT, "-", "--out", out, "--force", code=2, text=ROWS)
    assert disk.files() == before


@pytest.mark.parametrize("leave", [0, 4096, 16384])
def test_a_stream_on_a_full_disk(disk, leave):
    out = disk.folder / "out"
    stream = ["fit", "-", "--stream", "--block-rows", "500", "--quiet", "--out", out]
    run(*stream, code=0, text=ROWS)
    before = disk.files()
    disk.fill(leave=leave)
    assert "No space left on device" in run(*stream, "--force", code=2, text=ROWS * 4)
    after = disk.files()
    part = after.pop("out/labels.csv.part", b"")
    assert after == before
    assert part == b"" or part.startswith(b"row,label\n1,")


@pytest.mark.parametrize("command", [False, True])
def test_a_checkpoint_on_a_full_disk(disk, tmp_path, monkeypatch, command):
    monkeypatch.setattr(checkpoint_module, "PASSES", 1)
    path = disk.folder / "run.checkpoint"
    whole = DPMeans(20.0).fit(X)
    save, saved = checkpoint_module.Checkpoint.save, []

    def filling(self, nearest, progress):
        """Save once; then the disk is full."""
        save(self, nearest, progress)
        if path.exists() and not saved:
            disk.fill(leave=4096)
            saved.append(path.read_bytes())

    with monkeypatch.context() as patch:
        patch.setattr(checkpoint_module.Checkpoint, "save", filling)
        if command:
            np.save(tmp_path / "t.npy", X)
            arguments = ["--no-scale", "--penalty", "20", "--checkpoint", path, "--quiet"]
            arguments += ["--out", tmp_path / "out"]
            line = run("fit", tmp_path / "t.npy", *arguments, code=2)
            assert "No space left on device" in line
            assert not (tmp_path / "out").exists()
        else:
            with pytest.raises(OSError, match="No space left on device") as caught:
                DPMeans(20.0, checkpoint=path).fit(X)
            assert caught.value.errno == errno.ENOSPC
    assert saved
    assert disk.files() == {path.name: saved[0]}
    disk.fill(leave=2**19)
    if command:
        run("fit", tmp_path / "t.npy", *arguments, code=0)
    else:
        resumed = DPMeans(20.0, checkpoint=path).fit(X)
        assert np.array_equal(resumed.labels_, whole.labels_)
        assert np.array_equal(resumed.cluster_centers_, whole.cluster_centers_)
    assert disk.files() == {}


def test_a_second_stream_into_one_folder_is_one_line(tmp_path):
    command = [sys.executable, "-m", "countless", "fit", "-", "--stream", "--block-rows", "1000"]
    command += ["--force", "--quiet", "--out", "out"]
    pipes = {"stdin": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    first = subprocess.Popen(command, cwd=tmp_path, **pipes)
    first.stdin.write(ROWS)
    first.stdin.flush()
    part = tmp_path / "out" / "labels.csv.part"
    give_up = time.monotonic() + 100
    while time.monotonic() < give_up and first.poll() is None:
        if part.exists() and part.read_bytes().count(b"\n") > 2000:
            break
        time.sleep(0.05)
    written = part.read_bytes()
    second = subprocess.run(
        command, cwd=tmp_path, input=ROWS, capture_output=True, text=True, check=False
    )
    assert second.returncode == 2
    assert second.stderr == "error: out/labels.csv.part is in use by another run\n"
    assert part.read_bytes().startswith(written)
    _, errors = first.communicate("1,1\n", timeout=100)
    assert first.returncode == 0, errors
    assert sorted(os.listdir(tmp_path / "out")) == [
        "README.txt",
        "labels.csv",
        "model.zip",
        "run.json",
    ]
    assert (tmp_path / "out" / "labels.csv").read_bytes().count(b"\n") == 3002
    assert (tmp_path / "out" / "labels.csv").read_bytes().startswith(written)
