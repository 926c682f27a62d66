"""``countless export``: a saved model as SQL, plain Python or ONNX."""

from pathlib import Path

import click

from .options import check_exists, force_option, quiet_option


@click.command(short_help="Write a saved model as SQL, Python or ONNX.")
@click.argument("model")
@click.option(
    "--to",
    type=click.Choice(["sql", "python", "onnx"]),
    required=True,
    help="A query for DuckDB; a file of plain Python, without packages; a graph for ONNX Runtime.",
)
@click.option(
    "--out",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Where it goes; by default standard output. ONNX needs a file.",
)
@quiet_option
@force_option
def export(model: str, to: str, out: Path | None, quiet: bool, force: bool) -> None:
    """Write MODEL, the model.zip that `countless fit` wrote, in a form that needs no countless.

    It has the preparation of the columns and the rule for new rows, which must be that of nearest
    centers: of dp-means, hdp-means without groups, k-means, and auto where it chose round clusters.
    The labels are those of `countless predict`.
    """
    from .._errors import InputError

    check_exists(model)
    if out is None and to == "onnx":
        raise InputError("--to onnx writes bytes: say --out FILE")

    from .._data.write import check_free_file, write_file

    if out is not None:
        check_free_file(out, force)

    from .._export import export as exported
    from ..serialize.model_file import load_model
    from .console import Screen

    written = exported(load_model(model), to)
    if out is None:
        click.echo(written, nl=False)
        return
    write_file(out, written.encode() if isinstance(written, str) else written, force=force)
    Screen(quiet=quiet).show(f"wrote {out}")
