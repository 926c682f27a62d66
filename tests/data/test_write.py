"""Results are written whole or not at all, and hold nothing that a spreadsheet would run."""

import csv
import io
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from countless._data.write import (
    check_free,
    check_free_file,
    labels_csv,
    safe_cell,
    write_directory,
    write_file,
)
from countless._errors import InputError


@pytest.mark.parametrize(
    "text", ["=1+1", "+cmd", "-2+3", "@SUM(A1)", "\tx", "\rx", "\uff1d1", "-", "=1"]
)
def test_formulas_are_defused(text):
    assert safe_cell(text) == "'" + text


@pytest.mark.parametrize("text", ["", "a=1", "-4.5", "+3", "-1e-9", "12", "x-1"])
def test_plain_text_and_numbers_are_kept(text):
    assert safe_cell(text) == text


@pytest.mark.slow
@given(st.lists(st.text(), min_size=1, max_size=8))
def test_no_cell_starts_a_formula_and_rows_stay_rows(names):
    content = labels_csv(
        np.zeros(len(names), dtype=int), np.arange(len(names)), len(names), ("=id", names)
    )
    lines = list(csv.reader(io.StringIO(content.decode(), newline="")))
    assert lines[0] == ["'=id", "label"]
    assert [line[0].removeprefix("'") for line in lines[1:]] == [n.removeprefix("'") for n in names]
    for cell, _ in lines[1:]:
        assert not cell.startswith(("=", "@", "\t", "\r"))


def test_directory_is_never_overwritten_silently(tmp_path):
    out = tmp_path / "deep" / "out"
    known = ["a", "b"]
    write_directory(out, {"a": b"1", "b": b"2"}, known, force=False)
    (out / "mine").write_text("keep")
    with pytest.raises(InputError, match="exists; say --force"):
        write_directory(out, {"a": b"3"}, known, force=False)
    assert (out / "a").read_bytes() == b"1"
    write_directory(out, {"a": b"3"}, known, force=True)
    # The file b of the earlier run does not stand beside the new a.
    assert sorted(path.name for path in out.iterdir()) == ["a", "mine"]
    assert sorted(path.name for path in out.parent.iterdir()) == ["out"]


def test_failure_leaves_nothing(tmp_path):
    out = tmp_path / "out"
    with pytest.raises(InputError, match="cannot write"):
        write_directory(out, {"a": b"1", "no/such": b"2"}, ["a"], force=False)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(InputError, match="cannot write"):
        write_file(tmp_path / "no" / "such", b"")
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="is a file"):
        write_directory(tmp_path / "file", {"a": b"1"}, ["a"], force=True)


def test_results_can_go_into_the_current_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_directory(Path("."), {"a": b"1"}, ["a"], force=False)
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_what_cannot_be_written_is_said_before_the_work(tmp_path, monkeypatch):
    monkeypatch.setattr("os.access", lambda path, mode: Path(path) != tmp_path)
    with pytest.raises(InputError, match="no permission to write into"):
        check_free(tmp_path / "deep" / "out", ["a"], force=False)
    with pytest.raises(InputError, match="no permission to write into"):
        check_free_file(tmp_path / "a", force=False)


def test_file_is_never_overwritten_silently(tmp_path):
    path = tmp_path / "a"
    write_file(path, b"1")
    with pytest.raises(InputError, match="exists"):
        write_file(path, b"2")
    write_file(path, b"2", force=True)
    assert path.read_bytes() == b"2"
    assert list(tmp_path.iterdir()) == [path]
