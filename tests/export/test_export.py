"""Exported models give the labels of the model itself, row for row, in three other programs."""

import runpy
import subprocess
import sys

import duckdb
import numpy as np
import onnxruntime
import pyarrow as pa
import pytest
from click.testing import CliRunner
from sklearn.cluster import KMeans

from countless import AutoClustering, DPMeans, HDPMeans, SpectralDPMeans, save_model
from countless._data.table import Numbers, Table, Words
from countless._errors import InputError
from countless._export import FORMATS, export
from countless._export.onnx import NO_LABEL
from countless.cli import main
from countless.preprocess.prepare import CategoricalStep, NumericStep, Preparation
from countless.serialize.model_file import SavedModel

NAMES = ['width "cm"', "o'clock", "kind"]
LEVELS = ("it's", "b", "never seen")


def draw(n_rows, seed, dtype=np.float64, missing=0.0):
    """Return a table of two numbers and a category, and its columns as Python values."""
    rng = np.random.default_rng(seed)
    place = rng.integers(3, size=n_rows)
    x = (np.array([0.0, 40.0, 80.0])[place] + rng.normal(size=n_rows) * 9).astype(dtype)
    y = (1e6 + np.array([0.0, 3.0, 0.0])[place] + rng.normal(size=n_rows)).astype(dtype)
    codes = np.where(rng.random(n_rows) < 0.01, 2, place % 2)
    empty = rng.random((3, n_rows)) < missing
    x[empty[0]], y[empty[1]] = np.nan, np.nan
    codes[empty[2]] = -1
    columns = {NAMES[0]: Numbers(x), NAMES[1]: Numbers(y), NAMES[2]: Words(codes, LEVELS)}
    words = np.array([*LEVELS, ""])[codes]
    return Table("drawn", columns, n_rows), (x, y, words)


def preparation(missing, dtype="float64"):
    return Preparation(
        (
            NumericStep(NAMES[0], fill=41.5, center=40.1, scale=33.3),
            NumericStep(NAMES[1], fill=1e6, center=1e6 + 1, scale=1.7),
            CategoricalStep(NAMES[2], "b", ("b", "it's")),
        ),
        missing,
        dtype,
    )


def by_sql(text, columns):
    x, y, words = columns
    table = pa.table({NAMES[0]: x, NAMES[1]: y, NAMES[2]: words, "n": np.arange(len(x))})
    connection = duckdb.connect()
    connection.register("rows", table)
    found = connection.sql(text).order("n")
    assert found.columns == [*NAMES, "n", "cluster"]
    return [row[-1] for row in found.fetchall()]


def by_python(text, columns, tmp_path):
    path = tmp_path / "model.py"
    path.write_text(text, encoding="utf-8")
    cluster = runpy.run_path(str(path))["cluster"]
    return [cluster(dict(zip(NAMES, row, strict=True))) for row in zip(*columns, strict=True)]


def by_onnx(content, columns):
    session = onnxruntime.InferenceSession(content)
    feed = {
        name: (column.astype(object) if column.dtype.kind == "U" else column)[:, None]
        for name, column in zip(NAMES, columns, strict=True)
    }
    labels = session.run(None, feed)[0].tolist()
    return [None if label == NO_LABEL else label for label in labels]


def expected_labels(estimator, steps, table):
    prepared = steps.apply(table, "drop" if steps.missing == "error" else None)
    labels = np.full(table.n_rows, None, dtype=object)
    labels[prepared.rows] = estimator.predict(prepared.matrix).tolist()
    return labels.tolist()


@pytest.mark.parametrize(
    ("estimator", "missing", "dtype"),
    [
        (DPMeans(penalty=30.0), "error", "float64"),
        (DPMeans(penalty=30.0, background=0.05), "impute", "float64"),
        (DPMeans(penalty=30.0), "drop", "float32"),
        (DPMeans(penalty=3.0, divergence="cosine"), "impute", "float32"),
        (HDPMeans(local_penalty=3.0, global_penalty=30.0), "drop", "float64"),
        (KMeans(5, n_init=1, random_state=0), "impute", "float64"),
    ],
    ids=lambda value: type(value).__name__ if hasattr(value, "fit") else str(value),
)
def test_labels_are_those_of_the_model(estimator, missing, dtype, tmp_path):
    steps = preparation(missing, dtype)
    table, _ = draw(400, 0, dtype)
    estimator.fit(steps.apply(table).matrix)
    new, columns = draw(3_000, 1, dtype, missing=0.02)
    expected = expected_labels(estimator, steps, new)
    assert len(set(expected)) > 2
    model = SavedModel(estimator, steps)
    assert by_sql(export(model, "sql"), columns) == expected
    assert by_python(export(model, "python"), columns, tmp_path) == expected
    assert by_onnx(export(model, "onnx"), columns) == expected


@pytest.mark.parametrize("divergence", ["kl", "itakura-saito", "logistic"])
def test_divergences_of_arrays(divergence, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.uniform(0.05, 0.35, size=(600, 4)) + 0.6 * np.eye(4)[rng.integers(4, size=600)]
    model = DPMeans(penalty=5.0, divergence=divergence).fit(X)
    assert model.n_clusters_ > 2
    expected = model.predict(X).tolist()
    saved, names = SavedModel(model, None), [f"x{j}" for j in range(4)]
    connection = duckdb.connect()
    connection.register("rows", pa.table({**dict(zip(names, X.T, strict=True))}))
    assert [row[-1] for row in connection.sql(export(saved, "sql")).fetchall()] == expected
    session = onnxruntime.InferenceSession(export(saved, "onnx"))
    feed = {name: column[:, None] for name, column in zip(names, X.T, strict=True)}
    assert session.run(None, feed)[0].tolist() == expected
    (tmp_path / "m.py").write_text(export(saved, "python"))
    cluster = runpy.run_path(str(tmp_path / "m.py"))["cluster"]
    assert [cluster(dict(zip(names, row, strict=True))) for row in X.tolist()] == expected


def test_infinite_values_have_no_cluster(tmp_path):
    model = SavedModel(DPMeans(penalty=4.0).fit([[0.0], [1.0], [9.0]]), None)
    values = np.array([0.0, np.inf, -np.inf, 9.0])
    connection = duckdb.connect()
    connection.register("rows", pa.table({"x0": values}))
    found = [row[-1] for row in connection.sql(export(model, "sql")).fetchall()]
    assert found == [0, None, None, 1]
    session = onnxruntime.InferenceSession(export(model, "onnx"))
    assert session.run(None, {"x0": values[:, None]})[0].tolist() == [0, NO_LABEL, NO_LABEL, 1]


def test_automatic_choice_of_round_clusters_is_exported():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(at, 1, size=(60, 2)) for at in (0, 12)])
    model = AutoClustering(candidates=["round"]).fit(X)
    assert "DPMeans" in export(SavedModel(model, None), "sql")


@pytest.mark.parametrize("to", FORMATS)
def test_other_rules_are_refused(to):
    X = np.random.default_rng(0).normal(size=(30, 2))
    with pytest.raises(InputError, match="SpectralDPMeans are not those of nearest centers"):
        export(SavedModel(SpectralDPMeans(penalty=0.5).fit(X), None), to)
    grouped = preparation("error")
    grouped = Preparation(grouped.steps, "error", "float64", "batch")
    with pytest.raises(InputError, match="'batch' are labelled jointly"):
        export(SavedModel(DPMeans(penalty=1.0).fit(np.eye(4)), grouped), to)


def test_command_writes_a_file_or_prints(tmp_path):
    save_model(tmp_path / "model.zip", DPMeans(penalty=4.0).fit([[0.0], [1.0], [9.0]]))
    run, model = CliRunner().invoke, str(tmp_path / "model.zip")
    assert run(main, ["export", model, "--to", "sql"]).output.startswith("-- The cluster")
    refused = run(main, ["export", model, "--to", "onnx"])
    assert (refused.exit_code, refused.output) == (
        2,
        "error: --to onnx writes bytes: say --out FILE\n",
    )
    out = tmp_path / "model.py"
    assert run(main, ["export", model, "--to", "python", "--out", str(out)]).exit_code == 0
    again = run(main, ["export", model, "--to", "python", "--out", str(out)])
    assert again.exit_code == 2
    assert "--force" in again.output
    table = tmp_path / "new.csv"
    table.write_text("x0\n0.5\n8\n\n")
    done = subprocess.run([sys.executable, "-I", out, table], capture_output=True, text=True)
    assert done.stdout == "row,label\n1,0\n2,1\n"
