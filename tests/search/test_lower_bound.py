"""The lower bound is below the optimum over all partitions, and near it."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.datasets import make_blobs

from countless import DPMeans, HDPMeans, KernelDPMeans, KernelHDPMeans
from countless._search import lower_bound as module
from countless._search.lower_bound import (
    RELAXATION,
    OptimalityGap,
    dp_means_lower_bound,
    kernel_dp_means_lower_bound,
    shared_lower_bound,
    within_clusters,
)
from plain import all_partitions

PARTITIONS = {n: np.array(all_partitions(n)) for n in range(2, 8)}


def plain_cost(X, weight, labels):
    cost = 0.0
    for label in set(labels[weight > 0]):
        rows, w = X[labels == label], weight[labels == label]
        cost += (w @ (rows - np.average(rows, axis=0, weights=w)) ** 2).sum()
    return cost


def n_used(weight, labels):
    return len(set(labels[weight > 0]))


tables = st.integers(2, 7).flatmap(
    lambda n: hnp.arrays(
        np.float64, st.tuples(st.just(n), st.integers(1, 3)), elements=st.integers(-9, 9)
    )
)


@settings(max_examples=60)
@given(tables, st.floats(0.05, 200), st.data())
def test_no_partition_is_below_the_bound(X, penalty, data):
    n = len(X)
    weight = np.array(data.draw(st.lists(st.sampled_from([0, 1, 2.5]), min_size=n, max_size=n)))
    if not weight.any():
        weight[0] = 1
    every = PARTITIONS[n]
    optimum = min(plain_cost(X, weight, z) + penalty * n_used(weight, z) for z in every)
    labels = every[data.draw(st.integers(0, len(every) - 1))]  # valid whatever the labels
    bound = dp_means_lower_bound(X, weight, penalty, labels)
    assert bound <= optimum * (1 + 1e-9) + 1e-9


@settings(max_examples=25)
@given(tables, st.data())
def test_no_shared_clustering_is_below_the_bound(X, data):
    n, one = len(X), np.ones(len(X))
    local, global_ = data.draw(st.tuples(st.floats(0.05, 50), st.floats(0.05, 50)))
    group = np.array(data.draw(st.lists(st.integers(0, 2), min_size=n, max_size=n)))
    costs = [
        plain_cost(X, one, z) + local * len(set(zip(group, z, strict=True))) + global_ * len(set(z))
        for z in PARTITIONS[n]
    ]
    labels = PARTITIONS[n][np.argmin(costs)]

    def of_rows(ids, penalty):
        return dp_means_lower_bound(X[ids], one[ids], penalty, labels[ids])

    def of_kernel(ids, penalty):
        kernel = X[ids] @ X[ids].T + 1000.0
        return kernel_dp_means_lower_bound(kernel, one[ids], penalty, labels[ids])

    for bound in (of_rows, of_kernel):
        found = shared_lower_bound(bound, group, local, global_)
        assert found <= min(costs) * (1 + 1e-9) + 1e-9


@settings(max_examples=30)
@given(tables, st.floats(0.05, 200))
def test_the_spectral_relaxation_is_below_every_partition(X, penalty):
    one = np.ones(len(X))
    centred = X - X.mean(axis=0)
    values = np.linalg.eigvalsh(centred @ centred.T)
    relaxed = penalty + values.sum() - np.maximum(values - penalty, 0).sum()
    costs = [plain_cost(X, one, z) + penalty * len(set(z)) for z in PARTITIONS[len(X)]]
    bound = kernel_dp_means_lower_bound(X @ X.T, one, penalty, PARTITIONS[len(X)][-1])
    assert relaxed <= bound * (1 + 1e-9) + 1e-9
    assert bound <= min(costs) * (1 + 1e-9) + 1e-9


@pytest.mark.parametrize("rows", [3, 4])
def test_parts_keep_the_bound_valid(monkeypatch, rows):
    constants = module.Relaxation(least_rows=rows, rows_per_cluster=1, most_rows=rows)
    monkeypatch.setattr(module, "RELAXATION", constants)
    random = np.random.RandomState(0)
    for _ in range(20):
        X, weight = random.standard_normal((7, 2)), random.exponential(size=7)
        penalty = random.exponential()
        every = PARTITIONS[7]
        costs = [plain_cost(X, weight, z) + penalty * n_used(weight, z) for z in every]
        bound = dp_means_lower_bound(X, weight, penalty, every[np.argmin(costs)])
        assert 0 < bound <= min(costs)


def test_well_separated_clusters_are_proved_optimal():
    X, _ = make_blobs(150, centers=3, cluster_std=0.3, random_state=1)
    result = DPMeans().fit(X).optimality_gap(X)
    assert 0 <= result.gap < 1e-6


def test_one_cluster_is_proved_optimal():
    X = np.random.RandomState(0).standard_normal((1200, 3))
    result = DPMeans(penalty=1e4).fit(X).optimality_gap(X)
    assert result.gap < 1e-9


@pytest.mark.slow
def test_gap_of_two_thousand_rows():
    X, _ = make_blobs(2000, centers=10, n_features=10, random_state=10)
    model = DPMeans().fit(X)
    result = model.optimality_gap(X)
    assert result.objective == pytest.approx(model.objective_)
    assert 0 <= result.gap <= 0.03


def test_several_data_sets():
    random = np.random.RandomState(0)
    centers = random.uniform(0, 20, (5, 2))
    groups = np.repeat(np.arange(6), 30)
    truth = np.concatenate(
        [random.choice(random.choice(5, 3, replace=False), 30) for _ in range(6)]
    )
    X = centers[truth] + random.standard_normal((180, 2))
    model = HDPMeans().fit(X, groups=groups)
    result = model.optimality_gap(X, groups)
    assert result.objective == pytest.approx(model.objective_)
    pooled = dp_means_lower_bound(
        X, np.ones(180), model.local_penalty_ + model.global_penalty_, model.labels_
    )
    assert pooled < result.lower_bound <= result.objective
    assert result.gap < 0.05


def test_kernels():
    X, _ = make_blobs(120, centers=3, cluster_std=0.4, random_state=1)
    weight = np.random.RandomState(0).uniform(0, 2, 120)
    weight[::7] = 0
    model = KernelDPMeans().fit(X, sample_weight=weight)
    result = model.optimality_gap(X)
    assert result.objective == model.objective_
    assert 0 <= result.gap < 0.02
    linear = KernelDPMeans(20.0, kernel="linear").fit(X).optimality_gap(X)
    plain = DPMeans(20.0).fit(X).optimality_gap(X)
    assert linear.objective == pytest.approx(plain.objective)
    assert linear.lower_bound == pytest.approx(plain.lower_bound, rel=1e-3)
    precomputed = KernelDPMeans(20.0, kernel="precomputed").fit(X @ X.T)
    assert precomputed.optimality_gap(X @ X.T).gap == pytest.approx(linear.gap, abs=1e-6)
    shared = KernelHDPMeans(1.0, 2.0).fit(X, groups=np.arange(120) // 60)
    assert 0 <= shared.optimality_gap(X, np.arange(120) // 60).gap < 0.2
    with pytest.raises(ValueError, match="the rows of the fit: 120 rows; got 119"):
        model.optimality_gap(X[1:])


def test_weights_equal_repeated_rows():
    random = np.random.RandomState(1)
    X, weight = random.standard_normal((30, 2)), random.randint(1, 4, 30)
    ids = np.repeat(np.arange(30), weight)
    labels = DPMeans(penalty=8.0).fit(X, sample_weight=weight).labels_
    once = dp_means_lower_bound(X, weight.astype(float), 8.0, labels)
    repeated = dp_means_lower_bound(X[ids], np.ones(len(ids)), 8.0, labels[ids])
    assert once == pytest.approx(repeated, rel=5e-3)


def test_what_has_no_bound_is_refused():
    X = np.random.RandomState(0).uniform(0.1, 1, (30, 2))
    with pytest.raises(ValueError, match="needs divergence='sqeuclidean'"):
        DPMeans(penalty=1.0, divergence="kl").fit(X).optimality_gap(X)
    with pytest.raises(ValueError, match="the rows of the fit: 30 rows; got 29"):
        DPMeans(penalty=1.0).fit(X).optimality_gap(X[:29])
    with pytest.raises(ValueError, match="have a weight of 60; got 30"):
        DPMeans(penalty=1.0).fit(X, sample_weight=np.full(30, 2.0)).optimality_gap(X)
    with pytest.raises(ValueError, match="the rows of the fit: 30 rows; got 29"):
        HDPMeans(1.0, 1.0).fit(X).optimality_gap(X[:29])


def test_no_penalty_and_no_cost():
    assert dp_means_lower_bound(np.eye(3), np.ones(3), 0.0, np.zeros(3, int)) == 0.0
    assert OptimalityGap(0.0, 0.0).gap == 0.0
    X = np.ones((5, 2))
    assert within_clusters(X, np.ones(5), np.zeros(5, int)) == 0.0
    assert DPMeans(penalty=2.0).fit(X).optimality_gap(X) == OptimalityGap(2.0, 2.0)
    assert RELAXATION.iterations >= RELAXATION.check_every
