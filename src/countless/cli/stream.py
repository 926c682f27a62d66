"""``countless fit - --stream``: online clustering of rows from standard input.

The first block determines the kinds of columns, their scale and, unless it is given, the penalty.
Then every block is passed to ``partial_fit``, and its labels are written before the next one is
read. Memory is bounded.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from .._data.table import Table, counted, listing
from .._data.write import Content, check_free, label_lines, labels_header, write_directory
from .._errors import InputError, shift_rows
from .._files import InUseError, scratch_folder
from .._formats import FORMATS
from .._report.summary import ClusterSummary, Sums, summaries_of
from ..preprocess.plan import ColumnReport, block_weights
from ..preprocess.prepare import CategoricalStep, Preparation
from ..serialize.model_file import model_bytes
from .console import Screen, to_json
from .data import Cells, MemoryTable, cell_text, in_table_terms, prepare_data
from .options import FILES, DataChoices
from .run import Request, readme, result_of, run_record, show_result
from .stdin import StandardInput

PART = "labels.csv.part"


class Seen:
    """Statistics of a stream from which its clusters are summarized."""

    def __init__(self, first: MemoryTable) -> None:
        self.preparation: Preparation = first.preparation
        self.columns: list[ColumnReport] = first.columns
        self.roles = first.roles
        self.groups = None
        self.n_rows = self.n_used = self.n_blocks = 0
        self.sha256 = ""
        self._weight = 0.0
        self._mean, self._squares = 0.0, 0.0
        self._size: dict[int, int] = {}
        # By cluster: the row nearest to its center so far, its position and the text of its cells.
        self._typical: dict[int, tuple[np.ndarray, int, dict[str, str]]] = {}

    def take_in(
        self, at: int, table: Table, rows: np.ndarray, X: np.ndarray, weight: Any, model: Any
    ) -> None:
        """Update with a block that the model has processed."""
        self.n_rows, self.n_used = at + table.n_rows, self.n_used + len(X)
        self.n_blocks += 1
        weight = np.ones(len(X)) if weight is None else weight
        if (total := float(weight.sum())) > 0:
            mean = weight @ X / total
            share = total / (self._weight + total)
            apart = mean - self._mean
            self._squares = self._squares + weight @ np.square(X - mean)
            self._squares += np.square(apart) * self._weight * share
            self._mean, self._weight = self._mean + share * apart, self._weight + total
        names = [column.name for column in self.columns if column.used]
        names += [self.roles.id] if self.roles.id else []
        centers = dict(zip(model.cluster_ids_.tolist(), model.cluster_centers_, strict=True))
        self._typical = {label: kept for label, kept in self._typical.items() if label in centers}
        for label, size in zip(*np.unique(model.labels_, return_counts=True), strict=True):
            label = int(label)
            self._size[label] = self._size.get(label, 0) + int(size)
            mine = np.flatnonzero(model.labels_ == label)
            distance = np.square(X[mine] - centers[label]).sum(axis=1)
            best = int(np.argmin(distance))
            held = self._typical.get(label)
            if held is None or distance[best] < np.square(held[0] - centers[label]).sum():
                row = int(rows[mine[best]])
                text = {name: cell_text(table, row, name) for name in names}
                self._typical[label] = (X[mine[best]].copy(), at + row, text)

    def summarize(self, model: Any) -> list[ClusterSummary]:
        """Summarize the current clusters of the model."""
        shown = [i for i, label in enumerate(model.cluster_ids_) if int(label) in self._typical]
        ids = model.cluster_ids_[shown]
        mass = model.cluster_weights_[shown]
        size = np.array([self._size[int(label)] for label in ids])
        sums = Sums(ids, size, mass, model.cluster_centers_[shown] * mass[:, None])
        typical = [self._typical[int(label)][1] for label in ids]
        deviation = np.sqrt(self._squares / self._weight)
        return summaries_of(sums, deviation, typical, self.preparation.features())

    def cells(self) -> Cells:
        """Return the text of the typical rows."""
        text = {place: cells for _, place, cells in self._typical.values()}
        return Cells(text, range(self.n_rows), self.roles.id)

    def gone(self, model: Any) -> list[int]:
        """Return the ids in the labels that the model no longer has."""
        return sorted(set(self._size) - set(model.cluster_ids_.tolist()))

    def record(self) -> dict[str, Any]:
        """Return the input and its preprocessing, for the run record."""
        return {
            "source": "standard input",
            "format": "stream",
            "sha256": self.sha256,
            "rows": self.n_rows,
            "rows_used": self.n_used,
            "blocks": self.n_blocks,
            "features": len(self.preparation.features()),
            "missing": self.preparation.missing,
            "columns": self.columns,
        }


def fit_stream(
    screen: Screen, choices: DataChoices, estimator: Any, request: Request, block_rows: int
) -> None:
    """Cluster rows from standard input until they end or a signal arrives; write the results."""
    _check(choices)
    as_text = choices.as_text()
    header = labels_header(choices.id or "row")
    with StandardInput() as stdin, _labels_file(request.out, request.force, header) as labels:
        reading = choices.reading
        style, format = reading.style, FORMATS[reading.format or "csv"]
        reader = format.reader()
        blocks = reader.text_tables(stdin, "standard input", format, style, block_rows, as_text)
        with screen.step("read", f"waiting for the first {counted(block_rows, 'row')}"):
            at, table = next(blocks)
        settings: dict[str, Any] = {"missing": choices.missing, "scale": choices.scale}
        divergence = getattr(estimator, "divergence", "sqeuclidean")
        shown = replace(table, source="standard input, the first block")
        roles = choices.roles(table)
        first = prepare_data(screen, shown, roles, divergence=divergence, **settings)
        # A categorical column of the first block is categorical in all others.
        steps = first.preparation.steps
        as_text |= {step.name for step in steps if isinstance(step, CategoricalStep)}
        seen = Seen(first)
        refused = None
        with screen.step("fit", "taking in rows") as say:
            while True:
                try:
                    _take_in(screen, at, table, seen, estimator, labels)
                    say(f"{seen.n_rows} so far, {counted(estimator.n_clusters_, 'cluster')}")
                    at, table = next(blocks)
                except StopIteration:
                    break
                except InputError as error:
                    if not seen.n_blocks:
                        raise
                    refused = error
                    break
        seen.sha256 = stdin.sha256()
        record = _finish(screen, seen, estimator, request, labels)
    screen.finish(record)
    if refused is not None:
        raise InputError(f"{refused}; the {seen.n_rows} rows before are in {request.out}/")


def _check(choices: DataChoices) -> None:
    """Reject a source that is no stream of text."""
    if choices.reading.source != "-":
        raise InputError("--stream reads standard input: countless fit - --stream < FILE")
    if choices.reading.format not in (None, "csv", "tsv"):
        raise InputError("--stream reads CSV or TSV")


def _take_in(
    screen: Screen, at: int, table: Table, seen: Seen, estimator: Any, labels: BinaryIO
) -> None:
    """Process one block, and write its labels."""
    begun = time.perf_counter()
    with shift_rows(at):
        prepared = seen.preparation.apply(table)
        weight = block_weights(table, seen.roles.weight) if seen.roles.weight else None
    rows, X = prepared.rows, prepared.matrix
    weight = None if weight is None else weight[rows]
    found = np.empty(0, dtype=np.int64)
    old = set(getattr(estimator, "cluster_ids_", np.empty(0)).tolist())
    if len(X) and (weight is None or weight.any()):
        try:
            estimator.partial_fit(X, sample_weight=weight)
        except ValueError as error:
            message = in_table_terms(str(error), rows + at, seen.preparation.features())
            raise InputError(f"standard input: {message}") from error
        found = estimator.labels_
        seen.take_in(at, table, rows, X, weight, estimator)
    elif len(X):
        found = estimator.predict(X)
    id_ = seen.roles.id
    names = table.words(id_).words() if id_ else range(at + 1, at + table.n_rows + 1)
    labels.write(label_lines(found, rows, table.n_rows, names))
    labels.flush()
    for note in prepared.notes:
        screen.warn(note)
    if screen.err.is_terminal and old:
        now = set(estimator.cluster_ids_.tolist())
        rate = table.n_rows / (time.perf_counter() - begun)
        screen.note(
            f"rows {at + 1} to {at + table.n_rows}: {counted(len(now), 'cluster')}, "
            f"{len(now - old)} new, {len(old - now)} gone, {rate:.0f} rows/s"
        )


def _finish(
    screen: Screen, seen: Seen, estimator: Any, request: Request, labels: BinaryIO
) -> dict[str, Any]:
    """Report the result of the stream, and write it."""
    clusters, cells = seen.summarize(estimator), seen.cells()
    result = result_of(estimator, clusters, cells, seen) | {"agreement": None}
    result["ids_gone"] = seen.gone(estimator)
    screen.show(f"{counted(seen.n_rows, 'row')} in {counted(seen.n_blocks, 'block')}")
    show_result(screen, clusters, cells, result, request.method)
    files = ["README.txt", "labels.csv", "model.zip", "run.json"]
    record = run_record(screen, seen.record(), estimator, request, result, files)
    labels.seek(0)
    content: dict[str, Content] = {
        "labels.csv": iter(lambda: labels.read(2**20), b""),
        "model.zip": model_bytes(estimator, seen.preparation),
        "README.txt": readme(files),
        "run.json": to_json(record).encode(),
    }
    check_free(request.out, FILES, request.force)
    write_directory(request.out, content, (*FILES, PART), force=True)
    screen.show("", f"Wrote {request.out}/: {', '.join(files)}")
    screen.note(
        "the penalty, the scale and the kinds of columns are those of the first block; a typical "
        "row is the nearest to the center when it came"
    )
    if gone := result["ids_gone"]:
        screen.note(
            f"{counted(len(gone), 'id')} in labels.csv ({listing(map(str, gone))}) became part of "
            "other clusters later"
        )
    return record


@contextmanager
def _labels_file(out: Path, force: bool, header: bytes) -> Iterator[BinaryIO]:
    """Yield the file that labels are written to as they arrive, exclusive to this run.

    If no row was labelled, the file and a folder created for it are removed.
    """
    check_free(out, FILES, force)
    path, made = out / PART, not out.exists()
    try:
        out.mkdir(parents=True, exist_ok=True)
        with scratch_folder(path, alone=True), _new_part(path, force, header) as file:
            yield file
    except InUseError as error:
        raise InputError(str(error)) from error
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror or error}") from error
    finally:
        if made and out.exists() and not any(out.iterdir()):
            out.rmdir()


@contextmanager
def _new_part(path: Path, force: bool, header: bytes) -> Iterator[BinaryIO]:
    if force:
        path.unlink(missing_ok=True)
    try:
        file = path.open("x+b")
    except FileExistsError as error:
        raise InputError(f"{path} exists: a run was killed; say --force, or --out DIR") from error
    try:
        with file:
            file.write(header)
            file.flush()
            yield file
    except BaseException:
        if path.exists() and path.stat().st_size <= len(header):
            path.unlink()
        raise
