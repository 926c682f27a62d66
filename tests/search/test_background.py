"""Rows that belong to no cluster: the price, against plain loops; errors, backends, evidence."""

import dask.array as da
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from scipy.stats import chi2
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_mutual_info_score
from sklearn.preprocessing import StandardScaler

from countless import DPMeans
from countless._search.noise_model import Nearest, full_variance, quantile_price, rank_scores


def planted(k, n_features, share, *, n_rows=600, seed=0):
    """Draw unit clusters that are far apart, and uniform rows in their bounding box."""
    random = np.random.default_rng(seed)
    n_far = round(share * n_rows)
    grid = np.stack(np.unravel_index(np.arange(k), (8,) * min(n_features, 3)), axis=1)
    centers = np.zeros((k, n_features))
    centers[:, : grid.shape[1]] = 24.0 * grid
    label = random.integers(k, size=n_rows - n_far)
    rows = centers[label] + random.normal(size=(n_rows - n_far, n_features))
    low, high = rows.min(axis=0) - 20, rows.max(axis=0) + 20
    rows = np.vstack([rows, random.uniform(low, high, (n_far, n_features))])
    label = np.append(label, np.full(n_far, -1))
    order = random.permutation(n_rows)
    return rows[order], label[order]


X, TRUE = planted(4, 2, 0.15)


def plain_objective(model, X, weight):
    """Add up what each row costs, by the definition."""
    total = model.penalty_ * model.n_clusters_
    for row, w in zip(X, weight, strict=True):
        nearest = min(((row - center) ** 2).sum() for center in model.cluster_centers_)
        total += w * min(nearest, model.background_price_)
    return total


def plain_labels(model, X):
    labels = []
    for row in X:
        distance = [((row - center) ** 2).sum() for center in model.cluster_centers_]
        far = min(distance) > model.background_price_
        labels.append(-1 if far else int(np.argmin(distance)))
    return labels


@given(
    seed=st.integers(0, 2**32 - 1),
    n_features=st.integers(1, 3),
    share=st.sampled_from([0.0, 0.05, 0.3, 0.8]),
    penalty=st.sampled_from([0.5, 5.0, 500.0]),
    refine=st.booleans(),
    weighted=st.booleans(),
)
@settings(max_examples=60, deadline=None)
def test_a_share_is_what_a_plain_loop_gives(seed, n_features, share, penalty, refine, weighted):
    random = np.random.default_rng(seed)
    rows = random.normal(size=(random.integers(2, 40), n_features))
    rows[random.random(len(rows)) < 0.3] *= 10
    weight = random.integers(0, 4, len(rows)).astype(float) if weighted else np.ones(len(rows))
    weight[0] = 1.0
    model = DPMeans(penalty, background=share, refine=refine).fit(rows, sample_weight=weight)
    far = model.labels_ == -1
    assert model.labels_.tolist() == plain_labels(model, rows) == model.predict(rows).tolist()
    assert weight[far].sum() <= share * weight.sum()
    expected = plain_objective(model, rows, weight)
    assert model.objective_ == pytest.approx(expected, rel=1e-9, abs=1e-9)
    assert model.score(rows, sample_weight=weight) == pytest.approx(-expected, rel=1e-9, abs=1e-9)
    steps = np.diff(model.objective_history_)
    assert (steps <= 1e-9 * abs(model.objective_history_[0])).all()
    inside = weight * ~far
    weights = [inside[model.labels_ == c].sum() for c in range(model.n_clusters_)]
    assert model.cluster_weights_.tolist() == pytest.approx(weights)
    if model.converged_:  # centers are the means of their rows, and of no others
        for c, center in enumerate(model.cluster_centers_):
            own = model.labels_ == c
            np.testing.assert_allclose(
                center, np.average(rows[own], axis=0, weights=inside[own]), atol=1e-9
            )


@given(
    distance=st.lists(st.integers(0, 5), min_size=1, max_size=12),
    share=st.sampled_from([0.0, 0.1, 0.5, 0.99]),
    data=st.data(),
)
def test_the_price_of_a_share_lets_as_many_rows_go_as_it_may(distance, share, data):
    n_rows = len(distance)
    weights = st.lists(st.integers(1, 3), min_size=n_rows, max_size=n_rows)
    weight = np.array(data.draw(weights), dtype=float)
    values = np.array(distance, dtype=float)
    near = Nearest(np.zeros(n_rows, dtype=int), values, weight, 1)
    last = min(p for p in values if weight[values > p].sum() <= share * weight.sum())
    following = min((p for p in values if p > last), default=np.inf)
    assert quantile_price(near, share) == (last + following) / 2


@pytest.mark.parametrize("n_features", [2, 8])
@pytest.mark.parametrize("k", [3, 10])
@pytest.mark.parametrize("share", [0.0, 0.05, 0.3])
def test_auto_finds_planted_background(n_features, k, share):
    rows, true = planted(k, n_features, share)
    model = DPMeans(background="auto").fit(rows)
    assert model.n_clusters_ == k
    assert np.mean(model.labels_ == -1) == pytest.approx(share, abs=0.02)
    inside = true >= 0
    assert adjusted_mutual_info_score(true[inside], model.labels_[inside]) > 0.98
    assert (np.diff(model.objective_history_) <= 1e-9 * model.objective_history_[0]).all()
    assert model.labels_.tolist() == plain_labels(model, rows)
    assert model.path_.n_clusters == k


@pytest.mark.parametrize("kind", ["normal", "uniform", "unequal", "equal", "two values"])
def test_no_evidence_throws_no_row_away(kind):
    random = np.random.default_rng(0)
    rows = {
        "normal": random.normal(size=(500, 2)),
        "uniform": random.uniform(size=(500, 3)),
        "unequal": np.vstack([s * random.normal(size=(200, 2)) + 40 * s for s in (1.0, 3.0)]),
        "equal": np.ones((30, 2)),
        "two values": np.repeat([[0.0], [1.0]], 20, axis=0),
    }[kind]
    plain, model = DPMeans().fit(rows), DPMeans(background="auto").fit(rows)
    assert model.background_price_ == np.inf
    assert model.labels_.tolist() == plain.labels_.tolist()
    assert model.objective_ == plain.objective_
    assert ((model.outlier_score_ >= 0) & (model.outlier_score_ <= 1)).all()


def test_background_that_is_given_up_leaves_the_fit_of_all_rows():
    # The first price is finite here, and at the first clusters there is no evidence for any.
    X, _ = make_blobs(90, centers=3, random_state=0)
    X = StandardScaler().fit_transform(X)
    found, plain = DPMeans(background="auto").fit(X), DPMeans().fit(X)
    assert found.background_price_ == np.inf
    assert_array_equal(found.labels_, plain.labels_)
    assert (found.penalty_, found.objective_) == (plain.penalty_, plain.objective_)
    assert_array_equal(found.objective_history_, plain.objective_history_)


def test_none_stores_no_scores_and_no_price():
    model = DPMeans(background="auto").fit(X)
    assert (model.labels_ == -1).any()
    model.set_params(background=None).fit(X)
    assert model.background_price_ == np.inf
    assert not hasattr(model, "outlier_score_")


def test_a_background_row_equals_an_absent_one():
    model = DPMeans(background="auto").fit(X)
    inside = model.labels_ >= 0
    rest = DPMeans(model.penalty_).fit(X[inside])
    assert rest.labels_.tolist() == model.labels_[inside].tolist()
    np.testing.assert_allclose(rest.cluster_centers_, model.cluster_centers_, atol=1e-9)


@pytest.mark.parametrize("background", ["auto", 0.1])
def test_the_same_bits_on_every_backend(tmp_path, background):
    rows, _ = planted(4, 2, 0.15, n_rows=3000)
    expected = DPMeans(background=background, n_jobs=1).fit(rows)
    assert (expected.labels_ == -1).any()
    path = tmp_path / "rows.npy"
    np.save(path, rows)
    given = [path, np.load(path, mmap_mode="r"), da.from_array(rows, chunks=(700, 2))]
    for table in [rows, *given]:
        model = DPMeans(background=background, n_jobs=2).fit(table)
        for name in ("labels_", "outlier_score_", "cluster_centers_", "objective_history_"):
            assert np.asarray(getattr(model, name)).tobytes() == getattr(expected, name).tobytes()
        assert model.background_price_ == expected.background_price_
        assert np.asarray(model.predict(table)).tolist() == expected.labels_.tolist()


def test_false_discoveries_are_at_most_nominal_on_average():
    """Benjamini and Hochberg's rule on the scores, at 10 %: it bounds the expected proportion."""
    proportions = []
    for seed in range(5):
        rows, true = planted(4, 4, 0.1, n_rows=2000, seed=seed)
        score = DPMeans(background="auto").fit(rows).outlier_score_
        order = np.sort(score)
        passed = np.flatnonzero(order <= 0.1 * np.arange(1, len(order) + 1) / len(order))
        found = score <= order[passed[-1]]
        proportions.append(np.mean(true[found] >= 0))
        assert found[true < 0].mean() > 0.95
    assert np.mean(proportions) <= 0.1


def test_scores_of_normal_rows_are_uniform():
    rows, _ = planted(4, 3, 0.0, n_rows=4000)
    score = DPMeans(background="auto").fit(rows).outlier_score_
    for level in (0.01, 0.1, 0.5, 0.9):
        assert np.mean(score <= level) == pytest.approx(level, abs=0.02 + 0.1 * level * (1 - level))


def test_variance_of_truncated_rows():
    random = np.random.default_rng(0)
    square = 4.0 * chi2.rvs(3, size=200_000, random_state=random)
    kept = square[square <= 20.0]
    assert full_variance(kept.mean() / 3, 20.0, 3) == pytest.approx(4.0, rel=0.02)
    assert kept.mean() / 3 < 3.5


def test_ranks_count_the_rows_that_are_as_far():
    near = Nearest(np.zeros(4, dtype=int), np.array([1.0, 2.0, 2.0, 9.0]), np.ones(4), 1)
    assert rank_scores(near, 5.0).tolist() == [1.0, 0.75, 0.75, 0.25]


@pytest.mark.parametrize("divergence", ["cosine", "kl", "itakura-saito", "logistic"])
def test_a_share_with_other_divergences(divergence):
    random = np.random.default_rng(0)
    rows = np.clip(np.abs(planted(3, 3, 0.1, n_rows=200)[0]) / 100, 0.01, 0.99)
    rows += random.uniform(0, 1e-3, rows.shape)
    model = DPMeans(divergence=divergence, background=0.1).fit(rows)
    assert 0 < np.mean(model.labels_ == -1) <= 0.1
    assert model.predict(rows).tolist() == model.labels_.tolist()
    assert (model.outlier_score_ > 0).all()


def test_sparse_rows_take_a_share():
    dense, sparse = (DPMeans(background=0.15).fit(kind) for kind in (X, sp.csr_matrix(X)))
    assert dense.labels_.tolist() == sparse.labels_.tolist()
    with pytest.raises(ValueError, match="needs dense rows"):
        DPMeans(background="auto").fit(sp.csr_matrix(X))


def test_a_number_of_clusters_of_the_rows_that_are_left():
    model = DPMeans(background="auto", n_clusters=3).fit(X)
    assert model.n_clusters_ == 3
    assert (model.labels_ == -1).any()


@pytest.mark.parametrize("background", [-0.1, 1.0, 1.5, np.nan, True, "all", [0.1]])
def test_a_share_out_of_range_is_refused(background):
    with pytest.raises(ValueError, match=r"background must be None, 'auto' or a share"):
        DPMeans(background=background).fit(X)


def test_auto_is_for_squared_euclidean_distance():
    with pytest.raises(ValueError, match="background='auto' needs divergence='sqeuclidean'"):
        DPMeans(divergence="kl", background="auto").fit(np.abs(X))


def test_no_checkpoint_with_background(tmp_path):
    with pytest.raises(ValueError, match="checkpoint cannot be combined with background"):
        DPMeans(background=0.1, checkpoint=tmp_path / "run").fit(X)


def test_a_stream_keeps_background_apart_until_it_is_dense():
    random = np.random.default_rng(0)
    model = DPMeans(background="auto").partial_fit(X)
    first = model.n_clusters_
    assert first == 4
    assert np.mean(model.labels_ == -1) == pytest.approx(0.15, abs=0.02)
    place = X.min(axis=0) - 40  # far from everything
    model.partial_fit(np.vstack([X[:50], place[None]]))
    assert model.n_clusters_ == first
    assert model.labels_[-1] == -1
    assert model.labels_[:50].tolist() == model.predict(X[:50]).tolist()
    model.partial_fit(np.vstack([X[:50], place + random.normal(size=(400, 2))]))
    assert model.n_clusters_ == first + 1
    assert model.labels_[-1] == first
    assert model.cluster_ids_.tolist() == [0, 1, 2, 3, 4]


def test_a_stream_counts_all_rows_in_its_objective():
    model = DPMeans(background=0.15).fit(X)
    more = X[:40] + 0.01
    price = model.background_price_
    model.partial_fit(more)
    centers = model.cluster_centers_
    distance = ((more[:, None] - centers) ** 2).sum(axis=2).min(axis=1)
    assert model.labels_.tolist() == model.predict(more).tolist()
    assert (model.labels_ == -1).tolist() == (distance > price).tolist()
    both = np.vstack([X, more])
    assert model.objective_ == pytest.approx(-model.score(both), rel=1e-3)


def test_the_stream_forgets_the_oldest_background_but_not_its_cost():
    random = np.random.default_rng(1)
    model = DPMeans(background=0.15).fit(X)
    for _ in range(3):
        model.partial_fit(random.uniform(-1e4, 1e4, size=(300, 2)))
    stream = model._stream
    assert (stream.item_id < 0).sum() <= 300 + 256
    assert stream.seen == pytest.approx(len(X) + 900)
    assert model.objective_ >= 800 * model.background_price_
