"""All eigenpairs above a threshold and none missed: LAPACK on the whole matrix is the oracle."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import block_diag
from scipy.stats import ortho_group

from countless._spectral import eigen, slices
from countless._spectral.eigen import LeadingPairs
from countless._spectral.laplacian import indicators, make_form
from countless._spectral.slices import Slicer, count_above


def random_state(seed=0):
    return np.random.RandomState(seed)


def with_spectrum(values, seed=0):
    """A dense symmetric matrix with these eigenvalues."""
    frame = ortho_group.rvs(len(values), random_state=seed)
    return (frame * values) @ frame.T


def grid(width, height):
    """A grid graph: a banded matrix, with repeated eigenvalues where it is square."""

    def line(n):
        return sp.diags_array([np.ones(n - 1)] * 2, offsets=[-1, 1])

    plane = sp.kron(line(width), sp.eye_array(height)) + sp.kron(sp.eye_array(width), line(height))
    return plane.tocsr()


def check_pairs(matrix, pairs, threshold, atol=1e-9):
    """Compare with LAPACK: values, residuals, orthonormality, and nothing missing."""
    dense = matrix.toarray() if sp.issparse(matrix) else matrix
    expected = np.linalg.eigvalsh(dense)[::-1]
    expected = expected[expected > threshold]
    assert len(pairs.values) == len(expected)
    np.testing.assert_allclose(pairs.values, expected, atol=atol)
    products = pairs.vectors.T @ pairs.vectors
    np.testing.assert_allclose(products, np.eye(len(expected)), atol=1e-7)
    residual = dense @ pairs.vectors - pairs.vectors * pairs.values
    assert np.abs(residual).max(initial=0.0) < 1e-5 * max(1.0, np.abs(expected).max(initial=0.0))


# Clustered, repeated, far apart, and none at all above the threshold of 2.
SPECTRA = {
    "repeated": [5.0] * 7 + [3.0] * 4,
    "clustered": 4 + 1e-7 * np.arange(6),
    "clustered and repeated": [4.0] * 3 + [4.0 + 1e-6] * 3 + [2.5] * 9,
    "around the threshold": [2.001, 2.001, 2.01],
    "one": [100.0],
    "none": [],
}


@pytest.mark.parametrize("leading", SPECTRA.values(), ids=SPECTRA)
@pytest.mark.parametrize("n", [60, 700])
def test_no_eigenvalue_above_the_threshold_is_missed(leading, n, monkeypatch):
    rest = random_state(3).uniform(-3, 1.9, n - len(leading))
    matrix = with_spectrum(np.concatenate([leading, rest]))
    for small in (n, 10):  # by LAPACK; by Lanczos, except that there is no third of 60 rows left
        monkeypatch.setattr(eigen, "EIGEN_SEARCH", replace(eigen.EIGEN_SEARCH, dense_rows=small))
        pairs = LeadingPairs(matrix, random_state())
        assert pairs.above(2.0) <= eigen.EIGEN_SEARCH.missing_probability
        check_pairs(matrix, pairs, 2.0)


@pytest.fixture
def forgetful(monkeypatch):
    """Let the first search of a matrix leave out a pair."""
    search = LeadingPairs._search

    def forget(self, *what):
        search(self, *what)
        if not hasattr(self, "forgot"):
            self.forgot = self._keep(np.arange(len(self.values)) != 2)

    monkeypatch.setattr(LeadingPairs, "_search", forget)


def test_the_check_finds_a_pair_that_the_search_misses(forgetful):
    matrix = with_spectrum(np.concatenate([[5.0] * 6, random_state(1).uniform(-1, 1, 694)]))
    pairs = LeadingPairs(matrix, random_state())
    pairs.above(2.0)
    check_pairs(matrix, pairs, 2.0)


def test_the_first_pairs_of_a_banded_graph_are_counted(forgetful):
    form = make_form(grid(300, 5), "symmetric")
    steps = indicators(np.arange(1500) // 25, form.root)  # the leading vectors, coarsely
    frame = np.linalg.eigh((steps.T @ form.matrix @ steps).toarray())[1][:, ::-1]
    pairs = LeadingPairs(form.matrix, random_state(), form.known)
    pairs.first(9, lambda count: steps @ frame[:, :count])
    assert 9 <= len(pairs.values) <= 12
    check_pairs(form.matrix, pairs, pairs.values[-1] - 1e-9)


def test_a_matrix_is_factored_if_lanczos_is_inconclusive(monkeypatch):
    few_steps = replace(eigen.EIGEN_SEARCH, most_steps=8)
    monkeypatch.setattr(eigen, "EIGEN_SEARCH", few_steps)
    matrix = with_spectrum(np.concatenate([[5.0] * 6, random_state(1).uniform(-1, 1.99, 694)]))
    pairs = LeadingPairs(matrix, random_state())
    assert pairs.above(2.0) == 0.0
    check_pairs(matrix, pairs, 2.0)
    # Too large for that: a bound on the probability of a missing pair is returned.
    monkeypatch.setattr(eigen, "EIGEN_SEARCH", replace(few_steps, factored_rows=100))
    assert LeadingPairs(matrix, random_state()).above(2.0) > eigen.EIGEN_SEARCH.missing_probability


@pytest.mark.parametrize(("width", "height"), [(40, 40), (300, 5)])
@pytest.mark.parametrize("threshold", [0.99, 0.95])
def test_banded_graphs_are_factored_and_counted(width, height, threshold):
    form = make_form(grid(width, height), "symmetric")
    pairs = LeadingPairs(form.matrix, random_state(), form.known)
    assert Slicer(form.matrix).is_cheap
    assert pairs.above(threshold) == 0.0
    check_pairs(form.matrix, pairs, threshold)


@pytest.mark.parametrize("shape", [(30, 25), (300, 3)])  # in SuperLU's order, and as a thin band
def test_slices_count_eigenvalues_as_lapack_and_solve(shape):
    form = make_form(grid(*shape), "symmetric")
    slicer = Slicer(form.matrix)
    values = np.linalg.eigvalsh(form.matrix.toarray())
    for threshold in (0.999, 0.9, 0.77, 0.5, 0.31, 0.0):  # round ones make pivots 0
        part = slicer.at(threshold)
        assert threshold - 0.01 <= part.threshold <= threshold
        assert part.n_above == (values > part.threshold).sum()
        x = random_state().standard_normal(len(values))
        np.testing.assert_allclose(form.matrix @ part.solve(x) - part.threshold * part.solve(x), x)


def test_inaccurate_factors_are_not_used(monkeypatch):
    form = make_form(grid(300, 3), "symmetric")
    monkeypatch.setattr(slices, "MOST_ERROR", 1e-18)
    assert Slicer(form.matrix).at(0.9) is None
    pairs = LeadingPairs(form.matrix, random_state(), form.known)
    assert (
        0 <= pairs.above(0.9) <= eigen.EIGEN_SEARCH.missing_probability
    )  # by Lanczos, and by dense factors
    check_pairs(form.matrix, pairs, 0.9)


def test_components_are_known_and_each_has_its_eigenvalue():
    blocks = [grid(20, 12).toarray()] * 3 + [grid(4, 4).toarray()]  # three copies: all is repeated
    form = make_form(sp.csr_array(block_diag(*blocks)), "random-walk")
    pairs = LeadingPairs(form.matrix, random_state(), form.known)
    assert pairs.above(0.93) == 0.0
    assert (pairs.values > 1 - 1e-12).sum() == 4
    check_pairs(form.matrix, pairs, 0.93)


def test_more_pairs_than_there_are():
    pairs = LeadingPairs(np.diag([3.0, 1.0, 2.0]), random_state())
    pairs.first(10)
    np.testing.assert_allclose(pairs.values, [3.0, 2.0, 1.0])
    pairs = LeadingPairs(np.diag([3.0, 1.0, 2.0]), random_state())
    assert pairs.above(-5.0) == 0.0
    np.testing.assert_allclose(pairs.values, [3.0, 2.0, 1.0])


@given(st.integers(1, 12), st.integers(0, 10_000))
def test_the_inertia_counts_eigenvalues(n, seed):
    matrix = random_state(seed).randint(-3, 4, (n, n)).astype(float)
    matrix += matrix.T
    threshold = 0.37  # no eigenvalue of a small matrix of integers
    assert count_above(matrix, threshold) == (np.linalg.eigvalsh(matrix) > threshold).sum()


@given(st.integers(20, 60), st.integers(0, 10_000))
def test_the_miss_probability_is_an_upper_bound(steps, seed):
    # A run of Lanczos from a random vector: the bound must hold for what it has not seen.
    random = random_state(seed)
    values = np.sort(random.uniform(-1, 1, 200))
    vector = random.standard_normal(200)
    basis = [vector / np.linalg.norm(vector)]
    for _ in range(steps - 1):
        new = values * basis[-1]
        for old in basis + basis:  # orthogonal to the last digit
            new = new - (old @ new) * old
        basis.append(new / np.linalg.norm(new))
    space = np.array(basis)
    ritz = np.linalg.eigvalsh((space * values) @ space.T)
    threshold = values[-1] - 1e-9  # just below the largest: saying that none is above is wrong
    if ritz[-1] < threshold:
        assert eigen._miss_probability(200, steps, threshold, ritz[0], ritz[-1]) > 1e-3
