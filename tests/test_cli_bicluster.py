"""fit --method bicluster: two files of labels, a picture, and one line for a mistake."""

import csv
import json

import numpy as np
import pytest
from click.testing import CliRunner

from countless.cli import main

SHORT = ("--method", "bicluster", "--sweeps", "20", "--chains", "2", "--out", "o")


@pytest.fixture
def table(tmp_path, monkeypatch):
    """Write three kinds of rows in three kinds of columns, with a missing value, and row names."""
    monkeypatch.chdir(tmp_path)
    cells = np.kron([[1, 0, 1], [0, 1, 1], [1, 1, 0]], np.ones((5, 4), dtype=int)).astype(str)
    cells[2, 3] = ""
    header = ",".join(["who", *(f"x{j}" for j in range(12))])
    lines = [",".join([f"p{i}", *row]) for i, row in enumerate(cells)]
    (tmp_path / "table.csv").write_text("\n".join([header, *lines]) + "\n")
    (tmp_path / "mixed.csv").write_text("a,b\n1,u\n3,v\n1,u\n")
    return tmp_path


def run(*arguments):
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def read(path):
    with open(path, newline="") as file:
        return list(csv.reader(file))


def test_fit_writes_the_clusters_of_rows_and_columns(table):
    done = run("fit", "table.csv", *SHORT, "--id", "who", "--plot")
    assert done.exit_code == 0, done.output
    assert "3 clusters of rows and 3 of columns" in done.output
    header, *lines = read("o/labels.csv")
    assert header == ["who", "label"]
    assert lines == [[f"p{i}", str(i // 5)] for i in range(15)]
    header, *lines = read("o/columns.csv")
    assert header == ["column", "label"]
    assert lines == [[f"x{j}", str(j // 4)] for j in range(12)]
    result = json.loads((table / "o/run.json").read_text())["result"]
    assert result["sizes"] == [5, 5, 5]
    assert result["columns"][1] == ["x4", "x5", "x6", "x7"]
    assert result["block_means"] == [[1, 0, 1], [0, 1, 1], [1, 1, 0]]
    assert result["column_posterior"]["n_clusters_interval"][0] == 3
    assert (table / "o/blocks.png").read_bytes().startswith(b"\x89PNG")
    again = run("fit", "table.csv", *SHORT, "--id", "who", "--force", "--json")
    assert json.loads(again.stdout)["result"]["columns"] == result["columns"]
    assert not (table / "o/blocks.png").exists()
    labels = run("predict", "o/model.zip", "table.csv", "--id", "who")
    assert labels.exit_code == 0, labels.output
    assert labels.stdout == (table / "o/labels.csv").read_text()


def test_new_rows_of_words_are_labelled_or_named(table):
    lines = ["a,b,c,d", *["yes,yes,no,no", "no,no,yes,"] * 8]
    (table / "words.csv").write_text("\n".join(lines) + "\n")
    assert run("fit", "words.csv", *SHORT).exit_code == 0
    (table / "new.csv").write_text("d,c,b,a\nno,,yes,yes\n,,,\n,yes,no,no\n")
    done = run("predict", "o/model.zip", "new.csv")
    assert done.exit_code == 0, done.output
    labels = [line.split(",")[1] for line in done.stdout.splitlines()[1:]]
    assert labels[0] == "0"
    assert labels[2] == "1"
    (table / "new.csv").write_text("d,c,b,a\nno,,yes,yes\n,,perhaps,\n")
    done = run("predict", "o/model.zip", "new.csv")
    assert done.exit_code == 2
    assert "row 2, column 'b'" in done.stderr
    assert "perhaps" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("mixed.csv", *SHORT), "column 'b' has words and column 'a' numbers"),
        (("mixed.csv", *SHORT, "--scale"), "bicluster takes no --scale"),
        (
            ("mixed.csv", *SHORT, "--columns", "a", "--model", "bernoulli"),
            "row 2, column 'a' has 3",
        ),
        (("mixed.csv", *SHORT, "--columns", "a", "--model", "gaussian"), "model must be 'auto'"),
    ],
)
def test_a_mistake_is_one_line_and_nothing_is_written(table, arguments, message):
    done = run("fit", *arguments)
    assert done.exit_code == 2
    assert message in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (table / "o").exists()
