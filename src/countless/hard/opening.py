"""Which rows open clusters in a pass: the same ones, in the same order, as in a serial loop.

Far rows are visited by rising key, and rows of equal keys as they come. The first few settle among
themselves which of them open clusters; all others are then compared with these; and so on while far
rows are left.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from countless.kernels.assign import open_clusters, reach_far
from countless.rows import Block, Rows
from countless.rows.block import join
from countless.rows.survey import hash_uniform

# Rows that no cluster opened so far reaches.
FAR = {"far": (np.bool_, False)}


class Openers(NamedTuple):
    """The rows that open clusters, in the order in which they do."""

    key: np.ndarray
    row: np.ndarray  # places in the table
    centers: np.ndarray  # (n_openers, n_features)

    @staticmethod
    def key_of(block: Block, held, order: str, seed: int) -> np.ndarray:
        """Return when each row of a block is visited."""
        if order == "given":
            return np.zeros(block.n_rows)
        if order == "random":
            place = np.arange(block.start, block.start + block.n_rows, dtype=np.uint64)
            return hash_uniform(place, seed)
        cost = block.weight * held["upper"].astype(np.float64) ** 2
        return np.where(held["marked"], -cost, np.inf)


class Waiting(NamedTuple):
    """The first far rows of a block."""

    key: np.ndarray
    row: np.ndarray
    block: Block


def find_openers(rows: Rows, state, order: str, seed: int, penalty: float) -> Openers:
    """Return the marked rows that open clusters."""
    keys, places, centers = [], [], []
    opened = None
    rows.extend(state, FAR)
    while True:
        message = (rows.frame, order, seed, penalty, opened, rows.settle_at_once)
        found = [part for part in rows.run(waiting_block, state, message) if len(part.row)]
        if not found:
            break
        key = np.concatenate([part.key for part in found])
        row = np.concatenate([part.row for part in found])
        first = np.lexsort((row, key))[: rows.settle_at_once]
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
    rows.release(state, FAR)
    return Openers(np.concatenate(keys), np.concatenate(places), np.vstack(centers))


def waiting_block(block: Block, held, message) -> Waiting:
    """Compare far rows with the clusters opened last, and return the first that stay far."""
    frame, order, seed, penalty, opened, at_once = message
    far = held["far"]
    if opened is None:
        far[:] = held["marked"]
    else:
        reach_far(block.form, block.weight, frame.centers(opened), len(opened), penalty, far)
    ids = np.flatnonzero(far)
    key = Openers.key_of(block, held, order, seed)[ids]
    first = np.argsort(key, kind="stable")[:at_once]
    return Waiting(key[first], block.start + ids[first], block.pick(ids[first]))
