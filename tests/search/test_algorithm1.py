"""Algorithm 1 on blocks of rows equals a plain serial loop, for any number of threads."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from countless import DPMeans
from countless._data import backend
from countless._data.validate import hash_uniform
from countless.divergences import DIVERGENCES
from plain import by_first_appearance


def divergence_from(x, center, name):
    """Each divergence as textbooks write it, for one row and one center inside the domain."""
    if name == "sqeuclidean":
        return np.sum((x - center) ** 2)
    if name == "cosine":
        return 1 - x @ center
    if name == "kl":
        center = np.maximum(center, 1e-12)
        return np.sum(np.where(x > 0, x * np.log(np.where(x > 0, x, 1) / center), 0) - x + center)
    if name == "itakura-saito":
        return np.sum(x / center - np.log(x / center) - 1)
    center = np.clip(center, 1e-12, 1 - 1e-12)
    inside = np.where(x > 0, x * np.log(np.where(x > 0, x, 1) / center), 0)
    outside = np.where(x < 1, (1 - x) * np.log(np.where(x < 1, 1 - x, 1) / (1 - center)), 0)
    return np.sum(inside + outside)


def serial_loop(X, penalty, weight=None, name="sqeuclidean", max_iter=300):
    """Algorithm 1 as the paper prints it, one row at a time."""
    X = X.astype(float)
    weight = np.ones(len(X)) if weight is None else weight

    def mean(rows):
        total = weight[rows] @ X[rows]
        return total / (np.linalg.norm(total) if name == "cosine" else weight[rows].sum())

    centers = [mean(np.arange(len(X)))]
    labels = np.zeros(len(X), dtype=int)
    n_iter, settled = 0, False
    while n_iter < max_iter and not settled:
        n_iter += 1
        before, k = labels, len(centers)
        labels = np.zeros(len(X), dtype=int)
        for i, x in enumerate(X):
            away = [divergence_from(x, center, name) for center in centers]
            if weight[i] * min(away) > penalty:
                centers.append(x)
                labels[i] = len(centers) - 1
            else:
                labels[i] = np.argmin(away)
        used, labels = np.unique(labels, return_inverse=True)
        centers = [mean(labels == c) for c in range(len(used))]
        settled = k == len(centers) and np.array_equal(before, labels)
    return labels, np.array(centers), n_iter


def table(seed, n_rows, n_features, name):
    random = np.random.RandomState(seed)
    X = random.standard_normal((n_rows, n_features)) + 4 * random.randint(3, size=(n_rows, 1))
    if name in ("kl", "itakura-saito"):
        return np.abs(X) + 0.1
    if name == "logistic":
        return 1 / (1 + np.exp(-X))
    return X


@pytest.mark.slow
@given(
    seed=st.integers(0, 10**6),
    n_rows=st.integers(1, 120),
    n_features=st.integers(1, 5),
    share=st.floats(0.001, 1.5),
    kind=st.sampled_from(["float64", "float32", "sparse", "far off"]),
    weighted=st.booleans(),
)
def test_equals_the_serial_loop(seed, n_rows, n_features, share, kind, weighted):
    X = table(seed, n_rows, n_features, "sqeuclidean")
    weight = np.random.RandomState(seed).uniform(0.2, 3, n_rows) if weighted else None
    # A little off round shares: at a tie with the penalty rounding would decide.
    penalty = 1.0003 * share * max(np.square(X - X.mean(axis=0)).sum(axis=1).max(), 1e-3)
    if kind == "far off":
        X += 1e4
    if kind == "float32":
        X = X.astype(np.float32)
    labels, centers, n_iter = serial_loop(X, penalty, weight)
    given_rows = sp.csr_matrix(X) if kind == "sparse" else X
    model = DPMeans(penalty, refine=False).fit(given_rows, sample_weight=weight)
    assert np.array_equal(model.labels_, by_first_appearance(labels))
    assert model.n_iter_ == n_iter
    np.testing.assert_allclose(model.cluster_centers_[model.labels_], centers[labels], rtol=1e-6)


@pytest.mark.parametrize("name", list(DIVERGENCES))
@pytest.mark.parametrize("seed", range(4))
def test_every_divergence_equals_the_serial_loop(name, seed):
    X = table(seed, 90, 3, name)
    unit = X / np.linalg.norm(X, axis=1, keepdims=True) if name == "cosine" else X
    penalty = {"cosine": 0.2, "sqeuclidean": 5.0}.get(name, 0.5)
    labels, centers, _ = serial_loop(unit, penalty, name=name)
    model = DPMeans(penalty, refine=False, divergence=name).fit(X)
    assert model.n_clusters_ > 1
    assert np.array_equal(model.labels_, by_first_appearance(labels))
    np.testing.assert_allclose(model.cluster_centers_[model.labels_], centers[labels], rtol=1e-9)
    cost = sum(divergence_from(x, c, name) for x, c in zip(unit, centers[labels], strict=True))
    assert model.objective_ == pytest.approx(cost + penalty * len(centers), rel=1e-9)


def test_farthest_order_opens_at_the_farthest_row():
    X = np.array([[0.0], [3.0], [10.0], [0.2]])
    model = DPMeans(9.0, refine=False, order="farthest", max_iter=1)
    with pytest.warns(match="before it had converged"):
        labels = model.fit(X).labels_
    # The mean is 3.3; row 2 opens first and then row 0, which is 10.9 away in squares.
    assert labels.tolist() == [0, 1, 2, 0]


@given(seed=st.integers(0, 10**6), n_rows=st.integers(2, 100), penalty=st.floats(0.5, 30))
def test_farthest_order_does_not_depend_on_the_rows_order(seed, n_rows, penalty):
    X = table(seed, n_rows, 2, "sqeuclidean")
    shuffle = np.random.RandomState(seed).permutation(n_rows)
    model = DPMeans(penalty, refine=False, order="farthest")
    labels = model.fit(X).labels_
    assert np.array_equal(model.fit(X[shuffle]).labels_, by_first_appearance(labels[shuffle]))


@pytest.mark.parametrize("seed", range(3))
def test_random_order_is_the_serial_loop_over_shuffled_rows(seed):
    X = table(seed, 150, 2, "sqeuclidean")
    drawn = np.random.RandomState(seed).randint(2**31 - 1)
    turn = np.argsort(hash_uniform(np.arange(150, dtype=np.uint64), drawn))
    model = DPMeans(2.0, refine=False, order="random", random_state=seed).fit(X)
    labels = np.empty(150, dtype=int)
    labels[turn] = serial_loop(X[turn], 2.0)[0]
    assert np.array_equal(model.labels_, by_first_appearance(labels))


def test_random_order_depends_on_the_seed_alone():
    X = table(0, 200, 2, "sqeuclidean")
    fits = [DPMeans(2.0, refine=False, order="random", random_state=s).fit(X) for s in (1, 1, 2)]
    assert np.array_equal(fits[0].labels_, fits[1].labels_)
    assert not np.array_equal(fits[0].labels_, fits[2].labels_)


@pytest.mark.parametrize("refine", [False, True])
@pytest.mark.parametrize("sparse", [False, True])
def test_threads_do_not_change_a_bit(monkeypatch, refine, sparse):
    monkeypatch.setattr(
        backend, "BLOCKS", replace(backend.BLOCKS, most_rows=64)
    )  # so that there are many blocks
    X = table(3, 700, 4, "sqeuclidean")
    X = sp.csr_matrix(X) if sparse else X
    one, three = (DPMeans(40.0, refine=refine, n_jobs=n).fit(X) for n in (1, 3))
    assert np.array_equal(one.labels_, three.labels_)
    assert np.array_equal(one.cluster_centers_, three.cluster_centers_)
    assert one.objective_history_.tolist() == three.objective_history_.tolist()


def test_many_blocks_equal_the_serial_loop(monkeypatch):
    monkeypatch.setattr(backend, "BLOCKS", replace(backend.BLOCKS, most_rows=64))
    X = table(5, 700, 2, "sqeuclidean")
    model = DPMeans(1.5, refine=False, n_jobs=2).fit(X)
    assert np.array_equal(model.labels_, by_first_appearance(serial_loop(X, 1.5)[0]))
    assert model.share_computed_ < 0.5


def test_objective_never_rises():
    X = table(1, 500, 3, "sqeuclidean")
    history = DPMeans(1.0, refine=False).fit(X).objective_history_
    assert len(history) > 3
    assert (np.diff(history) <= 1e-9).all()
