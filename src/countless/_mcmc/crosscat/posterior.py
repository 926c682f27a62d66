"""Posterior draws of CrossCat: the views of columns, and the partition of rows in each view."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from countless._mcmc.crosscat.chain import Draw
from countless._mcmc.diagnostics import Diagnostic
from countless._mcmc.draws import equal_rows
from countless._mcmc.posterior import Posterior


class TableView(NamedTuple):
    """A view: dependent columns, and their partition of the rows."""

    columns: list[Any]  # their names, or indices if there are none
    labels: np.ndarray  # (n_rows,), numbered by first appearance
    n_clusters: int


class CrossCatPosterior:
    """Posterior draws of CrossCat from several chains.

    Parameters
    ----------
    draws : sequence of sequences of Draw
        The draws of each chain, equally many of each.

    Attributes
    ----------
    views : ndarray of shape (n_chains, n_draws, n_columns)
        The view of each column, numbered by first appearance within each draw.
    n_views : ndarray of shape (n_chains, n_draws)
    log_joint : ndarray of shape (n_chains, n_draws)
    alpha : ndarray of shape (n_chains, n_draws)
        The concentration of the columns' prior; NaN if it has none.
    row_labels : list of lists of tuples of ndarray
        The cluster of each row in each view: ``row_labels[chain][draw][view]``.
    """

    def __init__(self, draws: Sequence[Sequence[Draw]]) -> None:
        self.draws = [list(chain) for chain in draws]
        alpha = [[getattr(draw.column_prior, "alpha", np.nan) for draw in c] for c in draws]
        self._columns = Posterior(
            [[draw.view_of for draw in chain] for chain in draws],
            [[draw.log_joint for draw in chain] for chain in draws],
            {"alpha": alpha},
        )
        self.views, self.n_views = self._columns.labels, self._columns.n_clusters
        self.log_joint, self.alpha = self._columns.log_joint, self._columns.alpha
        self.row_labels = [[draw.labels for draw in chain] for chain in draws]

    def every(self) -> list[Draw]:
        """Return the draws of all chains as one list."""
        return [draw for chain in self.draws for draw in chain]

    def dependence(self) -> np.ndarray:
        """Return the dependence probabilities: that two columns share a view."""
        return self._columns.similarity()

    def diagnostics(self) -> dict[str, Diagnostic]:
        """Return R-hat and effective sample size of the number of views and the log joint."""
        found = self._columns.diagnostics()
        return {"n_views": found["n_clusters"], "log_joint": found["log_joint"]}

    def disagreement(self) -> tuple[int, int, float]:
        """Return the pair of columns whose dependence differs most between chains, and by what."""
        together = np.stack([(c[:, :, None] == c[:, None]).mean(axis=0) for c in self.views])
        apart = together.max(axis=0) - together.min(axis=0)
        i, j = np.unravel_index(int(np.argmax(apart)), apart.shape)
        return int(i), int(j), float(apart[i, j])

    def point_estimate(
        self, names: Sequence[Any], rows: np.ndarray, random: np.random.Generator
    ) -> list[TableView]:
        """Return the views of least posterior expected loss, those of most columns first.

        The row partition of a view is the point estimate over the views, one of each draw, that
        share most columns with it; equal rows are in one cluster.
        """
        # An undecided column remains a singleton: to share a view is to depend on the others.
        view_of = self._columns.point_estimate(random_state=random, assign=False)
        views = []
        for v in range(int(view_of.max()) + 1):
            columns = np.flatnonzero(view_of == v)
            partitions = [
                draw.labels[np.bincount(draw.view_of[columns]).argmax()] for draw in self.every()
            ]
            grouped = Posterior([partitions], np.zeros((1, len(partitions))))
            same = equal_rows(rows[:, columns])
            labels = grouped.point_estimate(random_state=random, same=same)
            own = [names[int(j)] for j in columns]
            views.append(TableView(own, labels, int(labels.max()) + 1))
        return sorted(views, key=lambda view: -len(view.columns))
