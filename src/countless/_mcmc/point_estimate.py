"""Point estimate of a partition from posterior draws: least posterior expected loss.

The expected loss of a partition is its mean distance from the draws, by variation of information
[2]_ or Binder's loss. It is minimised by local search with moves of single rows and of blocks of
rows, from several starts [1]_. Rows with equal labels in all draws are one weighted item, and a
move changes a few entries of small contingency tables, so that neither time nor memory is quadratic
in the number of rows.

Under variation of information a row that is with no cluster in half of the draws has the least loss
as a singleton, which would count as a cluster even if it is one in no draw. So such rows are
assigned to the cluster where the loss increases least. A singleton of the result is then a
singleton in most draws.

References
----------
.. [1] D. B. Dahl, D. J. Johnson and P. Mueller, "Search algorithms and loss functions for Bayesian
   clustering", Journal of Computational and Graphical Statistics 31, 2022.
.. [2] S. Wade and Z. Ghahramani, "Bayesian cluster analysis: point estimation and credible balls",
   Bayesian Analysis 13, 2018.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.special import xlogy

from countless._labels import number_by_appearance
from countless._mcmc.draws import by_majority, collapse
from countless.kernels.draws import fill_tables, move_blocks, sum_tables
from countless.priors.hyper import as_generator

LOSSES = ("vi", "binder")


@dataclass(frozen=True)
class Tuning:
    """Constants of the search, chosen by ``benchmarks/mixture.py``; they bound its cost."""

    first_draws: int = 200  # draws used by the first search, before all are used
    table_bytes: int = 2**29  # memory for contingency tables
    evaluated_counts: int = 3 * 10**7  # cost of evaluating draws as candidates for starts
    best_draws: int = 3  # those of least loss, which are starts
    start_counts: int = 10**7  # starts: at least as many as cost this together,
    most_starts: int = 40  # but no more than these;
    repeated_starts: int = 8  # at most these in all until the least loss is found a second time
    guide_draws: int = 12  # draws whose clusters are moved as blocks when no single move gains
    doubtful_part: int = 8  # 1 / the share of items, of least margin, that is scanned again


TUNING = Tuning()
# Relative to the largest value of f: smaller gains are rounding errors; and losses that differ less
# are equal.
ROUNDING = 1e-13
SAME = 1e-10


class Evidence(NamedTuple):
    """Draws in compressed form: weighted items instead of rows, and distinct draws with weights."""

    profiles: np.ndarray  # (n_items, n_draws), labels
    offsets: np.ndarray  # (n_draws,), first cell of each draw; a cell is a cluster of a draw
    weight: np.ndarray  # (n_items,), number of rows of each item
    share: np.ndarray  # (n_cells,), twice the weight of the cell's draw
    f: np.ndarray  # (n_rows + 1,), f(count): the loss is a sum of f over counts of rows


class Tables(NamedTuple):
    """A partition of the items, and its contingency tables with all draws."""

    labels: np.ndarray  # (n_items,), -1 for an item without a cluster
    sizes: np.ndarray  # (n_slots,), slots for clusters
    cells: np.ndarray  # (n_cells, n_slots)


def point_estimate(
    draws: np.ndarray,
    loss: str = "vi",
    random_state: Any = None,
    assign: bool = True,
    same: np.ndarray | None = None,
) -> np.ndarray:
    """Search the partition of least expected loss over draws.

    Parameters
    ----------
    draws : ndarray of shape (n_draws, n_rows)
        Partitions, numbered by first appearance.
    loss : {'vi', 'binder'}, default='vi'
        Variation of information, or the share of pairs on which two partitions disagree.
    random_state : int, RandomState, Generator or None
        For the starts of the search and the order of its moves.
    assign : bool, default=True
        Whether singletons of the estimate that are not singletons in most draws are assigned to
        other clusters.
    same : ndarray of shape (n_rows,), optional
        Rows with the same number are equal, and all get their majority label.

    Returns
    -------
    ndarray of int32, shape (n_rows,)

    Examples
    --------
    >>> draws = np.array([[0, 0, 1, 1], [0, 0, 1, 1], [0, 0, 0, 1]], dtype=np.uint8)
    >>> point_estimate(draws, random_state=0)
    array([0, 0, 1, 1], dtype=int32)
    """
    random = as_generator(random_state)
    few, many = (_spread(draws, most) for most in (TUNING.first_draws, len(draws)))
    item_of, first = collapse(few)
    evidence = _gather(few, item_of, first, loss)
    tables = _tables(evidence, _search(evidence, random))
    if len(few) < len(many):
        labels = tables.labels[item_of]
        item_of, first = collapse(many)
        evidence = _gather(many, item_of, first, loss)
        tables = _tables(evidence, labels[first])
        _improve(evidence, tables, random)
    if assign:
        _assign_undecided(evidence, tables)
    labels = tables.labels[item_of]
    return number_by_appearance(labels if same is None else by_majority(labels, same))[1]


def expected_loss(draws: np.ndarray, labels: np.ndarray, loss: str = "vi") -> float:
    """Return the mean distance of a partition from the draws.

    Examples
    --------
    >>> draws = np.array([[0, 0, 1, 1], [0, 0, 0, 0]], dtype=np.uint8)
    >>> round(expected_loss(draws, np.array([0, 0, 0, 0])), 4)
    0.3466
    """
    numbers = number_by_appearance(labels)[1]
    numbers = numbers.astype(np.min_scalar_type(numbers.max()))
    item_of, first = collapse(np.concatenate([draws, numbers[None]]))
    evidence = _gather(draws, item_of, first, loss)
    apart = _loss(evidence, _tables(evidence, numbers[first]))
    own = 0.0  # the terms of the loss that depend on the draws alone
    ends = np.append(evidence.offsets[1:], len(evidence.share))
    for draw, (start, end) in enumerate(zip(evidence.offsets, ends, strict=True)):
        sizes = np.bincount(evidence.profiles[:, draw], evidence.weight, end - start)
        own += evidence.share[start] / 2 * evidence.f[sizes.astype(np.int64)].sum()
    n_rows = len(numbers)
    pairs = max(n_rows * (n_rows - 1), 1)
    return float(max(0.0, apart + own) / (n_rows if loss == "vi" else pairs))


def _spread(draws: np.ndarray, most: int) -> np.ndarray:
    """Return evenly spaced draws, at most ``most`` and as many as fit in memory."""
    widest = int(draws.max()) + 1
    bearable = TUNING.table_bytes // (4 * widest * _capacity(draws.shape[1], widest))
    n_kept = min(len(draws), most, max(1, bearable))
    if n_kept == len(draws):
        return draws
    return draws[np.linspace(0, len(draws) - 1, n_kept).round().astype(np.int64)]


def _capacity(n_items: int, widest: int) -> int:
    """Return the largest number of clusters of an estimate, given the largest of a draw."""
    return min(n_items, 2 * widest + 8)


def _gather(draws: np.ndarray, item_of: np.ndarray, first: np.ndarray, loss: str) -> Evidence:
    """Return draws in the compressed form of the search."""
    if loss not in LOSSES:
        raise ValueError(f"loss must be {' or '.join(map(repr, LOSSES))}; got {loss!r}")
    distinct, times = np.unique(draws[:, first], axis=0, return_counts=True)
    n_clusters = distinct.max(axis=1).astype(np.int64) + 1
    count = np.arange(len(item_of) + 1, dtype=np.float64)
    return Evidence(
        np.ascontiguousarray(distinct.T),
        np.cumsum(n_clusters) - n_clusters,
        np.bincount(item_of),
        np.repeat(2 * times / len(draws), n_clusters),
        xlogy(count, count) if loss == "vi" else count * count,
    )


def _tables(evidence: Evidence, labels: np.ndarray | None = None) -> Tables:
    """Return the tables of a partition of the items; None: no item is assigned yet."""
    n_items, n_cells = len(evidence.weight), len(evidence.share)
    widest = int(np.diff(evidence.offsets, append=n_cells).max())
    capacity = _capacity(n_items, widest)
    if labels is not None:
        capacity = max(capacity, int(labels.max()) + 1)
    tables = Tables(
        np.full(n_items, -1, dtype=np.int64),
        np.zeros(capacity, dtype=np.int64),
        np.zeros((n_cells, capacity), dtype=np.int32),
    )
    if labels is not None:
        _fill(evidence, tables, labels)
    return tables


def _fill(evidence: Evidence, tables: Tables, labels: np.ndarray) -> None:
    tables.labels[:] = labels
    fill_tables(tables.labels, evidence.profiles, evidence.offsets, evidence.weight, *tables[1:])


def _loss(evidence: Evidence, tables: Tables) -> float:
    return sum_tables(tables.sizes, tables.cells, evidence.share, evidence.f)


def _search(evidence: Evidence, random: np.random.Generator) -> np.ndarray:
    """Return the best partition of the items over all starts: draws and sequential allocations."""
    n_items = len(evidence.weight)
    n_least = min(TUNING.start_counts // (n_items * len(evidence.share)), TUNING.most_starts)
    best_loss, best, n_reached = np.inf, np.zeros(n_items, dtype=np.int64), 0
    promising = _best_draws(evidence)
    for turn in range(max(n_least, TUNING.repeated_starts)):
        draw = turn // 2
        if turn % 2 == 0 and draw < len(promising):
            tables = _tables(evidence, evidence.profiles[:, promising[draw]])
        else:
            tables = _tables(evidence)
            _move_items(evidence, tables, random.permutation(n_items))
        _improve(evidence, tables, random)
        loss = _loss(evidence, tables)
        if loss < best_loss + SAME * evidence.f[-1]:
            n_reached = n_reached + 1 if loss > best_loss - SAME * evidence.f[-1] else 1
        if loss < best_loss:
            best_loss, best = loss, tables.labels
        if turn >= n_least and n_reached > 1:
            break
    return best


def _best_draws(evidence: Evidence) -> np.ndarray:
    """Return the draws of least expected loss, among as many as may be evaluated."""
    n_items, n_draws = evidence.profiles.shape
    n_tried = min(n_draws, max(TUNING.best_draws, TUNING.evaluated_counts // (n_items * n_draws)))
    tried = np.linspace(0, n_draws - 1, n_tried).round().astype(np.int64)
    tables = _tables(evidence)
    losses = np.empty(n_tried)
    for place, draw in enumerate(tried):
        _fill(evidence, tables, evidence.profiles[:, draw])
        losses[place] = _loss(evidence, tables)
    return tried[np.argsort(losses, kind="stable")[: TUNING.best_draws]]


def _improve(evidence: Evidence, tables: Tables, random: np.random.Generator) -> None:
    """Move items, then clusters and their intersections with those of draws, while that gains."""
    n_items, n_draws = evidence.profiles.shape
    whole = np.zeros(n_items, dtype=np.int64)
    while True:
        gained, margin = _move_items(evidence, tables, random.permutation(n_items))
        while gained > 0:
            doubtful = np.argsort(margin, kind="stable")[: n_items // TUNING.doubtful_part + 1]
            while _move_items(evidence, tables, random.permutation(doubtful))[0] > 0:
                pass
            gained, margin = _move_items(evidence, tables, random.permutation(n_items))
        guides = random.choice(n_draws, min(TUNING.guide_draws, n_draws), replace=False)
        by = [whole, *(evidence.profiles[:, guide] for guide in guides)]
        if sum(_move_parts(evidence, tables, guide) for guide in by) == 0:
            return


def _assign_undecided(evidence: Evidence, tables: Tables) -> None:
    """Assign singletons that are not so in most draws to the cluster of least added loss.

    If all clusters are such singletons, there is no other cluster, and they remain.
    """
    labels, sizes, cells = tables
    share, f = evidence.share, evidence.f
    lone = np.flatnonzero((evidence.weight == 1) & (sizes[labels] == 1))
    own_cells = evidence.offsets + evidence.profiles[lone]  # (n_lone, n_draws)
    alone = (share[own_cells] * (cells.sum(axis=1) == 1)[own_cells]).sum(axis=1)
    undecided = alone < 1.0 - SAME  # twice the weight of the draws
    decided = sizes > 0
    decided[labels[lone[undecided]]] = False
    if not decided.any():
        return
    for item, own in zip(lone[undecided], own_cells[undecided], strict=True):
        there = cells[own]  # (n_draws, n_slots)
        cost = f[sizes + 1] - f[sizes] - share[own] @ (f[there + 1] - f[there])
        best = int(np.where(decided, cost, np.inf).argmin())
        for cluster, change in ((labels[item], -1), (best, 1)):
            sizes[cluster] += change
            cells[own, cluster] += change
        labels[item] = best


def _move_items(evidence: Evidence, tables: Tables, items: np.ndarray) -> tuple[float, np.ndarray]:
    """Move items one by one, and assign those without a cluster; return the margin of each."""
    gained, margin = _move(evidence, tables, items, np.arange(len(items) + 1))
    by_item = np.full(len(evidence.weight), np.inf)
    by_item[items] = margin
    return gained, by_item


def _move_parts(evidence: Evidence, tables: Tables, guide: np.ndarray) -> float:
    """Move the intersections of the clusters with those of another partition, as blocks."""
    part = tables.labels * (int(guide.max()) + 1) + guide
    members = np.argsort(part, kind="stable")
    cuts = np.flatnonzero(np.diff(part[members])) + 1
    return _move(evidence, tables, members, np.concatenate([[0], cuts, [len(part)]]))[0]


def _move(
    evidence: Evidence, tables: Tables, members: np.ndarray, starts: np.ndarray
) -> tuple[float, np.ndarray]:
    """Move blocks of items; return the total gain, and the margin to the second best of each."""
    margin = np.empty(len(starts) - 1)
    least = ROUNDING * evidence.f[-1]
    return move_blocks(members, starts, *evidence, least, *tables, margin), margin
