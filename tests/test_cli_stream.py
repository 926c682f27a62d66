"""Rows that keep coming: labels as they come, a clean end whatever ends it, bounded memory."""

import csv
import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from click.testing import CliRunner

from countless._data.part import Limits
from countless._data.text_format import text_tables
from countless._formats import FORMATS, TextStyle
from countless.cli import main
from countless.cli.progress import passes_left
from countless.serialize.model_file import load_model

pytest.importorskip("pyarrow")

FILES = ["README.txt", "labels.csv", "model.zip", "run.json"]
CENTERS = np.array([[0.0, 0.0], [30.0, 5.0], [-30.0, 8.0]])


def lines(start, stop, n_centers=3):
    """Return rows of a stream as text; the third center comes late where it is asked for."""
    rng = np.random.default_rng(start)
    rows = CENTERS[np.arange(start, stop) % n_centers] + rng.normal(size=(stop - start, 2))
    return "".join(f"{x:.4f},{y:.4f},{'ab'[i % 2]}\n" for i, (x, y) in enumerate(rows))


@pytest.fixture
def stream(tmp_path, monkeypatch):
    """Feed text to a stream in an empty directory."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")

    def _stream(text, *arguments, code=0):
        command = ["fit", "-", "--stream", "--out", "o", *map(str, arguments)]
        result = CliRunner().invoke(main, command, input=text)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        assert result.exit_code == code, result.output
        return result

    return _stream


def labels_of(folder):
    with (folder / "labels.csv").open(newline="") as file:
        return list(csv.reader(file))


def test_a_stream_that_ends(stream, tmp_path):
    text = "x,y,kind\n" + lines(0, 950)
    result = stream(text, "--block-rows", 200, "--exclude", "kind")
    assert "standard input, the first block: 200 rows" in result.stdout
    assert "950 rows in 5 blocks" in result.stdout
    assert "3 clusters, found by dp-means" in result.stdout
    assert sorted(path.name for path in (tmp_path / "o").iterdir()) == FILES
    found = labels_of(tmp_path / "o")
    assert found[0] == ["row", "label"]
    assert [line[0] for line in found[1:]] == [str(row) for row in range(1, 951)]
    ids = [int(line[1]) for line in found[1:]]
    assert sorted(ids[:3]) == [0, 1, 2]
    assert ids == [ids[row % 3] for row in range(950)]
    record = json.loads((tmp_path / "o" / "run.json").read_text())
    assert (record["input"]["rows"], record["input"]["blocks"]) == (950, 5)
    assert len(record["input"]["sha256"]) == 64
    for cluster in record["result"]["clusters"]:
        assert cluster["size"] in (316, 317)
        center = ids.index(cluster["label"])
        near = [float(cluster["typical_values"][name]) for name in ("x", "y")]
        assert near == pytest.approx(CENTERS[center], abs=0.5)
        assert (cluster["typical"] - 1) % 3 == center


def test_the_scale_is_that_of_the_first_block(stream, tmp_path):
    text = "x,y,kind\n" + lines(0, 600)
    stream(text, "--block-rows", 300, "--columns", "x,y")
    first = np.array([[float(c) for c in line.split(",")[:2]] for line in text.split("\n")[1:301]])
    steps = load_model(tmp_path / "o" / "model.zip").preparation.steps
    assert [step.scale for step in steps] == pytest.approx(first.std(axis=0))
    assert [step.center for step in steps] == pytest.approx(first.mean(axis=0))


def test_ids_keep_their_meaning_when_a_cluster_comes_late(stream, tmp_path):
    text = "x,y,kind\n" + lines(0, 600, n_centers=2) + lines(600, 1200)
    stream(text, "--block-rows", 300, "--columns", "x,y", "--no-scale")
    found = [int(line[1]) for line in labels_of(tmp_path / "o")[1:]]
    assert found[:600] == [found[row % 2] for row in range(600)]
    late = found[602]
    assert late not in found[:600]
    assert found[600:] == [[*found[:2], late][row % 3] for row in range(600)]
    estimator = load_model(tmp_path / "o" / "model.zip").estimator
    assert set(found) == set(estimator.cluster_ids_.tolist())


def test_categories_ids_and_weights_in_a_stream(stream, tmp_path):
    rows = lines(0, 400).splitlines()
    text = "id,w,x,y,kind\n" + "".join(f"{i:03},{i % 2 + 1},{row}\n" for i, row in enumerate(rows))
    # The last block has a category of digits, which must stay the text that the others are.
    text += "400,1,0.1,0.1,7\n"
    result = stream(text, "--block-rows", 200, "--id", "id", "--weight", "w")
    found = labels_of(tmp_path / "o")
    assert found[0] == ["id", "label"]
    assert [line[0] for line in found[1:]] == [f"{i:03}" for i in range(401)]
    assert "1 row with values the model never saw ('7')" in result.stderr
    assert found[401][1] == found[1][1]


def test_missing_values_are_left_out_of_a_stream(stream, tmp_path):
    text = "x,y,kind\n" + lines(0, 300) + ",1,a\n" * 150 + lines(300, 400)
    stream(text, "--block-rows", 150, "--columns", "x,y", "--missing", "drop")
    found = labels_of(tmp_path / "o")
    assert [line[1] for line in found[301:451]] == [""] * 150
    assert all(line[1] for line in found[1:301] + found[451:])


def test_a_bad_row_ends_the_stream_and_keeps_what_came_before(stream, tmp_path):
    text = "x,y,kind\n" + lines(0, 450) + "oops,1,a\n"
    result = stream(text, "--block-rows", 200, "--columns", "x,y", code=2)
    assert "row 451 is 'oops'; the 400 rows before are in o/" in result.stderr
    assert len(labels_of(tmp_path / "o")) == 401
    assert sorted(path.name for path in (tmp_path / "o").iterdir()) == FILES


@pytest.mark.parametrize(
    ("text", "arguments", "message"),
    [
        ("x,y\n1,2\n1,oops\n" * 1, [], "the first block"),
        ("", [], "standard input is empty"),
        ("x,y\n", [], "no rows, only a line of column names"),
        ("x,y\n1,2\n3\n", [], "row 2 has 1 cell, expected 2"),
        ("x\n" + "1\n2\n" * 9, ["--method", "k-means"], "--stream works with dp-means"),
        ("x\n" + "1\n2\n" * 9, ["--compare", "x"], "--compare cannot be combined with"),
        ("x\n" + "1\n2\n" * 9, ["--plot"], "--plot cannot be combined with --stream"),
        ("x\n" + "1\n2\n" * 9, ["--out-of-core"], "--out-of-core cannot be combined with --stream"),
        ("x\n" + "1\n2\n" * 9, ["--format", "npy"], "--stream reads CSV or TSV"),
    ],
)
def test_refusals_are_one_line_and_write_nothing(text, arguments, message, stream, tmp_path):
    result = stream(text, *arguments, code=2)
    assert message in result.stderr
    assert result.stderr.startswith("error: ")
    assert result.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_overwritten_without_force(stream, tmp_path):
    text = "x,y,kind\n" + lines(0, 300)
    stream(text)
    before = (tmp_path / "o" / "run.json").read_bytes()
    assert "exists; say --force" in stream(text, code=2).stderr
    assert (tmp_path / "o" / "run.json").read_bytes() == before
    stream(text, "--force")
    (tmp_path / "p").mkdir()
    (tmp_path / "p" / "labels.csv.part").write_text("of a run that was killed")
    assert "labels.csv.part exists" in stream(text, "--out", "p", code=2).stderr


@pytest.mark.skipif(os.name == "nt", reason="signals are another thing on Windows")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_stream_without_end_ends_cleanly_by_a_signal(number, tmp_path):
    command = "-m countless fit - --stream --block-rows 500 --columns x,y --out o"
    process = subprocess.Popen(
        [sys.executable, *command.split()],
        cwd=tmp_path,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    process.stdin.write("x,y,kind\n" + lines(0, 1250))
    process.stdin.write("1.5,2")  # a row that has not wholly come
    process.stdin.flush()
    part = tmp_path / "o" / "labels.csv.part"
    give_up = time.monotonic() + 100
    while time.monotonic() < give_up and process.poll() is None:  # labels come before the end
        if part.exists() and part.read_bytes().count(b"\n") == 1001:
            break
        time.sleep(0.05)
    assert part.exists()
    assert part.read_bytes().endswith(b"\n")
    assert [path.name for path in (tmp_path / "o").glob("[!.]*")] == ["labels.csv.part"]
    process.send_signal(number)
    out, err = process.communicate(timeout=100)
    assert process.returncode == 0, err
    assert "1250 rows in 3 blocks" in out
    assert sorted(path.name for path in (tmp_path / "o").iterdir()) == FILES
    found = labels_of(tmp_path / "o")
    assert [line[0] for line in found[1:]] == [str(row) for row in range(1, 1251)]
    assert all(len(line) == 2 and line[1] for line in found)
    record = json.loads((tmp_path / "o" / "run.json").read_text())
    assert record["result"]["n_clusters"] == 3
    assert record["files"] == FILES
    assert load_model(tmp_path / "o" / "model.zip").estimator.n_clusters_ == 3


def test_records_are_cut_where_they_end_however_the_pieces_fall():
    text = b'a,b\n1,"x\ny"\n\n2,"say ""hi"""\r\n3,z'
    whole = [(1.0, "x\ny"), (2.0, 'say "hi"'), (3.0, "z")]
    for size in range(1, len(text) + 1):
        pieces = [text[at : at + size] for at in range(0, len(text), size)]
        found = []
        for at, table in text_tables(pieces, "t", FORMATS["csv"], TextStyle(), 2, {"b"}):
            assert at == len(found)
            found += zip(table.numbers("a").tolist(), table.words("b").words(), strict=True)
        assert found == whole


def test_a_line_without_end_is_refused(monkeypatch):
    monkeypatch.setattr("countless._data.part.LIMITS", Limits(record_bytes=1000))
    tables = text_tables([b"a\n", *[b"x" * 400] * 9], "t", FORMATS["csv"], TextStyle(), 2)
    with pytest.raises(ValueError, match="line 2 does not end"):
        list(tables)


@pytest.mark.parametrize("factor", [0.3, 0.5, 0.9])
def test_time_left_is_right_where_gains_shrink_evenly(factor):
    gains = [100 * factor**i for i in range(200)]
    objectives = (1000 + sum(gains) - np.cumsum([0, *gains])).tolist()
    for seen in (4, 6):
        left = passes_left(objectives[:seen][-4:], tol=1e-3)
        stops = next(i for i, gain in enumerate(gains) if gain <= 1e-3 * objectives[i + 1])
        assert left == pytest.approx(stops + 1 - (seen - 1), rel=0.15, abs=1)


def test_no_remaining_time_is_shown_where_it_cannot_be_estimated():
    assert passes_left([3.0], tol=1e-3) is None
    assert passes_left([5.0, 4.0, 3.0], tol=1e-3) is None
    assert passes_left([9.0, 5.0, 3.0], tol=0.0) is None
