"""``countless fit`` for methods that cluster a graph: an edge list in, labels of nodes out."""

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from rich.table import Table as Grid

from .._data.table import Table, Words, counted
from .._data.write import labels_csv
from .._errors import InputError
from .._report.plain import how_sure, number, percent, printable
from .console import Screen
from .options import DataChoices
from .progress import follow
from .run import Request, write_run

ENDS = ("source", "target")
WEIGHT = "weight"
N_TYPICAL = 3
MOST_SHOWN = 20
LONGEST_NAME = 24


class Edges(NamedTuple):
    """The edges of a graph in both directions, and the names of its nodes."""

    table: Table
    columns: list[str]  # the end columns, and the weight column if there is one
    names: list[str]
    links: sp.csr_array


def read_edges(choices: DataChoices) -> Edges:
    """Read an edge list: columns source and target, or the first two, and an optional weight.

    A line is an edge between two nodes; weights of duplicate edges are summed.
    """
    table = choices.reading.read(set(ENDS))
    if len(table.columns) < 2:
        raise InputError(f"{table.source} has one column; an edge list has a source and a target")
    named = all(name in table.columns for name in ENDS)
    ends = list(ENDS) if named else list(table.columns)[:2]
    name = choices.weight or (WEIGHT if WEIGHT in table.columns else None)
    weight = np.ones(table.n_rows) if name is None else _weights(table, name)
    (a, b), names = _nodes([_full(table, end) for end in ends])
    n = len(names)
    links = sp.coo_array((weight, (a, b)), shape=(n, n))
    back = sp.coo_array((np.where(a == b, 0.0, weight), (b, a)), shape=(n, n))
    return Edges(table, [*ends, *([name] if name else [])], names, (links + back).tocsr())


def _full(table: Table, name: str) -> Words:
    """Return a text column without missing values."""
    column = table.words(name)
    if column.missing.any():
        raise InputError(f"column {name!r} is empty in row {int(np.argmax(column.missing)) + 1}")
    return column


def _weights(table: Table, name: str) -> np.ndarray:
    weight = table.numbers(name)
    bad = ~(np.isfinite(weight) & (weight >= 0))
    if bad.any():
        row = int(np.argmax(bad))
        what = "is empty" if np.isnan(weight[row]) else f"is {weight[row]:g}"
        raise InputError(f"column {name!r} {what} in row {row + 1}; a link weighs 0 or more")
    return weight


def _nodes(ends: list[Words]) -> tuple[np.ndarray, list[str]]:
    """Number the nodes in order of first appearance."""
    levels = sorted({level for end in ends for level in end.levels})
    place = {level: code for code, level in enumerate(levels)}
    codes = np.stack(
        [np.array([place[level] for level in end.levels])[end.codes] for end in ends], axis=1
    )
    present, first, inverse = np.unique(codes.ravel(), return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    return rank[inverse].reshape(codes.shape).T, [levels[code] for code in present[order]]


def run_graph(screen: Screen, edges: Edges, estimator: Any, request: Request) -> None:
    """Cluster the nodes, report the result, and write it."""
    table, links = edges.table, edges.links
    n_links = (links.nnz + np.count_nonzero(links.diagonal())) // 2
    screen.show(
        f"{table.source}: {counted(len(edges.names), 'node')}, {counted(n_links, 'link')}; "
        f"columns {', '.join(edges.columns)}",
        "",
    )
    with screen.step("fit", f"clustering {len(edges.names)} nodes by {request.method}") as say:
        if screen.err.is_terminal:
            follow(estimator, say, links.shape)
        try:
            labels = estimator.fit_predict(links)
        except ValueError as error:
            raise InputError(f"{request.method}: {error}") from error
    clusters = _describe(edges, labels)
    result: dict[str, Any] = {
        name: getattr(estimator, f"{name}_")
        for name in ("n_clusters", "penalty", "cut", "objective", "n_iter", "converged")
    }
    line = f"{counted(result['n_clusters'], 'cluster')}, found by {request.method}"
    screen.show(f"{line} at penalty {number(result['penalty'])}; cut {number(result['cut'])}")
    if path := getattr(estimator, "path_", None):
        result |= {"confidence": path.confidence, "plateaus": path.plateaus[:10]}
        screen.show(how_sure(path.confidence, path.plateaus))
    screen.show("", _view(clusters))
    rows = np.arange(len(labels))
    files = {"labels.csv": labels_csv(labels, rows, len(labels), ("node", edges.names))}
    source = {
        "source": table.source,
        "format": table.format,
        "sha256": table.sha256,
        "rows": table.n_rows,
        "nodes": len(edges.names),
        "links": int(n_links),
        "columns": edges.columns,
    }
    result["clusters"] = clusters
    record = write_run(screen, source, estimator, request, result, files)
    screen.finish(record)


def _describe(edges: Edges, labels: np.ndarray) -> list[dict[str, Any]]:
    """Summarize each cluster, the largest first: its edges and the nodes with most inside."""
    links = edges.links
    n = links.shape[0]
    member = sp.csr_array((np.ones(n), (np.arange(n), labels)))
    inside = np.asarray((links @ member)[np.arange(n), labels]).ravel()
    degree = np.asarray(links.sum(axis=1)).ravel()
    size, kept, ends = (np.bincount(labels, values) for values in (np.ones(n), inside, degree))
    by_cluster = np.lexsort((-inside, labels))
    start = np.cumsum(size) - size
    return [
        {
            "label": int(c),
            "size": int(size[c]),
            "links_inside": float(kept[c] / ends[c]) if ends[c] else 1.0,
            "typical": [
                edges.names[node]
                for node in by_cluster[int(start[c]) :][: min(N_TYPICAL, int(size[c]))]
            ],
        }
        for c in np.argsort(-size, kind="stable")
    ]


def _view(clusters: list[dict[str, Any]]) -> Grid:
    grid = Grid(box=None, header_style="bold")
    for heading in ("cluster", "nodes", "links inside"):
        grid.add_column(heading, justify="right")
    grid.add_column("most linked")
    for cluster in clusters[:MOST_SHOWN]:
        names = ", ".join(printable(name[:LONGEST_NAME]) for name in cluster["typical"])
        share = percent(cluster["links_inside"])
        grid.add_row(str(cluster["label"]), str(cluster["size"]), share, names)
    if len(clusters) > MOST_SHOWN:
        grid.add_row("...", "", "", f"and {len(clusters) - MOST_SHOWN} more, in run.json")
    return grid
