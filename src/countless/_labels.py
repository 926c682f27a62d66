"""Labels: their validation, and consecutive numbering by first appearance."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

NOISE = -1  # the label of rows that belong to no cluster


def number_by_appearance(labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Number clusters 0, 1, ... by first appearance.

    Returns
    -------
    names : ndarray
        The given label of each cluster, in the new order.
    numbers : ndarray of int32
        The new label of each row.

    Examples
    --------
    >>> names, numbers = number_by_appearance(np.array([7, 2, 7, 0]))
    >>> names.tolist(), numbers.tolist()
    ([7, 2, 0], [0, 1, 0, 2])
    """
    n_rows = len(labels)
    # Small integers need no sorting.
    if labels.dtype.kind in "iu" and n_rows and 0 <= labels.min() <= labels.max() < 2 * n_rows:
        names, inverse = np.arange(int(labels.max()) + 1, dtype=labels.dtype), labels
        first = np.full(len(names), n_rows)
        first[labels[::-1]] = np.arange(n_rows - 1, -1, -1)  # reversed: the first row wins
    else:
        names, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    order = np.argsort(first)[: np.count_nonzero(first < n_rows)]
    number = np.empty(len(names), dtype=np.int32)
    number[order] = np.arange(len(order))
    return names[order], number[inverse]


def number_by_size(labels: np.ndarray) -> np.ndarray:
    """Number clusters 0, 1, ... by size, the largest first; of equal ones the first to appear.

    A negative label, of rows without a cluster, is unchanged.

    Examples
    --------
    >>> number_by_size(np.array([5, 3, 3, -1, 7])).tolist()
    [1, 0, 0, -1, 2]
    """
    found = np.array(labels)
    names, numbers = number_by_appearance(found[found >= 0])
    order = np.argsort(-np.bincount(numbers, minlength=len(names)), kind="stable")
    place = np.empty(len(order), dtype=found.dtype)
    place[order] = np.arange(len(order))
    found[found >= 0] = place[numbers]
    return found


def look_up(table: np.ndarray, labels: Any) -> Any:
    """Return ``table[labels]``, as an array, or as a Dask array if labels are one."""
    if isinstance(labels, np.ndarray):
        return table[labels]
    return labels.map_blocks(lambda block: table[block], dtype=table.dtype)


def check_labels(name: str, labels: ArrayLike) -> np.ndarray:
    """Return labels as an array; raise a ValueError that names the first row without one."""
    array = np.asarray(labels)
    if array.ndim != 1:
        raise ValueError(f"{name} must have one dimension, got an array of shape {array.shape}")
    if array.size == 0:
        raise ValueError(f"{name} is empty")
    # NaN differs from itself, so each would count as a cluster; None cannot be sorted.
    missing = (array != array) | (array == None)  # noqa: E711 - compares element by element
    if missing.any():
        raise ValueError(f"{name} has no label at row {int(missing.argmax())}")
    return array
