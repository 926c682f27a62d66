"""The pictures of a posterior show what its draws say."""

import sys

import numpy as np
import pytest

matplotlib = pytest.importorskip("matplotlib", reason="pictures need matplotlib")
matplotlib.use("Agg")

import matplotlib.pyplot as plt  # noqa: E402
from matplotlib.colors import to_hex  # noqa: E402
from sklearn.datasets import make_blobs  # noqa: E402
from sklearn.exceptions import NotFittedError  # noqa: E402

from countless import DPMixture  # noqa: E402
from countless._mcmc.posterior import Posterior  # noqa: E402
from countless.plot import (  # noqa: E402
    ClusterCountDisplay,
    ComponentsDisplay,
    SimilarityDisplay,
    TraceDisplay,
)
from countless.plot.style import CHOSEN  # noqa: E402


@pytest.fixture(scope="module")
def posterior():
    random = np.random.default_rng(0)
    labels = np.repeat([0, 1, 2], 20) + np.zeros((2, 50, 1), dtype=int)
    labels[:, :, 0] = random.choice([0, 0, 0, 1, 2], (2, 50))
    labels[0, :5, 59] = 3
    return Posterior(labels, random.normal(size=(2, 50)), {"alpha": random.random((2, 50))}, thin=2)


@pytest.fixture(scope="module")
def blobs():
    X, _ = make_blobs(200, n_features=3, centers=3, cluster_std=0.5, random_state=2)
    return X


@pytest.fixture(scope="module", params=["gaussian", "diagonal", "fixed"])
def mixture(request, blobs):
    return DPMixture(request.param, n_chains=1, n_sweeps=20, random_state=0).fit(blobs)


def test_the_trace_has_a_line_for_each_chain(posterior):
    display = TraceDisplay.from_posterior(posterior, names=("log_joint", "alpha"))
    assert [ax.get_ylabel() for ax in display.axes_] == ["log joint density", "alpha"]
    for name, values in (("log_joint", posterior.log_joint), ("alpha", posterior.alpha)):
        for line, chain in zip(display.lines_[name], values, strict=True):
            sweep, drawn = line.get_data()
            np.testing.assert_array_equal(drawn, chain)
            np.testing.assert_array_equal(sweep, np.arange(2, 102, 2))
    r_hat = posterior.diagnostics()["alpha"].r_hat
    assert f"R-hat {r_hat:.2f}" in display.axes_[1].get_title(loc="right")


def test_the_trace_draws_where_it_is_told_and_refuses_what_it_does_not_know(posterior):
    figure, axes = plt.subplots(2)
    assert TraceDisplay.from_posterior(posterior, ax=axes).figure_ is figure
    with pytest.raises(ValueError, match="ax must have 2 axes, one for each name; got 1"):
        TraceDisplay.from_posterior(posterior, ax=axes[0])
    with pytest.raises(ValueError, match=r"names must be of n_clusters, .*; got 'beta'"):
        TraceDisplay.from_posterior(posterior, names=["beta"])


def test_bars_are_the_posterior_of_k(posterior):
    display = ClusterCountDisplay.from_posterior(posterior, prob=0.9)
    bars = {round(bar.get_center()[0]): bar for bar in display.bars_}
    assert {k: bar.get_height() for k, bar in bars.items()} == {3: 0.95, 4: 0.05}
    assert [to_hex(bar.get_facecolor()) == CHOSEN for bar in bars.values()] == [True, False]
    assert display.ax_.get_title(loc="right") == "3 with probability 0.9 or more"


def test_similarity_is_ordered_by_cluster(posterior):
    display = SimilarityDisplay.from_posterior(posterior)
    shown = display.image_.get_array()
    np.testing.assert_allclose(shown, posterior.similarity(display.order, display.order))
    assert sorted(display.order) == list(range(60))
    cluster = posterior.point_estimate(random_state=0)[display.order]
    assert np.count_nonzero(np.diff(cluster)) == 2
    # The row that is nowhere at home stands last in its cluster.
    place = int(np.flatnonzero(display.order == 0)[0])
    assert place == 59 or cluster[place + 1] != cluster[place]
    assert display.ax_.get_title(loc="left") == "all rows, by cluster"


def test_similarity_of_many_rows_is_that_of_a_sample(posterior):
    display = SimilarityDisplay.from_posterior(posterior, labels=np.zeros(60), max_rows=7)
    assert display.image_.get_array().shape == (7, 7)
    assert len(set(display.order)) == 7
    assert display.ax_.get_title(loc="left") == "7 of 60 rows, by cluster"
    with pytest.raises(ValueError, match="labels has 2 labels, and the draws have 60 rows"):
        SimilarityDisplay.from_posterior(posterior, labels=[0, 1])
    with pytest.raises(ValueError, match="max_rows must be 1 or more; got 0"):
        SimilarityDisplay.from_posterior(posterior, max_rows=0)


def test_ellipses_hold_their_rows(mixture, blobs):
    display = ComponentsDisplay.from_estimator(mixture, blobs, columns=(2, 0), prob=0.9)
    assert len(display.ellipses_) == mixture.n_clusters_
    assert display.ax_.get_xlabel() == "column 2"
    for cluster, ellipse in enumerate(display.ellipses_):
        members = blobs[mixture.labels_ == cluster][:, [2, 0]]
        if len(members) > 30:
            np.testing.assert_allclose(ellipse.center, members.mean(axis=0), atol=0.15)
            corners = np.linalg.eigvalsh(np.cov(members.T)) * 4 * 4.605  # -2 log 0.1
            found = np.sort([ellipse.width, ellipse.height]) ** 2
            np.testing.assert_allclose(found, corners, rtol=0.5)
            inside = ellipse.get_path().transformed(ellipse.get_patch_transform())
            assert 0.75 < inside.contains_points(members).mean() <= 1


def test_components_refuse_what_has_no_ellipse(mixture, blobs):
    with pytest.raises(ValueError, match="X has 10 rows; 200 were fitted"):
        ComponentsDisplay.from_estimator(mixture, blobs[:10])
    with pytest.raises(ValueError, match=r"columns must be two of 0 to 2; got \(0, 3\)"):
        ComponentsDisplay.from_estimator(mixture, blobs, columns=(0, 3))
    with pytest.raises(ValueError, match="prob must be above 0 and below 1; got 1"):
        ComponentsDisplay.from_estimator(mixture, blobs, prob=1)


def test_counts_have_no_ellipses():
    X = np.random.default_rng(0).poisson(3.0, (20, 2))
    mixture = DPMixture("poisson", n_chains=1, n_sweeps=4, random_state=0).fit(X)
    with pytest.raises(ValueError, match="ellipses need a model of normal clusters"):
        ComponentsDisplay.from_estimator(mixture, X)


def test_pictures_need_matplotlib(posterior, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"pip install 'countless\[plot\]'"):
        ClusterCountDisplay.from_posterior(posterior)


@pytest.mark.parametrize("display", [ClusterCountDisplay, SimilarityDisplay, TraceDisplay])
def test_what_is_not_fitted_is_named_as_such(display):
    with pytest.raises(NotFittedError, match="This DPMixture instance is not fitted yet"):
        display.from_estimator(DPMixture())
