"""Which rows open clusters in a pass: the same ones, in the same order, as in a serial loop.

Far rows (weighted divergence from all centers above the penalty) are visited in the order of a key,
ties in table order. A serial loop over the first few decides which of them open clusters; the other
far rows are then compared with these, and this is repeated until no far row is left.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from countless._data import Block, Rows
from countless._data.block import join
from countless._data.validate import hash_uniform
from countless.kernels.assign import FAR, open_clusters, reach_far


class Openers(NamedTuple):
    """The rows that open clusters, in the order in which they do."""

    key: np.ndarray
    row: np.ndarray  # indices in the table

    @staticmethod
    def key_of(block: Block, held, ids: np.ndarray, order: str, seed: int) -> np.ndarray:
        """Return the sort key of some rows of a block: rows are visited by ascending key."""
        if order == "given":
            return np.zeros(len(ids))
        if order == "random":
            return hash_uniform((block.start + ids).astype(np.uint64), seed)
        cost = block.weight[ids] * held["upper"][ids].astype(np.float64) ** 2
        return np.where(held["marked"][ids], -cost, np.inf)


class Waiting(NamedTuple):
    """The first far rows of a block, in the order of visits."""

    key: np.ndarray
    row: np.ndarray
    block: Block | None  # None if the rows are in memory and can be read again


def find_openers(
    rows: Rows, state, order: str, seed: int, penalty: float
) -> tuple[Openers, np.ndarray]:
    """Return the marked rows that open clusters, and the centers of these."""
    keys, places, centers = [], [], []
    opened = None
    while True:
        message = (rows.frame, order, seed, penalty, opened, rows.settle_at_once, rows.in_memory)
        found = [part for part in rows.run(waiting_block, state, message) if len(part.row)]
        if not found:
            break
        key = np.concatenate([part.key for part in found])
        row = np.concatenate([part.row for part in found])
        first = np.lexsort((row, key))[: rows.settle_at_once]
        if rows.in_memory:
            block = rows.pick(row[first])
        else:
            block = join([part.block for part in found]).pick(first)
        opens = np.empty(len(first), dtype=np.int64)
        points = block.points()
        form = rows.frame.centers(points)
        count = open_clusters(block.form, np.arange(len(first)), block.weight, form, penalty, opens)
        chosen = opens[:count]
        opened = points[chosen]
        keys.append(key[first[chosen]])
        places.append(row[first[chosen]])
        centers.append(opened)
    return Openers(np.concatenate(keys), np.concatenate(places)), np.vstack(centers)


def waiting_block(block: Block, held, message) -> Waiting:
    """Compare far rows with the clusters opened last, and return the first that are still far."""
    frame, order, seed, penalty, opened, at_once, in_memory = message
    marked = held["marked"]
    if opened is not None:
        reach_far(block.form, block.weight, frame.centers(opened), len(opened), penalty, marked)
    far = np.flatnonzero(marked == FAR)
    key = Openers.key_of(block, held, far, order, seed)
    first = np.argsort(key, kind="stable")[:at_once]
    key, row = key[first], far[first]
    return Waiting(key, block.start + row, None if in_memory else block.pick(row))
