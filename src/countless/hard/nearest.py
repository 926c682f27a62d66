"""Keeping every row with its nearest center while centers move, open and close.

`Nearest` holds the labels and, for divergences that are squared metrics, two bounds a row that say
which rows can have changed. The labels are those of comparing every row with every center, for any
number of threads.
"""

from __future__ import annotations

import numpy as np

from countless.hard.products import Products
from countless.kernels.assign import (
    FAR,
    MOST,
    UNSETTLED,
    filter_rows,
    mark_far,
    open_clusters,
    pick_nearest,
)
from countless.rows import MemoryRows, Summary

# Products held at once: what fits the cache, but rows enough to make a matrix product worth its
# preparation.
TILE_VALUES = 2**17
LEAST_TILE_ROWS = 256
# Measuring one center costs about this many entries of a matrix product, so longer lists do not
# pay.
PRODUCTS_A_CENTER = 8
MOST_NEIGHBOURS = 128
# Centers around their own that rows look at in a local pass.
LOCAL_NEIGHBOURS = 32
# Far rows that are settled one after the other before the others are compared with what they
# opened.
SETTLE_AT_ONCE = 64
# Sums follow the rows that changed their label when at most one in so many did, and are made anew
# every so many passes.
REFRESH_SHARE = 4
REFRESH_EVERY = 16


class Nearest:
    """Labels and bounds of all rows against one set of centers.

    Attributes
    ----------
    labels : ndarray of int32 (n_rows,)
    centers : ndarray of float64 (n_clusters, n_features)
    n_changed : int
        Rows whose label the last pass changed.
    n_computed, n_possible : int
        Divergences computed so far, and how many comparing all with all would have been.
    """

    def __init__(self, rows: MemoryRows, centers: np.ndarray):
        self.rows = rows
        self.centers = centers
        self.labels = np.zeros(rows.n_rows, dtype=np.int32)
        self.upper = np.full(rows.n_rows, np.inf, dtype=np.float32)
        self.lower = np.zeros(rows.n_rows, dtype=np.float32)
        self.n_computed = self.n_possible = 0
        self.n_changed = rows.n_rows
        self._before = self.labels
        self._n_summaries = 0
        self._local = False  # whether lower bounds speak of the listed centers only
        self._lists: tuple[np.ndarray, np.ndarray] | None = None

    def restart(self, labels: np.ndarray, centers: np.ndarray) -> None:
        """Start anew from other labels and centers, of which no bound is known."""
        self.labels, self.centers = labels, centers
        self.upper[:] = np.inf
        self.lower[:] = 0.0
        self._local = False

    @property
    def n_clusters(self) -> int:
        return len(self.centers)

    def assign(
        self, centers: np.ndarray, penalty: float = np.inf, *, local: bool = False
    ) -> np.ndarray:
        """Move the centers and find each row's nearest; with ``local``, among those near its own.

        Returns the rows whose weighted divergence from it exceeds the penalty.
        """
        rows = self.rows
        self._before = self.labels.copy()
        form, products = rows.centers(centers), Products(rows, centers)
        drift = np.linalg.norm(centers - self.centers, axis=1) * (1 + 1e-12)
        local = local and rows.divergence.is_metric
        if self._local and not local:
            self.lower[:] = 0.0
        # A local search goes on with its lists while the clusters stay the same.
        if not (local and self._local and self._lists):
            self._lists = self._neighbours(centers, local=local)
        self._local = local
        neighbours, gaps = self._lists
        others = drift[neighbours].max(axis=1, initial=0.0) if local else _largest_of_others(drift)
        limit = np.full(rows.block_size, len(centers))
        verdicts = np.full(rows.n_rows, UNSETTLED, dtype=np.uint8)

        def work(start, stop):
            verdict = verdicts[start:stop]
            computed = 0
            if rows.divergence.is_metric:
                computed = filter_rows(
                    rows.form, start, stop, rows.weight, form, drift, others, neighbours,
                    gaps, local, penalty, self.labels, self.upper, self.lower, verdict,
                )  # fmt: skip
            unsettled = np.flatnonzero(verdict == UNSETTLED)
            ids = start + unsettled
            self.labels[ids] = -1
            far = self._compare(ids, form, products, 0, limit, penalty)
            verdict[unsettled[far]] = FAR
            return computed + len(ids) * len(centers), np.count_nonzero(verdict == FAR)

        computed, n_far = zip(*rows.each(work, rows.blocks()), strict=True)
        self.n_computed += sum(computed)
        self.n_possible += rows.n_rows * len(centers)
        self.centers = centers
        # There may be almost as many far rows as rows, so their places are kept narrow.
        ends = np.cumsum(n_far)
        places = np.empty(ends[-1], dtype=np.int32 if rows.n_rows < 2**31 else np.int64)
        for (start, stop), count, end in zip(rows.blocks(), n_far, ends, strict=True):
            if count:
                places[end - count : end] = start + np.flatnonzero(verdicts[start:stop] == FAR)
        return places

    def open(self, far: np.ndarray, penalty: float, rank) -> None:
        """Let far rows open clusters in the order of their rank, as a serial loop would.

        A row sees the clusters opened by rows of lower rank only, so later ones may be nearer to it
        until the next pass.
        """
        rows = self.rows
        visit = rank(far)
        if visit is not far:  # else rows are visited as they come
            far = far[np.argsort(visit, kind="stable")]
        openers = self._openers(far, penalty)
        first = self.n_clusters
        opened = rows.take(openers)
        self.centers = np.vstack([self.centers, opened])
        form, products = rows.centers(self.centers), Products(rows, opened)
        opened_at = rank(openers)

        def work(start, stop):
            ids = np.arange(start, stop)
            limit = np.searchsorted(opened_at, rank(ids), side="right")
            self._compare(ids, form, products, first, limit, np.inf)

        rows.each(work, rows.blocks())
        self.n_computed += rows.n_rows * len(openers)
        self.n_possible += rows.n_rows * len(openers)

    def summarise(self, before: Summary | None) -> Summary:
        """Return what clusters hold, given what they held before `assign`; forget empty ones.

        Only rows with a new label are added up, unless they are many; all rows are now and then,
        against rounding.
        """
        changed = self._before != self.labels
        self.n_changed = int(np.count_nonzero(changed))
        self._n_summaries += 1
        summary = None
        few = REFRESH_SHARE * self.n_changed <= self.rows.n_rows
        if before is not None and few and self._n_summaries % REFRESH_EVERY:
            ids = np.flatnonzero(changed)
            summary = self.rows.move(before, ids, self._before, self.labels, self.n_clusters)
            # What is left of a cluster that lost all its rows may be rounding.
            if summary.weight.min() <= 1e-9 * summary.weight.max():
                summary = None
        if summary is None:
            summary = self.rows.summary(self.labels, self.n_clusters)
        used = summary.weight > 0
        if used.all():
            return summary
        self.labels = (np.cumsum(used, dtype=np.int32) - 1)[self.labels]
        self.centers = self.centers[used]
        self._lists = None
        return Summary(summary.weight[used], summary.total[used])

    def adopt(self, labels: np.ndarray, centers: np.ndarray, ancestor: np.ndarray) -> None:
        """Take over other clusters: center ``c`` came out of the old cluster ``ancestor[c]``.

        A row of an unchanged cluster keeps its bounds: no center is farther from its ancestor than
        the largest step. Other rows may now have a part of their old cluster next to them, of which
        nothing is known.
        """
        step = np.linalg.norm(centers - self.centers[ancestor], axis=1) * (1 + 1e-12)
        self.lower -= np.float32(min(step.max() * (1 + 1e-6), MOST))
        np.maximum(self.lower * np.float32(1 - 1e-6), 0.0, out=self.lower)
        changed = (step > 0)[labels]
        self.upper[changed] = np.inf
        self.lower[changed] = 0.0
        self.labels, self.centers = labels, centers
        self._lists = None

    def _compare(self, ids, form, products, first, limit, penalty) -> np.ndarray:
        """Compare rows with centers by products, tile by tile; mark those that stay far."""
        rows = self.rows
        far = np.zeros(len(ids), dtype=bool)
        step = max(LEAST_TILE_ROWS, TILE_VALUES // max(1, len(products.slope)))
        for at in range(0, len(ids), step):
            part = slice(at, at + step)
            score, norm, error = products.scores(ids[part])
            pick_nearest(
                rows.form, ids[part], rows.weight, form, score, norm, error, products.unit**2,
                first, limit[part], penalty, self.labels, self.upper, self.lower, far[part],
            )  # fmt: skip
        return far

    def _openers(self, waiting: np.ndarray, penalty: float) -> np.ndarray:
        """Return the far rows, given in visiting order, that open clusters."""
        rows = self.rows
        openers = []
        while len(waiting):
            ids, waiting = waiting[:SETTLE_AT_ONCE], waiting[SETTLE_AT_ONCE:]
            form = rows.centers(rows.take(ids))
            places = np.empty(len(ids), dtype=np.int64)
            count = open_clusters(rows.form, ids, rows.weight, form, penalty, places)
            openers.append(ids[places[:count]])
            far = np.empty(len(waiting), dtype=bool)

            def mark(start, stop, ids=waiting, form=form, chosen=places[:count], far=far):
                part = slice(start, stop)
                mark_far(rows.form, ids[part], rows.weight, form, chosen, penalty, far[part])

            size = rows.block_size
            rows.each(mark, [(at, at + size) for at in range(0, len(waiting), size)])
            waiting = waiting[far]
        return np.concatenate(openers)

    def _neighbours(self, centers: np.ndarray, *, local: bool) -> tuple[np.ndarray, np.ndarray]:
        """Return for each center the nearest others and their distances, rounded down.

        The last column of the distances covers all centers that are not listed.
        """
        k = len(centers)
        if k == 1:
            return np.empty((1, 0), dtype=np.int32), np.full((1, 1), np.inf, dtype=np.float32)
        # Worth its k^2 products and comparisons only where rows far outnumber centers.
        worth = local or k * k <= 16 * self.rows.n_rows
        if not (self.rows.divergence.is_metric and worth):
            return np.empty((k, 0), dtype=np.int32), np.zeros((k, 1), dtype=np.float32)
        # A local search may overlook a center, so it need not look so closely.
        kind = np.float32 if local else np.float64
        shifted: np.ndarray = ((centers - self.rows.origin) / self.rows.unit).astype(kind)
        square = np.einsum("ij,ij->i", shifted, shifted)
        error = 4 * (centers.shape[1] + 8) * np.finfo(kind).eps * square.max()
        most = LOCAL_NEIGHBOURS if local else max(4, min(MOST_NEIGHBOURS, k // PRODUCTS_A_CENTER))
        listed = min(most, k - 1)
        neighbours = np.empty((k, listed), dtype=np.int32)
        gaps = np.empty((k, listed + 1), dtype=np.float32)

        def work(start, stop):
            squares = square[start:stop, None] + square - 2.0 * shifted[start:stop] @ shifted.T
            squares[np.arange(stop - start), np.arange(start, stop)] = np.inf
            nearest = np.argpartition(squares, min(listed, k - 1), axis=1)[:, : listed + 1]
            found = np.take_along_axis(squares, nearest, axis=1)
            order = np.argsort(found, axis=1)
            found = np.take_along_axis(found, order, axis=1)
            neighbours[start:stop] = np.take_along_axis(nearest, order, axis=1)[:, :listed]
            gap = np.sqrt(np.maximum(found - error, 0.0)) * (self.rows.unit * (1 - 1e-6))
            gaps[start:stop] = np.where(np.isinf(found), np.inf, np.minimum(gap, MOST))

        step = max(64, TILE_VALUES // k)
        self.rows.each(work, [(at, min(at + step, k)) for at in range(0, k, step)])
        return neighbours, gaps


def _largest_of_others(values: np.ndarray) -> np.ndarray:
    """Return for each position the largest value at any other."""
    if len(values) == 1:
        return np.zeros(1)
    second, largest = np.partition(values, -2)[-2:]
    others = np.full(len(values), largest)
    others[np.argmax(values)] = second
    return others
