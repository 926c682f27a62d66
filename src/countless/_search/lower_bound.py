"""A lower bound on the objective of DP-means over all partitions.

Let ``K`` be the kernel of the weighted rows, ``K_ij = sqrt(w_i w_j) <x_i, x_j>``, and ``s`` the
unit vector along ``sqrt(w)``. A partition is the matrix ``Z``, the sum over clusters C of
``v v'`` with ``v_i = sqrt(w_i / w(C))`` in C: it is positive semidefinite, has no negative entry,
``Z s = s``, and its trace is the number of clusters k. Its objective is
``tr K - <K, Z> + penalty * k``.

Take any matrix ``N`` without negative entries, and let ``t`` be the largest eigenvalue of
``K + N`` on the vectors orthogonal to ``s``. There ``Z - s s'`` is positive semidefinite with trace
k - 1, so that ``<K + N, Z - s s'> <= t (k - 1)``; and ``<N, Z>`` is not negative. Hence a partition
into k clusters costs at least

    tr K - s' K s - s' N s + penalty * k - t (k - 1).

With ``t <= penalty`` this holds for all k at once. The best ``N`` is the dual solution of the
semidefinite relaxation of Peng and Wei (2007). It is approached by the alternating direction method
of multipliers from the ``N`` that proves well separated clusters optimal (Iguchi, Mixon, Peterson
and Villar 2017). Each ``N`` on the way gives a bound, so it can stop anywhere.

Rows are divided into parts of a few hundred rows. For disjoint parts ``X_1, ..., X_m``

    optimum(X, penalty) >= optimum(X_1, penalty / m) + ... + optimum(X_m, penalty / m),

as each part of a cluster is nearer to its own mean, and no part has more clusters than the whole.

For several data sets X_j that share clusters, and any shares from 0 to 1,

    optimum >= optimum(share * X, global_penalty) + sum_j optimum((1 - share) * X_j, local_penalty),

where a share multiplies squared distances: the rows of X_j in one cluster are nearer to their own
mean. As there are at least as many local as global clusters, the optimum is not below that of
DP-means at the sum of both penalties, either.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import eigh, eigvalsh
from scipy.optimize import minimize_scalar

from countless._threads import one_library_thread


@dataclass(frozen=True)
class Relaxation:
    """Constants of the bound; they change how tight it is, and never its validity."""

    # Rows of a part: a part holds a share of each cluster, and means of few rows fit them better
    # than those of all, so more clusters need larger parts. An iteration costs the cube of it.
    least_rows: int = 500
    rows_per_cluster: int = 16
    most_rows: int = 1000
    # Step of the method of multipliers, its over-relaxation, iterations, and how often the bound is
    # computed. It stops when the bound has risen by less than this share of the objective.
    step: float = 10.0
    relaxation: float = 1.6
    iterations: int = 200
    check_every: int = 20
    least_gain: float = 2e-4
    # Up to this many columns the eigenvalues of the whole table's scatter are computed.
    most_columns: int = 2000
    # Shares of the squared distances that are tried between local and global clusters.
    shares: int = 6


RELAXATION = Relaxation()


class OptimalityGap(NamedTuple):
    """How far from the optimum a clustering can be."""

    objective: float  # of the clustering
    lower_bound: float  # no clustering has a lower objective

    @property
    def gap(self) -> float:
        """The largest share of the objective that another clustering could save."""
        return 1.0 - self.lower_bound / self.objective if self.objective > 0 else 0.0


def dp_means_lower_bound(
    X: np.ndarray, weight: np.ndarray, penalty: float, labels: np.ndarray
) -> float:
    """Return a number that the objective of no partition is below.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_features)
    weight : ndarray of shape (n_rows,)
    penalty : float
        The penalty of one cluster.
    labels : ndarray of int (n_rows,)
        A good partition: the bound is valid for any, and tight near the best.
    """
    counted = weight > 0
    X, weight, labels = X[counted].astype(np.float64), weight[counted], labels[counted]
    if not len(X) or penalty <= 0:
        return 0.0
    X -= np.average(X, axis=0, weights=weight)
    n_parts = -(-len(X) // _part_size(len(np.unique(labels))))
    part = np.empty(len(X), dtype=np.int64)
    part[_near_order(X, labels, n_parts)] = np.arange(len(X)) % n_parts
    simple = 0.0
    with one_library_thread():
        # The whole has a simple bound, too, which proves one cluster optimal: N = 0.
        if X.shape[1] <= RELAXATION.most_columns:
            scatter = eigvalsh((X.T * weight) @ X)[::-1]
            simple = float(_trailing(scatter, penalty, len(X)).min())
        bounds = [
            part_lower_bound(
                X[part == p] @ X[part == p].T, weight[part == p], penalty / n_parts,
                labels[part == p],
            )
            for p in range(n_parts)
        ]  # fmt: skip
    return max(sum(bounds), simple)


def kernel_dp_means_lower_bound(
    kernel: np.ndarray, weight: np.ndarray, penalty: float, labels: np.ndarray
) -> float:
    """Return a number that the objective of no partition is below, in the space of a kernel.

    As `dp_means_lower_bound`, for a symmetric, positive semidefinite matrix.
    """
    ids = np.flatnonzero(weight > 0)
    if not len(ids) or penalty <= 0:
        return 0.0
    n_parts = -(-len(ids) // _part_size(len(np.unique(labels[ids]))))
    ids = ids[np.argsort(labels[ids], kind="stable")]
    parts = [ids[start::n_parts] for start in range(n_parts)]
    with one_library_thread():
        return sum(
            part_lower_bound(kernel[np.ix_(p, p)], weight[p], penalty / n_parts, labels[p])
            for p in parts
        )


def shared_lower_bound(
    bound: Callable[[np.ndarray, float], float],
    group: np.ndarray,
    local_penalty: float,
    global_penalty: float,
) -> float:
    """Return a number that the objective of no clustering of several data sets is below.

    Parameters
    ----------
    bound : callable
        A lower bound for one data set: of the row numbers and the penalty.
    group : ndarray of int (n_rows,)
        The data set of each row.
    local_penalty, global_penalty : float
        The penalties of a local and of a global cluster.
    """
    everyone = np.arange(len(group))
    pooled = bound(everyone, local_penalty + global_penalty)
    groups = [np.flatnonzero(group == j) for j in np.unique(group)]
    if len(groups) == 1:
        return pooled

    def split_bound(share: float) -> float:
        local = sum(bound(ids, local_penalty / (1 - share)) for ids in groups)
        return share * bound(everyone, global_penalty / share) + (1 - share) * local

    # The best bound of this kind is a concave function of the share.
    found = minimize_scalar(
        lambda share: -split_bound(share), bounds=(0, 1), method="bounded",
        options={"maxiter": RELAXATION.shares},
    )  # fmt: skip
    return max(pooled, -found.fun)


def within_clusters(X: np.ndarray, weight: np.ndarray, labels: np.ndarray) -> float:
    """Return the weighted sum of squared distances of rows from the means of their clusters."""
    X = X - X.mean(axis=0, dtype=np.float64)
    total = np.zeros((labels.max() + 1, X.shape[1]))
    np.add.at(total, labels, weight[:, None] * X)
    cluster_weight = np.bincount(labels, weight)
    means = np.divide(total, cluster_weight[:, None], out=total, where=cluster_weight[:, None] > 0)
    return float(weight @ ((X - means[labels]) ** 2).sum(axis=1))


def check_same_rows(X: Any, labels: np.ndarray) -> None:
    """Raise a ValueError unless there is a label for each row."""
    if X.shape[0] != len(labels):
        raise ValueError(f"X must be the rows of the fit: {len(labels)} rows; got {X.shape[0]}")


def _part_size(n_clusters: int) -> int:
    wanted = max(RELAXATION.least_rows, RELAXATION.rows_per_cluster * n_clusters)
    return min(wanted, RELAXATION.most_rows)


def _near_order(X: np.ndarray, labels: np.ndarray, size: int) -> np.ndarray:
    """Return an order in which rows near each other, in one cluster, are next to each other.

    Clusters are halved until they have at most ``size`` rows, at the median along the direction of
    the row farthest from the mean.
    """
    todo = [np.flatnonzero(labels == label) for label in np.unique(labels)[::-1]]
    order = []
    while todo:
        ids = todo.pop()
        if len(ids) <= size:
            order.append(ids)
            continue
        centred = X[ids] - X[ids].mean(axis=0)
        farthest = centred[np.einsum("ij,ij->i", centred, centred).argmax()]
        ids = ids[np.argsort(centred @ farthest, kind="stable")]
        todo += [ids[len(ids) // 2 :], ids[: len(ids) // 2]]
    return np.concatenate(order)


def _trailing(eigenvalues: np.ndarray, penalty: float, most: int) -> np.ndarray:
    """Return the least cost of 1, 2, ... clusters: the spectral relaxation.

    k clusters explain at most the k - 1 largest eigenvalues, those of the scatter about the mean.
    ``eigenvalues`` are descending.
    """
    positive = np.maximum(eigenvalues[:most], 0.0)
    explained = np.append(0.0, np.cumsum(positive))[:most]
    margin = len(eigenvalues) * np.finfo(float).eps * explained[-1]
    return eigenvalues.sum() - explained - margin + penalty * np.arange(1, len(explained) + 1)


def part_lower_bound(
    kernel: np.ndarray, weight: np.ndarray, penalty: float, labels: np.ndarray
) -> float:
    """Return the lower bound of one part, from its kernel, which need not be centred."""
    labels = np.unique(labels, return_inverse=True)[1]
    root = np.sqrt(weight)
    s = root / np.linalg.norm(root)
    K = _centred(kernel * np.outer(root, root) / penalty, s)  # penalties cost 1 from here on
    total = np.trace(K)
    least = _trailing(eigvalsh(K)[::-1], 1.0, len(s))
    k = np.arange(1, len(least) + 1)
    member = np.zeros((len(s), labels.max() + 1))
    member[np.arange(len(s)), labels] = root
    member /= np.linalg.norm(member, axis=0)
    objective = total - np.einsum("ic,ij,jc->", member, K, member, optimize=True) + member.shape[1]

    def bound(N: np.ndarray) -> float:
        centred = _centred(K + N, s)
        top = eigvalsh(centred, subset_by_index=(len(s) - 1, len(s) - 1))[0]
        rounding = len(s) * np.finfo(float).eps
        top = max(top + rounding * np.linalg.norm(centred), 1.0)
        paid = s @ N @ s
        dual = total - paid - rounding * (total + paid) + k - top * (k - 1)
        return float(np.maximum(dual, least).min())

    N = _separating(K, root, labels, member)
    best, Z = max(bound(N), least.min()), member @ member.T - np.outer(s, s)
    step = RELAXATION.step
    positive, price = Z + np.outer(s, s), N / step
    for iteration in range(1, RELAXATION.iterations + 1):
        # Z: the best semidefinite matrix; positive: the nearest one without negative entries.
        free = positive + price + K / step
        values, vectors = eigh(
            _centred(free, s) - (np.eye(len(s)) - np.outer(s, s)) / step,
            subset_by_value=(0.0, np.inf),
        )
        Z = (vectors * values) @ vectors.T + np.outer(s, s)
        mixed = RELAXATION.relaxation * Z + (1 - RELAXATION.relaxation) * positive - price
        positive = np.maximum(mixed, 0.0)
        price = positive - mixed
        if iteration % RELAXATION.check_every == 0:
            before, best = best, max(best, bound(step * price))
            if objective - best <= RELAXATION.least_gain * objective or (
                best - before <= RELAXATION.least_gain * objective and best > least.min()
            ):
                break
    return penalty * best


def _centred(A: np.ndarray, s: np.ndarray) -> np.ndarray:
    """Return the part of a symmetric matrix that is orthogonal to a unit vector."""
    product = A @ s
    return A - np.outer(product, s) - np.outer(s, product - (s @ product) * s)


def _separating(
    K: np.ndarray, root: np.ndarray, labels: np.ndarray, member: np.ndarray
) -> np.ndarray:
    """Return the N that proves a clustering optimal if its clusters are well separated.

    For contrasts v of the clusters, ``(K + N) v`` is to be the penalty, 1, times v. This determines
    the sums of the rows of each block of N; a block of rank one has these sums. What would be
    negative is replaced by zero.
    """
    cluster_weight = np.bincount(labels, root**2)
    products = K @ member
    square = np.einsum("ic,ic->c", member, products) / cluster_weight
    # Squared distances from the means, less those from the origin.
    distance = square - 2 * products / np.outer(root, np.sqrt(cluster_weight))
    own = np.arange(len(root)), labels
    excess = distance - distance[own][:, None] - 1 / cluster_weight[labels][:, None]
    sums = root[:, None] * np.maximum(0.5 * (cluster_weight * excess - 1), 0.0)
    sums[own] = 0.0
    block = np.zeros((len(cluster_weight),) * 2)
    np.add.at(block, labels, root[:, None] * sums)
    block = np.sqrt(block * block.T)
    scale = np.sqrt(np.divide(1.0, block, out=np.zeros_like(block), where=block > 0))
    half = sums[:, labels] * scale[np.ix_(labels, labels)]
    return half * half.T
