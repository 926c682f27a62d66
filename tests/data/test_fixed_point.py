"""Sums of rows are integers: no order changes them, and nothing is left when rows leave."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from countless._data import Summary, open_rows
from countless._data.fixed_point import LARGEST_SUM, LARGEST_VALUE, power_of_two, step_for
from countless._data.validate import check_weight, round_weights
from countless.divergences import get_divergence
from countless.kernels.statistics import add_rows, move_rows

EUCLIDEAN = get_divergence("sqeuclidean")

tables = hnp.arrays(
    np.float64,
    st.tuples(st.integers(1, 40), st.integers(1, 4)),
    elements=st.floats(-1e12, 1e12).map(lambda value: 0.0 if abs(value) < 1e-12 else value),
)
scales = st.sampled_from([1e-100, 1e-30, 1.0, 1e30, 1e130])


def sums_of(rows, fixed_point, labels, n_clusters, sign=1) -> Summary:
    summary = fixed_point.empty(n_clusters)
    block = rows.load(0, rows.n_rows)
    add_rows(block.form, sign * block.weight, labels, fixed_point.scale, *summary)
    return summary


@given(tables, scales, st.integers(0, 2**32 - 1))
def test_sums_have_the_same_bits_in_any_order(X, scale, seed):
    random = np.random.default_rng(seed)
    X = X * scale
    weight = random.choice([0.25, 1.0, 3.0], size=len(X))
    labels = random.integers(3, size=len(X)).astype(np.int32)
    order = random.permutation(len(X))
    with open_rows(X, weight, EUCLIDEAN) as rows:
        fixed_point = rows.fixed_point
        whole = sums_of(rows, fixed_point, labels, 3)
        again = fixed_point.empty(3)
        for part in np.array_split(order, 4):
            if len(part):
                block = rows.pick(part)
                piece = again.zeros_factory()()
                add_rows(block.form, block.weight, labels[part], fixed_point.scale, *piece)
                again.add(piece)
    np.testing.assert_array_equal(whole.weight, again.weight)
    np.testing.assert_array_equal(whole.total, again.total)


@given(tables, scales, st.integers(0, 2**32 - 1))
def test_rows_that_leave_leave_zeros(X, scale, seed):
    random = np.random.default_rng(seed)
    weight = random.choice([1e-3, 1.0, 1e3], size=len(X))
    start, away = np.zeros(len(X), dtype=np.int32), np.ones(len(X), dtype=np.int32)
    with open_rows(X * scale, weight, EUCLIDEAN) as rows:
        summary = sums_of(rows, rows.fixed_point, start, 2)
        np.testing.assert_array_equal(summary.total[0], rows.whole.total[0])
        block = rows.load(0, rows.n_rows)
        moved = move_rows(block.form, block.weight, start, away, rows.fixed_point.scale, *summary)
        assert moved == len(X)
        assert not summary.weight[0]
        assert not summary.total[0].any()
        np.testing.assert_array_equal(summary.total[1], rows.whole.total[0])
        summary.add(sums_of(rows, rows.fixed_point, away, 2, sign=-1))
        assert not summary.weight.any()
        assert not summary.total.any()


@given(tables, scales)
def test_means_are_those_of_exact_sums(X, scale):
    X = X * scale
    with open_rows(X, None, EUCLIDEAN) as rows:
        mean, fixed_point = rows.fixed_point.means(rows.whole)[0], rows.fixed_point
    exact = np.array([math.fsum(column) / len(X) for column in X.T])
    largest = np.abs(X - fixed_point.origin).max(axis=0)
    rounding = 2.0**-50 * (largest + np.abs(exact)) + 2.0**-1000
    assert np.all(np.abs(mean - exact) <= rounding)


def test_sums_are_more_exact_than_those_of_floats():
    X = 1e8 + np.random.default_rng(0).standard_normal((200_000, 2))
    with open_rows(X, None, EUCLIDEAN, 2) as rows:
        mean = rows.fixed_point.means(rows.whole)[0]
    exact = np.array([math.fsum(column) / len(X) for column in X.T])
    assert np.abs(mean - exact).max() <= 2.0 ** np.ceil(np.log2(1e8)) * 2.0**-52


@pytest.mark.parametrize("spread", [1.0, 1e12, 1e24])
def test_weights_of_many_sizes(spread):
    random = np.random.default_rng(0)
    X = random.standard_normal((500, 3))
    weight = spread ** random.uniform(-0.5, 0.5, size=len(X))
    weight[:2] = spread**0.5, spread**-0.5
    with open_rows(X, weight, EUCLIDEAN) as rows:
        mean, total = rows.fixed_point.means(rows.whole)[0], rows.fixed_point.total_weight
        assert (rows.load(0, len(X)).weight > 0).all()
    exact = [math.fsum(weight * column) / math.fsum(weight) for column in X.T]
    np.testing.assert_allclose(mean, exact, rtol=1e-11, atol=1e-11)
    assert total == pytest.approx(math.fsum(weight), rel=1e-11)


def test_the_scale_of_weights_changes_no_mean():
    X = np.random.default_rng(0).standard_normal((100, 2))
    weight = np.random.default_rng(1).uniform(0.1, 1.0, size=100)
    means = []
    for scale in (2.0**-40, 1.0, 2.0**40):
        with open_rows(X, scale * weight, EUCLIDEAN) as rows:
            means.append(rows.fixed_point.means(rows.whole))
    np.testing.assert_array_equal(means[0], means[1])
    np.testing.assert_array_equal(means[0], means[2])


@given(
    st.floats(1e-200, 1e200), st.integers(1, 10**12), st.floats(1e-12, 1e12), st.floats(1e-6, 1.0)
)
def test_no_sum_overflows(largest, n_rows, heaviest, share):
    total = n_rows * heaviest * share
    step = step_for(largest, total, heaviest)
    assert step == power_of_two(step)
    assert largest * total / step <= LARGEST_SUM
    assert largest * heaviest / step <= LARGEST_VALUE


@given(st.floats(1e-290, 1e290))
def test_power_of_two(value):
    power = power_of_two(value)
    assert math.frexp(power)[0] == 0.5
    assert value <= power <= 2 * value * (1 + 1e-12)


def test_weights_keep_their_zeros_and_their_size():
    weight = np.array([0.0, 1e-20, 1.0, 3.0, 1 / 3])
    rounded = round_weights(weight, 5)
    assert rounded[0] == 0.0
    assert rounded[1] > 0.0
    assert rounded[2:4].tolist() == [1.0, 3.0]
    assert rounded[4] == pytest.approx(1 / 3, rel=1e-14)
    assert round_weights(None, 5) is None


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        ([1.0, -1.0, 1.0], "row 1 has -1"),
        ([1.0, 1.0, np.nan], "row 2 has nan"),
        ([1.0, np.inf, 1.0], "row 1 has inf"),
        ([1.0, 1.0], r"each of 3 rows; got shape \(2,\)"),
        ([0.0, 0.0, 0.0], "must not be zero for every row"),
    ],
)
def test_bad_weights_are_named(weight, message):
    with pytest.raises(ValueError, match=message):
        check_weight(weight, 3)
