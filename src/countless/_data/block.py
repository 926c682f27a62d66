"""A block: consecutive rows of a table, in memory, in the form that kernels take."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from countless.kernels.rows import Dense, Sparse


class Block(NamedTuple):
    """Consecutive rows of a table, and their weights.

    Rows are indexed from 0 inside a block; ``start`` is the index of the first in the whole table.
    """

    start: int
    table: Any  # an array or CSR matrix that contains them, from row `offset` on
    offset: int
    form: Dense | Sparse
    weight: np.ndarray  # (n_rows,)

    @property
    def n_rows(self) -> int:
        return len(self.weight)

    @property
    def values(self) -> Any:
        """The rows as an array or CSR matrix."""
        return self.table[self.offset : self.offset + self.n_rows]

    def pick(self, ids: np.ndarray) -> Block:
        """Return a block of some of the rows."""
        table = self.table[self.offset + ids]
        cost = self.form.cost[ids] if len(self.form.cost) else self.form.cost
        return _block(0, table, cost, self.weight[ids])

    def points(self) -> np.ndarray:
        """Return the rows as float64 centers."""
        rows = self.values
        return (rows.toarray() if sp.issparse(rows) else rows).astype(np.float64)


def make_block(start: int, table: Any, weight: np.ndarray | None, divergence) -> Block:
    """Return a block of all rows of a table; ``weight=None`` gives every row weight 1."""
    weight = unit_weights(table.shape[0]) if weight is None else weight
    return _block(start, table, row_costs(table, divergence), weight)


def row_costs(table: Any, divergence) -> np.ndarray:
    """Return the part of the divergence that depends on the row only; empty for dense metrics.

    Dense rows under a squared metric are compared by differences and do not need it.
    """
    if divergence.is_metric and not sp.issparse(table):
        return np.empty(0)
    with np.errstate(divide="ignore", invalid="ignore"):  # the survey reports invalid cells
        return divergence.scale * divergence.row_cost(table)


def slice_block(whole: Block, start: int, stop: int) -> Block:
    """Return the rows from start to stop of a block, without copying them."""
    form, part = whole.form, slice(start, stop)
    weight = whole.weight[part]
    weight = weight if weight.flags.c_contiguous else unit_weights(stop - start)
    cost = form.cost[part] if len(form.cost) else form.cost
    if isinstance(form, Sparse):
        form = Sparse(form.data, form.indices, form.indptr[start : stop + 1], cost)
    else:
        form = Dense(form.values[part], cost)
    return Block(whole.start + start, whole.table, whole.offset + start, form, weight)


def weigh_block(block: Block, weight: np.ndarray) -> Block:
    """Return the block with other weights of its rows."""
    return block._replace(weight=_read_only(weight))


def concatenate_blocks(blocks: Sequence[Block]) -> Block:
    """Return the rows of several blocks, one after the other."""
    tables = [block.values for block in blocks]
    table = sp.vstack(tables, format="csr") if sp.issparse(tables[0]) else np.concatenate(tables)
    cost = np.concatenate([block.form.cost for block in blocks])
    return _block(0, table, cost, np.concatenate([block.weight for block in blocks]))


def unit_weights(n_rows: int) -> np.ndarray:
    """Return unit weights that take no memory: a view of an array that all blocks share."""
    return _ONES[:n_rows] if n_rows <= len(_ONES) else np.broadcast_to(np.ones(1), n_rows)


def _block(start: int, table: Any, cost: np.ndarray, weight: np.ndarray) -> Block:
    form: Dense | Sparse
    if sp.issparse(table):
        form = Sparse(*map(_read_only, (table.data, table.indices, table.indptr, cost)))
    else:
        table = np.ascontiguousarray(table)
        form = Dense(_read_only(table), _read_only(cost))
    return Block(start, table, 0, form, _read_only(weight))


def _read_only(array: np.ndarray) -> np.ndarray:
    """Return a read-only view, so that Numba compiles kernels for read-only arrays only."""
    view = array.view(np.ndarray)
    view.flags.writeable = False
    return view


_ONES = _read_only(np.ones(2**14))
