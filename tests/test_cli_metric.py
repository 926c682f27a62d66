"""``countless fit --metric``: tables of any columns, for methods that take pairs of rows."""

import csv

import numpy as np
import pytest
from click.testing import CliRunner

from countless.cli import main
from countless.cli.methods import METHODS


@pytest.fixture
def animals(tmp_path, monkeypatch):
    """Write two kinds of animals with a missing value in every third row."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    random = np.random.default_rng(0)
    lines = ["weight,colour,legs,kind"]
    for kind, (weight, colour, legs) in {
        "cat": (4, "grey", "four"),
        "bird": (1, "red", "two"),
    }.items():
        for row in range(24):
            cells = [f"{random.normal(weight, 0.3):.2f}", colour, legs]
            if row % 3 == 0:
                cells[random.integers(3)] = ""
            lines.append(",".join([*cells, kind]))
    path = tmp_path / "animals.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def run(*arguments, code=0):
    result = CliRunner().invoke(main, [str(argument) for argument in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == code, result.output
    return result


@pytest.mark.parametrize("method", ["diana", "linkage", "kernel-dp-means", "agglomerative"])
def test_mixed_tables_with_missing_values_are_clustered(animals, tmp_path, method):
    extra = ["--set", "n_clusters=2"] if method == "agglomerative" else []
    result = run(
        "fit", animals, "--method", method, "--metric", "mixed", "--compare", "kind", *extra
    )
    assert "difference over range; missing values left out" in result.stdout
    assert "equal or not; missing values left out" in result.stdout
    assert "adjusted Rand 1.00" in result.stdout
    with (tmp_path / "animals-clusters" / "labels.csv").open() as file:
        labels = [line["label"] for line in csv.DictReader(file)]
    assert labels == [labels[0]] * 24 + [labels[-1]] * 24


def test_without_a_method_one_that_takes_the_metric_is_picked(animals):
    result = run("fit", animals, "--metric", "mixed", "--compare", "kind")
    assert "2 clusters, found by kernel-dp-means" in result.stdout
    assert "adjusted Rand 1.00" in result.stdout


def test_every_method_that_takes_pairs_says_how():
    for name, method in METHODS.items():
        if method.pairs is not None:
            assert set(method.pairs) <= set(method.parameters()), name
            assert "precomputed" in method.pairs.values()


def test_other_metrics_compare_the_prepared_columns(animals):
    result = run(
        "fit",
        animals,
        "--method",
        "mst",
        "--metric",
        "cityblock",
        "--missing",
        "drop",
        "--exclude",
        "kind",
    )
    assert "2 clusters, found by mst" in result.stdout
    assert "standardised" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--metric", "mixed", "--method", "auto"], "auto compares rows in its own way"),
        (["--method", "diana", "--metric", "taxi"], "taxi"),
        (
            ["--method", "diana", "--metric", "mixed", "--set", "metric=hamming"],
            "leave out --set metric",
        ),
    ],
)
def test_what_cannot_be_compared_is_refused(animals, tmp_path, arguments, message):
    result = run("fit", animals, *arguments, code=2)
    assert message in result.output
    assert not (tmp_path / "animals-clusters").exists()


def test_rows_without_a_known_cell_in_common_are_named(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "missing.csv"
    path.write_text("a,b\n1,\n,2\n3,4\n5,6\n")
    result = run("fit", path, "--method", "diana", "--metric", "mixed", code=2)
    assert "row 1 and row 2 have no known column in common" in result.output
