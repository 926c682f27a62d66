"""Loops over rows and sizes for the priors over partitions."""

import numpy as np
from numba import njit

# Probabilities below exp(-700) are set to 0: arithmetic on denormal numbers is slow.
LOWEST = -700.0
SMALLEST = np.exp(LOWEST)


@njit(nogil=True, cache=True)
def seat_rows(
    alpha,  # IN
    discount,  # IN, below 1; negative where the number of clusters is bounded
    most,  # IN, maximum number of clusters
    random,  # IN, a numpy Generator
    labels,  # OUT (n_rows,)
):
    """Sample a partition row by row: join a cluster of s rows by weight s - discount, or open one.

    A row copies the cluster of a random previous row, which chooses clusters by size. The discount
    is a probability of rejecting that and copying again or, if negative, of taking any cluster
    uniformly. So the cost of a row does not depend on the number of clusters.
    """
    sizes = np.zeros(labels.shape[0], dtype=np.int64)
    n_clusters = 0
    for row in range(labels.shape[0]):
        opening = alpha + discount * n_clusters
        if row == 0 or (n_clusters < most and random.random() * (alpha + row) < opening):
            cluster = n_clusters
            n_clusters += 1
        elif random.random() * (row - min(discount, 0.0) * n_clusters) >= row:
            cluster = min(int(random.random() * n_clusters), n_clusters - 1)
        else:
            while True:
                cluster = labels[min(int(random.random() * row), row - 1)]
                if discount <= 0.0 or random.random() * sizes[cluster] >= discount:
                    break
        labels[row] = cluster
        sizes[cluster] += 1


@njit(nogil=True, cache=True)
def count_seated(
    discount,  # IN
    opening,  # IN (n_rows,), the weight of a new cluster when there are k
    shares,  # OUT (n_rows + 1,), the probability of each number of clusters
):
    """Compute the distribution of the number of clusters, by recursion over rows."""
    shares[:] = 0.0
    shares[0] = 1.0
    low, high = 0, 0
    for row in range(opening.shape[0]):
        total, held = 0.0, 0.0
        for k in range(low, high + 2):
            staying = shares[k] * (row - discount * k)
            opened = held
            held = shares[k] * opening[k] if k <= row else 0.0
            shares[k] = staying + opened
            total += shares[k]
        high += 1
        for k in range(low, high + 1):
            shares[k] /= total
            if shares[k] < SMALLEST:
                shares[k] = 0.0
        while shares[low] == 0.0:
            low += 1
        while shares[high] == 0.0:
            high -= 1


@njit(nogil=True, cache=True)
def first_cluster(
    log_terms,  # IN (n_rows + 1,), log f(s) - log (s - 1)!
    log_sums,  # IN (n_rows + 1,), log of the sum over partitions of m rows, over m!
    n_rows,  # IN
    shares,  # OUT (n_rows + 1,), the probability of each size of the first row's cluster
):
    """Compute the size law of the first row's cluster; return the log sum of ``n_rows``."""
    highest = -np.inf
    for size in range(1, n_rows + 1):
        shares[size] = log_terms[size] + log_sums[n_rows - size]
        highest = max(highest, shares[size])
    total = 0.0
    for size in range(1, n_rows + 1):
        below = shares[size] - highest
        shares[size] = np.exp(below) if below > LOWEST else 0.0
        total += shares[size]
    for size in range(1, n_rows + 1):
        shares[size] /= total
    return highest + np.log(total) - np.log(n_rows)


@njit(nogil=True, cache=True)
def sum_partitions(
    log_terms,  # IN (n_rows + 1,)
    log_sums,  # OUT (n_rows + 1,)
    expected,  # OUT (n_rows + 1,), the expected number of clusters of m rows
):
    """Sum products of size weights over all partitions, by recursion on the first row's cluster.

    With ``Z(m)`` for the sum and ``f`` for the weights,
    ``Z(m) = sum over s of binomial(m - 1, s - 1) f(s) Z(m - s)``.
    """
    n_rows = log_terms.shape[0] - 1
    shares = np.empty(n_rows + 1)
    log_sums[0] = 0.0
    expected[0] = 0.0
    for rows in range(1, n_rows + 1):
        log_sums[rows] = first_cluster(log_terms, log_sums, rows, shares)
        count = 1.0
        for size in range(1, rows + 1):
            count += shares[size] * expected[rows - size]
        expected[rows] = count


@njit(nogil=True, cache=True)
def count_by_sizes(log_terms, log_sums):
    """Return the distribution of the number of clusters: one more than without the first row's."""
    n_rows = log_terms.shape[0] - 1
    shares = np.empty(n_rows + 1)
    law = np.zeros((n_rows + 1, n_rows + 1))
    law[0, 0] = 1.0
    for rows in range(1, n_rows + 1):
        first_cluster(log_terms, log_sums, rows, shares)
        for size in range(1, rows + 1):
            left = rows - size
            for k in range(left + 1):
                law[rows, k + 1] += shares[size] * law[left, k]
    return law[n_rows]


@njit(nogil=True, cache=True)
def log_stirling(n_rows):
    """Return the log Stirling numbers of the second kind S(n_rows, k), for k from 0.

    In logs throughout: the largest terms build on terms that are negligible in early rows.
    """
    counts = np.full(n_rows + 1, -np.inf)
    counts[0] = 0.0
    log_k = np.log(np.arange(n_rows + 1))
    for rows in range(1, n_rows + 1):
        for k in range(rows, 0, -1):
            joined, opened = counts[k] + log_k[k], counts[k - 1]
            higher = max(joined, opened)
            if higher > -np.inf:
                counts[k] = higher + np.log1p(np.exp(min(joined, opened) - higher))
        counts[0] = -np.inf
    return counts


@njit(nogil=True, cache=True)
def draw_sizes(
    log_terms,  # IN (n_rows + 1,)
    log_sums,  # IN (n_rows + 1,)
    random,  # IN, a numpy Generator
    sizes,  # OUT (n_rows,)
):
    """Sample the clusters' sizes, each that of the first remaining row's cluster; count them."""
    left = log_terms.shape[0] - 1
    shares = np.empty(left + 1)
    n_clusters = 0
    while left > 0:
        first_cluster(log_terms, log_sums, left, shares)
        mark = random.random()
        size = 1
        while size < left and mark >= shares[size]:
            mark -= shares[size]
            size += 1
        sizes[n_clusters] = size
        n_clusters += 1
        left -= size
    return n_clusters
