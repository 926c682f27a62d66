"""The matrix whose leading eigenvectors embed the rows: a kernel, or from a graph Laplacian.

Every form is written so that the largest eigenvalues matter, and the penalty is their threshold:

=============== ============================== ===================================
laplacian       matrix                         what a partition of it costs
=============== ============================== ===================================
None            K                              DP-means in the kernel's space
'unnormalized'  I - (D - W) / max(D)           ratio cut / max(D) + (penalty - 1) k
'random-walk'   D^-1/2 W D^-1/2                normalised cut + (penalty - 1) k
'symmetric'     the same                       the same
=============== ============================== ===================================

The costs are up to a constant, the trace. Eigenvalues of graphs are at most 1, and the multiplicity
of 1 is the number of connected components. Random walk and symmetric share the matrix (``I - D^-1
W`` has the same eigenvalues) and differ in how its eigenvectors are scaled to an embedding.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

LAPLACIANS = (None, "unnormalized", "random-walk", "symmetric")


class Form(NamedTuple):
    """A symmetric matrix, and the indicator vectors of clusters in it.

    The indicator of a cluster is ``root`` on its rows and 0 elsewhere; ``root ** 2`` are the
    weights of rows.
    """

    laplacian: str | None
    matrix: Any  # (n, n), dense or CSR
    root: np.ndarray  # (n,)
    components: np.ndarray | None  # (n,), the connected component of each row of a graph
    largest_degree: float

    @property
    def known(self) -> np.ndarray | None:
        """The eigenvectors of the eigenvalue 1 of a graph: one per connected component."""
        return None if self.components is None else indicators(self.components, self.root).toarray()

    def rows(self, vectors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the embedding of the rows, with weights, from eigenvectors.

        Rows of a perfect cluster are equal, and merging two such clusters raises the weighted sum
        of squared distances to the centers by exactly 1.
        """
        if self.laplacian == "symmetric":
            weight = np.einsum("ij,ij->i", vectors, vectors)
            length = np.sqrt(np.maximum(weight, np.finfo(float).tiny))
            return vectors / length[:, None], weight
        return vectors / self.root[:, None], self.root**2

    def objective(self, labels: np.ndarray, penalty: float) -> float:
        """Return ``trace - sum over clusters of y' matrix y + penalty * n_clusters``.

        y is the indicator of a cluster, scaled to unit length. For a kernel this is the objective
        of DP-means.
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
    # An isolated row is a connected component: a self-loop gives it the eigenvalue 1.
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
    """Return the indicator of each label as a column of unit length."""
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
