"""``countless predict``: the clusters of new rows, by a saved model."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .._errors import InputError
from .options import (
    check_exists,
    data_reading,
    force_option,
    json_option,
    out_of_core_option,
    quiet_option,
    reading_options,
)

if TYPE_CHECKING:
    import numpy as np

    from .._data.table import Table
    from ..preprocess.prepare import Preparation
    from .mixed import ColumnsAsTheyAre


@click.command(short_help="Label new rows by a saved model.")
@click.argument("model")
@click.argument("data")
@click.option(
    "--out",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Where the labels go, as CSV; by default standard output.",
)
@click.option("--id", "id_", metavar="NAME", help="The column that names the rows.")
@click.option(
    "--missing",
    type=click.Choice(["error", "drop", "impute"]),
    help="Empty cells; by default as when the model was fitted.",
)
@reading_options
@out_of_core_option
@json_option
@quiet_option
@force_option
def predict(model: str, data: str, **options: Any) -> None:
    """Label the rows of DATA by MODEL, the model.zip that `countless fit` wrote.

    The columns are found by name and prepared as they were for the fit; a row that is left out for
    its missing values has an empty label.
    """
    out: Path | None = options["out"]
    check_exists(model)
    reading = data_reading(data, options)
    reading.check()

    from .._data.write import check_free_file, write_file

    if out is not None:
        check_free_file(out, options["force"])

    from .._data.table import counted, listing
    from ..serialize.model_file import load_model
    from .console import Screen
    from .mixed import columns_as_they_are

    screen = Screen(quiet=options["quiet"], as_json=options["as_json"])
    with screen.step("load", f"loading {model}"):
        estimator, prepared = load_model(model)
        preparation: Any = prepared or columns_as_they_are(estimator)
    if preparation is None:
        raise InputError(f"{model} was saved without the preparation of a table")
    id_, in_blocks = options["id_"], options["out_of_core"]
    used, aside = preparation.names, [name for name in (id_, preparation.group) if name]
    words = preparation.words | set(aside)
    with screen.step("read", f"reading {data}"):
        source = reading.open() if in_blocks else None
        first = next(source.tables())[1] if source else reading.read(words)
        tables = source.tables([*used, *aside], words) if source else iter([(0, first)])
        name = source.name if source else first.source
    if id_:
        first.column(id_)
    if unused := [column for column in first.columns if column not in {*used, *aside}]:
        screen.note(f"columns that the model does not use: {listing(unused)}")
    predictor = _Predictor(screen, name, estimator, preparation, options["missing"], id_)
    pieces = predictor.pieces(tables, keep=screen.as_json and not in_blocks)
    if out is not None:
        with screen.step("predict", "labelling the rows"):
            write_file(out, pieces, force=options["force"])
        sizes = counted(len(predictor.sizes), "cluster")
        screen.show(f"{counted(predictor.n_used, 'row')} in {sizes}; wrote {out}")
    else:
        for piece in pieces:
            if not screen.as_json:
                click.echo(piece, nl=False)
    record = {
        "source": name,
        "sha256": source.digest() if source else first.sha256,
        "rows": predictor.n_rows,
        "sizes": dict(sorted(predictor.sizes.items())),
        "warnings": screen.warnings,
    }
    screen.finish(record if in_blocks else record | {"labels": predictor.labels})


class _Predictor:
    """Labels tables one at a time, and counts the labels."""

    def __init__(
        self,
        screen: Any,
        source: str,
        estimator: Any,
        preparation: "Preparation | ColumnsAsTheyAre",
        missing: str | None,
        id_: str | None,
    ) -> None:
        self._screen, self._source, self._id = screen, source, id_
        self._estimator, self._preparation, self._missing = estimator, preparation, missing
        self.n_rows = self.n_used = 0
        self.sizes: dict[int, int] = {}
        self.labels: list[int | None] = []  # of all rows, if they are stored

    def pieces(self, tables: "Iterator[tuple[int, Table]]", *, keep: bool) -> Iterator[bytes]:
        """Yield the labels file, table by table."""
        import numpy as np

        from .._data.write import label_lines, labels_header

        header = labels_header(self._id or "row")
        for at, table in tables:
            rows, labels = self._label(at, table)
            found = zip(*np.unique(labels, return_counts=True), strict=True)
            for label, size in found:
                self.sizes[int(label)] = self.sizes.get(int(label), 0) + int(size)
            self.n_rows, self.n_used = self.n_rows + table.n_rows, self.n_used + len(labels)
            if keep:
                every = np.full(table.n_rows, None, dtype=object)
                every[rows] = labels.tolist()
                self.labels += every.tolist()
            counted_rows = range(at + 1, at + table.n_rows + 1)
            names = table.words(self._id).words() if self._id else counted_rows
            yield header + label_lines(labels, rows, table.n_rows, names)
            header = b""
        if not self.n_used:
            raise InputError(
                f"every row of {self._source} has a missing value; say --missing impute"
            )

    def _label(self, at: int, table: "Table") -> "tuple[np.ndarray, np.ndarray]":
        """Return the positions of the rows that have a label, and their labels."""
        import numpy as np

        from .._errors import InputError, shift_rows
        from ..preprocess.plan import row_groups
        from .data import in_table_terms

        extra = {}
        with shift_rows(at):
            prepared = self._preparation.apply(table, self._missing)
            if (group := self._preparation.group) is not None:
                extra["groups"] = row_groups(table, group, prepared.rows)
        for note in prepared.notes:
            self._screen.warn(note)
        if not len(prepared.rows):
            return prepared.rows, np.empty(0, dtype=np.int64)
        try:
            labels = self._estimator.predict(prepared.matrix, **extra)
        except ValueError as error:
            features = self._preparation.features()
            message = in_table_terms(str(error), prepared.rows + at, features)
            raise InputError(f"{self._source}: {message}") from error
        return prepared.rows, np.asarray(labels)
