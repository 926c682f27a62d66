"""Tables at the edge: odd weights, extreme scales, rows without weight, odd chunks and files."""

import dask.array as da
import numpy as np
import pytest
import scipy.sparse as sp
from scipy.spatial.distance import cdist

from countless import DPMeans
from countless._data import open_rows
from countless._data.dask import rechunk_evenly
from countless._data.open import open_table
from countless._data.stored import dask_array
from countless._path.micro import assign_to
from countless._search.nearest_centers import Products, list_neighbors
from countless.divergences import get_divergence

SQUARED = get_divergence("sqeuclidean")


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


@pytest.mark.parametrize("far", [1e30, 1e39, 1e140])
def test_rows_without_weight_have_the_nearest_label_however_far_they_are(far):
    X = two_groups(3000, 5)
    X[-3:] *= far * np.array([1.0, -1.0, 1.0, -1.0, 1.0])
    with open_rows(X, np.append(np.ones(2997), np.zeros(3)), SQUARED) as rows:
        labels = assign_to(rows, X[:400]).labels
    assert labels[-3:].tolist() == cdist(X[-3:], X[:400]).argmin(axis=1).tolist()


@pytest.mark.parametrize("outside", [3e-4, 1e-3])
def test_bounds_in_few_directions_hold_where_centers_hardly_leave_them(outside):
    random = np.random.RandomState(0)
    directions = np.linalg.qr(random.randn(60, 7))[0].T
    centers = random.randn(1024, 6) @ directions[:6]
    centers += outside * random.choice([-1.0, 1.0], 1024)[:, None] * directions[6]
    X = centers[random.randint(1024, size=4000)] + 10.0 * directions[6]
    with open_rows(X, None, SQUARED) as rows:
        products = Products(rows.fixed_point._replace(origin=np.zeros(60)), centers)
        assert products.basis is not None
        block = rows.load(*rows.spans[0])
        score, norm, error = products.scores(block, np.arange(block.n_rows))
        bound = products.unit**2 * (norm[:, None] + score - error[:, None])
        assert (bound <= cdist(block.values, centers, "sqeuclidean")).all()


@pytest.mark.parametrize("scale", [1e-25, 1.0, 1e25])
def test_sparse_centers_find_their_neighbours_at_any_scale(scale):
    X = scale * two_groups(200)
    with open_rows(sp.csr_matrix(X), None, SQUARED) as rows:
        neighbours, gaps, *_ = list_neighbors(rows, X, local=True)
    distance = cdist(X, X)
    assert (neighbours[:, 0] == np.argsort(distance, axis=1)[:, 1]).all()
    assert gaps[:, 0] == pytest.approx(np.sort(distance, axis=1)[:, 1], rel=0.05, abs=0.02 * scale)


def test_values_whose_sums_have_no_square_are_refused():
    with pytest.raises(ValueError, match="squares overflow"):
        fit(1e153 * two_groups())


@pytest.mark.parametrize("n_threads", [0, 2])
@pytest.mark.parametrize("chunks", [(0, 90000, 0, 110000, 0), (1,) * 9 + (19991,), (20000,)])
def test_no_chunk_on_a_cluster_is_empty(chunks, n_threads):
    array = da.zeros((sum(chunks), 64), chunks=(chunks, 64))
    cut = rechunk_evenly(array, n_threads).chunks[0]
    assert sum(cut) == sum(chunks)
    assert min(cut) > 0


def test_chunks_of_another_type_than_their_array_says_are_brought_to_it():
    X = two_groups().astype(np.float32).astype(np.float64)
    array = da.from_array(X, chunks=(50, 3)).map_blocks(
        lambda block: block.astype(np.float32 if block[0, 0] < 4 else np.float64),
        meta=np.empty((0, 0)),
    )
    assert fit(array, penalty=50.0).objective_ == fit(X, penalty=50.0).objective_


@pytest.mark.parametrize("form", [sp.csr_matrix, np.ma.masked_array])
def test_chunks_that_are_no_plain_arrays_are_refused(form):
    array = da.from_array(two_groups(), chunks=(50, 3)).map_blocks(form)
    with pytest.raises(ValueError, match="chunks of X must be NumPy arrays"):
        dask_array(array)


@pytest.mark.parametrize(("kind", "scale"), [("f4", 1e-40), ("f4", 1e37), ("f8", 1e-310)])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
def test_the_cosine_sees_directions_at_any_scale(form, kind, scale):
    X = two_groups()
    settings = {"divergence": "cosine", "penalty": 5.0}
    scaled = fit(form((X * scale).astype(kind)), **settings)
    assert scaled.labels_.tolist() == fit(X, **settings).labels_.tolist()


@pytest.mark.parametrize("weight", [1e-300, 1e300])
def test_weights_that_steps_cannot_hold_are_refused(weight):
    with pytest.raises(ValueError, match="sample_weight must be from 1e-200 to 1e"):
        fit(two_groups(), np.full(300, weight), penalty=1.0)


def test_tables_by_columns_are_held_row_by_row():
    with open_table(np.asfortranarray(two_groups()), None, SQUARED, None) as rows:
        assert rows.load(0, 9).form.values.flags.c_contiguous


@pytest.mark.parametrize("settings", [{"penalty": 1.0, "order": "random", "refine": False}])
def test_a_checkpoint_needs_a_seed_where_chance_decides(tmp_path, settings):
    with pytest.raises(ValueError, match="checkpoint needs a number for random_state"):
        DPMeans(**settings, checkpoint=tmp_path / "run").fit(two_groups())
