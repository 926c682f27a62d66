"""Graphs on the command line: what is read, printed and written, and what is refused."""

import csv
import json

import networkx as nx
import numpy as np
import pytest
from click.testing import CliRunner

from countless._data.table import Numbers, Table, words_of
from countless.cli import main
from countless.cli.edges import edge_columns


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Run a command in an empty directory."""
    monkeypatch.chdir(tmp_path)

    def _run(*arguments, code=0):
        result = CliRunner().invoke(main, [str(argument) for argument in arguments])
        assert result.exit_code == code, result.output
        return result

    return _run


@pytest.fixture
def ring(tmp_path):
    """Write the edges of six cliques in a ring, the nodes called by letters."""
    lines = ["source,target,weight"]
    lines += [f"n{a:02d},n{b:02d},2" for a, b in nx.ring_of_cliques(6, 5).edges]
    path = tmp_path / "ring.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_fit_labels_the_nodes(run, ring, tmp_path):
    result = run("fit", ring, "--method", "graph-dp-means")
    assert "30 nodes, 66 links; columns source, target, weight" in result.stdout
    assert "6 clusters, found by graph-dp-means at penalty -0." in result.stdout
    assert "Confidence" in result.stdout
    out = tmp_path / "ring-clusters"
    assert sorted(path.name for path in out.iterdir()) == ["README.txt", "labels.csv", "run.json"]
    with (out / "labels.csv").open(newline="") as file:
        lines = list(csv.reader(file))
    assert lines[0] == ["node", "label"]
    assert sorted(line[0] for line in lines[1:]) == [f"n{node:02d}" for node in range(30)]
    clique = {name: label for name, label in lines[1:]}
    assert all(clique[f"n{node:02d}"] == clique[f"n{node // 5 * 5:02d}"] for node in range(30))
    record = json.loads((out / "run.json").read_text())
    assert record["input"]["nodes"] == 30
    assert record["result"]["n_clusters"] == 6
    assert len(record["result"]["clusters"]) == 6
    assert record["result"]["clusters"][0]["size"] == 5
    assert record["method"]["class"] == "GraphDPMeans"


def test_penalty_may_be_negative_and_columns_may_have_other_names(run, tmp_path):
    path = tmp_path / "edges.tsv"
    path.write_text("from\tto\tyears\n1\t2\t3\n2\t1\t1\n2\t3\t1\n3\t4\t5\n")
    options = ("--method", "graph-dp-means", "--penalty", "-0.5", "--weight", "years", "--json")
    record = json.loads(run("fit", path, *options).stdout)
    assert record["input"]["columns"] == ["from", "to", "years"]
    assert record["input"]["links"] == 3
    assert record["result"]["penalty"] == -0.5
    assert record["result"]["n_clusters"] == 2
    assert record["result"]["cut"] == pytest.approx(1 / 9 + 1 / 11)
    assert (tmp_path / "edges-clusters" / "labels.csv").read_text() == (
        "node,label\n1,0\n2,0\n3,1\n4,1\n"
    )


def test_an_edge_list_is_recognised_and_nodes_have_names_and_classes(run, ring, tmp_path):
    clique = {f"n{node:02d}": f"clique {node // 5}" for node in range(30)}
    lines = ["id;label;club", *(f"{node};Node {node};{club}" for node, club in clique.items())]
    (tmp_path / "nodes.csv").write_text("\n".join([*lines, "alone;Hermit;none"]) + "\n")
    result = run("fit", ring, "--nodes", "nodes.csv", "--compare", "club")
    assert "31 nodes, 66 links" in result.stdout
    assert "Node n" in result.stdout
    assert "Agreement with club: NMI 1.00" in result.stdout
    table = (tmp_path / "ring-clusters" / "table.csv").read_text().splitlines()
    assert table[0] == "id;label;club;cluster"
    clusters = {line.rsplit(";", 1)[1] for line in table[1:31]}
    assert len(clusters) == 6
    assert table[31].startswith("alone;Hermit;none;")


def test_without_a_method_an_edge_list_is_said(run, ring, tmp_path):
    result = run("fit", ring)
    assert "looks like an edge list, from source to target" in result.stderr
    assert "--method auto" in result.stderr
    assert "6 clusters, found by graph-dp-means" in result.stdout
    lines = [f"{a}\t{b}" for a, b in nx.ring_of_cliques(6, 5).edges]
    (tmp_path / "bare.tsv").write_text("\n".join(lines) + "\n")
    result = run("fit", "bare.tsv")
    assert "the first line of bare.tsv is an edge" in result.stderr
    assert "30 nodes, 66 links" in result.stdout


@pytest.mark.parametrize("name", ["g.graphml", "g.gml", "g.gml.gz"])
def test_graphs_of_networkx(run, tmp_path, name):
    graph = nx.ring_of_cliques(6, 5)
    for node in graph:
        graph.nodes[node]["club"] = node // 5
    nx.set_edge_attributes(graph, 2.0, "weight")
    (nx.write_graphml if "graphml" in name else nx.write_gml)(graph, tmp_path / name)
    result = run("fit", name, "--compare", "club")
    assert "30 nodes, 66 links; columns source, target, weight" in result.stdout
    assert "Agreement with club: NMI 1.00" in result.stdout
    labels = (tmp_path / "g-clusters" / "labels.csv").read_text().splitlines()
    assert [line.split(",")[0] for line in labels[1:4]] == ["0", "1", "2"]


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ({"a": ("p", "q", "r", "s"), "b": ("q", "r", "t", "p")}, ["a", "b"]),
        ({"From": ("p",), "to": ("q",), "kind": ("x",)}, ["From", "to"]),
        ({"0": (0.0, 1.0), "1": (1.0, 2.0)}, ["0", "1"]),
        ({"x": (0.0, 1.0), "y": (1.0, 2.0)}, None),
        ({"0": (0.5, 1.0), "1": (1.0, 2.0)}, None),
        ({"a": ("yes", "no", "no"), "b": ("no", "yes", "no")}, None),
        ({"a": ("p", "q", "r"), "b": ("x", "y", "z")}, None),
        ({"a": ("p",)}, None),
    ],
)
def test_what_looks_like_an_edge_list(columns, expected):
    found = {
        name: words_of(values) if isinstance(values[0], str) else Numbers(np.array(values))
        for name, values in columns.items()
    }
    assert edge_columns(Table("t", found, len(next(iter(columns.values()))))) == expected


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("fit", "ring.csv", "--nodes", "no.csv"), "cannot read no.csv: No such file"),
        (("fit", "ring.csv", "--nodes", "twice.csv"), "twice.csv: node 'a' has more than one row"),
        (("fit", "ring.csv", "--nodes", "ring.csv", "--compare", "zz"), "has no column 'zz'"),
        (("fit", "ring.csv", "--nodes", "ring.csv", "--method", "diana"), "takes no --nodes"),
        (
            ("fit", "ring.csv", "--method", "graph-dp-means", "--compare", "club"),
            "--compare names a column of nodes, whose table --nodes gives",
        ),
        (("fit", "g.gml", "--method", "auto"), "g.gml holds a graph, and auto clusters the rows"),
        (("fit", "g.gml", "--sheet", "a"), "--sheet is not for GML"),
    ],
)
def test_bad_nodes_are_one_line_and_nothing_written(run, tmp_path, arguments, message):
    (tmp_path / "ring.csv").write_text("source,target\na,b\n")
    (tmp_path / "twice.csv").write_text("node\na\nb\na\n")
    (tmp_path / "g.gml").write_text("graph [ ]")
    result = run(*arguments, code=2)
    assert result.stderr.splitlines()[-1].startswith("error: ")
    assert message in result.stderr
    assert not (tmp_path / "ring-clusters").exists()


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("source,target\na,b\nb,\n", (), "column 'target' is empty in row 2"),
        ("source,target,weight\na,b,-1\n", (), "column 'weight' is -1 in row 1"),
        ("source,target,weight\na,b,\n", (), "column 'weight'"),
        ("source\na\nb\n", (), "has one column"),
        (
            "source,target\na,b\n",
            ("--exclude", "target"),
            "takes no --exclude: it reads an edge list",
        ),
        ("source,target\na,b\n", ("--plot",), "graph-dp-means takes no --plot"),
        ("source,target\na,b\n", ("--penalty", "inf"), "--penalty must be finite"),
        ("source,target\na,b\n", ("--weight", "years"), "no column 'years'"),
        ("source,target\na,b\n", ("--set", "cut=min"), "cut must be one of"),
    ],
)
def test_bad_input_is_one_line_and_nothing_written(run, tmp_path, text, options, message):
    (tmp_path / "edges.csv").write_text(text)
    result = run("fit", "edges.csv", "--method", "graph-dp-means", *options, code=2)
    assert result.stderr.startswith("error: ")
    assert len(result.stderr.splitlines()) == 1
    assert message in result.stderr
    assert not (tmp_path / "edges-clusters").exists()
