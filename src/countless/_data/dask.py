"""The Dask backend: chunks stay on the workers of a cluster, and steps are tasks sent to them.

A chunk is built by tasks from storage, and its per-row state is the result of the chain of steps
taken so far. When a worker is lost, Dask recomputes its tasks, with the same result. A step sends
over the network the message to each worker, and for each chunk an answer; sums are reduced on the
workers.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import dask.array as da
import dask.config
import numpy as np
from dask.delayed import delayed

from countless._data.backend import Backend, BlockState, Fields, empty_block
from countless._data.block import Block, make_block, weigh_block
from countless._data.stored import dask_array, is_dask
from countless._data.validate import round_weights
from countless._threads import one_library_thread

log = logging.getLogger("countless")


@dataclass(frozen=True)
class Chunks:
    """Constants of Dask chunks and tasks; they change time, never results."""

    # Values in a chunk: the fewest that pay for a task, a size at which the scheduler's overhead is
    # small, and the most that are processed at once.
    fewest_values: int = 2**18
    good_values: int = 2**22
    most_values: int = 2**25
    # Least and largest number of chunks per thread of the cluster, for load balance; more are
    # allowed if chunks have ``good_values``.
    fewest_a_thread: int = 2
    most_a_thread: int = 8
    # Answers and sums that one task of the tree reduction combines.
    fan_in: int = 8
    # A table below this size is clustered faster in memory.
    worth_bytes: int = 2**28


CHUNKS = Chunks()


class DaskState:
    """The per-row state of each chunk: futures of dictionaries, and the fields they contain."""

    def __init__(self, parts: list):
        self.parts = parts
        self.fields: Fields = {}


class DaskBackend(Backend):
    """A Dask array or data frame on a cluster."""

    is_sparse = False
    far_rows_at_once = 512

    def __init__(self, X: Any, weight: Any, divergence, client, n_threads: int, pool):
        array = rechunk_evenly(dask_array(X), sum(client.nthreads().values()))
        self.n_rows, self.n_features = array.shape
        self.n_bytes = array.nbytes
        self.n_threads, self._pool, self._client = n_threads, pool, client
        if self.n_bytes < CHUNKS.worth_bytes:
            log.info(
                "X takes %.1f MB: in memory it would be clustered faster than on a Dask cluster",
                self.n_bytes / 1e6,
            )
        ends = np.cumsum(array.chunks[0])
        starts = ends - array.chunks[0]
        self.spans = [(int(a), int(b)) for a, b in zip(starts, ends, strict=True)]
        n_chunks = len(self.spans)
        weight = round_weights(weight, self.n_rows)
        parts = [None if weight is None else weight[start:stop] for start, stop in self.spans]
        chunks = array.to_delayed().ravel()
        starts = [start for start, _ in self.spans]
        self._blocks = self._compute(
            self._tasks(_build, starts, chunks, parts, [divergence] * n_chunks)
        )

    def set_weight(self, weight: np.ndarray) -> None:
        parts = [weight[start:stop] for start, stop in self.spans]
        self._blocks = self._map(weigh_block, self._blocks, parts)

    def allocate(self, fields: Fields) -> DaskState:
        state = DaskState([{} for _ in self.spans])
        self.allocate_more(state, fields)
        return state

    def allocate_more(self, state: DaskState, fields: Fields) -> None:
        new = {name: field for name, field in fields.items() if name not in state.fields}
        if new:
            state.parts = self._map(_new, state.parts, self._blocks, [new] * len(self.spans))
            state.fields |= new

    def free(self, state: DaskState, names: Iterable[str]) -> None:
        gone = [name for name in names if state.fields.pop(name, None)]
        if gone:
            state.parts = self._map(_without, state.parts, [gone] * len(self.spans))

    def put(self, state: DaskState, name: str, values: Any) -> None:
        if not is_dask(values):
            parts = [values[start:stop] for start, stop in self.spans]
        else:
            sizes = tuple(stop - start for start, stop in self.spans)
            parts = self._client.compute(list(values.rechunk((sizes,)).to_delayed().ravel()))
        state.parts = self._map(_put, state.parts, [name] * len(parts), parts)

    def pieces(self, state: DaskState, name: str) -> Iterator[np.ndarray]:
        for each in state.parts:
            yield self._client.submit(_get, each, name, pure=False).result()

    def get(self, state: DaskState, name: str) -> Any:
        parts = self._map(_get, state.parts, [name] * len(self.spans))
        kind, _ = state.fields[name]
        arrays = [
            da.from_delayed(delayed(part), shape=(stop - start,), dtype=kind)
            for part, (start, stop) in zip(parts, self.spans, strict=True)
        ]
        return da.concatenate(arrays)

    def run(self, step, state=None, message=None, *, into=None, data=True) -> list:
        # The message is a task, so that Dask can recompute it; a copy, because centers change.
        sent = _task(_identity)(deepcopy(message))
        n_chunks = len(self.spans)
        ran = self._tasks(
            _run_step,
            [step] * n_chunks,
            self._blocks if data else self.spans,
            [None] * n_chunks if state is None else state.parts,
            [sent] * n_chunks,
            [None if into is None else into.zeros_factory()] * n_chunks,
        )
        level = self._tasks(_answer, ran)
        while len(level) > 1:
            groups = [level[at : at + CHUNKS.fan_in] for at in range(0, len(level), CHUNKS.fan_in)]
            level = [_task(_join_answers)(*group) for group in groups]
        kept = [] if state is None else self._tasks(_state, ran)
        last, *parts = self._compute([*level, *kept])
        if state is not None:
            state.parts = parts
        found, sums = last.result()
        if into is not None:
            into.add(sums)
        return found

    def _tasks(self, function, *parts) -> list:
        """Return a task for each chunk.

        The scheduler sends steps to the worker that has the rows. The worker must not be named:
        when all workers are lost at once, tasks restricted to one of them would wait for ever.
        """
        return [_task(function)(*arguments) for arguments in zip(*parts, strict=True)]

    def _compute(self, tasks: list) -> list:
        # One graph: submitting a single task takes the scheduler about as long.
        with _large_graphs():
            return self._client.compute(tasks, optimize_graph=False)

    def _map(self, function, *parts) -> list:
        return self._compute(self._tasks(function, *parts))

    def pick_from(self, wanted) -> list[Block]:
        blocks, ids = [self._blocks[number] for number, _ in wanted], [part for _, part in wanted]
        return self._client.gather(self._client.map(Block.pick, blocks, ids, pure=False))


def rechunk_evenly(array: Any, n_threads: int) -> Any:
    """Rechunk an array if its chunks are too small, too uneven, or too few for the cluster."""
    n_rows, n_features = array.shape
    n_threads = max(1, n_threads)
    few, many = (n_threads * chunks for chunks in (CHUNKS.fewest_a_thread, CHUNKS.most_a_thread))
    longest = max(1, n_rows // max(1, CHUNKS.fewest_values // n_features))
    fewest = min(max(few, -(-n_rows * n_features // CHUNKS.most_values)), longest)
    most = min(max(many, n_rows * n_features // CHUNKS.good_values), longest)
    if 0 in array.chunks[0]:
        array = array.rechunk({0: tuple(size for size in array.chunks[0] if size)})
    n_chunks = array.numblocks[0]
    largest = max(array.chunks[0])
    ragged = largest > 4 * -(-n_rows // n_chunks)
    if fewest <= n_chunks <= most and not ragged:
        return array
    wanted = fewest
    if n_chunks > most:  # about half of it, a multiple of the number of threads
        wanted = min(max(fewest, n_threads * -(-most // (2 * n_threads))), most)
    log.info("X comes in %d chunks of up to %d rows; cut again into %d", n_chunks, largest, wanted)
    return array.rechunk({0: -(-n_rows // wanted), 1: -1})


def _task(function):
    return delayed(function, pure=False)


@contextmanager
def _large_graphs():
    """Raise Dask's warning threshold for large graphs: messages contain all centers."""
    with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 GB"}):
        yield


def _build(start: int, chunk: Any, weight, divergence) -> Block:
    """Return the block of a chunk."""
    rows = divergence.prepare(np.ascontiguousarray(chunk))
    return make_block(start, rows, weight, divergence)


def _identity(value: Any) -> Any:
    return value


def _new(state: BlockState, block: Block, fields: Fields) -> BlockState:
    """Allocate fields for the rows of a chunk, on the worker that has them."""
    new = {
        name: np.full(block.n_rows, fill, dtype=dtype)
        for name, (dtype, fill) in fields.items()
        if name not in state
    }
    return {**state, **new}


def _without(state: BlockState, names: list[str]) -> BlockState:
    return {name: values for name, values in state.items() if name not in names}


def _put(state: BlockState, name: str, values: Any) -> BlockState:
    return {**state, name: np.asarray(values).astype(state[name].dtype)}


def _get(state: BlockState, name: str) -> np.ndarray:
    return state[name]


def _run_step(step, block, state, message, make_sums):
    """Run a step on copies of the state, so that Dask can repeat it."""
    with one_library_thread():  # Dask's workers run tasks in parallel already
        return _step_on_copies(step, block, state, message, make_sums)


def _step_on_copies(step, block, state, message, make_sums):
    block = block if isinstance(block, Block) else empty_block(*block)
    state = {name: values.copy() for name, values in (state or {}).items()}
    if make_sums is None:
        return state, step(block, state, message), None
    sums = make_sums()

    @contextmanager
    def borrow():
        yield sums

    answer = step(block, state, message, borrow)
    return state, answer, sums


def _state(ran) -> BlockState:
    return ran[0]


def _answer(ran):
    return [ran[1]], ran[2]


def _join_answers(*parts):
    """Concatenate the answers of consecutive chunks, and add up their sums."""
    answers = [answer for found, _ in parts for answer in found]
    if parts[0][1] is None:
        return answers, None
    total = parts[0][1].zeros_factory()()
    for _, sums in parts:
        total.add(sums)
    return answers, total
