"""The leading eigenpairs of a symmetric matrix: all of those above a threshold, and none missed.

Small matrices go to LAPACK, whose bisection counts eigenvalues. Larger ones go to Lanczos, which
can miss a repeated eigenvalue; so pairs that are found are moved out of the way, the search starts
again from another random vector, and the answer is checked:

* by inertia where the matrix can be factored: ``matrix - threshold * I = L D L'`` has as many
  positive eigenvalues as D has (Sylvester), and the rounding in it moves none by more than its norm
  (Weyl);
* else by a last run of Lanczos on what is left. After j steps from a random vector, its largest
  eigenvalue falls short by more than a share e of the spectrum's width with a chance of at most
  ``1.648 sqrt(n) exp(-(2 j - 1) sqrt(e))`` (Kuczynski and Wozniakowski, 1992).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.linalg import eigh, eigvalsh_tridiagonal, ldl
from scipy.sparse.csgraph import connected_components, reverse_cuthill_mckee
from scipy.sparse.linalg import LinearOperator, eigsh, splu

# Up to so many rows everything is left to LAPACK.
SMALL = 512
# Pairs that a first search by threshold looks for; later ones double what there is.
FIRST_PAIRS = 8
# Pairs beyond those asked for, among which a gap is looked for to count above.
SPARE_PAIRS = 2
# Vectors that Lanczos keeps at least.
LEAST_BASIS = 12
# Lanczos stops at residuals of this share.
TOLERANCE = 1e-6
# SuperLU's names of orders of rows: one that keeps factors sparse, and the order given.
LEAST_DEGREE, NATURAL = "MMD_AT_PLUS_A", "NATURAL"
# Factors are taken this far above the largest eigenvalue, which is 1.
BEYOND = 1e-7
# A factorization whose rounding is larger than this counts nothing.
ROUNDING = 1e-9
# The chance of missing a pair that is small enough, and the steps that may be spent on it.
CHANCE, MOST_STEPS = 1e-6, 1000
# Beyond those steps, up to so many rows are factored densely.
MOST_DENSE = 6000


class LeadingPairs:
    """Eigenpairs of a symmetric matrix, largest first, found as they are asked for.

    Parameters
    ----------
    matrix : ndarray or CSR matrix of shape (n, n)
        Symmetric.
    random : RandomState
        Where searches start.
    known : ndarray of shape (n, c), optional
        Orthonormal eigenvectors of the eigenvalue 1, given where it is the largest and all are at
        least -1.

    Attributes
    ----------
    values : ndarray of shape (m,)
        Descending.
    vectors : ndarray of shape (n, m)

    Examples
    --------
    >>> pairs = LeadingPairs(np.diag([5.0, 1.0, 3.0, 5.0]), np.random.RandomState(0))
    >>> pairs.above(2.0)
    0.0
    >>> pairs.values.tolist()
    [5.0, 5.0, 3.0]
    """

    def __init__(self, matrix: Any, random: np.random.RandomState, known: np.ndarray | None = None):
        self.matrix = matrix
        self.n = matrix.shape[0]
        self._random = random
        self._bounded = known is not None
        self.vectors = np.empty((self.n, 0)) if known is None else known
        self.values = np.ones(self.vectors.shape[1])
        self._complete_above = np.inf

    def first(self, count: int) -> None:
        """Find at least the first ``count`` pairs, or all; count them where that is cheap."""
        countable = self.n > SMALL and self._is_banded
        if len(self.values) < min(count, self.n):
            spare = SPARE_PAIRS if countable else 0
            self._search(min(count + spare, self.n) - len(self.values))
        if countable and count < len(self.values) < self.n:
            gaps = self.values[count - 1 : -1] - self.values[count:]
            place = count - 1 + int(gaps.argmax())
            threshold = float(self.values[place : place + 2].mean())
            if self._count(threshold) == (self.values > threshold).sum():
                self._complete_above = threshold
            else:
                self.above(threshold)

    def above(self, threshold: float) -> float:
        """Find all pairs above a threshold, and drop the others.

        Returns
        -------
        float
            A bound on the chance that one is missing; 0 where they were counted.
        """
        while len(self.values) < self.n and not (self.values <= threshold).any():
            self._search(max(FIRST_PAIRS, len(self.values)))
        self._keep(self.values > threshold)
        while threshold < self._complete_above:
            found = len(self.values)
            missing, chance = self._check(threshold)
            if not missing:
                return chance
            self._search(missing)
            self._keep(self.values > threshold)
            if len(self.values) == found:  # it is at the threshold, as far as digits go
                return chance
        return 0.0

    def _keep(self, which: np.ndarray) -> None:
        self.values, self.vectors = self.values[which], self.vectors[:, which]

    def _search(self, count: int) -> None:
        """Find ``count`` more pairs, the largest of those that are not there yet."""
        n, have = self.n, len(self.values)
        if n <= SMALL or have + count > n // 3:
            last = 0 if n <= SMALL else max(0, n - have - count)
            values, vectors = eigh(_dense(self.matrix), subset_by_index=(last, n - 1))
            self.values, self.vectors = values[::-1], vectors[:, ::-1]
            return
        start = self._without_found(self._random.standard_normal(n))
        basis = min(n, max(2 * count + 1, LEAST_BASIS))
        _, found = eigsh(self._operator(), count, which="LA", v0=start, tol=TOLERANCE, ncv=basis)
        found = self._without_found(found)
        # The best pairs within the space that was found, whatever the operator was.
        values, turn = eigh(found.T @ (self.matrix @ found), found.T @ found)
        self.values = np.concatenate([self.values, values])
        self.vectors = np.hstack([self.vectors, found @ turn])
        order = np.argsort(-self.values, kind="stable")
        self.values, self.vectors = self.values[order], self.vectors[:, order]

    def _operator(self) -> LinearOperator:
        """Return what Lanczos runs on: its largest eigenvalues are those still to be found."""
        if self._bounded and self._is_banded:
            solve, without = self._factor_beyond.solve, self._without_found

            def apply(x):
                return without(solve(x.ravel()))

        else:
            apply = self._deflated(-np.abs(self.values).max(initial=0.0))
        return LinearOperator((self.n, self.n), matvec=apply, dtype=np.float64)

    def _without_found(self, x: np.ndarray) -> np.ndarray:
        return x - self.vectors @ (self.vectors.T @ x)

    def _deflated(self, to: float) -> Callable[[np.ndarray], np.ndarray]:
        """Return products with the matrix, its found eigenvalues moved to another place."""
        matrix, vectors, lift = self.matrix, self.vectors, self.values - to

        def apply(x):
            x = x.ravel()
            return matrix @ x - vectors @ (lift * (vectors.T @ x))

        return apply

    @cached_property
    def _is_banded(self) -> bool:
        """Whether the factors of a sparse matrix are sparse: it is a graph of points in the plane.

        Reordered, such a graph has a band whose square is about its rows times their neighbours; so
        has each of its components. Its eigenvalues are close together, and factors tell them apart.
        In more dimensions factors are dense, eigenvalues are not close, and Lanczos is fast.
        """
        if not sp.issparse(self.matrix):
            return False
        order = reverse_cuthill_mckee(self.matrix, symmetric_mode=True)
        place = np.empty(self.n, dtype=np.int64)
        place[order] = np.arange(self.n)
        rows = np.flatnonzero(np.diff(self.matrix.indptr))
        starts = self.matrix.indptr[rows]
        lowest = np.minimum.reduceat(place[self.matrix.indices], starts)
        component = connected_components(self.matrix, directed=False)[1]
        size = np.bincount(component)[component[rows]]
        band = np.maximum(place[rows] - lowest, 0)
        return bool((band**2 / size).mean() <= self.matrix.nnz / self.n)

    @cached_property
    def _factor_beyond(self) -> Any:
        return _factor(_shifted(-self.matrix, 1.0 + BEYOND))

    def _count(self, threshold: float) -> int | None:
        """Count eigenvalues above a threshold by factors; None where these cannot be trusted."""
        if not self._bounded:
            return _count_sparse(self.matrix, threshold)
        return _count_sparse(self._reordered, threshold, NATURAL)

    @cached_property
    def _reordered(self) -> Any:
        """The matrix in the order that keeps factors sparse: it takes half their time to find."""
        order = np.argsort(self._factor_beyond.perm_c)
        return self.matrix[order][:, order]

    def _check(self, threshold: float) -> tuple[int, float]:
        """Return how many pairs are missing, and the chance that there are more."""
        found = len(self.values)
        if self.n <= SMALL or found == self.n:
            return 0, 0.0
        if self._is_banded:
            count = self._count(threshold)
            if count is not None:
                return max(count - found, 0), 0.0
        missing, chance = self._look_again(threshold)
        if chance > CHANCE and not missing and self.n <= MOST_DENSE:
            return max(count_above(self.matrix, threshold) - found, 0), 0.0
        return missing, chance

    def _look_again(self, threshold: float) -> tuple[int, float]:
        """Run Lanczos on what is left until nothing above the threshold can well be in it."""
        apply = self._deflated(min(threshold, 0.0))
        vector = self._random.standard_normal(self.n)
        vector /= np.linalg.norm(vector)
        before, diagonal, beside = np.zeros(self.n), [], [0.0]
        chance, most = 1.0, min(MOST_STEPS, self.n)
        for step in range(1, most + 1):
            after = apply(vector) - beside[-1] * before
            diagonal.append(float(vector @ after))
            after -= diagonal[-1] * vector
            beside.append(float(np.linalg.norm(after)))
            if step % 16 == 0 or step == most or beside[-1] < ROUNDING:
                ends = eigvalsh_tridiagonal(diagonal, beside[1:-1])[[0, -1]]
                if ends[1] > threshold:
                    return 1, 1.0
                chance = _chance(self.n, step, threshold, *ends)
                if chance <= CHANCE or beside[-1] < ROUNDING:
                    break
            before, vector = vector, after / beside[-1]
        return 0, chance


def count_above(matrix: Any, threshold: float) -> int:
    """Count the eigenvalues of a symmetric matrix above a threshold, by its inertia.

    Examples
    --------
    >>> count_above(np.diag([5.0, 1.0, 3.0, 5.0]), 2.0)
    3
    """
    shifted = _dense(matrix) - threshold * np.eye(matrix.shape[0])
    _, blocks, _ = ldl(shifted, overwrite_a=True, check_finite=False)
    # D has blocks of one or two rows: the eigenvalues of a tridiagonal matrix.
    diagonal, beside = np.diagonal(blocks).copy(), np.diagonal(blocks, -1).copy()
    pairs = np.flatnonzero(beside)
    single = np.ones(len(diagonal), dtype=bool)
    single[pairs] = single[pairs + 1] = False
    middle = (diagonal[pairs] + diagonal[pairs + 1]) / 2
    reach = np.hypot((diagonal[pairs] - diagonal[pairs + 1]) / 2, beside[pairs])
    return int(sum((part > 0).sum() for part in (diagonal[single], middle + reach, middle - reach)))


def _count_sparse(matrix: Any, threshold: float, order: str = LEAST_DEGREE) -> int | None:
    """Count eigenvalues above a threshold by sparse factors; None where these cannot be trusted."""
    shifted = _shifted(matrix, -threshold)
    try:
        factor = _factor(shifted, order)
    except RuntimeError:  # SuperLU's word for a pivot of exactly 0
        return None
    # Rows and columns in the same order: then L and U are those of L D L'.
    if not np.array_equal(factor.perm_r, factor.perm_c):
        return None
    probe = np.random.RandomState(0).standard_normal((len(factor.perm_c), 4))
    back = np.argsort(factor.perm_c)
    error = factor.L @ (factor.U @ probe) - (shifted @ probe[factor.perm_c])[back]
    # The norm of a matrix times normal vectors is, on average, its Frobenius norm.
    if not np.sqrt((error**2).sum() / probe.shape[1]) <= ROUNDING * abs(shifted).max():
        return None
    return int((factor.U.diagonal() > 0).sum())


def _factor(matrix: Any, order: str = LEAST_DEGREE) -> Any:
    """Factor a sparse symmetric matrix with pivots from its diagonal."""
    options = {"SymmetricMode": True}
    return splu(matrix, permc_spec=order, diag_pivot_thresh=0.0, options=options)


def _shifted(matrix: Any, shift: float) -> Any:
    return sp.csc_matrix(matrix + shift * sp.eye_array(matrix.shape[0], format="csr"))


def _dense(matrix: Any) -> np.ndarray:
    return matrix.toarray() if sp.issparse(matrix) else np.array(matrix, dtype=np.float64)


def _chance(n: int, steps: int, threshold: float, smallest: float, largest: float) -> float:
    """Bound the chance that an eigenvalue is above the threshold, given those that Lanczos found.

    Unless either end is off by more than a share e of the width, the width is at most ``(largest -
    smallest) / (1 - 2 e)``, and the largest eigenvalue at most e times that above what was found.
    """
    room = (threshold - largest) / max(largest - smallest, np.finfo(float).tiny)
    share = room / (1 + 2 * room) if np.isfinite(room) else 0.5
    return float(min(1.0, 2 * 1.648 * np.sqrt(n) * np.exp(-(2 * steps - 1) * np.sqrt(share))))
