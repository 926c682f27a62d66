"""``countless predict``: the clusters of new rows, by a model that was saved."""

from pathlib import Path
from typing import Any

import click

from .options import data_reading, force_option, json_option, quiet_option, reading_options


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
    "--gaps",
    type=click.Choice(["error", "drop", "impute"]),
    help="Empty cells; by default as when the model was fitted.",
)
@reading_options
@json_option
@quiet_option
@force_option
def predict(model: str, data: str, **options: Any) -> None:
    """Label the rows of DATA by MODEL, the model.zip that `countless fit` wrote.

    The columns are found by name and prepared as they were for the fit; a row that is left out for
    its gaps has an empty label.
    """
    import numpy as np

    from ..io.errors import InputError
    from ..io.model_file import load_model
    from ..io.plan import row_groups
    from ..io.prepare import CategoricalStep
    from ..io.table import counted, listing
    from ..io.write import check_free_file, labels_csv, write_file
    from .data import in_table_terms
    from .screen import Screen

    out: Path | None = options["out"]
    if out is not None:
        check_free_file(out, options["force"])
    screen = Screen(quiet=options["quiet"], as_json=options["as_json"])
    with screen.step("load", f"loading {model}"):
        estimator, preparation = load_model(model)
    if preparation is None:
        raise InputError(f"{model} was saved without the preparation of a table")
    words = {step.name for step in preparation.steps if isinstance(step, CategoricalStep)}
    if preparation.group is not None:
        words.add(preparation.group)
    id_ = options["id_"]
    with screen.step("read", f"reading {data}"):
        table = data_reading(data, options).read(words | ({id_} if id_ else set()))
        ids = (id_, table.words(id_).words()) if id_ else None
        prepared = preparation.apply(table, options["gaps"])
        extra = {}
        if preparation.group is not None:
            extra["groups"] = row_groups(table, preparation.group, prepared.rows)
    for note in prepared.notes:
        screen.warn(note)
    used = {step.name for step in preparation.steps}
    aside = (id_, preparation.group)
    if unused := [name for name in table.columns if name not in used and name not in aside]:
        screen.note(f"columns that the model does not use: {listing(unused)}")
    with screen.step("predict", f"labelling {len(prepared.rows)} rows"):
        try:
            labels = np.asarray(estimator.predict(prepared.matrix, **extra))
        except ValueError as error:
            message = in_table_terms(str(error), prepared.rows, preparation.features())
            raise InputError(f"{table.source}: {message}") from error
    content = labels_csv(labels, prepared.rows, table.n_rows, ids)
    sizes = dict(zip(*np.unique(labels, return_counts=True), strict=True))
    if out is not None:
        write_file(out, content, force=options["force"])
        screen.show(
            f"{counted(len(labels), 'row')} in {counted(len(sizes), 'cluster')}; wrote {out}"
        )
    elif not screen.as_json:
        click.echo(content, nl=False)
    every: list[int | None] = [None] * table.n_rows
    for row, label in zip(prepared.rows.tolist(), labels.tolist(), strict=True):
        every[row] = label
    screen.finish(
        {
            "source": table.source,
            "sha256": table.sha256,
            "rows": table.n_rows,
            "sizes": {int(label): int(size) for label, size in sizes.items()},
            "labels": every,
            "warnings": screen.warnings,
        }
    )
