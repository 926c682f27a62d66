"""Algorithm 2 of Kulis and Jordan, the hard Gaussian HDP, exactly as published.

Each pass lowers objective (2), ``sum_i ||x_i - mu_p(i)||^2 + local_penalty * n_local +
global_penalty * n_global``. What the paper leaves open is decided as follows:

* rows are visited in the order given, and local clusters group by group, groups by first
  appearance, in the order in which they were opened;
* a row assigned to a global joins the first of its group's local clusters there, so that two local
  clusters that share a global after step 5 are one after the next step 4;
* a local cluster exists until the end of step 4, even when its rows have left; empty ones are
  dropped before step 5, and empty globals before step 6;
* ties go to the global with the lower number;
* it has converged when a pass changes no row's local cluster and no local cluster's global.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from countless._compat import OnPass, ignore_pass
from countless._data.fixed_point import Sums
from countless._search.groups.rows import GroupedRows
from countless.kernels.hdp import measure, visit_locals, visit_rows
from countless.kernels.rows import Points


@dataclass(frozen=True)
class Memory:
    """What a pass allocates; it changes its time only."""

    # Distances in memory at once.
    distances: int = 2**22
    # Spare capacity for globals and locals that a pass may open before the tables are enlarged.
    spare_clusters: int = 64


MEMORY = Memory()


class SharedClustering(NamedTuple):
    """A hard clustering of several data sets, and how it was reached."""

    local_labels: np.ndarray  # (n_rows,) int32, from 0 to n_local - 1 over all groups
    local_group: np.ndarray  # (n_local,) the group of each local cluster
    local_global: np.ndarray  # (n_local,) the global cluster of each
    centers: np.ndarray  # (n_global, n_features) float64
    objective: float
    history: list[float]  # the objective after each pass
    n_iter: int
    converged: bool


class _State:
    """Local clusters and globals during Algorithm 2, in tables with spare capacity."""

    def __init__(self, rows: GroupedRows, group: np.ndarray, n_groups: int):
        whole = rows.backend.fixed_point.to_floats(rows.backend.whole)
        self.rows, self.group = rows, group
        self.n_groups = n_groups
        self.centers = rows.means(whole)
        self.labels = group.astype(np.int32)
        self.local_group = np.arange(n_groups)
        self.local_global = np.zeros(n_groups, dtype=np.int64)

    def visit_rows(self, local_price: float, global_price: float) -> None:
        """Step 4: distances in parallel, then rows one by one."""
        rows, d = self.rows, self.rows.n_features
        n_globals, n_locals = len(self.centers), len(self.local_group)
        centers = np.vstack([self.centers, np.empty((MEMORY.spare_clusters, d))])
        local_group = np.append(
            self.local_group, np.empty(MEMORY.spare_clusters + self.n_groups, dtype=np.int64)
        )
        local_global = np.append(self.local_global, np.empty_like(local_group[n_locals:]))
        first = np.full((self.n_groups, len(centers)), -1, dtype=np.int64)
        for local in range(n_locals - 1, -1, -1):  # the first one is written last
            first[local_group[local], local_global[local]] = local

        def distances(start, stop):
            block, known = rows.load(start, stop), np.empty((stop - start, n_globals))
            measure(block.form, Points(centers), known)
            return block.form, known

        blocks = rows.spans
        while blocks:
            first_block = blocks[0][1] - blocks[0][0]
            wave = max(1, MEMORY.distances // (first_block * n_globals))
            now, blocks = blocks[:wave], blocks[wave:]
            for (start, stop), (form, known) in zip(now, rows.each(distances, now), strict=True):
                at = 0
                while at < stop - start:
                    full, n_globals, n_locals, at = visit_rows(
                        form, at, self.group[start:stop], known, Points(centers), n_globals,
                        n_locals, local_price, global_price, first, local_group, local_global,
                        self.labels[start:stop],
                    )  # fmt: skip
                    if full:
                        centers = np.vstack([centers, np.empty_like(centers)])
                        first = np.hstack([first, np.full_like(first, -1)])
                        local_group = np.append(local_group, np.empty_like(local_group))
                        local_global = np.append(local_global, np.empty_like(local_global))
        self.centers = centers[:n_globals]
        self.local_group, self.local_global = local_group[:n_locals], local_global[:n_locals]

    def visit_locals(self, global_price: float) -> Sums:
        """Step 5, on non-empty local clusters; return their weights and sums."""
        used, labels = np.unique(self.labels, return_inverse=True)
        self.labels = labels.astype(np.int32)
        self.local_group = self.local_group[used]
        local_global = self.local_global[used]
        summary = self.rows.sums(self.labels, len(used))
        n_globals = len(self.centers)
        centers = np.vstack([self.centers, np.empty((len(used), self.rows.n_features))])
        order = np.argsort(self.local_group, kind="stable")
        n_globals = visit_locals(
            summary.weight, self.rows.means(summary), centers, n_globals, global_price, order,
            local_global,
        )  # fmt: skip
        self.centers, self.local_global = centers[:n_globals], local_global
        return summary

    def update_means(self, local: Sums) -> Sums:
        """Step 6, on non-empty globals; return their weights and sums."""
        used, self.local_global = np.unique(self.local_global, return_inverse=True)
        summary = Sums(
            np.bincount(self.local_global, local.weight),
            np.zeros((len(used), self.rows.n_features)),
        )
        np.add.at(summary.total, self.local_global, local.total)
        self.centers = self.rows.means(summary)
        return summary


def algorithm2(
    rows: GroupedRows,
    group: np.ndarray,
    n_groups: int,
    local_penalty: float,
    global_penalty: float,
    *,
    max_iter: int,
    on_pass: OnPass = ignore_pass,
) -> SharedClustering:
    """Run Algorithm 2 until nothing changes.

    Parameters
    ----------
    rows : GroupedRows
    group : ndarray of int (n_rows,)
        The data set of each row, numbered by first appearance.
    n_groups : int
    local_penalty, global_penalty : float
        The penalties of a local and of a global cluster.
    max_iter : int
        Maximum number of passes.
    on_pass : callable
        Called with the objective and the number of globals after each pass.
    """
    state = _State(rows, group, n_groups)
    history: list[float] = []
    converged = False
    while len(history) < max_iter and not converged:
        labels, globals_ = state.labels.copy(), state.local_global[state.labels]
        state.visit_rows(local_penalty, global_penalty)
        local = state.visit_locals(global_penalty)
        summary = state.update_means(local)
        history.append(rows.objective(summary, global_penalty) + local_penalty * len(local.weight))
        converged = np.array_equal(labels, state.labels) and np.array_equal(
            globals_, state.local_global[state.labels]
        )
        on_pass(history[-1], len(state.centers))
    return SharedClustering(
        state.labels, state.local_group, state.local_global, state.centers, history[-1], history,
        len(history), converged,
    )  # fmt: skip
