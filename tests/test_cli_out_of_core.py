"""Tables that stay on disk or on a cluster: the same answer, bounded, and clear refusals."""

import csv
import json
import subprocess
import sys

import numpy as np
import pytest
from click.testing import CliRunner

from countless._data.part import Limits
from countless._data.sources import open_source
from countless.cli import main
from countless.serialize.model_file import load_model

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

NAMES = ("length", "width", "mass")
CENTERS = np.array([[0, 0, 0], [30, 0, 2], [0, 40, -2], [30, 40, 0]])
# Refining takes hundreds of steps, and each its time on a cluster.
FEW_STEPS = ("--set", "refine=false")


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Run a command in an empty directory."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")

    def _run(*arguments, code=0):
        result = CliRunner().invoke(main, [str(argument) for argument in arguments])
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        assert result.exit_code == code, result.output
        return result

    return _run


@pytest.fixture(autouse=True)
def small_batches(monkeypatch):
    """Read few rows at a time, so that a table of some hundred rows comes in blocks."""
    monkeypatch.setattr("countless._data.part.LIMITS", Limits(rows=64, part_values=400))
    monkeypatch.setattr("countless.cli.out_of_core.LIMITS", Limits(rows=50))


def rows(n=501, seed=3):
    rng = np.random.default_rng(seed)
    return CENTERS[np.arange(n) % 4] + rng.normal(size=(n, 3))


def write_tables(folder):
    """Write the same rows in every form that is read in blocks."""
    X = rows()
    np.save(folder / "t.npy", X)
    table = pa.table(dict(zip(NAMES, X.T, strict=True)))
    pq.write_table(table, folder / "t.parquet", row_group_size=100)
    (folder / "parts").mkdir()
    for part in range(3):
        pq.write_table(table.slice(part * 167, 167), folder / "parts" / f"{part}.parquet")
    lines = [",".join(NAMES), *(",".join(map(repr, row)) for row in X.tolist())]
    (folder / "t.csv").write_text("\n".join(lines) + "\n")
    return X


def result_of(folder):
    record = json.loads((folder / "run.json").read_text())
    clusters = [
        (cluster["label"], cluster["size"], cluster["typical"])
        for cluster in record["result"]["clusters"]
    ]
    return record, clusters


@pytest.mark.parametrize("name", ["t.npy", "t.parquet", "parts", "t.csv"])
@pytest.mark.parametrize("scale", ["--scale", "--no-scale"])
def test_the_answer_is_that_of_memory(name, scale, run, tmp_path):
    write_tables(tmp_path)
    shown = run("fit", name, "--out-of-core", scale, "--out", "far").stdout
    run("fit", "t.parquet", scale, "--out", "near")
    near, far = tmp_path / "near", tmp_path / "far"
    assert (far / "labels.csv").read_text() == (near / "labels.csv").read_text()
    record, clusters = result_of(far)
    expected, expected_clusters = result_of(near)
    assert clusters == expected_clusters
    assert "4 clusters, found by dp-means" in shown
    assert f"{name}: 501 rows, 3 columns" in shown
    traits = [trait for cluster in record["result"]["clusters"] for trait in cluster["traits"]]
    known = [trait for cluster in expected["result"]["clusters"] for trait in cluster["traits"]]
    for trait, other in zip(traits, known, strict=True):
        assert trait["inside"] == pytest.approx(other["inside"])
        assert trait["difference"] == pytest.approx(other["difference"])
    steps = load_model(far / "model.zip").preparation.steps
    same = load_model(near / "model.zip").preparation.steps
    assert [step.scale for step in steps] == pytest.approx([step.scale for step in same])
    typical = record["result"]["clusters"][0]
    values = [float(value) for value in typical["typical_values"].values()]
    assert values == pytest.approx(rows()[typical["typical"] - 1])
    assert len(record["input"]["sha256"]) == 64
    assert not [path for path in tmp_path.iterdir() if path.name.startswith("countless-")]


def test_columns_are_chosen_weighted_named_and_left_out(run, tmp_path):
    X = rows()
    weight = np.arange(len(X)) % 3
    table = pa.table(
        {
            "count": np.arange(len(X)),
            "name": [f"=row {i}" for i in range(len(X))],
            **dict(zip(NAMES, X.T, strict=True)),
            "noise": X[::-1, 0] * 100,
            "always": np.ones(len(X)),
            "w": weight,
        }
    )
    pq.write_table(table, tmp_path / "t.parquet", row_group_size=77)
    command = ("fit", "t.parquet", "--id", "name", "--weight", "w", "--exclude", "noise")
    shown = run(*command, "--out-of-core", "--out", "far").stdout
    run(*command, "--out", "near")
    assert "counts the rows" in shown
    assert "always 1" in shown
    lines = (tmp_path / "far" / "labels.csv").read_text()
    assert lines == (tmp_path / "near" / "labels.csv").read_text()
    assert lines.startswith("name,label\n'=row 0,")
    record, clusters = result_of(tmp_path / "far")
    near, expected = result_of(tmp_path / "near")
    assert clusters == expected
    shares = [cluster["share"] for cluster in record["result"]["clusters"]]
    assert shares == pytest.approx([c["share"] for c in near["result"]["clusters"]])
    assert "=row" in shown  # the typical rows are named


def test_rows_with_missing_values_can_be_left_out(run, tmp_path):
    X = rows()
    X[[3, 130, 131], [0, 1, 2]] = np.nan
    X[192:256] = np.nan  # a whole batch
    pq.write_table(pa.table(dict(zip(NAMES, X.T, strict=True))), tmp_path / "t.parquet")
    refused = run("fit", "t.parquet", "--out-of-core", code=2).stderr
    assert "column 'length' has 65 missing values, the first in row 4" in refused
    assert "say --missing drop" in refused
    assert (
        "impute" in run("fit", "t.parquet", "--out-of-core", "--missing", "impute", code=2).stderr
    )
    assert [path.name for path in tmp_path.iterdir()] == ["t.parquet"]
    shown = run("fit", "t.parquet", "--out-of-core", "--missing", "drop", "--out", "far").stdout
    assert "left out: 67 rows with missing values; used: 434" in shown
    run("fit", "t.parquet", "--missing", "drop", "--out", "near")
    near, far = tmp_path / "near" / "labels.csv", tmp_path / "far" / "labels.csv"
    assert far.read_text() == near.read_text()
    predicted = run("predict", "far/model.zip", "t.parquet", "--out-of-core").stdout
    assert predicted == far.read_text()


def test_a_plain_array_is_not_copied(run, tmp_path, monkeypatch):
    write_tables(tmp_path)

    def refuse(*arguments):
        raise AssertionError("the array was copied")

    monkeypatch.setattr("countless.cli.out_of_core._spool", refuse)
    run("fit", "t.npy", "--out-of-core", "--out", "far")
    with pytest.raises(AssertionError, match="was copied"):
        run("fit", "t.npy", "--out-of-core", "--scale", "--out", "other")


def test_path_and_predict_out_of_core(run, tmp_path):
    write_tables(tmp_path)
    near = json.loads(run("path", "t.parquet", "--json").stdout)
    for name in ("t.parquet", "parts"):
        far = json.loads(run("path", name, "--out-of-core", "--json").stdout)
        assert far["n_clusters"] == near["n_clusters"] == 4
        assert far["breakpoints"] == pytest.approx(near["breakpoints"])
        assert far["input"]["backend"] == "disk"
    run("fit", "t.parquet", "--out", "o")
    expected = (tmp_path / "o" / "labels.csv").read_text()
    for name in ("t.parquet", "parts", "t.csv"):
        assert run("predict", "o/model.zip", name, "--out-of-core").stdout == expected
    run("predict", "o/model.zip", "parts", "--out-of-core", "--out", "p.csv")
    assert (tmp_path / "p.csv").read_text() == expected
    found = json.loads(run("predict", "o/model.zip", "parts", "--out-of-core", "--json").stdout)
    assert sum(found["sizes"].values()) == found["rows"] == 501
    assert "labels" not in found


def test_predict_out_of_core_prepares_categories_and_names_bad_rows(run, tmp_path):
    lines = [f"{i % 2 * 9 + i / 999},{'ab'[i % 2]}" for i in range(300)]
    (tmp_path / "t.csv").write_text("x,kind\n" + "\n".join(lines) + "\n")
    run("fit", "t.csv", "--out", "o")
    labels = (tmp_path / "o" / "labels.csv").read_text()
    assert run("predict", "o/model.zip", "t.csv", "--out-of-core").stdout == labels
    lines[200] = "oops,a"
    (tmp_path / "bad.csv").write_text("x,kind\n" + "\n".join(lines) + "\n")
    command = ("predict", "o/model.zip", "bad.csv", "--out-of-core", "--out", "p.csv")
    assert "row 201 is 'oops'" in run(*command, code=2).stderr
    lines[200] = "1"
    (tmp_path / "bad.csv").write_text("x,kind\n" + "\n".join(lines) + "\n")
    assert "row 201 has 1 cell, expected 2" in run(*command, code=2).stderr
    assert not (tmp_path / "p.csv").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["t.parquet"], "2 columns of text ('kind', 'colour') cannot be used"),
        (
            ["t.parquet", "--columns", "x", "--categorical", "kind"],
            "--categorical cannot be combined",
        ),
        (["t.parquet", "--exclude", "kind,colour", "--columns", "parts"], "'parts' is other"),
        (["t.parquet", "--columns", "x", "--compare", "kind"], "--compare cannot be combined with"),
        (["t.parquet", "--columns", "x", "--group", "kind"], "it needs the whole table in memory"),
        (["t.parquet", "--columns", "x", "--method", "k-means"], "works with dp-means, not with k"),
        (["t.parquet", "--columns", "big"], "column 'big', row 73 is infinite"),
        (["t.parquet", "--columns", "x", "--weight", "signed"], "row 88 is -1"),
        (["t.parquet", "--columns", "nope"], "no column 'nope'"),
        (["no.parquet"], "cannot read no.parquet: No such file"),
        (["empty"], "empty holds no Parquet file"),
        (["other"], "b.parquet has other columns than a.parquet"),
        (["broken.npy"], "ends before row"),
        (["flat.npy"], "its shape is (3,)"),
        (["broken.parquet"], "broken.parquet"),
        (["-"], "standard input can be read once only"),
    ],
)
def test_refusals_are_one_line_and_write_nothing(arguments, message, run, tmp_path):
    x = np.arange(100.0) ** 2 % 17
    table = pa.table(
        {
            "x": x,
            "kind": ["a", "b"] * 50,
            "colour": ["red", "blue"] * 50,
            "when": pa.array(range(100), pa.timestamp("s")),
            "big": np.where(np.arange(100) == 72, np.inf, x),
            "signed": np.where(np.arange(100) == 87, -1, 1),
            "parts": [[1, 2]] * 100,
        }
    )
    pq.write_table(table, tmp_path / "t.parquet")
    (tmp_path / "empty").mkdir()
    (tmp_path / "other").mkdir()
    pq.write_table(pa.table({"x": x}), tmp_path / "other" / "a.parquet")
    pq.write_table(pa.table({"y": x}), tmp_path / "other" / "b.parquet")
    np.save(tmp_path / "broken.npy", rows())
    whole = (tmp_path / "broken.npy").read_bytes()
    (tmp_path / "broken.npy").write_bytes(whole[:-100])
    np.save(tmp_path / "flat.npy", np.ones(3))
    (tmp_path / "broken.parquet").write_bytes(b"PAR1 nothing")
    before = sorted(path.name for path in tmp_path.rglob("*"))
    result = run("fit", *arguments, "--out-of-core", code=2)
    assert result.stderr.startswith("error: ")
    assert message in result.stderr
    assert result.stderr.count("\n") == 1
    assert sorted(path.name for path in tmp_path.rglob("*")) == before


def test_dask_gives_the_same_files(run, tmp_path):
    distributed = pytest.importorskip("distributed")
    write_tables(tmp_path)
    cluster = distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None
    )
    with cluster:
        for name in ("t.npy", "parts"):
            fit = ("fit", name, "--scale", *FEW_STEPS)
            result = run(*fit, "--dask", cluster.scheduler_address, "--out", f"dask-{name}")
            assert "memory it would be clustered faster" in " ".join(result.stderr.split())
            run(*fit, "--out-of-core", "--out", f"disk-{name}")
            dask, disk = tmp_path / f"dask-{name}", tmp_path / f"disk-{name}"
            assert (dask / "labels.csv").read_bytes() == (disk / "labels.csv").read_bytes()
            record, clusters = result_of(dask)
            assert clusters == result_of(disk)[1]
            assert record["input"]["backend"] == f"Dask at {cluster.scheduler_address}"
        found = json.loads(
            run("path", "parts", "--dask", cluster.scheduler_address, "--json").stdout
        )
        assert found["n_clusters"] == 4
        refused = run("fit", "t.csv", "--dask", cluster.scheduler_address, code=2)
        assert "npy and Parquet; not text" in refused.stderr


def test_dask_that_is_missing_or_not_there_is_said(run, tmp_path, monkeypatch):
    write_tables(tmp_path)
    monkeypatch.setattr("countless.cli.dask.SECONDS_TO_CONNECT", 0.2)
    result = run("fit", "t.npy", "--dask", "tcp://127.0.0.1:9", code=2)
    assert "cannot connect to a Dask scheduler at tcp://127.0.0.1:9" in result.stderr
    assert result.stderr.count("\n") == 1
    monkeypatch.setattr("countless.cli.dask.find_spec", lambda name: None)
    result = run("fit", "t.npy", "--dask", "local", code=2)
    assert result.stderr == "error: --dask needs Dask: pip install 'countless[dask]'\n"


def test_an_interrupted_run_goes_on_from_its_checkpoint(run, tmp_path, monkeypatch):
    from countless._search import checkpoint

    rng = np.random.default_rng(8)
    np.save(tmp_path / "t.npy", rng.uniform(size=(3000, 2)))
    command = ("fit", "t.npy", "--penalty", "0.4", "--checkpoint", "c.zip")
    run(*command, "--out", "whole")
    assert not (tmp_path / "c.zip").exists()
    monkeypatch.setattr(checkpoint, "PASSES", 1)
    save = checkpoint.Checkpoint.save
    n_saved = 0

    def save_and_interrupt(self, *arguments):
        nonlocal n_saved
        save(self, *arguments)
        n_saved += 1
        if n_saved == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(checkpoint.Checkpoint, "save", save_and_interrupt)
    stopped = run(*command, "--out", "resumed", "--out-of-core", code=130)
    assert "the same command goes on from c.zip" in stopped.stderr
    assert (tmp_path / "c.zip").exists()
    assert not (tmp_path / "resumed").exists()
    resumed = run(*command, "--out", "resumed", "--out-of-core")
    assert "going on from c.zip" in resumed.stderr
    whole = (tmp_path / "whole" / "labels.csv").read_bytes()
    assert (tmp_path / "resumed" / "labels.csv").read_bytes() == whole
    assert load_model(tmp_path / "resumed" / "model.zip").estimator.checkpoint is None
    assert not (tmp_path / "c.zip").exists()
    other = ("fit", "t.npy", "--method", "k-means", "--checkpoint", "c.zip", "--out", "k")
    assert "--checkpoint works with dp-means" in run(*other, code=2).stderr


def test_the_checkpoint_stays_until_results_are_written(run, tmp_path, monkeypatch):
    from countless._errors import InputError
    from countless._search import checkpoint

    np.save(tmp_path / "t.npy", np.random.default_rng(8).uniform(size=(3000, 2)))
    command = ("fit", "t.npy", "--penalty", "0.4", "--checkpoint", "c.zip", "--out", "o")
    monkeypatch.setattr(checkpoint, "PASSES", 1)

    def full(*arguments):
        raise InputError("cannot write o: No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("countless.cli.run.write_directory", full)
        assert "No space left" in run(*command, code=2).stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["c.zip", "t.npy"]
    assert "going on from c.zip" in run(*command).stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["o", "t.npy"]
    (tmp_path / "c.zip").write_bytes(b"nonsense")
    refused = run(*command, "--force", code=2).stderr
    assert refused.startswith("note: going on") or refused.count("\n") == 1
    assert "error: dp-means: c.zip is no checkpoint, or a broken one" in refused


def test_labels_have_a_line_for_each_row(run, tmp_path):
    write_tables(tmp_path)
    run("fit", "parts", "--out-of-core", "--out", "far")
    with (tmp_path / "far" / "labels.csv").open(newline="") as file:
        lines = list(csv.reader(file))
    assert [line[0] for line in lines[1:]] == [str(row) for row in range(1, 502)]
    assert [line[1] for line in lines[1:]] == [str(row % 4) for row in range(501)]


@pytest.mark.slow
def test_a_local_cluster_of_processes(run, tmp_path):
    pytest.importorskip("distributed")
    write_tables(tmp_path)
    command = "-m countless fit parts --dask local --jobs 2 --out dask"
    done = subprocess.run(
        [sys.executable, *command.split(), *FEW_STEPS],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    run("fit", "parts", "--out-of-core", "--out", "disk", *FEW_STEPS)
    dask, disk = tmp_path / "dask", tmp_path / "disk"
    assert (dask / "labels.csv").read_bytes() == (disk / "labels.csv").read_bytes()
    assert result_of(dask)[0]["input"]["backend"] == "Dask with 2 local workers"


def test_wide_rows_are_read_fewer_at_a_time(tmp_path, monkeypatch):
    limits = Limits(rows=64, part_values=400, values=90, text_bytes=500)
    monkeypatch.setattr("countless._data.part.LIMITS", limits)
    write_tables(tmp_path)
    for name, most in (("t.npy", 30), ("t.parquet", 30), ("t.csv", 9)):
        sizes = [table.n_rows for _, table in open_source(str(tmp_path / name)).tables()]
        assert max(sizes) <= most
        assert sum(sizes) == 501
