"""What the constants of local search for exemplars are worth, on a few small sets."""

from dataclasses import replace

import numpy as np
import pytest

from countless import AffinityPropagation
from countless._exemplar import local_search, max_product
from countless._exemplar.local_search import SEARCH
from countless._exemplar.max_product import MAX_PRODUCT

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def found():
    """Return the log joint of the clusterings that messages and single moves end in."""
    total = 0.0
    for seed in range(6):
        random = np.random.default_rng(seed)
        centers = 3 * random.standard_normal((6, 2))
        X = centers[random.integers(6, size=150)] + random.standard_normal((150, 2))
        way = {"refine": True} if seed < 4 else {"solver": "icm"}
        total += AffinityPropagation(preference=-20.0, **way).fit(X).log_joint_
    return total


def test_constants_of_the_search_are_worth_their_values(monkeypatch):
    best = found()
    for module, name, constants in (
        (local_search, "SEARCH", replace(SEARCH, sweeps=1)),
        (local_search, "SEARCH", replace(SEARCH, restarts=0)),
        (max_product, "MAX_PRODUCT", replace(MAX_PRODUCT, watched=6)),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(module, name, constants)
            assert found() < best - 0.1
    with monkeypatch.context() as patch:
        patch.setattr(local_search, "SEARCH", replace(SEARCH, sweeps=1800, restarts=360))
        assert found() == pytest.approx(best)  # no more is worth it
