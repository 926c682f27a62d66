"""The pictures of trees show what the trees say."""

import sys

import numpy as np
import pytest

matplotlib = pytest.importorskip("matplotlib", reason="pictures need matplotlib")
matplotlib.use("Agg")

import matplotlib.pyplot as plt  # noqa: E402
from scipy.cluster.hierarchy import fcluster, leaves_list, linkage  # noqa: E402
from sklearn.datasets import make_blobs  # noqa: E402

from countless import BayesianHierarchicalClustering  # noqa: E402
from countless.plot import DendrogramDisplay, HeatmapDisplay  # noqa: E402
from countless.plot.dendrogram import ABOVE  # noqa: E402


@pytest.fixture(scope="module")
def blobs():
    return make_blobs(60, centers=3, cluster_std=0.4, random_state=2)


@pytest.fixture(scope="module")
def model(blobs):
    return BayesianHierarchicalClustering().fit(blobs[0])


def test_merges_above_the_cut_are_grey_and_odds_are_written(model, blobs):
    display = DendrogramDisplay.from_estimator(model, classes=blobs[1], n_odds=4)
    assert model.n_clusters_ == 3
    np.testing.assert_array_equal(display.leaves_, leaves_list(model.linkage_matrix_))
    drawn = {
        matplotlib.colors.to_hex(lines.get_colors()[0]): len(lines.get_segments())
        for lines in display.ax_.collections
    }
    assert drawn[ABOVE] == 2
    assert sum(drawn.values()) == 59
    written = [text.get_text() for text in display.ax_.texts]
    odds = [float(text) for text in written]
    np.testing.assert_allclose(odds, model.log_merge_odds_[-4:], atol=0.51)
    # The strip has the classes in the order of the leaves.
    strip = display.class_ax_.images[0].get_array()[0]
    np.testing.assert_array_equal(strip, blobs[1][display.leaves_])
    heights = [line.get_ydata()[0] for line in display.ax_.lines]
    assert heights == [pytest.approx(np.log(2))]


def test_any_linkage_can_be_drawn(blobs):
    X, _ = blobs
    merges = linkage(X, "average")
    plain = DendrogramDisplay.from_linkage(merges)
    assert plain.class_ax_ is None
    assert not plain.ax_.lines
    axes = plt.figure().add_subplot()
    labels = fcluster(merges, 3, "maxclust")
    cut = DendrogramDisplay.from_linkage(merges, labels=labels, ax=axes)
    assert cut.ax_ is axes
    (line,) = axes.lines
    height = line.get_ydata()[0]
    assert merges[-3, 2] < height < merges[-2, 2]


def test_a_deep_tree_is_drawn():
    chain = linkage(np.cumsum(1.001 ** np.arange(1500))[:, None], "single")
    assert len(DendrogramDisplay.from_linkage(chain).leaves_) == 1500


def test_a_heat_map_has_its_rows_beside_their_leaves(model, blobs):
    X, _ = blobs
    display = HeatmapDisplay.from_estimator(model, X, columns=["a", "b"], center=0.0)
    np.testing.assert_array_equal(display.rows_, leaves_list(model.linkage_matrix_))
    image = display.ax_.images[0]
    np.testing.assert_array_equal(image.get_array(), X[display.rows_])
    assert image.norm.vmin == pytest.approx(-image.norm.vmax)
    # Row 0 is at the top, and so is the first leaf of the tree.
    assert display.tree_ax_.yaxis_inverted()
    assert len(display.ax_.lines) == model.n_clusters_ - 1
    assert [text.get_text() for text in display.ax_.get_xticklabels()] == ["a", "b"]
    plain = HeatmapDisplay.from_estimator(model, X)
    assert plain.ax_.images[0].get_cmap().name == "viridis"


def test_gathered_rows_stand_together(blobs):
    X, y = blobs
    model = BayesianHierarchicalClustering(n_leaves=12, random_state=0).fit(X)
    display = HeatmapDisplay.from_estimator(model, X)
    assert sorted(display.rows_) == list(range(60))
    leaf = model.leaf_labels_[display.rows_]
    assert np.count_nonzero(np.diff(leaf)) == leaf.max()
    tree = DendrogramDisplay.from_estimator(model, classes=y)
    assert tree.class_ax_.images[0].get_array().shape == (1, leaf.max() + 1)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda m, X: DendrogramDisplay.from_estimator(m, classes=[1]), "1 entries for 60 rows"),
        (lambda m, X: DendrogramDisplay(m.linkage_matrix_, [0]), "labels has 1 entries for 60"),
        (lambda m, X: DendrogramDisplay(m.linkage_matrix_, None, [0]), "must have 59 entries"),
        (lambda m, X: DendrogramDisplay(np.empty((0, 4))), "one leaf has no picture"),
        (lambda m, X: HeatmapDisplay.from_estimator(m, X[:5]), "X must have 60 rows"),
    ],
)
def test_what_does_not_fit_is_refused(model, blobs, make, message):
    with pytest.raises(ValueError, match=message):
        make(model, blobs[0])


def test_without_matplotlib_the_extra_is_named(model, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"pip install 'countless\[plot\]'"):
        DendrogramDisplay.from_estimator(model)
