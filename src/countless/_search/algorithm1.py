"""Algorithm 1 of Kulis and Jordan, exactly as published, on blocks of rows.

Each pass lowers ``sum_i w_i d(x_i, center of its cluster) + penalty * n_clusters``. Within a pass
the old means are fixed; a row whose weighted divergence from them, and from the clusters opened by
earlier rows of the pass, exceeds the penalty opens a cluster.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from countless._compat import OnPass, ignore_pass
from countless._search.assignment import Assignment
from countless._search.checkpoint import NO_CHECKPOINT, Checkpoint, NoCheckpoint, Progress


class Clustering(NamedTuple):
    """A hard clustering, and how it was reached."""

    assignment: Assignment
    objective: float
    history: list[float]  # the objective after each pass
    n_iter: int
    converged: bool

    @property
    def labels(self) -> Any:
        return self.assignment.labels

    @property
    def centers(self) -> np.ndarray:
        return self.assignment.centers


def one_pass(assignment: Assignment, penalty: float, order: str, seed: int) -> None:
    """Assign every row to the nearest mean, and open clusters at rows beyond the penalty."""
    price = penalty * assignment.rows.fixed_point.divergence.scale
    if assignment.lloyd_step(price):
        assignment.open(order, seed, price)
    assignment.drop_empty()


def algorithm1(
    assignment: Assignment,
    penalty: float,
    *,
    order: str,
    seed: int,
    max_iter: int,
    start: Callable[[Assignment], None] | None = None,
    on_pass: OnPass = ignore_pass,
    checkpoint: Checkpoint | NoCheckpoint = NO_CHECKPOINT,
) -> Clustering:
    """Run Algorithm 1 until no label changes.

    Parameters
    ----------
    assignment : Assignment
        The initial assignment: all rows in one cluster, for the paper's algorithm.
    penalty : float
        The penalty of one cluster, and the weighted divergence beyond which a row opens one.
    order : {'given', 'random', 'farthest'}
        The order in which rows are visited; a random one is a function of the seed.
    max_iter : int
        Maximum number of passes.
    start : callable, optional
        Sets the initial clusters; then no other is opened, which is k-means.
    on_pass : callable
        Called with the objective and the number of clusters after each pass.
    checkpoint : Checkpoint
        From which the run is resumed, and to which it is saved.
    """
    fixed_point = assignment.rows.fixed_point
    saved = checkpoint.resume(assignment)
    history = saved.history if saved else []
    converged = False
    if start is not None and saved is None:
        start(assignment)
    while len(history) < max_iter and not converged:
        one_pass(assignment, penalty if start is None else np.inf, order, seed)
        history.append(fixed_point.objective(assignment.summary, penalty))
        converged = assignment.n_changed == 0
        on_pass(history[-1], assignment.n_clusters)
        if not converged:
            checkpoint.save(assignment, Progress(history, len(history)))
    assignment.centers = fixed_point.means(assignment.summary)
    return Clustering(assignment, history[-1], history, len(history), converged)
