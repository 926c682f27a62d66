"""Pictures on the command line: what is printed and written, and what is refused."""

import json
import re

import numpy as np
import pytest
from click.testing import CliRunner
from PIL import Image

from countless.cli import main


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Run the command in an empty directory with a picture of two halves, and what they are."""
    monkeypatch.chdir(tmp_path)
    halves = np.zeros((60, 80), dtype=np.uint8)
    halves[:, 40:] = 1
    Image.fromarray(np.where(halves[..., None], (250, 220, 40), (20, 60, 160)).astype("u1")).save(
        "halves.png"
    )
    np.save("truth.npy", np.stack([halves, halves * 0]))

    def _run(*arguments, code=0):
        result = CliRunner().invoke(main, ["segment", *map(str, arguments)])
        assert result.exit_code == code, result.output
        return result

    return _run


def pixels(path):
    with Image.open(path) as file:
        return np.asarray(file)


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_segments_are_drawn_scored_and_printed(run, tmp_path):
    result = run("halves.png", "--superpixels", 40, "--truth", "truth.npy")
    assert "halves.png: 80 x 60 pixels," in result.stdout
    assert "2 segments, found by affinity" in result.stdout
    assert re.search(r"0 +\d{4} +\d\d % +#1[0-9a-f]{5}", result.stdout)
    assert "Agreement with 2 people: probabilistic Rand 0.7" in result.stdout
    out = tmp_path / "halves-segments"
    assert names(out) == ["colors.png", "labels.png", "run.json", "segments.png"]
    labels = pixels(out / "labels.png")
    assert labels.dtype == np.uint16
    assert (labels == np.load("truth.npy")[0]).mean() > 0.95
    color = pixels(out / "colors.png")[5, 5].astype(int)
    assert abs(color - (20, 60, 160)).max() < 12
    assert pixels(out / "segments.png").shape == (60, 80, 3)
    record = json.loads((out / "run.json").read_text())
    assert record["method"]["parameters"]["prior"] == {"class": "DirichletProcess", "alpha": 1.0}
    assert record["result"]["n_segments"] == 2
    assert record["result"]["scores"]["n_segments"] == [2, 1]
    assert record["arguments"]["superpixels"] == 40
    assert len(record["input"]["sha256"]) == 64


def test_methods_settings_and_the_form_of_labels_can_be_chosen(run, tmp_path):
    for method in ("graph", "ncut"):
        options = ("--method", method, "--superpixels", 40, "--labels", "npy", "--json")
        record = json.loads(run("halves.png", *options, "--out-dir", method).stdout)
        assert record["result"]["n_segments"] == 2
        assert names(tmp_path / method) == ["colors.png", "labels.npy", "run.json", "segments.png"]
        assert np.load(tmp_path / method / "labels.npy").shape == (60, 80)
    options = ("--method", "graph", "--superpixels", 40, "--set", "penalty=0", "--json")
    assert json.loads(run("halves.png", *options).stdout)["result"]["n_segments"] == 1


def test_nothing_is_overwritten_unless_asked_and_nothing_old_is_left(run, tmp_path):
    out = tmp_path / "out"
    run("halves.png", "--superpixels", 20, "--labels", "npy", "--out", out, "-q")
    refused = run("halves.png", "--superpixels", 20, "--out", out, code=2)
    assert "exists; say --force" in refused.stderr
    run("halves.png", "--superpixels", 20, "--out", out, "--force", "-q")
    assert names(out) == ["colors.png", "labels.png", "run.json", "segments.png"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["missing.jpg"], "cannot read missing.jpg"),
        (["truth.npy"], "truth.npy is no picture"),
        (["halves.png", "--truth", "halves.txt"], "a ground truth is one of"),
        (
            ["halves.png", "--truth", "other.npy"],
            "3 x 2 pixels, and halves.png 80 x 60",
        ),
        (["halves.png", "--method", "graph", "--prior", "dp"], "--prior is for affinity"),
        (["halves.png", "--scale", "-1"], "scale must be a positive number; got -1.0"),
        (["halves.png", "--edge-weight", "nan"], "edge_weight must be a number from 0; got nan"),
        (["halves.png", "--set", "penalty=1"], "affinity has no parameter 'penalty'"),
        (["halves.png", "--set", "damping=2"], "damping must be from 0 to below 1; got 2"),
    ],
    ids=lambda value: "" if isinstance(value, str) else "_".join(value),
)
def test_what_cannot_be_done_is_one_line_and_writes_nothing(run, tmp_path, arguments, message):
    np.save("other.npy", np.zeros((2, 3), dtype=int))
    before = names(tmp_path)
    result = run(*arguments, code=2)
    assert message in result.stderr
    assert result.stderr.count("\n") == 1
    assert names(tmp_path) == before
