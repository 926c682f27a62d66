"""The command line: what it prints and writes, and how it refuses."""

import csv
import json
import sys

import numpy as np
import pytest
from click.testing import CliRunner

import countless
from countless._registry import ESTIMATORS
from countless.cli import main
from countless.cli.methods import METHODS
from countless.cli.progress import follow
from countless.dp_means import DPMeans
from countless.serialize.model_file import load_model

FILES = ["README.txt", "clusters.csv", "labels.csv", "model.zip", "run.json", "table.csv"]


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Run a command in an empty directory."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")

    def _run(*arguments, code=0, **settings):
        result = CliRunner().invoke(main, [str(argument) for argument in arguments], **settings)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        assert result.exit_code == code, result.output
        return result

    return _run


@pytest.fixture
def flowers(tmp_path):
    """Write a table of three clear groups, with an identifier, a category and the true groups."""
    rng = np.random.default_rng(5)
    lines = ["name,length,width,colour,group"]
    for group, (length, width, colour) in enumerate(
        [(1, 50, "red"), (4, 90, "blue"), (9, 20, "red")]
    ):
        for _ in range(30):
            at = rng.normal([length, width], [0.2, 1.0])
            lines.append(f"flower {len(lines)},{at[0]:.3f},{at[1]:.2f},{colour},g{group}")
    path = tmp_path / "flowers.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def read_labels(path):
    with path.open(newline="") as file:
        return list(csv.reader(file))


def test_fit_says_and_writes_what_it_found(run, flowers, tmp_path):
    result = run("fit", flowers, "--compare", "group", "--plot")
    assert "flowers.csv: 90 rows, 5 columns" in result.stdout
    assert "3 clusters, found by auto: " in result.stdout
    assert "Confidence" in result.stdout
    assert "connected" in result.stdout  # one of the candidates
    assert "colour = blue" in result.stdout
    assert "adjusted Rand 1.00" in result.stdout
    out = tmp_path / "flowers-clusters"
    assert sorted(path.name for path in out.iterdir()) == sorted([*FILES, "candidates.png"])
    lines = read_labels(out / "labels.csv")
    assert lines[0] == ["row", "label"]
    assert [line[0] for line in lines[1:]] == [str(row) for row in range(1, 91)]
    assert [line[1] for line in lines[1:]] == ["0"] * 30 + ["1"] * 30 + ["2"] * 30
    assert (out / "candidates.png").read_bytes().startswith(b"\x89PNG")
    estimator, preparation = load_model(out / "model.zip")
    assert estimator.n_clusters_ == 3
    assert [step.name for step in preparation.steps] == ["length", "width", "colour"]


def test_run_record_says_how_to_repeat_the_run(run, flowers, tmp_path):
    run("fit", flowers, "--exclude", "group", "--seed", 7, "--out", "o")
    record = json.loads((tmp_path / "o" / "run.json").read_text())
    assert record["countless"] == countless.__version__
    assert record["seed"] == 7
    assert record["method"]["parameters"]["random_state"] == 7
    assert record["arguments"]["exclude"] == ["group"]
    assert len(record["input"]["sha256"]) == 64
    assert {"python", "numpy", "scikit-learn"} <= set(record["versions"])
    assert [column["kind"] for column in record["input"]["columns"]] == [
        "identifier",
        "numeric",
        "numeric",
        "categorical",
        "categorical",
    ]
    assert record["result"]["n_clusters"] == 3
    typical = record["result"]["clusters"][0]["typical_values"]
    assert set(typical) == {"length", "width", "colour"}
    assert record["files"] == FILES
    assert {"read", "prepare", "fit"} <= set(record["seconds"])


def test_json_is_one_object_and_the_same_as_the_record(run, flowers, tmp_path):
    result = run("fit", flowers, "--exclude", "group", "--json", "--out", "o")
    assert json.loads(result.stdout) == json.loads((tmp_path / "o" / "run.json").read_text())
    assert result.stderr == ""


def test_quiet_prints_nothing(run, flowers):
    result = run("fit", flowers, "--exclude", "group", "--quiet")
    assert result.output == ""


def test_same_seed_same_files(run, flowers, tmp_path):
    for name in ("a", "b"):
        run("fit", flowers, "--exclude", "group", "--out", name)
    for name in ("labels.csv", "model.zip"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


def test_nothing_is_overwritten_without_force(run, flowers, tmp_path):
    run("fit", flowers, "--exclude", "group", "--out", "o", "--plot")
    before = (tmp_path / "o" / "run.json").read_bytes()
    result = run("fit", flowers, "--out", "o", code=2)
    assert "exists; say --force" in result.stderr
    assert (tmp_path / "o" / "run.json").read_bytes() == before
    run("fit", flowers, "--columns", "length", "--out", "o", "--force")
    assert (tmp_path / "o" / "run.json").read_bytes() != before
    assert not (tmp_path / "o" / "path.png").exists()


def test_identifier_names_rows_and_cannot_become_a_formula(run, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("id,x\n" + "".join(f"=cmd|{i},{i % 2 * 9 + i / 50}\n" for i in range(20)))
    run("fit", path, "--id", "id", "--out", "o")
    lines = read_labels(tmp_path / "o" / "labels.csv")
    assert lines[0] == ["id", "label"]
    assert lines[1][0] == "'=cmd|0"


def test_missing_values(run, flowers, tmp_path):
    text = flowers.read_text().replace("flower 4,", "flower 4,NA,1,red,g0\nflower 4b,")
    flowers.write_text(text)
    command = ("fit", flowers, "--exclude", "group")
    result = run(*command, code=2)
    assert "column 'length' has 1 missing value, the first in row 4; say --missing" in result.stderr
    assert list(tmp_path.iterdir()) == [flowers]
    result = run(*command, "--missing", "drop", "--out", "d")
    assert "left out: 1 row with missing values; used: 90" in result.stdout
    assert read_labels(tmp_path / "d" / "labels.csv")[4] == ["4", ""]
    result = run(*command, "--missing", "impute", "--out", "i")
    assert "standardised; missing values filled with" in result.stdout
    assert read_labels(tmp_path / "i" / "labels.csv")[4][1] != ""


def test_scaling_is_said_and_stored(run, flowers, tmp_path):
    run("fit", flowers, "--columns", "length,width", "--no-scale", "--out", "o")
    steps = load_model(tmp_path / "o" / "model.zip").preparation.steps
    assert [(step.center, step.scale) for step in steps] == [(0, 1), (0, 1)]
    assert "as it is" in run("fit", flowers, "--columns", "width", "--no-scale").stdout


def test_arrays_are_not_scaled_unless_asked(run, tmp_path):
    rng = np.random.default_rng(5)
    rows = np.concatenate([rng.normal(0, 1, (30, 2)), rng.normal(40, 1, (30, 2))])
    np.save(tmp_path / "t.npy", rows.astype(np.float32))
    run("fit", "t.npy", "--out", "a")
    assert load_model(tmp_path / "a" / "model.zip").preparation.steps[0].scale == 1
    run("fit", "t.npy", "--out", "b", "--scale")
    assert load_model(tmp_path / "b" / "model.zip").preparation.steps[0].scale > 10


def test_weights(run, flowers, tmp_path):
    lines = flowers.read_text().splitlines()
    weighted = [lines[0] + ",w", *(f"{line},{i % 3}" for i, line in enumerate(lines[1:]))]
    flowers.write_text("\n".join(weighted) + "\n")
    run("fit", flowers, "--columns", "length,width", "--weight", "w", "--out", "o")
    record = json.loads((tmp_path / "o" / "run.json").read_text())
    assert sum(c["share"] for c in record["result"]["clusters"]) == pytest.approx(1)
    result = run("fit", flowers, "--weight", "w", "--method", "hdbscan", "--out", "h", code=2)
    assert "hdbscan takes no row weights" in result.stderr
    assert not (tmp_path / "h").exists()


ROW_METHODS = [name for name, method in METHODS.items() if method.estimator.takes == "rows"]


@pytest.mark.parametrize("name", ROW_METHODS)
def test_every_method_runs(name, run, flowers, tmp_path):
    key = METHODS[name].key_parameter
    setting = ["--set", f"{key}=3"] if key in ("n_clusters", "n_components") else []
    if "n_sweeps" in METHODS[name].parameters():
        setting += ["--sweeps", "60"]
    result = run("fit", flowers, "--compare", "group", "--method", name, *setting, "--out", "o")
    assert "3 clusters" in result.stdout
    assert "adjusted Rand 1.00" in result.stdout
    saved = (tmp_path / "o" / "model.zip").exists()
    assert saved == (METHODS[name].estimator.is_saved or name == "auto")
    assert ("a model is not" in result.stderr) != saved
    if saved:
        labels = run("predict", "o/model.zip", flowers).stdout
        assert labels == (tmp_path / "o" / "labels.csv").read_text()


def test_a_kernel_beyond_memory_is_one_line(run, flowers, tmp_path, monkeypatch):
    monkeypatch.setattr("countless._memory.available_memory", lambda: 100)
    result = run("fit", flowers, "--method", "kernel-dp-means", "--out", "o", code=2)
    assert "bytes, and 100 are available" in " ".join(result.stderr.split())
    assert not (tmp_path / "o").exists()


def test_a_spectrum_is_drawn_where_the_penalty_was_chosen_from_it(run, flowers, tmp_path):
    spectral = ("fit", flowers, "--method", "spectral-dp-means", "--id", "name", "--plot", "--out")
    run(*spectral, "chosen")
    assert (tmp_path / "chosen" / "path.png").exists()
    result = run(*spectral, "given", "--penalty", "0.9", code=2)
    assert "leave out --penalty" in result.stderr
    assert not (tmp_path / "given").exists()


def test_every_public_estimator_is_a_method():
    public = {name for name in countless.__all__ if name[0].isupper()}
    assert set(ESTIMATORS) == public - {"EditedClustering"}  # made by apply_edits, not fitted


def test_methods_lists_them(run):
    listed = json.loads(run("methods", "--json").stdout)["methods"]
    assert list(listed) == list(METHODS)
    assert listed["k-means"]["baseline"]
    text = run("methods").stdout
    assert all(name in text for name in METHODS)


def test_predict_finds_columns_by_name(run, flowers, tmp_path):
    run("fit", flowers, "--exclude", "group", "--out", "o")
    new = tmp_path / "new.csv"
    new.write_text("extra,colour,width,length\n1,blue,90,4\n2,green,50,1\n")
    result = run("predict", "o/model.zip", new, "--out", "new-labels.csv")
    assert (tmp_path / "new-labels.csv").read_text() == "row,label\n1,1\n2,0\n"
    assert "does not use: extra" in result.stderr
    assert "warning: column 'colour' has 1 row with values the model never saw" in result.stderr
    assert "exists" in run("predict", "o/model.zip", new, "--out", "new-labels.csv", code=2).stderr
    report = json.loads(run("predict", "o/model.zip", new, "--json").stdout)
    assert report["labels"] == [1, 0]
    assert report["sizes"] == {"0": 1, "1": 1}
    new.write_text("colour,length\nblue,4\n")
    result = run("predict", "o/model.zip", new, code=2)
    assert result.stderr == "error: new.csv lacks column 'width'\n"
    new.write_text("colour,length,width\nblue,4,\nred,1,50\n")
    assert "'width' has 1 missing value" in run("predict", "o/model.zip", new, code=2).stderr
    assert run("predict", "o/model.zip", new, "--missing", "drop").stdout == "row,label\n1,\n2,0\n"


def test_path_shows_plateaus(run, flowers, tmp_path):
    result = run("path", flowers, "--columns", "length,width", "--plot", "p.png")
    assert "3 clusters at penalty" in result.stdout
    assert (tmp_path / "p.png").read_bytes().startswith(b"\x89PNG")
    assert "exists" in run("path", flowers, "--plot", "p.png", code=2).stderr
    found = json.loads(run("path", flowers, "--columns", "length,width", "--json").stdout)
    assert found["n_clusters"] == found["plateaus"][0]["n_clusters"] == 3
    assert found["breakpoints"] == sorted(found["breakpoints"])


def test_demo_finds_the_cultivars(run, tmp_path):
    result = run("demo", "--out", "demo")
    assert "3 clusters" in result.stdout
    assert "Agreement with cultivar: NMI 0." in result.stdout
    files = {*FILES, "candidates.png"} - {"table.csv"}  # the wine data are no file of the user
    assert {path.name for path in (tmp_path / "demo").iterdir()} == files
    assert "exists" in run("demo", "--out", "demo", code=2).stderr
    run("demo", "--out", "demo", "--force", "--quiet")


def test_a_given_penalty_is_used_and_can_be_drawn(run, flowers, tmp_path):
    result = run("fit", flowers, "--exclude", "group", "--penalty", "1e6", "--plot", "--out", "o")
    assert "1 cluster, found by dp-means at penalty 1000000" in result.stdout
    assert "nothing stands out" in result.stdout
    assert "Confidence" not in result.stdout
    assert (tmp_path / "o" / "path.png").exists()


def test_optimality_gap_is_said_and_recorded(run, flowers, tmp_path):
    shown = run("fit", flowers, "--id", "name", "--optimality-gap", "--out", "a").stdout
    assert "no clustering has an objective that is more than" in shown
    record = json.loads((tmp_path / "a" / "run.json").read_text())["result"]
    result = record["optimality_gap"]
    assert result["objective"] == pytest.approx(record["objective"])
    assert 0 < result["lower_bound"] <= result["objective"]
    assert result["gap"] == 1 - result["lower_bound"] / result["objective"]


def test_divergences_take_raw_values_and_name_bad_cells(run, tmp_path):
    counts = np.random.default_rng(5).poisson([[20, 1, 1]] * 30 + [[1, 1, 20]] * 30)
    np.savetxt(tmp_path / "t.csv", counts, fmt="%d", delimiter=",", header="a,b,c", comments="")
    run("fit", "t.csv", "--set", "divergence=kl", "--out", "o")
    assert load_model(tmp_path / "o" / "model.zip").preparation.steps[0].scale == 1
    counts[4, 2] = -3
    np.savetxt(tmp_path / "t.csv", counts, fmt="%d", delimiter=",", header="a,b,c", comments="")
    for command in (
        ("fit", "t.csv", "--set", "divergence=kl", "--out", "bad"),
        ("path", "t.csv", "--divergence", "kl"),
        ("predict", "o/model.zip", "t.csv"),
    ):
        assert "row 5, column 'c' is -3" in run(*command, code=2).stderr
    assert not (tmp_path / "bad").exists()


def test_numbers_that_may_name_rows_are_pointed_out(run, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(
        "code,x\n" + "".join(f"{i * 7 + 100},{i % 2 * 9 + i / 99}\n" for i in range(60))
    )
    assert "--id code" in run("fit", path, "--out", "a").stderr
    assert run("fit", path, "--id", "code", "--out", "b").stderr == ""


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["fit", "no.csv"], "cannot read no.csv: No such file"),
        (["fit", "{data}", "--method", "magic"], "'magic' is not one of"),
        (["fit", "{data}", "--method", "k-means", "--set", "n_cluster=3"], "did you mean 'n_clus"),
        (["fit", "{data}", "--method", "k-means", "--penalty", "3"], "k-means takes no --penalty"),
        (
            ["fit", "{data}", "--exclude", "group", "--method", "k-means", "--set", "n_clusters=0"],
            "n_clusters",
        ),
        (["fit", "{data}", "--method", "k-means", "--plot"], "k-means takes no --plot"),
        (["fit", "{data}", "--set", "refine"], "must be written as key=value"),
        (["fit", "{data}", "--set", "refine=1", "--set", "refine=0"], "'refine' twice"),
        (["fit", "{data}", "--penalty", "x"], "--penalty must be a number or 'auto'"),
        (["fit", "{data}", "--penalty", "-1"], "--penalty must be 0 or more; got -1"),
        (["fit", "{data}", "--penalty", "nan"], "--penalty must be 0 or more; got nan"),
        (["fit", "{data}", "--jobs", "0"], "must be 1 or more, or -1 for all"),
        (["fit", "{data}", "--out", "{data}/o"], "flowers.csv is a file, not a directory"),
        (["fit", "."], ". is a directory, not a table"),
        (["path", "{data}", "--plot", "no/p.png"], "there is no directory no"),
        (["path", "{data}", "--plot", "."], ". is a directory, not a file"),
        (["fit", "{data}", "--penalty", "1", "--set", "penalty=2"], "penalty is given twice"),
        (["fit", "{data}", "--columns", "lenght"], "did you mean 'length'"),
        (["fit", "{data}", "--id", "nope"], "no column 'nope'"),
        (["fit", "{data}", "--id", "name,group"], "no column 'name,group'"),
        (["fit", "{data}", "--columns", "name"], "'name' is identifier"),
        (["fit", "{data}", "--delimiter", "xx"], "one character"),
        (["fit", "{data}", "--decimal", "x"], "must be '.' or ','"),
        (["fit", "{data}", "--seed", "-1"], "--seed"),
        (["fit", "{data}", "--nonsense"], "--nonsense"),
        (["fit"], "Missing argument 'DATA'"),
        (["path", "{data}", "--exclude", "group", "--divergence", "nope"], "must be one of"),
        (["predict", "no.zip", "{data}"], "cannot read no.zip"),
        (["predict", "{data}", "{data}"], "no usable model"),
        (["nothing"], "No such command 'nothing'"),
    ],
)
def test_refusals_are_one_line_and_write_nothing(arguments, message, run, flowers, tmp_path):
    result = run(*(argument.format(data=flowers) for argument in arguments), code=2)
    assert result.stderr.startswith("error: ")
    assert message in result.stderr
    assert result.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == [flowers]


def test_control_characters_in_data_are_not_printed(run, tmp_path):
    path = tmp_path / "t.csv"
    rows = "".join(f"{i % 2 * 9 + i / 50},{'abc'[i % 2]}[bold]\x1b[31m\n" for i in range(20))
    path.write_text("a\x1b]0;title\x07,b\n" + rows)
    result = run("fit", path)
    assert "\x1b" not in result.output
    assert "\x07" not in result.output
    assert "[bold]" in result.stdout
    result = run("fit", path, "--columns", "z\x1b[0m", "--out", "z", code=2)
    assert "\x1b" not in result.stderr


def test_progress_tells_each_pass():
    said = []
    estimator = DPMeans(3.0)
    if not hasattr(estimator, "set_callbacks"):
        pytest.skip("this scikit-learn has no callbacks")
    follow(estimator, said.append, (100, 2))
    rng = np.random.default_rng(5)
    estimator.fit(np.concatenate([rng.normal(0, 1, (50, 2)), rng.normal(40, 1, (50, 2))]))
    assert 0 < len(said) <= estimator.n_iter_
    assert said[0].startswith("pass 1, ")
    assert f"{estimator.n_clusters_} cluster" in said[-1]


def test_interrupt_exits_130_and_leaves_nothing(run, flowers, tmp_path, monkeypatch):
    def interrupt(*arguments, **settings):
        raise KeyboardInterrupt

    monkeypatch.setattr("countless.cli.data.summarize_clusters", interrupt)
    result = run("fit", flowers, "--exclude", "group", code=130)
    assert result.stderr.endswith("interrupted\n")
    assert list(tmp_path.iterdir()) == [flowers]


@pytest.mark.parametrize(
    ("command", "step"),
    [
        ("fit", "countless.cli.data.summarize_clusters"),
        ("path", "countless._path.penalty.penalty_path"),
        ("predict", "countless.DPMeans.predict"),
    ],
)
def test_a_lack_of_memory_is_one_line_that_says_what_was_asked_for(
    command, step, run, flowers, tmp_path, monkeypatch
):
    run("fit", flowers, "--method", "dp-means", "--out", "o")
    before = sorted(tmp_path.rglob("*"))
    monkeypatch.setattr(step, lambda *arguments, **settings: np.empty(2**59))
    given = {
        "fit": [flowers, "--method", "dp-means", "--out", "p"],
        "path": [flowers],
        "predict": ["o/model.zip", flowers],
    }
    result = run(command, *given[command], code=2)
    assert "error: not enough memory: Unable to allocate 4.00 EiB" in result.stderr
    assert result.stderr.count("error") == 1
    assert "Traceback" not in result.stderr
    assert sorted(tmp_path.rglob("*")) == before


def test_errors_of_the_program_keep_their_traceback(run, flowers, monkeypatch):
    def fail(*arguments, **settings):
        raise ZeroDivisionError("a fault")

    monkeypatch.setattr("countless.cli.data.summarize_clusters", fail)
    with pytest.raises(ZeroDivisionError, match="a fault"):
        run("fit", flowers, "--exclude", "group")


def test_missing_extras_are_named(run, flowers, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.delitem(sys.modules, "countless._data.arrow", raising=False)
    result = run("fit", flowers, code=2)
    assert "reading text tables needs pyarrow: pip install 'countless[table]'" in result.stderr


@pytest.fixture
def cells(tmp_path):
    """Write a table of three kinds of cells in three batches; each batch has two of them."""
    rng = np.random.default_rng(3)
    lines = ["cell,batch,kind,x,y"]
    for batch, kinds in (("1", "ab"), ("2", "bc"), ("3", "ca")):
        shift = rng.normal(0, 0.1, 2)
        for _ in range(60):
            kind = rng.choice(list(kinds))
            at = rng.normal({"a": [0, 0], "b": [6, 0], "c": [0, 6]}[kind], 0.5) + shift
            lines.append(f"cell {len(lines)},{batch},{kind},{at[0]:.3f},{at[1]:.3f}")
    path = tmp_path / "cells.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.mark.parametrize("method", ["hdp-means", "kernel-hdp-means"])
def test_groups_share_clusters(run, cells, tmp_path, method):
    options = ("--id", "cell", "--compare", "kind", "--out", "o")
    if method != "hdp-means":  # the default where there are groups
        options += ("--method", method)
    result = run("fit", cells, "--group", "batch", *options)
    assert f"3 clusters, found by {method} at global penalty" in result.stdout
    assert "3 data sets, each with 2 of them" in result.stdout
    assert "adjusted Rand 1.00" in result.stdout
    record = json.loads((tmp_path / "o" / "run.json").read_text())
    assert record["result"]["groups"] == {
        "column": "batch",
        "n_local_clusters": {"1": 2, "2": 2, "3": 2},
    }
    labels = run("predict", "o/model.zip", cells, "--id", "cell").stdout
    assert labels == (tmp_path / "o" / "labels.csv").read_text()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--method", "k-means"), "k-means takes no groups; leave out --group"),
        (("--columns", "batch"), "column 'batch' cannot be both used and set aside by --group"),
        (("--penalty", "3"), "hdp-means takes no --penalty"),
    ],
)
def test_group_is_refused_where_it_means_nothing(run, cells, tmp_path, options, message):
    result = run("fit", cells, "--group", "batch", "--out", "o", *options, code=2)
    assert message in " ".join(result.stderr.split())
    assert not (tmp_path / "o").exists()


def test_rows_without_a_group_and_tables_without_the_column_are_named(run, cells, tmp_path):
    run("fit", cells, "--group", "batch", "--exclude", "cell,kind", "--out", "o")
    lines = cells.read_text().splitlines()
    lines[2] = lines[2].replace(",1,", ",,")
    cells.write_text("\n".join(lines) + "\n")
    fit = ("fit", cells, "--group", "batch", "--out", "p")
    for command in (fit, ("predict", "o/model.zip", cells)):
        result = run(*command, code=2)
        assert "group column 'batch', row 2 is empty" in " ".join(result.stderr.split())
    cells.write_text("x,y\n1,2\n3,4\n")
    assert "no column 'batch'" in run("predict", "o/model.zip", cells, code=2).stderr
