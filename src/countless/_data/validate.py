"""Validation of tables and sample weights, and the choice of the fixed-point scale.

Two passes over the rows: the first validates cells, the second adds up all rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from countless._data.backend import Backend
from countless._data.block import Block
from countless._data.fixed_point import LARGEST_SUM, FixedPoint, Summary, power_of_two, step_for
from countless._numbers import SMALLEST_SPAN
from countless.kernels.statistics import add_rows, add_squares


@dataclass(frozen=True)
class Range:
    """What numbers fixed-point sums can represent."""

    # Expected size of the sample whose mean becomes the origin.
    sample_rows: int = 1024
    # For scale-invariant divergences values must be at least this many fixed-point steps.
    smallest_steps: float = 2.0**12
    # Largest distance of a value from the origin, in units of length.
    most_units: float = 2.0**60
    # The origin is rounded to this many bits of a column's range, so that subtracting it from
    # values of few digits is exact.
    origin_bits: int = 8
    # The largest weight is between these, so that neither steps nor sums overflow or underflow.
    least_weight: float = 1e-200
    most_weight: float = 1e200


RANGE = Range()


class BlockStatistics(NamedTuple):
    """Statistics of one block."""

    low: np.ndarray  # (n_features,)
    high: np.ndarray  # (n_features,)
    largest: float  # absolute value in any row, whatever its weight
    first_bad: tuple[int, int, float] | None  # row, column and value of a NaN or infinite cell
    n_bad: int
    domain_error: str  # error message for values outside the divergence's domain, or ""
    n_counted: int  # rows of positive weight
    heaviest: float  # largest weight
    largest_cost: float  # largest `row_cost` of a row of positive weight, unless rows are centred
    sample: np.ndarray | None


def scan_table(rows: Backend, divergence) -> tuple[FixedPoint, Summary]:
    """Pass over all rows twice; return their frame, and the sums of all rows as one cluster.

    Raises ValueError for a cell that is not finite or is outside the divergence's domain.
    """
    centred = divergence.is_shift_invariant and not rows.is_sparse
    parts = rows.run(examine_block, None, (divergence, rows.n_rows, centred))
    _check(parts)
    low = np.min([part.low for part in parts], axis=0).astype(np.float64)
    high = np.max([part.high for part in parts], axis=0).astype(np.float64)
    n_counted = sum(part.n_counted for part in parts)
    heaviest = max(part.heaviest for part in parts)
    origin = np.zeros(rows.n_features)
    if centred:
        sample = np.concatenate([part.sample for part in parts])
        origin = _round_to_range(sample.mean(axis=0) if len(sample) else low, low, high)
    largest = np.maximum(np.abs(low - origin), np.abs(high - origin))
    everywhere = max(part.largest for part in parts) + float(np.abs(origin).max())
    with np.errstate(over="ignore"):
        reach = float(np.sqrt(np.square(largest).sum()))
        squares = np.square([n_counted * heaviest * reach, rows.n_features * everywhere])
    if not np.isfinite(squares).all():
        raise ValueError("X has values so large that their squares overflow; scale it down")
    farthest = float(largest.max())
    if centred and 0 < farthest < SMALLEST_SPAN:
        raise ValueError(
            f"the columns of X are within {farthest:g} of their means, and squares of that "
            "underflow; scale X up"
        )
    fixed_point = FixedPoint(
        divergence=divergence,
        n_rows=rows.n_rows,
        n_features=rows.n_features,
        is_sparse=rows.is_sparse,
        n_bytes=rows.n_bytes,
        n_counted=n_counted,
        total_weight=0.0,
        weight_step=float(step_for(1.0, n_counted * heaviest, heaviest)),
        step=step_for(largest, n_counted * heaviest, heaviest),
        reach=reach,
        origin=origin,
    )
    lost = np.flatnonzero(low < RANGE.smallest_steps * fixed_point.step)
    if divergence.by_ratio and len(lost):
        column = lost[0]
        raise ValueError(
            f"divergence={divergence.name!r} cannot add up values as different as {low[column]:g} "
            f"and {high[column]:g} in column {column}; raise the smallest"
        )
    largest_cost = reach**2 if centred else max(part.largest_cost for part in parts)
    cost_step = float(power_of_two(n_counted * heaviest * largest_cost / LARGEST_SUM))
    rows.fixed_point = fixed_point
    whole = fixed_point.empty(1)
    cost = sum(rows.run(sum_block, None, (fixed_point, cost_step), into=whole)) * cost_step
    total_weight = float(fixed_point.weights(whole)[0])
    unit = np.sqrt(cost / total_weight) if divergence.is_shift_invariant and cost > 0 else 1.0
    # Rows of zero weight may be far outside the range of the others, but must fit float32, too.
    unit = max(unit, everywhere / RANGE.most_units)
    cost /= divergence.scale
    fixed_point = fixed_point._replace(total_weight=total_weight, unit=float(unit), total_cost=cost)
    return fixed_point, whole


def examine_block(block: Block, state, message) -> BlockStatistics:
    """Compute the column ranges of a block, and find invalid cells."""
    divergence, n_rows, centred = message
    X = block.values
    low, high = _ranges(X)
    largest = max(np.abs(low).max(), np.abs(high).max())
    first_bad, n_bad, domain_error = None, 0, ""
    if np.isfinite(low).all() and np.isfinite(high).all():
        if not block.weight.all():  # rows of zero weight are ignored
            low, high = _ranges(X[block.weight > 0])
        try:
            divergence.check(X, first_row=block.start)
        except ValueError as error:
            domain_error = str(error)
    else:
        first_bad, n_bad = _not_finite(X, block.start)
    sample, largest_cost = None, 0.0
    if not centred:
        largest_cost = np.abs(_row_costs(block, divergence)[block.weight > 0]).max(initial=0.0)
    else:
        place = np.arange(block.start, block.start + block.n_rows, dtype=np.uint64)
        chosen = hash_uniform(place, 0) * n_rows < RANGE.sample_rows
        sample = X[chosen & (block.weight > 0)].astype(np.float64)
    return BlockStatistics(
        low, high, float(largest), first_bad, n_bad, domain_error,
        int(np.count_nonzero(block.weight)), float(block.weight.max(initial=0.0)),
        float(largest_cost), sample,
    )  # fmt: skip


def sum_block(block: Block, state, message, borrow) -> int:
    """Add up all rows of a block, and return the sum of their row costs, in fixed point."""
    fixed_point, cost_step = message
    labels = np.zeros(block.n_rows, dtype=np.int32)
    with borrow() as sums:
        add_rows(block.form, block.weight, labels, fixed_point.scale, *sums)
    if fixed_point.divergence.is_shift_invariant and not fixed_point.is_sparse:
        rows = block.form.values  # type: ignore[union-attr]
        return int(add_squares(rows, block.weight, fixed_point.origin, cost_step))
    cost = block.weight * _row_costs(block, fixed_point.divergence)
    return int(np.rint(cost / cost_step).astype(np.int64).sum())


def _row_costs(block: Block, divergence) -> np.ndarray:
    """Return the part of the divergence that depends on the row only, about zero."""
    if len(block.form.cost):
        return block.form.cost
    return divergence.scale * divergence.row_cost(block.values)


def hash_uniform(position: np.ndarray, seed: int) -> np.ndarray:
    """Return a pseudo-random number in (0, 1) for each position: splitmix64's finaliser."""
    state = position * np.uint64(0x9E3779B97F4A7C15)
    state += np.uint64(seed % 2**64)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        state ^= state >> np.uint64(shift)
        state *= np.uint64(factor)
    state ^= state >> np.uint64(31)
    state >>= np.uint64(11)
    uniform = state.astype(np.float64)
    uniform += 0.5
    uniform /= 2.0**53
    return uniform


def _ranges(X: Any) -> tuple[np.ndarray, np.ndarray]:
    if not sp.issparse(X):
        # The columns of a narrow table are compared faster in a transposed copy.
        columns = np.ascontiguousarray(X.T) if X.shape[1] <= 16 else X.T
        return columns.min(axis=1, initial=np.inf), columns.max(axis=1, initial=-np.inf)
    # A column in which every row stores a value need not contain 0.
    has_zero = np.bincount(X.indices, minlength=X.shape[1]) < X.shape[0]
    low, high = np.where(has_zero, 0.0, np.inf), np.where(has_zero, 0.0, -np.inf)
    with np.errstate(invalid="ignore"):
        np.minimum.at(low, X.indices, X.data)
        np.maximum.at(high, X.indices, X.data)
    return low, high


def _not_finite(X: Any, first_row: int) -> tuple[tuple[int, int, float], int]:
    values = X.data if sp.issparse(X) else X
    bad = np.argwhere(~np.isfinite(values))
    value = float(values[tuple(bad[0])])
    if sp.issparse(X):
        row, column = np.searchsorted(X.indptr, bad[0, 0], side="right") - 1, X.indices[bad[0, 0]]
    else:
        row, column = bad[0]
    return (first_row + int(row), int(column), value), len(bad)


def _check(parts: list[BlockStatistics]) -> None:
    for part in parts:
        if part.first_bad is not None:
            row, column, value = part.first_bad
            what = "NaN" if np.isnan(value) else "infinity"
            n_bad = sum(part.n_bad for part in parts)
            raise ValueError(f"X contains {what}: row {row}, column {column} ({n_bad} such in all)")
    for part in parts:
        if part.domain_error:
            raise ValueError(part.domain_error)


def _round_to_range(value: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Round values to a coarse fraction of their range; where the range is empty, return it."""
    part = power_of_two(np.where(high > low, high - low, 1.0)) / 2.0**RANGE.origin_bits
    return np.where(high > low, np.rint(value / part) * part, low)


def check_weight(sample_weight: Any, n_rows: int) -> np.ndarray:
    """Return one float64 weight per row, none negative and not all zero."""
    if sample_weight is None:
        return np.ones(n_rows)
    weight = np.asarray(sample_weight, dtype=np.float64)
    if weight.shape != (n_rows,):
        raise ValueError(
            f"sample_weight must hold a number for each of {n_rows} rows; got shape {weight.shape}"
        )
    bad = ~(np.isfinite(weight) & (weight >= 0))
    if bad.any():
        row = int(np.argmax(bad))
        raise ValueError(
            f"sample_weight must be finite and at least 0; row {row} has {weight[row]:g}"
        )
    if not weight.any():
        raise ValueError("sample_weight must not be zero for every row; all are 0")
    return weight


def round_weights(sample_weight: Any, n_rows: int) -> np.ndarray | None:
    """Return validated weights, rounded to their fixed-point step; None stays None.

    A positive weight is never rounded to 0.
    """
    if sample_weight is None:
        return None
    weight = check_weight(sample_weight, n_rows)
    heaviest = float(weight.max())
    if not RANGE.least_weight < heaviest < RANGE.most_weight:
        raise ValueError(
            f"sample_weight must be from {RANGE.least_weight:.0e} to "
            f"{RANGE.most_weight:.0e} at most; "
            f"got {heaviest:g}"
        )
    step = step_for(1.0, np.count_nonzero(weight) * heaviest, heaviest)
    return np.where(weight > 0, np.maximum(np.rint(weight / step), 1.0) * step, 0.0)
