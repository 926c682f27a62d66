"""Row and center types of the kernels, and the operations on them.

A kernel is written once: ``divergence`` and ``add_row`` are dispatched on the types of their
arguments when numba compiles it.
"""

from typing import NamedTuple

import numpy as np
from numba import njit
from numba.extending import overload


class Dense(NamedTuple):
    """Rows in a C-ordered array; ``cost`` is the term of the divergence that depends on the row."""

    values: np.ndarray  # (n_rows, n_features)
    cost: np.ndarray  # (n_rows,) or (0,)


class Sparse(NamedTuple):
    """Rows in compressed sparse row form."""

    data: np.ndarray
    indices: np.ndarray
    indptr: np.ndarray
    cost: np.ndarray  # (n_rows,)


class Scale(NamedTuple):
    """Fixed-point scale: values minus the origin become integers, in steps of each column.

    Sums of integers do not depend on the order of addition, and subtraction is exact.
    """

    origin: np.ndarray  # (n_features,)
    per_step: np.ndarray  # (n_features,) steps per unit, a power of two
    per_weight_step: float  # steps of weights per unit


class Points(NamedTuple):
    """Centers compared by differences: accurate wherever the origin lies."""

    values: np.ndarray  # (n_clusters, n_features) float64


class Linear(NamedTuple):
    """Centers in linear form: ``cost(x) + offset - <x, slope>``."""

    slope: np.ndarray  # (n_clusters, n_features) float64
    offset: np.ndarray  # (n_clusters,) float64


def divergence(rows, i, centers, c):
    """Return the divergence of row ``i`` from center ``c``, in float64."""
    raise NotImplementedError("compiled code only")


@njit(nogil=True, cache=True, fastmath={"reassoc", "contract", "nsz"})
def _squared_distance(row, center):
    total = 0.0
    for j in range(row.shape[0]):
        difference = row[j] - center[j]
        total += difference * difference
    return total


@njit(nogil=True, cache=True, fastmath={"reassoc", "contract", "nsz"})
def _dense_dot(row, slope):
    total = 0.0
    for j in range(row.shape[0]):
        total += row[j] * slope[j]
    return total


@njit(nogil=True, cache=True, fastmath={"reassoc", "contract", "nsz"})
def _centered_dot(row, origin, direction):
    total = 0.0
    for j in range(row.shape[0]):
        total += (row[j] - origin[j]) * direction[j]
    return total


@overload(divergence)
def _divergence(rows, i, centers, c):
    if rows.instance_class is Dense and centers.instance_class is Points:
        return lambda rows, i, centers, c: _squared_distance(rows.values[i], centers.values[c])
    if rows.instance_class is Dense:
        return lambda rows, i, centers, c: max(
            0.0, rows.cost[i] + centers.offset[c] - _dense_dot(rows.values[i], centers.slope[c])
        )

    def sparse_linear(rows, i, centers, c):
        total = 0.0
        for entry in range(rows.indptr[i], rows.indptr[i + 1]):
            total += rows.data[entry] * centers.slope[c, rows.indices[entry]]
        return max(0.0, rows.cost[i] + centers.offset[c] - total)

    return sparse_linear


def add_row(rows, i, weight, scale, total, c):
    """Add ``weight`` times row ``i`` to ``total[c]``, in fixed-point steps."""
    raise NotImplementedError("compiled code only")


@overload(add_row)
def _add_row(rows, i, weight, scale, total, c):
    if rows.instance_class is Dense:

        def add_dense(rows, i, weight, scale, total, c):
            for j in range(total.shape[1]):
                seen = weight * (rows.values[i, j] - scale.origin[j])
                total[c, j] += np.int64(np.rint(seen * scale.per_step[j]))

        return add_dense

    def add_sparse(rows, i, weight, scale, total, c):
        for entry in range(rows.indptr[i], rows.indptr[i + 1]):
            j = rows.indices[entry]
            total[c, j] += np.int64(np.rint(weight * rows.data[entry] * scale.per_step[j]))

    return add_sparse


def project(rows, i, origin, directions, s):
    """Return the product of row ``i`` minus the origin with ``directions[s]``."""
    raise NotImplementedError("compiled code only")


@overload(project)
def _project(rows, i, origin, directions, s):
    if rows.instance_class is Dense:
        return lambda rows, i, origin, directions, s: _centered_dot(
            rows.values[i], origin, directions[s]
        )

    def project_sparse(rows, i, origin, directions, s):
        total = 0.0
        for entry in range(rows.indptr[i], rows.indptr[i + 1]):
            total += rows.data[entry] * directions[s, rows.indices[entry]]
        return total

    return project_sparse
