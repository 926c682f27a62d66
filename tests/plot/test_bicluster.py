"""The rearranged table shows every cell once, in the order of both partitions."""

import numpy as np
import pandas as pd
import pytest

matplotlib = pytest.importorskip("matplotlib", reason="pictures need matplotlib")
matplotlib.use("Agg")

from countless import DPBiclustering  # noqa: E402
from countless.plot import BiclusterDisplay  # noqa: E402


def test_clusters_stand_together_the_largest_first():
    X = np.arange(20.0).reshape(4, 5)
    X[1, 2] = np.nan
    names = list("abcde")
    display = BiclusterDisplay(X, [0, 1, 1, 2], [0, 1, 0, 2, 0], column_names=names).plot()
    assert display.rows_.tolist() == [1, 2, 0, 3]
    assert display.columns_.tolist() == [0, 2, 4, 1, 3]
    shown = display.image_.get_array().filled(np.nan)
    np.testing.assert_array_equal(shown, X[np.ix_(display.rows_, display.columns_)])
    lines = [line.get_xydata() for line in display.ax_.lines]
    assert [line[0, 1] for line in lines[:2]] == [1.5, 2.5]  # between rows
    assert [line[0, 0] for line in lines[2:]] == [2.5, 3.5]  # between columns
    assert [label.get_text() for label in display.ax_.get_xticklabels()] == list("acebd")
    assert not len(display.ax_.get_yticks())


def test_words_of_a_frame_become_colors_and_its_columns_are_named():
    words = np.array([["u", "v"], ["v", "w"]], dtype=object)
    frame = pd.DataFrame(np.repeat(np.repeat(words, 4, axis=0), 3, axis=1), columns=list("abcdef"))
    frame.iloc[0, 0] = None
    model = DPBiclustering(n_chains=1, n_sweeps=10, random_state=0).fit(frame)
    display = BiclusterDisplay.from_estimator(model, frame)
    shown = display.image_.get_array()
    assert shown.mask.sum() == 1
    assert set(np.unique(shown.compressed())) == {0.0, 1.0, 2.0}
    assert [label.get_text() for label in display.ax_.get_xticklabels()] == [
        frame.columns[j] for j in display.columns_
    ]


def test_what_does_not_fit_is_refused():
    with pytest.raises(ValueError, match=r"shape of the labels, \(2, 3\); got \(2, 2\)"):
        BiclusterDisplay(np.zeros((2, 2)), [0, 0], [0, 1, 1])
    with pytest.raises(ValueError, match="row_names must have 2 names; got 1"):
        BiclusterDisplay(np.zeros((2, 2)), [0, 0], [0, 1], row_names=["a"])
