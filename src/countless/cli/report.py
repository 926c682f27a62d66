"""``countless report``: the page of a saved model and its rows; and that of ``fit --report``."""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .options import (
    check_exists,
    data_reading,
    force_option,
    json_option,
    named_after,
    quiet_option,
    reading_options,
)

if TYPE_CHECKING:
    import numpy as np

    from .._data.table import Table
    from .._report.sheet import Sheet, SheetColumn
    from ..image.segment import Segmentation
    from .data import MemoryTable
    from .mixed import MixedTable
    from .run import Request

LONGEST_SIDE = 1000  # of a drawing on a page


@click.command(short_help="Draw a page about a saved model and its rows.")
@click.argument("model")
@click.argument("data")
@click.option(
    "--out",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Where the page goes; by default the data's name with '-report.html'.",
)
@click.option("--id", "id_", metavar="NAME", help="The column that names the rows.")
@click.option("--title", metavar="TEXT", help="The heading of the page.")
@reading_options
@json_option
@quiet_option
@force_option
def report(model: str, data: str, **options: Any) -> None:
    """Write one HTML page about MODEL, the model.zip that `countless fit` wrote, and the rows DATA.

    The page needs no network and no server. It has a map, a card for each cluster with what sets it
    apart, and, where the model has a path, a slider for the number of clusters. Clusters can be
    renamed, merged, split and locked on it; `countless fit --edits` takes the file that it saves.
    The page of `countless fit --report` has more: the candidates, and the confidence of the fit.
    """
    check_exists(model)
    reading = data_reading(data, options)
    reading.check()

    from .._data.table import counted
    from .._data.write import check_free_file, write_file
    from .._errors import InputError
    from ..serialize.model_file import load_model
    from .console import Screen
    from .mixed import columns_as_they_are

    need_report()
    out = options["out"] or named_after(data, "-report.html")
    check_free_file(out, options["force"])
    screen = Screen(quiet=options["quiet"], as_json=options["as_json"])
    with screen.step("load", f"loading {model}"):
        estimator, prepared = load_model(model)
        preparation: Any = prepared or columns_as_they_are(estimator)
    if preparation is None:
        raise InputError(f"{model} was saved without the preparation of a table")
    given = [name for name in (options["id_"], preparation.group) if name]
    command = _command_line(click.get_current_context())
    id_, title = options["id_"], options["title"]
    with screen.step("read", f"reading {data}"):
        table = reading.read(preparation.words | set(given))
    if id_:
        table.column(id_)
    with screen.step("report", "drawing the page"):
        page, n_rows = _page_of_file(estimator, preparation, table, id_, title, command)
        write_file(out, page, force=options["force"])
    screen.show(f"{counted(n_rows, 'row')}; wrote {out}")
    screen.finish({"source": table.source, "rows": n_rows, "page": str(out)})


def _page_of_file(
    estimator: Any,
    preparation: Any,
    table: "Table",
    id_: str | None,
    title: str | None,
    command: str,
) -> tuple[bytes, int]:
    """Return the page of a saved model, and the number of its rows."""
    import numpy as np

    from .._data.columns import Roles, examine_columns
    from .._errors import InputError
    from .._report.data import report_data
    from .._report.page import page_bytes
    from ..edited_clustering import path_of
    from ..preprocess.plan import row_groups
    from ..preprocess.prepare import Preparation
    from .data import in_table_terms

    prepared = preparation.apply(table, None)
    if not len(prepared.rows):
        raise InputError(f"every row of {table.source} has a missing value")
    extra = {}
    if preparation.group is not None:
        extra["groups"] = row_groups(table, preparation.group, prepared.rows)
    try:
        labels = np.asarray(estimator.predict(prepared.matrix, **extra))
    except ValueError as error:
        message = in_table_terms(str(error), prepared.rows, preparation.features())
        raise InputError(f"{table.source}: {message}") from error
    used = set(preparation.names)
    matrix = prepared.matrix if isinstance(preparation, Preparation) else None
    facts = examine_columns(table, Roles(id=id_))
    treatment = [
        {
            "name": one.name,
            "kind": one.kind,
            "gaps": one.n_missing,
            "done": "as when the model was fitted" if one.name in used else "not used",
            "used": one.name in used,
        }
        for one in facts
    ]
    sheet = _sheet(table, prepared.rows, treatment, id_, matrix)
    path = path_of(estimator, matrix) if matrix is not None else None
    data = report_data(
        estimator, sheet, labels, path=path, treatment=treatment, title=title, command=command
    )
    return page_bytes(data), len(labels)


def need_report() -> None:
    """Raise an error that names the extra to install, before the computation."""
    from importlib.util import find_spec

    from .._errors import InputError

    if find_spec("bokeh") is None or find_spec("jinja2") is None:
        raise InputError("reports need Bokeh and Jinja2: pip install 'countless[report]'")


def edits_from(path: Path) -> dict[str, Any]:
    """Read the edits that a page saved."""
    from .._edits import read_edits
    from .._errors import InputError

    try:
        return read_edits(path)
    except ValueError as error:
        raise InputError(f"--edits: {error}") from error


def report_of_data(
    estimator: Any, data: "MemoryTable", labels: "np.ndarray", request: "Request"
) -> bytes:
    """Return the page of a clustering of prepared rows."""
    from .._report.data import report_data
    from .._report.page import page_bytes

    treatment = [
        {
            "name": column.name,
            "kind": column.kind,
            "gaps": column.n_missing,
            "done": column.done,
            "used": column.used,
        }
        for column in data.columns
    ]
    naming = data.cells([]).naming
    sheet = _sheet(data.table, data.rows, treatment, naming, data.matrix)
    stability = None
    if request.n_bootstrap:
        from ..stability import bootstrap

        model = getattr(estimator, "estimator_", estimator)
        stability = bootstrap(model, data.given, n_draws=request.n_bootstrap, random_state=0)
    return page_bytes(
        report_data(
            estimator,
            sheet,
            labels,
            stability=stability,
            treatment=treatment,
            command=_command_line(click.get_current_context()),
        )
    )


def report_of_cells(estimator: Any, mixed: "MixedTable", request: "Request") -> bytes:
    """Return the page of a clustering of unprocessed cells."""
    import numpy as np

    from .._report.data import report_data
    from .._report.page import page_bytes

    treatment = [
        {
            "name": column.name,
            "kind": column.kind,
            "gaps": column.n_missing,
            "done": "as it is, with its missing values"
            if column.used
            else f"left out: {column.left_out}",
            "used": column.used,
        }
        for column in mixed.facts
    ]
    sheet = _sheet(mixed.table, np.arange(mixed.table.n_rows), treatment, mixed.id, None)
    command = _command_line(click.get_current_context())
    return page_bytes(
        report_data(estimator, sheet, estimator.labels_, treatment=treatment, command=command)
    )


def report_of_picture(found: "Segmentation", image: "np.ndarray", name: str) -> bytes:
    """Return the page of a segmented picture, whose rows are its superpixels."""
    import numpy as np

    from .._report.data import report_data
    from .._report.page import page_bytes
    from .._report.sheet import Sheet, SheetColumn
    from ..image.draw import draw_outlines, mean_colors

    patches = found.patches
    height, width = patches.labels.shape
    where = patches.labels.ravel()
    pixels = np.bincount(where)
    y, x = (np.bincount(where, at.ravel()) / pixels for at in np.indices(patches.labels.shape))
    values = [*(255 * patches.colors).T, pixels, x, height - 1 - y]
    names = ["red", "green", "blue", "pixels", "x", "y (upwards)"]
    columns = [
        SheetColumn(name, np.asarray(own, dtype=np.float64), None, name in names[:3], "numeric", "")
        for name, own in zip(names, values, strict=True)
    ]
    labels = np.empty(patches.n, dtype=np.int64)
    labels[where] = found.labels.ravel()
    rows = np.arange(1, patches.n + 1)
    sheet = Sheet(name, columns, patches.colors, rows, None, patches.n, len(columns))
    drawings = {
        "segments": draw_outlines(image, found.labels),
        "mean colours": mean_colors(image, found.labels)[found.labels],
    }
    picture = {
        "width": width,
        "height": height,
        "n_segments": found.n_segments,
        "images": [
            {"name": what, "source": _data_address(drawn)} for what, drawn in drawings.items()
        ],
    }
    return page_bytes(
        report_data(
            found.estimator,
            sheet,
            labels,
            coordinates=np.column_stack([x, height - 1 - y]),
            picture=picture,
            title=f"{found.n_segments} segments in {name}",
            command=_command_line(click.get_current_context()),
        )
    )


def _data_address(image: "np.ndarray") -> str:
    """Return a drawing as the address of an image inside a page, not larger than a screen."""
    import base64
    import io

    import numpy as np
    from PIL import Image

    drawn = Image.fromarray(np.round(255 * image).astype(np.uint8))
    drawn.thumbnail((LONGEST_SIDE, LONGEST_SIDE))
    content = io.BytesIO()
    drawn.save(content, "JPEG", quality=90)
    return f"data:image/jpeg;base64,{base64.b64encode(content.getvalue()).decode()}"


def _sheet(
    table: "Table",
    rows: "np.ndarray",
    treatment: list[dict[str, Any]],
    naming: str | None,
    matrix: Any,
) -> "Sheet":
    """Return the rows of a table that were clustered."""
    from .._report.sheet import Sheet, encoded

    done = {one["name"]: one for one in treatment}
    columns = [
        column
        for name in table.columns
        if name != naming and (column := _sheet_column(table, name, rows, done[name])) is not None
    ]
    names = None
    if naming is not None:
        words = table.words(naming).words()
        names = [words[row] for row in rows]
    matrix = encoded(columns)[0] if matrix is None else matrix
    return Sheet(table.source, columns, matrix, rows + 1, names, table.n_rows, len(table.columns))


def _sheet_column(
    table: "Table", name: str, rows: "np.ndarray", done: dict[str, Any]
) -> "SheetColumn | None":
    """Return one column; None for one that is neither numbers nor text."""
    import numpy as np

    from .._data.table import Numbers, Unusable
    from .._report.sheet import SheetColumn

    column = table.columns[name]
    about = done["used"], done["kind"], done["done"]
    if isinstance(column, Unusable):
        return None
    if isinstance(column, Numbers) and done["kind"] != "categorical":
        return SheetColumn(name, column.values[rows].astype(np.float64), None, *about)
    words = table.words(name)
    return SheetColumn(name, words.codes[rows], words.levels, *about)


def _command_line(context: click.Context) -> str:
    """Return the command with the options that are not their defaults."""
    words = [context.command_path]
    for parameter in context.command.params:
        value = context.params.get(parameter.name or "")
        if isinstance(parameter, click.Argument):
            words.append(str(value))
            continue
        usual = parameter.get_default(context)
        if value == usual or value in (None, ()) or parameter.name in ("force", "quiet"):
            continue
        spelled = parameter.secondary_opts if value is False else parameter.opts
        option = max(spelled, key=len)
        if isinstance(value, bool):
            words.append(option)
            continue
        for one in value if isinstance(value, tuple) else (value,):
            words += [option, str(one)]
    first, *others = words
    return " ".join([first, *map(shlex.quote, others)])
