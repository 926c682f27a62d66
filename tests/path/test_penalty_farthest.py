"""The farthest-first rule: against a plain loop, on dense and sparse rows, and its errors."""

import numpy as np
import pytest
import scipy.sparse as sp

from countless._path.penalty import farthest_first_penalty
from countless.divergences import DIVERGENCES, get_divergence


def plain_rule(X, k, weight):
    """Section 6.1 word by word, with squared distances."""
    chosen = [np.average(X, axis=0, weights=weight)]
    for _ in range(k):
        distances = [
            w * min(np.sum((x - t) ** 2) for t in chosen) for x, w in zip(X, weight, strict=True)
        ]
        far = int(np.argmax(distances))
        chosen.append(X[far])
    return distances[far]


@pytest.mark.parametrize("k", [1, 2, 5, 30])
@pytest.mark.parametrize("convert", [np.asarray, sp.csr_matrix, sp.csr_array])
def test_farthest_first_penalty_equals_a_plain_loop(k, convert):
    generator = np.random.default_rng(k)
    X = generator.standard_normal((30, 4))
    weight = generator.uniform(0.5, 2, 30)
    expected = plain_rule(X, k, weight)
    found = farthest_first_penalty(convert(X), k, sample_weight=weight)
    assert found == pytest.approx(expected, abs=1e-12)


def test_farthest_first_penalty_falls_with_k_and_reaches_zero():
    X = np.random.default_rng(0).standard_normal((20, 3))
    penalties = [farthest_first_penalty(X, k) for k in range(1, 21)]
    assert (np.diff(penalties) <= 0).all()
    assert farthest_first_penalty(np.repeat(X, 2, axis=0), 21) == 0.0


def test_data_far_from_zero_loses_no_digits():
    X = np.random.default_rng(0).standard_normal((50, 3))
    assert farthest_first_penalty(X + 1e6, 5) == pytest.approx(
        farthest_first_penalty(X, 5), rel=1e-8
    )


def test_a_row_without_weight_is_never_far():
    X = np.array([[0.0], [1.0], [2.0], [1000.0]])
    with_outlier = farthest_first_penalty(X, 2, sample_weight=[1, 1, 1, 0])
    assert with_outlier == farthest_first_penalty(X[:3], 2)


@pytest.mark.parametrize("name", sorted(DIVERGENCES))
def test_every_divergence_starts_from_the_mean(name):
    divergence = get_divergence(name)
    X = np.random.default_rng(3).uniform(0.1, 0.9, (40, 3))
    rows = divergence.prepare(X)
    mean = divergence.means(np.array([40.0]), rows.sum(axis=0)[None])
    slope, offset = divergence.slope_offset(mean)
    expected = (divergence.row_cost(rows) + offset - rows @ slope[0]).max()
    assert farthest_first_penalty(X, 1, divergence=name) == pytest.approx(expected)


@pytest.mark.parametrize("k", [0, -3, 5, 2.0, "3", None])
def test_bad_k_is_named(k):
    with pytest.raises(ValueError, match="k must be an integer from 1 to the number of rows, 4"):
        farthest_first_penalty(np.eye(4), k)


def test_a_row_outside_the_domain_is_named():
    with pytest.raises(ValueError, match="row 1, column 0 is -1"):
        farthest_first_penalty([[1.0, 2.0], [-1.0, 3.0]], 1, divergence="kl")


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        ([1, 1], "a number for each of 3 rows"),
        ([1, -2, 1], "row 1 has -2"),
        ([1, 1, np.nan], "row 2 has nan"),
        ([0, 0, 0], "all are 0"),
    ],
)
def test_bad_weights_are_named(weight, message):
    with pytest.raises(ValueError, match=message):
        farthest_first_penalty(np.eye(3), 1, sample_weight=weight)
