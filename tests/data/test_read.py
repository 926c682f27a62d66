"""Reading tables: every format gives the same columns, and bad files are refused in one line."""

import gzip
import io
import subprocess
import sys
from datetime import date

import numpy as np
import pyarrow as pa
import pytest
import zstandard
from pyarrow import parquet

from countless._data.read import read_table
from countless._data.table import Numbers, Unusable, Words
from countless._errors import InputError
from countless._formats import TextStyle

TEXT = "kind,length,mass\ncat,1.5,4\ndog,,30\ncat,2.5,5\n"


@pytest.fixture
def write(tmp_path):
    def _write(name, content):
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return str(path)

    return _write


def parquet_bytes(columns):
    out = io.BytesIO()
    parquet.write_table(pa.table(columns), out)
    return out.getvalue()


def npy_bytes(array):
    out = io.BytesIO()
    np.save(out, array)
    return out.getvalue()


PETS = {"kind": ["cat", "dog", "cat"], "length": [1.5, None, 2.5], "mass": [4, 30, 5]}


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("t.csv", TEXT),
        ("t.CSV", TEXT),
        ("t.csv.gz", gzip.compress(TEXT.encode(), mtime=0)),
        ("t.tsv", TEXT.replace(",", "\t")),
        ("t.tsv.gz", gzip.compress(TEXT.replace(",", "\t").encode(), mtime=0)),
        ("t.csv", "\ufeff" + TEXT.replace("\n", "\r\n")),
        ("t.parquet", parquet_bytes(PETS)),
        ("t.pq", parquet_bytes(PETS | {"kind": pa.array(PETS["kind"]).dictionary_encode()})),
    ],
)
def test_formats_agree(write, name, content):
    table = read_table(write(name, content))
    assert list(table.columns) == ["kind", "length", "mass"]
    assert table.n_rows == 3
    assert table.words("kind").words() == ["cat", "dog", "cat"]
    np.testing.assert_array_equal(table.numbers("length"), [1.5, np.nan, 2.5])
    np.testing.assert_array_equal(table.numbers("mass"), [4, 30, 5])


def test_type_is_decided_by_all_rows_of_a_long_file(write):
    rows = "\n".join(["1"] * 700_000 + ["2.5"])
    table = read_table(write("t.csv", f"a\n{rows}\n"))
    assert table.numbers("a")[-1] == 2.5


def test_array_keeps_float32_and_names_columns(write):
    table = read_table(write("t.npy", npy_bytes(np.arange(6, dtype=np.float32).reshape(3, 2))))
    assert list(table.columns) == ["column_1", "column_2"]
    assert table.numbers("column_2").dtype == np.float32
    assert table.uniform


def test_standard_input_is_csv():
    code = "from countless._data.read import read_table as r; print(r('-').words('kind').levels)"
    done = subprocess.run(
        [sys.executable, "-c", code], input=TEXT, capture_output=True, text=True, check=True
    )
    assert done.stdout == "('cat', 'dog')\n"


def test_style_of_text(write):
    path = write("t.csv", "1,5;x\n2,5;y\n")
    table = read_table(path, style=TextStyle(";", ",", header=False))
    assert list(table.columns) == ["column_1", "column_2"]
    np.testing.assert_array_equal(table.numbers("column_1"), [1.5, 2.5])


def test_a_delimiter_that_was_said_is_believed(write):
    path = write("t.csv", "a;b\nx;y\n")
    assert list(read_table(path, style=TextStyle(",")).columns) == ["a;b"]


def test_identifiers_as_text_are_exact(write):
    long = 12345678901234567891
    assert read_table(write("t.csv", f"id\n{long}\n007\n"), as_text={"id"}).words("id").words() == [
        str(long),
        "007",
    ]
    content = parquet_bytes({"id": pa.array([2**62 + 1])})
    assert read_table(write("t.parquet", content), as_text={"id"}).words("id").words() == [
        str(2**62 + 1)
    ]


def test_kinds_of_columns(write):
    content = parquet_bytes(
        {
            "when": [date(2020, 1, 1), None],
            "flag": [True, False],
            "none": [None, None],
            "l": [[1], []],
        }
    )
    columns = read_table(write("t.parquet", content)).columns
    np.testing.assert_array_equal(columns["when"].values, [18262, np.nan])
    assert columns["when"].unit == "date"
    assert columns["none"] == Unusable("nothing", 2)
    assert isinstance(columns["l"], Unusable)
    assert isinstance(columns["flag"], Words)
    assert columns["flag"].levels == ("true", "false")


@pytest.mark.parametrize("word", ["", "NA", "N/A", "NaN", "nan", "null", "NULL", "None", "?"])
def test_texts_of_missing_values(write, word):
    columns = read_table(write("t.csv", f"a,b\n1,x\n{word},{word}\n")).columns
    assert isinstance(columns["a"], Numbers)
    assert columns["a"].missing.tolist() == columns["b"].missing.tolist() == [False, True]


def test_unnamed_index_column_gets_a_name(write):
    assert list(read_table(write("t.csv", ",a\n0,5\n1,6\n")).columns) == ["column_1", "a"]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("t.csv", "", "t.csv is empty"),
        ("t.csv", " \n\n", "t.csv is empty"),
        ("t.csv", "a,b\n", "has no rows"),
        ("t.csv", "a,b\n1,2\n1,2,3\n", "row 2 has 3 cells, expected 2"),
        ("t.csv", "a,b\n\n1\n", "row 1 has 1 cell, expected 2"),
        ("t.csv", "a,b,a\n1,2,3\n", r"2 columns are named 'a' \(columns 1, 3\)"),
        ("t.csv", "1.5,2\n3,4\n", "--no-header"),
        ("t.csv", "a\n1\n".encode("utf-16")[:-1], "t.csv is not utf-16 text"),
        ("t.csv", b"a,b\n1,2\n\x00,3\n", "line 3 holds a zero byte"),
        ("t.csv", b"PAR1;\x15\x00\x12", "line 1 holds a zero byte"),
        ("t.csv.gz", gzip.compress(TEXT.encode(), mtime=0)[:-9], "damaged gzip"),
        ("t.csv.zst", zstandard.compress(TEXT.encode() * 99)[:-9], "damaged Zstandard"),
        ("t.jsonl", " ", "t.jsonl is empty"),
        ("t.jsonl", '{"a": 1}\n{"a": ', "t.jsonl: "),
        ("t.jsonl", '{"a": 1}\n{"a": "x"}\n', "changed from number to string"),
        ("t.feather", b"ARROW1 nothing", "t.feather: "),
        ("t.xlsx", b"PK nothing", "t.xlsx is no usable .xlsx workbook"),
        ("t.h5ad", b"nothing", "t.h5ad is no usable .h5ad file"),
        ("t.gml", b"graph [ node [ ] ]", "t.gml is no usable GML graph"),
        ("t.graphml", b"<graphml", "t.graphml is no usable GraphML graph"),
        ("t.parquet", b"PAR1 nothing", "t.parquet: "),
        ("t.parquet", parquet_bytes({}), "has no columns"),
        ("t.npy", b"not an array", "usable .npy"),
        ("t.npy", npy_bytes(np.zeros(3)), r"its shape is \(3,\)"),
        ("t.npy", npy_bytes(np.zeros((0, 2))), "has no rows"),
        ("t.npy", npy_bytes(np.zeros((2, 2)))[:-1], "its header says 32"),
        ("t.npy", npy_bytes(np.array([["a"]])), "not plain numbers"),
        ("t.npy", npy_bytes(np.ones((2, 2), dtype=complex)), "not plain numbers"),
        ("t.npy", npy_bytes(np.array([[None]])), "not plain numbers"),
        ("t.xls", b"", "--format csv"),
        ("noextension", b"", "--format csv"),
    ],
)
def test_bad_files_are_refused_in_one_line(write, name, content, message):
    path = write(name, content)
    with pytest.raises(InputError, match=message) as caught:
        read_table(path)
    assert "\n" not in str(caught.value)


def test_header_that_asks_for_more_memory_than_the_file_has(write):
    huge = b"{'descr': '<f8', 'fortran_order': False, 'shape': (99999999999, 9), }"
    header = b"\x93NUMPY\x01\x00" + (len(huge)).to_bytes(2, "little") + huge
    with pytest.raises(InputError, match="its header says"):
        read_table(write("t.npy", header + bytes(64)))


def test_a_column_that_must_be_numbers_names_the_first_that_is_none(write):
    table = read_table(write("t.csv", "a,b\n1.5,x\n2,x\nabc,x\n"))
    with pytest.raises(InputError, match="'a' must hold numbers; row 3 is 'abc'"):
        table.numbers("a")
    table = read_table(write("t.csv", "a\n01\n02\n"), as_text={"a"})
    with pytest.raises(InputError, match="text that looks like numbers"):
        table.numbers("a")


def test_missing_file_and_directory(tmp_path):
    with pytest.raises(InputError, match="No such file"):
        read_table(str(tmp_path / "no.csv"))
    with pytest.raises(InputError, match="name of the data is empty"):
        read_table("")
    (tmp_path / "d.csv").mkdir()
    with pytest.raises(InputError, match="directory"):
        read_table(str(tmp_path / "d.csv"))


def test_digest_is_of_the_bytes(write):
    assert (
        read_table(write("t.csv", "a\n1\n")).sha256
        == "309b0e45a73d3fc5325e2b6ed0a01ef8b9cde6b05a5633c1f893f970d52bfddc"
    )
