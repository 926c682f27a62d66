"""Initialisation of the local search: a clustering of a subsample of a long table.

A table of up to `SUBSAMPLE.n_rows` rows is used whole. A longer one is subsampled, and the
penalties are scaled with it: a cluster with a tenth of its rows lowers the cost by a tenth as much.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from countless._search.groups.auto import choose_penalties
from countless._search.groups.choice import assign_groups
from countless._search.groups.penalties import HDPPenalties
from countless._search.groups.refine import refine
from countless._search.groups.rows import GroupedRows, open_grouped


@dataclass(frozen=True)
class Subsample:
    """Constants of the initialisation; ``benchmarks/hdp.py`` shows what they are worth."""

    # Rows of the subsample, and the fewest that a group should have in it on average; where groups
    # are smaller some of them are left out.
    n_rows: int = 20_000
    rows_a_group: int = 16
    # Tolerance and largest number of passes of the local search on it.
    tol: float = 1e-3
    passes: int = 60


SUBSAMPLE = Subsample()


class Sample(NamedTuple):
    """A subsample: some rows of some groups."""

    ids: np.ndarray  # ascending
    starts: np.ndarray  # (n_sampled_groups + 1,)
    local_share: float  # share of the rows of sampled groups
    global_share: float  # share of all rows


def thin(starts: np.ndarray, random: np.random.RandomState) -> Sample:
    """Draw a subsample: rows of all groups if enough of each remain, else of some groups."""
    n_rows, n_groups = int(starts[-1]), len(starts) - 1
    sizes = np.diff(starts)
    chosen = np.arange(n_groups)
    fewest = SUBSAMPLE.n_rows // SUBSAMPLE.rows_a_group
    if n_groups > fewest:
        chosen = np.sort(random.choice(n_groups, fewest, replace=False))
    share = min(1.0, SUBSAMPLE.n_rows / sizes[chosen].sum())
    taken = np.maximum(np.round(share * sizes[chosen]).astype(int), np.minimum(sizes[chosen], 1))
    parts = [
        starts[j] + np.sort(random.choice(sizes[j], count, replace=False))
        for j, count in zip(chosen, taken, strict=True)
    ]
    local_share = taken.sum() / sizes[chosen].sum()
    return Sample(
        np.concatenate(parts), np.append(0, np.cumsum(taken)), local_share, taken.sum() / n_rows
    )


def first_labels(
    rows: GroupedRows,
    starts: np.ndarray,
    penalties: HDPPenalties | None,
    random: np.random.RandomState,
) -> tuple[np.ndarray, HDPPenalties]:
    """Return an initial global for each row, and the penalties (None: chosen from the data)."""
    if rows.n_rows <= SUBSAMPLE.n_rows:
        if penalties is not None:
            return np.zeros(rows.n_rows, dtype=np.int32), penalties
        best = choose_penalties(rows, starts)
        return best.labels, best.penalties
    sample = thin(starts, random)
    with open_grouped(rows.backend.pick(sample.ids).values, None, None) as some:
        if penalties is None:
            best = choose_penalties(some, sample.starts)
            labels, fewer = best.labels, best.penalties
        else:
            labels = np.zeros(some.n_rows, dtype=np.int32)
            fewer = HDPPenalties(
                penalties.local_penalty * sample.local_share,
                penalties.global_penalty * sample.global_share,
            )
        found = refine(
            some, sample.starts, labels, *fewer, tol=SUBSAMPLE.tol, max_iter=SUBSAMPLE.passes
        )
    if penalties is None:
        penalties = HDPPenalties(
            fewer.local_penalty / sample.local_share, fewer.global_penalty / sample.global_share
        )
    unpaid = np.zeros((len(starts) - 1, len(found.centers)), dtype=bool)
    return assign_groups(rows, starts, found.centers, unpaid, penalties.local_penalty), penalties
