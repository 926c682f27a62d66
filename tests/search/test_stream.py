"""Streams: bounded memory, ids that keep their meaning, clusters born and merged as rows come."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score

from countless import DPMeans
from countless._search.stream import MOST_ITEMS

CENTERS = np.array([[0.0, 0.0], [10.0, 0.0], [0.0, 10.0], [10.0, 10.0]])


def batch(which, n_rows, seed):
    random = np.random.RandomState(seed)
    labels = random.choice(which, n_rows)
    return CENTERS[labels] + random.normal(scale=0.5, size=(n_rows, 2)), labels


def test_a_stream_ends_where_a_fit_does():
    X, true = make_blobs(6000, centers=5, cluster_std=0.7, random_state=1)
    model = DPMeans(400.0, random_state=0)
    for start in range(0, 6000, 500):
        model.partial_fit(X[start : start + 500])
    whole = DPMeans(400.0, random_state=0).fit(X)
    assert model.n_clusters_ == whole.n_clusters_
    assert adjusted_rand_score(model.predict(X), whole.labels_) > 0.95
    assert model.objective_ == pytest.approx(whole.objective_, rel=0.01)
    assert model.cluster_weights_.sum() == 6000
    assert adjusted_rand_score(model.predict(X), true) > 0.9


@pytest.mark.slow
def test_memory_is_bounded_and_sums_are_exact():
    model = DPMeans(50.0, random_state=0)
    rows = []
    for seed in range(12):
        X, _ = batch([0, 1, 2, 3], 700, seed)
        rows.append(X)
        model.partial_fit(X)
        assert len(model._stream.items.weight) <= MOST_ITEMS
    X = np.vstack(rows)
    assert model._stream.items.weight.sum() == pytest.approx(len(X))
    np.testing.assert_allclose(model._stream.items.total.sum(axis=0), X.sum(axis=0))
    # Rows of one item stay together in the stream; one by one each goes to its nearest center.
    free = -model.score(X)
    assert free <= model.objective_ <= 1.02 * free


def test_ids_are_born_kept_and_never_used_again():
    model = DPMeans(50.0, random_state=0)
    model.partial_fit(batch([0, 1], 200, 0)[0])
    born = dict(zip(model.cluster_ids_.tolist(), model.cluster_centers_, strict=True))
    assert sorted(born) == [0, 1]
    X, _ = batch([2], 100, 1)
    model.partial_fit(X)
    assert model.cluster_ids_.tolist() == [0, 1, 2]
    assert set(model.labels_) == {2}
    for label, center in born.items():
        np.testing.assert_allclose(model.cluster_centers_[label], center)
    # Rows between clusters 0 and 1 join the two; their weight decides which id lives on.
    bridge = np.column_stack([np.linspace(0, 10, 4000), np.zeros(4000)])
    model.set_params(penalty=60_000.0)
    model.partial_fit(bridge)
    assert model.penalty_ == 60_000.0
    assert model.n_clusters_ == 1
    survivor = model.cluster_ids_.tolist()
    model.set_params(penalty=50.0).partial_fit(batch([3], 400, 2)[0])
    assert survivor[0] in model.cluster_ids_
    gone = {0, 1, 2} - set(survivor)
    assert not gone & set(model.cluster_ids_.tolist())
    assert model.cluster_ids_.max() >= 3


def test_auto_decides_on_the_first_batch_and_grows_with_the_weight():
    model = DPMeans(random_state=0)
    model.partial_fit(batch([0, 1, 2], 300, 0)[0])
    first = model.penalty_
    assert model.n_clusters_ == 3
    for seed in range(1, 6):
        model.partial_fit(batch([0, 1, 2], 300, seed)[0])
    assert model.penalty_ == pytest.approx(6 * first)
    assert model.cluster_ids_.tolist() == [0, 1, 2]
    model.partial_fit(batch([3], 600, 9)[0])
    assert model.cluster_ids_.tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("name", ["sqeuclidean", "cosine", "kl"])
def test_partial_fit_goes_on_from_fit(name):
    X, _ = batch([0, 1, 2], 300, 0)
    X = np.abs(X) + 1
    penalty = {"sqeuclidean": 80.0, "cosine": 2.0, "kl": 20.0}[name]
    model = DPMeans(penalty, divergence=name, random_state=0).fit(X)
    ids, objective = model.cluster_ids_.tolist(), model.objective_
    more = np.abs(batch([0, 1, 2], 300, 1)[0]) + 1
    model.partial_fit(more)
    assert model.cluster_ids_.tolist()[: len(ids)] == ids
    assert model.cluster_weights_.sum() == pytest.approx(600)
    assert model.objective_ > objective
    expected = -model.score(np.vstack([X, more]))
    assert model.objective_ == pytest.approx(expected, rel=0.02)


def test_columns_must_stay_the_same():
    model = DPMeans(1.0).partial_fit(np.ones((3, 2)))
    with pytest.raises(ValueError, match="X has 3 features"):
        model.partial_fit(np.ones((3, 3)))


def test_auto_needs_rows_that_differ_and_a_refused_batch_changes_nothing():
    with pytest.raises(ValueError, match="first batch whose rows are all equal"):
        DPMeans(random_state=0).partial_fit(np.ones((1, 2)))
    model = DPMeans(random_state=0).partial_fit(batch([0, 1], 200, 0)[0])
    before = model.penalty_, model.objective_
    with pytest.raises(ValueError, match="NaN"):
        model.partial_fit(np.full((5, 2), np.nan))
    assert (model.penalty_, model.objective_) == before


def test_sparse_and_weighted_batches_are_the_same_stream():
    X, _ = batch([0, 1, 2], 400, 3)
    weight = np.random.RandomState(0).randint(1, 4, 400)
    dense, sparse = DPMeans(60.0, random_state=0), DPMeans(60.0, random_state=0)
    for part in np.array_split(np.arange(400), 4):
        dense.partial_fit(X[part], sample_weight=weight[part])
        sparse.partial_fit(sp.csr_matrix(X[part]), sample_weight=weight[part])
    assert dense.cluster_weights_.sum() == weight.sum()
    assert np.array_equal(dense.predict(X), sparse.predict(X))
