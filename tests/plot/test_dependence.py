"""The picture of dependence: names are whole and leave room, and too many are left out."""

import numpy as np
import pytest

matplotlib = pytest.importorskip("matplotlib", reason="pictures need matplotlib")
matplotlib.use("Agg")

from countless.plot import DependenceDisplay  # noqa: E402


@pytest.mark.parametrize(("n_columns", "length"), [(3, 40), (20, 40), (40, 10)])
def test_names_are_complete_and_inside_the_figure(n_columns, length):
    names = [("source_used_for_orbital_data" * 2)[:length] + str(j) for j in range(n_columns)]
    display = DependenceDisplay(np.eye(n_columns), np.arange(n_columns), names).plot()
    display.figure_.draw_without_rendering()
    labels = display.ax_.get_yticklabels()
    assert [label.get_text() for label in labels] == [names[j] for j in display.order_]
    assert min(label.get_window_extent().x0 for label in labels) >= 0
    map_ = display.ax_.get_window_extent()
    assert 0.75 < map_.width / map_.height < 1.33
    matplotlib.pyplot.close(display.figure_)


def test_too_many_names_are_left_out():
    display = DependenceDisplay(np.eye(70), np.zeros(70, dtype=int)).plot()
    assert not display.ax_.get_yticklabels()
    matplotlib.pyplot.close(display.figure_)
