"""Excel, Feather, JSON lines and AnnData: real files in, and the same files with clusters out."""

import io
import json
from datetime import date, datetime, time

import anndata
import duckdb
import numpy as np
import openpyxl
import pandas as pd
import polars as pl
import pytest
import zstandard
from scipy.sparse import csr_array

import countless.anndata
from countless import DPMeans
from countless._data.read import edited, read_table
from countless._errors import InputError
from countless._formats import FORMATS, TextStyle

PETS = pd.DataFrame(
    {
        "kind": ["cat", "dog", None],
        "length": [1.5, np.nan, 2.5],
        "mass": [4, 30, 5],
        "born": pd.to_datetime(["2024-01-31", "2024-02-01", "2024-02-28"]),
    }
)
CLUSTERS = {"cluster": np.array([0.0, 1.0, np.nan]), "distance": np.array([0.5, 0.25, np.nan])}


def write_xlsx(path):
    PETS.to_excel(path, index=False)


def write_feather(path):
    PETS.to_feather(path)


def write_jsonl(path):
    PETS.to_json(path, orient="records", lines=True, date_format="iso")


def write_polars_arrow(path):
    pl.from_pandas(PETS).write_ipc(path)


def write_duckdb_jsonl(path):
    frame = PETS  # noqa: F841 - DuckDB finds it by name
    duckdb.sql(f"COPY frame TO '{path}' (FORMAT json)")


WRITERS = {
    "t.xlsx": write_xlsx,
    "t.feather": write_feather,
    "t.arrow": write_polars_arrow,
    "t.jsonl": write_jsonl,
    "t.jsonl.gz": write_jsonl,
    "t.ndjson": write_duckdb_jsonl,
}


@pytest.mark.parametrize("name", WRITERS)
def test_formats_agree_and_take_clusters(tmp_path, name):
    WRITERS[name](tmp_path / name)
    table = read_table(str(tmp_path / name))
    assert table.words("kind").words() == ["cat", "dog", ""]
    np.testing.assert_array_equal(table.numbers("length"), PETS.length)
    np.testing.assert_array_equal(table.numbers("mass"), PETS.mass)
    np.testing.assert_array_equal(table.numbers("born"), [19753, 19754, 19781])
    new = tmp_path / f"new{FORMATS[table.format].suffixes[0]}"
    new.write_bytes(edited(table, CLUSTERS, {1: {"length": 9.5}, 2: {"kind": "bird"}}))
    again = read_table(str(new))
    for label, values in CLUSTERS.items():
        np.testing.assert_array_equal(again.numbers(label), values)
    assert again.words("kind").words() == ["cat", "dog", "bird"]
    np.testing.assert_array_equal(again.numbers("length"), [1.5, 9.5, 2.5])
    np.testing.assert_array_equal(again.numbers("born"), table.numbers("born"))


def test_feather_of_pandas_keeps_its_types(tmp_path):
    PETS.to_feather(tmp_path / "t.feather")
    new = edited(read_table(str(tmp_path / "t.feather")), CLUSTERS)
    pd.testing.assert_frame_equal(pd.read_feather(io.BytesIO(new))[[*PETS]], PETS)


def test_lines_keep_their_text(tmp_path):
    text = '{"a": 1.50,  "b": "x, {y}"}\n\n{"b":null,"a":2e1}\n{}\n'
    (tmp_path / "t.jsonl").write_text(text)
    table = read_table(str(tmp_path / "t.jsonl"))
    new = edited(table, {"cluster": np.array([0.0, 1.0, np.nan])}, {1: {"b": 'q"'}}).decode()
    assert new == (
        '{"a": 1.50,  "b": "x, {y}", "cluster": 0}\n\n'
        '{"b":"q\\"","a":2e1, "cluster": 1}\n{"cluster": null}\n'
    )
    assert [json.loads(line)["cluster"] for line in new.split("\n") if line] == [0, 1, None]


def test_zstandard_around_json_lines(tmp_path):
    (tmp_path / "t.jsonl.zst").write_bytes(zstandard.compress(b'{"a": 1}\n{"a": 2}\n'))
    np.testing.assert_array_equal(read_table(str(tmp_path / "t.jsonl.zst")).numbers("a"), [1, 2])


@pytest.fixture
def workbook(tmp_path):
    """Write a workbook as people have them: a title, a gap, formulas, percent, two sheets."""
    book = openpyxl.Workbook()
    sheet = book.active
    sheet.title = "Sales"
    rows = [
        (None, "town", "day", "share", "price", "flag", "when", "mixed", 2020),
        (None, "Bonn", date(2024, 1, 31), 0.5, "$5", True, time(6), 1, 1),
        (None,),
        (None, "Kiel", datetime(2024, 2, 1, 12), 0.25, "$1,500", False, time(12), "x", "#N/A"),
        (None, "Bonn", None, None, None, None, None, None, None),
    ]
    for place, row in enumerate(rows, start=3):
        for j, value in enumerate(row, start=1):
            sheet.cell(place, j).value = value
    sheet["D4"].number_format = "0%"
    book.create_sheet("Empty")
    book.create_sheet("Other").append(["x", "y"])
    book["Other"].append([1, 2])
    book.save(tmp_path / "t.xlsx")
    return tmp_path / "t.xlsx"


def test_sheets_as_people_have_them(workbook):
    table = read_table(str(workbook))
    assert table.notes == ("sheet 'Sales', the first of 3 (--sheet)",)
    assert [*table.columns] == ["town", "day", "share", "price", "flag", "when", "mixed", "2020"]
    assert table.words("town").words() == ["Bonn", "Kiel", "Bonn"]
    np.testing.assert_array_equal(table.numbers("day"), [19753, 19754.5, np.nan])
    np.testing.assert_array_equal(table.numbers("share"), [0.5, 0.25, np.nan])
    np.testing.assert_array_equal(table.numbers("price"), [5, 1500, np.nan])
    assert table.words("flag").words() == ["true", "false", ""]
    np.testing.assert_array_equal(table.numbers("when"), [0.25, 0.5, np.nan])
    assert table.words("mixed").words() == ["1", "x", ""]
    np.testing.assert_array_equal(table.numbers("2020"), [1, np.nan, np.nan])


def test_a_workbook_keeps_its_sheets_and_styles(workbook):
    new = openpyxl.load_workbook(io.BytesIO(edited(read_table(str(workbook)), CLUSTERS)))
    sheet = new["Sales"]
    assert new.sheetnames == ["Sales", "Empty", "Other"]
    assert sheet["D4"].number_format == "0%"
    assert [sheet.cell(at, 10).value for at in range(3, 8)] == ["cluster", 0, None, 1, None]
    assert [sheet.cell(at, 2).value for at in range(3, 8)] == ["town", "Bonn", None, "Kiel", "Bonn"]


@pytest.mark.parametrize(
    ("part", "message"),
    [
        ("Empty", "sheet 'Empty' is empty"),
        ("other", "no sheet 'other'; it has Sales, Empty, Other"),
    ],
)
def test_sheets_that_cannot_be_read(workbook, part, message):
    with pytest.raises(InputError, match=message):
        read_table(str(workbook), style=TextStyle(part=part))
    table = read_table(str(workbook), style=TextStyle(part="Other"))
    np.testing.assert_array_equal(table.numbers("y"), [2])


@pytest.fixture
def cells():
    """Return 30 cells of two kinds, with counts, a layer, components and annotations."""
    random = np.random.default_rng(0)
    kind = np.repeat([0, 1], [10, 20])
    counts = random.poisson(2 + 20 * kind[:, None], (30, 4)).astype(np.float32)
    adata = anndata.AnnData(csr_array(counts))
    adata.obs_names = pd.Index([f"cell {i}" for i in range(30)], dtype=object)
    adata.var_names = pd.Index(["a", "b", "c", "batch"], dtype=object)
    adata.obs["batch"] = pd.Categorical(["one", "two"] * 15, pd.Index(["one", "two"], dtype=object))
    adata.obs["kind"] = kind
    adata.layers["log"] = np.log1p(counts)
    adata.obsm["X_pca"] = counts[:, :2] * 2
    return adata


def test_anndata_reads_components_layers_and_annotations(tmp_path, cells):
    path = tmp_path / "t.h5ad"
    cells.write_h5ad(path)
    table = read_table(str(path))
    assert [*table.columns] == ["pca_1", "pca_2", "obs_names", "batch", "kind"]
    assert table.notes == ("clusters by X_pca (--layer)",)
    assert {*table.aside} == {"obs_names", "batch", "kind"}
    np.testing.assert_array_equal(table.numbers("pca_2"), cells.obsm["X_pca"][:, 1])
    table = read_table(str(path), style=TextStyle(part="X"))
    assert [*table.columns] == ["a", "b", "c", "batch", "obs_names", "batch_", "kind"]
    np.testing.assert_array_equal(table.numbers("c"), cells.X.toarray()[:, 2])
    table = read_table(str(path), style=TextStyle(part="log"))
    np.testing.assert_array_equal(table.numbers("c"), cells.layers["log"][:, 2])
    with pytest.raises(
        InputError, match="no layer and no embedding 'umap'; there are X, log, X_pca"
    ):
        read_table(str(path), style=TextStyle(part="umap"))


def test_anndata_takes_the_clusters(tmp_path, cells):
    cells.write_h5ad(tmp_path / "t.h5ad")
    table = read_table(str(tmp_path / "t.h5ad"))
    labels = np.where(np.arange(30) == 3, np.nan, np.arange(30) % 11)
    (tmp_path / "new.h5ad").write_bytes(edited(table, {"cluster": labels}))
    new = anndata.read_h5ad(tmp_path / "new.h5ad")
    assert new.obs["countless"].cat.categories.tolist() == [str(label) for label in range(11)]
    assert new.obs["countless"].isna().tolist() == np.isnan(labels).tolist()
    np.testing.assert_array_equal(new.layers["log"], cells.layers["log"])


def test_clusters_of_an_anndata_object(cells):
    found = countless.anndata.cluster(cells, estimator=DPMeans(), key_added="k", copy=True)
    assert "k" not in cells.obs
    assert found.obs["k"].tolist() == ["1"] * 10 + ["0"] * 20
    assert found.uns["k"]["params"] == {"use_rep": "X_pca", "estimator": "DPMeans()"}
    assert found.uns["k"]["n_clusters"] == 2
    assert 0 <= found.uns["k"]["confidence"] <= 1
    assert countless.anndata.cluster(cells, use_rep="log", estimator=DPMeans()) is None
    assert cells.obs["countless"].cat.categories.tolist() == ["0", "1"]
    with pytest.raises(InputError, match="no layer and no embedding"):
        countless.anndata.cluster(cells, use_rep="none")
