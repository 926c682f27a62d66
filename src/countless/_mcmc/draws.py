"""Canonical form of drawn partitions: numbering by first appearance, and groups of equal rows."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from countless.kernels.draws import are_alike, mix_profiles, number_draws


def number_alike(labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Number the clusters of each draw by first appearance, and count them.

    Examples
    --------
    >>> numbered, n_clusters = number_alike(np.array([[[7, 2, 7], [4, 4, 4]]]))
    >>> numbered.tolist(), n_clusters.tolist()
    ([[[0, 1, 0], [0, 0, 0]]], [[2, 1]])
    """
    n_names = int(labels.max()) + 1
    numbered = np.empty(labels.shape, dtype=np.min_scalar_type(n_names - 1))
    n_clusters = np.empty(labels.shape[:2], dtype=np.int64)
    n_rows = labels.shape[2]
    number_draws(
        labels.reshape(-1, n_rows), n_names, numbered.reshape(-1, n_rows), n_clusters.reshape(-1)
    )
    return numbered, n_clusters


def collapse(draws: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Group the rows that have the same label in every draw into items; (n_draws, n_rows).

    Returns
    -------
    item_of : ndarray of shape (n_rows,)
        The item of each row.
    first : ndarray of shape (n_items,)
        The first row of each item.

    Examples
    --------
    >>> item_of, first = collapse(np.array([[0, 1, 0, 1], [0, 1, 0, 0]]))
    >>> item_of.tolist()[::2], len(first)
    ([0, 0], 3)
    """
    random = np.random.default_rng(0)
    mixed = np.empty(draws.shape[1], dtype=np.uint64)
    while True:  # hashes of different rows collide about once in 10^6 tables of 10^5 rows
        factors = random.integers(2**63, size=len(draws), dtype=np.uint64) * np.uint64(2)
        mix_profiles(draws, factors + np.uint64(1), mixed)
        _, first, item_of = np.unique(mixed, return_index=True, return_inverse=True)
        if are_alike(draws, first[item_of]):
            return item_of, first


def equal_rows(rows: np.ndarray) -> np.ndarray:
    """Return a number for each row that is the same for rows with the same values.

    Examples
    --------
    >>> equal_rows(np.array([[0.0, np.nan], [1.0, 2.0], [-0.0, np.nan]])).tolist()
    [0, 1, 0]
    """
    return equal_keys(row.tobytes() for row in np.ascontiguousarray(rows) + 0.0)  # -0 is 0


def equal_keys(keys: Iterable[bytes]) -> np.ndarray:
    """Number keys by first appearance."""
    numbers: dict[bytes, int] = {}
    return np.array([numbers.setdefault(key, len(numbers)) for key in keys])


def by_majority(labels: np.ndarray, same: np.ndarray) -> np.ndarray:
    """Give rows with the same number their majority label.

    Examples
    --------
    >>> by_majority(np.array([0, 1, 1, 2]), np.array([0, 0, 0, 1])).tolist()
    [1, 1, 1, 2]
    """
    pairs, count = np.unique(np.column_stack([same, labels]), axis=0, return_counts=True)
    order = np.lexsort((-pairs[:, 1], count))  # of equal counts, the lowest label comes last
    chosen = np.empty(int(same.max()) + 1, dtype=labels.dtype)
    chosen[pairs[order, 0]] = pairs[order, 1]
    return chosen[same]
