"""relate, impute and fit --method crosscat: files, numbers, and one line for a mistake."""

import csv
import json
from functools import partial

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from countless.cli import main

SHORT = ("--sweeps", "30", "--chains", "2")


@pytest.fixture
def table(tmp_path, monkeypatch):
    """Write a table of two views with missing values, row names, and a constant column."""
    monkeypatch.chdir(tmp_path)
    random = np.random.default_rng(0)
    a, b = random.integers(2, size=(2, 150))
    lines = ["who,x,color,visits,y,kind,same"]
    for i in range(150):
        x = f"{6 * a[i] + random.normal():.3f}" if i != 3 else ""
        color = ("red", "blue")[a[i]] if i not in (5, 6) else ""
        y = f"{6 * b[i] + random.normal():.3f}" if i != 8 else "NA"
        visits = random.poisson(1 + 9 * a[i])
        lines.append(f"p{i},{x},{color},{visits},{y},{'uv'[b[i]]},7")
    path = tmp_path / "table.csv"
    path.write_text("\n".join(lines) + "\n")
    return path, a, b


def run(*arguments):
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def read(path):
    with open(path, newline="") as file:
        return list(csv.reader(file))


def test_relate_says_which_columns_belong_together(table):
    done = run(
        "relate", table[0], *SHORT, "--count", "visits", "--out", "d.csv", "--plot", "d.png",
        "--plot-views", "v.png",
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    assert "2 views" in done.output
    assert "4 pairs of columns that depend on each other" in done.output
    assert "6 pairs of columns that are independent" in done.output
    header, *lines = read("d.csv")
    names = ["x", "color", "visits", "y", "kind"]
    assert header == ["column", *names]
    assert [line[0] for line in lines] == names
    shares = np.array([line[1:] for line in lines], dtype=float)
    assert shares[0, 1] > 0.9 > 0.1 > shares[0, 3]
    for picture in ("d.png", "v.png"):
        with open(picture, "rb") as file:
            assert file.read(8) == b"\x89PNG\r\n\x1a\n"


def test_relate_as_json(table):
    done = run("relate", table[0], *SHORT, "--json", "--exclude", "kind")
    record = json.loads(done.stdout)
    assert record["columns"] == ["x", "color", "visits", "y"]
    assert np.shape(record["dependence"]) == (4, 4)
    assert sorted(name for view in record["views"] for name in view["columns"]) == sorted(
        record["columns"]
    )


def test_impute_fills_missing_values_and_leaves_the_rest(table):
    path, a, _ = table
    done = run("impute", path, *SHORT, "--cells", "cells.csv")
    assert done.exit_code == 0, done.output
    assert "4 cells filled, in 3 columns" in done.output
    before, after = read(path), read("table-imputed.csv")
    assert after[0] == before[0]
    for old, new in zip(before[1:], after[1:], strict=True):
        for name, cell, filled in zip(before[0], old, new, strict=True):
            if cell in ("", "NA"):
                assert filled not in ("", "NA")
            else:
                assert filled == cell, name  # to the character
    assert abs(float(after[4][1]) - 6 * a[3]) < 2.5
    assert [after[i + 1][2] for i in (5, 6)] == [("red", "blue")[a[i]] for i in (5, 6)]
    header, *cells = read("cells.csv")
    assert header == ["row", "column", "value", "uncertainty"]
    assert {(row, name) for row, name, _, _ in cells} == {
        ("4", "x"), ("6", "color"), ("7", "color"), ("9", "y")
    }  # fmt: skip
    assert run("impute", path, *SHORT).exit_code == 2  # the file is there
    assert run("impute", path, *SHORT, "--force").exit_code == 0


def test_impute_writes_the_format_that_it_reads(table):
    frame = pd.read_csv(table[0]).assign(day=pd.Timestamp("2024-01-31"), who="a")
    frame["day"] += pd.to_timedelta((frame.x > 3).astype(int), unit="D")
    frame.loc[[3, 9], "day"] = None
    for name, write, read in (
        ("t.parquet", frame.to_parquet, pd.read_parquet),
        ("t.xlsx", partial(frame.to_excel, index=False), pd.read_excel),
    ):
        write(name)
        assert run("impute", name, *SHORT).exit_code == 0
        found = read(f"t-imputed.{name[2:]}")
        assert not found[["x", "color", "y", "day"]].isna().any(axis=None)
        for column in frame.columns.drop("visits"):
            known = frame[column].notna()
            assert (found[column] == frame[column])[known].all(), column
        assert found.day[3].year == 2024
        assert found.day.dtype.kind == "M"


def test_fit_writes_the_labels_of_each_view(table):
    path, a, _ = table
    settings = ("--set", "n_sweeps=30", "--set", "n_chains=1")
    done = run("fit", path, "--method", "crosscat", "--id", "who", *settings)
    assert done.exit_code == 0, done.output
    header, *lines = read("table-clusters/labels.csv")
    assert header == ["who", "view 1", "view 2"]
    assert [line[0] for line in lines] == [f"p{i}" for i in range(150)]
    first, second = (np.array([line[k] for line in lines]) for k in (1, 2))
    by_a = [np.mean((labels == labels[0]) == (a == a[0])) for labels in (first, second)]
    assert max(by_a) > 0.9
    with open("table-clusters/run.json") as file:
        record = json.load(file)
    assert len(record["result"]["views"]) == 2
    assert record["method"]["class"] == "CrossCat"
    model = "table-clusters/model.zip"
    done = run("predict", model, path, "--id", "who", "--out", "again.csv")
    assert done.exit_code == 0, done.output
    header, *again = read("again.csv")
    assert header == ["who", "label"]
    assert np.mean(np.array([line[1] for line in again]) == first) > 0.95
    refused = run("predict", model, path, "--missing", "drop")
    assert refused.exit_code == 2
    assert "takes missing values as they are" in refused.stderr
    with open(path) as whole, open("narrow.csv", "w") as narrow:
        narrow.writelines(line.split(",")[0] + "\n" for line in whole)
    refused = run("predict", model, "narrow.csv")
    assert refused.exit_code == 2
    assert "narrow.csv lacks 5 columns" in refused.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("relate", "table.csv", "--count", "color"), "column 'color' must hold numbers"),
        (("relate", "table.csv", "--count", "x"), "column 'x' has -"),
        (("relate", "table.csv", "--count", "who"), "column 'who' takes no part"),
        (("relate", "table.csv", "--exclude", "colour"), "did you mean 'color'"),
        (("impute", "table.csv", "--out", "no/where.csv"), "there is no directory no"),
        (("fit", "table.csv", "--method", "crosscat", "--weight", "visits"), "takes no --weight"),
    ],
)
def test_a_mistake_is_one_line_and_nothing_is_written(table, arguments, message):
    done = run(*arguments)
    assert done.exit_code == 2
    errors = [line for line in done.stderr.splitlines() if line.startswith("error:")]
    assert len(errors) == 1
    assert message in errors[0]
    assert [path.name for path in table[0].parent.iterdir()] == ["table.csv"]
