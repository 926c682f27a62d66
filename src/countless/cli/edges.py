"""``countless fit`` for methods that cluster a graph: edges in, labels of nodes out."""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from rich.table import Table as Grid

from .._data.read import edited, read_table
from .._data.table import Column, Numbers, Table, Words, counted
from .._data.write import Content, labels_csv
from .._errors import InputError
from .._report.plain import how_sure, number, percent, printable
from .console import Screen
from .data import agreement_line, agreement_with
from .options import TABLES, DataChoices
from .progress import follow
from .run import Request, write_run

# Names of the end columns, in lower case.
ENDS = (("source", "target"), ("from", "to"), ("src", "dst"), ("fromnodeid", "tonodeid"))
WEIGHT = "weight"
NODE_IDS = ("node", "id", "Id")  # columns that identify nodes; by default the first
NODE_NAMES = ("name", "label", "Name", "Label")
FEWEST_NODES = 5  # fewer are more likely the answers to two questions
DISTINCT = 0.9  # share of the rows of an edge list that are distinct pairs
N_TYPICAL = 3
MOST_SHOWN = 20
LONGEST_NAME = 24


class Nodes(NamedTuple):
    """What is known about the nodes of a graph."""

    table: Table
    rows: np.ndarray  # the row of each node; -1 if it has none
    compare: str | None  # the column of known groups


class Edges(NamedTuple):
    """The edges of a graph in both directions, and its nodes."""

    table: Table
    columns: list[str]  # the end columns, and the weight column if there is one
    ids: list[str]
    names: list[str]
    links: sp.csr_array
    nodes: Nodes | None


def edge_columns(table: Table) -> list[str] | None:
    """Return the end columns of a table that looks like an edge list; None for any other.

    They have the usual names, or the table has two columns, and perhaps a weight, of texts that are
    the same in both, or of integers without a name.

    Examples
    --------
    >>> columns = {name: Words(np.array([0, 1]), ("a", "b")) for name in ("Source", "Target")}
    >>> edge_columns(Table("t", columns, 2))
    ['Source', 'Target']
    """
    names = {name.lower(): name for name in table.columns}
    for pair in ENDS:
        if set(pair) <= set(names):
            return [names[end] for end in pair]
    others = [name for name in table.columns if name.lower() != WEIGHT]
    if len(others) != 2:
        return None
    a, b = (table.columns[name] for name in others)
    if isinstance(a, Words) and isinstance(b, Words):
        shared = len({*a.levels} & {*b.levels})
        alike = 2 * shared >= min(len(a.levels), len(b.levels))
        distinct = len(np.unique(np.stack([a.codes, b.codes]), axis=1).T)
        enough = len({*a.levels, *b.levels}) >= FEWEST_NODES
        return others if alike and enough and distinct >= DISTINCT * table.n_rows else None
    nameless = all(name.isdigit() or name.startswith("column_") for name in others)
    return others if nameless and _is_integer(a) and _is_integer(b) else None


def _is_integer(column: Column) -> bool:
    return isinstance(column, Numbers) and bool(np.all(column.values % 1 == 0))


def read_edges(screen: Screen, choices: DataChoices, nodes: Path | None) -> Edges:
    """Read the edges of a graph, with an optional weight, and its nodes where they are given.

    A row is an edge between two nodes; weights of duplicate edges are summed.
    """
    table = choices.reading.read({name for pair in ENDS for name in pair})
    if len(table.columns) < 2:
        raise InputError(f"{table.source} has one column; an edge list has a source and a target")
    ends = edge_columns(table) or list(table.columns)[:2]
    given = next((name for name in table.columns if name.lower() == WEIGHT), None)
    name = choices.weight or given
    weight = np.ones(table.n_rows) if name is None else _weights(table, name)
    (a, b), ids = _nodes([_full(table, end) for end in ends])
    about = table.nodes if nodes is None else read_table(str(nodes), as_text={*NODE_IDS})
    if about is None and choices.compare:
        raise InputError("--compare names a column of nodes, whose table --nodes gives")
    known, names = None, ids
    if about is not None:
        ids, names, known = _with_nodes(screen, ids, about, choices.compare)
    n = len(ids)
    links = sp.coo_array((weight, (a, b)), shape=(n, n))
    back = sp.coo_array((np.where(a == b, 0.0, weight), (b, a)), shape=(n, n))
    columns = [*ends, *([name] if name else [])]
    return Edges(table, columns, ids, names, (links + back).tocsr(), known)


def _with_nodes(
    screen: Screen, ids: list[str], table: Table, compare: str | None
) -> tuple[list[str], list[str], Nodes]:
    """Return all nodes, those without an edge last, their names, and what is known about them."""
    key = next((name for name in NODE_IDS if name in table.columns), next(iter(table.columns)))
    known = _full(table, key).words()
    row = {node: place for place, node in enumerate(known)}
    if len(row) < len(known):
        twice = next(node for place, node in enumerate(known) if row[node] != place)
        raise InputError(f"{table.source}: node {twice!r} has more than one row")
    if missing := [node for node in ids if node not in row]:
        screen.note(f"not in {table.source}: {counted(len(missing), 'node')}, as {missing[0]!r}")
    linked = {*ids}
    ids = [*ids, *(node for node in known if node not in linked)]
    rows = np.array([row.get(node, -1) for node in ids])
    names = ids
    naming = [name for name in NODE_NAMES if name in table.columns and name != key]
    if naming:
        texts = table.words(naming[0]).words()
        names = [
            (texts[place] if place >= 0 else "") or node
            for node, place in zip(ids, rows, strict=True)
        ]
    if compare:
        table.words(compare)
    return ids, names, Nodes(table, rows, compare)


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
    )
    if table.notes:
        screen.show(f" guessed: {'; '.join(table.notes)}")
    screen.show("")
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
    files: dict[str, Content] = {
        "labels.csv": labels_csv(labels, rows, len(labels), ("node", edges.ids))
    }
    if edges.nodes is not None:
        result["agreement"] = _compared(screen, edges.nodes, labels)
        files |= _table_of_nodes(edges.nodes, labels)
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


def _compared(screen: Screen, nodes: Nodes, labels: np.ndarray) -> dict[str, Any] | None:
    """Compare the clusters with known groups of nodes, and show how they agree."""
    if nodes.compare is None:
        return None
    found = nodes.rows >= 0
    codes = nodes.table.words(nodes.compare).codes[nodes.rows[found]]
    agreement = agreement_with(nodes.compare, codes, labels[found])
    screen.show("", agreement_line(agreement))
    return agreement


def _table_of_nodes(nodes: Nodes, labels: np.ndarray) -> dict[str, Content]:
    """Return the table of nodes with their clusters; empty where it is a part of the graph."""
    if nodes.table.path is None or nodes.table.format not in TABLES:
        return {}
    cluster = np.full(nodes.table.n_rows, np.nan)
    cluster[nodes.rows[nodes.rows >= 0]] = labels[nodes.rows >= 0]
    return {TABLES[nodes.table.format]: edited(nodes.table, {"cluster": cluster})}


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
