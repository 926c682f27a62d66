"""Stopping a run and going on later: what it had reached, in a file.

A checkpoint is a zip of JSON and ``.npy``. It is written under another name and then moved into
place, so there is always a whole one, and a lock keeps a second run away from it.
"""

from __future__ import annotations

import json
import os
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from countless.hard.nearest import Nearest
from countless.rows import Rows

VERSION = 1
# Passes between two checkpoints.
PASSES = 5


class Progress(NamedTuple):
    """How far a run has come, beside its clusters."""

    history: list[float]
    n_passes: int


class Checkpoint:
    """A file that a run is saved to. Made by `open_checkpoint`."""

    def __init__(self, path: Path, identity: dict[str, Any]):
        self._path = path
        self._identity = identity
        self._last = 0

    def resume(self, nearest: Nearest) -> Progress | None:
        """Put a saved run's clusters back and return how far it had come; None: nothing is saved.

        A checkpoint of another table or of other parameters is a ValueError.
        """
        if not self._path.exists():
            return None
        try:
            with zipfile.ZipFile(self._path) as file:
                saved = json.loads(file.read("run.json"))
                self._check(saved)
                with file.open("centers.npy") as part:
                    centers = np.lib.format.read_array(part)
                with file.open("labels") as part:
                    nearest.start_from(_Sequential(part))
        except (zipfile.BadZipFile, KeyError, json.JSONDecodeError, EOFError) as error:
            raise ValueError(f"{self._path} is no checkpoint, or a broken one: {error}") from error
        if centers.shape != nearest.centers.shape:
            raise ValueError(f"{self._path} is a broken checkpoint: its centers do not fit")
        nearest.centers = np.array(centers)
        self._last = saved["n_passes"]
        return Progress(saved["history"], saved["n_passes"])

    def save(self, nearest: Nearest, progress: Progress) -> None:
        """Save a run, if it has come some passes since the last time."""
        if progress.n_passes < self._last + PASSES:
            return
        self._last = progress.n_passes
        saved = {"version": VERSION, "identity": self._identity, **progress._asdict()}
        new = self._path.with_name(self._path.name + ".new")
        with zipfile.ZipFile(new, "w") as file:
            file.writestr("run.json", json.dumps(saved))
            with file.open("centers.npy", "w") as part:
                np.lib.format.write_array(part, nearest.centers, allow_pickle=False)
            with file.open("labels", "w", force_zip64=True) as part:
                for labels in nearest.rows.pieces(nearest.state, "labels"):
                    part.write(np.ascontiguousarray(labels, dtype="<i4").data)
        os.replace(new, self._path)

    def remove(self) -> None:
        """Forget the run: it is finished."""
        self._path.unlink(missing_ok=True)

    def _check(self, saved: dict) -> None:
        identity = saved.get("identity", {})
        if saved.get("version") != VERSION:
            raise ValueError(f"{self._path} is no checkpoint of this version")
        for name, value in self._identity.items():
            if identity.get(name) != value:
                raise ValueError(
                    f"checkpoint {self._path} belongs to another run: its {name} was "
                    f"{identity.get(name)!r}, this one's is {value!r}; remove it to start anew"
                )


class NoCheckpoint:
    """Stands in where a run is not saved."""

    def resume(self, nearest: Nearest) -> None:
        return None

    def save(self, nearest: Nearest, progress: Progress) -> None:
        """Do nothing."""

    def remove(self) -> None:
        """Do nothing."""


NO_CHECKPOINT = NoCheckpoint()


@contextmanager
def open_checkpoint(
    path: str | Path | None, rows: Rows, parameters: dict[str, Any]
) -> Iterator[Checkpoint | NoCheckpoint]:
    """Give the checkpoint at a path, locked for this run, or one that does nothing for None."""
    if path is None:
        yield NO_CHECKPOINT
        return
    path = Path(path)
    # Sums have the same bits wherever the rows live, so they tell whether it is the same table.
    identity = {
        **parameters,
        "n_rows": rows.n_rows,
        "n_features": rows.n_features,
        "sum of the table": zlib.crc32(rows.whole.total.tobytes()),
        "cost of the table": rows.frame.total_cost,
    }
    with _locked(path):
        yield Checkpoint(path, identity)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold the lock of a file; a second run gets an error, and a killed one's lock is gone."""
    try:
        import fcntl
    except ImportError as error:
        raise OSError("checkpoints need file locks, which this system does not have") from error
    lock = path.with_name(path.name + ".lock")
    while True:
        with lock.open("w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise ValueError(f"checkpoint {path} is in use by another run") from error
            # Another run may have removed the file between its opening and its locking.
            if not (lock.exists() and os.path.samestat(os.fstat(file.fileno()), lock.stat())):
                continue
            try:
                yield
            finally:
                lock.unlink(missing_ok=True)
            return


class _Sequential:
    """Labels in a stream, read in slices from first to last."""

    def __init__(self, file: Any):
        self._file = file

    def __getitem__(self, part: slice) -> np.ndarray:
        n_bytes = 4 * (part.stop - part.start)
        data = self._file.read(n_bytes)
        if len(data) != n_bytes:
            raise EOFError("its labels end too early")
        return np.frombuffer(data, dtype="<i4")
