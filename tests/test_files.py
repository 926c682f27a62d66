"""What is written is complete whenever its process is killed, and nobody else's file is touched."""

import errno
import os
import subprocess
import sys
from contextlib import nullcontext

import pytest

from countless import _files
from countless._data.write import write_directory, write_file
from countless._errors import InputError

OLD = {"a": b"old a", "b": b"old b"}
NEW = {"a": b"new a", "c": b"new c"}
KNOWN = ("a", "b", "c")
# How often replacing results calls each function.
CALLS = {"fsync": 6, "replace": 0, "rename": 3, "mkdir": 3}

# Each turn forks a child that is killed at its i-th event (opening, renaming, removing, ...).
KILLED_AT_EVERY_STEP = """
import os, pathlib, shutil, sys
from countless._files import scratch_folder, write_folder

OLD, NEW, KNOWN = {"a": b"old a", "b": b"old b"}, {"a": b"new a", "c": b"new c"}, ("a", "b", "c")
base = pathlib.Path(sys.argv[1])
out = base / "out"
seen, absent = set(), 0
for step in range(1000):
    shutil.rmtree(base)
    (out / "folder").mkdir(parents=True)
    (out / "mine").write_bytes(b"keep")
    (out / "folder" / "mine").write_bytes(b"keep")
    write_folder(out, OLD, KNOWN)
    if sys.argv[2] == "inside":
        os.chdir(out)
    child = os.fork()
    if child == 0:
        count = 0
        def die(event, arguments):
            global count
            if event == "open" or event.startswith(("os.", "shutil.")):
                if count == step:
                    os._exit(9)
                count += 1
        sys.addaudithook(die)
        write_folder(out, NEW, KNOWN)
        os._exit(0)
    done = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    if sys.argv[2] == "beside" and not out.exists():  # killed between the two renames
        absent += 1
        with scratch_folder(out):
            pass  # as the next run does
    def results():
        return {name: (out / name).read_bytes() for name in KNOWN if (out / name).exists()}
    found = results()
    if sys.argv[2] == "beside":
        assert found in (OLD, NEW), (step, found)
    seen.add(found == NEW)
    assert (out / "mine").read_bytes() == b"keep", step
    write_folder(out, found if done or sys.argv[2] == "beside" else NEW, KNOWN)
    os.chdir(base.parent)
    assert (out / "folder" / "mine").read_bytes() == b"keep", step
    assert sorted(os.listdir(base)) == ["out"], (step, os.listdir(base))
    assert sorted(os.listdir(out)) == sorted([*results(), "folder", "mine"]), os.listdir(out)
    if done:
        break
assert done and seen == {False, True} and step > 10
assert (absent > 0) == (sys.argv[2] == "beside")
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize("where", ["beside", "inside"])
def test_a_process_killed_at_any_step_leaves_old_or_new_results(where, tmp_path):
    (tmp_path / "base").mkdir()
    command = [sys.executable, "-c", KILLED_AT_EVERY_STEP, str(tmp_path / "base"), where]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", ["fsync", "replace", "rename", "mkdir"])
@pytest.mark.parametrize("at", range(4))
def test_a_full_disk_is_one_error_and_loses_nothing(name, at, tmp_path, monkeypatch):
    out = tmp_path / "out"
    write_directory(out, OLD, KNOWN, force=False)
    real, count = getattr(os, name), 0

    def full(*arguments, **settings):
        nonlocal count
        count += 1
        if count == at + 1:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(*arguments, **settings)

    with monkeypatch.context() as patch:
        patch.setattr(os, name, full)
        expected = pytest.raises(InputError, match="No space left")
        with expected if at < CALLS[name] else nullcontext():
            write_directory(out, NEW, KNOWN, force=True)
    assert count >= min(at + 1, CALLS[name])
    found = {path.name: path.read_bytes() for path in out.iterdir()}
    assert found in (OLD, NEW)
    assert list(tmp_path.iterdir()) == [out]


def test_content_that_fails_while_written_leaves_the_old_file(tmp_path):
    def content():
        yield b"new"
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    write_file(tmp_path / "a", b"old")
    with pytest.raises(InputError, match="No space left"):
        write_file(tmp_path / "a", content(), force=True)
    assert (tmp_path / "a").read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["a"]


def test_a_live_scratch_folder_is_left_alone_and_links_are_not_followed(tmp_path):
    victim = tmp_path / "victim"
    victim.mkdir()
    (victim / "lock").write_bytes(b"mine")
    link = tmp_path / f".countless-{'0' * 8}-{'0' * 16}"
    link.symlink_to(victim)
    target = tmp_path / "a"
    with _files.scratch_folder(target) as scratch:
        write_file(target, b"1")
        assert scratch.exists()
        with (
            pytest.raises(_files.InUseError, match="in use by another run"),
            _files.scratch_folder(target, alone=True),
        ):
            pass
        with _files.scratch_folder(tmp_path / "b", alone=True):
            pass  # another target
    assert sorted(os.listdir(tmp_path)) == sorted([link.name, "a", "victim"])
    assert (victim / "lock").read_bytes() == b"mine"
