"""What the constants of local search are worth: lower objectives, in few passes.

The same bounds that hold with the constants as they are do not hold with each of them changed, so
that a slip in one of them fails here and not only in a benchmark.
"""

import sys
from dataclasses import replace
from functools import cache
from typing import NamedTuple

import numpy as np
import pytest

from countless import DPMeans
from countless._search import refine
from countless._search.local_search import SCHEDULE
from countless._search.refine import MANY

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


class Search(NamedTuple):
    """How low the objectives of some fits are, relative to one pass, and their passes."""

    objective: float
    n_passes: int

    def is_good(self):
        return self.objective <= 2.9252 and self.n_passes <= 300


def tables():
    for seed in range(4):
        random = np.random.default_rng(seed)
        centers = 3 * random.standard_normal((25, 3))
        yield 9.0, 0.0, centers[random.integers(25, size=900)] + random.standard_normal((900, 3))
    yield 0.004, 1e-3, np.random.default_rng(9).uniform(size=(3000, 2))


@cache
def problems():
    """Return tables with their penalty, tolerance, and objective after one pass."""
    fits = [(X, DPMeans(price, refine=False, max_iter=1), tol) for price, tol, X in tables()]
    return [(X, once.penalty, tol, once.fit(X).objective_) for X, once, tol in fits]


def searched():
    objective, n_passes = 0.0, 0
    for X, penalty, tol, first in problems():
        model = DPMeans(penalty, tol=tol).fit(X)
        objective += model.objective_ / first
        n_passes += model.n_iter_
    return Search(objective, n_passes)


def change(monkeypatch, name, constants):
    """Change constants wherever they have been imported."""
    for module in [each for key, each in sys.modules.items() if key.startswith("countless.")]:
        if type(getattr(module, name, None)) is type(constants):
            monkeypatch.setattr(module, name, constants)


def test_searches_end_low_in_few_passes():
    found = searched()
    assert found.is_good(), found


@pytest.mark.parametrize("share", [0.5, 2.0])
def test_the_price_of_merges_is_the_penalty(monkeypatch, share):
    def cheaper(rows, summary, price, *rest):
        return profitable_merges(rows, summary, share * price, *rest)

    profitable_merges = refine.profitable_merges
    monkeypatch.setattr(refine, "profitable_merges", cheaper)
    found = searched()
    assert not found.is_good(), found


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("growth_share", 18 * SCHEDULE.growth_share),
        ("growth_passes", 18 * SCHEDULE.growth_passes),
        ("over_split_share", 1.0),
        ("repair_passes", 0),
        ("halving_passes", 0),
        ("moves_at_once", 0),
    ],
)
def test_constants_of_the_schedule_are_worth_their_values(monkeypatch, field, value):
    change(monkeypatch, "SCHEDULE", replace(SCHEDULE, **{field: value}))
    found = searched()
    assert not found.is_good(), found


def test_many_clusters_are_over_split_far_below_the_penalty(monkeypatch):
    change(monkeypatch, "MANY", replace(MANY, over_split_share=0.95))
    found = searched()
    assert not found.is_good(), found
