"""Dependence of columns: the posterior probability that two of them share a view."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from countless.plot.similarity import cluster_order
from countless.plot.style import CHOSEN, SHOWN, axes_for


class DependenceDisplay:
    """The dependence of columns as a heat map, columns of a view adjacent.

    Use `from_estimator` to make one.

    Parameters
    ----------
    dependence : ndarray of shape (n_columns, n_columns)
        The probability that two columns share a view.
    view_of : ndarray of shape (n_columns,)
        The view of each column, for the order.
    names : sequence, optional
        The names of the columns; default: their positions.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    image_ : matplotlib AxesImage
    order_ : ndarray of shape (n_columns,)
        The columns from top to bottom.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> import numpy as np
    >>> from countless.plot import DependenceDisplay
    >>> dependence = np.array([[1.0, 0.1, 0.9], [0.1, 1.0, 0.2], [0.9, 0.2, 1.0]])
    >>> display = DependenceDisplay(dependence, np.array([0, 1, 0]), ["a", "b", "c"]).plot()
    >>> [label.get_text() for label in display.ax_.get_yticklabels()]
    ['a', 'c', 'b']
    """

    def __init__(self, dependence: np.ndarray, view_of: np.ndarray, names: Sequence | None = None):
        self.dependence = np.asarray(dependence)
        self.view_of = np.asarray(view_of)
        self.names = list(range(len(self.view_of))) if names is None else list(names)

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None) -> DependenceDisplay:
        """Draw the dependence of the columns of a fitted `CrossCat`.

        Parameters
        ----------
        estimator : CrossCat
        ax : matplotlib Axes, optional
            Where to draw; default: a new figure.

        Returns
        -------
        DependenceDisplay
        """
        check_is_fitted(estimator, "column_names_")
        names = estimator.column_names_
        return cls(estimator.dependence(), view_numbers(estimator), names).plot(ax=ax)

    def plot(self, *, ax: Any = None) -> DependenceDisplay:
        """Draw the heat map and store the artists."""
        ax = axes_for(ax, *figure_size(self.names))
        self.ax_, self.figure_ = ax, ax.figure
        self.order_ = cluster_order(self.dependence, self.view_of)
        shown = self.dependence[np.ix_(self.order_, self.order_)]
        # Square cells would leave no space for names.
        self.image_ = ax.imshow(
            shown, cmap="Blues", vmin=0, vmax=1, interpolation="nearest", aspect="auto"
        )
        for edge in np.flatnonzero(np.diff(self.view_of[self.order_])) + 0.5:
            ax.axhline(edge, color=CHOSEN, linewidth=0.8)
            ax.axvline(edge, color=CHOSEN, linewidth=0.8)
        bar = self.figure_.colorbar(self.image_, ax=ax, shrink=0.8)
        bar.set_label("probability of sharing a view", fontsize="small")
        bar.outline.set_visible(False)
        ax.tick_params(length=0, labelsize="small")
        ax.set_xticks([])  # in the same order
        names = _shown(self.names)
        ax.set_yticks(range(len(names)), [names[j] for j in self.order_[: len(names)]])
        return self


def figure_size(names: Sequence) -> tuple[float, float]:
    """Return a width and a height in inches for a heat map of these columns.

    Examples
    --------
    >>> width, height = figure_size(["a", "b"])
    >>> figure_size(["a", "a long name of a column"])[0] > width > height
    True
    """
    side = min(3.2 + 0.13 * len(names), 10.0)
    longest = max(map(len, _shown(names)), default=0)
    return side + 0.8 + 0.065 * longest, side


def _shown(names: Sequence) -> list[str]:
    """Return the displayed names: none if there are too many."""
    return [str(name) for name in names] if len(names) <= SHOWN.column_names else []


def view_numbers(estimator: Any) -> np.ndarray:
    """Return the view of each column of a fitted `CrossCat`, the widest view first."""
    places = {name: j for j, name in enumerate(estimator.column_names_)}
    view_of = np.empty(len(places), dtype=np.int64)
    for v, view in enumerate(estimator.views_):
        view_of[[places[name] for name in view.columns]] = v
    return view_of
