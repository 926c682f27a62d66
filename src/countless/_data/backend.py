"""The interface of storage backends, and the one for tables in memory.

An algorithm is a sequence of steps. A step is a function of one block of rows, of the per-row state
of these rows (labels, bounds), and of a message that is the same for all blocks; it updates the
state in place and returns an answer. Steps on different blocks are independent, so a backend may
run them anywhere and in any order. Sums over all rows are integers (fixed point), so they do not
depend on the order either.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Any

import numpy as np
import scipy.sparse as sp

from countless._data.block import (
    Block,
    concatenate_blocks,
    make_block,
    slice_block,
    unit_weights,
    weigh_block,
)
from countless._data.fixed_point import FixedPoint, Summary


@dataclass(frozen=True)
class Blocks:
    """Constants of blocks of rows; they change time and memory, never results."""

    # Values in a block: enough to make the overhead of calls small, few enough for load balance;
    # a table of few values has at least `fewest` blocks.
    most_values: int = 2**20
    least_values: int = 2**16
    fewest: int = 16
    # Rows of the smallest and the largest block, and of a large one that is not divided further.
    least_rows: int = 2**6
    large_rows: int = 2**13
    most_rows: int = 2**14
    # Per-thread copies of sums take at most this share of the table's memory; else threads share.
    sums_share: float = 1 / 64


BLOCKS = Blocks()

Fields = dict[str, tuple[Any, Any]]  # name -> (dtype, value to start with)
BlockState = dict[str, np.ndarray]  # per-row state of one block


def block_size(n_rows: int, n_features: int) -> int:
    """Return how many rows a block has: a power of two, fewer where the table is short."""
    values = min(max(n_rows * n_features // BLOCKS.fewest, BLOCKS.least_values), BLOCKS.most_values)
    # The working memory of threads must be small compared with a short table.
    large = max(BLOCKS.large_rows, n_rows // BLOCKS.fewest)
    size = min(values // n_features, BLOCKS.most_rows, large)
    return 2 ** int(np.log2(max(size, BLOCKS.least_rows)))


class Backend(ABC):
    """A storage backend: a table, its per-row state, and a way to run steps on its blocks.

    Attributes
    ----------
    spans : list of (start, stop)
        The row ranges of the blocks.
    n_threads, n_bytes, is_sparse : int, int, bool
        Threads of this process; size of the table; whether it is sparse.
    fixed_point : FixedPoint
        Divergence, origin and fixed-point scale.
    whole : Summary
        All rows as one cluster.
    """

    n_rows: int
    n_features: int
    n_threads: int
    n_bytes: int
    is_sparse: bool
    spans: list[tuple[int, int]]
    # Far rows in one serial loop of cluster opening, before the next pass over all rows: the more,
    # the more expensive a pass.
    far_rows_at_once = 64
    in_memory = False  # whether reading some rows again is free
    fixed_point: FixedPoint
    whole: Summary
    _pool: ThreadPoolExecutor | None

    @abstractmethod
    def set_weight(self, weight: np.ndarray) -> None:
        """Replace the weights of the rows; `countless._data.open.reweigh` keeps the sums true."""

    @abstractmethod
    def allocate(self, fields: Fields) -> Any:
        """Allocate per-row state: for each field an array with a value for every row."""

    @abstractmethod
    def allocate_more(self, state: Any, fields: Fields) -> None:
        """Allocate more fields, unless the state has them already."""

    @abstractmethod
    def free(self, state: Any, names: Iterable[str]) -> None:
        """Free these fields."""

    @abstractmethod
    def put(self, state: Any, name: str, values: Any) -> None:
        """Set a field to these values, one per row; they are sliced in order, first to last."""

    @abstractmethod
    def pieces(self, state: Any, name: str) -> Iterator[np.ndarray]:
        """Yield a field of each block in turn."""

    @abstractmethod
    def get(self, state: Any, name: str) -> Any:
        """Return a field of all rows, as the same kind of array as the user's table."""

    @abstractmethod
    def run(
        self, step: Callable, state: Any = None, message: Any = None, *, into=None, data=True
    ) -> list:
        """Run a step on every block and return the answers, in the order of the blocks.

        ``step(block, state, message)`` is a module-level function. With ``into``, which has
        ``zeros_factory`` and ``add``, it is called as ``step(block, state, message, borrow)`` and
        adds to the sums in ``with borrow() as sums``. With ``data=False`` the block has no rows.
        """

    @abstractmethod
    def pick_from(self, wanted: list[tuple[int, np.ndarray]]) -> list[Block]:
        """Return rows of some blocks, given block numbers and row indices within each block."""

    def each(self, function: Callable, items: Iterable[tuple]) -> list:
        """Call ``function(*item)`` for every item, on local threads; return answers in order."""
        items = list(items)
        if self._pool is None or len(items) == 1:  # waking a thread takes longer than a call
            return [function(*item) for item in items]
        return list(self._pool.map(lambda item: function(*item), items))

    def pick(self, ids: np.ndarray) -> Block:
        """Return some rows, at least one, in the order given."""
        order = np.argsort(ids, kind="stable")
        ends = np.searchsorted(ids[order], [stop for _, stop in self.spans])
        wanted = [
            (number, ids[order[at:end]] - self.spans[number][0])
            for number, (at, end) in enumerate(zip([0, *ends[:-1]], ends, strict=True))
            if end > at
        ]
        place = np.empty(len(ids), dtype=np.int64)
        place[order] = np.arange(len(ids))
        return concatenate_blocks(self.pick_from(wanted)).pick(place)

    def points(self, ids: np.ndarray) -> np.ndarray:
        """Return some rows as float64 centers."""
        return self.pick(ids).points()


class LocalBackend(Backend):
    """A backend on one machine: threads run steps on blocks in parallel."""

    def __init__(self, n_rows: int, n_features: int, n_threads: int, pool):
        self.n_rows, self.n_features = n_rows, n_features
        self.n_threads, self._pool = n_threads, pool
        size = block_size(n_rows, n_features)
        self.spans = [(at, min(at + size, n_rows)) for at in range(0, n_rows, size)]

    @abstractmethod
    def load(self, start: int, stop: int) -> Block:
        """Return a block with its rows."""

    def new_array(self, dtype, fill) -> np.ndarray:
        """Return an array with one value per row."""
        return np.full(self.n_rows, fill, dtype=dtype)

    def allocate(self, fields: Fields) -> BlockState:
        state: BlockState = {}
        self.allocate_more(state, fields)
        return state

    def allocate_more(self, state: BlockState, fields: Fields) -> None:
        for name, (dtype, fill) in fields.items():
            if name not in state:
                state[name] = self.new_array(dtype, fill)

    def free(self, state: BlockState, names: Iterable[str]) -> None:
        for name in names:
            state.pop(name, None)

    def put(self, state: BlockState, name: str, values) -> None:
        for start, stop in self.spans:
            state[name][start:stop] = values[start:stop]

    def pieces(self, state: BlockState, name: str) -> Iterator[np.ndarray]:
        return (state[name][start:stop] for start, stop in self.spans)

    def get(self, state: BlockState, name: str) -> np.ndarray:
        return state[name]

    def run(self, step, state=None, message=None, *, into=None, data=True) -> list:
        sums = None if into is None else _SharedSums(into, self.n_threads, self.fixed_point.n_bytes)

        def visit(start, stop):
            block = self.load(start, stop) if data else empty_block(start, stop)
            own = {name: values[start:stop] for name, values in (state or {}).items()}
            if sums is None:
                return step(block, own, message)
            return step(block, own, message, sums.borrow)

        answers = self.each(visit, self.spans)
        if sums is not None:
            sums.finish()
        return answers

    def pick_from(self, wanted) -> list[Block]:
        return self.each(lambda number, ids: self.load(*self.spans[number]).pick(ids), wanted)


class MemoryBackend(LocalBackend):
    """A table in memory."""

    in_memory = True

    def __init__(self, X: Any, weight: np.ndarray | None, divergence, n_threads: int, pool):
        super().__init__(X.shape[0], X.shape[1], n_threads, pool)
        self.is_sparse = sp.issparse(X)
        self.n_bytes = X.data.nbytes + X.indices.nbytes if self.is_sparse else X.nbytes
        self._all = make_block(0, X, weight, divergence)

    def set_weight(self, weight: np.ndarray) -> None:
        self._all = weigh_block(self._all, weight)

    def load(self, start: int, stop: int) -> Block:
        return slice_block(self._all, start, stop)

    def pick(self, ids: np.ndarray) -> Block:
        return self._all.pick(ids)


class _SharedSums:
    """Sums that threads borrow to add to; one copy per thread, if memory allows."""

    def __init__(self, into, n_threads: int, n_bytes: int):
        copies = min(n_threads, 1 + int(BLOCKS.sums_share * n_bytes) // max(1, into.n_bytes))
        self._into = into
        self._copies = [into.zeros_factory()() for _ in range(copies - 1)]
        self._free: SimpleQueue = SimpleQueue()
        for part in [into, *self._copies]:
            self._free.put(part)

    @contextmanager
    def borrow(self) -> Iterator[Any]:
        part = self._free.get()
        try:
            yield part
        finally:
            self._free.put(part)

    def finish(self) -> None:
        for part in self._copies:
            self._into.add(part)


def empty_block(start: int, stop: int) -> Block:
    """Return a block without its rows, for steps that do not read them."""
    return Block(start, None, 0, None, unit_weights(stop - start))  # type: ignore[arg-type]


@contextmanager
def threads(n_threads: int) -> Iterator[ThreadPoolExecutor | None]:
    """Yield a thread pool, or None for a single thread."""
    if n_threads == 1:
        yield None
    else:
        with ThreadPoolExecutor(n_threads) as pool:
            yield pool
