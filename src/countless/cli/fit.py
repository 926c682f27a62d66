"""``countless fit``: read a table, cluster it, report the result and write it to files."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .._errors import InputError
from .combinations import (
    check_method,
    check_options,
    check_parameters,
    may_be_graph,
    method_parameters,
    options_given,
    usual_method,
)
from .methods import DEFAULT_FOR_GRAPHS, METHODS, make_estimator, pairs_parameters
from .mixture import mixture_options, takes_raw_values
from .options import (
    FILES,
    DataChoices,
    as_given,
    check_exists,
    data_choices,
    data_options,
    named_after,
)
from .picture import need_matplotlib
from .report import edits_from, need_report

if TYPE_CHECKING:
    from .._registry import Method
    from .console import Screen
    from .run import Request

BLOCK_ROWS = 10_000


@click.command(short_help="Cluster the rows of a table.")
@click.argument("data")
@click.option(
    "--method",
    type=click.Choice(list(METHODS)),
    metavar="NAME",
    help="How to cluster; `countless methods` lists the names. By default auto, which tries "
    "several; for a graph graph-dp-means, with --group hdp-means, with --metric kernel-dp-means, "
    "and with --penalty, --clusters, --background, --layers, --set, --weight, --optimality-gap, "
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
    "--background",
    metavar="SHARE|auto",
    help="Leave rows that are far from every cluster without one (label -1): at most this share of "
    "them, or as many as the data show.",
)
@click.option(
    "--layers",
    is_flag=True,
    help="Print coarser and finer clusters that stand out, too, nested as a tree, and write a "
    "column layer_1, layer_2, ... for each, coarse to fine.",
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
    "--optimality-gap",
    is_flag=True,
    help="Say how far the objective can be above its optimum, by a lower bound.",
)
@click.option(
    "--edits",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Apply the edits that were saved on a report: names, merges, splits.",
)
@click.option(
    "--texts",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="A text for each row, in UTF-8, one a line: clusters are named and described by their "
    "words.",
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
@click.option(
    "--nodes",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="A table with a row for each node of a graph, by the column node or id or the first: its "
    "name or label is shown, and --compare takes its columns.",
)
@data_options
def fit(data: str, **options: Any) -> None:
    """Cluster the rows of DATA: a table in text, JSON lines, Parquet, Feather, Excel, AnnData or
    npy, the nodes of a graph in GraphML, GML or a table of edges, or - for standard input.

    A table that does not fit in memory stays on disk (--out-of-core) or on a cluster (--dask);
    rows that keep coming are a --stream.

    Prints what was read, how many clusters there are, and what sets each apart. Writes the table
    with a column for the cluster (table.csv), labels.csv, clusters.csv, model.zip and run.json, and
    says in README.txt what each is. Rows are counted from 1, without the header. A value is missing
    when its cell is empty, NA, N/A, NaN, nan, null, NULL, None or ?.

    Methods for graphs read an edge list: the columns source and target, or the first two, and
    weight if there is one. labels.csv then has a line for each node. Without --method a table that
    looks like an edge list is taken for one.
    """
    arguments = as_given(data=data, **options)
    given = options_given(arguments)
    choices = data_choices(data, options)
    choices.reading.check()
    usual = DEFAULT_FOR_GRAPHS if choices.reading.is_graph else usual_method(given)
    method = METHODS[options["method"] or usual]
    if choices.reading.is_graph and method.estimator.takes != "edges":
        raise InputError(f"{data} holds a graph, and {method.name} clusters the rows of tables")
    check_options(given)
    check_method(method, given)
    parameters = method_parameters(method, arguments)
    for name in ("texts", "nodes"):
        if options[name] is not None:
            check_exists(str(options[name]))

    from .._data.write import check_free, check_free_file
    from .console import Screen

    out = options["out"] or named_after(data, "-clusters")
    check_free(out, FILES, options["force"])
    if options["plot"]:
        need_matplotlib()
    if options["report"]:
        need_report()
    edits = None if options["edits"] is None else edits_from(options["edits"])
    if options["checkpoint"] is not None:
        check_free_file(options["checkpoint"], force=True)
    screen = Screen(quiet=options["quiet"], as_json=options["as_json"])
    if options["method"] is None and may_be_graph(method, given, choices):
        choices, method = _look_for_edges(screen, choices, method)
        check_method(method, given)
        parameters = method_parameters(method, arguments)
    check_parameters(method, given)
    if choices.metric:
        parameters = pairs_parameters(method.name, parameters)
    estimator = make_estimator(method.name, parameters, seed=options["seed"], jobs=choices.jobs)

    from .run import Request

    request = Request(
        "fit",
        method.name,
        arguments,
        options["seed"],
        out,
        options["force"],
        options["plot"],
        options["report"],
        options["bootstrap"] or 0,
        edits,
        options["texts"],
        options["layers"],
        options["nodes"],
    )
    FITS["stream" if options["stream"] else method.estimator.gives](
        screen, choices, estimator, request
    )


def _fit_stream(screen: "Screen", choices: DataChoices, estimator: Any, request: "Request") -> None:
    from .stream import fit_stream

    block_rows = request.arguments["block_rows"] or BLOCK_ROWS
    fit_stream(screen, choices, estimator, request, block_rows)


def _look_for_edges(
    screen: "Screen", choices: DataChoices, method: "Method"
) -> "tuple[DataChoices, Method]":
    """Read the table, and take the method for graphs if it looks like an edge list."""
    from .edges import edge_columns

    with screen.step("read", f"reading {choices.reading.source}"):
        table = choices.reading.read(choices.as_text())
    ends = edge_columns(table)
    if ends is None:
        return replace(choices, table=table), method
    if all(end.isdigit() for end in ends):
        choices = replace(choices, reading=replace(choices.reading, header=False))
        screen.note(f"the first line of {table.source} is an edge, not column names")
    screen.note(
        f"{table.source} looks like an edge list, from {ends[0]} to {ends[1]}: its nodes are "
        f"clustered; say --method {method.name} to cluster its rows"
    )
    return choices, METHODS[DEFAULT_FOR_GRAPHS]


def _fit_nodes(screen: "Screen", choices: DataChoices, estimator: Any, request: "Request") -> None:
    from .edges import read_edges, run_graph

    with screen.step("read", f"reading {choices.reading.source}"):
        edges = read_edges(screen, choices, request.nodes)
    run_graph(screen, edges, estimator, request)


def _fit_blocks(screen: "Screen", choices: DataChoices, estimator: Any, request: "Request") -> None:
    from .bicluster import run_bicluster

    run_bicluster(screen, choices, estimator, request)


def _fit_views(screen: "Screen", choices: DataChoices, estimator: Any, request: "Request") -> None:
    from .crosscat import run_crosscat

    run_crosscat(screen, choices, estimator, request)


def _fit_rows(screen: "Screen", choices: DataChoices, estimator: Any, request: "Request") -> None:
    from .open import open_data
    from .run import run

    method = METHODS[request.method]
    key = method.key_parameter
    settings = method_parameters(method, request.arguments)
    if key in ("n_clusters", "n_components") and key not in settings:
        screen.note(
            f"{method.name} does not choose the number of clusters: "
            f"{key}={getattr(estimator, key)} unless you say --set {key}=NUMBER"
        )
    if choices.scale is None and takes_raw_values(estimator):
        choices = replace(choices, scale=False)
    divergence = getattr(estimator, "divergence", "sqeuclidean")
    with open_data(screen, choices, divergence, method.similarity) as prepared:
        run(screen, prepared, estimator, request)


# How a fit runs, by what it gives.
FITS = {
    "stream": _fit_stream,
    "nodes": _fit_nodes,
    "blocks": _fit_blocks,
    "views": _fit_views,
    "clusters": _fit_rows,
}
