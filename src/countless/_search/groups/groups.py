"""The data set (group) of each row: validation, sorting by group, numbering of local clusters."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from countless._labels import number_by_appearance


class Groups(NamedTuple):
    """Data sets, numbered by first appearance."""

    names: np.ndarray  # (n_groups,) as they were given
    number: np.ndarray  # (n_rows,) int32, the group of each row

    @property
    def n_groups(self) -> int:
        return len(self.names)

    def sorted(self) -> tuple[np.ndarray | None, np.ndarray]:
        """Return an order that makes groups contiguous (None: they are), and where each starts.

        The sort is stable: rows of a group keep their order.
        """
        starts = np.zeros(self.n_groups + 1, dtype=np.int64)
        np.cumsum(np.bincount(self.number, minlength=self.n_groups), out=starts[1:])
        if (np.diff(self.number) >= 0).all():
            return None, starts
        return np.argsort(self.number, kind="stable"), starts


def check_groups(groups: Any, n_rows: int) -> Groups:
    """Return the group of each row; None is one group, named 0."""
    if groups is None:
        return Groups(np.zeros(1, dtype=np.int64), np.zeros(n_rows, dtype=np.int32))
    given = np.asarray(groups)
    if given.dtype.kind == "U" and isinstance(groups, list | tuple):
        # NumPy converts numbers mixed with strings to strings, which would identify 1 and "1".
        given = np.asarray(groups, dtype=object)
    if given.shape != (n_rows,):
        raise ValueError(
            f"groups must hold a label for each of {n_rows} rows; got shape {given.shape}"
        )
    missing = given != given if given.dtype.kind in "fc" else np.zeros(n_rows, dtype=bool)
    if given.dtype.kind == "O":
        missing = np.array([name is None or name != name for name in given])
        if all(isinstance(name, str) for name in given):
            given = given.astype(str)
    if missing.any():
        raise ValueError(
            f"groups must name the data set of every row; row {missing.argmax()} has none"
        )
    try:
        return Groups(*number_by_appearance(given))
    except TypeError as error:
        raise ValueError(f"groups must hold labels that can be compared: {error}") from error


def number_inside(group: np.ndarray, local: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Number local clusters by first appearance inside each group, and count them.

    Parameters
    ----------
    group : ndarray of int of shape (n_rows,)
        The group of each row, 0, 1, ..., all of which occur.
    local : ndarray of int of shape (n_rows,)
        The local cluster of each row; no number is used in two groups.
    """
    names, cell = number_by_appearance(local)
    owner = np.empty(len(names), dtype=np.int64)
    owner[cell] = group
    sizes = np.bincount(owner)
    inside = np.empty(len(names), dtype=np.int32)
    # Rank by appearance, minus the rank of the group's first cluster.
    order = np.argsort(owner, kind="stable")
    inside[order] = np.arange(len(names)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return inside[cell], sizes
