"""The reader of graphs in GraphML and GML: a table of edges, and one of nodes."""

import io
from collections.abc import Set
from typing import Any
from xml.etree.ElementTree import ParseError

import networkx as nx
import numpy as np

from .._errors import InputError
from .._formats import Format, TextStyle
from .compressed import decompressed
from .table import Column, Contents, Numbers, Table, words_of

SOURCE, TARGET, WEIGHT, NODE = "source", "target", "weight", "node"


def read(
    file: io.BufferedIOBase, name: str, format: Format, style: TextStyle, as_text: Set[str]
) -> Contents:
    """Read the edges of a graph with their weights, and its nodes with their attributes.

    Examples
    --------
    >>> from countless._formats import FORMATS
    >>> file = io.BytesIO(b'graph [ node [ id 1 ] node [ id 2 ] edge [ source 1 target 2 ] ]')
    >>> found = read(file, "g.gml", FORMATS["gml"], TextStyle(), set())
    >>> found.columns["target"].words(), found.nodes.words("node").words()
    (['2'], ['1', '2'])
    """
    with decompressed(file, name) as plain:
        text = io.BytesIO(plain.read())
    try:
        graph = nx.read_gml(text, label="id") if format.name == "gml" else nx.read_graphml(text)
    except (nx.NetworkXError, ParseError, KeyError, ValueError) as error:
        message = " ".join(str(error).split())
        raise InputError(f"{name} is no usable {format.title} graph: {message}") from error
    edges = list(graph.edges(data=True))
    columns: dict[str, Column] = {
        SOURCE: words_of([str(a) for a, _, _ in edges]),
        TARGET: words_of([str(b) for _, b, _ in edges]),
    }
    if any(WEIGHT in about for *_, about in edges):
        columns[WEIGHT] = _column([about.get(WEIGHT) for *_, about in edges])
    about_nodes = [about for _, about in graph.nodes(data=True)]
    attributes = dict.fromkeys(key for about in about_nodes for key in about if key != NODE)
    nodes: dict[str, Column] = {NODE: words_of([str(node) for node in graph])}
    nodes |= {key: _column([about.get(key) for about in about_nodes]) for key in attributes}
    return Contents(columns, len(edges), style, nodes=Table(name, nodes, len(graph)))


def _column(values: list[Any]) -> Column:
    """Return attributes as numbers if all of them are, else as text; None is missing."""
    if all(value is None or type(value) in (int, float) for value in values):
        return Numbers(np.array([np.nan if v is None else float(v) for v in values]))
    return words_of([None if value is None else str(value) for value in values])
