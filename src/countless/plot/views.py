"""A table divided into its views, each with a separate order of the rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.stats import rankdata
from sklearn.utils.validation import check_is_fitted

from countless.plot.style import LINE, SHOWN, need_pyplot


class ViewsDisplay:
    """The table rearranged: views side by side, the rows of each sorted by its groups.

    A cell is coloured by its rank in its column, a missing value is white. In an informative view
    the columns change together at the lines between groups. Use `from_estimator` to make one.

    Parameters
    ----------
    cells : ndarray of shape (n_rows, n_columns)
        The table in numbers; NaN is a missing value.
    views : sequence of TableView
        Their columns are positions in ``cells``.
    names : sequence, optional
        The names of the columns; default: their positions.

    Attributes
    ----------
    axes_ : ndarray of matplotlib Axes
        One for each view.
    figure_ : matplotlib Figure

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> import numpy as np
    >>> from countless import CrossCat
    >>> from countless.plot import ViewsDisplay
    >>> X = np.random.default_rng(0).normal(size=(30, 2)) + [[0], [9]] * 15
    >>> model = CrossCat(n_chains=1, n_sweeps=10, random_state=0).fit(X)
    >>> ViewsDisplay.from_estimator(model).axes_[0].get_title()
    '2 groups'
    """

    def __init__(self, cells: np.ndarray, views: Sequence, names: Sequence | None = None):
        self.cells = np.asarray(cells)
        self.views = list(views)
        self.names = list(range(self.cells.shape[1])) if names is None else list(names)

    @classmethod
    def from_estimator(cls, estimator: Any, *, figure: Any = None) -> ViewsDisplay:
        """Draw the views of a fitted `CrossCat`.

        Parameters
        ----------
        estimator : CrossCat
        figure : matplotlib Figure, optional
            Where to draw; default: a new one.

        Returns
        -------
        ViewsDisplay
        """
        check_is_fitted(estimator, "column_names_")
        names = estimator.column_names_
        places = {name: j for j, name in enumerate(names)}
        views = [
            view._replace(columns=[places[name] for name in view.columns])
            for view in estimator.views_
        ]
        return cls(estimator.encoded_rows(), views, names).plot(figure=figure)

    def plot(self, *, figure: Any = None) -> ViewsDisplay:
        """Draw the views, up to eight, and store the artists."""
        shown = self.views[: SHOWN.views]
        widths = [max(len(view.columns), 1.5) for view in shown]
        if figure is None:
            size = (min(2.0 + 0.22 * sum(widths), 14.0), 4.8)
            figure = need_pyplot().figure(figsize=size, layout="constrained")
        self.figure_ = figure
        settings = {"width_ratios": widths}
        self.axes_ = np.atleast_1d(figure.subplots(1, len(shown), gridspec_kw=settings))
        for ax, view in zip(self.axes_, shown, strict=True):
            self._draw(ax, view)
        return self

    def _draw(self, ax: Any, view: Any) -> None:
        sizes = np.bincount(view.labels)
        place = np.empty(len(sizes), dtype=np.int64)
        place[np.argsort(-sizes, kind="stable")] = np.arange(len(sizes))
        order = np.argsort(place[view.labels], kind="stable")
        ranks = _ranks(self.cells[:, view.columns])[order]
        ax.imshow(ranks, aspect="auto", interpolation="nearest", cmap="viridis", vmin=0, vmax=1)
        for edge in np.cumsum(np.sort(sizes)[::-1])[:-1]:
            ax.axhline(edge - 0.5, color="white", linewidth=1.4)
            ax.axhline(edge - 0.5, color=LINE, linewidth=0.6)
        groups = "1 group" if view.n_clusters == 1 else f"{view.n_clusters} groups"
        ax.set_title(groups, fontsize="medium")
        ax.set_yticks([])
        ax.tick_params(length=0, labelsize="small")
        names = [str(self.names[j]) for j in view.columns]
        legible = self.cells.shape[1] <= SHOWN.column_names
        ax.set_xticks(range(len(names)) if legible else [], names if legible else [], rotation=90)


def _ranks(cells: np.ndarray) -> np.ndarray:
    """Return each cell's rank in its column, from 0 to 1; missing values are NaN."""
    ranks = rankdata(cells, method="dense", axis=0, nan_policy="omit") - 1.0
    most = np.nanmax(np.where(np.isnan(ranks), 0.0, ranks), axis=0)
    return np.where(most > 0, ranks / np.maximum(most, 1.0), np.where(np.isnan(ranks), ranks, 0.5))
