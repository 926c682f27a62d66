"""The matrix whose leading eigenvectors say how rows hang together: a kernel, or a graph's.

Every form is written so that large eigenvalues matter, and that a penalty is compared with them:

=============== ============================== ===================================
laplacian       matrix                         what a partition of it costs
=============== ============================== ===================================
None            K                              DP-means in the kernel's space
'unnormalized'  I - (D - W) / max(D)           ratio cut / max(D) + (penalty - 1) k
'random-walk'   D^-1/2 W D^-1/2                normalised cut + (penalty - 1) k
'symmetric'     the same                       the same
=============== ============================== ===================================

The costs are up to a constant, the trace. Graphs' eigenvalues are at most 1, and 1 is there once
for every connected component. Random walk and symmetric share the matrix (``I - D^-1 W`` has the
same eigenvalues) and differ in how its eigenvectors become rows.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

LAPLACIANS = (None, "unnormalized", "random-walk", "symmetric")


class Form(NamedTuple):
    """A symmetric matrix, and what a cluster looks like in it.

    The indicator of a cluster is ``root`` on its rows and 0 elsewhere: ``root ** 2`` weighs rows.
    """

    laplacian: str | None
    matrix: Any  # (n, n), dense or CSR
    root: np.ndarray  # (n,)
    components: np.ndarray | None  # (n,), the connected component of each row of a graph
    largest_degree: float

    @property
    def known(self) -> np.ndarray | None:
        """The eigenvectors of the eigenvalue 1 of a graph: one for each component."""
        return None if self.components is None else indicators(self.components, self.root).toarray()

    def rows(self, vectors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Turn eigenvectors into rows to cluster, with weights.

        Rows of a perfect cluster are equal, and joining two such clusters costs exactly 1 in the
        sum of weighted squared distances to the centers.
        """
        if self.laplacian == "symmetric":
            weight = np.einsum("ij,ij->i", vectors, vectors)
            length = np.sqrt(np.maximum(weight, np.finfo(float).tiny))
            return vectors / length[:, None], weight
        return vectors / self.root[:, None], self.root**2

    def objective(self, labels: np.ndarray, penalty: float) -> float:
        """Return ``trace - sum over clusters of y' matrix y + penalty * n_clusters``.

        y is the indicator of a cluster, scaled to length 1. For a kernel this is the objective of
        DP-means.
        """
        y = indicators(labels, self.root)
        within = float(y.multiply(self.matrix @ y).sum())
        return float(self.matrix.trace()) - within + penalty * y.shape[1]

    def relaxed_objective(self, values: np.ndarray, penalty: float) -> float:
        """Return the lowest value of the objective over all orthonormal y (theorem 5.2)."""
        return float(self.matrix.trace() - (values - penalty).sum())


def make_form(affinity: Any, laplacian: str | None) -> Form:
    """Return the matrix of a kernel or of a graph's Laplacian.

    Parameters
    ----------
    affinity : ndarray or CSR matrix of shape (n, n)
        Symmetric; for a Laplacian, no entry may be negative.
    laplacian : {None, 'unnormalized', 'random-walk', 'symmetric'}

    Examples
    --------
    >>> path = np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 1.0], [0.0, 1.0, 0.0]])
    >>> make_form(path, "unnormalized").matrix.tolist()
    [[0.5, 0.5, 0.0], [0.5, 0.0, 0.5], [0.0, 0.5, 0.5]]
    """
    n = affinity.shape[0]
    affinity = (sp.csr_array if sp.issparse(affinity) else np.asarray)(affinity, dtype=np.float64)
    if laplacian is None:
        return Form(None, affinity, np.ones(n), None, 1.0)
    if (affinity.data if sp.issparse(affinity) else affinity).min(initial=0.0) < 0:
        _refuse_negative(affinity)
    degree = np.asarray(affinity.sum(axis=1), dtype=np.float64).ravel()
    components = connected_components(sp.csr_array(affinity), directed=False)[1]
    if laplacian == "unnormalized":
        largest = degree.max() or 1.0
        matrix = _add_diagonal(affinity / largest, 1.0 - degree / largest)
        return Form(laplacian, matrix, np.ones(n), components, float(largest))
    # A row without neighbours is a component of its own: a loop makes its eigenvalue 1.
    alone = degree == 0
    if alone.any():
        loop = degree[~alone].mean() if not alone.all() else 1.0
        affinity = _add_diagonal(affinity, np.where(alone, loop, 0.0))
        degree = np.where(alone, loop, degree)
    root = np.sqrt(degree)
    if sp.issparse(affinity):
        scaled = affinity.data / np.repeat(root, np.diff(affinity.indptr)) / root[affinity.indices]
        matrix = sp.csr_array((scaled, affinity.indices, affinity.indptr), affinity.shape)
    else:
        matrix = affinity / root[:, None] / root
    return Form(laplacian, matrix, root, components, float(degree.max()))


def indicators(labels: np.ndarray, root: np.ndarray) -> sp.csr_array:
    """Return a column of length 1 for each label."""
    length = np.sqrt(np.bincount(labels, root**2))
    at = np.arange(len(labels))
    return sp.csr_array((root / length[labels], (at, labels)), shape=(len(labels), len(length)))


def _add_diagonal(matrix: Any, values: np.ndarray) -> Any:
    if sp.issparse(matrix):
        return (matrix + sp.diags_array(values)).tocsr()
    matrix = matrix.copy()
    matrix[np.diag_indices_from(matrix)] += values
    return matrix


def _refuse_negative(affinity: Any) -> None:
    entries = sp.coo_array(affinity)
    worst = int(entries.data.argmin())
    row, column = (int(at[worst]) for at in entries.coords)
    raise ValueError(
        f"a Laplacian needs affinities of at least 0; row {row}, column {column} has "
        f"{entries.data[worst]:g} (laplacian=None takes any kernel)"
    )
