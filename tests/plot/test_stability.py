"""The picture of stability shows what became of the clusters."""

import sys

import numpy as np
import pytest

matplotlib = pytest.importorskip("matplotlib", reason="pictures need matplotlib")
matplotlib.use("Agg")

import matplotlib.pyplot as plt  # noqa: E402

from countless.plot.stability import StabilityDisplay  # noqa: E402
from countless.plot.style import SHOWN  # noqa: E402
from countless.stability import Stability  # noqa: E402


@pytest.fixture(scope="module")
def found():
    random = np.random.default_rng(0)
    labels = random.integers(-1, 3, size=SHOWN.matrix_rows + 50).astype(np.int32)
    draws = np.stack([np.where(random.random(len(labels)) < 0.3, -2, labels) for _ in range(8)])
    return Stability(labels, draws)


def test_clusters_and_rows_are_drawn(found):
    display = StabilityDisplay.from_stability(found)
    clusters, rows = display.axes_
    assert [text.get_text() for text in clusters.get_yticklabels()] == [
        f"{label} ({(found.labels == label).sum()} rows)" for label in range(3)
    ]
    assert clusters.get_title(loc="left") == "clusters in 8 draws: 3 (100 %)"
    np.testing.assert_allclose(clusters.collections[-1].get_offsets()[:, 0], found.stability)
    image = rows.images[0].get_array()
    assert image.shape == (SHOWN.matrix_rows, SHOWN.matrix_rows)
    # Rows are sorted by cluster, so that the first stay together.
    assert np.nanmin(image[:15, :15]) == 1
    assert np.nanmax(image[:15, 40:48]) == 0


def test_it_draws_into_given_axes(found):
    figure, axes = plt.subplots(1, 2)
    display = StabilityDisplay.from_stability(found, axes=axes)
    assert display.figure_ is figure
    with pytest.raises(ValueError, match="axes must be two"):
        StabilityDisplay.from_stability(found, axes=axes[:1])


def test_without_matplotlib_the_extra_is_named(found, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"pip install 'countless\[plot\]'"):
        StabilityDisplay.from_stability(found)
