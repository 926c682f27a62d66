"""What a person sees: the first lines, names of rows, hints, and a terminal of 80 columns."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

from countless.cli import main


@pytest.fixture
def show(tmp_path, monkeypatch):
    """Run a command in an empty directory on a terminal of 80 columns."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")

    def _show(*arguments):
        result = CliRunner().invoke(main, list(arguments), catch_exceptions=False)
        assert result.exit_code == 0, result.output
        return result

    return _show


@pytest.fixture
def animals(tmp_path):
    """Write a table with names, known groups, and a column name that is long."""
    rng = np.random.default_rng(3)
    lines = ["animal,length_from_the_nose_to_the_tip_of_the_tail,legs,class"]
    for row in range(80):
        kind = row % 2
        length = rng.normal(1 + 40 * kind, 0.1)
        name = f"animal with a very long name {row}" if kind else f"ant {row}"
        lines.append(f"{name},{length:.4f},{6 - 2 * kind},{kind}")
    (tmp_path / "animals.csv").write_text("\n".join(lines) + "\n")
    return "animals.csv"


def test_the_answer_stands_in_the_first_lines_after_the_columns(show, animals):
    lines = show("fit", animals, "--exclude", "class").stdout.splitlines()
    after = lines.index("") + 1
    assert lines[after].startswith("2 clusters, found by auto: ")
    assert lines[after + 1].startswith("Confidence 0.")
    assert max(map(len, lines)) <= 80


def test_a_column_of_names_names_the_typical_rows(show, animals):
    text = show("fit", animals, "--columns", "legs").stdout
    assert " ant " in text
    assert "animal with a v…" in text


def test_columns_that_may_be_known_groups_are_pointed_out(show, animals):
    hint = "column 'class' takes part; if it holds known groups"
    assert hint in show("fit", animals, "--out", "a").stderr
    assert hint in show("path", animals).stderr
    assert show("fit", animals, "--compare", "class", "--out", "b").stderr == ""


def test_at_a_terminal_columns_of_known_groups_are_asked_about(show, animals, monkeypatch):
    monkeypatch.setattr("countless.cli.console.Screen.can_ask", True)
    for answer in ("y", "n"):
        arguments = ["fit", animals, "--penalty", "3", "--out", answer]
        asked = CliRunner().invoke(main, arguments, input=f"{answer}\n")
        assert asked.exit_code == 0, asked.output
        assert "Column 'class' looks like known groups. Leave it out" in asked.stderr
        assert ("Agreement with class" in asked.stdout) == (answer == "y")


def test_path_lists_plateaus_above_the_null_reference(show, tmp_path):
    np.save(tmp_path / "noise.npy", np.random.default_rng(0).uniform(size=(300, 3)))
    lines = show("path", "noise.npy").stdout.splitlines()
    assert "1 cluster at penalty" in lines[lines.index("") + 1]
    assert lines[lines.index("") + 2].endswith("; no other number stands out")
    header = next(at for at, line in enumerate(lines) if "null width" in line)
    assert "∞" in lines[header + 1]
    assert "-" not in lines[header + 1]
    assert lines[header + 2] == ""


def test_infinite_ends_of_plateaus_are_null_in_json(show, tmp_path):
    def refuse(constant):
        raise AssertionError(f"{constant} is not JSON")

    np.save(tmp_path / "noise.npy", np.random.default_rng(0).uniform(size=(300, 3)))
    found = json.loads(show("path", "noise.npy", "--json").stdout, parse_constant=refuse)
    one = next(plateau for plateau in found["plateaus"] if plateau["n_clusters"] == 1)
    assert one["high"] is None
    text = show("fit", "noise.npy", "--method", "dp-means", "--json", "--out", "o").stdout
    for record in (text, (tmp_path / "o" / "run.json").read_text()):
        plateau = json.loads(record, parse_constant=refuse)["result"]["plateaus"][0]
        assert plateau["n_clusters"] == 1
        assert plateau["high"] is None
