"""Compiled kernels are kept exactly as long as no source changes, and where they can be."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from numba import njit

import countless
from countless.kernels.cached import forget_if_changed


@pytest.fixture
def folders(tmp_path):
    """Return two sources, and a folder with the index of a compiled kernel."""
    sources = [tmp_path / "caller.py", tmp_path / "called.py"]
    for source in sources:
        source.write_text("a = 1\n")
    kept = tmp_path / "__pycache__"
    kept.mkdir()
    forget_if_changed(sources, kept)
    (kept / "caller.f-1.py311.nbi").write_bytes(b"index")
    return sources, kept


def test_kernels_are_kept_while_sources_stay(folders):
    forget_if_changed(*folders)
    assert list(folders[1].glob("*.nbi"))


def test_a_change_in_one_file_forgets_the_kernels_of_all(folders):
    sources, kept = folders
    sources[1].write_text("a = 2\n")
    forget_if_changed(sources, kept)
    assert not list(kept.glob("*.nbi"))
    assert list(kept.iterdir())  # the new stamp


def test_kernels_of_unknown_origin_are_forgotten(folders):
    sources, kept = folders
    for path in kept.glob("*.sha256"):
        path.unlink()
    forget_if_changed(sources, kept)
    assert not list(kept.glob("*.nbi"))


def test_compilations_are_logged_once_and_those_of_calls_are_not(caplog):
    @njit
    def called(x):
        return x + 1

    @njit
    def caller(x):
        return called(x)

    caplog.set_level("INFO", logger="countless.compilations")
    assert caller(1) == caller(2) - 1
    assert caplog.messages == ["compiling caller"]


@pytest.mark.slow
def test_a_command_runs_where_nothing_but_the_temporary_folder_can_be_written(tmp_path):
    site, work = tmp_path / "site", tmp_path / "work"
    shutil.copytree(
        Path(countless.__file__).parent,
        site / "countless",
        ignore=shutil.ignore_patterns("__pycache__"),
    )
    (site / "t.csv").write_text("x,y\n" + "".join(f"{i % 2 * 9},{i % 7}\n" for i in range(40)))
    work.mkdir()
    read_only = 'mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" && exec "$@"'
    unshare = ["unshare", "--mount", "sh", "-c", read_only, str(site)]
    if not shutil.which("unshare") or subprocess.run([*unshare, "true"], check=False).returncode:
        pytest.skip("needs the right to mount a folder for reading only")
    environment = {
        "HOME": str(site / "home"),  # which is not there
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(site),
        "TMPDIR": str(work),
    }
    fit = ["fit", str(site / "t.csv"), "--penalty", "50", "--out", str(work / "out"), "--quiet"]
    command = [sys.executable, "-m", "countless", *fit, "--method", "dp-means"]
    done = subprocess.run(
        [*unshare, *command], env=environment, cwd=work, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert f"it is in {work}/countless-numba-" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert (work / "out" / "labels.csv").exists()
    assert [path.name for path in work.iterdir()] == ["out"]  # the temporary folder is gone
    assert not list(site.rglob("__pycache__"))
