"""Out-of-core tables: in a file, or on the workers of a Dask cluster.

Both are a `countless.cli.data.PreparedTable`. A file is scanned once, preprocessed into a
flat copy unless it needs no preprocessing, and clustered from there; on a cluster every chunk is
read and preprocessed by a task.
"""

import bisect
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from .._data.columns import Roles
from .._data.npy import FlatFile
from .._data.part import LIMITS, Part, batch_rows
from .._data.sources import Source
from .._data.stored import scratch_folder
from .._data.write import Content, label_lines, labels_header
from .._errors import InputError
from .._report.summary import ClusterSummary, Visit, summarize_clusters
from ..divergences import allows_scaling
from ..preprocess.plan import ColumnReport
from ..preprocess.prepare import NumericStep, Preparation
from ..preprocess.statistics import Statistics, Survey, prepared_blocks, survey_source
from .console import Screen
from .data import Cells, cell_text, in_table_terms, show_columns

NOT_LOOKED_AT = "whether a column names the rows or holds known groups"


@dataclass(frozen=True)
class StoredTable:
    """A table that is not in memory, and the roles of its columns."""

    source: Source
    roles: Roles
    survey: Survey
    matrix: Any  # a path or a Dask array
    visit: Callable[[Any], Visit]  # of labels, for `summarize_clusters`
    pieces: Callable[[Any], Iterator[np.ndarray]]  # blocks of labels, in order
    sha256: str | None
    backend: str

    groups = None

    @property
    def given(self) -> Any:
        """The input of the estimator."""
        return self.matrix

    @property
    def weight(self) -> np.ndarray | None:
        """Row weights."""
        return self.survey.weight

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of rows and features that are clustered."""
        return self.survey.shape

    @property
    def rows(self) -> Sequence[int] | np.ndarray:
        """The positions in the table of the rows that are clustered."""
        return self.survey.kept

    @property
    def preparation(self) -> Preparation:
        """The preprocessing of rows."""
        return self.survey.preparation

    @property
    def columns(self) -> list[ColumnReport]:
        """The kind of each column of the table, and how it was processed."""
        return self.survey.columns

    def summarize(self, labels: Any) -> list[ClusterSummary]:
        """Summarize every cluster, in two passes over the rows."""
        features = self.preparation.features()
        return summarize_clusters(None, labels, features, visit=self.visit(labels))

    def cells(self, rows: Sequence[int]) -> Cells:
        """Read the original text of the table at some positions of the matrix."""
        names = [column.name for column in self.columns if column.used]
        names += [self.roles.id] if self.roles.id else []
        wanted = sorted((int(self.rows[row]), row) for row in rows)
        places = [place for place, _ in wanted]
        text: dict[int, dict[str, str]] = {}
        for part in self.source.parts:
            if part.stop is not None and not _between(places, part.start, part.stop):
                continue
            for at, table in part.tables(names, _as_text(self.roles)):
                for i in _between(places, at, at + table.n_rows):
                    place, row = wanted[i]
                    text[row] = {name: cell_text(table, place - at, name) for name in names}
        return Cells(text, self.rows, self.roles.id)

    def labels_csv(self, labels: Any, layers: Mapping[str, np.ndarray]) -> Iterator[bytes]:
        """Yield the labels file block by block; layers are refused out of core."""
        yield labels_header(self.roles.id or "row")
        left = _Pieces(self.pieces(labels))
        for at, names in self._row_names():
            used = _between(self.rows, at, at + len(names))
            here = np.asarray(self.rows[used.start : used.stop]) - at
            yield label_lines(left.take(len(used)), here, len(names), names)

    def with_clusters(self, labels: Any, layers: Mapping[str, np.ndarray]) -> dict[str, Content]:
        """Out of core the table is not copied."""
        return {}

    def agreement(self, labels: Any) -> None:
        """Out of core there is no column to compare with."""

    def hints(self) -> list[str]:
        """Return a note on what was not checked."""
        return [f"not looked at, because the table is not in memory: {NOT_LOOKED_AT}"]

    def in_table_terms(self, error: Exception) -> str:
        """Return an estimator's error about the matrix in terms of the table."""
        return in_table_terms(str(error), self.rows, self.preparation.features())

    def record(self) -> dict[str, Any]:
        """Return the input and its preprocessing, for the run record."""
        return {
            "source": self.source.name,
            "format": self.source.format.name,
            "backend": self.backend,
            "sha256": self.sha256,
            "rows": self.survey.n_rows,
            "rows_used": self.shape[0],
            "features": self.shape[1],
            "missing": self.preparation.missing,
            "not_looked_at": NOT_LOOKED_AT,
            "columns": self.columns,
        }

    def _row_names(self) -> Iterator[tuple[int, list[str] | range]]:
        """Yield the names of rows block by block, with the position of each block."""
        if (name := self.roles.id) is not None:
            for at, table in self.source.tables([name], {name}):
                yield at, table.words(name).words()
            return
        for at in range(0, self.survey.n_rows, LIMITS.rows):
            stop = min(at + LIMITS.rows, self.survey.n_rows)
            yield at, range(at + 1, stop + 1)


@contextmanager
def open_stored(
    screen: Screen,
    source: Source,
    roles_of: Callable[[Any], Roles],
    *,
    missing: str,
    scale: bool | None,
    divergence: Any,
    backend: "Backend | None" = None,
) -> Iterator[StoredTable]:
    """Scan a table, report what was found, and keep it open for clustering.

    ``roles_of`` returns the roles of the columns, given the table of the first rows.
    """
    if backend and not source.format.divisible:
        raise InputError(
            "--dask reads formats whose parts can be read apart, npy and Parquet; not text"
        )
    if scale is None:
        scale = not source.format.uniform and allows_scaling(divergence)
    with scratch_folder() as folder:
        backend = backend or _Disk(folder)
        with screen.step("read", f"looking at {source.name}") as say:
            _, first = next(source.tables())
            roles = roles_of(first)
            survey = survey_source(
                source, first, roles, missing=missing, scale=scale, each=backend.each
            )
            say("preparing it")
            data = backend.keep(source, roles, survey)
        shown = replace(first, source=source.name)  # a folder has a file for each part
        show_columns(screen, shown, data.shape[0], survey.columns, survey.n_rows)
        for hint in data.hints():
            screen.note(hint)
        screen.show("")
        yield data


class Backend(Protocol):
    """Where the rows of a table that is not in memory are processed."""

    def each(
        self, function: Callable[[Part], Statistics], parts: Sequence[Part]
    ) -> list[Statistics]:
        """Map a function over the parts of a table."""

    def keep(self, source: Source, roles: Roles, survey: Survey) -> StoredTable:
        """Return the preprocessed table."""


class _Disk:
    """Backend for a file on this machine."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def each(
        self, function: Callable[[Part], Statistics], parts: Sequence[Part]
    ) -> list[Statistics]:
        """Map a function over the parts, one after the other."""
        return [function(part) for part in parts]

    def keep(self, source: Source, roles: Roles, survey: Survey) -> StoredTable:
        """Return a table as a flat file, which is the user's if it needs no preprocessing."""
        flat = _as_it_is(source, survey) or _spool(source, survey, self._folder)
        return StoredTable(
            source,
            roles,
            survey,
            str(flat.path),
            visit=partial(_visit, flat, survey.weight),
            pieces=lambda labels: iter([labels]),
            sha256=source.digest(),
            backend="disk",
        )


def _as_it_is(source: Source, survey: Survey) -> FlatFile | None:
    """Return the file of a table that needs no preprocessing; None if rows must be transformed."""
    part, steps = source.parts[0], survey.preparation.steps
    if part.flat is None or len(survey.kept) < survey.n_rows:
        return None
    same = all(isinstance(step, NumericStep) and step.plain for step in steps)
    return part.flat if same and len(steps) == part.flat.shape[1] else None


def _spool(source: Source, survey: Survey, folder: Path) -> FlatFile:
    """Write the preprocessed rows to an .npy file."""
    shape = survey.shape
    path, dtype = folder / "prepared.npy", np.dtype(survey.preparation.dtype)
    if shutil.disk_usage(folder).free < 1.1 * dtype.itemsize * shape[0] * shape[1]:
        raise InputError(
            f"{folder.parent} has no space for a copy of the table; set TMPDIR to a folder that has"
        )
    with path.open("wb") as file:
        header = {"descr": dtype.str, "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(file, header)
        offset = file.tell()
        for part in source.parts:
            file.writelines(rows.data for rows in prepared_blocks(part, survey.preparation))
    return FlatFile(path, offset, dtype, shape)


def _visit(flat: FlatFile, weight: np.ndarray | None, labels: np.ndarray) -> Visit:
    """Return a function that maps another one over the blocks of a file."""

    def visit(function: Callable) -> Iterator[Any]:
        step = batch_rows(flat.shape[1])
        for at in range(0, flat.shape[0], step):
            stop = min(at + step, flat.shape[0])
            part = None if weight is None else weight[at:stop]
            yield function(at, flat.read(at, stop), labels[at:stop], part)

    return visit


def _between(places: Sequence[int] | np.ndarray, start: int, stop: int) -> range:
    return range(bisect.bisect_left(places, start), bisect.bisect_left(places, stop))


def _as_text(roles: Roles) -> set[str]:
    return {roles.id} if roles.id else set()


class _Pieces:
    """Labels that arrive in blocks, taken in batches of any size."""

    def __init__(self, pieces: Iterator[np.ndarray]) -> None:
        self._pieces = pieces
        self._rest = np.empty(0, dtype=np.int64)

    def take(self, count: int) -> np.ndarray:
        while len(self._rest) < count:
            more = next(self._pieces)
            self._rest = np.concatenate([self._rest, more]) if len(self._rest) else more
        taken, self._rest = self._rest[:count], self._rest[count:]
        return taken
