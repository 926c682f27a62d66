"""``countless report``, ``fit --report`` and ``fit --edits``, through real files."""

import json
import re

import numpy as np
import pytest
from click.testing import CliRunner

from countless import load_model
from countless.cli import main

N = 90


@pytest.fixture
def table(tmp_path, monkeypatch):
    """Three clusters, a column of colors, names of rows, and a missing value."""
    monkeypatch.chdir(tmp_path)
    random = np.random.default_rng(0)
    group = np.arange(N) % 3
    lines = ["name,length,width,color"]
    for row in range(N):
        length, width = 10 * group[row] + random.normal(), 5 * (group[row] == 1) + random.normal()
        color = ("red", "blue", "<b>green</b>")[group[row]]
        lines.append(f"n{row},{length if row else ''},{width},{color}")
    (tmp_path / "t.csv").write_text("\n".join(lines) + "\n")
    return tmp_path


def run(*words, code=0):
    done = CliRunner().invoke(main, list(words))
    assert done.exit_code == code, done.output
    return done


def inside(path):
    text = path.read_text(encoding="utf-8")
    return json.loads(re.search(r'json" id="data">(.*?)</script>', text)[1])


FIT = ("fit", "t.csv", "--id", "name", "--method", "dp-means", "--missing", "drop")


def test_the_page_of_a_fit_and_of_its_model(table):
    run(*FIT, "--report", "--out", "out")
    page = inside(table / "out" / "report.html")
    assert page["verdict"]["headline"] == "3 clusters"
    assert page["source"] | {"rows": N, "rows_used": N - 1} == page["source"]
    assert page["rows"]["name"][0] == "n1"
    assert page["rows"]["number"][0] == 2
    names = [column["name"] for column in page["columns"]]
    assert names == ["length", "width", "color"]
    gaps = {one["name"]: one["gaps"] for one in page["treatment"]}
    assert gaps == {"name": 0, "length": 1, "width": 0, "color": 0}
    command = page["repeat"]["command"]
    assert (
        command
        == "countless fit t.csv --method dp-means --out out --report --id name --missing drop"
    )
    record = json.loads((table / "out" / "run.json").read_text())
    assert "report.html" in record["files"]

    run("report", "out/model.zip", "t.csv", "--id", "name", "--title", "Ours")
    again = inside(table / "t-report.html")
    assert again["title"] == "Ours"
    for part in ("atoms", "rows", "columns", "maps", "tree", "path"):
        assert again[part] == page[part], part
    done = run("report", "out/model.zip", "t.csv", code=2)
    assert "t-report.html exists" in done.stderr


def test_edits_give_the_named_clusters_everywhere(table):
    run(*FIT, "--out", "first")
    labels = (table / "first" / "labels.csv").read_text()
    steps = [
        {"action": "merge", "clusters": [0, 2]},
        {"action": "rename", "cluster": 0, "name": "both \x1b[31m"},
    ]
    edits = {"format": "countless edits", "version": 1, "edits": steps}
    (table / "edits.json").write_text(json.dumps(edits))
    done = run(*FIT, "--edits", "edits.json", "--out", "second", "--report")
    assert "2 clusters, found by dp-means and edited (2 edits)" in done.stdout
    assert "0 both \\x1b[31m" in done.stdout
    model = load_model(table / "second" / "model.zip").estimator
    assert model.n_clusters_ == 2
    assert model.edits_["edits"] == steps
    assert inside(table / "second" / "report.html")["names"] == model.cluster_names_
    new = [line.split(",")[1] for line in (table / "second" / "labels.csv").read_text().split()[1:]]
    old = [line.split(",")[1] for line in labels.split()[1:]]
    merged = {"": "", "0": "0", "2": "0"}
    assert [merged.get(label, "1") for label in old] == new
    run("predict", "second/model.zip", "t.csv", "--id", "name", "--out", "new.csv")
    assert (table / "new.csv").read_text() == (table / "second" / "labels.csv").read_text()


def test_crosscat_has_a_page_with_its_views(table):
    run("fit", "t.csv", "--id", "name", "--method", "crosscat", "--report", "--out", "out",
        "--set", "n_sweeps=10", "--set", "n_chains=1")  # fmt: skip
    page = inside(table / "out" / "report.html")
    assert page["dependence"]["n_columns"] == 3
    assert {one["kind"] for one in page["labelings"]} == {"view"}


def test_stability_is_on_the_page_if_asked(table):
    run(*FIT, "--report", "--bootstrap", "3", "--out", "out")
    assert inside(table / "out" / "report.html")["stability"]["n_draws"] == 3


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--bootstrap", "5"), "--bootstrap is for --report"),
        (("--edits", "none.json"), "--edits: cannot read none.json: No such file"),
        (("--edits", "t.csv"), "--edits: t.csv is not JSON"),
        (("--report", "--out-of-core"), "--report cannot be combined with --out-of-core"),
        (("--edits", "e.json", "--method", "crosscat"), "crosscat takes no --edits"),
    ],
)
def test_what_cannot_be_is_one_line(table, words, message):
    done = run("fit", "t.csv", *words, "--out", "out", code=2)
    assert message in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (table / "out").exists()


def test_edits_of_other_clusters_are_refused(table):
    clusters = [{"cluster": 0, "name": "", "rows": 4}]
    edits = {"format": "countless edits", "version": 1, "edits": [], "clusters": clusters}
    (table / "edits.json").write_text(json.dumps(edits))
    done = run(*FIT, "--edits", "edits.json", "--out", "out", code=2)
    assert "the edits were made on another clustering" in done.stderr
    assert not (table / "out").exists()


def test_a_missing_extra_is_named_before_the_fit(table, monkeypatch):
    import importlib.util

    found = importlib.util.find_spec
    hidden = lambda name, *rest: None if name == "bokeh" else found(name, *rest)  # noqa: E731
    monkeypatch.setattr(importlib.util, "find_spec", hidden)
    done = run(*FIT, "--report", code=2)
    assert "pip install 'countless[report]'" in done.stderr


TEXTS = ("a goal, the puck", "orbit of the moon", "wheels and brakes")


def test_texts_name_the_clusters(table):
    texts = [TEXTS[row % 3] for row in range(N)]
    (table / "texts.txt").write_text("\ufeff" + "\r\n".join(texts) + "\r\n", encoding="utf-8")
    done = run(*FIT, "--texts", "texts.txt", "--out", "out")
    record = json.loads((table / "out" / "run.json").read_text())
    clusters = {one["label"]: one for one in record["result"]["clusters"]}
    # Row 1 was left out, so that cluster 0 begins with row 2.
    words = [{word["word"] for word in clusters[label]["words"]} for label in range(3)]
    assert words == [{"orbit", "moon"}, {"wheels", "brakes"}, {"goal", "puck"}]
    for label in range(3):
        assert clusters[label]["name"] in words[label]
        assert f"{label} {clusters[label]['name']}" in done.stdout
    assert "brakes, wheels" in done.stdout or "wheels, brakes" in done.stdout


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"only one\n", "texts.txt has 1 line for 90 rows"),
        (b"fine\n" * 4 + b"\xff\n" + b"fine\n" * 85, "texts.txt, line 5 is not UTF-8"),
        (None, "cannot read texts.txt"),
    ],
)
def test_wrong_texts_are_one_line_and_nothing_is_written(table, content, message):
    if content is not None:
        (table / "texts.txt").write_bytes(content)
    done = run(*FIT, "--texts", "texts.txt", "--out", "out", code=2)
    assert message in done.stderr
    assert not (table / "out").exists()
    done = run(*FIT, "--texts", "t.csv", "--out-of-core", "--out", "out", code=2)
    assert "--texts cannot be combined with --out-of-core" in done.stderr
