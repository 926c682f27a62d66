"""Refinement of the hard HDP: exact costs, never up, and to the optimum where it can be listed."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from countless import DPMeans, HDPMeans
from countless._search.groups import choice as hdp_choice
from countless._search.groups import refine as hdp_refine
from countless._search.groups.groups import check_groups
from countless._search.groups.refine import SharedClusters, refine
from countless._search.groups.rows import open_grouped
from plain import all_partitions


def objective(X, group, labels, local_penalty, global_penalty):
    """Objective (2), from the labels alone."""
    X = X.astype(float)
    cost = sum(np.square(X[labels == p] - X[labels == p].mean(axis=0)).sum() for p in set(labels))
    n_local = len(set(zip(group.tolist(), labels.tolist(), strict=True)))
    return cost + local_penalty * n_local + global_penalty * len(set(labels.tolist()))


def draw(seed, n_rows, n_features, n_groups):
    random = np.random.RandomState(seed)
    X = random.standard_normal((n_rows, n_features)) + 4 * random.randint(3, size=(n_rows, 1))
    return X, random.randint(n_groups, size=n_rows)


def shared_sets(seed, n_globals=8, n_groups=30, n_used=3, n_rows=20, n_features=3):
    """Data sets that each hold some of the clusters; returns rows, truth and groups."""
    random = np.random.RandomState(seed)
    centers = 4 * random.standard_normal((n_globals, n_features))
    truth = np.concatenate(
        [
            random.choice(random.choice(n_globals, n_used, replace=False), n_rows)
            for _ in range(n_groups)
        ]
    )
    X = centers[truth] + random.standard_normal((len(truth), n_features))
    return X, truth, np.repeat(np.arange(n_groups), n_rows)


@pytest.mark.slow
@given(
    seed=st.integers(0, 10**6),
    n_rows=st.integers(1, 80),
    n_features=st.integers(1, 4),
    n_groups=st.integers(1, 12),
    local=st.floats(0, 30),
    everywhere=st.floats(0, 100),
    kind=st.sampled_from(["float64", "float32", "far off"]),
)
def test_objective_is_that_of_the_labels_and_never_rises(
    seed, n_rows, n_features, n_groups, local, everywhere, kind
):
    X, group = draw(seed, n_rows, n_features, n_groups)
    X = (X + 1e4 * (kind == "far off")).astype("float32" if kind == "float32" else "float64")
    model = HDPMeans(local, everywhere).fit(X, groups=group)
    assert model.converged_
    exact = objective(X, group, model.labels_, local, everywhere)
    assert model.objective_ == pytest.approx(exact, rel=1e-6, abs=1e-6)
    history = model.objective_history_
    assert (np.diff(history) <= 1e-9 * max(history[0], 1.0)).all()
    pairs = set(zip(group.tolist(), model.labels_.tolist(), strict=True))
    assert model.n_local_clusters_.sum() == len(pairs)
    assert model.group_clusters_.sum() == len(pairs)


@pytest.mark.parametrize("seed", range(12))
def test_moves_never_raise_the_objective_and_keep_it_exact(seed):
    X, group = draw(seed, 120, 2, 6)
    group = np.sort(group)
    starts = check_groups(group, 120).sorted()[1]
    random = np.random.RandomState(seed)
    local, everywhere = random.uniform(0.5, 6), random.uniform(0.5, 30)
    with open_grouped(X, None, None) as rows:
        labels = random.randint(7, size=120).astype(np.int32)
        clusters = SharedClusters(rows, starts, labels, local, everywhere)
        moves = (clusters.reassign, clusters.split, clusters.merge, clusters.move_locals,
                 clusters.move_halves, clusters.move_rows)  # fmt: skip
        taken = 0
        for turn in range(30):
            before = clusters.objective
            taken += bool(moves[turn % len(moves)]())
            now = clusters.objective
            assert now <= before + 1e-9
            exact = objective(X, group, clusters.state.labels, local, everywhere)
            assert now == pytest.approx(exact, rel=1e-9)
        assert taken > 2


@pytest.mark.parametrize("move", ["merge", "split", "move_locals", "move_halves", "move_rows"])
def test_each_move_repairs_the_defect_that_it_is_for(move):
    pair = np.array([[0.0], [0.1], [0.2], [9.0], [9.1], [9.2]])
    X = np.vstack([pair, pair])
    starts = np.array([0, 6, 12])
    wrong = {
        "merge": [0, 0, 0, 1, 1, 1, 2, 2, 2, 1, 1, 1],  # global 2 is 0 once more
        "split": [0] * 12,
        "move_locals": [0, 0, 0, 1, 1, 1, 1, 1, 1, 0, 0, 0],
        "move_halves": [0, 0, 0, 1, 1, 1, 0, 0, 0, 0, 0, 0],
        "move_rows": [0, 0, 0, 1, 1, 1, 0, 0, 1, 1, 1, 1],
    }[move]
    with open_grouped(X, None, None) as rows:
        clusters = SharedClusters(rows, starts, np.array(wrong, dtype=np.int32), 1.0, 3.0)
        for _ in range(3):
            getattr(clusters, move)()
        labels = clusters.state.labels
    assert clusters.state.n_globals == 2
    assert len(set(labels[[0, 1, 2, 6, 7, 8]])) == len(set(labels[[3, 4, 5, 9, 10, 11]])) == 1


@pytest.mark.parametrize("n_rows", [5, 7])
def test_reaches_the_listed_optimum_of_tiny_tables(n_rows):
    reached, trials = 0, 40
    every = [np.array(labels) for labels in all_partitions(n_rows)]
    for seed in range(trials):
        X, group = draw(seed, n_rows, 2, 3)
        random = np.random.RandomState(seed)
        local, everywhere = random.uniform(0.1, 8), random.uniform(0.1, 30)
        best = min(objective(X, group, labels, local, everywhere) for labels in every)
        found = HDPMeans(local, everywhere).fit(X, groups=group).objective_
        assert found >= best - 1e-9
        reached += found <= best + 1e-9
    assert reached >= 0.95 * trials


@pytest.mark.parametrize("seed", range(4))
def test_ends_below_algorithm_2_and_at_or_below_the_truth(seed):
    X, truth, group = shared_sets(seed)
    local, everywhere = 10.0, 40.0
    plain = HDPMeans(local, everywhere, refine=False).fit(X, groups=group)
    refined = HDPMeans(local, everywhere).fit(X, groups=group)
    assert refined.objective_ <= plain.objective_
    assert refined.objective_ <= 1.001 * objective(X, group, truth, local, everywhere)


def test_large_groups_are_processed_in_parts(monkeypatch):
    X, _, group = shared_sets(3, n_groups=4, n_rows=200)
    whole = HDPMeans(20.0, 60.0).fit(X, groups=group)
    small = replace(hdp_choice.TILES, tile_values=64, large_group_values=256)
    monkeypatch.setattr(hdp_choice, "TILES", small)
    parts = HDPMeans(20.0, 60.0).fit(X, groups=group)
    assert parts.objective_ == pytest.approx(whole.objective_, rel=1e-3)
    assert (np.diff(parts.objective_history_) <= 1e-9 * parts.objective_).all()


def test_threads_do_not_change_a_bit(monkeypatch):
    for module in (hdp_choice, hdp_refine):
        monkeypatch.setattr(module, "TILES", replace(module.TILES, tile_values=512))
    X, _, group = shared_sets(5, n_groups=40)
    one, three = (HDPMeans(8.0, 30.0, n_jobs=n).fit(X, groups=group) for n in (1, 3))
    assert np.array_equal(one.labels_, three.labels_)
    assert np.array_equal(one.cluster_centers_, three.cluster_centers_)
    assert one.objective_history_.tolist() == three.objective_history_.tolist()


def test_order_of_rows_between_groups_does_not_matter():
    X, _, group = shared_sets(6)
    mixed = np.argsort(np.random.RandomState(0).permutation(len(X)) % 7, kind="stable")
    one = HDPMeans(8.0, 30.0).fit(X, groups=group)
    other = HDPMeans(8.0, 30.0).fit(X[mixed], groups=group[mixed])
    assert other.objective_ == pytest.approx(one.objective_, rel=2e-3)


@pytest.mark.parametrize("seed", range(3))
def test_one_data_set_is_dp_means_at_the_sum_of_the_penalties(seed):
    X, _, _ = shared_sets(seed)
    for parameters, penalty in (((15.0, 35.0), 50.0), (("auto", "auto"), "auto")):
        one = HDPMeans(*parameters, random_state=0).fit(X)
        reference = DPMeans(penalty, random_state=0).fit(X)
        assert np.array_equal(one.labels_, reference.labels_)
        assert one.objective_ == reference.objective_
        assert one.local_penalty_ + one.global_penalty_ == reference.penalty_
        assert one.n_local_clusters_.tolist() == [one.n_clusters_]


def test_stops_at_max_iter():
    X, _, group = shared_sets(0)
    with open_grouped(X, None, None) as rows:
        starts = check_groups(group, len(X)).sorted()[1]
        zeros = np.zeros(len(X), dtype=np.int32)
        found = refine(rows, starts, zeros, 8.0, 30.0, tol=0.0, max_iter=2)
    assert not found.converged
