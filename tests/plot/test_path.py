"""The picture of the path shows what the path says."""

import sys

import numpy as np
import pytest

matplotlib = pytest.importorskip("matplotlib", reason="pictures need matplotlib")
matplotlib.use("Agg")

import matplotlib.pyplot as plt  # noqa: E402
from sklearn.datasets import make_blobs  # noqa: E402

from countless._path.penalty import penalty_path  # noqa: E402
from countless.plot import PenaltyPathDisplay  # noqa: E402


@pytest.fixture(scope="module")
def path():
    X, _ = make_blobs(300, centers=3, cluster_std=0.5, random_state=0)
    return penalty_path(X, random_state=0)


def words(display):
    return {text.get_text() for text in display.ax_.texts}


def test_the_steps_are_those_of_the_path(path):
    display = PenaltyPathDisplay.from_path(path)
    penalty, n_clusters = display.line_.get_data()
    assert (np.diff(penalty) > 0).all()
    middle = np.sqrt(penalty[:-1] * penalty[1:])
    np.testing.assert_array_equal([path.n_clusters_at(at) for at in middle], n_clusters[:-1])
    assert n_clusters[-1] == 1
    assert display.ax_.get_xscale() == display.ax_.get_yscale() == "log"


def test_the_chosen_plateau_is_shaded_and_named(path):
    display = PenaltyPathDisplay.from_path(path)
    assert f"{path.n_clusters} clusters" in words(display)
    spans = [patch.get_bbox().intervalx for patch in display.ax_.patches]
    best = path.plateaus[0]
    assert any(np.allclose(span, [best.low, best.high]) for span in spans)
    assert f"{path.confidence:.2f}" in display.ax_.get_title(loc="right")


def test_it_draws_into_given_axes(path):
    figure, axes = plt.subplots()
    display = PenaltyPathDisplay.from_path(path, ax=axes)
    assert display.ax_ is axes
    assert display.figure_ is figure


@pytest.mark.parametrize(
    ("X", "word"),
    [
        (np.full((9, 2), 1.0), "1 cluster"),
        (np.array([[1.0], [2.0]]), "1 cluster"),
        (np.random.default_rng(0).uniform(size=(200, 2)), "1 cluster"),
        (np.repeat([[0.0], [1.0]], 30, axis=0), "2 clusters"),
    ],
    ids=["equal rows", "two rows", "noise", "two values"],
)
def test_plain_cases_have_a_picture(X, word, tmp_path):
    display = PenaltyPathDisplay.from_path(penalty_path(X, random_state=0))
    assert word in words(display)
    display.figure_.savefig(tmp_path / "path.png")
    assert (tmp_path / "path.png").stat().st_size > 1000


def test_without_matplotlib_the_extra_is_named(path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"pip install 'countless\[plot\]'"):
        PenaltyPathDisplay.from_path(path)
