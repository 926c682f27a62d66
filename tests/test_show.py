"""Results in a terminal and in a notebook."""

import json

import matplotlib as mpl
import networkx as nx
import numpy as np
import pandas as pd
import pytest
from sklearn.cluster import KMeans
from sklearn.datasets import make_blobs, make_moons

from countless import (
    AutoClustering,
    CrossCat,
    DPMeans,
    DPMixture,
    GraphDPMeans,
    LinkageClustering,
    SpectralDPMeans,
    bootstrap,
)
from countless._show import MOST_RECORDS, Records, html_table, text_table
from countless.plot import PenaltyPathDisplay, StabilityDisplay

mpl.use("Agg")

X = make_blobs(200, centers=4, cluster_std=0.6, random_state=3)[0]


@pytest.fixture(scope="module")
def paths():
    moons = make_moons(200, noise=0.05, random_state=0)[0]
    graph = nx.planted_partition_graph(4, 15, 0.7, 0.02, seed=0)
    return {
        "DPMeans": DPMeans(random_state=0).fit(X),
        "LinkageClustering": LinkageClustering().fit(X),
        "SpectralDPMeans": SpectralDPMeans(random_state=0).fit(moons),
        "GraphDPMeans": GraphDPMeans(random_state=0).fit(graph),
    }


@pytest.mark.parametrize(
    "name", ["DPMeans", "LinkageClustering", "SpectralDPMeans", "GraphDPMeans"]
)
def test_a_path_shows_its_plateaus_in_a_few_short_lines(paths, name):
    model = paths[name]
    path = model.path_
    lines = path.summary().splitlines()
    assert f"{path.n_clusters} clusters at penalty" in lines[0]
    assert len(lines) <= MOST_RECORDS + 3
    assert max(map(len, lines)) <= 100
    assert int(lines[2].split()[0]) == path.plateaus[0].n_clusters
    assert repr(path.plateaus) == "\n".join(lines[1:])
    assert path._repr_html_().count("<tr>") == len([one for one in lines[1:] if "more" not in one])
    # They are still lists of plateaus.
    assert path.plateaus[:1] == [path.plateaus[0]]
    assert isinstance(path.plot(), PenaltyPathDisplay)
    assert isinstance(PenaltyPathDisplay.from_estimator(model), PenaltyPathDisplay)


def test_candidates_are_a_table():
    model = AutoClustering(["round", "connected"], random_state=0).fit(X)
    heading, *lines = repr(model.candidates_).splitlines()
    assert heading.split() == ["method", "n_clusters", "evidence", "agreement", "seconds", "note"]
    assert len(lines) == len(model.candidates_) == 3
    assert json.loads(json.dumps(model.candidates_)) == [list(one) for one in model.candidates_]


def test_a_posterior_shows_the_probability_of_every_number():
    model = DPMixture(n_sweeps=40, n_chains=2, random_state=0).fit(X)
    posterior = model.posterior_
    shown = posterior.summary()
    best = int(posterior.n_clusters_distribution().argmax())
    assert f"{best}  " in shown
    assert "R-hat" in shown
    assert posterior._repr_html_().startswith("<div>")
    assert posterior.plot().ax_.get_xlabel() == "number of clusters"
    one = DPMixture(inference="map", random_state=0).fit(X).posterior_
    assert "R-hat" not in one.summary()


def test_crosscat_shows_its_number_of_views():
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(40, 3)), columns=list("abc"))
    posterior = CrossCat(n_sweeps=10, n_chains=1, random_state=0).fit(frame).posterior_
    assert repr(posterior).startswith("<CrossCatPosterior: 1 chains of 5 draws of 3 columns")
    assert "n_views" in posterior.summary()


def test_stability_shows_every_cluster():
    found = bootstrap(KMeans(4, n_init=1), X, n_draws=4, random_state=0)
    assert len(found.summary().splitlines()) == 2 + 4
    display = StabilityDisplay.from_estimator(KMeans(4, n_init=1), X, n_draws=4, random_state=0)
    np.testing.assert_array_equal(display.stability.draws, found.draws)
    assert isinstance(found.plot(), StabilityDisplay)


def test_cells_are_text():
    assert "<script>" not in html_table(["<script>"], [["<script>"]])
    assert text_table(["a"], []) == "a"
    assert repr(Records()) == "[]"
    assert Records()._repr_html_() == html_table([], [])
