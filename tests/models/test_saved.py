"""Models come back from plain arrays as they were."""

import json

import numpy as np
import pytest

from countless.models.registry import MODELS, as_model
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
    packed = pack_model(model)
    assert packed.table.dtype == np.float64
    assert np.isfinite(packed.table).all()
    assert len(packed.table) <= 4
    again = unpack_model(name, packed)
    rows = model.rows(X)
    np.testing.assert_array_equal(again.rows(X), rows)
    statistics = model.statistics(rows, np.arange(12) % 2)
    expected = model.log_predictive(rows, statistics)
    np.testing.assert_allclose(again.log_predictive(rows, statistics), expected, rtol=1e-12)


def test_levels_that_a_text_cannot_hold_are_not_packed():
    table = np.empty((2, 1), dtype=object)
    table[:, 0] = [(1, 2), (3, 4)]
    assert pack_model(as_model("categorical").bind(table)) is None


def test_arrays_of_another_model_are_refused():
    packed = pack_model(as_model("diagonal").bind(NUMBERS))
    with pytest.raises(ValueError, match="a fixed model of 3 columns has 5 hyperparameters"):
        unpack_model("fixed", packed)
    with pytest.raises(ValueError, match="DiagonalGaussian has no levels"):
        unpack_model("diagonal", packed._replace(levels=[None, ["a"], None]))
    with pytest.raises(ValueError, match="levels must be plain values, or None, for each column"):
        unpack_model("columns", packed._replace(levels=[None, [None, "a"], None]))


MANY_LEVELS = [["1", "2"], ["7", "07"], [2**60, 2**60 + 1], ["red", 2, 1.5, True]]


@pytest.mark.parametrize("levels", MANY_LEVELS)
def test_levels_come_back_from_text_as_they_were(levels):
    table = np.empty((len(levels), 2), dtype=object)
    table[:, 0], table[:, 1] = levels, np.arange(len(levels))
    text = any(isinstance(level, str) for level in levels)
    for name in ("categorical", "columns") if text else ("categorical",):
        model = as_model(name).bind(table)
        packed = pack_model(model)
        packed = packed._replace(levels=json.loads(json.dumps(packed.levels)))
        again = unpack_model(name, packed)
        found, expected = again.blocks[0].levels.tolist(), model.blocks[0].levels.tolist()
        assert found == expected
        assert list(map(type, found)) == list(map(type, expected))
        np.testing.assert_array_equal(again.rows(table), model.rows(table))
