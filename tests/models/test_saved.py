"""Models come back from plain arrays as they were."""

import numpy as np
import pytest

from countless.models.named import MODELS, as_model
from countless.models.saved import pack_model, unpack_model

RNG = np.random.default_rng(2)
BINARY = (RNG.random((12, 3)) < 0.4).astype(float)
NUMBERS = RNG.normal(loc=(3.0, 0.0, -1e3), size=(12, 3))
COUNTS = RNG.poisson(3.0, size=(12, 3)).astype(float)
LEVELS = RNG.integers(5, size=(12, 3)).astype(float)
MIXED = np.column_stack([NUMBERS[:, 0], BINARY[:, 1], NUMBERS[:, 2] - NUMBERS[:, 2].mean()])
MIXED[:, 2] = np.repeat([-2.0, 2.0], 6)  # its mean is 0
TABLES = {"bernoulli": BINARY, "categorical": LEVELS, "columns": MIXED, "poisson": COUNTS}
TABLES["multinomial"] = COUNTS


@pytest.mark.parametrize("name", MODELS)
def test_a_packed_model_answers_as_before(name):
    X = TABLES.get(name, NUMBERS)
    model = as_model(name).bind(X)
    model = model.with_hyper(model.hyper.value + 0.1)
    table, value = pack_model(model)
    assert table.dtype == np.float64
    assert np.isfinite(table).all()
    assert len(table) <= 8
    again = unpack_model(name, table, value)
    rows = model.rows(X)
    np.testing.assert_array_equal(again.rows(X), rows)
    statistics = model.statistics(rows, np.arange(12) % 2)
    expected = model.log_predictive(rows, statistics)
    np.testing.assert_allclose(again.log_predictive(rows, statistics), expected, rtol=1e-12)


def test_levels_that_are_no_numbers_stay_what_they_are():
    model = as_model("categorical").bind([["a"], ["b"], ["a"]])
    assert pack_model(model)[0].dtype == object


def test_arrays_of_another_model_are_refused():
    table, value = pack_model(as_model("diagonal").bind(NUMBERS))
    with pytest.raises(ValueError, match="a fixed model of 3 columns has 5 hyperparameters"):
        unpack_model("fixed", table, value)


@pytest.mark.parametrize("levels", [["1", "2"], ["7", "07"], [2**60, 2**60 + 1]])
def test_levels_that_only_look_like_numbers_stay_what_they_are(levels):
    model = as_model("categorical").bind([[level] for level in levels])
    again = unpack_model("categorical", *pack_model(model))
    assert again.blocks[0].levels.tolist() == model.blocks[0].levels.tolist()
