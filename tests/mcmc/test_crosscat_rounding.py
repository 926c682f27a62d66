"""Numbers that were rounded: spread over their steps, they belong where others say they do."""

import numpy as np
import pytest

from countless import CrossCat
from countless import crosscat as estimator
from countless.models.checks import spread_rounding


def test_equal_numbers_are_spread_over_the_least_step():
    rows = np.array([[1.0, 0.1], [1.0, 0.2], [1.0, 0.3], [np.nan, 0.4], [3.5, 0.5], [3.0, 0.6]])
    rows = np.vstack([rows, [[3.0, 0.7]]])
    spread = spread_rounding(rows, [0, 1], np.random.default_rng(0))
    assert np.sort(spread[:3, 0]) == pytest.approx([1 - 1 / 6, 1, 1 + 1 / 6])
    assert np.sort(spread[5:, 0]) == pytest.approx([2.875, 3.125])
    assert np.isnan(spread[3, 0])
    assert spread[4, 0] == 3.5  # there is one of it
    assert np.array_equal(spread[:, 1], rows[:, 1])  # nothing repeats
    assert np.array_equal(
        spread_rounding(rows, [1], np.random.default_rng(0)), rows, equal_nan=True
    )


@pytest.mark.filterwarnings("ignore:CrossCat's chains disagree")
def test_rounded_columns_share_a_view_with_dependent_columns(monkeypatch):
    random = np.random.default_rng(1)
    group = random.integers(3, size=200)
    years = np.array([[1, 2, 3, 4], [4, 5, 7, 10], [8, 10, 12, 15]])[
        group, random.integers(4, size=200)
    ] + np.where(np.arange(200) < 3, 0.1, 0.0)
    numbers = np.array([0.0, 6.0, 12.0])[group][:, None] + random.normal(size=(200, 3))
    table = np.column_stack([numbers, years])
    # So early a third of the chains is not there yet, or of those below is not lost yet.
    settings = {"n_chains": 24, "n_sweeps": 30, "random_state": 0}
    model = CrossCat(**settings).fit(table)
    dependence = model.dependence()[0, 3]
    assert dependence > 0.5
    assert np.allclose(model.encoded_rows(), table)
    # As they are, a cluster without width for each number of years pays more than the truth.
    monkeypatch.setattr(estimator, "spread_rounding", lambda rows, *_: rows)
    assert CrossCat(**settings).fit(table).dependence()[0, 3] < dependence - 0.1
