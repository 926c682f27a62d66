"""Atomic writes of files and folders: a target is complete or unchanged.

Everything is first written into a scratch folder next to its target. The folder is created
exclusively, under a random name, and its lock file is locked as long as its process lives. So the
next process can detect what a killed one left behind, finish or remove it, and does not touch what
is in use.
"""

from __future__ import annotations

import errno
import json
import os
import re
import secrets
import shutil
import stat
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import BinaryIO

fcntl: ModuleType | None
try:
    import fcntl
except ImportError:  # no locks: unused scratch folders cannot be detected and are not removed
    fcntl = None

Content = bytes | Iterable[bytes]  # of a file: whole, or in pieces

_SCRATCH = re.compile(r"\.countless-([0-9a-f]{8})-[0-9a-f]{16}")
# Members of a scratch folder.
_LOCK = "lock"
_NEW = "new"  # what is being written
_OLD = "old"  # the folder that is being replaced
_PLAN = "plan.json"  # written before a folder is replaced: its name, and which files are results
_READY = "ready"  # complete files, to be moved into the folder around the scratch folder
# Error numbers if a folder cannot be renamed (mount points), or a file cannot be linked.
_NO_RENAME = (errno.EINVAL, errno.EBUSY, errno.EXDEV)
_NO_LINK = (errno.EPERM, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK, errno.EXDEV)


class InUseError(ValueError):
    """Another process is using a file."""


def write_file(path: Path, content: Content) -> None:
    """Write one file atomically, replacing an existing one.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp(), "a.txt")
    >>> write_file(path, b"a")
    >>> path.read_bytes()
    b'a'
    """
    with scratch_folder(path) as scratch, replacement(scratch, path) as file:
        file.writelines([content] if isinstance(content, bytes) else content)


@contextmanager
def replacement(scratch: Path, path: Path) -> Iterator[BinaryIO]:
    """Yield a file in a scratch folder next to a path, and rename it when it is complete."""
    try:
        with (scratch / _NEW).open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(scratch / _NEW, path)
    finally:
        (scratch / _NEW).unlink(missing_ok=True)
    _sync_folder(path.parent)


def write_folder(folder: Path, files: Mapping[str, Content], known: Iterable[str]) -> None:
    """Write files into a folder, all of them or none, and remove other ``known`` ones.

    The old folder is renamed, a new one takes its name, and all other files of the old one are
    kept. A process that is killed between the two renames leaves no folder of that name, and the
    next call for a target next to it completes the replacement. If a folder cannot be renamed (the
    current folder, a mount point, a parent without write permission), files are moved one by one
    after all are on disk, and if that is interrupted, the next call completes it, too.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp(), "out")
    >>> write_folder(folder, {"a": b"1", "b": b"2"}, known=["a", "b"])
    >>> write_folder(folder, {"a": b"3"}, known=["a", "b"])
    >>> [path.name for path in folder.iterdir()], (folder / "a").read_bytes()
    (['a'], b'3')
    """
    folder, known = folder.resolve(), sorted({*known, *files})
    if not folder.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with scratch_folder(folder) as scratch:
            if not folder.exists():  # else cleaning up after a killed process restored it
                _write_all(scratch / _NEW, files)
                os.rename(scratch / _NEW, folder)
                _sync_folder(folder.parent)
                return
    with scratch_folder(folder / _NEW):
        pass  # completes what a killed process left unfinished inside
    if not _replace_folder(folder, files, known):
        _move_into(folder, files, known)


def _replace_folder(folder: Path, files: Mapping[str, Content], known: list[str]) -> bool:
    """Replace a folder by a new one; return False if that is not possible."""
    here = Path.cwd()
    parent_free = os.access(folder.parent, os.W_OK | os.X_OK)
    if here.is_relative_to(folder) or os.path.ismount(folder) or not parent_free:
        return False
    with scratch_folder(folder) as scratch:
        new = scratch / _NEW
        _write_all(new, files)
        os.chmod(new, stat.S_IMODE(folder.stat().st_mode))
        # Other files are hard-linked into the new folder; subfolders are moved afterwards.
        others = [entry for entry in os.scandir(folder) if entry.name not in known]
        try:
            for entry in others:
                if entry.is_file(follow_symlinks=False):
                    os.link(entry.path, new / entry.name)
        except OSError as error:
            if error.errno in _NO_LINK:
                return False
            raise
        _write(scratch / f"{_PLAN}.part", json.dumps([folder.name, known]).encode())
        os.rename(scratch / f"{_PLAN}.part", scratch / _PLAN)
        _sync_folder(scratch)
        try:
            os.rename(folder, scratch / _OLD)
        except OSError as error:
            if error.errno in _NO_RENAME:
                return False
            raise
        _finish_replacing(scratch)
    return True


def _move_into(folder: Path, files: Mapping[str, Content], known: list[str]) -> None:
    """Move files into a folder one by one, after all of them have been written."""
    with scratch_folder(folder / _NEW) as scratch:
        _write_all(scratch / _NEW, files)
        for name in set(known) - set(files):
            (scratch / _NEW / name).mkdir()  # marks a file to be removed
        os.rename(scratch / _NEW, scratch / _READY)
        _sync_folder(scratch)
        _finish_moves(scratch)


@contextmanager
def scratch_folder(target: Path, *, alone: bool = False) -> Iterator[Path]:
    """Yield a new folder next to a target, and remove it; clean up after killed processes.

    With ``alone`` raises InUseError if another process has such a folder for the same target.
    """
    digest = f"{zlib.crc32(target.name.encode(errors='surrogateescape')):08x}"
    scratch, lock = _make_scratch(target.parent, digest)
    try:
        for entry in sorted(os.scandir(target.parent), key=lambda entry: entry.name):
            found = _SCRATCH.fullmatch(entry.name)
            if found and entry.name != scratch.name and _is_own_folder(entry):
                in_use = not _clean(Path(entry.path))
                if alone and in_use and found[1] == digest:
                    raise InUseError(f"{target} is in use by another run")
        yield scratch
    finally:
        with lock:
            _remove_scratch(scratch)


def _make_scratch(parent: Path, digest: str) -> tuple[Path, BinaryIO]:
    """Create a scratch folder and acquire its lock."""
    while True:
        scratch = parent / f".countless-{digest}-{secrets.token_hex(8)}"
        scratch.mkdir()
        # Until the lock is acquired, another process may remove the folder as an abandoned one.
        try:
            lock = (scratch / _LOCK).open("xb")
        except FileNotFoundError:
            continue
        except OSError:  # a full disk
            scratch.rmdir()
            raise
        if _acquire(lock) and (scratch / _LOCK).exists():
            return scratch, lock
        lock.close()


def _acquire(lock: BinaryIO) -> bool:
    if fcntl is None:
        return True
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is_own_folder(entry: os.DirEntry) -> bool:
    own = fcntl is not None and entry.stat(follow_symlinks=False).st_uid == os.getuid()
    return own and entry.is_dir(follow_symlinks=False)


def _clean(scratch: Path) -> bool:
    """Remove a scratch folder that no process has locked; return False if one has."""
    try:
        descriptor = os.open(scratch / _LOCK, os.O_RDWR | os.O_NOFOLLOW)
    except FileNotFoundError:  # its process ended, or has not created it yet
        if scratch.exists() and not any(scratch.iterdir()):
            scratch.rmdir()
        return True
    with os.fdopen(descriptor, "r+b") as lock:
        if not _acquire(lock):
            return False
        _remove_scratch(scratch)
    return True


def _remove_scratch(scratch: Path) -> None:
    """Remove a scratch folder, after completing unfinished operations."""
    if (scratch / _READY).exists():
        _finish_moves(scratch)
    if (scratch / _PLAN).exists():
        _finish_replacing(scratch)
    # The lock is removed last: a folder without it is only cleaned up if it is empty.
    for path in sorted(scratch.iterdir()):
        if path.is_dir():
            shutil.rmtree(path)
        elif path.name != _LOCK:
            path.unlink()
    (scratch / _LOCK).unlink()
    scratch.rmdir()


def _finish_moves(scratch: Path) -> None:
    for path in sorted((scratch / _READY).iterdir()):
        target = scratch.parent / path.name
        if path.is_dir():
            target.unlink(missing_ok=True)
            path.rmdir()
        else:
            os.replace(path, target)
    _sync_folder(scratch.parent)
    (scratch / _READY).rmdir()


def _finish_replacing(scratch: Path) -> None:
    """Rename the new folder to its target, and move other files from the old one into it."""
    name, known = json.loads((scratch / _PLAN).read_bytes())
    folder, old, new = scratch.parent / name, scratch / _OLD, scratch / _NEW
    if old.exists():  # else the old folder was not renamed
        if new.exists() and not folder.exists():
            os.rename(new, folder)
        folder.mkdir(exist_ok=True)  # the results may have been removed meanwhile
        _sync_folder(scratch.parent)
        for path in sorted(old.iterdir()):
            if path.name not in known and not os.path.lexists(folder / path.name):
                os.rename(path, folder / path.name)
    (scratch / _PLAN).unlink()


def _write_all(folder: Path, files: Mapping[str, Content]) -> None:
    folder.mkdir()
    for name, content in files.items():
        _write(folder / name, content)
    _sync_folder(folder)


def _write(path: Path, content: Content) -> None:
    with path.open("xb") as file:
        file.writelines([content] if isinstance(content, bytes) else content)
        file.flush()
        os.fsync(file.fileno())


def _sync_folder(folder: Path) -> None:
    """Flush a folder's entries to disk, if the system can open folders."""
    if os.name == "posix":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
