"""Algorithm 2 on blocks of rows equals a plain serial loop, for any number of threads."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from countless import HDPMeans
from countless._data import backend
from countless._search.groups import algorithm2 as hdp_algorithm2


def serial_loop(X, group, local_penalty, global_penalty, max_iter=300):
    """Algorithm 2 as the paper prints it; locals and globals without rows are dropped.

    Returns the local cluster of each row, each group's list of globals (v), the centers and the
    number of passes. Groups are visited as they are numbered.
    """
    X = X.astype(float)
    n_groups = group.max() + 1
    centers = [X.mean(axis=0)]
    z = np.zeros(len(X), dtype=int)
    v = [[0] for _ in range(n_groups)]
    n_iter, settled = 0, False
    while n_iter < max_iter and not settled:
        n_iter += 1
        before = z.tolist(), [v[j][c] for j, c in zip(group, z, strict=True)]
        for i, x in enumerate(X):  # step 4
            used = v[group[i]]
            away = [np.sum((x - mu) ** 2) + local_penalty * (p not in used)
                    for p, mu in enumerate(centers)]  # fmt: skip
            p = int(np.argmin(away))
            if away[p] > local_penalty + global_penalty:
                centers.append(x)
                p = len(centers) - 1
            if p not in used:
                used.append(p)
            z[i] = used.index(p)
        for j in range(n_groups):
            kept, z[group == j] = np.unique(z[group == j], return_inverse=True)
            v[j] = [v[j][c] for c in kept]
            for c in range(len(v[j])):  # step 5
                rows = X[(group == j) & (z == c)]
                away = [np.sum((rows - mu) ** 2) for mu in centers]
                v[j][c] = int(np.argmin(away))
                if min(away) > global_penalty + np.sum((rows - rows.mean(axis=0)) ** 2):
                    centers.append(rows.mean(axis=0))
                    v[j][c] = len(centers) - 1
        used = sorted({p for some in v for p in some})
        v = [[used.index(p) for p in some] for some in v]
        labels = np.array([v[j][c] for j, c in zip(group, z, strict=True)])
        centers = [X[labels == p].mean(axis=0) for p in range(len(used))]  # step 6
        settled = before == (z.tolist(), labels.tolist())
    return z, v, np.array(centers), n_iter


def numbered(names):
    """Number names by first appearance."""
    place = {}
    return [place.setdefault(name, len(place)) for name in names]


def draw(seed, n_rows, n_features, n_groups):
    random = np.random.RandomState(seed)
    X = random.standard_normal((n_rows, n_features)) + 4 * random.randint(3, size=(n_rows, 1))
    return X, np.array(numbered(random.randint(n_groups, size=n_rows).tolist()))


@pytest.mark.slow
@given(
    seed=st.integers(0, 10**6),
    n_rows=st.integers(1, 90),
    n_features=st.integers(1, 4),
    n_groups=st.integers(1, 9),
    local_share=st.floats(0.001, 0.7),
    global_share=st.floats(0.001, 1.0),
    kind=st.sampled_from(["float64", "float32", "far off"]),
)
def test_equals_the_serial_loop(
    seed, n_rows, n_features, n_groups, local_share, global_share, kind
):
    X, group = draw(seed, n_rows, n_features, n_groups)
    spread = max(np.square(X - X.mean(axis=0)).sum(axis=1).max(), 1e-3)
    # A little off round shares: at a tie with a penalty rounding would decide.
    prices = 1.0003 * local_share * spread, 1.0007 * global_share * spread
    X = (X + 1e4 * (kind == "far off")).astype("float32" if kind == "float32" else "float64")
    z, v, centers, n_iter = serial_loop(X, group, *prices)
    model = HDPMeans(*prices, refine=False).fit(X, groups=group)
    labels = [v[j][c] for j, c in zip(group, z, strict=True)]
    assert model.labels_.tolist() == numbered(labels)
    assert model.n_local_clusters_.tolist() == [len(some) for some in v]
    for j in range(len(v)):
        assert model.local_labels_[group == j].tolist() == numbered(z[group == j].tolist())
    assert model.n_iter_ == n_iter
    np.testing.assert_allclose(model.cluster_centers_[model.labels_], centers[labels], rtol=1e-6)
    cost = np.square(X.astype(float) - centers[labels]).sum()
    total = cost + prices[0] * sum(map(len, v)) + prices[1] * len(centers)
    assert model.objective_ == pytest.approx(total, rel=1e-6)


@given(seed=st.integers(0, 10**6), local=st.floats(0.1, 20), everywhere=st.floats(0.1, 100))
def test_objective_never_rises(seed, local, everywhere):
    X, group = draw(seed, 80, 2, 6)
    history = HDPMeans(local, everywhere, refine=False).fit(X, groups=group).objective_history_
    assert (np.diff(history) <= 1e-9 * history[0]).all()


@pytest.mark.slow
def test_many_blocks_tables_and_threads_change_nothing(monkeypatch):
    X, group = draw(7, 900, 2, 40)
    models = []
    for n_jobs in (1, 3):
        monkeypatch.setattr(backend, "BLOCKS", replace(backend.BLOCKS, most_rows=64))
        small = replace(hdp_algorithm2.MEMORY, distances=256, spare_clusters=1)
        monkeypatch.setattr(hdp_algorithm2, "MEMORY", small)  # tables have to grow
        models.append(HDPMeans(0.5, 0.8, refine=False, n_jobs=n_jobs).fit(X, groups=group))
    z, v, _, n_iter = serial_loop(X, group, 0.5, 0.8)
    assert models[0].n_clusters_ > 20
    for model in models:
        assert model.labels_.tolist() == numbered([v[j][c] for j, c in zip(group, z, strict=True)])
        assert model.n_iter_ == n_iter
        assert np.array_equal(model.cluster_centers_, models[0].cluster_centers_)


def test_locals_that_share_a_global_are_counted_until_the_next_pass():
    X = np.array([[-0.2], [-0.2], [7.4], [-0.8], [1.2], [-1.4], [0.7], [6.7]])
    group = np.array([0, 1, 1, 0, 1, 0, 1, 0])
    model = HDPMeans(0.3, 6.0, refine=False, max_iter=1)
    with pytest.warns(match="before it had converged"):
        model.fit(X, groups=group)
    # Step 5 sends two locals of the first group to one global.
    assert model.n_local_clusters_.tolist() == [3, 2]
    assert model.group_clusters_.sum(axis=1).tolist() == [2, 2]
    assert model.set_params(max_iter=300).fit(X, groups=group).n_local_clusters_.tolist() == [2, 2]
