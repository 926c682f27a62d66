"""``countless fit``: read a table, cluster it, report the result and write it to files."""

from dataclasses import replace
from math import isfinite
from pathlib import Path
from typing import Any

import click

from .mixture import mixture_options, mixture_parameters, takes_raw_values
from .options import as_given, data_choices, data_options, named_after, open_data
from .registry import (
    DEFAULT,
    DEFAULT_FOR_GROUPS,
    DEFAULT_FOR_OPTIONS,
    METHODS,
    OUT_OF_CORE,
    SAMPLED,
)

BLOCK_ROWS = 10_000
# Options that auto does not support: with one of them, and no --method, dp-means is used.
_OF_DP_MEANS = (
    "penalty",
    "clusters",
    "settings",
    "checkpoint",
    "stream",
    "out_of_core",
    "dask",
    "weight",
)


@click.command(short_help="Cluster the rows of a table.")
@click.argument("data")
@click.option(
    "--method",
    type=click.Choice(list(METHODS)),
    metavar="NAME",
    help="How to cluster; `countless methods` lists the names. By default auto, which tries "
    "several; with --group hdp-means, and with --penalty, --clusters, --set, --weight, "
    "--checkpoint, --stream, --out-of-core or --dask dp-means.",
)
@click.option(
    "--penalty",
    metavar="NUMBER|auto",
    help="The price of one cluster; auto, the default, reads it from the data.",
)
@click.option(
    "--clusters",
    type=click.IntRange(min=1),
    metavar="N",
    help="Take this many clusters, such as the next best number that a first run named.",
)
@click.option(
    "--metric",
    type=click.Choice(["mixed", "hamming", "euclidean", "sqeuclidean", "cityblock", "correlation"]),
    metavar="NAME",
    help="For methods that take pairs of rows: how different two rows are. mixed takes columns of "
    "any kind as they are and ignores missing values; also hamming, euclidean, sqeuclidean, "
    "cityblock, correlation.",
)
@mixture_options
@click.option(
    "--set",
    "settings",
    metavar="KEY=VALUE",
    multiple=True,
    help="Set any other parameter of the method.",
)
@click.option(
    "--out",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="Where results go; by default the data's name with '-clusters'.",
)
@click.option(
    "--plot",
    is_flag=True,
    help="Draw the candidates of auto, too (candidates.png), the penalty path (path.png), the "
    "posterior of a mixture (posterior.png), or the blocks of bicluster (blocks.png).",
)
@click.option(
    "--report",
    is_flag=True,
    help="Write report.html, too: one page to look at, to send, and to edit clusters on.",
)
@click.option(
    "--bootstrap",
    type=click.IntRange(min=1),
    metavar="N",
    help="Cluster N resamples for the report, to see how stable each cluster is.",
)
@click.option(
    "--edits",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Apply the edits that were saved on a report: names, merges, splits.",
)
@click.option(
    "--checkpoint",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Save the run there every few passes; the same command goes on from it.",
)
@click.option(
    "--stream",
    is_flag=True,
    help="Take in rows from standard input as they come, until they end or Ctrl-C.",
)
@click.option(
    "--block-rows",
    type=click.IntRange(min=2),
    metavar="N",
    help="Rows of a stream that are taken in at once; 10000 by default. The first block decides "
    "penalty, scale and kinds of columns.",
)
@click.option(
    "--group", metavar="NAME", help="The column that tells the data set, or batch, of each row."
)
@click.option(
    "--compare", metavar="NAME", help="A column of known groups: kept out, compared afterwards."
)
@data_options
def fit(data: str, **options: Any) -> None:
    """Cluster the rows of DATA: a CSV, TSV, Parquet or npy file, or - for standard input.

    A table that does not fit in memory stays on disk (--out-of-core) or on a cluster (--dask);
    rows that keep coming are a --stream.

    Prints what was read, how many clusters there are, and what sets each apart. Writes labels.csv,
    model.zip and run.json. Rows are counted from 1, without the header. A value is missing when its
    cell is empty, NA, N/A, NaN, nan, null, NULL, None or ?.

    Methods for graphs read an edge list: the columns source and target, or the first two, and
    weight if there is one. labels.csv then has a line for each node.
    """
    from .._data.write import check_free
    from .._errors import InputError
    from .console import Screen
    from .edges import read_edges, refuse_row_options, run_graph
    from .picture import need_matplotlib
    from .registry import make_estimator, parse_settings
    from .run import FILES, Request, run

    arguments = as_given(data=data, **options)
    choices = data_choices(data, options)
    method = options["method"] or _usual_method({**options, "weight": choices.weight}, choices)
    plot, out = options["plot"], options["out"] or named_after(data, "-clusters")
    parameters = parse_settings(options["settings"])
    if options["penalty"] is not None:
        if "penalty" in parameters:
            raise InputError("the penalty is given twice, by --penalty and by --set")
        parameters["penalty"] = _penalty(options["penalty"], METHODS[method].takes)
    if options["clusters"] is not None:
        if "n_clusters" not in METHODS[method].parameters():
            raise InputError(f"--clusters is for methods with n_clusters; {method} has none")
        if "n_clusters" in parameters:
            raise InputError("the number of clusters is given twice, by --clusters and by --set")
        parameters["n_clusters"] = options["clusters"]
    if options["checkpoint"] is not None:
        _check_checkpoint(options, method)
        parameters["checkpoint"] = str(options["checkpoint"])
    far = "--dask" if options["dask"] else "--out-of-core" if options["out_of_core"] else None
    if far and method not in OUT_OF_CORE:
        raise InputError(f"{far} works with {', '.join(OUT_OF_CORE)}, not with {method}")
    if options["stream"] and (far or options["checkpoint"]):
        raise InputError(f"--stream cannot be combined with {far or '--checkpoint'}")
    if options["block_rows"] and not options["stream"]:
        raise InputError("--block-rows is for --stream")
    parameters = mixture_parameters(method, METHODS[method].parameters(), options, parameters)
    metric = options["metric"]
    if metric:
        from .metric import pairs_parameters

        parameters = pairs_parameters(method, parameters)
    estimator = make_estimator(method, parameters, seed=options["seed"], jobs=options["jobs"])
    graph = METHODS[method].takes == "edges"
    if plot:
        drawn = (*SAMPLED, DEFAULT)
        if METHODS[method].key_parameter != "penalty" and method not in drawn:
            raise InputError(f"--plot draws the penalty path, and {method} has no penalty")
        if graph:
            raise InputError(f"--plot draws the path of a table; {method} reads an edge list")
        need_matplotlib()
    _check_report(options, METHODS[method].takes, far)
    if options["report"]:
        from .report import need_report

        need_report()
    edits = None
    if options["edits"] is not None:
        from .report import edits_from

        edits = edits_from(options["edits"])
    check_free(out, FILES, options["force"])

    screen = Screen(quiet=options["quiet"], as_json=options["as_json"])
    request = Request(
        "fit",
        method,
        arguments,
        options["seed"],
        out,
        options["force"],
        plot,
        options["report"],
        options["bootstrap"] or 0,
        edits,
    )
    if options["stream"]:
        from .stream import fit_stream

        fit_stream(screen, choices, estimator, request, options["block_rows"] or BLOCK_ROWS)
        return
    if graph:
        refuse_row_options(choices, method)
        with screen.step("read", f"reading {data}"):
            edges = read_edges(choices)
        run_graph(screen, edges, estimator, request)
        return
    if METHODS[method].takes == "table":
        from .bicluster import run_bicluster
        from .crosscat import run_crosscat

        run_table = run_bicluster if method == "bicluster" else run_crosscat
        run_table(screen, choices, estimator, request)
        return
    key = METHODS[method].key_parameter
    if key in ("n_clusters", "n_components") and key not in parameters:
        screen.note(
            f"{method} does not choose the number of clusters: "
            f"{key}={getattr(estimator, key)} unless you say --set {key}=NUMBER"
        )
    if choices.scale is None and takes_raw_values(estimator):
        choices = replace(choices, scale=False)
    divergence = getattr(estimator, "divergence", "sqeuclidean")
    with open_data(screen, choices, options, divergence) as prepared:
        if metric:
            from .metric import with_pairs

            with screen.step("compare", "comparing all rows"):
                prepared = with_pairs(prepared, metric, METHODS[method], options["jobs"])
        run(screen, prepared, estimator, request)


def _check_report(options: dict[str, Any], takes: str, far: str | None) -> None:
    """Raise an error for options of reports that cannot be combined with others."""
    from .._errors import InputError

    if options["bootstrap"] and not options["report"]:
        raise InputError("--bootstrap is for --report")
    wanted = [name for name in ("report", "edits") if options[name]]
    if wanted and (far or options["stream"]):
        raise InputError(f"--{wanted[0]} cannot be combined with {far or '--stream'}")
    if wanted and takes == "edges":
        raise InputError(f"--{wanted[0]} is for tables; this method reads an edge list")
    if takes == "table" and (options["edits"] or options["bootstrap"]):
        name = "edits" if options["edits"] else "bootstrap"
        raise InputError(f"--{name} is for methods with one clustering of prepared rows")


def _usual_method(options: dict[str, Any], choices: Any) -> str:
    if choices.group:
        return DEFAULT_FOR_GROUPS
    return DEFAULT_FOR_OPTIONS if any(options[name] for name in _OF_DP_MEANS) else DEFAULT


def _penalty(text: str, takes: str) -> float | str:
    from .._errors import InputError

    if text == "auto":
        return text
    try:
        penalty = float(text)
    except ValueError as error:
        raise InputError(f"--penalty must be a number or 'auto'; got {text!r}") from error
    # One cluster of a connected graph has cut 0: only a negative penalty gives several.
    if not isfinite(penalty) or (penalty < 0 and takes == "rows"):
        raise InputError(
            f"--penalty must be {'0 or more' if takes == 'rows' else 'finite'}; got {text}"
        )
    return penalty


def _check_checkpoint(options: dict[str, Any], method: str) -> None:
    from .._data.write import check_free_file
    from .._errors import InputError

    if "checkpoint" not in METHODS[method].parameters():
        raise InputError(f"--checkpoint works with dp-means, not with {method}")
    check_free_file(options["checkpoint"], force=True)
