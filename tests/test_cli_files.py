"""The files of a run: the user's table with the clusters, profiles, and what is what."""

import csv
import gzip

import anndata
import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from countless.cli import main
from countless.cli.options import FILES

LINES = [
    *(f"{x}0,red,2024-05-0{i + 1}" for i, x in enumerate((1.1, 1.2, 1.3, 1.0, 1.2))),
    *(f"{x}0,blue,2024-06-0{i + 1}" for i, x in enumerate((9.1, 9.2, 9.3, 9.0))),
]


@pytest.fixture
def fit(tmp_path, monkeypatch):
    """Fit a table by a given penalty in an empty directory; return the folder of the run."""
    monkeypatch.chdir(tmp_path)

    def _fit(name, *more):
        columns = ["--columns", "x,colour", "--penalty", "3"]
        arguments = ["fit", name, "--out", "o", "--force", "--quiet", *columns, *more]
        result = CliRunner().invoke(main, arguments)
        assert result.exit_code == 0, result.output
        return tmp_path / "o"

    return _fit


def expected_distances(path):
    """Return the distances in standardised columns, by a plain loop."""
    frame = pd.read_csv(path)
    x = (frame.x - frame.x.mean()) / frame.x.std(ddof=0)
    X = np.column_stack([x, frame.colour == "blue", frame.colour == "red"]).astype(float)
    labels = np.where(frame.colour == "red", 0, 1)
    return [
        float(np.linalg.norm(row - X[labels == k].mean(0)))
        for row, k in zip(X, labels, strict=True)
    ]


def test_table_keeps_the_text_of_the_user_and_adds_cluster_and_distance(fit, tmp_path):
    text = "x,colour,day\r\n" + "\r\n".join(LINES[:3]) + "\r\n\r\n" + "\r\n".join(LINES[3:])
    (tmp_path / "t.csv").write_bytes(text.encode())
    out = fit("t.csv")
    new = (out / "table.csv").read_bytes().decode()
    assert [line.rsplit(",", 2)[0] for line in new.split("\r\n")] == text.split("\r\n")
    frame = pd.read_csv(out / "table.csv")
    assert frame.cluster.tolist() == [0] * 5 + [1] * 4
    np.testing.assert_allclose(frame.distance, expected_distances("t.csv"), rtol=1e-5, atol=1e-12)


def test_table_in_quotes_semicolons_and_decimal_commas(fit, tmp_path):
    lines = [line.replace(",", ";").replace(".", ",") for line in LINES]
    lines[2] = lines[2].replace("red", '"red"').replace("2024", '"of ""2024"";\n') + '"'
    with gzip.open(tmp_path / "t.csv.gz", "wt", newline="") as file:
        file.write("x;colour;cluster\n" + "\n".join(lines) + "\n")
    out = fit("t.csv.gz", "--delimiter", ";", "--decimal", ",")
    frame = pd.read_csv(out / "table.csv", sep=";", decimal=",")
    assert frame.columns.tolist() == ["x", "colour", "cluster", "cluster_", "distance"]
    assert frame.cluster_.tolist() == [0] * 5 + [1] * 4
    assert frame.cluster[2] == 'of "2024";\n-05-03'
    assert frame.distance.dtype == float


def test_rows_left_out_have_empty_cells(fit, tmp_path):
    (tmp_path / "t.csv").write_text("x,colour,day\n" + "\n".join([*LINES, ",red,"]) + "\n")
    out = fit("t.csv", "--missing", "drop")
    assert (out / "table.csv").read_text().splitlines()[-1] == ",red,,,"


def test_table_without_header_stays_without(fit, tmp_path):
    (tmp_path / "t.csv").write_text("\n".join(f"{x},1.5" for x in (1, 2, 1, 2, 90, 91)) + "\n")
    columns = ["--no-header", "--columns", "column_1"]
    result = CliRunner().invoke(main, ["fit", "t.csv", "--penalty", "2", "--out", "o", *columns])
    assert result.exit_code == 0, result.output
    first = (tmp_path / "o" / "table.csv").read_text().splitlines()[0]
    assert first.startswith("1,1.5,0,")


def test_table_of_pandas_in_parquet_keeps_its_types(fit, tmp_path):
    rows = [line.split(",") for line in LINES]
    frame = pd.DataFrame(rows, columns=["x", "colour", "day"])
    frame = frame.assign(x=frame.x.astype(float), day=pd.to_datetime(frame.day))
    frame.to_parquet(tmp_path / "t.parquet")
    new = pd.read_parquet(fit("t.parquet") / "table.parquet")
    pd.testing.assert_frame_equal(new[["x", "colour", "day"]], frame)
    assert new.cluster.tolist() == [0] * 5 + [1] * 4
    assert new.cluster.dtype == np.int64


def test_profiles_are_the_means_and_shares_of_each_cluster(fit, tmp_path):
    (tmp_path / "t.csv").write_text("x,colour,day\n" + "\n".join(LINES) + "\n")
    out = fit("t.csv")
    with (out / "clusters.csv").open(newline="") as file:
        profiles = list(csv.DictReader(file))
    assert [row["rows"] for row in profiles] == ["5", "4"]
    assert [row["x"] for row in profiles] == ["1.16", "9.15"]
    assert [row["colour = red"] for row in profiles] == ["1", "0"]
    assert profiles[0]["typical row"] in ("row 2", "row 5")


def test_readme_names_the_files_of_the_run(fit, tmp_path):
    (tmp_path / "t.csv").write_text("x,colour,day\n" + "\n".join(LINES) + "\n")
    out = fit("t.csv")
    named = [line for line in (out / "README.txt").read_text().splitlines() if line in FILES]
    assert named == sorted(path.name for path in out.iterdir())


def test_quotes_that_do_not_tell_lines_apart_are_said(fit, tmp_path):
    text = "x,colour,day\n" + "\n".join(LINES) + "\n"
    (tmp_path / "t.csv").write_text(text.replace("2024-05-02", '5"').replace("2024-05-04", "6"))
    arguments = ["fit", "t.csv", "--columns", "x", "--penalty", "3", "--out", "o"]
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 0, result.output
    assert "no table with the clusters is written: the lines of t.csv" in result.stderr
    assert not (tmp_path / "o" / "table.csv").exists()
    assert (tmp_path / "o" / "labels.csv").exists()


@pytest.mark.parametrize("ending", ["tsv", "jsonl", "feather", "xlsx"])
def test_the_table_has_the_format_of_the_input(fit, tmp_path, ending):
    rows = [line.split(",") for line in LINES]
    frame = pd.DataFrame(rows, columns=["x", "colour", "day"])
    frame = frame.assign(x=frame.x.astype(float))
    writers = {
        "tsv": lambda path: frame.to_csv(path, sep="\t", index=False),
        "jsonl": lambda path: frame.to_json(path, orient="records", lines=True),
        "feather": frame.to_feather,
        "xlsx": lambda path: frame.to_excel(path, index=False),
    }
    readers = {
        "tsv": lambda path: pd.read_csv(path, sep="\t"),
        "jsonl": lambda path: pd.read_json(path, lines=True, dtype={"day": str}),
        "feather": pd.read_feather,
        "xlsx": pd.read_excel,
    }
    writers[ending](tmp_path / f"t.{ending}")
    out = fit(f"t.{ending}")
    new = readers[ending](out / f"table.{ending}")
    assert new[["x", "colour", "day"]].astype(str).equals(frame.astype(str))
    assert new.cluster.tolist() == [0] * 5 + [1] * 4
    frame.to_csv(tmp_path / "t.csv", index=False)
    np.testing.assert_allclose(new.distance, expected_distances("t.csv"), rtol=1e-5, atol=1e-12)
    predicted = CliRunner().invoke(main, ["predict", "o/model.zip", f"t.{ending}"])
    assert predicted.stdout == (out / "labels.csv").read_text()


def test_anndata_gets_clusters_in_obs(fit, tmp_path):
    rows = np.random.default_rng(0).normal(size=(30, 3)) + 9 * (np.arange(30) < 10)[:, None]
    index = pd.Index([f"c{i}" for i in range(30)], dtype=object)
    adata = anndata.AnnData(rows, obs=pd.DataFrame({"batch": np.arange(30) % 2}, index))
    adata.var_names = pd.Index(["a", "b", "c"], dtype=object)
    adata.write_h5ad(tmp_path / "t.h5ad")
    arguments = ["fit", "t.h5ad", "--method", "dp-means", "--compare", "batch", "--out", "o"]
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 0, result.output
    assert "guessed: clusters by X (--layer)" in result.stdout
    assert "annotates the rows" in result.stdout
    found = anndata.read_h5ad(tmp_path / "o" / "table.h5ad")
    assert found.obs["countless"].tolist() == ["0"] * 10 + ["1"] * 20
    assert found.obs["countless_distance"].between(0, 6).all()
    np.testing.assert_array_equal(found.X, rows)


def test_what_was_guessed_stands_before_the_answer(fit, tmp_path):
    lines = [f"{i % 3},5 %;{'x' if i < 5 else 'y'};0{i % 9 + 1}.05.2024" for i in range(9)]
    (tmp_path / "t.csv").write_bytes(("größe;kind;day\n" + "\n".join(lines)).encode("cp1252"))
    result = CliRunner().invoke(main, ["fit", "t.csv", "--penalty", "3", "--out", "o"])
    assert result.exit_code == 0, result.output
    said = result.stdout.partition("found by")[0]
    for what in (
        "Windows-1252 text (--encoding)",
        "cells separated by ';' (--delimiter)",
        "percent as shares of 1, standardised",
        "dates as days since 1970-01-01, standardised",
    ):
        assert what in " ".join(said.split())
    assert "2024-05-0" in result.stdout  # the typical row has a date, not a number of days


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--encoding", "klingon"), "'klingon' is no known encoding of text"),
        (("--encoding", "base64"), "is no known encoding of text"),
        (("--thousands", "ab"), "must be one character such as"),
        (("--sheet", "a"), "--sheet is not for text tables"),
        (("--layer", "X"), "--layer is not for text tables"),
        (("--nodes", "t.csv", "--method", "diana"), "diana takes no --nodes"),
        (("--format", "xlsx"), "t.csv is no usable .xlsx workbook"),
        (("--format", "jsonl", "--out-of-core"), "--out-of-core and --dask read csv, tsv, parquet"),
    ],
)
def test_what_cannot_be_read_is_one_line_and_nothing_written(
    tmp_path, monkeypatch, arguments, message
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.csv").write_text("x,y\n1,2\n3,5\n")
    result = CliRunner().invoke(main, ["fit", "t.csv", *arguments])
    assert result.exit_code == 2
    assert result.stderr.startswith("error: ")
    assert len(result.stderr.splitlines()) == 1
    assert message in result.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["t.csv"]
