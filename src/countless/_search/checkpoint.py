"""Checkpoints: the state of a run in a file, from which it can be resumed.

A checkpoint is a zip of JSON, an ``.npy`` array and labels. It is written to a temporary file and
renamed, so that it is always complete, and it is locked against a second run. Sizes, types and
ranges are checked before memory is allocated, and a digest detects any alteration.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from countless._data import Backend
from countless._data.npy import read_npy
from countless._files import replacement, scratch_folder
from countless._search.assignment import Assignment

VERSION = 2
# Passes between two checkpoints.
PASSES = 5
LARGEST_JSON = 32 * 2**20

_RUN, _CENTERS, _LABELS = "run.json", "centers.npy", "labels"
# Everything the zip, JSON and array readers raise for invalid bytes.
_DAMAGE = (
    zipfile.BadZipFile,
    NotImplementedError,
    RuntimeError,  # an encrypted member, and RecursionError for absurdly nested JSON
    EOFError,
    OSError,  # a member that begins before the file does
    ValueError,
    KeyError,
    TypeError,
    OverflowError,
    struct.error,
    zlib.error,
)


class Progress(NamedTuple):
    """The progress of a run, without its clusters."""

    history: list[float]
    n_passes: int


class CheckpointFile(NamedTuple):
    """A path locked by this run, and a scratch folder next to it. Made by `claim_file`."""

    path: Path
    scratch: Path


class Checkpoint:
    """A file that a run is saved to. Made by `open_checkpoint`."""

    def __init__(self, file: CheckpointFile, identity: dict[str, Any]):
        self._file, self._path = file, file.path
        self._identity = identity
        self._last = 0

    def resume(self, assignment: Assignment) -> Progress | None:
        """Restore a saved run's clusters and return its progress; None if nothing is saved.

        Raises ValueError for a checkpoint of another table or other parameters, or an altered one.
        """
        if not self._path.exists():
            return None
        with self._path.open("rb") as raw:
            with self._finding_damage():
                archive = _checked_archive(raw)
                saved = _read_json(archive)
            self._check(saved)
            with self._finding_damage():
                progress = _checked_progress(saved)
                centers = _checked_centers(archive, assignment.rows)
                digest = _checked_labels(archive, assignment.rows.n_rows, len(centers))
                if saved.get("sha256") != _digest(self._identity, progress, centers, digest):
                    raise ValueError("it was altered")
            with archive.open(_LABELS) as part:
                assignment.set_labels(_Sequential(part))
        fixed_point = assignment.rows.fixed_point
        objective = fixed_point.objective(assignment.summary, self._identity["penalty"])
        if centers.shape != assignment.centers.shape or objective != progress.history[-1]:
            raise ValueError(f"{self._path} is a broken checkpoint: its totals do not add up")
        assignment.centers = np.array(centers)
        self._last = progress.n_passes
        return progress

    def save(self, assignment: Assignment, progress: Progress) -> None:
        """Save a run, if enough passes were made since the last time."""
        if progress.n_passes < self._last + PASSES:
            return
        labels_digest = hashlib.sha256()
        with (
            replacement(self._file.scratch, self._path) as raw,
            zipfile.ZipFile(raw, "w") as archive,
        ):
            with archive.open(_CENTERS, "w", force_zip64=True) as part:
                np.lib.format.write_array(part, assignment.centers, allow_pickle=False)
            with archive.open(_LABELS, "w", force_zip64=True) as part:
                for labels in assignment.rows.pieces(assignment.state, "labels"):
                    data = np.ascontiguousarray(labels, dtype="<i4").data
                    labels_digest.update(data)
                    part.write(data)
            digest = _digest(
                self._identity, progress, assignment.centers, labels_digest.hexdigest()
            )
            saved = {"version": VERSION, "identity": self._identity, **progress._asdict()}
            archive.writestr(_RUN, json.dumps(saved | {"sha256": digest}, allow_nan=False))
        self._last = progress.n_passes

    def remove(self) -> None:
        """Remove the file: the run is finished."""
        self._path.unlink(missing_ok=True)

    def _check(self, saved: dict) -> None:
        if saved.get("version") != VERSION:
            raise ValueError(f"{self._path} is no checkpoint of this version")
        identity = saved.get("identity")
        if not isinstance(identity, dict) or set(identity) != set(self._identity):
            raise ValueError(f"{self._path} is no checkpoint, or a broken one: it names no run")
        for name, value in self._identity.items():
            if identity[name] != value:
                raise ValueError(
                    f"checkpoint {self._path} belongs to another run: its {name} was "
                    f"{identity[name]!r:.100}, this one's is {value!r}; remove it to start again"
                )

    @contextmanager
    def _finding_damage(self) -> Iterator[None]:
        try:
            yield
        except _DAMAGE as error:
            reason = " ".join(str(error).split()) or type(error).__name__
            raise ValueError(
                f"{self._path} is no checkpoint, or a broken one: {reason:.200}"
            ) from error


class KeptCheckpoint(Checkpoint):
    """A checkpoint that is kept when the run is finished, until its results are stored."""

    def remove(self) -> None:
        """Do nothing: the caller that claimed the file removes it."""


class NoCheckpoint:
    """A null object for runs that are not saved."""

    def resume(self, assignment: Assignment) -> None:
        return None

    def save(self, assignment: Assignment, progress: Progress) -> None:
        """Do nothing."""

    def remove(self) -> None:
        """Do nothing."""


NO_CHECKPOINT = NoCheckpoint()


@contextmanager
def open_checkpoint(
    given: str | Path | CheckpointFile | None, rows: Backend, parameters: dict[str, Any]
) -> Iterator[Checkpoint | NoCheckpoint]:
    """Yield the checkpoint at a path, locked for this run, or one that does nothing for None.

    A file that the caller has claimed is kept when the run is finished.
    """
    if given is None:
        yield NO_CHECKPOINT
        return
    # Sums are bit-identical on every backend, so they identify the table.
    identity = {
        **parameters,
        "n_rows": rows.n_rows,
        "n_features": rows.n_features,
        "sum of the table": zlib.crc32(rows.whole.total.tobytes()),
        "cost of the table": rows.fixed_point.total_cost,
    }
    if isinstance(given, CheckpointFile):
        yield KeptCheckpoint(given, identity)
        return
    with claim_file(given) as file:
        yield Checkpoint(file, identity)


@contextmanager
def claim_file(path: str | Path) -> Iterator[CheckpointFile]:
    """Lock a checkpoint file for this run; a second run gets a ValueError."""
    path = Path(path)
    with scratch_folder(path, alone=True) as scratch:
        yield CheckpointFile(path, scratch)


def _checked_archive(raw: Any) -> zipfile.ZipFile:
    """Open a zip and check that its members are uncompressed and no larger than the file."""
    size = raw.seek(0, io.SEEK_END)
    archive = zipfile.ZipFile(raw)
    members = archive.infolist()
    if sorted(member.filename for member in members) != sorted((_RUN, _CENTERS, _LABELS)):
        raise ValueError("its members are not those of a checkpoint")
    for member in members:
        stored = member.compress_type == zipfile.ZIP_STORED
        if not stored or member.file_size != member.compress_size:
            raise ValueError(f"{member.filename} is compressed")
        if member.file_size > (LARGEST_JSON if member.filename == _RUN else size):
            raise ValueError(f"{member.filename} claims {member.file_size} bytes")
    return archive


def _read_json(archive: zipfile.ZipFile) -> dict[str, Any]:
    saved = json.loads(archive.read(_RUN))
    if not isinstance(saved, dict):
        raise ValueError(f"{_RUN} is not an object")
    return saved


def _checked_progress(saved: dict[str, Any]) -> Progress:
    history, n_passes = saved.get("history"), saved.get("n_passes")
    if not isinstance(history, list) or not history:
        raise ValueError("its history is not a list")
    if not all(type(value) is float and math.isfinite(value) for value in history):
        raise ValueError("its history holds a value that is not a finite number")
    if type(n_passes) is not int or not 0 <= n_passes < 2**31:
        raise ValueError("its n_passes is not a number of passes")
    return Progress(history, n_passes)


def _checked_centers(archive: zipfile.ZipFile, rows: Backend) -> np.ndarray:
    centers = read_npy(io.BytesIO(archive.read(_CENTERS)), kinds="f")
    if centers.ndim != 2 or centers.shape[1] != rows.n_features:
        raise ValueError("its centers are not those of the table")
    if not 1 <= len(centers) <= rows.n_rows or not np.isfinite(centers).all():
        raise ValueError("its centers are not finite, or more than rows")
    return centers


def _checked_labels(archive: zipfile.ZipFile, n_rows: int, n_clusters: int) -> str:
    """Check that all labels are valid, and return their digest."""
    if archive.getinfo(_LABELS).file_size != 4 * n_rows:
        raise ValueError("it has not one label for each row")
    digest = hashlib.sha256()
    with archive.open(_LABELS) as part:
        while data := part.read(2**20):
            labels = np.frombuffer(data, dtype="<i4")
            if labels.min() < 0 or labels.max() >= n_clusters:
                raise ValueError("its labels name clusters that it does not have")
            digest.update(data)
    return digest.hexdigest()


def _digest(identity: dict, progress: Progress, centers: np.ndarray, labels_digest: str) -> str:
    """Return the digest of all parts of a checkpoint."""
    told = [identity, progress, str(centers.dtype), centers.shape, labels_digest]
    digest = hashlib.sha256(json.dumps(told, sort_keys=True).encode())
    digest.update(np.ascontiguousarray(centers).data)
    return digest.hexdigest()


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
