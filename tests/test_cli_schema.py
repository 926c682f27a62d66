"""What each command prints with --json is what its schema says."""

import json

import jsonschema
import numpy as np
import pytest
from click.testing import CliRunner
from PIL import Image

from countless._registry import ESTIMATORS
from countless.cli import main
from countless.cli.schema import commands_with_json, schema_of

SHORT = ("--sweeps", "6", "--chains", "2")
RUNS = {
    "auto": ("fit", "t.csv", "--exclude", "kind,batch"),
    "background": ("fit", "t.csv", "--compare", "kind", "--background", "0.1", "--penalty", "9"),
    "groups": ("fit", "t.csv", "--exclude", "kind", "--group", "batch"),
    "mixture": ("fit", "t.csv", "--columns", "a,b", "--method", "dp-mixture", *SHORT),
    "blocks": ("fit", "t.csv", "--columns", "a,b", "--method", "bicluster", *SHORT),
    "views": ("fit", "t.csv", "--method", "crosscat", *SHORT),
    "graph": ("fit", "edges.csv", "--method", "graph-dp-means"),
    "on disk": ("fit", "t.csv", "--columns", "a,b", "--out-of-core", "--penalty", "9"),
    "predict": ("predict", "model.zip", "t.csv"),
    "report": ("report", "model.zip", "t.csv"),
    "path": ("path", "t.csv", "--columns", "a,b"),
    "relate": ("relate", "t.csv", *SHORT),
    "impute": ("impute", "t.csv", "--out", "filled.csv", *SHORT),
    "segment": ("segment", "p.png", "--superpixels", "20"),
    "methods": ("methods",),
    "demo": ("demo",),
    "warm-up": ("warm-up",),
}


def invoke(*arguments):
    return CliRunner().invoke(main, list(arguments))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Return a folder with a table, a graph, a picture and a model."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    place = np.arange(60) % 3
    a, b = np.array([0, 9, 0])[place] + rng.normal(size=60), 9 * (place > 1) + rng.normal(size=60)
    lines = [f"{a[i]},{b[i]},{'uvw'[i % 3]},{'pq'[i % 2]}" for i in range(60)]
    (tmp_path / "t.csv").write_text("\n".join(["a,b,kind,batch", *lines]))
    (tmp_path / "edges.csv").write_text("source,target\na,b\nb,c\nc,a\nd,e\ne,f\nf,d\nc,d\n")
    picture = np.full((20, 30, 3), 30, dtype=np.uint8)
    picture[:, 15:] = 220
    Image.fromarray(picture).save(tmp_path / "p.png")
    out = ("--penalty", "9", "--columns", "a,b", "--out", "saved", "--quiet")
    assert invoke("fit", "t.csv", *out).exit_code == 0
    (tmp_path / "saved" / "model.zip").rename(tmp_path / "model.zip")
    return tmp_path


@pytest.mark.slow
@pytest.mark.parametrize("name", RUNS)
def test_output_follows_its_schema(name, folder, monkeypatch):
    if name == "warm-up":  # one estimator stands for all
        monkeypatch.setattr("countless._registry.ESTIMATORS", {"DPMeans": ESTIMATORS["DPMeans"]})
    done = invoke(*RUNS[name], "--json")
    assert done.exit_code == 0, done.stderr
    printed = json.loads(done.stdout)
    jsonschema.Draft202012Validator(schema_of(RUNS[name][0])).validate(printed)
    if "files" in printed:
        recorded = json.loads(next(folder.glob("*/run.json")).read_text())
        assert set(recorded) <= set(printed)


def test_every_command_that_prints_json_has_a_schema():
    printing = {
        name
        for name, command in main.commands.items()
        if any("--json" in option.opts for option in command.params)
    }
    assert printing == set(commands_with_json()) == {run[0] for run in RUNS.values()}


def test_schema_is_printed_and_valid():
    done = invoke("schema", "fit")
    jsonschema.Draft202012Validator.check_schema(json.loads(done.stdout))
    refused = invoke("schema", "export")
    assert refused.exit_code == 2
    assert refused.stderr.startswith("error: 'export' prints no JSON; fit, ")


def test_an_unknown_shape_is_refused():
    with pytest.raises(jsonschema.ValidationError, match="'rows' is a required property"):
        jsonschema.validate({"schema": 1, "source": "t", "page": "p"}, schema_of("report"))
