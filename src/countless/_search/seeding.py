"""Which rows open clusters in a pass: the same ones, in the same order, as in a serial loop.

Far rows (weighted divergence from all centers above the penalty) are visited in the order of a key,
ties in table order. A serial loop over the first few decides which of them open clusters; the other
far rows are then compared with these, and this is repeated until no far row is left.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from countless._data import Backend, Block
from countless._data.block import concatenate_blocks
from countless._data.validate import hash_uniform
from countless.kernels.assign import FAR, mark_reached, open_clusters


class OpeningRows(NamedTuple):
    """The rows that open clusters, in the order in which they do."""

    key: np.ndarray
    row: np.ndarray  # indices in the table

    @staticmethod
    def key_of(block: Block, state, ids: np.ndarray, order: str, seed: int) -> np.ndarray:
        """Return the sort key of some rows of a block: rows are visited by ascending key."""
        if order == "given":
            return np.zeros(len(ids))
        if order == "random":
            return hash_uniform((block.start + ids).astype(np.uint64), seed)
        cost = block.weight[ids] * state["upper"][ids].astype(np.float64) ** 2
        return np.where(state["marked"][ids], -cost, np.inf)


class FarRows(NamedTuple):
    """The first far rows of a block, in the order of visits."""

    key: np.ndarray
    row: np.ndarray
    block: Block | None  # None if the rows are in memory and can be read again


def find_opening_rows(
    rows: Backend, state, order: str, seed: int, penalty: float
) -> tuple[OpeningRows, np.ndarray]:
    """Return the marked rows that open clusters, and the centers of these."""
    keys, places, centers = [], [], []
    opened = None
    while True:
        message = (
            rows.fixed_point,
            order,
            seed,
            penalty,
            opened,
            rows.far_rows_at_once,
            rows.in_memory,
        )
        found = [part for part in rows.run(far_rows_block, state, message) if len(part.row)]
        if not found:
            break
        key = np.concatenate([part.key for part in found])
        row = np.concatenate([part.row for part in found])
        first = np.lexsort((row, key))[: rows.far_rows_at_once]
        if rows.in_memory:
            block = rows.pick(row[first])
        else:
            block = concatenate_blocks([part.block for part in found]).pick(first)
        opens = np.empty(len(first), dtype=np.int64)
        points = block.points()
        form = rows.fixed_point.centers(points)
        count = open_clusters(block.form, np.arange(len(first)), block.weight, form, penalty, opens)
        chosen = opens[:count]
        opened = points[chosen]
        keys.append(key[first[chosen]])
        places.append(row[first[chosen]])
        centers.append(opened)
    return OpeningRows(np.concatenate(keys), np.concatenate(places)), np.vstack(centers)


def far_rows_block(block: Block, state, message) -> FarRows:
    """Compare far rows with the clusters opened last, and return the first that are still far."""
    fixed_point, order, seed, penalty, opened, at_once, in_memory = message
    marked = state["marked"]
    if opened is not None:
        mark_reached(
            block.form, block.weight, fixed_point.centers(opened), len(opened), penalty, marked
        )
    far = np.flatnonzero(marked == FAR)
    key = OpeningRows.key_of(block, state, far, order, seed)
    first = np.argsort(key, kind="stable")[:at_once]
    key, row = key[first], far[first]
    return FarRows(key, block.start + row, None if in_memory else block.pick(row))
