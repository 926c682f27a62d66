"""Many partitions of the same rows: relabelling, and co-clustering frequencies."""

import numpy as np
from numba import njit


@njit(nogil=True, cache=True)
def number_draws(
    labels,  # IN (n_draws, n_rows), not negative
    n_names,  # IN, above every label
    numbered,  # OUT (n_draws, n_rows)
    n_clusters,  # OUT (n_draws,)
):
    """Relabel the clusters of each draw 0, 1, ... in order of first appearance."""
    number = np.empty(n_names, dtype=np.int64)
    for draw in range(labels.shape[0]):
        number[:] = -1
        count = 0
        for row in range(labels.shape[1]):
            name = labels[draw, row]
            if number[name] < 0:
                number[name] = count
                count += 1
            numbered[draw, row] = number[name]
        n_clusters[draw] = count


@njit(nogil=True, cache=True)
def count_together(
    profiles,  # IN (n_rows, n_draws), the labels of each row
    others,  # IN (n_others, n_draws)
    share,  # OUT (n_rows, n_others)
):
    """Compute the share of draws in which two rows have the same label, for every pair."""
    n_draws = profiles.shape[1]
    for row in range(profiles.shape[0]):
        for other in range(others.shape[0]):
            together = 0
            for draw in range(n_draws):
                together += profiles[row, draw] == others[other, draw]
            share[row, other] = together / n_draws


@njit(nogil=True, cache=True)
def mix_profiles(
    draws,  # IN (n_draws, n_rows)
    factors,  # IN (n_draws,), random odd numbers, uint64
    mixed,  # OUT (n_rows,), uint64
):
    """Hash the labels of each row in all draws to one number."""
    mixed[:] = 0
    for draw in range(draws.shape[0]):
        for row in range(draws.shape[1]):
            mixed[row] += factors[draw] * np.uint64(draws[draw, row])


@njit(nogil=True, cache=True)
def are_alike(
    draws,  # IN (n_draws, n_rows)
    model,  # IN (n_rows,), another row for each row
):
    """Return whether every row has the same labels as its model in all draws."""
    for draw in range(draws.shape[0]):
        for row in range(draws.shape[1]):
            if draws[draw, row] != draws[draw, model[row]]:
                return False
    return True
