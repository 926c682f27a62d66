"""The point estimate against all partitions, against every draw, and against scikit-learn."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.datasets import make_blobs

from countless._mcmc import point_estimate as search
from countless._mcmc.draws import collapse, number_alike
from countless._mcmc.point_estimate import expected_loss, point_estimate
from countless.metrics import rand_score, variation_of_information
from plain import all_partitions

DISTANCES = {
    "vi": variation_of_information,
    "binder": lambda a, b: 1 - rand_score(a, b),
}
tables = st.tuples(st.integers(1, 8), st.integers(2, 7)).flatmap(
    lambda shape: arrays(np.int64, shape, elements=st.integers(0, 4))
)


def numbered(draws):
    return number_alike(np.asarray(draws)[None])[0][0]


def overlapping_draws(n_rows, n_draws, seed=0):
    """Return draws of which row is in which of five blobs that overlap, now and then one merged."""
    random = np.random.default_rng(seed)
    X, _, centers = make_blobs(
        n_rows, centers=5, cluster_std=2.0, random_state=seed, return_centers=True
    )
    closeness = np.exp(-((X[:, None] - centers) ** 2).sum(axis=2) / 8)
    below = np.cumsum(closeness / closeness.sum(axis=1, keepdims=True), axis=1)
    draws = (random.random((n_draws, n_rows, 1)) > below).sum(axis=2)
    merged = random.random(n_draws) < 0.3
    draws[merged] = np.where(draws[merged] == 1, 0, draws[merged])
    return numbered(draws)


def plain_losses(partitions, draws, loss):
    """Return the expected loss of each partition, from who is together with whom."""
    here, there = ((p[:, :, None] == p[:, None, :]).astype(float) for p in (partitions, draws))
    if loss == "binder":
        n = draws.shape[1]
        apart = np.abs(here[:, None] - there).sum(axis=(2, 3)) / (n * (n - 1))
    else:
        shared = np.einsum("pij,dij->pdi", here, there)
        sizes = here.sum(axis=2)[:, None] * there.sum(axis=2)
        apart = np.log(sizes / shared**2).mean(axis=2)
    return apart.mean(axis=1)


@pytest.mark.parametrize("loss", DISTANCES)
@settings(max_examples=25)
@given(draws=tables)
def test_no_partition_of_few_rows_is_better(loss, draws):
    draws = numbered(draws)
    everything = np.array(all_partitions(draws.shape[1]))
    found = point_estimate(draws, loss, random_state=0, assign=False)
    losses = plain_losses(np.concatenate([found[None], everything]), draws, loss)
    assert losses[0] <= losses[1:].min() + 1e-12
    assert losses[0] == pytest.approx(expected_loss(draws, found, loss), abs=1e-12)


@pytest.mark.parametrize("loss", DISTANCES)
@settings(max_examples=50)
@given(draws=tables)
def test_rows_alone_are_alone_in_most_draws_or_nothing_is_a_cluster(loss, draws):
    draws = numbered(draws)
    left = point_estimate(draws, loss, random_state=0, assign=False)
    found = point_estimate(draws, loss, random_state=0)
    alone = (draws[:, :, None] == draws[:, None, :]).sum(axis=2) == 1
    undecided = (np.bincount(left)[left] == 1) & (alone.mean(axis=0) < 0.5)
    if undecided.all():
        np.testing.assert_array_equal(found, left)
        return
    others = np.flatnonzero(~undecided)
    together = left[others, None] == left[others]
    np.testing.assert_array_equal(found[others, None] == found[others], together)
    assert set(found) == set(found[others])
    if undecided.sum() == 1:  # a second one would see the first in its place
        choices = np.array([np.where(undecided, there, left) for there in np.unique(left[others])])
        losses = plain_losses(np.concatenate([found[None], choices]), draws, loss)
        assert losses[0] == pytest.approx(losses[1:].min(), abs=1e-12)


def test_a_row_in_doubt_is_no_cluster():
    one, two = np.repeat([0, 1, 2], [10, 10, 1]), np.repeat([0, 1, 0], [10, 10, 1])
    three = np.repeat([0, 1, 1], [10, 10, 1])
    draws = numbered([one, two, two, three, three])
    assert point_estimate(draws, random_state=0, assign=False).max() == 2
    assert point_estimate(draws, random_state=0).max() == 1
    assert point_estimate(numbered([one, one, one, two, three]), random_state=0).max() == 2


@pytest.mark.parametrize("loss", DISTANCES)
def test_no_draw_is_better(loss):
    draws = overlapping_draws(400, 60)
    found = point_estimate(draws, loss, random_state=0)
    assert found.dtype == np.int32
    best = min(expected_loss(draws, draw, loss) for draw in draws)
    assert expected_loss(draws, found, loss) < 0.95 * best


@pytest.mark.parametrize("loss", DISTANCES)
def test_the_expected_loss_is_the_mean_distance(loss):
    draws = overlapping_draws(300, 20)
    labels = np.random.default_rng(0).choice(["a", "b", "c"], size=300)
    plain = np.mean([DISTANCES[loss](draw, labels) for draw in draws])
    assert expected_loss(draws, labels, loss) == pytest.approx(plain, abs=1e-12)


def test_the_same_seed_gives_the_same_partition_and_others_the_same_loss():
    draws = overlapping_draws(400, 60)
    first, again, other = (point_estimate(draws, random_state=seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert expected_loss(draws, other) == pytest.approx(expected_loss(draws, first), rel=1e-6)


def test_many_draws_are_all_heard(monkeypatch):
    # Half of the run says otherwise, but only the draws that the first look leaves out.
    draws = np.tile(numbered([[0, 0, 1, 1], [0, 1, 1, 1]]), (3, 1))[[0, 1, 1, 1, 0]]
    monkeypatch.setattr(search, "TUNING", replace(search.TUNING, first_draws=2))
    np.testing.assert_array_equal(point_estimate(draws, random_state=0), [0, 1, 1, 1])


def test_tables_that_would_be_too_large_get_fewer_draws(monkeypatch):
    draws = overlapping_draws(400, 60)
    monkeypatch.setattr(search, "TUNING", replace(search.TUNING, table_bytes=5_000))
    few = search._spread(draws, len(draws))
    assert 1 < len(few) < 60
    np.testing.assert_array_equal(few[[0, -1]], draws[[0, -1]])


def test_one_row_and_one_draw():
    assert point_estimate(numbered([[0]]), random_state=0).tolist() == [0]
    one = numbered([[2, 1, 2, 0]])
    assert point_estimate(one, random_state=0).tolist() == [0, 1, 0, 2]
    assert expected_loss(one, one[0]) == 0


def test_an_unknown_loss_is_refused():
    with pytest.raises(ValueError, match="loss must be 'vi' or 'binder'; got 'rand'"):
        point_estimate(numbered([[0, 1]]), "rand")


@settings(max_examples=25)
@given(draws=tables)
def test_rows_are_one_item_where_no_draw_tells_them_apart(draws):
    draws = numbered(draws)
    item_of, first = collapse(draws)
    same = (draws[:, :, None] == draws[:, None, :]).all(axis=0)
    np.testing.assert_array_equal(item_of[:, None] == item_of, same)
    np.testing.assert_array_equal(item_of[first], np.arange(len(first)))


def test_numbers_that_collide_are_drawn_again(monkeypatch):
    calls = []

    def careless(draws, factors, mixed):
        calls.append(1)
        mixed[:] = 0 if len(calls) < 3 else np.arange(draws.shape[1])

    monkeypatch.setattr("countless._mcmc.draws.mix_profiles", careless)
    item_of, _ = collapse(numbered([[0, 1, 2]]))
    assert item_of.tolist() == [0, 1, 2]
    assert len(calls) == 3


def test_blocks_leave_a_cluster_that_single_rows_do_not():
    halves = np.repeat([0, 1], 30)
    draws = numbered(np.abs(halves - np.eye(60, dtype=int)))  # each row is elsewhere in one draw
    item_of, first = collapse(draws)
    evidence = search._gather(draws, item_of, first, "vi")
    tables = search._tables(evidence, np.zeros(len(first), dtype=np.int64))
    alone, _ = search._move_items(evidence, tables, np.arange(len(first)))
    assert alone == 0
    search._improve(evidence, tables, np.random.default_rng(0))
    found = tables.labels[item_of]
    np.testing.assert_array_equal(found != found[0], halves)
