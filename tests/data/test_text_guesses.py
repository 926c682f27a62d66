"""What is guessed about text tables, on files of the programs that people use."""

import gzip
from datetime import UTC, date, datetime, timedelta, timezone

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from countless._data.quantities import Notation, parse, quantity
from countless._data.read import edited, read_table
from countless._data.sources import open_source
from countless._data.table import Numbers, Words, words_of
from countless._errors import InputError
from countless._formats import TextStyle

FRAME = pd.DataFrame(
    {"name": ["Zoë", "Jürgen", "Ana"], "x": [1.5, 2.25, -3.0], "n": [1, 20, 300]},
)


def check(path, style=None):
    table = read_table(str(path), style=style)
    assert table.words("name").words() == ["Zoë", "Jürgen", "Ana"]
    np.testing.assert_array_equal(table.numbers("x"), FRAME.x)
    np.testing.assert_array_equal(table.numbers("n"), FRAME.n)
    return table


@pytest.mark.parametrize("name", ["t.csv", "t.tsv", "t.csv.gz", "t.csv.zst"])
@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
def test_delimiters_of_pandas(tmp_path, name, separator):
    FRAME.to_csv(tmp_path / name, sep=separator, index=False)
    table = check(tmp_path / name)
    usual = separator == ("\t" if "tsv" in name else ",")
    assert bool(table.notes) != usual
    assert table.style.delimiter == separator


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252", "latin-1"])
def test_encodings(tmp_path, encoding):
    FRAME.to_csv(tmp_path / "t.csv", index=False, encoding=encoding)
    table = check(tmp_path / "t.csv")
    assert bool(table.notes) == (encoding not in ("utf-8", "utf-8-sig"))
    new = edited(table, {"cluster": np.array([0.0, 1.0, 0.0])})
    frame = pd.read_csv(pd.io.common.BytesIO(new), encoding=encoding)
    pd.testing.assert_frame_equal(frame[[*FRAME]], FRAME)
    assert frame.cluster.tolist() == [0, 1, 0]


def test_an_encoding_that_cannot_be_guessed_is_said(tmp_path):
    FRAME.to_csv(tmp_path / "t.csv", index=False, encoding="utf-16-le")
    with pytest.raises(InputError, match="zero byte"):
        read_table(str(tmp_path / "t.csv"))
    check(tmp_path / "t.csv", TextStyle(encoding="utf-16-le"))
    with pytest.raises(InputError, match="is not utf-16 text"):
        read_table(str(tmp_path / "t.csv"), style=TextStyle(encoding="utf-16"))


def test_decimal_commas_of_pandas_and_duckdb(tmp_path):
    FRAME.to_csv(tmp_path / "p.csv", sep=";", decimal=",", index=False)
    assert check(tmp_path / "p.csv").notes == (
        "cells separated by ';' (--delimiter)",
        "decimal comma (--decimal)",
    )
    FRAME.to_csv(tmp_path / "q.csv", decimal=",", index=False)  # quoted numbers
    assert check(tmp_path / "q.csv").style.decimal == ","
    frame = FRAME.assign(n=["1.234.567,5", "20,25", "300"])
    duckdb.sql(f"COPY frame TO '{tmp_path / 'd.csv'}' (DELIMITER ';')")
    table = read_table(str(tmp_path / "d.csv"))  # a comma next to decimal points
    np.testing.assert_array_equal(table.numbers("x"), FRAME.x)
    assert isinstance(table.columns["n"], Words)
    frame = frame.assign(x=["1.500", "2.250", "3.000"])
    duckdb.sql(f"COPY frame TO '{tmp_path / 'd.csv'}' (DELIMITER ';')")
    table = read_table(str(tmp_path / "d.csv"))
    np.testing.assert_array_equal(table.numbers("n"), [1234567.5, 20.25, 300])
    np.testing.assert_array_equal(table.numbers("x"), [1500, 2250, 3000])


def test_what_the_user_says_decides(tmp_path):
    (tmp_path / "t.csv").write_text('a,b\n"1,500",x\n"2,250",y\n')
    path = str(tmp_path / "t.csv")
    np.testing.assert_array_equal(read_table(path).numbers("a"), [1500, 2250])
    style = TextStyle(decimal=",")
    np.testing.assert_array_equal(read_table(path, style=style).numbers("a"), [1.5, 2.25])
    style = TextStyle(decimal=".", thousands="")
    assert isinstance(read_table(path, style=style).columns["a"], Words)
    assert list(read_table(path, style=TextStyle(delimiter=";")).columns) == ["a,b"]


def test_quantities_of_polars_and_duckdb(tmp_path):
    frame = pl.DataFrame(
        {
            "share": ["12 %", "7.5%", None],
            "price": ["$1,200.50", "-$3", "$ 0.5"],
            "euro": ["5 €", "1 000 €", "7 €"],
            "day": ["31.01.2024", "01.02.2024", "28.02.2024"],
            "american": ["01/31/2024", "02/01/2024", "02/28/2024"],
            "iso": [date(2024, 1, 31), date(2024, 2, 1), date(2024, 2, 28)],
            "time": [datetime(2024, 1, 31, 12), datetime(2024, 2, 1), None],
            "code": ["A1", "B2", "C3"],
        }
    )
    for name, write in (("p.csv", frame.write_csv), ("p.parquet", frame.write_parquet)):
        write(tmp_path / name)
    duckdb.sql(f"COPY frame TO '{tmp_path / 'd.csv.gz'}'")
    duckdb.sql(f"COPY frame TO '{tmp_path / 'd.parquet'}'")
    duckdb.sql(f"COPY frame TO '{tmp_path / 'd.jsonl'}' (FORMAT json)")
    for path in tmp_path.iterdir():
        table = read_table(str(path))
        np.testing.assert_allclose(table.numbers("share"), [0.12, 0.075, np.nan])
        np.testing.assert_array_equal(table.numbers("price"), [1200.5, -3, 0.5])
        np.testing.assert_array_equal(table.numbers("euro"), [5, 1000, 7])
        for column in ("day", "american", "iso"):
            np.testing.assert_array_equal(table.numbers(column), [19753, 19754, 19781])
        np.testing.assert_array_equal(table.numbers("time"), [19753.5, 19754, np.nan])
        assert isinstance(table.columns["code"], Words)
        units = [getattr(column, "unit", None) for column in table.columns.values()]
        assert units[:3] == ["%", "$", "€"]


@pytest.mark.parametrize(
    "texts",
    [
        ("01/02/2024", "03/04/2024"),  # day or month first?
        ("$5", "€5"),
        ("5 %", "5"),
        ("2024-02-30", "2024-02-28"),
        ("$5€", "$6€"),
        ("--5", "-6"),
        ("1,23,456", "1,2"),
    ],
)
def test_what_is_not_one_quantity_stays_text(texts):
    assert quantity(words_of(texts), Notation()) is None


def test_zones_become_utc():
    found = parse(["2024-01-31T12:00+02:00", "2024-01-31 10:00:00.5Z"], Notation())
    east = datetime(2024, 1, 31, 12, tzinfo=timezone(timedelta(hours=2)))
    days = (east - datetime(1970, 1, 1, tzinfo=UTC)) / timedelta(days=1)
    np.testing.assert_allclose(found.values, [days, days + 0.5 / 86_400])


@given(st.lists(st.floats(-1e9, 1e9).map(lambda x: round(x, 2)), min_size=1, max_size=20))
def test_numbers_with_thousands_are_read_as_python_writes_them(values):
    texts = [f"{value:,.2f}" for value in values]
    found = parse(texts, Notation())
    np.testing.assert_array_equal(found.values, values)
    swapped = [text.translate(str.maketrans(",.", ".,")) for text in texts]
    np.testing.assert_array_equal(parse(swapped, Notation(",")).values, values)


@given(st.lists(st.datetimes(datetime(1800, 1, 1), datetime(2200, 1, 1)), min_size=1, max_size=9))
def test_dates_are_days_as_numpy_has_them(times):
    found = parse([time.isoformat(sep=" ") for time in times], Notation())
    expected = np.array(times, dtype="datetime64[us]").astype(float) / 86_400e6
    np.testing.assert_allclose(found.values, expected, rtol=0, atol=1e-9)


def test_blocks_are_read_as_the_whole_is(tmp_path):
    rows = [f"{i % 7},5;{i} %;{i % 28 + 1:02}.01.2024" for i in range(1, 200)]
    text = "x;share;day\n" + "\n".join(rows) + "\n"
    (tmp_path / "t.csv.zst").write_bytes(zstandard.compress(text.encode("utf-16")))
    whole = read_table(str(tmp_path / "t.csv.zst"))
    source = open_source(str(tmp_path / "t.csv.zst"))
    ((_, first),) = source.tables()
    for name, column in whole.columns.items():
        assert isinstance(column, Numbers)
        np.testing.assert_array_equal(column.values, first.columns[name].values)
    with gzip.open(tmp_path / "t.csv.gz", "wb") as file:
        file.write(b"x,y\n1,2\n")
    ((_, first),) = open_source(str(tmp_path / "t.csv.gz")).tables()
    assert first.numbers("y").tolist() == [2]
