"""The data of reports and their page, without a browser."""

import builtins
import json
import re

import networkx as nx
import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from sklearn.cluster import HDBSCAN, KMeans
from sklearn.datasets import make_blobs

from countless import (
    AutoClustering,
    BayesianHierarchicalClustering,
    DPMeans,
    DPMixture,
    GraphDPMeans,
    HDPMeans,
    LinkageClustering,
    SpectralDPMeans,
    apply_edits,
    bootstrap,
    load_model,
    report,
    save_model,
)
from countless._report.data import report_data
from countless._report.page import embedded, page_bytes
from countless._report.sections import match_labels
from countless._report.sheet import SHEET, choose_rows, encoded, plain_numbers, sheet_of

X, TRUTH = make_blobs(300, centers=4, cluster_std=0.6, n_features=3, random_state=3)


def data_of(model, table=X, **settings):
    labels = np.asarray(model.labels_)
    return report_data(model, sheet_of(table, labels, source="t"), labels, **settings)


def inside(page):
    """Return the data in a page."""
    text = re.search(
        r'<script type="application/json" id="data">(.*?)</script>', page.read_text("utf-8")
    )
    return json.loads(text[1])


@pytest.fixture(scope="module")
def model():
    return DPMeans(random_state=0).fit(X)


def test_the_module_documents_every_part_of_the_data(model):
    from countless._report import data

    documented = set(re.findall(r"``(\w+)``", data.__doc__))
    assert set(data_of(model)) <= documented


def test_data_are_json_values_without_constants(model):
    found = data_of(model)
    assert json.loads(json.dumps(found, allow_nan=False)) == found


def test_the_path_has_the_penalties_of_every_number(model):
    path = data_of(model)["path"]
    for k, low, high in zip(path["k"], path["low"], path["high"], strict=True):
        penalty = low * 1.5 if high is None else (low + high) / 2
        assert model.path_.n_clusters_at(penalty) == k
    assert path["marked"][0]["k"] == model.n_clusters_


MODELS = {
    "auto": lambda: AutoClustering(["round", "connected"], random_state=0).fit(X),
    "mixture": lambda: DPMixture(n_sweeps=20, n_chains=2, random_state=0).fit(X),
    "map": lambda: DPMixture(inference="map", random_state=0).fit(X),
    "linkage": lambda: LinkageClustering().fit(X),
    "bhc": lambda: BayesianHierarchicalClustering().fit(X),
    "spectral": lambda: SpectralDPMeans(random_state=0).fit(X),
    "hdp": lambda: HDPMeans().fit(X, groups=np.arange(300) % 3),
    "k-means": lambda: KMeans(4, n_init=1, random_state=0).fit(X),
    "hdbscan": lambda: HDBSCAN(min_cluster_size=15, copy=True).fit(X),
}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*chains disagree")
@pytest.mark.parametrize("name", MODELS)
def test_any_clustering_has_a_page(name):
    fitted = MODELS[name]()
    found = data_of(fitted)
    assert sum(found["atoms"]["rows"]) == 300
    assert found["verdict"]["headline"].startswith(str(len(set(fitted.labels_) - {-1})))
    assert len(page_bytes(found)) < 2_000_000
    assert (found["tree"] is not None) == (
        name in ("linkage", "auto") and found["path"] is not None
    )
    assert found["editable"] == hasattr(fitted, "predict")
    assert (found["posterior"] is not None) == (name == "mixture")
    assert (found["candidates"] is not None) == (name == "auto")
    assert (found["groups"] is not None) == (name == "hdp")


def test_a_graph_has_a_page_without_a_map():
    graph = nx.planted_partition_graph(4, 15, 0.7, 0.02, seed=0)
    fitted = GraphDPMeans(random_state=0).fit(graph)
    found = data_of(fitted, graph)
    assert found["maps"] == []
    assert found["columns"] == []
    assert data_of(fitted, graph, coordinates=np.zeros((60, 2)))["maps"][0]["x"] == [0] * 60


def test_a_page_is_small_and_says_that_it_is_a_sample(tmp_path):
    rows = make_blobs(30_000, centers=5, n_features=20, random_state=0)[0]
    fitted = KMeans(5, n_init=1, random_state=0).fit(rows)
    page = report(fitted, rows, tmp_path / "page.html")
    assert page.stat().st_size < 5_000_000
    found = inside(page)
    assert found["source"]["rows_used"] == sum(found["atoms"]["rows"]) == 30_000
    assert found["source"]["rows_shown"] == len(found["rows"]["number"]) == SHEET.rows
    # All columns, at full length.
    page = report(fitted, rows[:20_000], tmp_path / "short.html")
    assert page.stat().st_size < 5_000_000
    found = inside(page)
    assert found["source"]["rows_shown"] == 20_000
    assert found["source"]["columns_shown"] >= 15


def test_a_wide_table_shows_the_columns_that_tell_clusters_apart():
    random = np.random.default_rng(0)
    wide = random.normal(size=(400, 3000))
    labels = np.arange(400) % 2
    wide[:, 1234] += 6 * labels
    sheet = sheet_of(wide, labels, source="wide")
    assert len(sheet.columns) == 60
    assert "column 1235" in {column.name for column in sheet.columns}
    sparse = sheet_of(sp.csr_array(np.where(wide > 1, wide, 0)), labels, source="sparse")
    assert "column 1235" in {column.name for column in sparse.columns}


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_a_data_frame_keeps_names_levels_and_missing_values(frame):
    cells = {"size": [1.0, 2.0, None, 4.0], "color": ["red", None, "blue", "red"]}
    sheet = sheet_of(frame(cells), np.array([0, 0, 1, 1]), source="t")
    size, color = sheet.columns
    np.testing.assert_array_equal(size.values, [1, 2, np.nan, 4])
    assert [color.levels[code] if code >= 0 else None for code in color.values] == cells["color"]
    assert np.isfinite(encoded(sheet.columns)[0]).all()


def test_a_sample_has_rows_of_small_clusters():
    labels = np.zeros(50_000, dtype=int)
    labels[[7, 77, 777]] = 3
    shown = choose_rows(labels)
    assert len(shown) == SHEET.rows == len(np.unique(shown))
    assert {7, 77, 777} <= set(shown.tolist())


@pytest.mark.parametrize("scale", [1e-300, 1e-12, 1e-3, 1.0, 1e6, 1e300])
def test_numbers_keep_four_digits_of_their_spread(scale):
    values = np.random.default_rng(0).normal(size=200) * scale
    with np.errstate(over="ignore"):
        found = np.array(plain_numbers(values), dtype=float)
    assert np.abs(found / scale - values / scale).max() < 1e-3


def test_clusters_are_matched_to_those_they_share_most_rows_with():
    random = np.random.default_rng(0)
    labels = random.integers(0, 5, 200)
    shuffled = random.permutation(5)[labels]
    np.testing.assert_array_equal(match_labels(shuffled, labels), labels)
    finer = 2 * shuffled + random.integers(0, 2, 200)
    matched = match_labels(finer, labels)
    assert len(np.unique(matched)) == len(np.unique(finer))
    assert (matched == labels).mean() > 0.5
    assert match_labels(np.array([-2, 0]), np.array([1, 1])).tolist() == [-2, 1]


HOSTILE = "</script><!-- <script>\u2028\u2029&amp;"


def test_data_cannot_end_their_element():
    text = embedded({"name": HOSTILE, "lone": "\ud800"})
    assert not set("<>&\u2028\u2029") & set(text)
    assert json.loads(text)["name"] == HOSTILE


def test_the_title_is_escaped_and_scripts_are_named_by_the_policy(model):
    page = page_bytes(data_of(model, title=HOSTILE)).decode()
    assert "&lt;/script&gt;&lt;!-- &lt;script&gt;" in page
    assert page.count("<script>") == 3
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)[1]
    assert policy.count("'sha256-") == 3
    assert "default-src 'none'" in policy
    assert "unsafe-eval" not in policy
    assert "script-src 'unsafe-inline'" not in policy
    assert not re.search(r'(?:src|href)="(?!#)', page.split("<script")[0])


def test_our_scripts_make_no_markup():
    from importlib.resources import files

    for script in (files("countless._report") / "assets").iterdir():
        text = script.read_text("utf-8")
        used = re.findall(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(", text)
        assert used in ([], ["innerHTML"]), script.name  # once in a comment that refuses it


def test_stability_is_shown_for_the_models_own_clusters(model, tmp_path):
    # The labels are renamed, so that the order of appearance is not theirs.
    renamed = KMeans(4, n_init=1, random_state=0).fit(X)
    stability = bootstrap(renamed, X, n_draws=5, random_state=0)
    found = data_of(renamed, stability=stability)["stability"]
    for one in found["clusters"]:
        own = stability.labels[np.flatnonzero(renamed.labels_ == one["cluster"])[0]]
        assert one["jaccard"] == pytest.approx(stability.stability[own], abs=1e-3)


def test_an_edited_model_says_so(model, tmp_path):
    steps = [
        {"action": "merge", "clusters": [0, 1]},
        {"action": "rename", "cluster": 0, "name": "A"},
    ]
    edited = apply_edits(model, {"format": "countless edits", "version": 1, "edits": steps})
    found = data_of(edited)
    assert found["edits"]["edits"] == steps
    assert not found["editable"]
    assert found["names"][edited.labels_[np.flatnonzero(model.labels_ == 0)[0]]] == "A"
    assert "edited by hand" in found["verdict"]["lines"][0]
    save_model(tmp_path / "model.zip", edited)
    loaded = load_model(tmp_path / "model.zip").estimator
    page = report(loaded, X, tmp_path / "page.html")
    assert inside(page)["names"] == found["names"]


def test_a_model_from_a_file_has_the_path_of_the_rows(model, tmp_path):
    save_model(tmp_path / "model.zip", model)
    loaded = load_model(tmp_path / "model.zip").estimator
    found = inside(report(loaded, X, tmp_path / "page.html"))
    assert found["path"] == data_of(model)["path"]
    assert found["tree"] == data_of(model)["tree"]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"columns": ["a"]}, "columns has 1 names for 3 columns"),
        ({"rows": ["a"]}, "rows has 1 names for 300 rows"),
        ({"coordinates": np.zeros((2, 2))}, r"coordinates must have the shape \(300, 2\)"),
        ({"coordinates": np.full((300, 2), np.nan)}, "coordinates: row 0 is not finite"),
        ({"n_bootstrap": -1}, "n_bootstrap must be an integer from 0 up"),
    ],
)
def test_bad_input_is_named_and_nothing_is_written(model, tmp_path, settings, message):
    with pytest.raises(ValueError, match=message):
        report(model, X, tmp_path / "page.html", **settings)
    assert not list(tmp_path.iterdir())


def test_nothing_is_overwritten_without_force(model, tmp_path):
    path = tmp_path / "page.html"
    path.write_text("mine")
    with pytest.raises(ValueError, match="exists"):
        report(model, X, path)
    assert path.read_text() == "mine"
    report(model, X, path, force=True)


def test_a_missing_extra_is_named(model, tmp_path, monkeypatch):
    usual = builtins.__import__

    def without(name, *rest, **more):
        if name == "jinja2":
            raise ImportError("no jinja2")
        return usual(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ImportError, match=r"pip install 'countless\[report\]'"):
        report(model, X, tmp_path / "page.html")
