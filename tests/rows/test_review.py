"""Tables at the edge: odd weights, extreme scales, rows without weight, odd chunks and files."""

import numpy as np
import pytest
import scipy.sparse as sp

from countless import DPMeans
from countless.hard.divergence import get_divergence
from countless.rows import open_rows


def two_groups(n_rows=300, n_features=3, seed=0):
    X = np.random.RandomState(seed).randn(n_rows, n_features)
    X[n_rows // 2 :] += 8.0
    return X


def fit(X, weight=None, **settings):
    return DPMeans(random_state=0, **settings).fit(X, sample_weight=weight)


def test_weights_below_a_largest_of_1_count():
    X = np.array([[0.0], [1.0], [10.0]])
    model = fit(X, [1.0, 0.5, 0.25], penalty=1.0)
    assert model.cluster_weights_.tolist() == [1.5, 0.25]
    assert model.cluster_centers_.ravel() == pytest.approx([1 / 3, 10.0])
    assert model.objective_ == pytest.approx(1 / 3 + 2.0)


@pytest.mark.parametrize("n_rows", [1, 2, 4, 1024])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
def test_equal_rows_cost_nothing_by_the_cosine(n_rows, form):
    X = form(np.tile([[3.0, 0.0]], (n_rows, 1)))
    assert fit(X, divergence="cosine", penalty=0.1).objective_ == pytest.approx(0.1)


@pytest.mark.parametrize("divergence", ["sqeuclidean", "kl"])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
def test_a_far_row_without_weight_changes_no_objective(divergence, form):
    X = np.abs(two_groups()) + 0.1
    far = np.vstack([X, [[1e30, 1.0, 1.0]]])
    settings = {"divergence": divergence, "penalty": 5.0}
    with_far = fit(form(far), np.append(np.ones(len(X)), 0.0), **settings)
    without = fit(form(X), **settings)
    assert with_far.objective_ == pytest.approx(without.objective_, rel=1e-12)
    assert with_far.labels_[:-1].tolist() == without.labels_.tolist()


def test_a_sparse_table_without_gaps_is_measured_by_ratio():
    X = np.abs(two_groups()) + 0.1
    settings = {"divergence": "itakura-saito", "penalty": 5.0}
    dense, sparse = fit(X, **settings), fit(sp.csr_matrix(X), **settings)
    assert sparse.labels_.tolist() == dense.labels_.tolist()
