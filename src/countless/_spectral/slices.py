"""Spectrum slicing: an LDL' factorization at a threshold counts the eigenvalues above it.

``matrix - threshold * I = L D L'`` has as many positive eigenvalues as D (Sylvester's law of
inertia), and rounding errors shift none by more than their norm (Weyl). The inverse, for
shift-invert Lanczos, has the same eigenvectors; its positive eigenvalues are those of the
eigenvectors above the threshold.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.linalg import ldl
from scipy.sparse.csgraph import connected_components, reverse_cuthill_mckee
from scipy.sparse.linalg import splu

# A factorization with a larger relative error is not used to count eigenvalues.
MOST_ERROR = 1e-9
# Diagonal pivots, without supernodes or panels: few columns have the same structure, and grouping
# them takes longer than it saves.
PIVOTS: dict[str, Any] = {
    "diag_pivot_thresh": 0.0,
    "options": {"SymmetricMode": True},
    "relax": 1,
    "panel_size": 1,
}


class Slice(NamedTuple):
    """The eigenvalue count above a threshold, and the shifted inverse."""

    threshold: float
    n_above: int
    solve: Callable[[np.ndarray], np.ndarray]  # products with the inverse


class Slicer:
    """Slices the spectrum of a sparse symmetric matrix.

    Parameters
    ----------
    matrix : CSR matrix of shape (n, n)

    Attributes
    ----------
    is_cheap : bool
        Whether factors are sparse, as for a graph of points in the plane. After reordering, such a
        graph has a bandwidth whose square is about its rows times their neighbours; so has each of
        its components. Its eigenvalues are close together, and factors separate them. In more
        dimensions factors are dense, eigenvalues are not close, and plain Lanczos is fast.

    Examples
    --------
    >>> path = sp.diags_array([np.ones(4)] * 2, offsets=[-1, 1], format="csr")
    >>> Slicer(path).at(0.5).n_above  # of 1.73, 1, 0, -1 and -1.73
    2
    """

    def __init__(self, matrix: Any):
        n = matrix.shape[0]
        order = reverse_cuthill_mckee(matrix, symmetric_mode=True)
        place = np.empty(n, dtype=np.int64)
        place[order] = np.arange(n)
        rows = np.flatnonzero(np.diff(matrix.indptr))
        lowest = np.minimum.reduceat(place[matrix.indices], matrix.indptr[rows])
        band = np.maximum(place[rows] - lowest, 0)
        component = connected_components(matrix, directed=False)[1]
        size = np.bincount(component)[component[rows]]
        self.is_cheap = bool((band**2 / size).mean() <= matrix.nnz / n)
        # Hardly any ordering has less fill-in than a band of two entries per entry of the matrix.
        is_thin = band.sum() <= matrix.nnz
        self._order = order if is_thin else np.arange(n)
        # Minimum degree keeps factors sparse but takes as long as the factorization.
        self._spec = "NATURAL" if is_thin else "MMD_AT_PLUS_A"
        self._matrix = matrix[order][:, order] if is_thin else matrix

    def at(self, threshold: float) -> Slice | None:
        """Factor the matrix at a threshold, or slightly below; None if it is inaccurate."""
        n = len(self._order)
        largest = abs(self._matrix.data).max(initial=0.0)
        # A threshold can make a pivot exactly 0; then slightly smaller ones are tried.
        for nudge in (0.0, 1e-3, 2e-3):
            below = threshold - nudge * largest
            shifted = (self._matrix - below * sp.eye_array(n, format="csr")).tocsr()
            # The matrix is symmetric, so its CSR arrays are also its CSC arrays.
            shifted = sp.csc_matrix((shifted.data, shifted.indices, shifted.indptr), (n, n))
            try:
                factors = splu(shifted, permc_spec=self._spec, **PIVOTS)
            except RuntimeError:  # SuperLU raises it for a zero pivot
                continue
            if _can_be_trusted(factors, shifted):
                n_above = int((factors.U.diagonal() > 0).sum())
                return Slice(below, n_above, partial(self._solve, factors))
        return None

    def _solve(self, factors: Any, x: np.ndarray) -> np.ndarray:
        solved = np.empty_like(x)
        solved[self._order] = factors.solve(x[self._order])
        return solved


def _can_be_trusted(factors: Any, matrix: sp.csc_matrix) -> bool:
    """Return whether factors are those of L D L', up to a small rounding error."""
    if not np.array_equal(factors.perm_r, factors.perm_c):
        return False
    probe = np.random.RandomState(0).standard_normal((matrix.shape[0], 4))
    back = np.argsort(factors.perm_c)
    error = factors.L @ (factors.U @ probe) - (matrix @ probe[factors.perm_c])[back]
    # The norm of a matrix times normal vectors is, on average, its Frobenius norm.
    norm = np.sqrt((error**2).sum() / probe.shape[1])
    return bool(norm <= MOST_ERROR * abs(matrix.data).max())


def count_above(matrix: Any, threshold: float) -> int:
    """Count the eigenvalues of a symmetric matrix above a threshold, by a dense factorization.

    Examples
    --------
    >>> count_above(np.diag([5.0, 1.0, 3.0, 5.0]), 2.0)
    3
    """
    shifted = dense(matrix) - threshold * np.eye(matrix.shape[0])
    _, blocks, _ = ldl(shifted, overwrite_a=True, check_finite=False)
    # D is block diagonal with 1 x 1 and 2 x 2 blocks, whose eigenvalues are in closed form.
    diagonal, beside = np.diagonal(blocks).copy(), np.diagonal(blocks, -1).copy()
    pairs = np.flatnonzero(beside)
    single = np.ones(len(diagonal), dtype=bool)
    single[pairs] = single[pairs + 1] = False
    middle = (diagonal[pairs] + diagonal[pairs + 1]) / 2
    reach = np.hypot((diagonal[pairs] - diagonal[pairs + 1]) / 2, beside[pairs])
    return int(sum((part > 0).sum() for part in (diagonal[single], middle + reach, middle - reach)))


def dense(matrix: Any) -> np.ndarray:
    """Return a matrix as a new array."""
    return matrix.toarray() if sp.issparse(matrix) else np.array(matrix, dtype=np.float64)
