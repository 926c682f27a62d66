"""DP-means of opened rows: the penalty, one run, and the best of several runs.

`resolve_penalty` takes a penalty from the path where the user gives none; `dp_means` runs
Algorithm 1 or the local search at a penalty; `best_of_runs` repeats it from other starts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from countless._compat import OnPass, ignore_pass
from countless._data import Backend
from countless._data.open import open_table
from countless._path.farthest import farthest_distance
from countless._path.micro import assign_to, sample_places
from countless._path.penalty import Fitted, PenaltyPath, path_of
from countless._search.algorithm1 import Clustering, algorithm1, one_pass
from countless._search.assignment import Assignment
from countless._search.checkpoint import NO_CHECKPOINT, Checkpoint, NoCheckpoint
from countless._search.refine import refine as refine_clusters
from countless.divergences import get_divergence


@dataclass(frozen=True)
class Tolerance:
    """The default of ``tol``.

    Up to this many rows and cells the local search runs until no move lowers the objective; above,
    it stops at this tolerance.
    """

    small_rows: int = 10_000
    small_cells: int = 2_000_000
    large_table: float = 1e-3


TOLERANCE = Tolerance()


class Resolved(NamedTuple):
    """A penalty, and what is known from its choice."""

    penalty: float
    start: Any = None  # initial labels of the rows
    path: PenaltyPath | None = None


def resolve_penalty(
    rows: Backend, penalty: float | str, *, n_clusters: int | None = None, refine: bool = True
) -> Resolved:
    """Return a number as it is; 'auto' as chosen from the penalty path.

    With ``n_clusters`` the path is cut at that number. Without ``refine`` a row opens a cluster
    when its own divergence exceeds the penalty, so the penalty is that of farthest-first traversal.
    """
    if not isinstance(penalty, str):
        return Resolved(float(penalty))
    path = path_of(rows)
    if n_clusters is not None:
        return Resolved(*path.clusters_at(n_clusters), path)
    if refine:
        return Resolved(path.penalty, path.labels_at(path.penalty), path)
    return Resolved(farthest_distance(rows, path.n_clusters), None, path)


def path_with(path: PenaltyPath, found: Clustering, penalty: float, labels: Any) -> PenaltyPath:
    """Return a path that agrees with the clustering found at its penalty."""
    k = found.assignment.n_clusters
    if k == path.n_clusters:
        return path
    return path.with_fit(Fitted(k, penalty, found.objective - penalty * k, labels))


def default_tol(n_rows: int, n_features: int = 1) -> float:
    """Return the tolerance of the local search for a table of this size."""
    small = n_rows <= TOLERANCE.small_rows and n_rows * n_features <= TOLERANCE.small_cells
    return 0.0 if small else TOLERANCE.large_table


def dp_means(
    rows: Backend,
    penalty: float,
    *,
    order: str = "given",
    refine: bool = True,
    start: Any = None,
    keep: bool = False,
    tol: float = 0.0,
    max_iter: int = 300,
    seed: int = 0,
    on_pass: OnPass = ignore_pass,
    checkpoint: Checkpoint | NoCheckpoint = NO_CHECKPOINT,
) -> Clustering:
    """Cluster rows by DP-means.

    Parameters
    ----------
    rows : Rows
    penalty : float
        The penalty of one cluster.
    order : {'given', 'random', 'farthest'}
        The order in which rows may open clusters.
    refine : bool
        False is Algorithm 1. True is local search from its first pass, or from the clusters of
        ``start``.
    start : array of int, optional
        Initial labels of the rows, when refining.
    keep : bool
        Keep the number of clusters of ``start``: k-means only, no cluster is opened.
    tol, max_iter : float, int
        Stop when a round gains less than this share of the objective, or after ``max_iter`` passes.
    seed : int
        Seed of a random order.
    on_pass : callable
        Called with the objective and the number of clusters after each pass.
    checkpoint : Checkpoint
        From which the run is resumed, and to which it is saved.
    """
    assignment = Assignment(rows)
    settings: dict[str, Any] = {
        "max_iter": max_iter,
        "on_pass": on_pass,
        "checkpoint": checkpoint,
    }
    if not refine:
        return algorithm1(assignment, penalty, order=order, seed=seed, **settings)

    def first_clusters(assignment: Assignment) -> None:
        if start is None:
            one_pass(assignment, penalty, order, seed)
        else:
            assignment.set_labels(start)

    if keep:
        return algorithm1(
            assignment, penalty, order=order, seed=seed, start=first_clusters, **settings
        )
    return refine_clusters(assignment, penalty, tol=tol, start=first_clusters, **settings)


def best_of_runs(
    rows: Backend,
    penalty: float,
    seeds: list[int],
    *,
    refine: bool,
    start: Any,
    order: str,
    **run: Any,
) -> Clustering:
    """Return the run of lowest objective, one run for each seed.

    Runs after the first visit rows in random order or, when refining, start from random rows.
    """
    run["refine"] = refine
    best = dp_means(rows, penalty, order=order, start=start, seed=seeds[0], **run)
    for seed in seeds[1:]:
        if refine:
            places = sample_places(rows, best.assignment.n_clusters, seed)
            around = assign_to(rows, rows.points(places))
            around.drop_empty()
            start = around.labels
        found = dp_means(rows, penalty, order="random", start=start, seed=seed, **run)
        best = min(best, found, key=lambda clustering: clustering.objective)
    return best


def draw_seed(random: np.random.RandomState) -> int:
    """Draw a seed."""
    return int(random.randint(2**31 - 1))


def auto_labels(X: np.ndarray, seed: int, n_jobs: int | None = None) -> np.ndarray:
    """Return the clusters of the rows of an array at the penalty chosen from its path."""
    with open_table(X, None, get_divergence("sqeuclidean"), n_jobs) as rows:
        resolved = resolve_penalty(rows, "auto")
        tol = default_tol(rows.n_rows, rows.n_features)
        found = dp_means(rows, resolved.penalty, start=resolved.start, tol=tol, seed=seed)
        found.assignment.number_by_appearance()
        return found.labels
