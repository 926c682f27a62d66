"""The bootstrap: what it counts is what plain loops count, and it does not depend on threads."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.cluster import HDBSCAN, KMeans
from sklearn.datasets import make_blobs

from countless import DPMeans, LinkageClustering, bootstrap
from countless.dissimilarity import dissimilarities
from countless.stability import NOT_DRAWN, Stability


def plain_jaccard(labels, draw):
    """Compare sets of rows."""
    drawn = set(np.flatnonzero(draw > NOT_DRAWN).tolist())
    found = [set(np.flatnonzero(draw == d).tolist()) for d in np.unique(draw[draw >= 0])]
    out = []
    for label in range(labels.max() + 1):
        rows = set(np.flatnonzero(labels == label).tolist()) & drawn
        out.append(
            max((len(rows & other) / len(rows | other) for other in found), default=0.0)
            if rows
            else np.nan
        )
    return out


def drawn_at_random(seed):
    random = np.random.default_rng(seed)
    labels = random.integers(-1, 4, size=30).astype(np.int32)
    return Stability(labels, random.integers(-2, 5, size=(6, 30)).astype(np.int32))


@pytest.mark.parametrize("seed", range(3))
def test_counts_are_those_of_plain_loops(seed):
    found = drawn_at_random(seed)
    np.testing.assert_allclose(
        found.jaccard, [plain_jaccard(found.labels, draw) for draw in found.draws]
    )
    np.testing.assert_allclose(found.stability, np.nanmean(found.jaccard, axis=0))
    together = found.together()
    for i in range(30):
        for j in range(30):
            both = [draw for draw in found.draws if min(draw[i], draw[j]) > NOT_DRAWN]
            same = [i == j or (draw[i] == draw[j] and draw[i] >= 0) for draw in both]
            np.testing.assert_allclose(together[i, j], np.mean(same) if both else np.nan, rtol=1e-6)
    np.testing.assert_array_equal(found.together([3, 1]), together[np.ix_([3, 1], [3, 1])])
    for i in range(30):
        shares = []
        for draw in found.draws:
            mates = [
                j
                for j in range(30)
                if j != i and found.labels[j] == found.labels[i] and draw[j] > NOT_DRAWN
            ]
            if found.labels[i] >= 0 and draw[i] > NOT_DRAWN and mates:
                shares.append(np.mean([draw[j] == draw[i] and draw[i] >= 0 for j in mates]))
        expected = np.mean(shares) if shares else np.nan
        np.testing.assert_allclose(found.row_confidence[i], expected)


def test_clear_clusters_are_found_again_and_others_are_not():
    X, _ = make_blobs([60, 60, 60], centers=[[0, 0], [12, 0], [0, 12]], random_state=0)
    clear = bootstrap(DPMeans(), X, n_draws=8, random_state=0)
    assert clear.stability.min() > 0.97
    assert (clear.n_clusters == 3).all()
    assert clear.agreement.min() > 0.95
    assert np.nanmin(clear.row_confidence) > 0.8
    forced = bootstrap(KMeans(5, n_init=1), X, n_draws=20, random_state=0)
    assert forced.stability.min() < 0.75


def test_threads_and_seeds_change_nothing():
    X, _ = make_blobs(60, centers=3, random_state=0)
    first, second = (
        bootstrap(KMeans(4, n_init=1), X, n_draws=6, random_state=3, n_jobs=jobs) for jobs in (1, 2)
    )
    np.testing.assert_array_equal(first.draws, second.draws)
    other = bootstrap(KMeans(4, n_init=1), X, n_draws=6, random_state=4)
    assert (first.draws != other.draws).any()
    assert ((first.draws == NOT_DRAWN).mean(axis=1) > 0.2).all()  # 1/e of the rows are not drawn


class ByWeight(ClusterMixin, BaseEstimator):
    """Tells rows apart by their weight and by the first letter of a frame's first column."""

    def fit_predict(self, X, y=None, sample_weight=None):
        return np.array([ord(word[0]) for word in X["word"]]) * 10 + np.asarray(sample_weight)


def test_what_belongs_to_rows_is_drawn_with_them():
    frame = pd.DataFrame({"word": ["ant", "bee", "ape", "bat"] * 5})
    weight = np.arange(20) // 4 % 2
    found = bootstrap(ByWeight(), frame, n_draws=4, random_state=0, sample_weight=weight)
    assert (found.agreement == 1).all()
    with pytest.raises(ValueError, match="sample_weight has 3 values, and X has 20 rows"):
        bootstrap(ByWeight(), frame, sample_weight=[1, 2, 3])


def test_matrices_are_drawn_by_rows_and_columns():
    X, _ = make_blobs(45, centers=[[0, 0], [9, 0], [0, 9]], random_state=0)
    model = LinkageClustering(metric="precomputed", n_clusters=3)
    found = bootstrap(
        model,
        dissimilarities(X, metric="euclidean"),
        n_draws=5,
        random_state=0,
        replace=False,
        share=0.7,
    )
    assert found.stability.min() > 0.99
    assert ((found.draws > NOT_DRAWN).sum(axis=1) == round(0.7 * 45)).all()


def test_noise_belongs_to_no_cluster():
    random = np.random.default_rng(0)
    X = np.concatenate([random.normal(size=(40, 2)), random.uniform(-40, 40, size=(12, 2))])
    found = bootstrap(HDBSCAN(min_cluster_size=8, copy=True), X, n_draws=5, random_state=0)
    assert (found.labels == -1).any()
    noise = int(np.flatnonzero(found.labels == -1)[0])
    assert np.isnan(found.row_confidence[noise])
    assert len(found.stability) == found.labels.max() + 1


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_draws": 0}, "n_draws must be an integer of at least 1; got 0"),
        ({"share": 1.5}, "share must be above 0 and at most 1"),
        ({"replace": False}, "below 1 without replacement; got 1.0"),
    ],
)
def test_parameters_are_checked(settings, message):
    with pytest.raises(ValueError, match=message):
        bootstrap(KMeans(2), np.eye(4), **settings)
