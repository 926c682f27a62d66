"""Messages against enumeration, and iterations against plain arrays."""

from itertools import product

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import gammaln

from countless import AffinityPropagation
from countless._exemplar.clustering import Problem
from countless._exemplar.max_product import MAX_PRODUCT, Messages, size_table
from countless._exemplar.similarity import full_edges, sparse_edges
from countless._exemplar.weights import weights_of
from countless._threads import open_threads
from countless.kernels.counts import best_of_others, new_bins, sort_descending
from countless.kernels.messages import answer_plain, answer_sized
from countless.priors import DirichletProcess, FiniteDirichlet, PitmanYor, UniformPartition

numbers = st.floats(-6, 6).map(lambda value: round(value, 3))


def enumerate_factor(value, weight_of):
    """Return what a factor over binary variables sends: the best with each on, less that off."""
    n = len(value)
    on, off = np.full(n, -np.inf), np.full(n, -np.inf)
    for chosen in product([0, 1], repeat=n):
        total = weight_of(np.array(chosen)) + float(np.dot(chosen, value))
        for p in range(n):
            alone = total - chosen[p] * value[p]
            if chosen[p]:
                on[p] = max(on[p], alone)
            else:
                off[p] = max(off[p], alone)
    return on, off


def column_weight(own, size):
    """Return the factor of a column: no row, or the exemplar with others; size[s] weighs s rows."""

    def weight_of(chosen):
        if not chosen.any():
            return 0.0
        return size[chosen.sum()] if chosen[own] else -np.inf

    return weight_of


@settings(max_examples=60)
@given(st.lists(numbers, max_size=60))
def test_sorting_equals_numpy(values):
    key, item = np.array(values, dtype=float), np.arange(len(values), dtype=np.int32)
    original = key.copy()
    n = len(key)
    key, item = sort_descending(key, item, np.empty(n), np.empty_like(item), n)
    np.testing.assert_array_equal(key, np.sort(original)[::-1])
    np.testing.assert_array_equal(original[item], key)
    assert sorted(item) == list(range(n))


@settings(max_examples=60)
@given(st.lists(numbers, min_size=1, max_size=7), st.lists(numbers, min_size=9, max_size=9))
def test_counts_against_enumeration(values, gain):
    value, gain = np.array(values, dtype=float), np.array(gain)
    n = len(value)
    when_on, when_off = np.empty(n), np.empty(n)
    table = np.concatenate([[-np.inf], gain])
    _, best, _ = best_of_others(value, n, table, new_bins(n), when_on, when_off)
    on, off = enumerate_factor(value, lambda chosen: gain[chosen.sum()])
    np.testing.assert_allclose(when_on, on, atol=1e-9)
    np.testing.assert_allclose(when_off, off, atol=1e-9)
    assert best == pytest.approx(max((on + value).max(), off.max()), abs=1e-9)


def plain_best_of_others(value, weight_of):
    """Return the best of the others with each on and off, the others sorted again for each."""
    on, off = np.empty(len(value)), np.empty(len(value))
    for p in range(len(value)):
        others = np.sort(np.delete(value, p))[::-1]
        total = np.concatenate([[0.0], np.cumsum(others)])
        counts = np.arange(len(total))
        off[p] = (total + weight_of(counts)).max()
        on[p] = (total + weight_of(counts + 1)).max()
    return on, off


@settings(max_examples=60)
@given(
    st.integers(1, 80),
    st.integers(0, 10**6),
    st.sampled_from([0.0, 0.1, 1.0, 6.0]),
    st.floats(-5, 2),
    st.sampled_from(["convex", "concave", "rough"]),
)
def test_bins_are_sorted_where_that_matters(n, seed, spread, level, shape):
    random = np.random.default_rng(seed)
    value = level + spread * random.standard_normal(n)
    size = np.arange(n + 2.0)
    gain = {
        "convex": gammaln(size + 1),
        "concave": -0.1 * size**1.5,
        "rough": random.normal(0, 2, n + 2),
    }[shape]
    when_on, when_off = np.empty(n), np.empty(n)
    table = np.concatenate([[-np.inf], gain])
    _, best, _ = best_of_others(value, n, table, new_bins(n), when_on, when_off)
    on, off = plain_best_of_others(value, lambda counts: gain[counts])
    np.testing.assert_allclose(when_on, on, atol=1e-9)
    np.testing.assert_allclose(when_off, off, atol=1e-9)
    assert best == pytest.approx(max((on + value).max(), off.max()), abs=1e-9)


@settings(max_examples=60)
@given(st.integers(3, 80), st.integers(0, 10**6), st.floats(-5, 2), st.booleans())
def test_messages_of_a_long_column_are_those_of_its_count(n, seed, level, convex):
    random = np.random.default_rng(seed)
    value, own = level + 2 * random.standard_normal(n), int(random.integers(n))
    size = gammaln(np.maximum(np.arange(n + 1), 1)) if convex else random.normal(0, 2, n + 1)
    size[0] = 0.0
    others = np.delete(value, own)
    on, off = plain_best_of_others(others, lambda counts: size[counts + 1])
    expected = value[own] + on - np.maximum(0.0, value[own] + off)
    message = value.copy()
    work, items = np.empty((3, n + 1)), np.empty(n + 1, dtype=np.int32)
    table = size_table(weights_of(None, n)._replace(size=size))
    answer_sized(message, n, own, table, work, items, new_bins(n))
    np.testing.assert_allclose(np.delete(message, own), expected, atol=1e-9)


@settings(max_examples=60)
@given(st.lists(numbers, min_size=1, max_size=6), st.data())
def test_messages_of_a_column_against_enumeration(values, data):
    n = len(values)
    own = data.draw(st.integers(0, n - 1))
    size = np.array([0.0, *data.draw(st.lists(numbers, min_size=n, max_size=n))])
    weights = weights_of(None, n)._replace(size=size)
    for sizes in (size, np.zeros(n + 1)):
        message = np.array(values, dtype=float)
        on, off = enumerate_factor(message, column_weight(own, sizes))
        if sizes.any():
            work, items = np.empty((3, n + 1)), np.empty(n + 1, dtype=np.int32)
            answer_sized(message, n, own, size_table(weights), work, items, new_bins(n))
        else:
            answer_plain(message, n, own)
        np.testing.assert_allclose(message, on - off, atol=1e-9)


def plain_iterations(S, weights, damping, row_damping, n_iter):
    """Max-product on arrays, every factor by enumeration; returns availabilities and beliefs.

    The weight of the number of clusters is a factor over the diagonal.
    """
    n = len(S)
    S = S + np.diag(np.full(n, weights.number[1]))
    A, R = np.zeros((n, n)), np.zeros((n, n))
    opening = np.full(n, weights.number[1])
    noted = A + S
    for _ in range(n_iter):
        fresh = np.empty((n, n))
        for i, j in np.ndindex(n, n):
            fresh[i, j] = S[i, j] - np.delete(noted[i], j).max()
        R = row_damping * R + (1 - row_damping) * fresh
        for j in range(n):
            on, off = enumerate_factor(R[:, j], column_weight(j, weights.size))
            A[:, j] = damping * A[:, j] + (1 - damping) * (on - off)
        belief = A.diagonal() + R.diagonal()
        noted = A + S
        if not weights.opens_alike:
            on, off = enumerate_factor(belief - opening, lambda h: weights.number[h.sum()])
            change = (1 - damping) * (on - off - opening)
            opening = opening + change
            S = S + np.diag(change)
    return A, belief


def run_messages(edges, weights, damping, n_iter, n_jobs=1):
    with open_threads(n_jobs) as each:
        messages = Messages(Problem(edges, weights, each))
        for _ in range(n_iter):
            messages.update(damping)
        messages.close()
    return messages


PRIORS = [
    None,
    DirichletProcess(0.5),
    PitmanYor(0.5, 0.4),
    FiniteDirichlet(2.0, 3),
    UniformPartition(),
]


def test_messages_can_start_from_clusters():
    S = np.random.default_rng(0).normal(-2, 1.5, (4, 4))
    choice = np.array([0, 3, 3, 3])
    with open_threads(1) as each:
        problem = Problem(full_edges(S), weights_of(DirichletProcess(0.5), 4), each)
        messages = Messages(problem, choice)
    told = np.zeros(4)
    told[3] = MAX_PRODUCT.start_share * (
        np.log(2 / 3) - np.log(1 / 2)
    )  # log Gamma(s) - log s at 3 and 2
    np.testing.assert_allclose(messages.availability, np.repeat(told, 4))
    largest = (messages.edges.value.reshape(4, 4).T + told).max(axis=1)
    np.testing.assert_allclose(messages.maxima.best, largest)


@pytest.mark.parametrize("prior", PRIORS, ids=lambda prior: type(prior).__name__)
def test_iterations_are_max_product(prior):
    random = np.random.default_rng(0)
    for n in (2, 5):
        S = random.normal(-2, 1.5, (n, n))
        weights = weights_of(prior, n).bounded(1e4)
        for n_iter in (1, 6):
            row_damping = 0.6 if prior is None else 0.0
            A, belief = plain_iterations(S, weights, 0.6, row_damping, n_iter)
            found = run_messages(full_edges(S.T.copy()), weights, 0.6, n_iter)
            np.testing.assert_allclose(found.availability.reshape(n, n).T, A, atol=1e-8)
            np.testing.assert_allclose(found.belief, belief, atol=1e-8)


@pytest.mark.parametrize("prior", [None, DirichletProcess(0.5)], ids=["plain", "prior"])
def test_snapshots_are_all_messages_of_an_iteration(prior):
    n = 5
    S = np.random.default_rng(2).normal(-2, 1.5, (n, n))
    weights = weights_of(prior, n).bounded(1e4)
    model = AffinityPropagation(
        prior, preference=S.diagonal().copy(), affinity="precomputed", damping=0.6, random_state=0
    )
    found = list(model.iterate_messages(S, n_iter=6))
    assert len(found) == 6
    assert not hasattr(model, "n_features_in_")
    for n_iter in (1, 6):
        row_damping = 0.6 if prior is None else 0.0
        A, belief = plain_iterations(S, weights, 0.6, row_damping, n_iter)
        total = A + S + np.diag(np.full(n, weights.number[1]))
        R = [
            [total[i, j] - A[i, j] - np.delete(total[i], j).max() for j in range(n)]
            for i in range(n)
        ]
        np.testing.assert_allclose(found[n_iter - 1].availability, A, atol=1e-7)
        np.testing.assert_allclose(found[n_iter - 1].evidence, belief, atol=1e-7)
        np.testing.assert_allclose(found[n_iter - 1].responsibility, R, atol=1e-7)


def test_snapshots_have_no_number_where_there_is_no_similarity():
    S = sp.csr_array(np.array([[0.0, -1.0, 0.0], [-1.0, 0.0, -2.0], [0.0, -2.0, 0.0]]))
    model = AffinityPropagation(affinity="precomputed", preference=-1.5, random_state=0)
    last = list(model.iterate_messages(S, n_iter=3))[-1]
    for matrix in (last.responsibility, last.availability):
        assert np.argwhere(np.isnan(matrix)).tolist() == [[0, 2], [2, 0]]


@pytest.mark.parametrize("prior", [None, DirichletProcess()], ids=["plain", "prior"])
def test_sparse_messages_are_those_of_full_similarities(prior):
    random = np.random.default_rng(1)
    n = 40
    S = random.normal(-3, 1, (n, n))
    weights = weights_of(prior, n)
    full = run_messages(full_edges(S.T.copy()), weights, 0.5, 8)
    edges = sparse_edges(sp.csr_array(S))
    edges.value[edges.own] = S.diagonal()
    sparse = run_messages(edges, weights, 0.5, 8)
    np.testing.assert_allclose(sparse.availability, full.availability, atol=1e-9)
    # An edge that is absent is one that nothing pays for.
    absent = (random.random((n, n)) < 0.4) & ~np.eye(n, dtype=bool)
    full = run_messages(full_edges(np.where(absent, -1e5, S).T.copy()), weights, 0.5, 8)
    matrix = sp.csr_array(np.where(absent, 0.0, S))
    edges = sparse_edges(matrix)
    edges.value[edges.own] = S.diagonal()
    sparse = run_messages(edges, weights, 0.5, 8)
    kept = full.availability.reshape(n, n)[~absent.T]
    np.testing.assert_allclose(sparse.availability, kept, atol=1e-6)


@pytest.mark.parametrize("prior", [None, DirichletProcess()], ids=["plain", "prior"])
def test_threads_change_no_bit(prior):
    n = 420
    S = np.random.default_rng(2).normal(-4, 2, (n, n))
    weights = weights_of(prior, n)
    one, three = (
        run_messages(full_edges(S.copy()), weights, 0.5, 3, n_jobs=n_jobs) for n_jobs in (1, 3)
    )
    assert len(one.blocks) > 1
    np.testing.assert_array_equal(one.availability, three.availability)
    np.testing.assert_array_equal(one.belief, three.belief)
