"""Tables at the limits of floating-point numbers, and which partitions of their rows are right."""

from typing import NamedTuple

import numpy as np

N_ROWS = 120
TRUTH = np.arange(N_ROWS) % 4
# The corners of a regular tetrahedron, 10 apart.
CENTERS = 10 / np.sqrt(2) * np.array([[0, 0, 0], [1, 1, 0], [1, 0, 1], [0, 1, 1]])
BLOBS = CENTERS[TRUTH] + np.random.default_rng(0).normal(size=(N_ROWS, 3))
# Four clusters on a line.
LINE = 10.0 * TRUTH + np.random.default_rng(1).normal(size=N_ROWS)


class Hostile(NamedTuple):
    """A table, and the answers that are right."""

    name: str
    X: np.ndarray
    labels: np.ndarray | None = None  # the only right partition
    most: int = N_ROWS // 2  # clusters, where several partitions are right
    may_refuse: bool = False  # whether an error of one line is right, too


def offsets():
    """Move four blobs away from 0; at 1e15 values are multiples of 1/8, at 1e16 of 2."""
    for offset in (1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e12, 1e15, -1e9):
        yield Hostile(f"offset {offset:g}", BLOBS + offset, TRUTH)
    yield Hostile("offset 1e16", BLOBS + 1e16)
    yield Hostile("offset 1e20", BLOBS + 1e20, np.zeros(N_ROWS))
    yield Hostile("offsets by column", BLOBS + np.array([0.0, 1e6, -1e12]), TRUTH)


def scales():
    """Make four blobs tiny or huge; where squares leave the range, an error is right."""
    for scale in (1e-300, 1e-158, 1e-100, 1e-20, 1e20, 1e100, 1e150, 1e158, 1e300):
        extreme = not 1e-150 < scale <= 1e150
        yield Hostile(f"scale {scale:g}", BLOBS * scale, TRUTH, may_refuse=extreme)
    for scale in (1e-42, 1e-38, 1e-20, 1e19, 1e37):
        X = (BLOBS * scale).astype(np.float32)
        yield Hostile(f"scale {scale:g} float32", X, TRUTH)
    yield Hostile("subnormal", BLOBS * 1e-321, TRUTH, may_refuse=True)
    yield Hostile("columns of 1e12 and 1e-12", BLOBS * np.array([1e12, 1e-12, 1.0]), most=8)


def duplicates():
    """Repeat rows."""
    pair = np.repeat([0, 1], 30)
    yield Hostile("4 points x 30", CENTERS[TRUTH], TRUTH)
    yield Hostile("4 points x 30 at 1e9", CENTERS[TRUTH] + 1e9, TRUTH)
    yield Hostile("each row twice", np.repeat(BLOBS, 2, axis=0), np.repeat(TRUTH, 2))
    yield Hostile("two values", pair[:, None].astype(float), pair)
    yield Hostile("two points x 30", np.column_stack([5.0 * pair] * 3), pair)


def constants():
    """Repeat one value, in all columns or in some."""
    one = np.zeros(60)
    for value in (0.0, 0.1, 1.0, 1e16):
        yield Hostile(f"constant {value:g}", np.full((60, 3), value), one)
    yield Hostile("constant 1e300", np.full((60, 3), 1e300), one, may_refuse=True)
    yield Hostile("constant columns", np.repeat([[0.1, 1e9, -3.3]], 60, axis=0), one)
    yield Hostile("signed zeros", np.copysign(0.0, BLOBS - 5), np.zeros(N_ROWS))
    for value in (0.0, 1.0, 1e16, 1.7e18):
        yield Hostile(f"beside {value:g}", np.column_stack([BLOBS, np.full(N_ROWS, value)]), TRUTH)
    beside = np.full((N_ROWS, 5), 0.1)
    beside[:, 2] = LINE
    yield Hostile("all but one constant", beside, TRUTH)


def shapes():
    """Take few rows, or few columns."""
    rng = np.random.default_rng(2)
    yield Hostile("one row", BLOBS[:1], np.zeros(1), may_refuse=True)
    yield Hostile("two rows", BLOBS[:2], most=2, may_refuse=True)
    yield Hostile("two equal rows", BLOBS[[0, 0]], np.zeros(2), may_refuse=True)
    for n_features in (20, 50, 200):
        yield Hostile(f"8 x {n_features}", rng.normal(size=(8, n_features)), most=4)
    yield Hostile("20 x 200", rng.normal(size=(20, 200)), most=8)
    yield Hostile("one column", LINE[:, None], TRUTH)
    yield Hostile("one column at 1e9", LINE[:, None] + 1e9, TRUTH)


def types():
    """Store cells in other types and orders."""
    yield Hostile("int8", np.rint(5 * BLOBS).astype(np.int8), TRUTH)
    yield Hostile("int64", np.rint(1e6 * BLOBS).astype(np.int64) + 2**60, TRUTH)
    yield Hostile("uint64", np.rint(1e12 * (BLOBS + 9)).astype(np.uint64) + 2**63, TRUTH)
    bits = np.array(
        [[0, 0, 0, 0, 0, 0], [1, 1, 1, 1, 0, 0], [0, 0, 1, 1, 1, 1], [1, 1, 0, 0, 1, 1]]
    )
    yield Hostile("bool", bits[TRUTH].astype(bool), TRUTH)
    yield Hostile("float16", BLOBS.astype(np.float16), TRUTH)
    yield Hostile("float32", BLOBS.astype(np.float32), TRUTH)
    yield Hostile("float32 at 1e5", (BLOBS + 1e5).astype(np.float32), TRUTH)
    yield Hostile("Fortran order", np.asfortranarray(BLOBS), TRUTH)
    yield Hostile("not contiguous", np.repeat(np.repeat(BLOBS, 2, 0), 2, 1)[::2, ::2], TRUTH)
    read_only = BLOBS.copy()
    read_only.flags.writeable = False
    yield Hostile("read-only", read_only, TRUTH)
    yield Hostile("big-endian", BLOBS.astype(">f8"), TRUTH)


def tails():
    """Put few rows far away."""
    for far in (1e8, 1e15):
        X = BLOBS.copy()
        X[7] = far
        yield Hostile(f"outlier {far:g}", X, most=8)
    X = np.random.default_rng(3).standard_cauchy(size=(N_ROWS, 3))
    yield Hostile("Cauchy", X)
    yield Hostile("Cauchy cubed", X**3)


def tables():
    """Return all tables, by name."""
    makers = (offsets, scales, duplicates, constants, shapes, types, tails)
    return {table.name: table for maker in makers for table in maker()}


def matrices(matrix, alike):
    """Return a matrix of pairs of rows of `BLOBS` in other units and types, by name.

    ``alike`` is what pairs of equal rows have.
    """
    found = []
    for scale in (1e-320, 1e-308, 1e-200, 1e-140, 1e-20, 1e20, 1e140, 1e200, 1e300, 1e305):
        extreme = not 1e-150 < scale < 1e150
        found.append(Hostile(f"scale {scale:g}", matrix * scale, TRUTH, may_refuse=extreme))
    for scale in (1e-30, 1e30):
        X = (matrix * scale).astype(np.float32)
        found.append(Hostile(f"scale {scale:g} float32", X, TRUTH))
    found.append(Hostile("Fortran order", np.asfortranarray(matrix), TRUTH))
    found.append(Hostile("int64", np.rint(1000 * matrix).astype(np.int64), TRUTH))
    found.append(Hostile("equal rows", np.full_like(matrix, alike), np.zeros(N_ROWS)))
    return found
