"""The leading eigenpairs of a symmetric matrix: all of those above a threshold, and none missed.

Small matrices are solved by LAPACK. Sparse matrices with cheap factorizations, such as graphs of
points in the plane, are factored at the threshold: the inertia of the factors counts the
eigenvalues above it, and shift-invert Lanczos finds them (`slices`). The others are solved by
Lanczos, which can miss a multiple eigenvalue; so pairs that are found are deflated, and the result
is checked by a last run on the deflated matrix. After j steps from a random vector, its largest
Ritz value is too small by more than a share e of the spectrum's width with probability at most
``1.648 sqrt(n) exp(-(2 j - 1) sqrt(e))`` (Kuczynski and Wozniakowski, 1992).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.linalg import eigh, eigvalsh, eigvalsh_tridiagonal, qr
from scipy.sparse.linalg import LinearOperator, eigsh

from countless._spectral.slices import Slicer, count_above, dense


@dataclass(frozen=True)
class EigenSearch:
    """Constants of the search for eigenpairs; ``benchmarks/spectral.py`` has its time."""

    # Up to this many rows a dense LAPACK solver is used.
    dense_rows: int = 512
    # Pairs sought in the first search above a threshold; later searches double the number.
    first_pairs: int = 8
    # Extra pairs beyond the requested number, among which the largest eigengap is used as a
    # threshold.
    spare_pairs: int = 2
    # If more than this multiple of the requested number is above that threshold, it splits a
    # multiple eigenvalue and is not used.
    most_times: int = 8
    # Power iterations that bring approximate vectors closer to the leading eigenvectors.
    power_iterations: int = 2
    # Size of the Lanczos basis for k pairs: max(least_basis, min(4 k, 2 k + more_basis)).
    least_basis: int = 12
    more_basis: int = 20
    # Relative residual at which Lanczos stops.
    tolerance: float = 1e-6
    # A vector shorter than this is attributed to rounding.
    rounding: float = 1e-9
    # Accepted probability of missing a pair, and the largest number of Lanczos steps of the check.
    missing_probability: float = 1e-6
    most_steps: int = 1000
    # If these steps do not suffice, up to this many rows are factored densely.
    factored_rows: int = 6000


EIGEN_SEARCH = EigenSearch()

Product = Callable[[np.ndarray], np.ndarray]


class LeadingPairs:
    """Eigenpairs of a symmetric matrix, largest first, computed on demand.

    Parameters
    ----------
    matrix : ndarray or CSR matrix of shape (n, n)
        Symmetric.
    random : RandomState
        Draws the start vectors of Lanczos.
    known : ndarray of shape (n, c), optional
        Orthonormal eigenvectors of the eigenvalue 1, if that is the largest.

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
        self.vectors = np.empty((self.n, 0)) if known is None else known
        self.values = np.ones(self.vectors.shape[1])
        self._complete_above = np.inf

    def first(self, count: int, near: Callable[[int], np.ndarray] | None = None) -> None:
        """Find at least the first ``count`` pairs, or all.

        Parameters
        ----------
        count : int
        near : callable, optional
            Returns a given number of vectors (or all there are) that approximate the leading ones.
            With it, completeness is also verified by inertia where factorization is cheap.
        """
        if len(self.values) >= min(count, self.n):
            return
        if near is not None and self._slicer is not None:
            vectors = near(count + EIGEN_SEARCH.spare_pairs)
            if vectors.shape[1] > count:
                self._complete(*self._place_below(count, vectors), EIGEN_SEARCH.most_times * count)
        if len(self.values) < min(count, self.n):
            self._search(min(count, self.n) - len(self.values))

    def above(self, threshold: float) -> float:
        """Find all pairs above a threshold, and drop the others.

        Returns
        -------
        float
            An upper bound on the probability that one is missing; 0 where they were counted.
        """
        if threshold >= self._complete_above or self._complete(threshold):
            self._keep(self.values > threshold)
            return 0.0
        while len(self.values) < self.n and not (self.values <= threshold).any():
            self._search(max(EIGEN_SEARCH.first_pairs, len(self.values)))
        self._keep(self.values > threshold)
        while True:
            found = len(self.values)
            missing, probability = self._check(threshold)
            if not missing:
                return probability
            self._search(missing)
            self._keep(self.values > threshold)
            if len(self.values) == found:  # it equals the threshold up to rounding
                return probability

    @cached_property
    def _slicer(self) -> Slicer | None:
        """The spectrum slicer, if factorization is cheap."""
        if self.n <= EIGEN_SEARCH.dense_rows or not sp.issparse(self.matrix):
            return None
        slicer = Slicer(self.matrix)
        return slicer if slicer.is_cheap else None

    def _complete(
        self, threshold: float, start: np.ndarray | None = None, most: float = np.inf
    ) -> bool:
        """Find all pairs above (or slightly below) a threshold, counted by inertia.

        Returns whether that worked. The first search may start from a vector ``start`` that has
        components in all of them. Gives up if there are more than ``most`` pairs.
        """
        part = None if self._slicer is None else self._slicer.at(threshold)
        if part is None or part.n_above > most:
            return False
        self._keep(self.values > part.threshold)
        found = -1
        # A pair that is never found equals the threshold up to rounding.
        while found < len(self.values) < part.n_above:
            found = len(self.values)
            self._search(part.n_above - found, part.solve, start)
            self._keep(self.values > part.threshold)
            start = None
        self._complete_above = part.threshold
        return True

    def _place_below(self, count: int, vectors: np.ndarray) -> tuple[float, np.ndarray]:
        """Return a threshold with at least ``count`` eigenvalues above it, and a start vector.

        Ritz values in any subspace are lower bounds on the eigenvalues, one by one (Cauchy's
        interlacing theorem). The threshold is in the largest gap after the first ``count``.
        """
        for _ in range(EIGEN_SEARCH.power_iterations):
            vectors = self.matrix @ vectors
        frame = qr(vectors, mode="economic", check_finite=False)[0]
        values = eigvalsh(frame.T @ (self.matrix @ frame))[::-1]
        place = count - 1 + int((values[count - 1 : -1] - values[count:]).argmax())
        return float(values[place : place + 2].mean()), vectors.sum(axis=1)

    def _keep(self, which: np.ndarray) -> None:
        self.values, self.vectors = self.values[which], self.vectors[:, which]

    def _search(
        self, count: int, solve: Product | None = None, start: np.ndarray | None = None
    ) -> None:
        """Find ``count`` more pairs, the largest of those not found yet.

        ``solve`` multiplies by a shifted inverse whose positive eigenvalues belong to these only,
        and ``start`` is a vector with components in all of them.
        """
        n, have = self.n, len(self.values)
        if n <= EIGEN_SEARCH.dense_rows or have + count > n // 3:
            last = 0 if n <= EIGEN_SEARCH.dense_rows else max(0, n - have - count)
            values, vectors = eigh(dense(self.matrix), subset_by_index=(last, n - 1))
            self.values, self.vectors = values[::-1], vectors[:, ::-1]
            return
        drawn = self._random.standard_normal(n)
        start = self._without_found(
            drawn if start is None else start + EIGEN_SEARCH.rounding * drawn
        )
        basis = max(
            EIGEN_SEARCH.least_basis, min(4 * count, 2 * count + EIGEN_SEARCH.more_basis, n)
        )
        _, found = eigsh(
            self._operator(solve),
            count,
            which="LA",
            v0=start,
            tol=EIGEN_SEARCH.tolerance,
            ncv=basis,
        )
        found = self._without_found(found)
        # Rayleigh-Ritz: the best pairs in the subspace found, for any operator.
        values, turn = eigh(found.T @ (self.matrix @ found), found.T @ found)
        self.values = np.concatenate([self.values, values])
        self.vectors = np.hstack([self.vectors, found @ turn])
        order = np.argsort(-self.values, kind="stable")
        self.values, self.vectors = self.values[order], self.vectors[:, order]

    def _operator(self, solve: Product | None) -> LinearOperator:
        """Return the operator for Lanczos: its largest eigenvalues are those not found yet."""
        if solve is not None:

            def apply(x):
                return self._without_found(solve(x.ravel()))

        else:
            apply = self._deflated(-np.abs(self.values).max(initial=0.0))
        return LinearOperator((self.n, self.n), matvec=apply, dtype=np.float64)

    def _without_found(self, x: np.ndarray) -> np.ndarray:
        return x - self.vectors @ (self.vectors.T @ x)

    def _deflated(self, to: float) -> Product:
        """Return products with the deflated matrix: found eigenvalues are shifted to ``to``."""
        matrix, vectors, lift = self.matrix, self.vectors, self.values - to

        def apply(x):
            x = x.ravel()
            return matrix @ x - vectors @ (lift * (vectors.T @ x))

        return apply

    def _check(self, threshold: float) -> tuple[int, float]:
        """Return how many pairs are missing, and a bound on the probability of more."""
        found = len(self.values)
        if self.n <= EIGEN_SEARCH.dense_rows or found == self.n:
            return 0, 0.0
        missing, probability = self._look_again(threshold)
        if (
            probability > EIGEN_SEARCH.missing_probability
            and not missing
            and self.n <= EIGEN_SEARCH.factored_rows
        ):
            return max(count_above(self.matrix, threshold) - found, 0), 0.0
        return missing, probability

    def _look_again(self, threshold: float) -> tuple[int, float]:
        """Run Lanczos on the deflated matrix until an eigenvalue above is found or improbable."""
        apply = self._deflated(min(threshold, 0.0))
        vector = self._random.standard_normal(self.n)
        vector /= np.linalg.norm(vector)
        before, diagonal, beside = np.zeros(self.n), [], [0.0]
        probability, most = 1.0, min(EIGEN_SEARCH.most_steps, self.n)
        for step in range(1, most + 1):
            after = apply(vector) - beside[-1] * before
            diagonal.append(float(vector @ after))
            after -= diagonal[-1] * vector
            beside.append(float(np.linalg.norm(after)))
            if step % 16 == 0 or step == most or beside[-1] < EIGEN_SEARCH.rounding:
                ends = eigvalsh_tridiagonal(diagonal, beside[1:-1])[[0, -1]]
                if ends[1] > threshold:
                    return 1, 1.0
                probability = _miss_probability(self.n, step, threshold, *ends)
                if (
                    probability <= EIGEN_SEARCH.missing_probability
                    or beside[-1] < EIGEN_SEARCH.rounding
                ):
                    break
            before, vector = vector, after / beside[-1]
        return 0, probability


def _miss_probability(
    n: int, steps: int, threshold: float, smallest: float, largest: float
) -> float:
    """Bound the probability that an eigenvalue is above the threshold, given extreme Ritz values.

    Unless either end is off by more than a share e of the spectrum's width, the width is at most
    ``(largest - smallest) / (1 - 2 e)``, and the largest eigenvalue exceeds its Ritz value by at
    most e times that.
    """
    margin = (threshold - largest) / max(largest - smallest, np.finfo(float).tiny)
    share = margin / (1 + 2 * margin) if np.isfinite(margin) else 0.5
    return float(min(1.0, 2 * 1.648 * np.sqrt(n) * np.exp(-(2 * steps - 1) * np.sqrt(share))))
